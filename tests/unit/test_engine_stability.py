"""How often a verdict would flip: by repetition, and predicted from one result."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from pytest_snapaudit import GaussianNoise, PrivacyClaim, audit, from_sampler
from pytest_snapaudit.engine.stability import VerdictStability, predicted_stability, verdict_stability

CLAIM, PAIR = PrivacyClaim(1.0), (0.0, 1.0)


def laplace(scale):
    return from_sampler(lambda exact, n, rng: exact + rng.laplace(0, scale, n))


def secure(scale):
    """Laplace noise that ignores its seed."""
    own = np.random.default_rng()
    return from_sampler(lambda exact, n, rng: exact + own.laplace(0, scale, n))


@pytest.mark.parametrize(("scale", "violations"), [(0.5, 6), (2.0, 0)])
def test_clear_verdicts_repeat_even_with_secure_noise(scale, violations):
    found = verdict_stability(secure(scale), PAIR, CLAIM, repeats=6, n_trials=6_000)
    assert (found.repeats, found.violations, found.flips) == (6, violations, 0.0)
    assert len(found.results) == 6


def test_a_borderline_verdict_flips():
    found = verdict_stability(laplace(0.93), PAIR, CLAIM, repeats=40, n_trials=20_000, seed=3)
    low, high = found.bounds
    assert 0 < found.violations < 40
    assert 0.0 < low < found.rate < high < 1.0
    assert found.flips == pytest.approx(2 * found.rate * (1 - found.rate))
    assert len({result.seed for result in found.results}) == 40


def test_the_runs_repeat_with_their_seed():
    first, again, other = (
        verdict_stability(laplace(0.93), PAIR, CLAIM, repeats=3, n_trials=1_000, seed=seed)
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first.results != other.results


def test_bounds_are_those_of_clopper_and_pearson():
    exact = binomtest(7, 40).proportion_ci(0.95, method="exact")
    assert VerdictStability(40, 7).bounds == pytest.approx((exact.low, exact.high))


def test_in_words():
    assert str(VerdictStability(40, 10)) == (
        "10 of 40 runs refute the claim (95% bounds 0.13 to 0.41); two runs disagree with probability 0.38"
    )


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_predictions_of_clear_verdicts(scale):
    result = audit(laplace(scale), PAIR, CLAIM, n_trials=20_000)
    predicted = predicted_stability(result, n_trials=20_000, repeats=200)
    assert predicted.results == ()
    assert predicted.rate == (1.0 if scale < 1 else 0.0)


def test_predictions_agree_with_repetition_on_average():
    """Mean of predictions from 20 runs, against 60 runs: the binomial bound of those, and 0.25 for unknown rates."""
    runs = verdict_stability(laplace(0.93), PAIR, CLAIM, repeats=60, n_trials=20_000, seed=11)
    predicted = np.mean(
        [predicted_stability(r, n_trials=20_000, repeats=100).rate for r in runs.results[:20]]
    )
    low, high = binom.interval(0.999, 60, runs.rate)
    assert low / 60 - 0.25 < predicted < high / 60 + 0.25


def test_more_trials_settle_a_borderline_verdict():
    result = audit(laplace(0.93), PAIR, CLAIM, n_trials=20_000, seed=2)
    few = predicted_stability(result, n_trials=5_000, repeats=200).rate
    many = predicted_stability(result, n_trials=2_000_000, repeats=200).rate
    assert few < 0.5
    assert many > few + 0.3


def test_the_trials_of_the_result_are_the_default():
    result = audit(laplace(0.93), PAIR, CLAIM, n_trials=3_000)
    assert predicted_stability(result, repeats=100) == predicted_stability(
        result, n_trials=result.n_trials, repeats=100
    )


def test_a_betting_audit_without_event_counts_has_no_rates():
    result = audit(laplace(1.0), PAIR, CLAIM, n_trials=2_000, correction="betting")
    with pytest.raises(ValueError, match=r'needs event counts .* audit with correction="auto"'):
        predicted_stability(result)


def test_a_bound_that_rests_on_a_declaration_is_not_predicted():
    @dataclasses.dataclass(frozen=True)
    class Gaussian:
        deterministic, claimed_views, noise = True, frozenset({"black-box", "white-box"}), GaussianNoise(0.2)

        def clean(self, exact, rng):
            return exact

        def privatize(self, clean, rng):
            return clean + rng.normal(0, 0.2, clean.shape)

    result = audit(Gaussian(), PAIR, PrivacyClaim(15.0, 1e-5), n_trials=20_000)
    assert result.estimator not in ("betting", "event counts")
    with pytest.raises(ValueError, match="or repeat it with verdict_stability"):
        predicted_stability(result)


def test_counts_are_validated():
    result = audit(laplace(2.0), PAIR, CLAIM, n_trials=1_000)
    with pytest.raises(ValueError, match="repeats must be an integer of at least 100, got 5"):
        predicted_stability(result, repeats=5)
    with pytest.raises(ValueError, match="n_trials must be an integer of at least 100, got 0"):
        predicted_stability(result, n_trials=0)
    with pytest.raises(ValueError, match="repeats must be an integer of at least 2, got 1"):
        verdict_stability(laplace(2.0), PAIR, CLAIM, repeats=1)
