"""Conversions between bounds on event rates, Gaussian trade-offs and (ε, δ).

Everything is computed in log space, so that epsilon up to several hundred and delta down to the smallest
double neither overflow nor round to a silent zero. A μ-Gaussian trade-off is that of N(0, 1) against N(μ, 1)
(Dong, Roth and Su, "Gaussian differential privacy", JRSS B 84, 2022); its privacy profile is

    δ_μ(ε) = Φ(−x) − e^ε Φ(−x − μ) = φ(x) (M(x) − M(x + μ)),    x = ε/μ − μ/2,

where M(s) = Φ(−s)/φ(s) is Mills' ratio and the second form, which follows from e^ε φ(x + μ) = φ(x), has no
overflowing factor.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import erfcx, erfinv, ndtr, ndtri

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_SQRT_HALF_PI = math.sqrt(0.5 * math.pi)
_NODES, _NODE_WEIGHTS = leggauss(20)
_SMALL_MU = 1.0
_ASYMPTOTIC_FROM = 12.0
_LARGEST_TRIALS = 2**1000


def _check_range(
    name: str, value: float, low: float, high: float, *, open_low: bool, open_high: bool
) -> None:
    below = value <= low if open_low else value < low
    above = value >= high if open_high else value > high
    if math.isnan(value) or below or above:
        interval = f"{'(' if open_low else '['}{low:g}, {high:g}{')' if open_high else ']'}"
        msg = f"{name} must lie in {interval}, got {value!r}."
        raise ValueError(msg)


def _check_epsilon(epsilon: float) -> None:
    _check_range("epsilon", epsilon, 0.0, math.inf, open_low=False, open_high=False)


def _check_not_nan(name: str, value: float) -> None:
    if math.isnan(value):
        msg = f"{name} must be a number, got {value!r}."
        raise ValueError(msg)


def _mills(s: float) -> float:
    return _SQRT_HALF_PI * float(erfcx(s / math.sqrt(2.0)))


def _mills_slope(s: NDArray[np.float64]) -> NDArray[np.float64]:
    """−M'(s) = 1 − s·M(s), by its asymptotic series where that difference cancels."""
    direct = 1.0 - s * _SQRT_HALF_PI * erfcx(s / math.sqrt(2.0))
    inverse_square = 1.0 / np.maximum(s, _ASYMPTOTIC_FROM) ** 2
    series = np.zeros_like(s)
    for k in range(24, 0, -1):  # 1/s² − 3/s⁴ + 15/s⁶ − … by Horner's rule
        series = 1.0 - (2 * k + 1) * inverse_square * series
    return np.where(s > _ASYMPTOTIC_FROM, inverse_square * series, direct)


def log_gaussian_delta(mu: float, epsilon: float) -> float:
    """Natural logarithm of :func:`gaussian_delta`, finite even where the value itself underflows.

    Args:
        mu: distance of the two Gaussians in standard deviations; 0 or less means indistinguishable.
        epsilon: at least 0.

    Returns:
        ln δ_μ(ε), in [−inf, 0].

    Raises:
        ValueError: if mu is NaN or epsilon is NaN or negative.
    """
    _check_not_nan("mu", mu)
    _check_epsilon(epsilon)
    if mu <= 0.0 or epsilon == math.inf:
        return -math.inf
    if mu == math.inf:
        return 0.0
    x = epsilon / mu - 0.5 * mu
    if mu >= _SMALL_MU and x < 0.0:
        return math.log1p(-(float(ndtr(x)) + math.exp(-0.5 * x * x - _LOG_SQRT_2PI) * _mills(x + mu)))
    if not math.isfinite(x * x):
        return -math.inf
    if mu >= _SMALL_MU:
        difference = _mills(x) - _mills(x + mu)
    else:  # the same difference as the integral of −M' over [x, x + μ], which does not cancel
        slopes = _mills_slope(x + 0.5 * mu * (_NODES + 1.0))
        difference = 0.5 * mu * float(_NODE_WEIGHTS @ slopes)
    return min(0.0, math.log(difference) - 0.5 * x * x - _LOG_SQRT_2PI) if difference > 0.0 else -math.inf


def gaussian_delta(mu: float, epsilon: float) -> float:
    """The smallest δ for which a μ-Gaussian trade-off is (ε, δ)-differentially private.

    Accurate relative to its own size (about 1e-12), also far in the tail and for small ``mu``.

    Raises:
        ValueError: if mu is NaN or epsilon is NaN or negative.

    Source: Balle and Wang, "Improving the Gaussian mechanism", ICML 2018, Theorem 8;
    Dong, Roth and Su 2022, Corollary 2.13.
    """
    return math.exp(log_gaussian_delta(mu, epsilon))


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    return float(brentq(function, low, high, xtol=1e-300, rtol=8.9e-16, maxiter=1000))


def gdp_epsilon(mu: float, delta: float) -> float:
    """The smallest ε >= 0 for which a μ-Gaussian trade-off is (ε, δ)-differentially private.

    Returns:
        0 when ``mu <= 0`` or δ_μ(0) <= δ already; ``inf`` when ``delta == 0`` or ``mu`` is infinite.

    Raises:
        ValueError: if mu is NaN or delta is outside [0, 1].
    """
    _check_not_nan("mu", mu)
    _check_range("delta", delta, 0.0, 1.0, open_low=False, open_high=False)
    if mu <= 0.0 or delta == 1.0:
        return 0.0
    if delta == 0.0 or mu == math.inf:
        return math.inf
    log_delta = math.log(delta)
    if log_gaussian_delta(mu, 0.0) <= log_delta:
        return 0.0
    # δ_μ(ε) <= Φ(−x) <= e^{−x²/2}, so x = sqrt(2 ln(1/δ)) is far enough.
    high = mu * (0.5 * mu + math.sqrt(-2.0 * log_delta))
    if high == math.inf:
        return math.inf
    return _root(lambda epsilon: log_gaussian_delta(mu, epsilon) - log_delta, 0.0, high)


def gdp_mu(epsilon: float, delta: float) -> float:
    """The largest μ whose Gaussian trade-off is (ε, δ)-differentially private.

    Raises:
        ValueError: if epsilon is negative, infinite or NaN, or delta is outside (0, 1).
    """
    _check_range("epsilon", epsilon, 0.0, math.inf, open_low=False, open_high=True)
    _check_range("delta", delta, 0.0, 1.0, open_low=True, open_high=True)
    log_delta = math.log(delta)
    reach = math.sqrt(-2.0 * log_delta)
    # Both are private: by δ_μ(ε) <= e^{−x²/2} as in gdp_epsilon, and by δ_μ(ε) <= δ_μ(0) = erf(μ/√8).
    low = max(
        2.0 * epsilon / (reach + math.sqrt(reach * reach + 2.0 * epsilon)),
        math.sqrt(8.0) * float(erfinv(delta)),
    )
    low *= 1.0 - 1e-9
    high = 2.0 * low
    while log_gaussian_delta(high, epsilon) <= log_delta:  # ends: δ_μ(ε) tends to 1 as μ grows
        high *= 2.0
    return _root(lambda mu: log_gaussian_delta(mu, epsilon) - log_delta, low, high)


def analytic_gaussian_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """The smallest standard deviation that makes the Gaussian mechanism (ε, δ)-differentially private.

    Args:
        epsilon: finite, at least 0.
        delta: in (0, 1).
        sensitivity: L2 sensitivity of the clean output, positive; the result is in its units.

    Raises:
        ValueError: for an argument out of range.

    Source: Balle and Wang, "Improving the Gaussian mechanism", ICML 2018, Algorithm 1.
    """
    _check_range("sensitivity", sensitivity, 0.0, math.inf, open_low=True, open_high=True)
    return sensitivity / gdp_mu(epsilon, delta)


def dp_epsilon(p_lower: float, q_upper: float, delta: float) -> float:
    """The lower bound on ε that two rates imply: ``ln((p_lower − δ) / q_upper)``, at least 0.

    Returns:
        0 when ``p_lower <= delta``; ``inf`` when ``q_upper`` is 0 and ``p_lower > delta``.

    Raises:
        ValueError: for an argument outside [0, 1].
    """
    _check_rates(p_lower, q_upper)
    _check_range("delta", delta, 0.0, 1.0, open_low=False, open_high=False)
    excess = p_lower - delta
    if excess <= 0.0:
        return 0.0
    if q_upper == 0.0:
        return math.inf
    return max(0.0, math.log(excess) - math.log(q_upper))


def mu_from_rates(p_lower: float, q_upper: float) -> float:
    """The lower bound on μ that two rates imply under a Gaussian trade-off, at least 0.

    It is Φ⁻¹(p_lower) − Φ⁻¹(q_upper): ``inf`` if p_lower is 1 or q_upper is 0, unless p_lower <= q_upper.

    Raises:
        ValueError: for a rate outside [0, 1].
    """
    _check_rates(p_lower, q_upper)
    if p_lower <= q_upper:
        return 0.0
    return max(0.0, float(ndtri(p_lower)) - float(ndtri(q_upper)))


def _check_rates(p_lower: float, q_upper: float) -> None:
    _check_range("p_lower", p_lower, 0.0, 1.0, open_low=False, open_high=False)
    _check_range("q_upper", q_upper, 0.0, 1.0, open_low=False, open_high=False)


def epsilon_from_rates(p_lower: float, q_upper: float, delta: float, estimator: str) -> float:
    """The lower bound on ε at δ that two rates imply, by the named estimator.

    Args:
        p_lower: lower bound on the event's rate on the side where it is likelier.
        q_upper: upper bound on its rate on the other side.
        delta: in [0, 1].
        estimator: ``"dp"`` (:func:`dp_epsilon`; holds for any mechanism) or ``"gdp"``
            (:func:`mu_from_rates`, then :func:`gdp_epsilon`; holds only for Gaussian trade-offs).

    Raises:
        ValueError: for another estimator, or an argument outside [0, 1].
    """
    if estimator == "dp":
        return dp_epsilon(p_lower, q_upper, delta)
    if estimator == "gdp":
        return gdp_epsilon(mu_from_rates(p_lower, q_upper), delta)
    msg = f'estimator must be "dp" or "gdp", got {estimator!r}.'
    raise ValueError(msg)


def max_detectable_epsilon(n: float, delta: float, alpha_p: float, alpha_q: float) -> float:
    """The largest ε that ``n`` trials per side could certify by counting: every trial hits, none misses.

    Returns:
        ``ln((alpha_p**(1/n) − δ) / (1 − alpha_q**(1/n)))``, at least 0.

    Raises:
        ValueError: unless n >= 1, 0 <= delta <= 1 and both alphas lie in (0, 1).
    """
    _check_range("n", n, 1.0, math.inf, open_low=False, open_high=False)
    _check_range("delta", delta, 0.0, 1.0, open_low=False, open_high=False)
    _check_range("alpha_p", alpha_p, 0.0, 1.0, open_low=True, open_high=True)
    _check_range("alpha_q", alpha_q, 0.0, 1.0, open_low=True, open_high=True)
    excess = (1.0 - delta) + math.expm1(math.log(alpha_p) / n)
    if excess <= 0.0:
        return 0.0
    missed = -math.expm1(math.log(alpha_q) / n)
    return math.inf if missed == 0.0 else max(0.0, math.log(excess) - math.log(missed))


def trials_needed(epsilon: float, delta: float, alpha_p: float, alpha_q: float) -> int | None:
    """The fewest trials per side whose :func:`max_detectable_epsilon` exceeds ``epsilon``.

    Exact up to 2⁵³ trials, beyond that to double precision.

    Returns:
        The number of trials, or None when no number that a float can hold (2¹⁰⁰⁰) is enough.

    Raises:
        ValueError: if epsilon is negative or NaN, or as in :func:`max_detectable_epsilon`.
    """
    _check_epsilon(epsilon)

    def enough(n: int) -> bool:
        return max_detectable_epsilon(float(n), delta, alpha_p, alpha_q) > epsilon

    high = 1
    while not enough(high):
        if high >= _LARGEST_TRIALS:
            return None
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
