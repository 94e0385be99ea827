"""What the noise stage adds to known clean outputs: tallied in flat memory, tested against a declared law."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from pytest_snapaudit.engine.families import FloatArray, NoiseLaw
from pytest_snapaudit.engine.outcomes import Rows
from pytest_snapaudit.engine.seeding import BLOCK

_CELLS = np.arange(1, 64) / 64.0
TAILS = (1e-3, 1e-4, 1e-5)
_INSIDE = 0.8
_MOST_PAIRED = 16
_MOST_VALUES, _LEAST_ROWS = 8 * BLOCK, 256
_LATTICE = 1e-6


@dataclass(frozen=True, eq=False)
class ResidualFrame:
    """How draws become residuals, and where these are counted.

    Attributes:
        law: as declared.
        columns: (k,) coordinates in which the clean outputs differ, the largest differences first.
        centres: (2, k) clean outputs there.
        scale: a rough scale of the noise from earlier draws; costs power if wrong, never validity.
        edges: (c,) increasing edges of the cells.
        inside: the half-width of the interval whose count bounds the scale.
    """

    law: NoiseLaw
    columns: NDArray[np.intp]
    centres: FloatArray
    scale: float
    edges: FloatArray
    inside: float

    def tested(self, n: int) -> int:
        """How many of ``n`` draws are tallied: the first ones of a block if they have more than 8 coordinates."""
        per_block = max(_MOST_VALUES // len(self.columns), _LEAST_ROWS)
        return min(-(-n // BLOCK) * per_block, n)

    @property
    def shift(self) -> FloatArray:
        """(k,) difference of the clean outputs, canary minus reference."""
        return np.asarray(self.centres[1] - self.centres[0])

    def residuals(self, rows: Rows, side: int) -> FloatArray:
        """(n, k) differences of draws and clean output."""
        return np.asarray(rows[:, self.columns].astype(np.float64) - self.centres[side])

    def tally(self, residuals: FloatArray) -> ResidualTally:
        """Counts and sums of (n, k) residuals; rows that are not all finite are counted, and left out."""
        finite = np.isfinite(residuals).all(axis=1)
        unfit = len(residuals) - int(np.count_nonzero(finite))
        if unfit:
            residuals = residuals[finite]
        r = residuals.reshape(-1)
        size = np.abs(r)
        cells = np.bincount(np.searchsorted(self.edges, r), minlength=len(self.edges) + 1)
        off = int(np.count_nonzero(np.abs(r - np.rint(r)) > _LATTICE)) if self.law.whole else 0
        signs, products = _pair_sums(residuals, self)
        return ResidualTally(
            frame=self,
            rows=len(residuals),
            cells=cells.astype(np.int64),
            inside=int(np.count_nonzero(size <= self.inside)),
            sum_of_sizes=float(size.sum()),
            low=float(r.min(initial=math.inf)),
            high=float(r.max(initial=-math.inf)),
            unfit=unfit,
            off_lattice=off,
            signs=signs,
            products=products,
        )


@dataclass(frozen=True, eq=False)
class ResidualTally:
    """All that the tests need to know of one side's residuals; of fixed size.

    Attributes:
        frame: where they were counted.
        rows: draws with finite residuals.
        cells: (c + 1,) counts between the frame's edges, all coordinates pooled.
        inside: how many lie within the frame's interval about 0.
        sum_of_sizes: the sum of absolute values.
        low, high: extremes.
        unfit: draws that are not finite.
        off_lattice: for whole-valued laws, how many are not whole.
        signs: (2, m) sums over draws of the sign, and of the sign of size − median size, per coordinate.
        products: (2, m, m) sums of products of these.
    """

    frame: ResidualFrame
    rows: int
    cells: NDArray[np.int64]
    inside: int
    sum_of_sizes: float
    low: float
    high: float
    unfit: int
    off_lattice: int
    signs: FloatArray
    products: FloatArray

    @property
    def values(self) -> int:
        """Residuals counted."""
        return self.rows * len(self.frame.columns)

    def merge(self, other: ResidualTally) -> ResidualTally:
        """The tally of both tallies' draws."""
        return replace(
            self,
            rows=self.rows + other.rows,
            cells=self.cells + other.cells,
            inside=self.inside + other.inside,
            sum_of_sizes=self.sum_of_sizes + other.sum_of_sizes,
            low=min(self.low, other.low),
            high=max(self.high, other.high),
            unfit=self.unfit + other.unfit,
            off_lattice=self.off_lattice + other.off_lattice,
            signs=self.signs + other.signs,
            products=self.products + other.products,
        )


def _pair_sums(residuals: FloatArray, frame: ResidualFrame) -> tuple[FloatArray, FloatArray]:
    m = min(residuals.shape[1], _MOST_PAIRED)
    if m < 2:
        return np.zeros((2, 0)), np.zeros((2, 0, 0))
    first = residuals[:, :m]
    middle = float(frame.edges[len(frame.edges) // 2])
    marks = (np.where(first > middle, 1.0, -1.0), np.where(np.abs(first) > frame.inside, 1.0, -1.0))
    return np.stack([mark.sum(axis=0) for mark in marks]), np.stack([mark.T @ mark for mark in marks])


def within(law: NoiseLaw, half_width: float, scale: float) -> float:
    """P[−h < Z <= h]; decreasing in the scale."""
    ends = np.array([half_width, -half_width])
    above, below = float(law.cdf(ends[:1], scale)[0]), float(law.cdf(ends[1:], scale)[0])
    return above - below


def scale_at(law: NoiseLaw, half_width: float, probability: float, about: float) -> float | None:
    """The scale at which P[|Z| <= half_width] is ``probability``; None if there is none near ``about``."""

    def gap(log_scale: float) -> float:
        return within(law, half_width, math.exp(log_scale)) - probability

    low, high = math.log(about) - 1.0, math.log(about) + 1.0
    for _ in range(40):
        if gap(low) >= 0.0 >= gap(high):
            return math.exp(float(brentq(gap, low, high, xtol=1e-12)))
        low, high = (low - 1.0, high) if gap(low) < 0.0 else (low, high + 1.0)
    return None


def rough_scale(law: NoiseLaw, residuals: FloatArray) -> float | None:
    """A scale from the share of residuals in an interval about 0; None if they have no spread."""
    size = np.abs(residuals.reshape(-1))
    size = size[np.isfinite(size)]
    if len(size) == 0:
        return None
    half_width = _between_values(law, float(np.quantile(size, 0.7)))
    share = float(np.mean(size <= half_width))
    if half_width <= 0.0 or share <= 0.0:
        return None
    return scale_at(law, half_width, min(share, 1.0 - 0.5 / len(size)), law.scale)


def _between_values(law: NoiseLaw, width: float) -> float:
    return math.floor(width) + 0.5 if law.whole else width


def make_frame(law: NoiseLaw, columns: NDArray[np.intp], centres: FloatArray, scale: float) -> ResidualFrame:
    """The frame with cells of nearly equal probability at ``scale``, and cells far out."""
    tails = np.array(TAILS)
    points = law.quantile(np.concatenate([tails, _CELLS, 1.0 - tails]), scale)
    edges = np.unique(np.floor(points) + 0.5 if law.whole else points)
    half_width = float(
        brentq(lambda h: within(law, h, scale) - _INSIDE, 1e-9 * scale, 1e6 * scale, xtol=1e-9 * scale)
    )
    return ResidualFrame(law, columns, centres, scale, edges, _between_values(law, half_width))
