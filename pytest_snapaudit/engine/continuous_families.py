"""Laws of noise on the real line: densities, quantiles, and the exact privacy loss of a law against its shift.

A law is shifted by the difference of two clean outputs; ``epsilon`` is the larger of the two directions. All but
a user's density without a scale are scale families: ``scale`` is always an argument, in units of the clean
output, so that a certificate can ask for the loss at a bound of the scale.

For log-concave densities, and for the discrete Laplace law, a larger scale (a smaller shift) is never less private
(their tests of largest power are half-lines; Dong, Roth and Su, "Gaussian differential privacy", JRSS B 84, 2022,
Proposition A.3; a discrete Laplace law is one of smaller scale with independent noise added). ``monotone`` says so.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from pytest_snapaudit.engine.hockey_stick import epsilon_both_ways

FloatArray = NDArray[np.float64]

_ROUNDING = 1e-15
_MOST_STEPS = 5_000
_LEAST_TAIL = 1e-13
_GRID = 1.0 / (1.0 + np.exp(-np.linspace(math.log(_LEAST_TAIL), -math.log(_LEAST_TAIL), 1_501)))


@dataclass(frozen=True)
class NoiseLaw(ABC):
    """A law of noise with its declared scale.

    Class attributes:
        family: in words.
        whole: whether the noise takes whole values only.
        monotone: whether a larger scale is known never to be less private.
        homogeneous: whether the privacy loss at another scale is a multiple of that at this one.
    """

    scale: float

    family: ClassVar[str]
    whole: ClassVar[bool] = False
    monotone: ClassVar[bool] = True
    homogeneous: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The family, for reports."""
        return self.family

    @property
    def scaled(self) -> bool:
        """Whether the scale is a parameter, to be estimated; otherwise the law is taken as it stands."""
        return True

    @property
    def lowest(self) -> float:
        """The left end of the support."""
        return -math.inf

    @abstractmethod
    def log_density(self, z: FloatArray, scale: float) -> FloatArray:
        """Log density (log probability for whole values), up to a constant that depends on the scale only."""

    @abstractmethod
    def cdf(self, z: FloatArray, scale: float) -> FloatArray:
        """P[Z <= z], accurate for small values."""

    @abstractmethod
    def sf(self, z: FloatArray, scale: float) -> FloatArray:
        """P[Z > z], accurate for small values."""

    @abstractmethod
    def quantile(self, p: FloatArray, scale: float) -> FloatArray:
        """Roughly the smallest z with P[Z <= z] >= p, for p in (0, 1); it places cells, so it need not be exact."""

    @abstractmethod
    def largest_loss(self, shift: float, scale: float) -> float:
        """Exact ε at δ = 0 of the law against its shift: the largest absolute privacy loss."""

    def between(self, edges: FloatArray, scale: float, *, shift: float = 0.0) -> FloatArray:
        """(k + 1,) probabilities of the cells that (k,) increasing ``edges`` make of the shifted law."""
        below, above = self.cdf(edges - shift, scale), self.sf(edges - shift, scale)
        left = np.diff(np.concatenate([[0.0], below, [1.0]]))
        right = -np.diff(np.concatenate([[1.0], above, [0.0]]))
        return np.maximum(np.where(np.append(below, 1.0) < 0.5, left, right), 0.0)

    def epsilon(self, shift: float, scale: float, delta: float) -> float:
        """Exact ε at ``delta`` of the law against its shift; never above it where it is approximated.

        By default on a partition into fine cells, which is post-processing and so only loses.
        """
        if shift == 0.0:
            return 0.0
        points = self.quantile(_GRID, scale)
        edges = np.unique(np.concatenate([points, points + shift]))
        p, q = self.between(edges, scale), self.between(edges, scale, shift=shift)
        return epsilon_both_ways(p, q, delta, _ROUNDING)


@dataclass(frozen=True)
class LaplaceLaw(NoiseLaw):
    """Density exp(−|z|/b) / 2b."""

    family = "Laplace"
    homogeneous = True

    def log_density(self, z: FloatArray, scale: float) -> FloatArray:
        """−|z|/b."""
        return -np.abs(z) / scale

    def cdf(self, z: FloatArray, scale: float) -> FloatArray:
        """exp(z/b)/2 below 0."""
        half = 0.5 * np.exp(-np.abs(z) / scale)
        return np.where(z < 0.0, half, 1.0 - half)

    def sf(self, z: FloatArray, scale: float) -> FloatArray:
        """exp(−z/b)/2 above 0."""
        return self.cdf(-z, scale)

    def quantile(self, p: FloatArray, scale: float) -> FloatArray:
        """Closed form."""
        return np.where(p < 0.5, np.log(2.0 * p), -np.log(2.0 * (1.0 - p))) * scale

    def largest_loss(self, shift: float, scale: float) -> float:
        """|s|/b."""
        return abs(shift) / scale

    def epsilon(self, shift: float, scale: float, delta: float) -> float:
        """|s|/b + 2 ln(1 − δ), since δ(ε) = 1 − exp((ε − |s|/b)/2) for 0 <= ε <= |s|/b."""
        return max(abs(shift) / scale + 2.0 * math.log1p(-min(delta, 1.0 - 1e-16)), 0.0)


@dataclass(frozen=True)
class GumbelLaw(NoiseLaw):
    """P[Z <= z] = exp(−exp(−z/b))."""

    family = "Gumbel"

    def log_density(self, z: FloatArray, scale: float) -> FloatArray:
        """−u − exp(−u), u = z/b."""
        u = z / scale
        return -u - np.exp(np.minimum(-u, 700.0))

    def cdf(self, z: FloatArray, scale: float) -> FloatArray:
        """exp(−exp(−z/b))."""
        return np.exp(-np.exp(np.minimum(-z / scale, 700.0)))

    def sf(self, z: FloatArray, scale: float) -> FloatArray:
        """1 − exp(−exp(−z/b)), without cancellation."""
        return -np.expm1(-np.exp(np.minimum(-z / scale, 700.0)))

    def quantile(self, p: FloatArray, scale: float) -> FloatArray:
        """−b ln(−ln p)."""
        return -scale * np.log(-np.log(p))

    def largest_loss(self, shift: float, scale: float) -> float:
        """Unbounded."""
        return math.inf if shift else 0.0

    def epsilon(self, shift: float, scale: float, delta: float) -> float:
        """The direction of unbounded loss in closed form, the other one (bounded by |s|/b) by cells.

        With a = |s|/b, ``δ(ε) = (1 − e^{−a}) exp(−(ε + a) / (e^a − 1))``.
        """
        if shift == 0.0:
            return 0.0
        if delta == 0.0:
            return math.inf
        a = min(abs(shift) / scale, 500.0)
        first = math.expm1(a) * (math.log(-math.expm1(-a)) - math.log(delta)) - a
        return first if first >= a else max(first, super().epsilon(shift, scale, delta))


@dataclass(frozen=True)
class ExponentialLaw(NoiseLaw):
    """Density exp(−z/b)/b for z >= 0."""

    family = "exponential"

    @property
    def lowest(self) -> float:
        """0."""
        return 0.0

    def log_density(self, z: FloatArray, scale: float) -> FloatArray:
        """−z/b on the support."""
        return np.where(z < 0.0, -np.inf, -z / scale)

    def cdf(self, z: FloatArray, scale: float) -> FloatArray:
        """1 − exp(−z/b), without cancellation."""
        return -np.expm1(-np.maximum(z, 0.0) / scale)

    def sf(self, z: FloatArray, scale: float) -> FloatArray:
        """exp(−z/b)."""
        return np.exp(-np.maximum(z, 0.0) / scale)

    def quantile(self, p: FloatArray, scale: float) -> FloatArray:
        """−b ln(1 − p)."""
        return -scale * np.log1p(-p)

    def largest_loss(self, shift: float, scale: float) -> float:
        """Infinite: an output below one clean output rules it out."""
        return math.inf if shift else 0.0

    def epsilon(self, shift: float, scale: float, delta: float) -> float:
        """``inf`` below δ = 1 − exp(−|s|/b), the probability of ruling the other side out; else 0."""
        return math.inf if delta < -math.expm1(-abs(shift) / scale) else 0.0


@dataclass(frozen=True)
class StaircaseLaw(NoiseLaw):
    """The staircase law; its scale is the width of a step. Not log-concave."""

    step: float
    gamma: float

    family = "staircase"
    monotone = False

    @property
    def _unit(self) -> float:
        """Density of the top, in units of 1/width."""
        rest = math.exp(-self.step)
        return -math.expm1(-self.step) / (2.0 * (self.gamma + rest * (1.0 - self.gamma)))

    def _stairs(self, z: FloatArray, scale: float) -> FloatArray:
        size = np.abs(z) / scale
        below = np.floor(size)
        return below + (size - below >= self.gamma)

    def log_density(self, z: FloatArray, scale: float) -> FloatArray:
        """−ε for every step between 0 and z."""
        return -self.step * self._stairs(z, scale)

    def cdf(self, z: FloatArray, scale: float) -> FloatArray:
        """By symmetry."""
        upper = self._upper(np.abs(z) / scale)
        return np.where(z < 0.0, upper, 1.0 - upper)

    def sf(self, z: FloatArray, scale: float) -> FloatArray:
        """By symmetry."""
        return self.cdf(-z, scale)

    def _upper(self, u: FloatArray) -> FloatArray:
        """P[Z > u widths] for u >= 0."""
        k = np.floor(u)
        part, rest = u - k, math.exp(-self.step)
        within = np.maximum(self.gamma - part, 0.0) + rest * (1.0 - np.maximum(part, self.gamma))
        return np.exp(-k * self.step) * (0.5 * rest + self._unit * within)

    def quantile(self, p: FloatArray, scale: float) -> FloatArray:
        """Inverts the piecewise linear upper tail."""
        tail = np.minimum(p, 1.0 - p)
        k = np.maximum(np.floor(-np.log(2.0 * tail) / self.step), 0.0)
        rest = math.exp(-self.step)
        left = np.maximum(tail * np.exp(k * self.step) - 0.5 * rest, 0.0) / self._unit
        flat = rest * (1.0 - self.gamma)
        part = np.where(left <= flat, 1.0 - left / rest, self.gamma - (left - flat))
        return np.asarray(np.sign(p - 0.5) * (k + np.clip(part, 0.0, 1.0)) * scale)

    def largest_loss(self, shift: float, scale: float) -> float:
        """ε times the most steps that fit into a window of the shift's width."""
        return self.step * math.ceil(abs(shift) / scale * (1.0 - 1e-12))

    def epsilon(self, shift: float, scale: float, delta: float) -> float:
        """Exact: the pair is constant between the steps of both sides."""
        if shift == 0.0 or delta == 0.0:
            return self.largest_loss(shift, scale)
        most = min(math.ceil(42.0 / self.step) + math.ceil(abs(shift) / scale), _MOST_STEPS)
        steps = (np.arange(most) + self.gamma) * scale
        edges = np.unique(np.concatenate([-steps, steps, shift - steps, shift + steps]))
        middle, width = 0.5 * (edges[1:] + edges[:-1]), np.diff(edges)
        density = self._unit / scale * width
        p = density * np.exp(self.log_density(middle, scale))
        q = density * np.exp(self.log_density(middle - shift, scale))
        return epsilon_both_ways(p, q, delta, _ROUNDING)


def gamma_scale_upper(total: float, n: float, alpha: float) -> float:
    """Upper bound of the scale b of n exponential variables with sum ``total``: 2·total/b is χ² with 2n degrees."""
    return total / float(gammaincinv(n, alpha))
