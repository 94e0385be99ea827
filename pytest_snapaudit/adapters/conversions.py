"""From concentrated and Rényi differential privacy to (ε, δ), as tightly as divergence bounds allow.

A mechanism of Rényi divergence at most τ(α) at every order α > 1 is (ε, δ)-differentially private for

    δ = inf over α > 1 of  exp((α − 1)(τ(α) − ε)) · (1 − 1/α)^α / (α − 1),

Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy" (NeurIPS 2020), Proposition 12 and
Corollary 13; ρ-zCDP is τ(α) = ρ α.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar

from pytest_snapaudit.engine.claim import validate_delta

_LOG_ORDERS = np.linspace(-12.0, 36.0, 193)
_MOST_EPSILON = 1e6


def positive_delta(owner: str, value: object) -> float:
    """``value`` as a float in (0, 1); ``owner`` names what converts a curve, in messages.

    Raises:
        InvalidClaim: not a number in [0, 1).
        ValueError: 0, at which no epsilon holds.
    """
    delta = validate_delta(value)
    if delta == 0.0:
        msg = f"{owner}: delta must be above 0, got {value!r}; at delta = 0 no finite epsilon is known."
        raise ValueError(msg)
    return delta


def renyi_to_delta(divergence: Callable[[float], float], epsilon: float) -> float:
    """δ at ``epsilon`` for a bound on Rényi divergences.

    Args:
        divergence: a function of the order α > 1 that returns τ(α); infinity, or an
            ArithmeticError such as overflow, where nothing is known.
        epsilon: at least 0.

    Returns:
        A valid δ, at most 1: every order gives one, and the best is found to about 1e-9 of its logarithm.
    """
    if not epsilon >= 0.0:
        msg = f"epsilon must be a number of at least 0, got {epsilon!r}."
        raise ValueError(msg)

    def log_delta(log_excess: float) -> float:
        excess = math.exp(log_excess)
        try:
            bound = divergence(1.0 + excess)
        except ArithmeticError:
            bound = math.inf
        if not math.isfinite(bound):
            return math.inf
        return excess * (bound - epsilon) - (1.0 + excess) * math.log1p(1.0 / excess) - log_excess

    values = [log_delta(float(at)) for at in _LOG_ORDERS]
    best = int(np.argmin(values))
    low, high = _LOG_ORDERS[max(best - 1, 0)], _LOG_ORDERS[min(best + 1, len(values) - 1)]
    refined = minimize_scalar(log_delta, bounds=(low, high), method="bounded", options={"xatol": 1e-9})
    return math.exp(min(values[best], float(refined.fun), 0.0))


def zcdp_to_delta(rho: float, epsilon: float) -> float:
    """δ at ``epsilon`` for ρ-zCDP, Corollary 13.

    Args:
        rho: the concentrated privacy parameter, at least 0.
        epsilon: at least 0.
    """
    if not rho >= 0.0:
        msg = f"rho must be a number of at least 0, got {rho!r}."
        raise ValueError(msg)
    return renyi_to_delta(lambda alpha: rho * alpha, epsilon) if rho > 0.0 else 0.0


def smallest_epsilon(curve: Callable[[float], float], delta: float) -> float:
    """The smallest ε at which a decreasing privacy curve is at most ``delta``, rounded up by at most 1e-12 of it.

    Args:
        curve: δ as a function of ε ≥ 0.
        delta: in (0, 1).

    Raises:
        ValueError: ``delta`` is out of range, or the curve is above it up to ε = 10⁶.
    """
    if not 0.0 < delta < 1.0:
        msg = f"delta must be a number in (0, 1), got {delta!r}."
        raise ValueError(msg)
    if curve(0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while curve(high) > delta:
        low, high = high, 2.0 * high
        if high > _MOST_EPSILON:
            msg = f"the privacy curve stays above delta={delta:g} up to epsilon={_MOST_EPSILON:g}; give a larger delta."
            raise ValueError(msg)
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if curve(middle) > delta else (low, middle)
    return high
