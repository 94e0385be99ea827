"""Holding a mechanism to the noise it declares, where it asks for that (``enforced=True``)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtr, chdtrc

from pytest_snapaudit.engine.errors import DeclarationMismatch
from pytest_snapaudit.engine.goodness_of_fit import (
    GaussianReference,
    LaplaceReference,
    ShapeReference,
    ShapeTally,
    shape_test,
)
from pytest_snapaudit.engine.mechanism import WHITE_BOX
from pytest_snapaudit.engine.noise import GaussianNoise, NoiseDeclaration
from pytest_snapaudit.engine.outcomes import Raised
from pytest_snapaudit.engine.seeding import BLOCK, block_generator, legacy_generators_seeded
from pytest_snapaudit.engine.simulation import (
    CLEAN_PHASE,
    DECLARATION_PHASE,
    CopiedSource,
    FixedCleanSource,
    LiveCleanSource,
    draw_raw,
)
from pytest_snapaudit.engine.subject import SIDES, Subject

SHARE = 0.1
"""Share of the error probability of an audit that holds a mechanism to its declaration."""

_VALUES = 50_000


def hold_to_declaration(subject: Subject, entropy: tuple[int, ...], alpha: float) -> None:
    """Test the noise of ``privatize`` on one clean output per side against the declaration.

    Shape (all coordinates pooled) and scale are tested on draws of their own; noise exactly as declared is
    rejected with probability at most ``alpha``.

    Raises:
        DeclarationMismatch: the shape or the scale is not as declared, or no noise is seen alone.
    """
    noise = subject.noise
    if noise is None:
        return
    reference, spread = _expected(noise)
    tallies = []
    for side in (0, 1):
        residuals = _residuals(subject, entropy, side)
        if isinstance(residuals, str):
            raise DeclarationMismatch(_message(subject, residuals))
        tallies.append(ShapeTally.from_values(residuals, reference))
    shape = shape_test(tallies, alpha / 2)
    if not shape.passed:
        reason = f"the noise is not {reference.family}: {shape.reason}"
        raise DeclarationMismatch(_message(subject, reason))
    for tally, name in zip(tallies, SIDES, strict=True):
        observed, freedom = reference.dispersion(tally)
        ratio = freedom * observed / spread
        p_value = 2.0 * min(float(chdtr(freedom, ratio)), float(chdtrc(freedom, ratio)))
        if p_value <= alpha / 4:
            scale = observed**0.5 if isinstance(noise, GaussianNoise) else observed
            reason = f"the observed scale on the {name} side is {scale:.6g} (p = {p_value:.2g})"
            raise DeclarationMismatch(_message(subject, reason))


def _message(subject: Subject, reason: str) -> str:
    return f"{subject.name}: declares {subject.noise} and asks to be held to it, but {reason}."


def _expected(noise: NoiseDeclaration) -> tuple[ShapeReference, float]:
    """Where the noise should lie, and the dispersion that its family's statistic estimates."""
    if isinstance(noise, GaussianNoise):
        return GaussianReference(0.0, noise.sigma), noise.sigma**2
    return LaplaceReference(0.0, noise.scale), noise.scale


def _residuals(subject: Subject, entropy: tuple[int, ...], side: int) -> NDArray[np.float64] | str:
    """What the noise stage adds to one clean output of a side, every coordinate a value; or why it is hidden."""
    clean = _clean_output(subject, entropy, side)
    if clean is None or clean.dtype.kind not in "biuf" or not np.isfinite(clean).all():
        return f"the clean output of the {SIDES[side]} side is no array of finite numbers"
    probed = subject.sources[side]
    copied = isinstance(probed, CopiedSource)
    inner: Any = probed.source if isinstance(probed, CopiedSource) else probed
    fixed = FixedCleanSource(subject.mechanism, clean, copy=getattr(inner, "copy", True))
    source = CopiedSource(fixed) if copied else fixed
    left, found = max(_VALUES // max(clean.size, 1), 500), []
    for block in range(-(-left // BLOCK)):
        n = min(BLOCK, left - block * BLOCK)
        noisy = draw_raw(source, n, block_generator(entropy, DECLARATION_PHASE, side, block))[WHITE_BOX]
        if isinstance(noisy, Raised):
            return f"privatize raised {noisy.exception!r}"
        if hasattr(noisy, "detach"):
            noisy = noisy.detach().cpu().numpy()
        noisy = np.asarray(noisy)
        if noisy.shape != (n, *clean.shape) or noisy.dtype.kind not in "biuf":
            return (
                f"privatize returns an array of shape {noisy.shape} and dtype {noisy.dtype} for clean outputs of "
                f"shape {(n, *clean.shape)}, so no noise is seen alone"
            )
        found.append((noisy.astype(np.float64) - clean.astype(np.float64)).ravel())
    return np.concatenate(found)


def _clean_output(subject: Subject, entropy: tuple[int, ...], side: int) -> NDArray[Any] | None:
    if subject.clean_rows is not None:
        return np.asarray(subject.clean_rows[side][0])
    source: Any = subject.sources[side]
    source = source.source if isinstance(source, CopiedSource) else source
    if not isinstance(source, LiveCleanSource):
        return None
    rng = block_generator(entropy, CLEAN_PHASE, 0, 0)
    with legacy_generators_seeded(rng):
        clean: NDArray[Any] = np.array(subject.mechanism.clean(source.dataset, rng))
    return clean
