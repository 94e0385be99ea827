"""Coordinates read by what another one says: a key and its value, a cohort and its bits, an index and what is there."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pytest_snapaudit.engine.attacks.scores import MISSING, Score
from pytest_snapaudit.engine.outcomes import Layout, Rows

_FEWEST, _MOST = 3, 256
_CELLS, _CAP = 16, 3.0
_LEAST_ROWS, _ROWS = 1_000, 20_000
_MOST_COLUMNS = 32


@dataclass(frozen=True)
class ByCategory(Score):
    """Sum of log-likelihood ratios of coordinates, each estimated among outputs of one category.

    Attributes:
        column: whose values are the categories.
        categories: (k,) increasing; others score 0.
        columns: the coordinates that are read.
        cuts: cell boundaries of each.
        weights: (k, cells) log-ratios of each, shrunk towards 0 where few trials fell.
    """

    column: int
    categories: NDArray[np.float64]
    columns: tuple[int, ...]
    cuts: tuple[NDArray[np.float64], ...]
    weights: tuple[NDArray[np.float64], ...]
    layout: Layout = field(repr=False)

    def __call__(self, rows: Rows) -> NDArray[np.float64]:
        which, known = _places(self.categories, rows[:, self.column])
        total = np.zeros(len(rows))
        for column, cuts, weights in zip(self.columns, self.cuts, self.weights, strict=True):
            total += weights[which, _cells(cuts, rows[:, column])]
        return np.where(known, total, 0.0)

    @property
    def name(self) -> str:
        read = ", ".join(self.layout.columns[column] for column in self.columns[:3])
        more = ", ..." if len(self.columns) > 3 else ""
        return f"log-likelihood ratio of {read}{more} given {self.layout.columns[self.column]}"


def fit_by_category(
    reference: Rows, canary: Rows, varying: NDArray[np.intp], layout: Layout
) -> list[ByCategory]:
    """The other coordinates given the one with the most values that occur often, if there is one.

    Args:
        reference, canary: (h, d) tuning outputs.
        varying: indices of the columns that vary.
        layout: names of the columns.
    """
    if len(reference) < _LEAST_ROWS or not 1 < len(varying) <= _MOST_COLUMNS:
        return []
    reference, canary = reference[:_ROWS], canary[:_ROWS]
    sizes = [len(np.unique(reference[:_LEAST_ROWS, column])) for column in varying]
    eligible = [
        (size, -int(column)) for size, column in zip(sizes, varying, strict=True) if _FEWEST <= size <= _MOST
    ]
    if not eligible:
        return []
    column = -max(eligible)[1]
    return [_fit(column, reference, canary, [int(j) for j in varying if j != column], layout)]


def refit_by_category(score: ByCategory, reference: Rows, canary: Rows) -> ByCategory:
    """The same columns, on these tuning trials."""
    return _fit(score.column, reference, canary, list(score.columns), score.layout)


def _fit(column: int, reference: Rows, canary: Rows, others: list[int], layout: Layout) -> ByCategory:
    values, counts = np.unique(_comparable(reference[:, column]), return_counts=True)
    categories = np.sort(values[np.argsort(-counts, kind="stable")[:_MOST]])
    places = [_places(categories, rows[:, column]) for rows in (reference, canary)]
    cuts, weights = [], []
    for other in others:
        pooled = np.sort(_comparable(np.concatenate([reference[:, other], canary[:, other]])))
        edges = np.unique(pooled[(np.arange(1, _CELLS) * len(pooled)) // _CELLS])
        cuts.append(edges)
        width = len(edges) + 1
        tables = [
            np.bincount(
                (which * width + _cells(edges, rows[:, other]))[known], minlength=len(categories) * width
            ).reshape(len(categories), width)
            for rows, (which, known) in zip((reference, canary), places, strict=True)
        ]
        prior = 1.0 + 0.02 * np.sqrt(sum(table.sum(axis=1, keepdims=True) for table in tables))
        share = (tables[0].sum(axis=1, keepdims=True) + prior) / (
            tables[1].sum(axis=1, keepdims=True) + prior
        )
        weights.append(np.clip(np.log((tables[1] + prior) / (tables[0] + prior) * share), -_CAP, _CAP))
    return ByCategory(column, categories, tuple(others), tuple(cuts), tuple(weights), layout)


def _comparable(values: NDArray[np.floating]) -> NDArray[np.float64]:
    return np.where(np.isnan(values), MISSING, values).astype(np.float64)


def _places(
    categories: NDArray[np.float64], values: NDArray[np.floating]
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Index of every value among the categories, and whether it is one."""
    comparable = _comparable(values)
    which = np.minimum(np.searchsorted(categories, comparable), len(categories) - 1)
    return which, np.asarray(categories[which] == comparable)


def _cells(cuts: NDArray[np.float64], values: NDArray[np.floating]) -> NDArray[np.intp]:
    return np.searchsorted(cuts, _comparable(values), side="left")
