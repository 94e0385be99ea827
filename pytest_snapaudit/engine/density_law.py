"""The law of a density that a user declares, tabulated once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicHermiteSpline

from pytest_snapaudit.engine.continuous_families import FloatArray, NoiseLaw
from pytest_snapaudit.engine.noise import DensityNoise, LogDensity

_HALF_WIDTH, _POINTS = 38.0, 2**16 + 1
_TOLERANCE = 2e-3


@dataclass(frozen=True)
class _Table:
    """Points, the probability below and above each, and its cubic interpolants in arsinh(z).

    The trapezoidal rule in arsinh(z) is spectrally accurate for a smooth density, and of second order at kinks.
    """

    points: FloatArray
    below: FloatArray
    above: FloatArray
    below_at: CubicHermiteSpline
    above_at: CubicHermiteSpline


@dataclass(frozen=True)
class DensityLaw(NoiseLaw):
    """A declared density; with ``free_scale`` it is the density of noise / scale."""

    logpdf: LogDensity
    given_cdf: LogDensity | None
    free_scale: bool
    label: str
    table: _Table = field(compare=False, repr=False)

    family = "user density"
    monotone = False

    @property
    def name(self) -> str:
        """As declared."""
        return self.label

    @property
    def scaled(self) -> bool:
        """Whether a scale was declared."""
        return self.free_scale

    def log_density(self, z: FloatArray, scale: float) -> FloatArray:
        """As declared."""
        u = np.asarray(z / scale, dtype=np.float64)
        return np.asarray(self.logpdf(u.reshape(-1)), dtype=np.float64).reshape(u.shape)

    def cdf(self, z: FloatArray, scale: float) -> FloatArray:
        """As declared, or integrated."""
        if self.given_cdf is not None:
            return np.clip(np.asarray(self.given_cdf(np.asarray(z / scale)), dtype=np.float64), 0.0, 1.0)
        return np.clip(self.table.below_at(_arsinh(z / scale)), 0.0, 1.0)

    def sf(self, z: FloatArray, scale: float) -> FloatArray:
        """The complement of a declared cdf, or integrated from above."""
        if self.given_cdf is not None:
            return 1.0 - self.cdf(z, scale)
        return np.clip(self.table.above_at(_arsinh(z / scale)), 0.0, 1.0)

    def quantile(self, p: FloatArray, scale: float) -> FloatArray:
        """From the table."""
        low, high = np.searchsorted(self.table.below, p), np.searchsorted(-self.table.above, p - 1.0)
        at = np.where(p < 0.5, low, high)
        return np.asarray(self.table.points[np.minimum(at, len(self.table.points) - 1)] * scale)

    def largest_loss(self, shift: float, scale: float) -> float:
        """The largest loss over events of probability above 1e-13 or so; a lower bound of the supremum."""
        return self.epsilon(shift, scale, 0.0)


def _arsinh(z: FloatArray) -> FloatArray:
    return np.clip(np.arcsinh(z), -_HALF_WIDTH, _HALF_WIDTH)


def density_law(noise: DensityNoise) -> DensityLaw:
    """The law of a declared density.

    Raises:
        ValueError: if ``logpdf`` is not finite or −inf somewhere, does not integrate to 1, or disagrees with
            ``cdf``.
    """
    try:
        return _cached(noise)
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
        return _tabulated(noise)


@lru_cache(maxsize=32)
def _cached(noise: DensityNoise) -> DensityLaw:
    return _tabulated(noise)


def _tabulated(noise: DensityNoise) -> DensityLaw:
    u = np.linspace(-_HALF_WIDTH, _HALF_WIDTH, _POINTS)
    points = np.sinh(u)
    with np.errstate(all="ignore"):
        log_f = np.asarray(noise.logpdf(points), dtype=np.float64)
    bad = np.isnan(log_f) | (log_f == np.inf)
    if log_f.shape != points.shape or bad.any():
        at = points[bad][:1] if log_f.shape == points.shape else log_f.shape
        msg = f"{noise!r}: logpdf must be a number or -inf at every point, got NaN or inf at {at}."
        raise ValueError(msg)
    density = np.exp(np.minimum(log_f, 700.0)) * np.cosh(u) * (u[1] - u[0])
    cells = 0.5 * (density[1:] + density[:-1])
    total = float(cells.sum())
    if not abs(total - 1.0) <= _TOLERANCE:
        msg = (
            f"{noise!r}: exp(logpdf) must integrate to 1, got {total:.6g}; normalise it, or declare a scale if it is "
            "far from unit size."
        )
        raise ValueError(msg)
    below = np.append(0.0, np.cumsum(cells)) / total
    above = np.append(np.cumsum(cells[::-1])[::-1], 0.0) / total
    _check_cdf(noise, points, below)
    scale = noise.scale if noise.scale is not None else 1.0
    slope = density / (u[1] - u[0]) / total
    above_at = CubicHermiteSpline(u, above, -slope)
    table = _Table(points, below, above, CubicHermiteSpline(u, below, slope), above_at)
    return DensityLaw(scale, noise.logpdf, noise.cdf, noise.scale is not None, noise.name, table)


def _check_cdf(noise: DensityNoise, points: NDArray[np.float64], below: NDArray[np.float64]) -> None:
    if noise.cdf is None:
        return
    given = np.asarray(noise.cdf(points), dtype=np.float64)
    gap = np.abs(given - below)
    worst = int(np.argmax(np.where(np.isnan(gap), math.inf, gap)))
    if not gap[worst] <= 2 * _TOLERANCE:
        msg = (
            f"{noise!r}: cdf must be the integral of exp(logpdf), but at {points[worst]:.6g} it is "
            f"{given[worst]:.6g} and the integral {below[worst]:.6g}."
        )
        raise ValueError(msg)
