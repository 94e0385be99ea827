"""A screen estimates the privacy loss cheaply, on a stream of its own, and says when certification is hopeless."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from pytest_snapaudit.engine import screen as module
from pytest_snapaudit.engine.audit import audit
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.errors import MechanismError, VacuousAudit
from pytest_snapaudit.engine.estimators import gdp_epsilon
from pytest_snapaudit.engine.mechanism import from_callable, from_sampler
from pytest_snapaudit.engine.noise import GaussianNoise
from pytest_snapaudit.engine.result import Verdict
from pytest_snapaudit.engine.screen import screen

PAIR = (0.0, 1.0)
ALPHA = 5e-6  # the share of one of 200 examples at 99.9 %


def laplace(epsilon):
    return from_sampler(lambda d, n, rng: d + rng.laplace(0.0, 1.0 / epsilon, n), name="Laplace")


def screened(mechanism, claim, pair=PAIR, *, n_certify=20_000, alpha=ALPHA, **options):
    return screen(mechanism, pair, PrivacyClaim(*claim), n_certify=n_certify, alpha=alpha, **options)


@dataclass(frozen=True)
class Gaussian:
    sigma: float
    noise_declared: bool = True
    deterministic: ClassVar[bool] = True

    @property
    def noise(self):
        return GaussianNoise(self.sigma) if self.noise_declared else None

    def clean(self, dataset, rng):
        return np.asarray(dataset, dtype=float)

    def privatize(self, clean, rng):
        return clean + self.sigma * rng.standard_normal(clean.shape)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_estimate_is_near_the_true_loss(epsilon):
    estimates = [screened(laplace(epsilon), (epsilon,), seed=seed).estimate for seed in range(20)]
    # 2,000 trials at rates near 1/2 and below: the log-ratio has a standard error of at most 0.15.
    assert abs(np.mean(estimates) - epsilon) < 0.15
    assert np.std(estimates) < 0.2


def test_the_lower_bound_errs_as_often_as_it_may():
    """90 % confidence: at most the 99.9 % binomial point of 200 screens erring with probability 0.1."""
    above = sum(screened(laplace(1.0), (1.0,), seed=seed).epsilon_lower > 1.0 for seed in range(200))
    assert above <= 34


def test_a_declared_gaussian_is_estimated_beyond_the_reach_of_counting():
    truth = gdp_epsilon(1.0 / 0.15, 1e-5)
    found = screened(Gaussian(0.15), (8.0, 1e-5))
    assert truth > math.log(2_000) + 10
    assert found.estimate == pytest.approx(truth, rel=0.1)
    assert found.epsilon_lower < truth
    assert screened(Gaussian(0.15, noise_declared=False), (8.0, 1e-5)).estimate <= math.log(2_001)


@pytest.mark.parametrize(
    ("mechanism", "claim"),
    [
        (from_sampler(lambda d, n, rng: np.full(n, d)), (1.0,)),  # tells the sides apart without fail
        (from_sampler(lambda d, n, rng: rng.random(n)), (1.0,)),  # never
        (from_sampler(lambda d, n, rng: rng.random(n)), (1.0, 0.9)),
        (Gaussian(1.0), (1.0, 0.0)),  # no epsilon is enough
        (Gaussian(1e-9), (1.0, 1e-5)),
        (from_sampler(lambda d, n, rng: [None if d else "x"] * n), (1.0,)),
        (from_callable(lambda d: 1 / d), (1.0,)),
    ],
)
def test_the_estimate_is_finite(mechanism, claim):
    found = screened(mechanism, claim, n_certify=2_000)
    assert 0.0 <= found.estimate <= 1e3
    assert math.isfinite(found.excess)
    assert math.isfinite(found.epsilon_lower)


def test_no_trial_of_the_audit_is_drawn():
    drawn = []

    def sample(d, n, rng):
        values = d + rng.laplace(size=n)
        drawn.append(values)
        return values

    screened(from_sampler(sample), (1.0,), seed=(1, 2))
    of_screen = np.concatenate(drawn)
    drawn.clear()
    audit(from_sampler(sample), PAIR, PrivacyClaim(1.0), n_trials=20_000, seed=(1, 2))
    assert not np.isin(of_screen, np.concatenate(drawn)).any()


def test_the_number_of_trials_is_a_small_part_of_what_certification_counts():
    for n_certify, counted in ((100, 200), (4_000, 1_000), (8_000, 2_000), (400_000, 2_000)):
        assert screened(laplace(1.0), (1.0,), n_certify=n_certify).n_trials == counted


def test_equal_inputs_give_equal_screens():
    assert screened(laplace(1.0), (1.0,), seed=3) == screened(laplace(1.0), (1.0,), seed=3)
    assert screened(laplace(1.0), (1.0,), seed=3) != screened(laplace(1.0), (1.0,), seed=4)


def test_a_loose_mechanism_is_settled_and_the_verdict_is_that_of_certification():
    mechanism, claim = laplace(0.3), PrivacyClaim(3.0)
    found = screened(mechanism, (3.0,), seed=1)
    assert found.settles
    assert 0.3 < found.epsilon_upper < 3.0
    result = found.as_result(confidence=1 - ALPHA, n_certify=20_000, seed=(1,))
    certified = audit(mechanism, PAIR, claim, confidence=1 - ALPHA, n_trials=20_000, seed=1)
    assert result.verdict is certified.verdict is Verdict.CONSISTENT
    assert 0.0 <= result.epsilon_lower < found.epsilon_upper
    assert result.max_detectable_epsilon > claim.epsilon
    assert "certification was skipped" in dict(result.diagnostics)["screen"]
    assert dict(result.alpha_spent) == {"screening": pytest.approx(ALPHA)}


def test_an_event_too_rare_for_the_screen_keeps_certification_from_being_skipped():
    """It is 0.1 % likely on one side: 20,000 trials can refute epsilon = 1 by it, but not epsilon = 3."""

    def leaks_rarely(d, n, rng):
        return np.where(rng.random(n) < 1e-3 * d, 1e9, rng.laplace(size=n))

    small, large = (screened(from_sampler(leaks_rarely), (epsilon,)) for epsilon in (1.0, 3.0))
    assert not small.settles
    assert large.settles
    refuted = audit(from_sampler(leaks_rarely), PAIR, PrivacyClaim(1.0), n_trials=400_000)
    assert refuted.violated
    reach = module._unseen_loss(2_000, 20_000, ALPHA, 0.0)
    # p = 1 - (β/2)^(1/2000) = 0.00379 on one side, q = 1 - α^(1/20000) = 0.00061 on the other
    assert reach == pytest.approx(math.log(0.003793 / 0.0006101), rel=1e-3)


def test_the_upper_bound_holds_for_the_best_event_of_a_known_law():
    """99.9 % confidence, simultaneously: at most the 99.9 % binomial point of 100 screens, which is 2."""
    found = [screened(laplace(2.0), (4.0,), seed=seed).epsilon_upper for seed in range(100)]
    assert sum(upper < 1.99 for upper in found) <= 2  # the loss of every event beyond a threshold is 2
    assert sum(upper < 4.0 for upper in found) > 50


@pytest.mark.parametrize(
    ("mechanism", "claim", "options"),
    [
        (Gaussian(1.0), (6.0, 1e-5), {}),  # its certificate sees further
        (Gaussian(3.0, noise_declared=False), (4.0, 1e-5), {"scope": "noise"}),
        (laplace(0.3), (12.0,), {}),  # beyond certification: INCONCLUSIVE, not settled
        (laplace(0.3), (1.0,), {}),  # a rarer event could still be certified
    ],
)
def test_where_certification_sees_further_the_bound_is_infinite(mechanism, claim, options):
    found = screened(mechanism, claim, **options)
    assert found.epsilon_upper == math.inf
    assert not found.settles


def test_what_an_audit_refuses_a_screen_refuses():
    with pytest.raises(VacuousAudit, match="equal"):
        screened(Gaussian(1.0), (1.0, 1e-5), (0.0, -0.0 + 0.0))
    with pytest.raises(MechanismError, match="wiring mistake"):
        screened(from_callable(lambda d: {}["absent"]), (1.0,))
    with pytest.raises(ValueError, match="n_certify must be an integer of at least 100"):
        screened(laplace(1.0), (1.0,), n_certify=10)
