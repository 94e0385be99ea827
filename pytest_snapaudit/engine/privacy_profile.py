"""The empirical privacy profile δ(ε) and trade-off curve of one score, with simultaneous bands; for reports.

Two bands, both valid for every mechanism and every score, and both at once for all ε and all points of the curve:

* ``"dkw"``: both distribution functions of the score lie within ``sqrt(ln(4 / α) / 2n)`` of the empirical ones, on
  either side (Dvoretzky, Kiefer and Wolfowitz; Massart, Annals of Probability 18, 1990; α/2 for each side's law).
  Any threshold may be read off the same draws.
* ``"binomial"``: thresholds are fixed on half of the draws, and the rates at them get exact binomial bounds on the
  other half, α split over all of them. Wider in the middle, far narrower in the tails that decide at large ε.

A profile never gates: it shows where a mechanism leaks, on one pair of neighbours and one score.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pytest_snapaudit.engine.attacks.choice import choose_event
from pytest_snapaudit.engine.attacks.event import comparable
from pytest_snapaudit.engine.attacks.scores import Score
from pytest_snapaudit.engine.bounds import clopper_pearson_lower, clopper_pearson_upper
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.mechanism import BLACK_BOX, WHITE_BOX
from pytest_snapaudit.engine.outcomes import fit_layout
from pytest_snapaudit.engine.seeding import as_entropy
from pytest_snapaudit.engine.settings import validate_attacks, validate_confidence, validate_count
from pytest_snapaudit.engine.simulation import FIRST_LOOK_PHASE, PILOT_PHASE, block_tasks
from pytest_snapaudit.engine.subject import resolve_subject
from pytest_snapaudit.engine.wiring import probe

FloatArray = NDArray[np.float64]
Band = Literal["dkw", "binomial"]

BANDS = ("dkw", "binomial")
DEFAULT_EPSILONS = tuple(float(e) for e in np.linspace(0.0, 8.0, 33))

_TUNING = 20_000
_LEVELS = np.unique(
    np.concatenate([np.logspace(-5, -1, 32), np.linspace(0.1, 0.9, 33), 1.0 - np.logspace(-1, -5, 32)])
)

_FINE = 1.0 / (1.0 + np.exp(-np.linspace(-14.0, 14.0, 2_001)))


@dataclass(frozen=True)
class PrivacyProfile:
    """What one score shows of a pair of neighbours; built-in types only.

    All bands hold together with the stated confidence.

    Attributes:
        epsilons: (k,) where the profile was asked for.
        delta_lower: (k,) lower bounds of δ(ε), the larger of both directions.
        false_positive_rates: (m,) increasing from 0 to 1: corners of the upper band of the trade-off curve.
        false_negative_rates: (m,) convex and decreasing: the trade-off curve (least false negative rate of a test
            of reference against canary) is at most the linear interpolation of these points.
        confidence: of all bands together.
        trials: draws per side that were counted.
        band: ``"dkw"`` or ``"binomial"``.
        score: in words.
        name: of the mechanism.
        view: which output was looked at.
    """

    epsilons: tuple[float, ...]
    delta_lower: tuple[float, ...]
    false_positive_rates: tuple[float, ...]
    false_negative_rates: tuple[float, ...]
    confidence: float
    trials: int
    band: str
    score: str = ""
    name: str = ""
    view: str = ""

    def epsilon_lower(self, delta: float) -> float:
        """The largest ε of the profile whose δ(ε) certainly exceeds ``delta``; 0 if there is none."""
        above = [e for e, d in zip(self.epsilons, self.delta_lower, strict=True) if d > delta]
        return max(above, default=0.0)


def privacy_profile(
    mechanism: Any,
    neighbours: Any,
    *,
    epsilons: Sequence[float] = DEFAULT_EPSILONS,
    delta: float = 0.0,
    confidence: float = 0.95,
    n_trials: int = 100_000,
    score: Callable[[Any], Any] | None = None,
    band: Band = "binomial",
    view: str | None = None,
    scope: str = "pipeline",
    n_snapshots: int = 2_000,
    seed: int | Sequence[int] = 0,
    name: str | None = None,
) -> PrivacyProfile:
    """The empirical privacy profile and trade-off curve of a mechanism on one pair of neighbours.

    Args:
        mechanism, neighbours, scope, n_snapshots, seed, name: as in :func:`~pytest_snapaudit.engine.audit.audit`;
            a random clean stage needs ``clean_batch`` or ``scope="noise"``.
        epsilons: where to bound δ(ε); finite, at least 0.
        delta: where the search for a score aims, if none is given.
        confidence: of all bands together.
        n_trials: fresh draws per side; up to 20 000 more choose the score.
        score: a function of (n, d) outputs to (n,) numbers; found on tuning draws if absent.
        band: ``"dkw"`` or ``"binomial"``.
        view: ``"black-box"`` or ``"white-box"``; the first claimed view by default.

    Raises:
        TypeError, ValueError: an argument of the wrong type or out of range.
        MechanismError, VacuousAudit: as in an audit.
    """
    points = _validate_epsilons(epsilons)
    validate_confidence(confidence)
    n_trials = validate_count("n_trials", n_trials)
    _validate_band(band)
    if view is not None and view not in (WHITE_BOX, BLACK_BOX):
        msg = f'view must be "black-box" or "white-box", got {view!r}.'
        raise ValueError(msg)
    claim = PrivacyClaim(max(1.0, float(np.median(points))), delta)
    entropy = as_entropy(seed)
    subject = resolve_subject(
        mechanism,
        neighbours,
        scope=scope,
        views=None if view is None else {view},
        n_snapshots=n_snapshots,
        entropy=entropy,
        name=name,
    )
    subject, _ = probe(subject, entropy)
    if subject.clean == "rows":
        msg = (
            f"{subject.name}: draws that share a few random clean outputs are not independent; give clean_batch, or "
            'use scope="noise".'
        )
        raise ValueError(msg)
    looked_at = subject.views[0]
    tasks = block_tasks(subject.sources, entropy, PILOT_PHASE, min(_TUNING, n_trials))
    raw = [(task.raw(), task.trials) for task in tasks]
    layout = fit_layout([(side[looked_at], n) for sides, n in raw for side in sides])
    tuning = [
        np.concatenate([layout.encode(sides[side][looked_at], n) for sides, n in raw]) for side in (0, 1)
    ]
    chosen: Score
    if score is None:
        event = choose_event(
            tuning[0], tuning[1], layout, claim=claim, n_certify=n_trials, alpha=1.0 - confidence
        )
        chosen = event.score
    else:
        (chosen,) = validate_attacks({getattr(score, "__name__", "score"): score})
    thresholds = thresholds_for(chosen(tuning[0]), chosen(tuning[1]))
    scores: tuple[list[FloatArray], list[FloatArray]] = ([], [])
    for task in block_tasks(subject.sources, entropy, FIRST_LOOK_PHASE, n_trials):
        encoded = task.encoded({looked_at: layout})
        for side in (0, 1):
            scores[side].append(chosen(encoded[side][looked_at]))
    return profile_of_scores(
        np.concatenate(scores[0]),
        np.concatenate(scores[1]),
        epsilons=points,
        confidence=confidence,
        band=band,
        thresholds=thresholds,
        score=chosen.name,
        name=subject.name,
        view=looked_at,
    )


def thresholds_for(reference: ArrayLike, canary: ArrayLike) -> FloatArray:
    """(t,) thresholds for the binomial band: quantiles of tuning scores of both sides, pooled."""
    sides = [comparable(np.asarray(scores, dtype=np.float64)) for scores in (reference, canary)]
    return np.unique(np.concatenate([np.quantile(side, _LEVELS, method="inverted_cdf") for side in sides]))


def profile_of_scores(
    reference: ArrayLike,
    canary: ArrayLike,
    *,
    epsilons: Sequence[float] | FloatArray = DEFAULT_EPSILONS,
    confidence: float = 0.95,
    band: Band = "binomial",
    thresholds: ArrayLike | None = None,
    score: str = "",
    name: str = "",
    view: str = "",
) -> PrivacyProfile:
    """The profile of given scores: independent draws of each side, (n,) numbers each; NaN counts as very small.

    Args:
        reference, canary: scores, equally many.
        epsilons, confidence, band: as in :func:`privacy_profile`.
        thresholds: for the binomial band, (t,) values that do not depend on these scores; by default the first
            half of the scores chooses them, and the second half is counted.
        score, name, view: copied into the result.

    Raises:
        ValueError: for fewer than 100 scores, unequal numbers of them, or an argument out of range.
    """
    points = _validate_epsilons(epsilons)
    _validate_band(band)
    validate_confidence(confidence)
    sides = [comparable(np.asarray(scores, dtype=np.float64)) for scores in (reference, canary)]
    if sides[0].ndim != 1 or sides[0].shape != sides[1].shape or len(sides[0]) < 100:
        msg = (
            f"reference and canary must be one-dimensional arrays of equal length, at least 100, got shapes "
            f"{sides[0].shape} and {sides[1].shape}."
        )
        raise ValueError(msg)
    if band == "dkw":
        low, high = _dkw(sides, 1.0 - confidence)
    else:
        if thresholds is None:
            half = len(sides[0]) // 2
            thresholds = thresholds_for(sides[0][:half], sides[1][:half])
            sides = [side[half:] for side in sides]
        low, high = _binomial(sides, np.asarray(thresholds, dtype=np.float64), 1.0 - confidence)
    deltas = np.maximum(_deltas(low[0], high[1], points), _deltas(low[1], high[0], points))
    fpr, fnr = _trade_off(high[0], low[1])
    return PrivacyProfile(
        epsilons=tuple(points.tolist()),
        delta_lower=tuple(deltas.tolist()),
        false_positive_rates=tuple(fpr.tolist()),
        false_negative_rates=tuple(fnr.tolist()),
        confidence=float(confidence),
        trials=len(sides[0]),
        band=band,
        score=score,
        name=name,
        view=view,
    )


def _dkw(sides: list[FloatArray], alpha: float) -> tuple[FloatArray, FloatArray]:
    """(2, e) lower and upper bounds of every half-line's rate on both sides."""
    n = len(sides[0])
    radius = math.sqrt(math.log(4.0 / alpha) / (2.0 * n))
    ordered = [np.sort(side) for side in sides]
    thresholds = np.unique(np.quantile(np.concatenate(ordered), _FINE, method="inverted_cdf"))
    rates = np.stack([_half_lines(np.searchsorted(side, thresholds, side="right") / n) for side in ordered])
    return np.maximum(rates - radius, 0.0), np.minimum(rates + radius, 1.0)


def _binomial(sides: list[FloatArray], thresholds: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray]:
    """The same for fixed thresholds, by Clopper–Pearson bounds at α over the number of all bounds."""
    n = len(sides[0])
    counts = np.stack([np.searchsorted(np.sort(side), thresholds, side="right") for side in sides])
    below = np.concatenate([counts, n - counts], axis=1)
    each = alpha / (4.0 * max(len(thresholds), 1))
    low, high = clopper_pearson_lower(below, n, each), clopper_pearson_upper(below, n, each)
    return np.asarray(low), np.asarray(high)


def _half_lines(at_most: FloatArray) -> FloatArray:
    return np.concatenate([at_most, 1.0 - at_most])


def _deltas(p_lower: FloatArray, q_upper: FloatArray, epsilons: FloatArray) -> FloatArray:
    """(k,) largest p_lower − e^ε q_upper over events, at least 0."""
    useful = p_lower > q_upper
    p, q = p_lower[useful], q_upper[useful]
    if len(p) == 0:
        return np.zeros(len(epsilons))
    return np.array([max(float(np.max(p - math.exp(min(e, 700.0)) * q)), 0.0) for e in epsilons])


def _trade_off(q_upper: FloatArray, p_lower: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Lower convex hull of (q_upper, 1 − p_lower), (0, 1) and (1, 0); a trade-off curve is convex."""
    x = np.concatenate([[0.0, 1.0], q_upper])
    y = np.concatenate([[1.0, 0.0], 1.0 - p_lower])
    order = np.lexsort((y, x))
    hull: list[tuple[float, float]] = []
    for point in zip(x[order].tolist(), y[order].tolist(), strict=True):
        while len(hull) > 1 and _right_turn(hull[-2], hull[-1], point):
            hull.pop()
        if not hull or point[0] > hull[-1][0]:
            hull.append(point)
    found = np.array(hull)
    return found[:, 0], found[:, 1]


def _right_turn(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Whether b lies on or above the line from a to c."""
    return (b[1] - a[1]) * (c[0] - a[0]) >= (c[1] - a[1]) * (b[0] - a[0])


def _validate_epsilons(epsilons: Sequence[float] | FloatArray) -> FloatArray:
    points = np.asarray(epsilons, dtype=np.float64)
    if points.ndim != 1 or len(points) == 0 or not bool(np.all(np.isfinite(points) & (points >= 0.0))):
        msg = f"epsilons must be a sequence of finite numbers of at least 0, got {epsilons!r}."
        raise ValueError(msg)
    return points


def _validate_band(band: Any) -> None:
    if band not in BANDS:
        msg = f"band must be one of {', '.join(map(repr, BANDS))}, got {band!r}."
        raise ValueError(msg)
