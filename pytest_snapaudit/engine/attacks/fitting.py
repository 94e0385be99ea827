"""Fitting candidate scores on tuning trials."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pytest_snapaudit.engine.attacks.categories import ByCategory, fit_by_category, refit_by_category
from pytest_snapaudit.engine.attacks.event import WIDE, evaluate
from pytest_snapaudit.engine.attacks.lattice import fit_remainders, short_floats
from pytest_snapaudit.engine.attacks.ranking import (
    copying_pairs,
    related_pairs,
    standard_scores,
    telling_columns,
    telling_values,
)
from pytest_snapaudit.engine.attacks.scores import (
    Coordinate,
    Difference,
    Distance,
    LogRatio,
    LowestSetBit,
    MissingPattern,
    NaiveBayes,
    Projection,
    Reduction,
    RowKey,
    Score,
    finite,
)
from pytest_snapaudit.engine.attacks.seen import SeenValues, fit_seen_values, repeats
from pytest_snapaudit.engine.attacks.spreads import fit_directions
from pytest_snapaudit.engine.attacks.structure import FromMedian, Granularity, HowOften, Ratio
from pytest_snapaudit.engine.outcomes import Layout, Rows

SIDE_CHANNELS = ("low-bit", "timing")

DISCRIMINANT = "linear discriminant of the output"
CLIPPED_DISCRIMINANT = "linear discriminant of the clipped output"
CORRELATED_DISCRIMINANT = "linear discriminant of the correlated coordinates of the output"

_COARSE_BINS, _KEY_BINS = 32, 2_048
"""Cells per column in a sum over columns, and for the hash of whole outputs."""

_FEW_ROWS, _FEW_VALUES = 200, 8
_KEYED_ROWS = 20_000
"""Rows of which at least half repeat others where the whole output is worth a table of its own."""

_TAIL_QUANTILES = (0.0005, 0.002, 0.998, 0.9995)
_MAX_NAIVE_BAYES_COLUMNS = 64
_WIDE_SAMPLE = 2_000
_TOP_COLUMNS = 6
_TELLING_COLUMNS = 3
_MAX_DIFFERENCES = 4
_PAIRED = 128
"""More columns than this are not compared pair by pair."""

_MAX_CORRELATED = 256
"""More columns than this are discriminated as if they were independent."""


_DISCRIMINANTS = (DISCRIMINANT, CLIPPED_DISCRIMINANT, CORRELATED_DISCRIMINANT)


def fit_log_ratio(
    base: Score, reference: Rows, canary: Rows, *, bins: int = 64, cap: float = 6.0
) -> LogRatio | None:
    """Histogram log-ratio of a score: heavy atoms get cells of their own, sparse cells shrink towards 0.

    Returns None when the score is constant.
    """
    a, b = evaluate(base, reference), evaluate(base, canary)
    pooled = np.sort(np.concatenate([a, b]))
    starts = np.flatnonzero(np.concatenate([[True], pooled[1:] != pooled[:-1]]))
    values = pooled[starts]
    if len(values) == 1:
        return None
    if len(values) <= 4 * bins:
        cuts = values
    else:
        counts = np.diff(np.append(starts, len(pooled)))
        atoms = values[counts > max(20, len(pooled) / (4 * bins))][:bins]
        levels = np.concatenate([_TAIL_QUANTILES, np.linspace(0.0, 1.0, bins + 1)[1:-1]])
        quantiles = pooled[np.minimum((levels * len(pooled)).astype(int), len(pooled) - 1)]
        cuts = np.unique(np.concatenate([quantiles, atoms, np.nextafter(atoms, -np.inf)]))
    seen = [
        np.bincount(np.searchsorted(cuts, side, side="left"), minlength=len(cuts) + 1).astype(float)
        for side in (a, b)
    ]
    prior = 1.0 + 0.02 * np.sqrt(len(a) + len(b))
    weights = np.log((seen[1] + prior) / (seen[0] + prior) * (len(a) / len(b)))
    return LogRatio(base, cuts, np.clip(weights, -cap, cap), bins)


def _subsample(rows: Rows) -> Rows:
    """Rows for order statistics: all of them, but at most 2 000 of wide outputs."""
    return rows[:_WIDE_SAMPLE] if rows.shape[1] > WIDE else rows


def _moments(rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(d,) means and variances, without a copy of the rows."""
    mean = rows.mean(axis=0, dtype=np.float64)
    square = np.einsum("ij,ij->j", rows, rows, dtype=np.float64) / len(rows)
    if rows.shape[1] > WIDE:
        return mean, np.maximum(square - mean**2, 0.0)
    return mean, rows.var(axis=0, dtype=np.float64)


def _discriminants(reference: Rows, canary: Rows) -> list[Score]:
    """Linear discriminants on outputs clipped to their central 99.8 %; full covariance in few dimensions."""
    d = reference.shape[1]
    pooled = np.concatenate([_subsample(reference), _subsample(canary)])
    lower, upper = np.quantile(pooled, [0.001, 0.999], axis=0)
    a = np.clip(reference, lower.astype(reference.dtype), upper.astype(reference.dtype))
    b = np.clip(canary, lower.astype(canary.dtype), upper.astype(canary.dtype))
    (mean_a, variance_a), (mean_b, variance_b) = _moments(a), _moments(b)
    shift, variance = mean_b - mean_a, variance_a + variance_b
    floor = 1e-9 * variance.sum() / d + 1e-300
    weights = shift / (variance + floor)
    found: list[Score] = []
    if d <= WIDE:
        weights = _decorrelated(a, b, shift, floor, weights)
    elif d <= _MAX_CORRELATED and len(a) >= 2 * d:
        rows = _WIDE_SAMPLE + 8 * d
        ridge = floor + variance.mean() * d / min(rows, len(a))
        correlated = _decorrelated(a[:rows], b[:rows], shift, ridge, weights)
        found.append(Projection(correlated, CORRELATED_DISCRIMINANT, lower, upper))
    if not np.isfinite(weights).all() or not weights.any():
        return []
    return [
        Projection(weights, CLIPPED_DISCRIMINANT, lower, upper),
        Projection(weights, DISCRIMINANT),
        *found,
    ]


def _decorrelated(
    a: Rows, b: Rows, shift: NDArray[np.float64], ridge: float, independent: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(d,) weights that take correlations into account; ``independent`` where they cannot be computed."""
    covariance = np.atleast_2d(np.cov(a.T) + np.cov(b.T)) + ridge * np.eye(a.shape[1])
    if not np.isfinite(covariance).all():
        return independent
    try:
        weights = np.linalg.lstsq(covariance, shift, rcond=None)[0]
    except np.linalg.LinAlgError:
        return independent
    return np.asarray(weights, dtype=np.float64) if np.isfinite(weights).all() else independent


def refit(score: Score, reference: Rows, canary: Rows) -> Score:
    """The same kind of score, its parameters fitted on these tuning trials; others are returned as they are."""
    if isinstance(score, LogRatio):
        cap = 6.0 if score.bins > _COARSE_BINS else 3.0
        return fit_log_ratio(score.base, reference, canary, bins=score.bins, cap=cap) or score
    if isinstance(score, ByCategory):
        return refit_by_category(score, reference, canary)
    if isinstance(score, SeenValues):
        return fit_seen_values(score.base, reference, canary)
    if isinstance(score, NaiveBayes):
        ratios = [refit(ratio, reference, canary) for ratio in score.ratios]
        return NaiveBayes(tuple(ratio for ratio in ratios if isinstance(ratio, LogRatio)))
    if isinstance(score, Projection) and score.label in _DISCRIMINANTS:
        fitted = _discriminants(finite(reference), finite(canary))
        return next((new for new in fitted if new.name == score.name), score)
    return score


def candidate_scores(
    reference: Rows,
    canary: Rows,
    layout: Layout,
    *,
    direction: NDArray[np.float64] | None = None,
    side_channels: Sequence[str] = (),
    extra: Sequence[Score] = (),
) -> list[Score]:
    """Every score worth trying on these tuning trials.

    Args:
        reference, canary: (h, d) tuning outputs per side.
        layout: names of the columns.
        direction: (d,) difference of the clean outputs, if there is one.
        side_channels: ``"low-bit"`` and ``"timing"``, opt-in.
        extra: scores supplied by the user.
    """
    scores: list[Score] = list(extra)
    a, b = finite(reference), finite(canary)
    varying = np.flatnonzero(_varies(reference, canary))
    if direction is not None and len(direction) == reference.shape[1] and direction.any():
        scores.append(Projection(direction, "projection on the difference of the clean outputs"))
    if len(varying) == 0:
        return [*scores, *(Coordinate(j, layout) for j in range(min(1, reference.shape[1])))]
    (mean_a, variance_a), (mean_b, variance_b) = _moments(a), _moments(b)
    spread = np.maximum((np.sqrt(variance_a) + np.sqrt(variance_b)) / 2, 1e-12)
    gap = np.abs(mean_a - mean_b) / spread
    ranked = varying[np.argsort(-gap[varying], kind="stable")]
    top = ranked[:_TOP_COLUMNS]
    telling = telling_columns(a, b, varying, _TELLING_COLUMNS) if len(varying) > _TOP_COLUMNS else []
    columns = [Coordinate(j, layout) for j in dict.fromkeys([*map(int, top), *telling])]
    scores += columns
    ratios = _present([fit_log_ratio(column, reference, canary) for column in columns])
    scores += [
        ratio for ratio in ratios if len(ratio.cuts) > 2
    ]  # of two values, the column itself says as much
    centre = np.median(np.concatenate([_subsample(a), _subsample(b)])[:, varying], axis=0)
    scores += _shape_scores(reference, canary, varying, centre, spread[varying])
    missing = tuple(int(j) for j in np.flatnonzero(np.isnan(reference).any(0) | np.isnan(canary).any(0)))[:50]
    if missing:
        scores.append(MissingPattern(missing, layout))
    scores += _granularities(columns[:3], reference, canary)
    for j in varying[:WIDE]:
        scores += fit_remainders(int(j), layout, reference, canary)
    if not any(short_floats(a[:_FEW_ROWS, j]) for j in varying):  # whose repeats come from their spacing
        scores += _seen_values(RowKey() if len(varying) > 1 else columns[0], reference, canary)
    if len(varying) > 1:
        scores += _joint_scores(reference, canary, a, b, ranked, layout)
        if len(ratios) < len(varying):
            scores += _sum_of_ratios(columns, reference, canary)
    if 1 < len(varying) <= _PAIRED:
        scores += _relations(reference, canary, a, b, varying, layout)
        scores += fit_directions(a, b, varying)
        scores += fit_by_category(reference, canary, varying, layout)
    if "low-bit" in side_channels:
        scores += [LowestSetBit(int(j), layout, w) for j in top for w in (np.inf, 1.0, 0.25)]
    return scores


def _present(ratios: list[LogRatio | None]) -> list[LogRatio]:
    return [ratio for ratio in ratios if ratio is not None]


def _varies(reference: Rows, canary: Rows) -> NDArray[np.bool_]:
    first = reference[:1]
    differs = (reference != first).any(axis=0) | (canary != first).any(axis=0)
    return np.asarray(differs & ~(np.isnan(reference).all(axis=0) & np.isnan(canary).all(axis=0)))


def _shape_scores(
    reference: Rows,
    canary: Rows,
    varying: NDArray[np.intp],
    centre: NDArray[np.float64],
    spread: NDArray[np.float64],
) -> list[Score]:
    d = reference.shape[1]
    full_centre, full_spread = np.zeros(d), np.full(d, np.inf)
    full_centre[varying], full_spread[varying] = centre, spread
    return (
        [Distance(full_centre, full_spread), Reduction("norm")]
        if d > 1
        else [Distance(full_centre, full_spread)]
    )


def _granularities(columns: list[Coordinate], reference: Rows, canary: Rows) -> list[Score]:
    """Divisibility of columns of which some values are coarse and others are not, or not equally."""
    scores = [
        Granularity(column.column, column.layout)
        for column in columns
        if _takes_many_values(reference, column.column)
    ]
    return [
        score
        for score in scores
        if len({*score(reference[:_WIDE_SAMPLE]), *score(canary[:_WIDE_SAMPLE])}) > 1
    ]


def _seen_values(base: Score, reference: Rows, canary: Rows) -> list[Score]:
    """Every value by itself, where there are more of them than cells of a histogram, and some occur again."""
    cells = 4 * (_KEY_BINS if isinstance(base, RowKey) else 64)
    if not any(repeats(base, rows[:_KEYED_ROWS]) for rows in (reference, canary)):
        return []
    seen = fit_seen_values(base, reference, canary)
    return [seen] if len(seen.values) > cells else []


def _takes_many_values(rows: Rows, column: int) -> bool:
    """Whether a column has more values than thresholds on it, and on differences, tell apart anyway."""
    return len(np.unique(rows[:_FEW_ROWS, column])) > _FEW_VALUES


def _sum_of_ratios(columns: Sequence[Coordinate], reference: Rows, canary: Rows) -> list[Score]:
    ratios = _present(
        [fit_log_ratio(column, reference, canary, bins=_COARSE_BINS, cap=3.0) for column in columns]
    )
    return [NaiveBayes(tuple(ratios))] if len(ratios) > 1 else []


def _joint_scores(
    reference: Rows,
    canary: Rows,
    a: Rows,
    b: Rows,
    ranked: NDArray[np.intp],
    layout: Layout,
) -> list[Score]:
    """Scores of all coordinates together; ``ranked`` are the varying columns, those furthest apart first."""
    scores: list[Score] = [
        Reduction("sum"),
        Reduction("largest coordinate"),
        Reduction("smallest coordinate"),
    ]
    head = np.concatenate([a[:_WIDE_SAMPLE], b[:_WIDE_SAMPLE]])
    if len(ranked) > 2:
        scores.append(Reduction("number of positive coordinates"))
        if (head == 0).any():
            scores.append(Reduction("number of non-zero coordinates"))
        if Reduction("number of repeated values")(head).any():
            scores.append(Reduction("number of repeated values"))
    scores += [HowOften(value) for value in telling_values(reference, canary, 3)]
    scores += _discriminants(a, b)
    most = _MAX_NAIVE_BAYES_COLUMNS if len(ranked) <= _PAIRED else _MAX_NAIVE_BAYES_COLUMNS // 4
    columns = [Coordinate(int(j), layout) for j in sorted(ranked[:most])]
    scores += _sum_of_ratios(columns, reference, canary)
    key = RowKey()
    keys = key(reference[:_KEYED_ROWS])
    if len(np.unique(keys)) < len(keys) / 2:
        scores.append(key)
        scores += _present([fit_log_ratio(key, reference, canary, bins=_KEY_BINS)])
    return scores


def _relations(
    reference: Rows, canary: Rows, a: Rows, b: Rows, varying: NDArray[np.intp], layout: Layout
) -> list[Score]:
    """Scores of coordinates relative to others."""
    pairs = list(dict.fromkeys([*copying_pairs(a, b, varying, 2), *related_pairs(a, b, varying, 4)]))
    scores: list[Score] = [Ratio(i, j, layout) for i, j in pairs if _takes_many_values(reference, i)]
    if len(varying) <= _MAX_DIFFERENCES:
        pairs = list(dict.fromkeys([*((int(i), int(j)) for i in varying for j in varying if j < i), *pairs]))
    differences = [Difference(i, j, layout) for i, j in pairs]
    scores += differences
    scores += _present([fit_log_ratio(difference, reference, canary) for difference in differences])
    if len(varying) > 2:
        medians = [np.median(rows[:_WIDE_SAMPLE], axis=1, keepdims=True) for rows in (a, b)]
        apart = standard_scores(a[:_WIDE_SAMPLE] - medians[0], b[:_WIDE_SAMPLE] - medians[1])[varying]
        best = varying[np.argsort(-apart, kind="stable")[:2]]
        scores += [FromMedian(int(j), layout) for j in best if _takes_many_values(reference, int(j))]
    return scores
