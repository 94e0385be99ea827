"""Product of Experts: classification by a noisy sum of label log-probabilities, one expert per exemplar.

Romijnders et al., "Private PoEtry: Private In-Context Learning via Product of Experts" (2026); in the
SnapAudit paper Algorithm 4. The stages, apart from one another:

- recorded: how probable the model finds each label when shown one exemplar, as logarithms, shape (J, K);
- :meth:`ProductOfExperts.aggregate`: each clipped to [−Γ, 0], then their sum, the utilities, shape (K,);
- :meth:`ProductOfExperts.privatize`: independent Gumbel noise on every utility;
- :meth:`ProductOfExperts.release`: the label with the largest noisy utility.

One exemplar is one expert, so a neighbouring dataset changes one row of K numbers in [−Γ, 0].

Replace-one: the utilities move by d ∈ [−Γ, Γ]^K. With a = 1/scale, the probability of label y is multiplied by
e^{a d_y} and the normaliser by a factor in [e^{−aΓ}, e^{aΓ}], so ε = 2aΓ and the scale is 2Γ/ε.

Add-remove: a new row only lowers utilities, d ∈ [−Γ, 0]^K. Factor and normaliser move the same way, their
quotient stays in [e^{−aΓ}, e^{aΓ}], so ε = aΓ and the scale Γ/ε is enough.

The paper draws ε u / (2Γ) + Gumbel(0, 1); here the same is in the units of the utilities, u + scale · Gumbel(0, 1),
which has the same argmax. Only the argmax is private, so the claim covers the released label (black-box) and not
the noisy utilities.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from dp_icl.calibration import validate_positive
from dp_icl.gumbel import GumbelNoise
from dp_icl.labels import validate_labels
from dp_icl.partition import Adjacency, validate_adjacency, validate_exemplars

ExpertModel = Callable[[Any], "ArrayLike | Mapping[str, float]"]


@dataclass(frozen=True, repr=False)
class ProductOfExperts:
    """ε-differentially private label of one query.

    Args:
        labels: the K ≥ 2 labels: distinct, non-empty, without surrounding whitespace.
        epsilon: claimed ε, finite and above 0; δ is 0.
        clip: Γ in nats, finite and above 0: log-probabilities below −Γ count as −Γ.
        adjacency: ``"replace-one"`` or ``"add-remove"`` (of one exemplar).
        model: ``model(exemplar)`` gives the natural log-probabilities of the labels for the query, shown that
            one exemplar: (K,) numbers in the order of ``labels``, or a mapping from label to number, in which
            a missing label has probability 0. It must be deterministic. Without a model, datasets are
            recorded log-probabilities.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: an argument is out of range.
    """

    labels: tuple[str, ...]
    epsilon: float
    clip: float
    adjacency: Adjacency = "replace-one"
    model: ExpertModel | None = field(default=None, hash=False)
    noise: GumbelNoise = field(init=False, compare=False)

    deterministic: ClassVar[bool] = True
    norm: ClassVar[str] = "linf"
    claimed_views: ClassVar[frozenset[str]] = frozenset({"black-box"})

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", validate_labels(self.labels))
        object.__setattr__(self, "epsilon", validate_positive("epsilon", self.epsilon))
        object.__setattr__(self, "clip", validate_positive("clip", self.clip))
        object.__setattr__(self, "adjacency", validate_adjacency(self.adjacency))
        if self.model is not None and not callable(self.model):
            msg = f"model must be callable or None, got {self.model!r} of type {type(self.model).__name__}."
            raise TypeError(msg)
        object.__setattr__(self, "noise", GumbelNoise(self._scale()))

    def __repr__(self) -> str:
        text = f"labels={self.labels!r}, epsilon={self.epsilon}, clip={self.clip}"
        if self.adjacency != "replace-one":
            text += f", adjacency={self.adjacency!r}"
        return f"{type(self).__name__}({text})"

    def _scale(self) -> float:
        return (2.0 if self.adjacency == "replace-one" else 1.0) * self.clip / self.epsilon

    @property
    def scale(self) -> float:
        """Scale of the Gumbel noise on each utility, in nats: 2Γ/ε for replace-one, Γ/ε for add-remove."""
        return self.noise.scale

    @property
    def sensitivity(self) -> float:
        """How far one exemplar moves a utility, in nats: Γ under either adjacency."""
        return self.clip

    @property
    def claim(self) -> tuple[float, float]:
        """The claimed (ε, δ); δ is 0."""
        return self.epsilon, 0.0

    def log_probabilities(self, exemplars: Sequence[Any]) -> NDArray[np.float64]:
        """What the model says, asked once per exemplar; the part worth recording.

        Args:
            exemplars: J exemplars of any kind.

        Returns:
            (J, K) log-probabilities as the model gave them, −inf for a label it did not produce.

        Raises:
            ValueError: the mechanism has no model, or its answer has not one number per label.
            TypeError: ``exemplars`` is not a sequence, or the model did not answer with real numbers.
        """
        if self.model is None:
            msg = (
                "ProductOfExperts has no model to ask; construct it with model=..., or use recorded "
                "log-probabilities."
            )
            raise ValueError(msg)
        said = np.empty((len(validate_exemplars(exemplars)), len(self.labels)))
        for row, exemplar in zip(said, exemplars, strict=True):
            row[:] = self._expert(self.model(exemplar))
        return said

    def record(self, exemplars: Sequence[Any], size: int, rng: Generator) -> NDArray[np.float64]:
        """``size`` evaluations of :meth:`log_probabilities`, (size, J, K), in the form a snapshot records."""
        return np.stack([self.log_probabilities(exemplars) for _ in range(size)])

    def aggregate(self, log_probabilities: ArrayLike) -> NDArray[np.float64]:
        """Clip and add up.

        Args:
            log_probabilities: (J, K), one row per expert; J ≥ 0. Numbers above 0, which no probability has,
                count as 0; −inf and NaN count as −Γ: an error would tell the attacker about the data.

        Returns:
            (K,) utilities in nats, each in [−JΓ, 0].

        Raises:
            TypeError: the log-probabilities are not real numbers.
            ValueError: their shape is not (J, K).
        """
        said = np.asarray(log_probabilities)
        if said.size and said.dtype.kind not in "fiu":
            msg = f"log_probabilities must be an array of real numbers, got dtype {said.dtype}."
            raise TypeError(msg)
        if said.ndim != 2 or said.shape[1] != len(self.labels):
            msg = (
                f"log_probabilities must have shape (J, {len(self.labels)}), one row per expert and one column per "
                f"label, got shape {said.shape}."
            )
            raise ValueError(msg)
        utilities: NDArray[np.float64] = self._clipped(said.astype(np.float64)).sum(axis=0)
        return utilities

    def clean(self, dataset: Any, rng: Generator) -> NDArray[np.float64]:
        """Utilities without noise.

        Args:
            dataset: the exemplars when there is a model, else the recorded log-probabilities, (J, K).
            rng: unused; the clean stage is deterministic.

        Returns:
            (K,) utilities in nats.
        """
        return self.aggregate(dataset if self.model is None else self.log_probabilities(dataset))

    def privatize(self, clean_rows: ArrayLike, rng: Generator) -> NDArray[np.float64]:
        """Add independent Gumbel noise to every utility.

        Args:
            clean_rows: (n, K) utilities; never modified.
            rng: source of the noise.

        Returns:
            (n, K) noisy utilities in nats: 1/:attr:`scale` of them is the paper's ε u / (2Γ) + Gumbel(0, 1).

        Raises:
            TypeError: the utilities are not numbers.
            ValueError: the rows are not of length K, or a utility is NaN.
        """
        rows = np.asarray(clean_rows)
        if rows.dtype.kind not in "fiub":
            msg = f"clean_rows must hold numbers, one utility per label, got dtype {rows.dtype}."
            raise TypeError(msg)
        if rows.ndim != 2 or rows.shape[1] != len(self.labels):
            msg = f"clean_rows must have shape (n, {len(self.labels)}), one utility per label, got {rows.shape}."
            raise ValueError(msg)
        if rows.dtype.kind == "f" and np.isnan(rows).any():
            msg = "clean_rows must not hold NaN, which would win whatever the noise."
            raise ValueError(msg)
        noisy = rng.gumbel(size=rows.shape)
        noisy *= self.scale
        noisy += rows
        return noisy

    def release(self, noisy: ArrayLike, rng: Generator) -> NDArray[np.intp]:
        """The winning label of every row.

        Args:
            noisy: (n, K) noisy utilities.
            rng: unused; post-processing adds no randomness.

        Returns:
            (n,) indices into ``labels``; of equal utilities the first wins.
        """
        winners: NDArray[np.intp] = np.argmax(np.asarray(noisy), axis=1)
        return winners

    def _clipped(self, said: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.clip(np.where(np.isnan(said), -np.inf, said), -self.clip, 0.0)

    def _expert(self, said: ArrayLike | Mapping[str, float]) -> NDArray[np.floating[Any]]:
        if isinstance(said, Mapping):
            said = [said.get(label, -np.inf) for label in self.labels]
        row = np.asarray(said)
        if row.dtype.kind not in "fiu":
            msg = f"model must return real numbers, one per label, got {said!r}."
            raise TypeError(msg)
        if row.shape != (len(self.labels),):
            msg = f"model must return {len(self.labels)} log-probabilities, one per label, got shape {row.shape}."
            raise ValueError(msg)
        return row
