"""Which coordinates, pairs of them and values are worth a score of their own, of outputs that have many."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pytest_snapaudit.engine.outcomes import Rows

_ROWS = 2_000
"""Rows per side from which pairs and values are ranked."""

_CELLS = 200_000

_COPYING, _CLEARLY_APART = 16, 6.0
"""Columns whose differences are all looked at, and standard errors that their densities must be apart somewhere."""


def standard_scores(reference: Rows, canary: Rows) -> NDArray[np.float64]:
    """(d,) how many standard errors apart the two sides' column means are."""
    n = len(reference)
    mean = canary.mean(axis=0, dtype=np.float64) - reference.mean(axis=0, dtype=np.float64)
    variance = reference.var(axis=0, dtype=np.float64) + canary.var(axis=0, dtype=np.float64)
    return np.asarray(np.abs(mean) / np.sqrt(variance / n + 1e-300))


def telling_columns(reference: Rows, canary: Rows, varying: NDArray[np.intp], each: int) -> list[int]:
    """Columns that differ most in spread, and in how often they are zero; up to ``each`` of either kind.

    Args:
        reference, canary: (n, d) finite tuning outputs.
        varying: indices of the columns that vary.
    """
    a, b = reference[:_ROWS][:, varying], canary[:_ROWS][:, varying]
    centre = (a.mean(axis=0) + b.mean(axis=0)) / 2
    found: list[int] = []
    spreads, zeros = (
        [np.abs(rows - centre) for rows in (a, b)],
        [(rows == 0).astype(float) for rows in (a, b)],
    )
    for sides in (spreads, zeros):
        scores = standard_scores(*sides)
        order = np.argsort(-scores, kind="stable")[:each]
        found += [int(varying[i]) for i in order if scores[i] > 3.0]
    return list(dict.fromkeys(found))


def related_pairs(
    reference: Rows, canary: Rows, varying: NDArray[np.intp], each: int
) -> list[tuple[int, int]]:
    """Pairs of columns whose ranks correlate most, and those whose correlation differs most between the sides.

    Args:
        reference, canary: (n, d) finite tuning outputs.
        varying: indices of the columns that vary.
        each: pairs of either kind.
    """
    sides = [_correlations(rows[:_ROWS][:, varying]) for rows in (reference, canary)]
    apart = np.abs(np.arctanh(sides[0]) - np.arctanh(sides[1]))
    strong = np.maximum(np.abs(sides[0]), np.abs(sides[1]))
    upper = np.triu_indices(len(varying), 1)
    noise = np.sqrt(2.0 / max(min(len(reference), _ROWS) - 3, 1))
    pairs: list[tuple[int, int]] = []
    for measure, least in ((apart, 4.0 * noise), (strong, 0.5)):
        values = measure[upper]
        for i in np.argsort(-values, kind="stable")[:each]:
            if values[i] > least:
                pairs.append((int(varying[upper[1][i]]), int(varying[upper[0][i]])))
    return list(dict.fromkeys(pairs))


def copying_pairs(
    reference: Rows, canary: Rows, varying: NDArray[np.intp], each: int
) -> list[tuple[int, int]]:
    """Pairs of columns whose difference is near one value clearly more often on one side; of few columns only.

    Args:
        reference, canary: (n, d) finite tuning outputs.
        varying: indices of the columns that vary.
        each: pairs at most.
    """
    if not 2 < len(varying) <= _COPYING:
        return []
    sides = [rows[: 2 * _ROWS][:, varying].astype(np.float64) for rows in (reference, canary)]
    spread = np.median(np.abs(sides[0] - np.median(sides[0], axis=0)), axis=0)
    found: list[tuple[float, int, int]] = []
    for i, j in zip(*np.triu_indices(len(varying), 1), strict=True):
        cell = max(spread[i], spread[j], 1e-300) / 32
        counts = [
            np.bincount(
                np.clip(np.floor((rows[:, j] - rows[:, i]) / cell + 0.5) + 64, 0, 128).astype(np.intp),
                minlength=129,
            )[1:-1]
            for rows in sides
        ]
        apart = float((np.abs(counts[1] - counts[0]) / np.sqrt(counts[0] + counts[1] + 1.0)).max())
        if apart > _CLEARLY_APART:
            found.append((apart, int(varying[j]), int(varying[i])))
    return [(first, second) for _, first, second in sorted(found, reverse=True)[:each]]


def _correlations(rows: Rows) -> NDArray[np.float64]:
    """Correlations of the columns' ranks, which heavy tails do not spoil; within ±0.999999."""
    ranks = np.argsort(np.argsort(rows, axis=0, kind="stable"), axis=0, kind="stable").astype(np.float32)
    ranks -= ranks.mean(axis=0)
    ranks /= np.sqrt(np.einsum("ij,ij->j", ranks, ranks)) + 1e-30
    return np.clip((ranks.T @ ranks).astype(np.float64), -0.999999, 0.999999)


def telling_values(reference: Rows, canary: Rows, most: int) -> list[float]:
    """Values that some coordinate or other takes much more often on one side than on the other."""
    rows = max(min(_CELLS // reference.shape[1], len(reference)), 1)
    sides = [np.sort(side[:rows], axis=None) for side in (reference, canary)]
    pooled = np.sort(np.concatenate(sides), kind="stable")
    values = np.unique(pooled[1:][pooled[1:] == pooled[:-1]])
    counts = [
        np.searchsorted(side, values, side="right") - np.searchsorted(side, values, side="left")
        for side in sides
    ]
    score = np.abs(counts[1] - counts[0]) / np.sqrt(counts[0] + counts[1] + 1.0)
    order = np.argsort(-score, kind="stable")[:most]
    return [float(values[i]) for i in order if score[i] > 2.0 and np.isfinite(values[i])]
