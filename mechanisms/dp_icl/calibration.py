"""Gaussian noise: its privacy profile, and the scale that meets a claim.

A mechanism that adds N(0, σ²) to every coordinate of an output with L2 sensitivity Δ loses privacy only
through μ = Δ/σ. It satisfies (ε, δ)-differential privacy if and only if δ(ε; μ) ≤ δ, where

    δ(ε; μ) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)

(Balle & Wang, "Improving the Gaussian Mechanism for Differential Privacy", ICML 2018, Theorem 8). Invariants:
δ(ε; μ) decreases in ε and increases in μ, so each of ε, δ and σ is a function of the other two.

The two terms nearly cancel for small μ, and e^ε overflows for large ε. With a = μ/2 − ε/μ, b = −μ/2 − ε/μ,
e^ε φ(b) = φ(a) and Mills' ratio M(x) = Φ(−x)/φ(x), the profile is φ(a) (M(−a) − M(−b)) without any
exponential of ε, and for small μ the difference is the integral of −M'(x) = 1 − x M(x) over an interval of
length μ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import erfcx, erfinv, log_ndtr, ndtr

Calibration = Literal["analytic", "classical"]

_SMALL_MU = 1.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)


@dataclass(frozen=True)
class GaussianNoise:
    """Declaration of independent N(0, sigma²) noise on every coordinate of the clean output.

    Args:
        sigma: standard deviation, in units of the clean output; finite and above 0.

    Raises:
        TypeError: ``sigma`` is not a real number.
        ValueError: ``sigma`` is not finite or not above 0.
    """

    sigma: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", validate_positive("sigma", self.sigma))


def gaussian_sigma(
    epsilon: float, delta: float, sensitivity: float, method: Calibration = "analytic"
) -> float:
    """The noise scale of a Gaussian mechanism that satisfies (``epsilon``, ``delta``)-differential privacy.

    Args:
        epsilon: the claim's ε, finite and at least 0.
        delta: the claim's δ, in (0, 1).
        sensitivity: L2 sensitivity of the clean output, in its units.
        method: ``"analytic"`` for the smallest sufficient scale, ``"classical"`` for the textbook formula,
            accepted only where its theorem holds (ε below 1).

    Returns:
        The standard deviation σ, in units of the clean output.

    Raises:
        TypeError: an argument is not a real number.
        ValueError: an argument is out of range, ``method`` is unknown, or it is ``"classical"`` with ε ≥ 1.
    """
    if method == "analytic":
        return analytic_gaussian_sigma(epsilon, delta, sensitivity)
    if method != "classical":
        msg = f'method must be "analytic" or "classical", got {method!r}.'
        raise ValueError(msg)
    sigma = classical_gaussian_sigma(epsilon, delta, sensitivity)
    if epsilon >= 1:
        msg = (
            f"the classical calibration is proven for epsilon below 1, got epsilon={epsilon!r}; use the "
            "analytic calibration (dp_icl.flawed keeps the classical one at any epsilon, as a specimen)."
        )
        raise ValueError(msg)
    return sigma


def analytic_gaussian_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """The smallest σ with which the Gaussian mechanism is (``epsilon``, ``delta``)-differentially private.

    Solves δ(ε; Δ/σ) = δ (Balle & Wang 2018, Theorem 8) to the precision of a float, for ε up to 200 and
    beyond and δ down to 1e-15 and below.

    Args:
        epsilon: finite and at least 0.
        delta: in (0, 1).
        sensitivity: L2 sensitivity Δ, finite and above 0.

    Returns:
        σ, in units of the clean output.

    Raises:
        TypeError: an argument is not a real number.
        ValueError: an argument is out of range.
    """
    epsilon, delta = validate_epsilon(epsilon), validate_delta(delta)
    sensitivity = validate_positive("sensitivity", sensitivity)
    tail = math.sqrt(-2.0 * math.log(delta))
    # Two values of μ certain to satisfy the claim: δ(ε; μ) ≤ Φ(a) ≤ exp(−a²/2) at a = −tail;
    # and δ(ε; μ) ≤ δ(0; μ).
    low = max(2.0 * epsilon / (tail + math.hypot(tail, math.sqrt(2.0 * epsilon))), _mu_at_zero(delta))
    high = 2.0 * low
    while _log_delta(epsilon, high) <= math.log(delta):
        low, high = high, 2.0 * high
    return sensitivity / _solve_mu(epsilon, math.log(delta), low, high)


def classical_gaussian_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """The textbook scale σ = Δ sqrt(2 ln(1.25/δ)) / ε, whatever ε.

    Dwork & Roth, "The Algorithmic Foundations of Differential Privacy", Theorem A.1, proves it for ε below
    1. For large ε it is too small: at δ = 1e-5 the true ε exceeds the claimed one from about 8.4 on.

    Args:
        epsilon: finite and above 0.
        delta: in (0, 1).
        sensitivity: L2 sensitivity Δ, finite and above 0.

    Returns:
        σ, in units of the clean output.

    Raises:
        TypeError: an argument is not a real number.
        ValueError: an argument is out of range.
    """
    epsilon, delta = validate_positive("epsilon", epsilon), validate_delta(delta)
    return validate_positive("sensitivity", sensitivity) * math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon


def gaussian_delta(epsilon: float, sigma: float, sensitivity: float = 1.0) -> float:
    """The smallest δ with which Gaussian noise of scale ``sigma`` is (``epsilon``, δ)-differentially private.

    Args:
        epsilon: finite and at least 0.
        sigma: standard deviation of the noise, finite and above 0.
        sensitivity: L2 distance of the two clean outputs, finite and above 0.

    Returns:
        δ(ε; Δ/σ) in [0, 1] (Balle & Wang 2018, Theorem 8); 0 where it underflows.

    Raises:
        TypeError: an argument is not a real number.
        ValueError: an argument is out of range.
    """
    return min(1.0, math.exp(_log_delta(validate_epsilon(epsilon), _shift(sensitivity, sigma))))


def gaussian_epsilon(sigma: float, delta: float, sensitivity: float = 1.0) -> float:
    """The smallest ε with which Gaussian noise of scale ``sigma`` is (ε, ``delta``)-differentially private.

    The true privacy loss of a Gaussian mechanism, whatever it claims.

    Args:
        sigma: standard deviation of the noise, finite and above 0.
        delta: in (0, 1).
        sensitivity: L2 distance of the two clean outputs, finite and above 0.

    Returns:
        ε at least 0; exactly 0 when the noise hides the difference up to δ.

    Raises:
        TypeError: an argument is not a real number.
        ValueError: an argument is out of range.
    """
    target = math.log(validate_delta(delta))
    mu = _shift(sensitivity, sigma)
    if _log_delta(0.0, mu) <= target:
        return 0.0
    high = mu * mu / 2.0 + mu * math.sqrt(-2.0 * target)

    def excess(epsilon: float) -> float:
        return _log_delta(epsilon, mu) - target

    return float(brentq(excess, 0.0, high, xtol=1e-300, rtol=8.9e-16, maxiter=500))


def validate_epsilon(value: object) -> float:
    """Return ``value`` as a float.

    Raises:
        TypeError: it is not a real number.
        ValueError: it is negative or not finite.
    """
    epsilon = _real("epsilon", value)
    if not math.isfinite(epsilon) or epsilon < 0:
        msg = f"epsilon must be a finite number of at least 0, got {value!r}."
        raise ValueError(msg)
    return epsilon


def validate_delta(value: object) -> float:
    """Return ``value`` as a float.

    Raises:
        TypeError: it is not a real number.
        ValueError: it lies outside (0, 1); Gaussian noise satisfies no claim with delta = 0.
    """
    delta = _real("delta", value)
    if not 0.0 < delta < 1.0:
        msg = (
            f"delta must be a number in (0, 1), got {value!r}; "
            "Gaussian noise satisfies no claim with delta=0."
        )
        raise ValueError(msg)
    return delta


def _shift(sensitivity: float, sigma: float) -> float:
    mu = validate_positive("sensitivity", sensitivity) / validate_positive("sigma", sigma)
    if not 1e-100 <= mu <= 1e8:
        msg = f"sensitivity / sigma must lie in [1e-100, 1e8], got {sensitivity!r} / {sigma!r}."
        raise ValueError(msg)
    return mu


def _log_delta(epsilon: float, mu: float) -> float:
    upper, lower = mu / 2.0 - epsilon / mu, -mu / 2.0 - epsilon / mu
    if mu <= _SMALL_MU:
        x = mu * (_NODES + 1.0) / 2.0 - upper
        slope = float(_WEIGHTS @ _mills_slope(x)) * mu / 2.0
        return _log_density(upper) + math.log(slope) if slope > 0.0 else -math.inf
    ratio = _log_mills(-lower)
    if upper > 0.0:
        return math.log(float(ndtr(upper)) - math.exp(_log_density(upper) + ratio))
    return float(log_ndtr(upper)) + math.log1p(-math.exp(ratio - _log_mills(-upper)))


def _solve_mu(epsilon: float, target: float, low: float, high: float) -> float:
    def excess(log_mu: float) -> float:
        return _log_delta(epsilon, math.exp(log_mu)) - target

    log_low, log_high = math.log(low), math.log(high)
    if excess(log_low) >= 0.0:
        return low
    return math.exp(brentq(excess, log_low, log_high, xtol=1e-16, rtol=8.9e-16, maxiter=500))


def _mu_at_zero(delta: float) -> float:
    return 2.0 * math.sqrt(2.0) * float(erfinv(delta))


def _log_density(x: float) -> float:
    return -x * x / 2.0 - math.log(2.0 * math.pi) / 2.0


def _mills(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return math.sqrt(math.pi / 2.0) * erfcx(x / math.sqrt(2.0))


def _log_mills(x: float) -> float:
    return math.log(math.sqrt(math.pi / 2.0) * float(erfcx(x / math.sqrt(2.0))))


def _mills_slope(x: NDArray[np.float64]) -> NDArray[np.float64]:
    # 1 − x M(x) loses x² of its digits; its asymptotic series has converged by then.
    far = np.maximum(x, 100.0) ** -2.0
    series = far * (1.0 - far * (3.0 - far * (15.0 - far * 105.0)))
    return np.where(x > 100.0, series, 1.0 - x * _mills(x))


def _real(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        msg = f"{name} must be a real number, got {value!r} of type {type(value).__name__}."
        raise TypeError(msg)
    return float(value)


def validate_positive(name: str, value: object) -> float:
    """Return ``value`` as a float.

    Raises:
        TypeError: it is not a real number.
        ValueError: it is not finite or not above 0.
    """
    number = _real(name, value)
    if not math.isfinite(number) or number <= 0:
        msg = f"{name} must be a finite number above 0, got {value!r}."
        raise ValueError(msg)
    return number
