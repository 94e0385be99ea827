"""Laws of noise on the whole numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pytest_snapaudit.engine.continuous_families import FloatArray, NoiseLaw
from pytest_snapaudit.engine.estimators import gdp_epsilon
from pytest_snapaudit.engine.hockey_stick import epsilon_both_ways

_CONTINUOUS_FROM = 5_000.0
"""Discrete Gaussian scale from which the continuous law stands in for it; they differ by O(1/σ²)."""


@dataclass(frozen=True)
class DiscreteLaplaceLaw(NoiseLaw):
    """P[k] proportional to exp(−|k|/b)."""

    family = "discrete Laplace"
    whole = True
    homogeneous = True

    def log_density(self, z: FloatArray, scale: float) -> FloatArray:
        """−|k|/b."""
        return -np.abs(z) / scale

    def sf(self, z: FloatArray, scale: float) -> FloatArray:
        """r^{k+1} / (1 + r) for k >= 0, r = exp(−1/b)."""
        k = np.floor(z)
        r = math.exp(-1.0 / scale)
        above = np.exp(-(np.where(k >= 0.0, k, -k - 1.0) + 1.0) / scale) / (1.0 + r)
        return np.where(k >= 0.0, above, 1.0 - above)

    def cdf(self, z: FloatArray, scale: float) -> FloatArray:
        """By symmetry."""
        return self.sf(-np.floor(z) - 1.0, scale)

    def quantile(self, p: FloatArray, scale: float) -> FloatArray:
        """Closed form, rounded to whole numbers (by one too far out at ties, which only moves cells)."""
        tail = np.minimum(p, 1.0 - p)
        top = 1.0 / (1.0 + math.exp(-1.0 / scale))
        k = np.maximum(np.ceil(-scale * np.log(tail / top)) - 1.0, 0.0)
        return np.where(p < 0.5, -k, k)

    def largest_loss(self, shift: float, scale: float) -> float:
        """|s|/b."""
        return abs(shift) / scale

    def epsilon(self, shift: float, scale: float, delta: float) -> float:
        """Exact: the loss is constant beyond either clean output, and linear between them."""
        size = round(abs(shift))
        if delta == 0.0 or size == 0:
            return size / scale
        k = np.arange(1.0, size)
        r = math.exp(-1.0 / scale)
        top = -math.expm1(-1.0 / scale) / (1.0 + r)
        outer = np.array([1.0, math.exp(-size / scale)]) / (1.0 + r)
        p = np.concatenate([outer[:1], top * np.exp(-k / scale), outer[1:]])
        return epsilon_both_ways(p, p[::-1], delta)


@dataclass(frozen=True)
class DiscreteGaussianLaw(NoiseLaw):
    """P[k] proportional to exp(−k²/2σ²).

    For a small σ a larger one can be less private: its rarest whole values come to exceed delta one by one (at
    distance 1 and δ = 1e-6, ε is 10.4 for σ = 0.38 and 15.6 for σ = 0.39).
    """

    family = "discrete Gaussian"
    whole = True
    monotone = False

    def log_density(self, z: FloatArray, scale: float) -> FloatArray:
        """−k²/2σ²."""
        return -0.5 * np.square(z / scale)

    def cdf(self, z: FloatArray, scale: float) -> FloatArray:
        """By summation."""
        reach, below = _discrete_gaussian(scale)
        at = np.clip(np.floor(z) + reach + 1.0, 0.0, 2.0 * reach + 1.0).astype(np.intp)
        return np.asarray(np.append(0.0, below)[at])

    def sf(self, z: FloatArray, scale: float) -> FloatArray:
        """By symmetry."""
        return self.cdf(-np.floor(z) - 1.0, scale)

    def quantile(self, p: FloatArray, scale: float) -> FloatArray:
        """By bisection of the sums, from the lower half."""
        reach, below = _discrete_gaussian(scale)
        k = np.searchsorted(below, np.minimum(p, 1.0 - p)) - reach
        return np.where(p < 0.5, k, -k).astype(np.float64)

    def largest_loss(self, shift: float, scale: float) -> float:
        """Unbounded."""
        return math.inf if shift else 0.0

    def epsilon(self, shift: float, scale: float, delta: float) -> float:
        """Exact up to tails below 1e-300; the continuous law's, less a margin, for a scale above 5 000."""
        if shift == 0.0:
            return 0.0
        if delta == 0.0:
            return math.inf
        if scale > _CONTINUOUS_FROM:
            return gdp_epsilon(abs(shift) / scale, delta) * (1.0 - 1e-5)
        size = round(abs(shift))
        reach = math.ceil(38.0 * scale) + 1
        k = np.arange(-reach, reach + size + 1, dtype=np.float64)
        p, q = np.exp(self.log_density(k, scale)), np.exp(self.log_density(k - size, scale))
        return epsilon_both_ways(p / p.sum(), q / q.sum(), delta)


@lru_cache(maxsize=8)
def _discrete_gaussian(scale: float) -> tuple[int, FloatArray]:
    """How far the sums reach, and P[K <= k] for k = −reach, …, reach."""
    reach = math.ceil(38.0 * scale) + 1
    mass = np.exp(-0.5 * np.square(np.arange(-reach, reach + 1) / scale))
    below = np.cumsum(mass)
    return reach, below / below[-1]
