"""Holding a mechanism to the noise it declares, where it asks for that (``enforced=True``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtr, chdtrc

from pytest_snapaudit.engine.certificates.conditions import shape_p_value, unfit
from pytest_snapaudit.engine.certificates.residuals import make_frame
from pytest_snapaudit.engine.clean_stage import SIDES
from pytest_snapaudit.engine.errors import DeclarationMismatch
from pytest_snapaudit.engine.families import law_of
from pytest_snapaudit.engine.goodness_of_fit import (
    GaussianReference,
    LaplaceReference,
    ShapeReference,
    ShapeTally,
    shape_test,
)
from pytest_snapaudit.engine.mechanism import WHITE_BOX
from pytest_snapaudit.engine.noise import GaussianNoise, LaplaceNoise, NoiseDeclaration
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
from pytest_snapaudit.engine.subject import Subject

SHARE = 0.1
"""Share of the error probability of an audit that holds a mechanism to its declaration."""

_VALUES = 50_000


def hold_to_declaration(subject: Subject, entropy: tuple[int, ...], alpha: float) -> None:
    """Test the noise of ``privatize`` on one clean output per side against the declaration.

    Shape and scale, all coordinates pooled, are tested on draws of their own; noise exactly as declared is
    rejected with probability at most ``alpha``, up to the large-sample approximations of the tests.

    Raises:
        DeclarationMismatch: the shape or the scale is not as declared, or no noise is seen alone.
    """
    if subject.noise is None:
        return
    residuals = []
    for side in (0, 1):
        seen = _residuals(subject, entropy, side)
        if isinstance(seen, str):
            raise DeclarationMismatch(_message(subject, seen))
        residuals.append(seen)
    reason = difference_from(subject.noise, residuals, alpha)
    if reason:
        raise DeclarationMismatch(_message(subject, reason))


def _message(subject: Subject, reason: str) -> str:
    return f"{subject.name}: declares {subject.noise} and asks to be held to it, but {reason}."


def difference_from(noise: NoiseDeclaration, residuals: Sequence[NDArray[np.float64]], alpha: float) -> str:
    """How the noise of the two sides, (m,) values each, differs from the declaration; empty if it does not."""
    if isinstance(noise, GaussianNoise):
        return _against_reference(GaussianReference(0.0, noise.sigma), noise.sigma**2, residuals, alpha)
    if isinstance(noise, LaplaceNoise):
        return _against_reference(LaplaceReference(0.0, noise.scale), noise.scale, residuals, alpha)
    law = law_of(noise)
    if law is None:
        return ""
    frame = make_frame(law, np.zeros(1, dtype=np.intp), np.zeros((2, 1)), law.scale)
    for values, side in zip(residuals, SIDES, strict=True):
        tally = frame.tally(values[:, None])
        reason = unfit(tally)
        p_value = 0.0
        if not reason:
            p_value, reason = shape_p_value(tally, law.scale)
        if p_value <= alpha / 2:
            return f"the noise on the {side} side is not {law.name} noise of that scale: {reason} (p = {p_value:.2g})"
    return ""


def _against_reference(
    reference: ShapeReference, spread: float, residuals: Sequence[NDArray[np.float64]], alpha: float
) -> str:
    tallies = [ShapeTally.from_values(values, reference) for values in residuals]
    shape = shape_test(tallies, alpha / 2)
    if not shape.passed:
        return f"the noise is not {reference.family}: {shape.reason}"
    for tally, side in zip(tallies, SIDES, strict=True):
        observed, freedom = reference.dispersion(tally)
        ratio = freedom * observed / spread
        p_value = 2.0 * min(float(chdtr(freedom, ratio)), float(chdtrc(freedom, ratio)))
        if p_value <= alpha / 4:
            scale = observed**0.5 if isinstance(reference, GaussianReference) else observed
            return f"the observed scale on the {side} side is {scale:.6g} (p = {p_value:.2g})"
    return ""


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
