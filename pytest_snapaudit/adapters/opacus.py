"""Opacus: one DP-SGD step of a ``DPOptimizer`` as a mechanism, or as whole steps.

Two routes lead to an audit:

* :func:`from_opacus` splits the step where Opacus splits it. The clean stage is the clipped sum of per-sample
  gradients, obtained from the optimizer's own ``pre_step`` with its noise skipped; the noise stage is its own
  ``add_noise``, called once for many trials on parameters that carry one more axis. The optimizer that is given
  is not changed by the noise stage.
* :func:`sample_steps` takes whole steps: sampling, clipping, noise, division by the expected batch size, update of an
  adaptive clipping bound. It sees what happens after the noise, too, and batches on which a step fails.

Opacus accounts for neighbours that differ by one *added or removed* record, which moves the clipped sum by at most
``max_grad_norm``; replacing a record moves it by twice that.

Randomness comes from torch's global generator, which the engine seeds around each call, or from the optimizer's
own ``torch.Generator``, for which one seeded by the audit stands in. A generator in secure mode is left as it is: no
seed reproduces its noise, and the result says that two draws from one seed differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pytest_snapaudit.adapters.conversions import positive_delta
from pytest_snapaudit.adapters.opacus_optimizers import (
    Backward,
    add_noise,
    clipped,
    is_optimizer,
    require_optimizer,
    require_poisson,
    sampled_indices,
    steps_in_its_own_way,
)
from pytest_snapaudit.adapters.opacus_steps import sample_steps
from pytest_snapaudit.adapters.optional_imports import load
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.errors import MechanismError
from pytest_snapaudit.engine.estimators import gaussian_delta, gdp_epsilon
from pytest_snapaudit.engine.mechanism import BLACK_BOX, WHITE_BOX
from pytest_snapaudit.engine.noise import GaussianNoise

_ACCOUNTANTS = ("rdp", "prv", "gdp")

__all__ = ["accountant_claim", "as_mechanism", "from_opacus", "gaussian_claim", "sample_steps", "step_claim"]


def as_mechanism(obj: object) -> OpacusStep:
    """An Opacus optimizer as a mechanism whose datasets are per-sample gradients.

    The claim comes from the test, since an optimizer knows no delta; its ``claim_curve`` is the exact one of the
    Gaussian mechanism. See :func:`from_opacus` for batches instead of gradients, and for a claim of its own.

    Raises:
        TypeError: any other object of the library.
    """
    if is_optimizer(obj):
        return from_opacus(obj)
    kind = type(obj).__name__
    if hasattr(obj, "get_epsilon") and hasattr(obj, "history"):
        msg = (
            f"{kind} is no mechanism but makes claims: accountant_claim(accountant, delta) turns it into one."
        )
    else:
        msg = (
            f"check takes an optimizer of opacus.optimizers, got {kind}: pass the optimizer that make_private "
            "returns, or from_opacus(optimizer, backward) to audit it on batches of records."
        )
    raise TypeError(msg)


def from_opacus(
    optimizer: Any,
    backward: Backward | None = None,
    *,
    data_loader: Any = None,
    delta: float | None = None,
    accountant: str = "rdp",
    claim: PrivacyClaim | None = None,
    batched: bool = True,
    name: str | None = None,
) -> OpacusStep:
    """One step of ``optimizer`` as a mechanism: clipped gradient sum, then the noise it adds itself.

    Without ``data_loader`` a dataset is the batch itself. With the Poisson-sampling loader that ``make_private``
    returns, a dataset is a sequence of records; every trial samples its own batch with the loader's batch
    sampler and collates it with the loader's ``collate_fn``, empty batches included.

    Args:
        optimizer: a ``DPOptimizer`` or a subclass. ``AdaClipDPOptimizer`` releases its clipping bound beside the
            gradient: use :func:`sample_steps`.
        backward: ``backward(batch)`` computes the loss on ``batch`` and calls ``loss.backward()``; it must not step.
            Without it a dataset *is* the per-sample gradients: one array of shape (B, d) with the coordinates of
            all parameters in order, or a tuple of arrays (B, *shape), one per parameter.
        data_loader: an ``opacus.data_loader.DPDataLoader``.
        delta: of the claim. Without a loader it is the exact claim of a Gaussian mechanism with sensitivity
            ``max_grad_norm``; with one, what the accountant says of one step at the loader's sampling rate.
        accountant: ``"rdp"``, ``"prv"`` or ``"gdp"``; see :func:`step_claim`.
        claim: instead of ``delta``.
        batched: draw many trials per call of ``add_noise``. False calls it once per trial, for optimizers whose
            ``add_noise`` insists on the shapes of its parameters.
        name: printed in reports; the optimizer's class by default.

    Raises:
        TypeError, ValueError: an argument of another kind, or no noise to make a claim of.
    """
    require_optimizer("from_opacus", optimizer)
    if hasattr(optimizer, "unclipped_num"):
        msg = (
            f"from_opacus: {type(optimizer).__name__} releases its clipping bound beside the gradient, so its noise "
            "stage is not one vector; audit whole steps with sample_steps."
        )
        raise TypeError(msg)
    if steps_in_its_own_way(optimizer):
        msg = (
            f"from_opacus: {type(optimizer).__name__} overrides step, of which clipped sum and add_noise say nothing; "
            "audit whole steps with sample_steps."
        )
        raise TypeError(msg)
    if backward is not None and not callable(backward):
        msg = f"from_opacus: backward must be a function of a batch, got {backward!r}."
        raise TypeError(msg)
    if claim is not None and delta is not None:
        msg = f"from_opacus: give claim or delta, not both, got claim={claim!r} and delta={delta!r}."
        raise ValueError(msg)
    label = name or type(optimizer).__name__
    if data_loader is None:
        if delta is not None:
            claim = gaussian_claim(optimizer.noise_multiplier, delta)
        return OpacusStep(optimizer, backward, claim, label, batched)
    if backward is None:
        msg = "from_opacus: a data_loader yields batches of records, so backward(batch) is needed beside it."
        raise TypeError(msg)
    require_poisson(data_loader)
    if delta is not None:
        rate = float(data_loader.batch_sampler.sample_rate)
        claim = step_claim(optimizer.noise_multiplier, delta, sample_rate=rate, accountant=accountant)
    return SampledOpacusStep(optimizer, backward, claim, label, batched, data_loader)


def gaussian_claim(noise_multiplier: float, delta: float) -> PrivacyClaim:
    """The exact claim of one step without sampling: Gaussian noise of ``noise_multiplier`` times the sensitivity.

    Source: Balle and Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018, theorem 8.
    """
    delta = positive_delta("gaussian_claim", delta)
    return PrivacyClaim(gdp_epsilon(1.0 / _noise_multiplier(noise_multiplier), delta), delta)


def step_claim(
    noise_multiplier: float,
    delta: float,
    *,
    sample_rate: float = 1.0,
    steps: int = 1,
    accountant: str = "rdp",
) -> PrivacyClaim:
    """What an accountant of Opacus claims for ``steps`` steps at one sampling rate and noise multiplier.

    Args:
        noise_multiplier: standard deviation of the noise over ``max_grad_norm``.
        delta: of the claim.
        sample_rate: probability that a record is in a batch.
        steps: how many of them.
        accountant: ``"rdp"``, ``"prv"`` or ``"gdp"``, as ``opacus.accountants.create_accountant`` names them.
    """
    if accountant not in _ACCOUNTANTS:
        msg = (
            f"step_claim: accountant must be one of {', '.join(map(repr, _ACCOUNTANTS))}, got {accountant!r}."
        )
        raise ValueError(msg)
    if (
        isinstance(sample_rate, bool)
        or not isinstance(sample_rate, int | float)
        or not 0.0 < sample_rate <= 1.0
    ):
        msg = f"step_claim: sample_rate must be a number in (0, 1], got {sample_rate!r}."
        raise ValueError(msg)
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        msg = f"step_claim: steps must be a positive integer, got {steps!r}."
        raise ValueError(msg)
    accountants = load("opacus.accountants", needed_for="step_claim", install="opacus")
    books = accountants.create_accountant(mechanism=accountant)
    books.history = [(_noise_multiplier(noise_multiplier), float(sample_rate), int(steps))]
    return accountant_claim(books, delta)


def accountant_claim(accountant: Any, delta: float) -> PrivacyClaim:
    """What an accountant of Opacus claims for the steps it has seen, at ``delta``.

    An epsilon below 0, which conversions from Rényi divergence give for a generous delta, counts as 0.
    """
    if isinstance(accountant, type) or not hasattr(accountant, "get_epsilon"):
        msg = f"accountant_claim takes an accountant of opacus.accountants, got {accountant!r}."
        raise TypeError(msg)
    delta = positive_delta("accountant_claim", delta)
    if not getattr(getattr(accountant, "accountant", accountant), "history", True):
        msg = (
            f"accountant_claim: {type(accountant).__name__} has taken note of no step yet, so it claims nothing; train "
            "first, or use step_claim."
        )
        raise ValueError(msg)
    return PrivacyClaim(max(float(accountant.get_epsilon(delta=delta)), 0.0), delta)


@dataclass(frozen=True, eq=False)
class OpacusStep:
    """One step on a given batch: a mechanism with a deterministic clean stage.

    Attributes:
        optimizer, backward, claim, name, batched: as given to :func:`from_opacus`.
    """

    optimizer: Any
    backward: Backward | None
    claim: PrivacyClaim | None
    name: str
    batched: bool = True

    deterministic = True
    norm = "l2"
    claimed_views = frozenset({BLACK_BOX, WHITE_BOX})

    @property
    def sensitivity(self) -> float:
        """How far one added or removed record moves the clipped sum: ``max_grad_norm``."""
        return float(self.optimizer.max_grad_norm)

    @property
    def noise(self) -> GaussianNoise | None:
        """The noise the optimizer's parameters declare; None if it adds none."""
        sigma = float(self.optimizer.noise_multiplier) * self.sensitivity
        return GaussianNoise(sigma) if sigma > 0 else None

    def clean(self, dataset: Any, rng: Generator) -> NDArray[Any]:
        """(d,) clipped sum of the per-sample gradients of all parameters, without noise."""
        del rng
        return clipped(self.optimizer, self.backward, dataset)[0]

    def privatize(self, clean: NDArray[Any], rng: Generator) -> NDArray[Any]:
        """(n, d) clipped sums to (n, d) noisy ones, by the optimizer's ``add_noise``."""
        if self.batched:
            return add_noise(self.optimizer, clean, rng)
        return np.concatenate([add_noise(self.optimizer, row, rng) for row in clean])

    def claim_curve(self, epsilon: float) -> float:
        """The delta of the Gaussian mechanism at ``epsilon``."""
        return gaussian_delta(1.0 / _noise_multiplier(self.optimizer.noise_multiplier), epsilon)


@dataclass(frozen=True, eq=False)
class SampledOpacusStep(OpacusStep):
    """One step on a Poisson-sampled batch: the clean stage is drawn anew for every trial.

    Attributes:
        data_loader: whose batch sampler and ``collate_fn`` are used.
    """

    data_loader: Any = None

    deterministic = False
    claim_curve = None  # type: ignore[assignment]

    def clean(self, dataset: Any, rng: Generator) -> NDArray[Any]:
        """(d,) clipped sum on one sampled batch."""
        return np.asarray(self.clean_batch(dataset, 1, rng)[0])

    def clean_batch(self, dataset: Any, size: int, rng: Generator) -> NDArray[Any]:
        """(size, d) clipped sums, each on a batch of its own; equal batches are computed once."""
        known: dict[tuple[int, ...], NDArray[Any]] = {}
        rows = []
        for indices in sampled_indices(self.data_loader, dataset, size, rng):
            if indices not in known:
                known[indices] = self._clipped_sum(dataset, indices)
            rows.append(known[indices])
        return np.stack(rows)

    def _clipped_sum(self, dataset: Any, indices: tuple[int, ...]) -> NDArray[Any]:
        try:
            batch = self.data_loader.collate_fn([dataset[i] for i in indices])
            return clipped(self.optimizer, self.backward, batch)[0]
        except Exception as error:
            msg = (
                f"from_opacus: a step on a batch of {len(indices)} of the records raises {error!r}; a dataset is a "
                "sequence of records that collate_fn can put together. If batches may fail, which everybody sees, "
                "audit whole steps with sample_steps, for which a failure is an output."
            )
            raise MechanismError(msg) from error


def _noise_multiplier(value: Any) -> float:
    number = float(value)
    if not 0.0 < number < np.inf:
        msg = f"a claim needs a noise_multiplier above 0, got {value!r}; without noise there is nothing to claim."
        raise ValueError(msg)
    return number
