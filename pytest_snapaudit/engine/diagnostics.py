"""Observations that explain a verdict: sensitivity, noise scale, determinism, reproducibility."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.distance import observed_distance, validate_norm
from pytest_snapaudit.engine.estimators import analytic_gaussian_sigma
from pytest_snapaudit.engine.mechanism import mechanism_name
from pytest_snapaudit.engine.noise import GaussianNoise, LaplaceNoise
from pytest_snapaudit.engine.outcomes import Rows
from pytest_snapaudit.engine.snapshot import SnapshotPair
from pytest_snapaudit.engine.snapshot_diagnostics import NORMS, in_words
from pytest_snapaudit.engine.subject import Subject

_MAX_ROW_PAIRS = 200
_EQUAL = (
    "all clean outputs of a side are equal ({:,} evaluations); declare deterministic = True for an audit that "
    "reaches larger epsilon"
)


def declared_norm(mechanism: Any) -> str:
    """The norm of the declared sensitivity: as stated, else l1 for declared Laplace noise, else l2."""
    norm = getattr(mechanism, "norm", None)
    if isinstance(norm, str):
        plain = norm.lower().replace("_", "")
        validate_norm(mechanism_name(mechanism), plain)
        return plain
    return "l1" if isinstance(getattr(mechanism, "noise", None), LaplaceNoise) else "l2"


def clean_distance(subject: Subject) -> tuple[float, str] | None:
    """Largest distance seen between the two sides' clean outputs, and its norm; None without numbers."""
    if subject.clean_rows is None or any(rows.dtype.kind not in "biuf" for rows in subject.clean_rows):
        return None
    norm = declared_norm(subject.mechanism)
    a, b = subject.clean_rows
    if subject.clean == "fixed":
        return observed_distance(a[0], b[0], norm), norm
    pairs = min(len(a), len(b), _MAX_ROW_PAIRS)
    return max(observed_distance(a[i], b[i], norm) for i in range(pairs)), norm


def describe(
    subject: Subject, claim: PrivacyClaim, pilot: tuple[Rows, Rows] | None, *, reproducible: bool
) -> tuple[tuple[str, str], ...]:
    """The diagnostics of one audit, as (what, observation) pairs.

    Args:
        pilot: (h, d) pilot outputs of the noise stage per side, where they are drawn.
        reproducible: whether equal seeds gave equal outputs.
    """
    found: list[tuple[str, str]] = []
    gap = clean_distance(subject)
    sensitivity = getattr(subject.mechanism, "sensitivity", None)
    if gap is not None and math.isfinite(gap[0]):
        found += _sensitivity(gap, sensitivity)
        found += _noise_scale(subject, claim, gap[0], pilot)
    if subject.recorded is None:
        found += _determinism(subject)
    else:
        found += _of_snapshot(subject, subject.recorded)
    found.append(
        (
            "reproducibility",
            "two draws from one seed are equal"
            if reproducible
            else "two draws from one seed differ: the mechanism ignores the rng it is given, so a borderline "
            "verdict may change from run to run",
        )
    )
    return tuple(found)


def _sensitivity(gap: tuple[float, str], sensitivity: object) -> list[tuple[str, str]]:
    seen, norm = gap
    if isinstance(sensitivity, bool) or not isinstance(sensitivity, int | float | np.number):
        return [
            ("clean distance", f"clean outputs are {seen:.6g} apart ({norm}); no sensitivity is declared")
        ]
    declared = float(sensitivity)
    text = f"clean outputs are {seen:.6g} apart ({norm})"
    if seen > declared * (1 + 1e-9):
        return [("sensitivity", f"{text} but the declared sensitivity is {declared:.6g}")]
    return [("clean distance", f"{text}, within the declared sensitivity {declared:.6g}")]


def _noise_scale(
    subject: Subject, claim: PrivacyClaim, gap: float, pilot: tuple[Rows, Rows] | None
) -> list[tuple[str, str]]:
    observed = _observed_scale(subject, pilot)
    if observed is None or gap <= 0:
        return []
    if isinstance(subject.noise, LaplaceNoise):
        scale, what = observed / math.sqrt(2.0), "Laplace scale"
        needed = gap / claim.epsilon if claim.epsilon > 0 else math.inf
    elif isinstance(subject.noise, GaussianNoise) and claim.delta > 0:
        scale, what = observed, "noise scale"
        needed = analytic_gaussian_sigma(claim.epsilon, claim.delta, gap)
    else:
        return [("noise scale", f"observed standard deviation {observed:.4g} per coordinate")]
    if scale < 0.97 * needed:
        return [("noise scale", f"{what} {scale:.3f} should be {needed:.3f} for this pair")]
    return [("noise scale", f"{what} {scale:.3f}; this pair needs {needed:.3f}")]


def _observed_scale(subject: Subject, pilot: tuple[Rows, Rows] | None) -> float | None:
    if pilot is None or subject.clean != "fixed" or subject.clean_rows is None:
        return None
    width = subject.clean_rows[0][0].size
    if any(side.shape[1] != width or not np.isfinite(side).all() for side in pilot):
        return None
    return float(np.sqrt(np.mean([side.var(axis=0, ddof=1, dtype=np.float64).mean() for side in pilot])))


def _determinism(subject: Subject) -> list[tuple[str, str]]:
    if subject.clean == "rows" and subject.clean_rows is not None:
        distinct = [len(np.unique(rows.reshape(len(rows), -1), axis=0)) for rows in subject.clean_rows]
        if max(distinct) == 1:
            return [("determinism", _EQUAL.format(len(subject.clean_rows[0])))]
        return [("clean outputs", f"{distinct[0]:,} and {distinct[1]:,} distinct clean outputs per side")]
    if subject.clean == "fixed" and subject.declared_deterministic:
        return [("determinism", "declared; a second evaluation of the clean stage agrees")]
    return []


def _of_snapshot(subject: Subject, pair: SnapshotPair) -> list[tuple[str, str]]:
    numeric = all(side.rows.dtype.kind in "biufc" for side in (pair.reference, pair.canary))
    norm = declared_norm(subject.mechanism) if numeric else "l2"
    deterministic = subject.declared_deterministic
    lines = list(in_words(pair, norm if norm in NORMS else "l2", deterministic=deterministic))
    evaluations = min(pair.reference.size, pair.canary.size)
    if max(len(pair.reference.rows), len(pair.canary.rows)) > 1:
        return lines
    if deterministic:
        witness = "the recorded evaluations agree" if evaluations > 1 else "one evaluation is recorded"
        lines.append(("determinism", f"declared; {witness}"))
    elif subject.clean == "rows":
        lines.append(("determinism", _EQUAL.format(evaluations)))
    return lines
