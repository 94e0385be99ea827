"""Laws of noise against closed forms, SciPy and dp_accounting; exact loss is never above the truth."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_mechanism as plm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import dlaplace, expon, gumbel_r, laplace, norm
from scipy.stats import t as student

from pytest_snapaudit.engine.estimators import gdp_epsilon
from pytest_snapaudit.engine.families import law_of
from pytest_snapaudit.engine.hockey_stick import delta_of_masses, epsilon_both_ways, epsilon_of_masses
from pytest_snapaudit.engine.noise import (
    DensityNoise,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    ExponentialNoise,
    GaussianNoise,
    GumbelNoise,
    LaplaceNoise,
    StaircaseNoise,
)

STUDENT = student(5)
ALL = [
    LaplaceNoise(2.0),
    DiscreteGaussianNoise(3.0),
    DiscreteGaussianNoise(0.3),
    DiscreteLaplaceNoise(2.5),
    DiscreteLaplaceNoise(0.2),
    GumbelNoise(1.5),
    ExponentialNoise(2.0),
    StaircaseNoise(1.0, 1.0),
    StaircaseNoise(3.0, 2.0, 1.0),
    DensityNoise(norm.logpdf),
    DensityNoise(STUDENT.logpdf, STUDENT.cdf, scale=2.0),
    DensityNoise(laplace.logpdf, scale=0.5),
]
DELTAS = [1e-6, 1e-3, 0.05]


def name(value):
    text = repr(value)
    return type(value).__name__ if " at 0x" in text else text


@pytest.mark.parametrize("noise", ALL, ids=name)
def test_quantiles_cdf_and_tails_agree(noise):
    law = law_of(noise)
    p = np.array([1e-6, 0.01, 0.2, 0.5, 0.8, 0.99, 1 - 1e-6])
    z = law.quantile(p, law.scale)
    assert np.all(np.diff(z) >= 0)
    step = 1.0 if law.whole else 0.0
    assert np.all(law.cdf(z + step, law.scale) >= p - 2e-3 * np.minimum(p, 1 - p) - 1e-7 * (1 - step) - 1e-12)
    assert np.all(law.cdf(z - 1e-2 * law.scale * (1 + np.abs(z)) - step, law.scale) <= p)
    assert law.cdf(z, law.scale) + law.sf(z, law.scale) == pytest.approx(1.0, abs=1e-12)
    edges = np.unique(z) + 0.5 * law.whole
    assert law.between(edges, law.scale).sum() == pytest.approx(1.0, abs=1e-9)
    assert law.between(edges, law.scale, shift=3.0) == pytest.approx(law.between(edges - 3.0, law.scale))


@pytest.mark.parametrize(
    ("noise", "given_law"),
    [
        (LaplaceNoise(2.0), laplace(scale=2.0)),
        (GumbelNoise(1.5), gumbel_r(scale=1.5)),
        (ExponentialNoise(2.0), expon(scale=2.0)),
        (DiscreteLaplaceNoise(2.5), dlaplace(0.4)),
        (DensityNoise(STUDENT.logpdf, scale=2.0), student(5, scale=2.0)),
    ],
    ids=name,
)
def test_laws_are_those_of_scipy(noise, given_law):
    law = law_of(noise)
    z = np.array([-7.0, -2.0, -1.0, 0.0, 1.0, 2.0, 11.0])
    assert law.cdf(z, law.scale) == pytest.approx(given_law.cdf(z), abs=1e-7)
    assert law.sf(z, law.scale) == pytest.approx(given_law.sf(z), abs=1e-7)


def test_the_staircase_integrates_its_own_density():
    law = law_of(StaircaseNoise(1.0, 2.0, 0.3))
    points = [-4.6, -2.6, -0.6, 0.6, 2.6, 4.6]
    unit = float(np.exp(law.log_density(np.array([0.0]), 2.0))[0]) * law._unit / 2.0

    def density(z):
        return float(np.exp(law.log_density(np.array([z]), 2.0))[0]) * law._unit / 2.0

    assert unit == pytest.approx(law._unit / 2.0)
    for end in (-3.1, -0.2, 0.5, 3.0):
        inner = [point for point in points if point < end] or None
        mass = quad(density, -6.0, end, points=inner, limit=200)[0] + float(law.cdf(np.array([-6.0]), 2.0)[0])
        assert mass == pytest.approx(float(law.cdf(np.array([end]), 2.0)[0]), abs=1e-7)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize(("scale", "shift"), [(1.0, 1.0), (2.0, 3.0), (0.5, 4.0)])
def test_epsilon_agrees_with_dp_accounting(scale, shift, delta):
    pairs = [
        (law_of(LaplaceNoise(scale)), plm.LaplacePrivacyLoss(scale, shift)),
        (law_of(DiscreteLaplaceNoise(scale)), plm.DiscreteLaplacePrivacyLoss(1 / scale, int(shift))),
        (law_of(DiscreteGaussianNoise(scale)), plm.DiscreteGaussianPrivacyLoss(scale, int(shift))),
    ]
    for law, accountant in pairs:
        epsilon = law.epsilon(shift, scale, delta)
        assert accountant.get_delta_for_epsilon(epsilon) == pytest.approx(delta, rel=1e-6)
        assert law.epsilon(-shift, scale, delta) == epsilon


@pytest.mark.parametrize("delta", DELTAS)
def test_gumbel_epsilon_is_that_of_its_density(delta):
    law = law_of(GumbelNoise(1.0))
    for shift in (0.1, 1.0, 3.0):
        epsilon = law.epsilon(shift, 1.0, delta)
        z = np.linspace(-8.0, 60.0, 400_001)
        p, q = np.exp(law.log_density(z, 1.0)), np.exp(law.log_density(z - shift, 1.0))
        step = z[1] - z[0]
        worst = max(
            delta_of_masses(p * step, q * step, epsilon), delta_of_masses(q * step, p * step, epsilon)
        )
        assert worst == pytest.approx(delta, rel=1e-3) or (epsilon == 0.0 and worst <= delta)
    assert law.epsilon(1.0, 1.0, 0.0) == math.inf == law.largest_loss(1.0, 1.0)


def test_exponential_noise_rules_a_side_out():
    law = law_of(ExponentialNoise(2.0))
    out = 1.0 - math.exp(-0.5)
    assert law.epsilon(1.0, 2.0, out * 0.999) == math.inf == law.epsilon(-1.0, 2.0, 0.0)
    assert law.epsilon(1.0, 2.0, out * 1.001) == 0.0


def test_laplace_and_staircase_without_delta():
    assert law_of(LaplaceNoise(2.0)).epsilon(-3.0, 2.0, 0.0) == 1.5
    assert law_of(LaplaceNoise(2.0)).epsilon(0.1, 2.0, 0.3) == 0.0
    stairs = law_of(StaircaseNoise(0.7, 2.0))
    assert [stairs.epsilon(s, 2.0, 0.0) for s in (0.0, 0.1, 2.0, 2.1, 4.0)] == [0.0, 0.7, 0.7, 1.4, 1.4]


@pytest.mark.parametrize("delta", DELTAS)
def test_staircase_epsilon_is_that_of_its_density(delta):
    law = law_of(StaircaseNoise(1.2, 1.0))
    z = np.linspace(-30.0, 30.0, 300_001) + 1e-7
    for shift in (0.3, 1.0, 1.7):
        p = np.exp(law.log_density(z, 1.0)) * law._unit * (z[1] - z[0])
        q = np.exp(law.log_density(z - shift, 1.0)) * law._unit * (z[1] - z[0])
        assert law.epsilon(shift, 1.0, delta) == pytest.approx(epsilon_both_ways(p, q, delta), rel=2e-3)


@pytest.mark.parametrize("delta", [1e-6, 1e-3])
@pytest.mark.parametrize("shift", [0.1, 1.0, 3.0])
def test_a_density_recovers_known_laws_from_below(shift, delta):
    normal, laplacian = DensityNoise(norm.logpdf), DensityNoise(laplace.logpdf, laplace.cdf, scale=1.0)
    for law, exact in (
        (law_of(normal), gdp_epsilon(shift, delta)),
        (law_of(laplacian), law_of(LaplaceNoise(1.0)).epsilon(shift, 1.0, delta)),
    ):
        found = law.epsilon(shift, 1.0, delta)
        assert exact * 0.995 <= found <= exact + 1e-9


def test_large_discrete_scales_take_the_continuous_law():
    law = law_of(DiscreteGaussianNoise(6_000.0))
    exact = gdp_epsilon(0.5, 1e-5)
    assert exact * (1 - 2e-5) <= law.epsilon(3_000.0, 6_000.0, 1e-5) < exact
    assert law_of(DiscreteGaussianNoise(4_999.0)).epsilon(2_500.0, 5_000.0, 1e-5) == pytest.approx(
        exact, rel=1e-5
    )


@pytest.mark.parametrize("noise", [noise for noise in ALL if law_of(noise).monotone], ids=name)
def test_a_larger_scale_is_never_less_private(noise):
    law = law_of(noise)
    scales = np.geomspace(0.3, 12.0, 60)
    for shift in (1.0, 2.0, 5.0):
        for delta in (0.0, *DELTAS):
            found = [law.epsilon(shift, float(scale), delta) for scale in scales]
            assert all(b <= a + 1e-9 for a, b in itertools.pairwise(found))


@settings(max_examples=60, deadline=None)
@given(
    masses=st.lists(st.tuples(st.floats(0.01, 1.0), st.floats(0.01, 1.0)), min_size=2, max_size=8),
    delta=st.floats(1e-4, 0.2),
)
def test_epsilon_of_masses_inverts_delta_of_masses(masses, delta):
    p, q = (np.array(side) / sum(side) for side in zip(*masses, strict=True))
    epsilon = epsilon_of_masses(p, q, delta)
    assert delta_of_masses(p, q, epsilon) <= delta + 1e-12
    if epsilon > 1e-6:
        assert delta_of_masses(p, q, epsilon - 1e-6) > delta - 1e-12
    merged = epsilon_of_masses(np.append(p[2:], p[:2].sum()), np.append(q[2:], q[:2].sum()), delta)
    assert merged <= epsilon + 1e-9


def test_a_larger_discrete_gaussian_can_be_less_private():
    law = law_of(DiscreteGaussianNoise(0.39))
    assert not law.monotone
    assert law.epsilon(1.0, 0.38, 1e-6) == pytest.approx(10.388, abs=1e-3)
    assert law.epsilon(1.0, 0.39, 1e-6) == pytest.approx(15.634, abs=1e-3)


def test_gaussian_noise_has_a_certificate_of_its_own():
    assert law_of(GaussianNoise(1.0)) is None
