"""The families of noise that can be tested for: their cells, their fit, their own sub-tests.

All quantities are standardised by a reference: ``u = (x − location) / scale``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaincc, ndtr, ndtri

if TYPE_CHECKING:
    from pytest_snapaudit.engine.shape_tally import ShapeTally

FloatArray = NDArray[np.float64]

EQUIPROBABLE_CELLS = 100
_TILT = 0.25


class SubTest(NamedTuple):
    """One sub-test of one side: what it looks at, and its p-value."""

    name: str
    p_value: float


@dataclass(frozen=True)
class ShapeReference(ABC):
    """A family of symmetric laws, with a rough location and scale in units of the values.

    Values are standardised as ``u = (x − location) / scale``. The reference must not be computed from the
    values that are tallied with it; how rough it is costs power, never validity.

    Raises:
        ValueError: if location is not finite or scale is not finite and positive.
    """

    location: float
    scale: float

    family: ClassVar[str]
    tail_thresholds: ClassVar[tuple[float, ...]]

    def __post_init__(self) -> None:
        if not math.isfinite(self.location):
            msg = f"{type(self).__name__}: location must be a finite number, got {self.location!r}."
            raise ValueError(msg)
        if not (math.isfinite(self.scale) and self.scale > 0.0):
            msg = f"{type(self).__name__}: scale must be a finite number above 0, got {self.scale!r}."
            raise ValueError(msg)

    @classmethod
    @abstractmethod
    def fitted(cls, values: ArrayLike) -> Self:
        """The reference that fits earlier values."""

    @staticmethod
    @abstractmethod
    def upper_quantiles(tail: FloatArray) -> FloatArray:
        """The standardised law's quantiles at 1 − tail, for tail < 1/2."""

    @staticmethod
    @abstractmethod
    def tail(u: FloatArray) -> FloatArray:
        """P[U > u], accurate for large u."""

    @staticmethod
    @abstractmethod
    def further_sums(u: FloatArray) -> FloatArray:
        """Sums over standardised values that this family's sub-tests need beside the moments."""

    @abstractmethod
    def fit(self, tally: ShapeTally) -> tuple[float, float]:
        """Efficient estimates of location and scale, standardised."""

    @abstractmethod
    def moment_tests(self, tally: ShapeTally, location: float, scale: float) -> list[SubTest]:
        """This family's own sub-tests, given the fitted location and scale."""

    @abstractmethod
    def dispersion(self, tally: ShapeTally) -> tuple[float, float]:
        """A statistic proportional to a χ² variable over its degrees of freedom, and these."""


class GaussianReference(ShapeReference):
    """Normal laws; ``scale`` is the standard deviation."""

    family = "Gaussian"
    tail_thresholds = (3.0, 3.5, 4.0, 4.5, 5.0)

    @classmethod
    def fitted(cls, values: ArrayLike) -> Self:
        """Mean and standard deviation of earlier values."""
        array = np.asarray(values, dtype=np.float64)
        return cls(float(array.mean()), float(array.std()))

    @staticmethod
    def upper_quantiles(tail: FloatArray) -> FloatArray:
        """−Φ⁻¹(tail)."""
        return np.asarray(-ndtri(tail))

    @staticmethod
    def tail(u: FloatArray) -> FloatArray:
        """Φ(−u)."""
        return np.asarray(ndtr(-u))

    @staticmethod
    def further_sums(u: FloatArray) -> FloatArray:
        """None: the moments are enough."""
        return np.zeros(0)

    def fit(self, tally: ShapeTally) -> tuple[float, float]:
        """Mean and standard deviation: the maximum likelihood estimates."""
        return tally.mean, math.sqrt(tally.m2 / tally.n)

    def moment_tests(self, tally: ShapeTally, location: float, scale: float) -> list[SubTest]:
        """Skewness and kurtosis."""
        skewness = _skewness_score(tally.n, tally.m3 / tally.n / scale**3)
        kurtosis = _kurtosis_score(tally.n, tally.m4 / tally.n / scale**4)
        return [SubTest("skewness", _normal_p(skewness)), SubTest("kurtosis", _normal_p(kurtosis))]

    def dispersion(self, tally: ShapeTally) -> tuple[float, float]:
        """The sample variance; exactly χ² with n − 1 degrees of freedom."""
        return tally.sample_variance, tally.n - 1.0


class LaplaceReference(ShapeReference):
    """Laplace laws; ``location`` is the median, ``scale`` the mean absolute deviation b."""

    family = "Laplace"
    tail_thresholds = (5.0, 6.5, 8.0, 9.5, 11.0)

    @classmethod
    def fitted(cls, values: ArrayLike) -> Self:
        """Median, and mean absolute deviation from it, of earlier values."""
        array = np.asarray(values, dtype=np.float64)
        median = float(np.median(array))
        return cls(median, float(np.abs(array - median).mean()))

    @staticmethod
    def upper_quantiles(tail: FloatArray) -> FloatArray:
        """−ln(2·tail)."""
        return np.asarray(-np.log(2.0 * tail))

    @staticmethod
    def tail(u: FloatArray) -> FloatArray:
        """e^{−u}/2 above the median."""
        half = 0.5 * np.exp(-np.abs(u))
        return np.where(u > 0.0, half, 1.0 - half)

    @staticmethod
    def further_sums(u: FloatArray) -> FloatArray:
        """(2,): the sums of abs(u) and of exp(abs(u)/4)."""
        size = np.abs(u)
        return np.array([size.sum(), np.exp(_TILT * size).sum()])

    def fit(self, tally: ShapeTally) -> tuple[float, float]:
        """Median, interpolated in its cell, and the mean absolute deviation from it."""
        location, mean_size = _grouped_median(tally), float(tally.sums[0]) / tally.n
        scale = mean_size
        # E|u| = d + b·exp(−d/b) for a median d away from 0, solved for b by iteration.
        for _ in range(20):
            excess = abs(location) + scale * math.expm1(-abs(location) / scale)
            scale = max(mean_size - excess, 0.1 * mean_size)
        return location, scale

    def moment_tests(self, tally: ShapeTally, location: float, scale: float) -> list[SubTest]:
        """The mean of exp(abs(x − median) / 4b), which heavy tails raise."""
        mean_tilt = float(tally.sums[1]) / tally.n
        p_value = _tail_weight_p(tally.n, mean_tilt, abs(location) / scale, _TILT * scale)
        return [SubTest("tail weight", p_value)]

    def dispersion(self, tally: ShapeTally) -> tuple[float, float]:
        """The estimate of b: a mean of exponential variables, each χ² with two degrees of freedom."""
        return self.scale * self.fit(tally)[1], 2.0 * (tally.n - 1.0)


@cache
def cell_edges(family: type[ShapeReference]) -> FloatArray:
    """(k,) increasing standardised edges: those of equiprobable cells, then the tail thresholds."""
    tails = np.arange(EQUIPROBABLE_CELLS // 2 - 1, 0, -1) / EQUIPROBABLE_CELLS
    upper = np.concatenate([family.upper_quantiles(tails), family.tail_thresholds])
    return np.concatenate([-upper[::-1], [0.0], upper])


def _normal_p(score: float) -> float:
    return 2.0 * float(ndtr(-abs(score)))


def _skewness_score(n: int, skewness: float) -> float:
    """Nearly standard normal (D'Agostino, Biometrika 57, 1970)."""
    y = skewness * math.sqrt((n + 1) * (n + 3) / (6.0 * (n - 2)))
    beta = 3.0 * (n * n + 27 * n - 70) * (n + 1) * (n + 3) / ((n - 2) * (n + 5) * (n + 7) * (n + 9))
    w2 = math.sqrt(2.0 * (beta - 1.0)) - 1.0
    return math.asinh(y / math.sqrt(2.0 / (w2 - 1.0))) / math.sqrt(0.5 * math.log(w2))


def _kurtosis_score(n: int, kurtosis: float) -> float:
    """Nearly standard normal (Anscombe and Glynn, Biometrika 70, 1983)."""
    variance = 24.0 * n * (n - 2) * (n - 3) / ((n + 1) ** 2 * (n + 3) * (n + 5))
    x = (kurtosis - 3.0 * (n - 1) / (n + 1)) / math.sqrt(variance)
    root_beta = 6.0 * (n * n - 5 * n + 2) / ((n + 7) * (n + 9))
    root_beta *= math.sqrt(6.0 * (n + 3) * (n + 5) / (n * (n - 2) * (n - 3)))
    a = 6.0 + 8.0 / root_beta * (2.0 / root_beta + math.sqrt(1.0 + 4.0 / root_beta**2))
    denominator = 1.0 + x * math.sqrt(2.0 / (a - 4.0))
    if denominator <= 0.0:
        return -math.inf
    return ((1.0 - 2.0 / (9.0 * a)) - math.cbrt((1.0 - 2.0 / a) / denominator)) / math.sqrt(2.0 / (9.0 * a))


def _grouped_median(tally: ShapeTally) -> float:
    """Median of u, interpolated within its cell; the mean if it lies in an outermost cell."""
    below = np.cumsum(tally.cells)
    cell = int(np.searchsorted(below, 0.5 * tally.n))
    edges = cell_edges(type(tally.reference))
    if not 0 < cell < len(edges):
        return tally.mean
    share = (0.5 * tally.n - float(below[cell - 1])) / float(tally.cells[cell])
    return float(edges[cell - 1] + share * (edges[cell] - edges[cell - 1]))


def _tail_weight_p(n: int, mean_tilt: float, distance: float, tilt: float) -> float:
    """Test the mean of exp(tilt·|y|), y a Laplace(±distance, 1) variable whose scale was fitted to mean |y|.

    The statistic is what the fitted scale leaves unexplained, the mean of r(E) = exp(tilt·E) − A − B·(E − 1)
    over exponential E. It is skewed upwards: the shifted gamma law of the same three moments bounds it above,
    the normal law below. Without a verdict (p = 1) for a reference that is far off: moments of r are large or
    infinite when its scale is too small.
    """
    if tilt >= 0.3 or distance >= 1.0:
        return 1.0
    rise, fall = 1.0 + tilt, 1.0 - tilt
    within = math.expm1(rise * distance) / rise - math.expm1(-fall * distance) / fall
    expected = 0.5 * math.exp(-distance) * within + math.cosh(distance) * math.exp(-fall * distance) / fall
    variance = _residual_moment(2, tilt)
    score = (mean_tilt - expected) / math.sqrt(variance / n)
    shape = 4.0 * n * variance**3 / _residual_moment(3, tilt) ** 2
    heavier = float(gammaincc(shape, max(shape + score * math.sqrt(shape), 0.0)))
    return min(1.0, 2.0 * min(heavier, float(ndtr(score))))


def _residual_moment(power: int, tilt: float) -> float:
    """E[r(E)^power], r as in :func:`_tail_weight_p`, multiplied out; finite for tilt < 1/power."""
    slope = tilt / (1.0 - tilt) ** 2
    constant = slope - 1.0 / (1.0 - tilt)
    total = 0.0
    for i in range(power + 1):
        for j in range(power + 1 - i):
            ways = math.factorial(power) / math.factorial(i) / math.factorial(power - i - j)
            total += ways * (-slope) ** j * constant ** (power - i - j) / (1.0 - i * tilt) ** (j + 1)
    return total
