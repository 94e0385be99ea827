"""Certificates that rest on declared noise, and mechanisms that ask to be held to their declaration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from pytest_snapaudit.engine.audit import audit
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.declaration import difference_from
from pytest_snapaudit.engine.errors import DeclarationMismatch
from pytest_snapaudit.engine.estimators import gdp_epsilon
from pytest_snapaudit.engine.noise import (
    DensityNoise,
    DiscreteLaplaceNoise,
    ExponentialNoise,
    GaussianNoise,
    GumbelNoise,
    LaplaceNoise,
)
from pytest_snapaudit.engine.result import Verdict

CLAIM = PrivacyClaim(1.0, 1e-5)


class Additive:
    """``noise`` as declared, ``draw`` as it is."""

    deterministic = True

    def __init__(self, noise, draw, gap=1.0, **members):
        self.noise, self.draw, self.gap = noise, draw, gap
        for name, member in members.items():
            setattr(self, name, member)

    def clean(self, dataset, rng):
        return np.array([dataset * self.gap, 0.0])

    def privatize(self, clean, rng):
        return clean + self.draw(rng, clean.shape)


def gaussian(sigma):
    return lambda rng, shape: sigma * rng.standard_normal(shape)


def laplace(scale):
    return lambda rng, shape: rng.laplace(0.0, scale, shape)


def run(mechanism: Any, **options: Any):
    return audit(mechanism, (0.0, 1.0), CLAIM, **{"n_trials": 20_000, **options})


def test_a_declared_gaussian_is_certified_close_to_its_epsilon():
    result = run(Additive(GaussianNoise(5.0), gaussian(5.0)))
    true = gdp_epsilon(1 / 5.0, CLAIM.delta)
    assert 0.96 * true < result.epsilon_lower < true
    assert result.verdict is Verdict.CONSISTENT
    assert result.max_detectable_epsilon == np.inf
    assert "known shift" in result.views[0].conditional_on


def test_the_certificate_sees_the_noise_and_not_the_declaration():
    result = run(Additive(GaussianNoise(5.0), gaussian(2.0)))
    assert result.violated
    assert result.epsilon_lower < gdp_epsilon(1 / 2.0, CLAIM.delta)


@pytest.mark.parametrize(
    ("mechanism", "refusal"),
    [
        (Additive(GaussianNoise(5.0), laplace(4.0)), "the noise is not Gaussian"),
        (
            Additive(GaussianNoise(5.0), gaussian(5.0), deterministic=False),
            "random or not declared deterministic",
        ),
        (
            Additive(GaussianNoise(5.0), gaussian(5.0), release=lambda noisy, rng: noisy.sum(axis=1)),
            "the claim does not cover the white-box view",
        ),
        (Additive(GaussianNoise(5.0), lambda rng, shape: 5.0 * rng.standard_normal((shape[0], 1))), None),
        (Additive(GaussianNoise(5.0), gaussian(5.0), gap=np.inf), "clean outputs are not finite numbers"),
    ],
)
def test_a_certificate_that_does_not_apply_says_why(mechanism, refusal):
    result = run(mechanism, n_snapshots=100)
    assert result.estimator != "Gaussian trade-off" or refusal is None
    if refusal is not None:
        assert refusal in "; ".join(result.views[0].refusals)


def test_too_few_draws_give_no_certificate():
    result = run(Additive(GaussianNoise(5.0), gaussian(5.0)), n_trials=4000)
    assert "4,000 white-box draws per side are too few to test the shape" in result.views[0].refusals[0]


def test_a_certificate_of_the_noise_stage_says_nothing_about_what_is_released():
    """The release is constant: nothing leaks, whatever the noise stage shows."""
    mechanism = Additive(
        GaussianNoise(5.0),
        gaussian(5.0),
        release=lambda noisy, rng: np.zeros(len(noisy)),
        claimed_views=frozenset({"white-box", "black-box"}),
    )
    white, black = run(mechanism).views
    assert white.epsilon_lower > 0.5
    assert black.epsilon_lower == 0.0
    assert black.conditional_on == ""


def test_a_certificate_of_almost_nothing_still_decides_a_large_claim():
    mechanism = Additive(GaussianNoise(1e6), gaussian(1e6))
    result = audit(mechanism, (0.0, 1.0), PrivacyClaim(16.0, 1e-5), n_trials=20_000)
    assert result.verdict is Verdict.CONSISTENT
    assert result.epsilon_lower == 0.0
    assert "the declared GaussianNoise" in result.views[0].conditional_on


def test_gaussian_rates_wait_for_the_test_of_the_declaration():
    """A gross violation is seen at the first look, with too few draws to test the shape."""
    result = run(Additive(GaussianNoise(0.2), gaussian(0.2)), estimator="gdp")
    assert result.violated
    assert result.n_trials >= 5000
    assert result.estimator == "Gaussian trade-off of event rates"
    assert result.views[0].conditional_on == "the declared GaussianNoise(sigma=0.2, enforced=False)"


@pytest.mark.parametrize("noise", [None, GaussianNoise(0.2)])
def test_gaussian_rates_of_other_noise_are_not_read_as_such(noise):
    result = run(Additive(noise, laplace(0.2)), estimator="gdp")
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.epsilon_lower == 0.0
    assert 'estimator="gdp" does not apply' in result.reason


TRUE = {
    "Gaussian": (GaussianNoise(5.0, True), gaussian(5.0)),
    "Laplace": (LaplaceNoise(5.0, True), laplace(5.0)),
    "Gaussian in single precision": (
        GaussianNoise(5.0, True),
        lambda rng, shape: 5 * rng.standard_normal(shape, dtype=np.float32),
    ),
}


@pytest.mark.parametrize("which", TRUE)
@pytest.mark.parametrize("n_trials", [500, 20_000])
@pytest.mark.parametrize("deterministic", [True, False])
def test_a_true_declaration_is_upheld_whatever_the_number_of_trials(which, n_trials, deterministic):
    mechanism = Additive(*TRUE[which], deterministic=deterministic)
    result = run(mechanism, n_trials=n_trials, n_snapshots=100)
    assert result.verdict is Verdict.CONSISTENT
    assert dict(result.alpha_spent)["declaration"] == pytest.approx(1e-4)


def test_true_declarations_are_rejected_no_more_often_than_their_share_of_alpha():
    """40 audits at a share of 0.05 each; more rejections than 1e-6 of a binomial law would be an error."""
    rejected = 0
    for seed in range(40):
        try:
            run(Additive(*TRUE["Gaussian"]), n_trials=100, confidence=0.5, seed=seed)
        except DeclarationMismatch:
            rejected += 1
    assert rejected <= binom.ppf(1 - 1e-6, 40, 0.05)


@pytest.mark.parametrize(
    ("noise", "draw", "reason"),
    [
        (GaussianNoise(5.0, True), gaussian(5.3), "the observed scale on the reference side is 5.3"),
        (GaussianNoise(5.0, True), gaussian(4.7), "the observed scale on the reference side is 4.7"),
        (LaplaceNoise(5.0, True), laplace(5.4), "the observed scale on the reference side is 5.4"),
        (LaplaceNoise(5.0, True), gaussian(5.0), "the noise is not Laplace"),
        (GaussianNoise(5.0, True), laplace(5.0 / 2**0.5), "the noise is not Gaussian"),
        (
            GaussianNoise(5.0, True),
            lambda rng, shape: 5 * rng.standard_t(20, shape),
            "the noise is not Gaussian",
        ),
        (
            GaussianNoise(5.0, True),
            lambda rng, shape: np.round(5 * rng.standard_normal(shape)),
            "not Gaussian",
        ),
        (
            GaussianNoise(5.0, True),
            lambda rng, shape: rng.standard_normal((*shape, 2))[..., :1],
            "no noise is seen",
        ),
    ],
)
def test_a_false_declaration_is_a_mismatch_where_it_is_enforced(noise, draw, reason):
    mechanism = Additive(noise, draw)
    if "no noise is seen" in reason:
        mechanism.privatize = lambda clean, rng: rng.standard_normal((len(clean), 1)) * 5
    with pytest.raises(DeclarationMismatch, match=reason) as caught:
        run(mechanism, n_trials=2000)
    assert f"declares {noise} and asks to be held to it" in str(caught.value)
    mechanism.noise = type(noise)(5.0)
    assert run(mechanism, n_trials=2000).verdict is Verdict.CONSISTENT


def geometric(b):
    chance = -np.expm1(-1 / b)
    return lambda rng, n: (rng.geometric(chance, n) - rng.geometric(chance, n)).astype(float)


def logistic_log_density(z):
    return -np.abs(z) - 2 * np.log1p(np.exp(-np.abs(z)))


OTHERS = {
    "discrete Laplace": (DiscreteLaplaceNoise(5.0), geometric(5.0), geometric(5.3)),
    "Gumbel": (GumbelNoise(5.0), lambda rng, n: rng.gumbel(0, 5, n), lambda rng, n: -rng.gumbel(0, 5, n)),
    "exponential": (
        ExponentialNoise(5.0),
        lambda rng, n: rng.exponential(5, n),
        lambda rng, n: rng.exponential(5, n) - 0.01,
    ),
    "a density": (
        DensityNoise(logistic_log_density, scale=5.0),
        lambda rng, n: rng.logistic(0, 5, n),
        lambda rng, n: rng.logistic(0, 4.7, n),
    ),
}


@pytest.mark.parametrize("which", OTHERS)
def test_declarations_of_other_laws_are_held_to_as_well(which):
    noise, true, false = OTHERS[which]
    level, kept = 1e-3, 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        kept += difference_from(noise, [true(rng, 50_000) for _ in range(2)], level) == ""
    assert kept >= 9  # all but one of ten: a failure has probability 5e-5
    reason = difference_from(noise, [true(rng, 50_000), false(rng, 50_000)], level)
    assert reason.startswith("the noise on the canary side is not ")


def test_a_violation_is_told_before_a_mismatch():
    assert run(Additive(GaussianNoise(5.0, True), gaussian(0.1))).violated


def test_a_noise_stage_that_differs_between_sides_is_a_mismatch():
    def privatize(clean, rng):
        return clean + (5.0 + 0.5 * clean[0, 0]) * rng.standard_normal(clean.shape)

    mechanism = Additive(GaussianNoise(5.0, True), None, privatize=privatize)
    with pytest.raises(DeclarationMismatch, match=r"the observed scale on the canary side is 5\.[45]"):
        run(mechanism, n_trials=2000)


def test_live_clean_stages_are_held_to_their_declaration_too():
    def clean_batch(dataset, size, rng):
        return np.column_stack([rng.random(size) * dataset, np.zeros(size)])

    for sigma, mismatch in ((5.0, False), (6.0, True)):
        mechanism = Additive(
            GaussianNoise(5.0, True), gaussian(sigma), deterministic=False, clean_batch=clean_batch
        )
        if mismatch:
            with pytest.raises(DeclarationMismatch, match="the observed scale"):
                run(mechanism, n_trials=2000)
        else:
            assert run(mechanism, n_trials=2000).verdict is Verdict.CONSISTENT


def test_labels_have_no_noise_to_be_held_to():
    class Labels(Additive):
        def clean(self, dataset, rng):
            return np.array(["yes" if dataset else "no"])

        def privatize(self, clean, rng):
            return rng.integers(0, 2, len(clean))

    with pytest.raises(
        DeclarationMismatch, match="clean output of the reference side is no array of finite numbers"
    ):
        run(Labels(GaussianNoise(5.0, True), None), n_trials=500)
