"""Scores of how coordinates relate to each other and to grids: what a threshold on one coordinate cannot see."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pytest_snapaudit.engine.attacks.scores import Score, finite
from pytest_snapaudit.engine.outcomes import Layout, Rows

FINEST, COARSEST = -4, 20
"""Exponents of the finest and the coarsest step that :class:`Granularity` tells apart."""

_LARGEST = 2.0**32


@dataclass(frozen=True)
class Granularity(Score):
    """The largest power of two, from 1/16 to 2**20, of which a coordinate is a multiple: integers, even numbers.

    Far coarser than the last bits of a float, which are a side channel and stay opt-in: a double below 2**32 in
    size is a multiple of 1/16 by chance in one case of 2**16 at most.
    """

    column: int
    layout: Layout = field(repr=False)

    def __call__(self, rows: Rows) -> NDArray[np.float64]:
        values = rows[:, self.column].astype(np.float64)
        usable = np.isfinite(values) & (np.abs(values) < _LARGEST) & (values != 0)
        steps = np.where(usable, values, 0.0) * 2.0**-FINEST
        whole = usable & (steps == np.floor(steps))
        units = np.where(whole, np.abs(steps), 1.0).astype(np.int64)
        exponent = np.log2((units & -units).astype(np.float64)) + FINEST
        return np.where(whole, np.minimum(exponent, COARSEST), np.where(values == 0, COARSEST, FINEST - 1.0))

    @property
    def name(self) -> str:
        return f"exponent of the largest power of two that divides {self.layout.columns[self.column]}"


@dataclass(frozen=True)
class Ratio(Score):
    """Quotient of two coordinates."""

    first: int
    second: int
    layout: Layout = field(repr=False)

    def __call__(self, rows: Rows) -> NDArray[np.float64]:
        with np.errstate(all="ignore"):
            return (rows[:, self.first] / rows[:, self.second]).astype(np.float64, copy=False)

    @property
    def name(self) -> str:
        return f"{self.layout.columns[self.first]} over {self.layout.columns[self.second]}"


@dataclass(frozen=True)
class FromMedian(Score):
    """A coordinate less the median of the output, which noise common to all coordinates leaves alone."""

    column: int
    layout: Layout = field(repr=False)

    def __call__(self, rows: Rows) -> NDArray[np.float64]:
        values = finite(rows)
        centred = values[:, self.column] - np.median(values, axis=1)
        return np.asarray(centred, dtype=np.float64)

    @property
    def name(self) -> str:
        return f"{self.layout.columns[self.column]} minus the median of the output"


@dataclass(frozen=True)
class HowOften(Score):
    """How many coordinates have one value, wherever they stand."""

    value: float

    def __call__(self, rows: Rows) -> NDArray[np.float64]:
        return np.asarray(np.count_nonzero(rows == self.value, axis=1), dtype=np.float64)

    @property
    def name(self) -> str:
        return f"number of coordinates equal to {self.value:.6g}"
