"""From concentrated and Rényi differential privacy to (ε, δ)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from pytest_snapaudit.adapters.conversions import renyi_to_delta, smallest_epsilon, zcdp_to_delta


# Made by OpenDP 0.15.1: make_zCDP_to_approxDP of Gaussian noise with scale 1, at distance 1.
@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        (0.1, 0.5280359788432687),
        (1, 0.2468463307829447),
        (2, 0.05429299664026251),
        (8, 2.7862271853422716e-14),
    ],
)
def test_zcdp_agrees_with_opendp(epsilon, delta):
    assert zcdp_to_delta(0.5, epsilon) == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize("rho", [1e-4, 0.02, 0.5, 3.0, 40.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0, 15.0])
def test_zcdp_bounds_the_gaussian_mechanism_and_improves_on_bun_and_steinke(rho, epsilon):
    mu = math.sqrt(2 * rho)
    exact = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    delta = zcdp_to_delta(rho, epsilon)
    assert exact <= delta * (1 + 1e-9) + 1e-300
    simple = math.exp(-((epsilon - rho) ** 2) / (4 * rho)) if epsilon > rho else 1.0
    assert delta <= simple * (1 + 1e-9)


def test_renyi_divergence_of_randomised_response_covers_it():
    p = 0.75

    def divergence(alpha):
        return math.log(p**alpha * (1 - p) ** (1 - alpha) + (1 - p) ** alpha * p ** (1 - alpha)) / (alpha - 1)

    with pytest.raises(OverflowError):
        divergence(1e5)  # an order at which nothing is known

    for epsilon in (0.0, 0.5, 1.0):
        assert p - math.exp(epsilon) * (1 - p) <= renyi_to_delta(divergence, epsilon) <= 1.0


def test_orders_of_which_nothing_is_known_are_left_out():
    limited = renyi_to_delta(lambda alpha: 0.5 * alpha if alpha < 4 else math.inf, 1.0)
    assert zcdp_to_delta(0.5, 1.0) <= limited < 1.0

    def log_delta(alpha):
        return (alpha - 1) * (0.5 * alpha - 1.0) + alpha * math.log1p(-1 / alpha) - math.log(alpha - 1)

    best = minimize_scalar(log_delta, bounds=(1.0001, 3.9999), method="bounded")
    assert limited == pytest.approx(math.exp(best.fun), rel=1e-5)


def test_no_divergence_claims_nothing_lost():
    assert zcdp_to_delta(0.0, 0.0) == 0.0


@pytest.mark.parametrize("rho", [0.02, 0.5, 3.0])
@pytest.mark.parametrize("delta", [0.5, 1e-3, 1e-9])
def test_smallest_epsilon_inverts_the_curve_from_above(rho, delta):
    epsilon = smallest_epsilon(lambda at: zcdp_to_delta(rho, at), delta)
    assert zcdp_to_delta(rho, epsilon) <= delta
    if epsilon > 0:
        assert zcdp_to_delta(rho, epsilon * (1 - 1e-6)) > delta


def test_smallest_epsilon_is_zero_for_a_bound_on_total_variation():
    assert smallest_epsilon(lambda at: 0.1 * math.exp(-at), 0.2) == 0.0


def test_a_curve_that_stays_above_delta_is_an_error():
    with pytest.raises(ValueError, match=r"stays above delta=0\.01 .* give a larger delta"):
        smallest_epsilon(lambda at: max(0.02, math.exp(-at)), 0.01)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, np.nan])
def test_delta_out_of_range(delta):
    with pytest.raises(ValueError, match=r"delta must be a number in \(0, 1\)"):
        smallest_epsilon(lambda at: math.exp(-at), delta)


def test_epsilon_and_rho_out_of_range():
    with pytest.raises(ValueError, match="epsilon must be a number of at least 0, got -1"):
        renyi_to_delta(lambda alpha: alpha, -1)
    with pytest.raises(ValueError, match="rho must be a number of at least 0, got nan"):
        zcdp_to_delta(math.nan, 1.0)
