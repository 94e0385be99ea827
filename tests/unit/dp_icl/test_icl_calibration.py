"""Gaussian calibration against published values, dp_accounting and arbitrary-precision arithmetic."""

import itertools
import math

import dp_accounting
import mpmath
import pytest
from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dp_icl.calibration import (
    GaussianNoise,
    analytic_gaussian_sigma,
    classical_gaussian_sigma,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_sigma,
)

ANALYTIC = {1: 3.730632, 2: 1.993812, 4: 1.081162, 8: 0.600229, 16: 0.344177}
CLASSICAL_TRUE_EPSILON = {1: 0.75, 2: 1.61, 4: 3.51, 8: 7.91, 16: 18.90, 32: 49.2}

epsilons = st.floats(1e-3, 200)
deltas = st.floats(-15, -0.05).map(lambda exponent: 10.0**exponent)
sensitivities = st.floats(1e-3, 1e3)


def exact_delta(epsilon, mu):
    """δ(ε; μ) with 400 digits, more than the cancellation and e^200 can eat."""
    with mpmath.workdps(400):
        epsilon, mu = mpmath.mpf(epsilon), mpmath.mpf(mu)

        def upper_tail(x):
            return mpmath.erfc(x / mpmath.sqrt(2)) / 2

        return upper_tail(epsilon / mu - mu / 2) - mpmath.exp(epsilon) * upper_tail(epsilon / mu + mu / 2)


@pytest.mark.parametrize(("epsilon", "sigma"), ANALYTIC.items())
def test_analytic_sigma_at_sensitivity_one(epsilon, sigma):
    assert analytic_gaussian_sigma(epsilon, 1e-5) == pytest.approx(sigma, abs=5e-7)


@pytest.mark.parametrize(("epsilon", "true"), CLASSICAL_TRUE_EPSILON.items())
def test_true_epsilon_of_the_classical_sigma(epsilon, true):
    found = gaussian_epsilon(classical_gaussian_sigma(epsilon, 1e-5), 1e-5)
    assert found == pytest.approx(true, abs=0.05 if epsilon == 32 else 0.005)


def test_the_classical_sigma_first_breaks_its_claim_near_epsilon_8_4():
    def excess(epsilon):
        return gaussian_epsilon(classical_gaussian_sigma(epsilon, 1e-5), 1e-5) - epsilon

    assert excess(8.35) < 0 < excess(8.45)


def test_the_classical_sigma_is_the_textbook_formula():
    assert classical_gaussian_sigma(0.5, 1e-5, 2.0) == 2.0 * math.sqrt(2 * math.log(1.25e5)) / 0.5


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0, 4.0, 8.0, 16.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-10])
def test_sigma_agrees_with_dp_accounting(epsilon, delta):
    theirs = dp_accounting.get_sigma_gaussian(epsilon, delta)
    assert analytic_gaussian_sigma(epsilon, delta) == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize("sigma", [0.2, 0.7, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-8])
def test_epsilon_agrees_with_dp_accounting(sigma, delta):
    theirs = dp_accounting.get_epsilon_gaussian(sigma, delta)
    assert gaussian_epsilon(sigma, delta) == pytest.approx(theirs, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("sigma", [0.5, 1.0, 4.0])
def test_delta_agrees_with_dp_accounting(epsilon, sigma):
    theirs = GaussianPrivacyLoss(sigma, sensitivity=1.5).get_delta_for_epsilon(epsilon)
    assert gaussian_delta(epsilon, sigma, 1.5) == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    list(itertools.product([0.0, 1e-9, 1e-3, 0.5, 8.0, 60.0, 200.0], [1e-15, 1e-9, 1e-5, 0.3, 0.99])),
)
def test_the_analytic_sigma_spends_exactly_delta(epsilon, delta):
    sigma = analytic_gaussian_sigma(epsilon, delta)
    mu = 1 / mpmath.mpf(sigma)
    assert float(exact_delta(epsilon, mu) / delta) == pytest.approx(1, abs=1e-11)
    # Smallest: noise smaller by 1e-9 breaks the claim.
    assert exact_delta(epsilon, mu * (1 + mpmath.mpf("1e-9"))) > delta


@pytest.mark.parametrize(
    ("epsilon", "sigma"),
    [
        (0.0, 1e12),
        (1e-6, 1e4),
        (1.0, 0.01),
        (1.0, 40.0),
        (200.0, 0.06),
        (200.0, 0.2),
        (0.5, 1.0),
        (0.5, 0.99),
    ],
)
def test_delta_agrees_with_arbitrary_precision(epsilon, sigma):
    assert gaussian_delta(epsilon, sigma) == pytest.approx(
        float(exact_delta(epsilon, 1 / mpmath.mpf(sigma))), rel=1e-10
    )


@given(epsilon=epsilons, delta=deltas, sensitivity=sensitivities)
def test_epsilon_inverts_sigma(epsilon, delta, sensitivity):
    sigma = analytic_gaussian_sigma(epsilon, delta, sensitivity)
    assert gaussian_epsilon(sigma, delta, sensitivity) == pytest.approx(epsilon, rel=1e-9, abs=1e-9)
    assert gaussian_delta(epsilon, sigma, sensitivity) == pytest.approx(delta, rel=1e-10)


@given(epsilon=epsilons, delta=deltas, sensitivity=sensitivities)
def test_sigma_is_proportional_to_the_sensitivity(epsilon, delta, sensitivity):
    assert analytic_gaussian_sigma(epsilon, delta, sensitivity) == pytest.approx(
        sensitivity * analytic_gaussian_sigma(epsilon, delta), rel=1e-15
    )


@given(epsilon=epsilons, delta=deltas, factor=st.floats(1.001, 10))
def test_stronger_claims_need_more_noise(epsilon, delta, factor):
    sigma = analytic_gaussian_sigma(epsilon, delta)
    assert analytic_gaussian_sigma(epsilon / factor, delta) > sigma
    assert analytic_gaussian_sigma(epsilon, delta / factor) > sigma


@given(epsilon=st.floats(1e-3, 0.999), delta=deltas)
def test_where_the_classical_sigma_is_proven_it_is_at_least_the_analytic_one(epsilon, delta):
    classical = gaussian_sigma(epsilon, delta, 1.0, "classical")
    assert classical == classical_gaussian_sigma(epsilon, delta)
    assert classical >= gaussian_sigma(epsilon, delta, 1.0, "analytic")


def test_epsilon_is_zero_when_the_noise_hides_the_difference():
    assert gaussian_epsilon(sigma=1e6, delta=1e-5) == 0.0
    # Total variation distance of N(0, 1) and N(mu, 1): 2 Φ(mu/2) − 1.
    assert gaussian_delta(0.0, 1.0) == pytest.approx(math.erf(0.5 / math.sqrt(2)), rel=1e-14)


@pytest.mark.parametrize("epsilon", [1, 1.0, 16])
def test_the_classical_method_is_refused_where_it_is_not_proven(epsilon):
    with pytest.raises(
        ValueError, match=rf"proven for epsilon below 1, got epsilon={epsilon}; use the analytic"
    ):
        gaussian_sigma(epsilon, 1e-5, 1.0, "classical")


def test_an_unknown_method_is_refused():
    with pytest.raises(ValueError, match='method must be "analytic" or "classical", got \'exact\''):
        gaussian_sigma(1.0, 1e-5, 1.0, "exact")


@pytest.mark.parametrize("sigma", [analytic_gaussian_sigma, classical_gaussian_sigma, gaussian_sigma])
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((-1.0, 1e-5, 1.0), ValueError, r"epsilon must be a finite number .* got -1\.0"),
        ((math.inf, 1e-5, 1.0), ValueError, r"epsilon must be a finite number .* got inf"),
        ((math.nan, 1e-5, 1.0), ValueError, r"epsilon must be a finite number .* got nan"),
        (("1", 1e-5, 1.0), TypeError, r"epsilon must be a real number, got '1' of type str"),
        ((True, 1e-5, 1.0), TypeError, r"epsilon must be a real number, got True"),
        ((1.0, 0.0, 1.0), ValueError, r"delta must be a number in \(0, 1\), got 0\.0; .* delta=0"),
        ((1.0, 1.0, 1.0), ValueError, r"delta .* got 1\.0"),
        ((1.0, math.nan, 1.0), ValueError, r"delta .* got nan"),
        ((1.0, None, 1.0), TypeError, r"delta must be a real number, got None"),
        ((1.0, 1e-5, 0.0), ValueError, r"sensitivity must be a finite number above 0, got 0\.0"),
        ((1.0, 1e-5, math.inf), ValueError, r"sensitivity .* got inf"),
    ],
)
def test_bad_arguments_are_named(sigma, arguments, error, message):
    with pytest.raises(error, match=message):
        sigma(*arguments)


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan, math.inf])
def test_a_noise_scale_must_be_finite_and_positive(sigma):
    with pytest.raises(ValueError, match="sigma must be a finite number above 0"):
        GaussianNoise(sigma)
    with pytest.raises(ValueError, match="sigma must be a finite number above 0"):
        gaussian_delta(1.0, sigma)
    with pytest.raises(ValueError, match="sigma must be a finite number above 0"):
        gaussian_epsilon(sigma, 1e-5)


def test_a_ratio_out_of_floating_range_is_refused():
    for sigma in (1e-9, 1e101):
        with pytest.raises(ValueError, match=r"sensitivity / sigma must lie in \[1e-100, 1e8\], got 1\.0 /"):
            gaussian_epsilon(sigma, 1e-5)


def test_the_extremes_of_the_range_are_defined():
    assert gaussian_delta(1.0, 1e100) == 0.0
    assert gaussian_delta(1.0, 1e-8) == 1.0
    assert gaussian_epsilon(1e100, 1e-5) == 0.0
    # With δ = Φ(a), ε = μ²/2 − a μ for large μ.
    expected = 0.5e16 - stats.norm.ppf(1e-5) * 1e8
    assert gaussian_epsilon(1e-8, 1e-5) == pytest.approx(expected, rel=1e-12)


@given(sigma=st.floats(-8, 20).map(lambda exponent: 10.0**exponent), delta=deltas)
def test_epsilon_spends_delta_at_any_scale(sigma, delta):
    epsilon = gaussian_epsilon(sigma, delta)
    spent = gaussian_delta(epsilon, sigma)
    if epsilon == 0.0:
        assert spent <= delta
    else:
        # Rounding ε moves the argument of Φ by 1e-16 · ε/μ, about μ/2 · 1e-16.
        assert math.log(spent) == pytest.approx(math.log(delta), rel=1e-9, abs=1e-12 + 1e-14 / sigma)
