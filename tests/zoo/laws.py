"""Exact privacy of textbook laws, independent of the engine under test.

Throughout, μ is a shift in units of the Gaussian standard deviation.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import norm


def gaussian_delta(epsilon: float, mu: float) -> float:
    """δ(ε) of N(0, 1) against N(μ, 1) (Balle & Wang 2018, arXiv:1805.06530, Theorem 8)."""
    likely = norm.cdf(mu / 2 - epsilon / mu)
    unlikely = math.exp(epsilon + float(norm.logcdf(-mu / 2 - epsilon / mu)))
    return float(likely) - unlikely


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Smallest ε ≥ 0 for which N(0, 1) and N(μ, 1) are (ε, δ)-indistinguishable."""
    if gaussian_delta(0.0, mu) <= delta:
        return 0.0
    highest = mu * mu / 2 + 10 * mu + 1
    return float(brentq(lambda epsilon: gaussian_delta(epsilon, mu) - delta, 0.0, highest, xtol=1e-12))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Largest μ for which N(0, 1) and N(μ, 1) are (ε, δ)-indistinguishable."""
    return float(brentq(lambda mu: gaussian_delta(epsilon, mu) - delta, 1e-4, 60.0, xtol=1e-13))


def analytic_sigma(epsilon: float, delta: float) -> float:
    """Exactly sufficient Gaussian noise for sensitivity 1 (Balle & Wang 2018)."""
    return 1.0 / gaussian_mu(epsilon, delta)


def classical_sigma(epsilon: float, delta: float) -> float:
    """√(2 ln(1.25/δ))/ε for sensitivity 1: a theorem for ε ≤ 1 only (Dwork & Roth 2014, Theorem A.1)."""
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def laplace_vote_epsilon(gap: float, scale: float) -> float:
    """ε of the winner between two Laplace-noised votes when a neighbour turns a lead of ``gap`` around.

    The difference D of two independent Laplace(b) variables has P(D > t) = (2 + t/b) e^(−t/b) / 4 for t ≥ 0.
    """
    upset = (2 + gap / scale) * math.exp(-gap / scale) / 4
    return math.log((1 - upset) / upset)


def laplace_delta_epsilon(shift: float, scale: float, delta: float) -> float:
    """Smallest ε ≥ 0 for which Laplace(scale) and its shifted copy are (ε, δ)-indistinguishable.

    With the pure bound ε₀ = shift/scale, δ(ε) = 1 − e^((ε − ε₀)/2).
    """
    return max(0.0, shift / scale + 2 * math.log1p(-delta))


def zcdp_epsilon(rho: float, delta: float) -> float:
    """ε at δ of ρ-zCDP (Canonne, Kamath & Steinke 2020, arXiv:2004.00010, Proposition 12)."""

    def converted(log_excess: float) -> float:
        excess = math.exp(log_excess)
        alpha = 1 + excess
        return (
            alpha * rho + (math.log(1 / delta) + excess * math.log(excess / alpha) - math.log(alpha)) / excess
        )

    return float(
        minimize_scalar(converted, bounds=(-7.0, 9.0), method="bounded", options={"xatol": 1e-10}).fun
    )


def discrete_delta(epsilon: float, p: NDArray[np.float64], q: NDArray[np.float64]) -> float:
    """δ(ε) between two laws on the same atoms, the larger of both directions."""
    factor = math.exp(epsilon)
    return max(float(np.maximum(p - factor * q, 0).sum()), float(np.maximum(q - factor * p, 0).sum()))


def discrete_epsilon(delta: float, p: NDArray[np.float64], q: NDArray[np.float64]) -> float:
    """Smallest ε ≥ 0 for which two laws with the same support are (ε, δ)-indistinguishable."""
    if discrete_delta(0.0, p, q) <= delta:
        return 0.0
    largest = float(np.abs(np.log(p / q)).max())
    if delta == 0.0:
        return largest
    return float(brentq(lambda epsilon: discrete_delta(epsilon, p, q) - delta, 0.0, largest, xtol=1e-12))
