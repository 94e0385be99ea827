"""Conversions against high-precision arithmetic, an independent library, and published values."""

from __future__ import annotations

import math

import dp_accounting
import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_snapaudit.engine.estimators import (
    analytic_gaussian_sigma,
    dp_epsilon,
    epsilon_from_rates,
    gaussian_delta,
    gdp_epsilon,
    gdp_mu,
    log_gaussian_delta,
    max_detectable_epsilon,
    mu_from_rates,
    trials_needed,
)

MUS = [1e-12, 1e-6, 1e-3, 0.1, 0.5, 0.999, 1.0, 1.001, 2.0, 5.0, 10.0, 20.0, 50.0]
EPSILONS = [0.0, 1e-9, 1e-3, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 80.0, 200.0, 700.0]


def exact_gaussian_delta(mu: float, epsilon: float) -> mpmath.mpf:
    """Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), with as many digits as the cancellation needs."""
    for digits in (60, 300, 2000):
        with mpmath.workdps(digits):
            m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
            first, second = (mpmath.erfc(-(s * m / 2 - e / m) / mpmath.sqrt(2)) / 2 for s in (1, -1))
            difference = first - mpmath.exp(e) * second
            if difference > first * mpmath.mpf(10) ** (30 - digits):
                return difference
    raise AssertionError((mu, epsilon))


class TestGaussianDelta:
    @pytest.mark.parametrize("mu", MUS)
    def test_relative_accuracy_against_exact_arithmetic(self, mu: float) -> None:
        for epsilon in EPSILONS:
            if epsilon / mu > 1e4:  # thousands of digits would cancel
                continue
            exact = exact_gaussian_delta(mu, epsilon)
            log_exact = float(mpmath.log(exact))
            assert log_gaussian_delta(mu, epsilon) == pytest.approx(log_exact, rel=1e-13, abs=1e-13)
            if log_exact > -700:
                assert gaussian_delta(mu, epsilon) == pytest.approx(float(exact), rel=1e-12, abs=0.0)

    def test_logarithm_stays_finite_where_the_value_underflows(self) -> None:
        assert gaussian_delta(1e-3, 1.0) == 0.0
        assert log_gaussian_delta(1e-3, 1.0) == pytest.approx(-(1e6 / 2) + 0.5, abs=30)

    def test_approaches_one_with_an_exact_complement(self) -> None:
        complement = -math.expm1(log_gaussian_delta(12.0, 1.0))
        assert complement == pytest.approx(float(1 - exact_gaussian_delta(12.0, 1.0)), rel=1e-10)

    @pytest.mark.parametrize(
        ("mu", "epsilon", "expected"),
        [(0.0, 0.0, 0.0), (-1.0, 2.0, 0.0), (math.inf, 3.0, 1.0), (2.0, math.inf, 0.0), (5e-324, 1.0, 0.0)],
    )
    def test_limits(self, mu: float, epsilon: float, expected: float) -> None:
        assert gaussian_delta(mu, epsilon) == expected

    @given(st.floats(1e-3, 30), st.floats(0, 100), st.floats(1.001, 3))
    def test_grows_with_mu_and_falls_with_epsilon(self, mu: float, epsilon: float, factor: float) -> None:
        here = log_gaussian_delta(mu, epsilon)
        assert log_gaussian_delta(mu * factor, epsilon) >= here
        assert log_gaussian_delta(mu, epsilon * factor) <= here

    @pytest.mark.parametrize(
        ("mu", "epsilon", "message"),
        [(math.nan, 1.0, "mu must be a number"), (1.0, -0.1, r"epsilon must lie in \[0, inf\], got -0.1")],
    )
    def test_bad_arguments(self, mu: float, epsilon: float, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            gaussian_delta(mu, epsilon)


class TestGdpEpsilonAndMu:
    @pytest.mark.parametrize("epsilon", [1e-6, 0.01, 1.0, 8.0, 16.0, 200.0])
    @pytest.mark.parametrize("delta", [0.3, 1e-5, 1e-15, 1e-300])
    def test_round_trip(self, epsilon: float, delta: float) -> None:
        mu = gdp_mu(epsilon, delta)
        assert log_gaussian_delta(mu, epsilon) == pytest.approx(math.log(delta), rel=1e-12)
        # where delta is nearly flat in epsilon, a last-digit change of mu moves epsilon by this much
        conditioning = 1e-15 * mu * mu / delta if delta > 1e-6 else 0.0
        assert gdp_epsilon(mu, delta) == pytest.approx(epsilon, rel=1e-9, abs=1e-12 + conditioning)

    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 16.0])
    @pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-9])
    def test_agrees_with_an_independent_library(self, epsilon: float, delta: float) -> None:
        sigma = analytic_gaussian_sigma(epsilon, delta)
        assert sigma == pytest.approx(dp_accounting.get_sigma_gaussian(epsilon, delta), rel=1e-6)
        assert dp_accounting.get_epsilon_gaussian(sigma, delta) == pytest.approx(epsilon, rel=1e-6)

    @pytest.mark.parametrize(
        ("epsilon", "sigma"), [(1, 3.730632), (2, 1.993812), (4, 1.081162), (8, 0.600229), (16, 0.344177)]
    )
    def test_published_calibrations(self, epsilon: float, sigma: float) -> None:
        assert analytic_gaussian_sigma(epsilon, 1e-5) == pytest.approx(sigma, abs=5e-7)
        assert analytic_gaussian_sigma(epsilon, 1e-5, 2.5) == pytest.approx(2.5 * sigma, abs=2e-6)

    @pytest.mark.parametrize(
        ("claim", "true"), [(1, 0.75), (2, 1.61), (4, 3.51), (8, 7.91), (16, 18.90), (32, 49.2)]
    )
    def test_true_epsilon_of_the_classical_gaussian(self, claim: float, true: float) -> None:
        mu = claim / math.sqrt(2 * math.log(1.25 / 1e-5))
        assert gdp_epsilon(mu, 1e-5) == pytest.approx(true, rel=2e-3)

    @pytest.mark.parametrize(("claim", "true"), [(1, 2.15), (2, 4.39), (4, 9.08), (8, 19.1), (16, 40.9)])
    def test_true_epsilon_at_twice_the_declared_sensitivity(self, claim: float, true: float) -> None:
        assert gdp_epsilon(2 * gdp_mu(claim, 1e-5), 1e-5) == pytest.approx(true, rel=3e-3)

    @pytest.mark.parametrize(
        ("mu", "delta", "expected"),
        [
            (0.0, 0.0, 0.0),
            (-3.0, 1e-5, 0.0),
            (1e-6, 1e-5, 0.0),
            (1.0, 1.0, 0.0),
            (1.0, 0.0, math.inf),
            (math.inf, 0.5, math.inf),
            (1e200, 1e-5, math.inf),
        ],
    )
    def test_limits(self, mu: float, delta: float, expected: float) -> None:
        assert gdp_epsilon(mu, delta) == expected

    def test_epsilon_zero_is_the_total_variation_distance(self) -> None:
        assert gdp_mu(0.0, 0.3) == pytest.approx(2 * float(mpmath.sqrt(2) * mpmath.erfinv(0.3)), rel=1e-12)
        assert gdp_epsilon(gdp_mu(0.0, 0.3) * (1 - 1e-9), 0.3) == 0.0

    @given(st.floats(1e-6, 200), st.floats(1e-15, 0.9))
    def test_mu_is_the_largest_that_meets_the_claim(self, epsilon: float, delta: float) -> None:
        mu = gdp_mu(epsilon, delta)
        assert gaussian_delta(mu * (1 - 1e-9), epsilon) < delta < gaussian_delta(mu * (1 + 1e-9), epsilon)

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda: gdp_epsilon(math.nan, 0.1), "mu must be a number, got nan"),
            (lambda: gdp_epsilon(1.0, 1.5), r"delta must lie in \[0, 1\], got 1.5"),
            (lambda: gdp_mu(math.inf, 0.1), r"epsilon must lie in \[0, inf\), got inf"),
            (lambda: gdp_mu(1.0, 0.0), r"delta must lie in \(0, 1\), got 0.0"),
            (lambda: analytic_gaussian_sigma(1.0, 0.1, 0.0), r"sensitivity must lie in \(0, inf\), got 0.0"),
            (lambda: analytic_gaussian_sigma(1.0, 0.1, math.nan), "sensitivity must lie in"),
        ],
    )
    def test_bad_arguments(self, call, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            call()


class TestFromRates:
    def test_the_standard_estimator(self) -> None:
        assert dp_epsilon(0.5, 0.1, 0.1) == pytest.approx(math.log(4))
        assert dp_epsilon(0.9, 1e-300, 1e-5) == pytest.approx(math.log(0.9 - 1e-5) + 300 * math.log(10))

    @pytest.mark.parametrize(
        ("p_lower", "q_upper", "expected"),
        [(0.1, 0.5, 0.0), (1e-5, 1e-9, 0.0), (0.0, 0.0, 0.0), (0.5, 0.0, math.inf)],
    )
    def test_limits_of_the_standard_estimator(self, p_lower: float, q_upper: float, expected: float) -> None:
        assert dp_epsilon(p_lower, q_upper, 1e-5) == expected

    def test_the_gaussian_estimator(self) -> None:
        p, q = (float(mpmath.ncdf(x)) for x in (0.5, -1.0))
        assert mu_from_rates(p, q) == pytest.approx(1.5, rel=1e-12)
        assert epsilon_from_rates(p, q, 1e-5, "gdp") == pytest.approx(gdp_epsilon(1.5, 1e-5), rel=1e-12)
        assert epsilon_from_rates(p, q, 1e-5, "dp") == dp_epsilon(p, q, 1e-5)

    @pytest.mark.parametrize(
        ("p_lower", "q_upper", "expected"),
        [
            (0.2, 0.8, 0.0),
            (0.0, 0.0, 0.0),
            (1.0, 1.0, 0.0),
            (0.0, 1.0, 0.0),
            (1.0, 0.5, math.inf),
            (0.5, 0.0, math.inf),
        ],
    )
    def test_limits_of_mu(self, p_lower: float, q_upper: float, expected: float) -> None:
        assert mu_from_rates(p_lower, q_upper) == expected

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (
                lambda: epsilon_from_rates(0.5, 0.1, 0.0, "renyi"),
                'estimator must be "dp" or "gdp", got \'renyi\'',
            ),
            (lambda: dp_epsilon(1.1, 0.1, 0.0), r"p_lower must lie in \[0, 1\], got 1.1"),
            (lambda: dp_epsilon(0.5, 0.1, -1e-9), r"delta must lie in \[0, 1\], got -1e-09"),
            (lambda: mu_from_rates(0.5, math.nan), r"q_upper must lie in \[0, 1\], got nan"),
        ],
    )
    def test_bad_arguments(self, call, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            call()


class TestCeiling:
    def test_one_look_of_400_000_trials(self) -> None:
        assert max_detectable_epsilon(400_000, 1e-5, 0.0005, 0.0005) == pytest.approx(10.87, abs=0.005)
        assert max_detectable_epsilon(2_000, 0.0, 0.025, 0.025) == pytest.approx(
            math.log(2_000 / math.log(40)), abs=0.01
        )

    def test_stable_for_many_trials(self) -> None:
        n = 10**30
        expected = math.log(n) - math.log(math.log(100))
        assert max_detectable_epsilon(n, 0.0, 0.01, 0.01) == pytest.approx(expected, rel=1e-14)

    @pytest.mark.parametrize(("n", "delta"), [(1, 0.5), (10, 0.9), (1, 1.0), (10**9, 1.0)])
    def test_nothing_is_detectable(self, n: int, delta: float) -> None:
        assert max_detectable_epsilon(n, delta, 0.01, 0.01) == 0.0

    @pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 8.0, 10.9, 25.0])
    @pytest.mark.parametrize("delta", [0.0, 1e-5, 0.2])
    def test_trials_needed_is_the_first_that_exceeds(self, epsilon: float, delta: float) -> None:
        n = trials_needed(epsilon, delta, 0.0005, 0.0005)
        assert n is not None
        assert max_detectable_epsilon(n, delta, 0.0005, 0.0005) > epsilon
        assert max_detectable_epsilon(n - 1, delta, 0.0005, 0.0005) <= epsilon

    def test_trials_needed_for_claims_out_of_reach(self) -> None:
        at_200 = trials_needed(200.0, 0.0, 0.01, 0.01)
        assert at_200 is not None
        assert math.log(at_200) == pytest.approx(200 + math.log(math.log(100)), rel=1e-12)
        assert trials_needed(800.0, 0.0, 0.01, 0.01) is None
        assert trials_needed(math.inf, 0.0, 0.01, 0.01) is None
        assert trials_needed(1.0, 1.0, 0.01, 0.01) is None

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda: max_detectable_epsilon(0, 0.0, 0.1, 0.1), r"n must lie in \[1, inf\], got 0"),
            (lambda: max_detectable_epsilon(9, 0.0, 1.0, 0.1), r"alpha_p must lie in \(0, 1\), got 1.0"),
            (lambda: max_detectable_epsilon(9, 0.0, 0.1, 0.0), r"alpha_q must lie in \(0, 1\), got 0.0"),
            (lambda: max_detectable_epsilon(9, math.nan, 0.1, 0.1), r"delta must lie in \[0, 1\], got nan"),
            (lambda: trials_needed(-1.0, 0.0, 0.1, 0.1), r"epsilon must lie in \[0, inf\], got -1.0"),
        ],
    )
    def test_bad_arguments(self, call, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            call()
