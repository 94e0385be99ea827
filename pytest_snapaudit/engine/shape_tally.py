"""A mergeable summary, of fixed size, of all the draws of one side."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, reduce
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pytest_snapaudit.engine.shape_families import FloatArray, ShapeReference, cell_edges

_BLOCK = 16_384
_LOOKUP_PER_UNIT = 128


@dataclass(frozen=True, eq=False)
class ShapeTally:
    """All that the shape test needs to know of one side's values; of fixed size.

    Attributes:
        reference: what standardised the values to u.
        n: how many finite values were tallied.
        mean: the mean of u.
        m2: the sum of (u − mean)²; likewise ``m3`` and ``m4``.
        cells: (k + 1,) counts of u in the cells between the reference's k edges.
        sums: the family's further sums.
        low: the smallest u, ``inf`` without values.
        high: the largest u, ``-inf`` without values.
        not_finite: how many values were NaN or infinite; they count nowhere else.
    """

    reference: ShapeReference
    n: int
    mean: float
    m2: float
    m3: float
    m4: float
    cells: NDArray[np.int64]
    sums: FloatArray
    low: float
    high: float
    not_finite: int = 0

    @classmethod
    def empty(cls, reference: ShapeReference) -> Self:
        """The tally of no values."""
        cells = np.zeros(len(cell_edges(type(reference))) + 1, dtype=np.int64)
        sums = reference.further_sums(np.zeros(0))
        return cls(reference, 0, 0.0, 0.0, 0.0, 0.0, cells, sums, math.inf, -math.inf)

    @classmethod
    def from_values(cls, x: ArrayLike, reference: ShapeReference) -> Self:
        """Tally values of any shape and any real dtype, in blocks of fixed size."""
        values = np.asarray(x).reshape(-1)
        blocks = (values[start : start + _BLOCK] for start in range(0, len(values), _BLOCK))
        return reduce(cls.merge, (cls._of_block(block, reference) for block in blocks), cls.empty(reference))

    @classmethod
    def _of_block(cls, block: NDArray[np.generic], reference: ShapeReference) -> Self:
        u = (block.astype(np.float64) - reference.location) / reference.scale
        finite = np.isfinite(u)
        not_finite = len(u) - int(np.count_nonzero(finite))
        if not_finite:
            u = u[finite]
        if len(u) == 0:
            return replace(cls.empty(reference), not_finite=not_finite)
        mean = float(u.mean())
        deviation = u - mean
        with np.errstate(over="ignore", invalid="ignore"):
            square = deviation * deviation
            m2, m3, m4 = float(square.sum()), float(square @ deviation), float(square @ square)
            sums = reference.further_sums(u)
        cells, low, high = _cell_counts(u, type(reference)), float(u.min()), float(u.max())
        return cls(reference, len(u), mean, m2, m3, m4, cells, sums, low, high, not_finite)

    def merge(self, other: Self) -> Self:
        """The tally of both tallies' values; associative and commutative up to rounding.

        Raises:
            ValueError: if the references differ, for then the cells differ.

        Source: Pébay, "Formulas for robust, one-pass parallel computation of covariances and arbitrary-order
        statistical moments", Sandia report SAND2008-6212 (2008), equations 2.1 to 2.4.
        """
        if self.reference != other.reference:
            msg = f"tallies merge only with equal references, got {self.reference} and {other.reference}."
            raise ValueError(msg)
        a, b, n = float(self.n), float(other.n), float(self.n + other.n)
        if b == 0.0 or a == 0.0:
            filled, blank = (self, other) if b == 0.0 else (other, self)
            return replace(filled, not_finite=filled.not_finite + blank.not_finite)
        d = other.mean - self.mean
        m2 = self.m2 + other.m2 + d**2 * a * b / n
        m3 = self.m3 + other.m3 + d**3 * a * b * (a - b) / n**2 + 3.0 * d * (a * other.m2 - b * self.m2) / n
        m4 = (
            self.m4
            + other.m4
            + d**4 * a * b * (a * a - a * b + b * b) / n**3
            + 6.0 * d**2 * (a * a * other.m2 + b * b * self.m2) / n**2
            + 4.0 * d * (a * other.m3 - b * self.m3) / n
        )
        return replace(
            self,
            n=self.n + other.n,
            mean=self.mean + d * b / n,
            m2=m2,
            m3=m3,
            m4=m4,
            cells=self.cells + other.cells,
            sums=self.sums + other.sums,
            low=min(self.low, other.low),
            high=max(self.high, other.high),
            not_finite=self.not_finite + other.not_finite,
        )

    def __add__(self, other: Self) -> Self:
        return self.merge(other)

    @property
    def sample_mean(self) -> float:
        """Mean of the values, in their own units."""
        return self.reference.location + self.reference.scale * self.mean

    @property
    def sum_of_squares(self) -> float:
        """Sum of squared deviations of the values from their mean, in their own units squared."""
        return self.reference.scale**2 * self.m2

    @property
    def sample_variance(self) -> float:
        """Unbiased variance of the values, in their own units squared; NaN for fewer than two."""
        return self.sum_of_squares / (self.n - 1) if self.n > 1 else math.nan


@cache
def _cell_lookup(family: type[ShapeReference]) -> tuple[float, NDArray[np.intp], FloatArray]:
    """A fine uniform grid with at most one edge per step: half-width, edges below each step, next edges."""
    edges = cell_edges(family)
    half_width = math.ceil(edges[-1]) + 1
    grid = np.arange(2 * half_width * _LOOKUP_PER_UNIT + 1) / _LOOKUP_PER_UNIT - half_width
    return float(half_width), np.searchsorted(edges, grid, side="right"), np.append(edges, math.inf)


def _cell_counts(u: FloatArray, family: type[ShapeReference]) -> NDArray[np.int64]:
    half_width, first, next_edge = _cell_lookup(family)
    step = ((np.clip(u, -half_width, half_width) + half_width) * _LOOKUP_PER_UNIT).astype(np.intp)
    cell = first[step]
    cell += u >= next_edge[cell]
    return np.bincount(cell, minlength=len(next_edge)).astype(np.int64)
