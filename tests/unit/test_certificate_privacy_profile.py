"""Privacy profiles: bands that hold everywhere at once, and come close."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest
from scipy.stats import norm

from pytest_snapaudit.engine.estimators import gaussian_delta
from pytest_snapaudit.engine.mechanism import from_sampler
from pytest_snapaudit.engine.privacy_profile import privacy_profile, profile_of_scores, thresholds_for

EPSILONS = (0.0, 0.5, 1.0, 2.0, 3.0)
EXACT = np.array([gaussian_delta(1.0, epsilon) for epsilon in EPSILONS])
GAUSSIAN = from_sampler(lambda d, n, rng: d + rng.normal(0, 1, n), name="Gaussian")


def trade_off(rates):
    return norm.cdf(norm.isf(rates) - 1.0)


@pytest.mark.parametrize("band", ["dkw", "binomial"])
def test_a_gaussian_profile_lies_just_below_the_exact_one(band):
    profile = privacy_profile(GAUSSIAN, (0.0, 1.0), epsilons=EPSILONS, band=band)
    found = np.array(profile.delta_lower)
    assert np.all(found <= EXACT)
    assert found[:3] == pytest.approx(EXACT[:3], abs=0.015)
    rates = np.linspace(0.0, 1.0, 101)
    upper = np.interp(rates, profile.false_positive_rates, profile.false_negative_rates)
    assert np.all(upper >= trade_off(rates))
    assert np.max(upper - trade_off(rates)) < (0.04 if band == "dkw" else 0.02)
    assert profile.trials == 100_000
    assert (profile.name, profile.view, profile.score) == ("Gaussian", "black-box", "output")
    assert profile.epsilon_lower(1e-3) in EPSILONS
    assert json.loads(json.dumps(asdict(profile)))["band"] == band


def test_the_binomial_band_reaches_further_into_the_tail():
    dkw, binomial = (
        privacy_profile(GAUSSIAN, (0.0, 1.0), epsilons=EPSILONS, band=band).delta_lower
        for band in ("dkw", "binomial")
    )
    assert dkw[3] == 0.0
    assert binomial[3] > 0.7 * EXACT[3]


@pytest.mark.parametrize("band", ["dkw", "binomial"])
def test_all_bands_hold_at_once_as_often_as_stated(band):
    """200 profiles of a Gaussian pair at 80 %: at most 58 are wrong anywhere, the 99.9 % binomial point."""
    rng, epsilons, wrong = np.random.default_rng(2), np.linspace(0.0, 4.0, 17), 0
    exact = np.array([gaussian_delta(1.0, epsilon) for epsilon in epsilons])
    rates = np.linspace(1e-6, 1.0 - 1e-6, 200)
    for _ in range(200):
        a, b = rng.normal(0, 1, 1_000), rng.normal(1, 1, 1_000)
        thresholds = thresholds_for(rng.normal(0, 1, 1_000), rng.normal(1, 1, 1_000))
        profile = profile_of_scores(a, b, epsilons=epsilons, confidence=0.8, band=band, thresholds=thresholds)
        upper = np.interp(rates, profile.false_positive_rates, profile.false_negative_rates)
        wrong += bool(
            np.any(np.array(profile.delta_lower) > exact) or np.any(upper < trade_off(rates) - 1e-9)
        )
    assert wrong <= 58


def test_the_trade_off_curve_is_convex_and_ends_at_the_corners():
    profile = privacy_profile(GAUSSIAN, (0.0, 1.0), n_trials=5_000)
    x, y = np.array(profile.false_positive_rates), np.array(profile.false_negative_rates)
    assert (x[0], x[-1], y[-1]) == (0.0, 1.0, 0.0)
    slopes = np.diff(y) / np.diff(x)
    assert np.all(np.diff(slopes) >= -1e-12)
    assert np.all(y <= 1.0 - x + 1e-12)


def test_equal_laws_show_nothing():
    rng = np.random.default_rng(4)
    profile = profile_of_scores(rng.normal(size=4_000), rng.normal(size=4_000), confidence=0.999)
    assert max(profile.delta_lower) == 0.0
    assert profile.epsilon_lower(0.0) == 0.0
    assert profile.false_positive_rates == (0.0, 1.0)
    assert profile.trials == 2_000


def test_a_score_of_one_s_own_and_missing_values():
    def sampler(dataset, n, rng):
        out = rng.normal(0, 1, (n, 3))
        out[rng.random(n) < 0.2 * dataset, 1] = np.nan
        return out

    profile = privacy_profile(
        from_sampler(sampler), (0.0, 1.0), epsilons=[1.0, 3.0], n_trials=5_000, score=lambda x: x[:, 1]
    )
    assert 0.15 < profile.delta_lower[0] <= 0.2
    assert 0.1 < profile.delta_lower[1] <= 0.2


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        (
            {"epsilons": []},
            ValueError,
            r"epsilons must be a sequence of finite numbers of at least 0, got \[\]",
        ),
        ({"epsilons": [-1.0]}, ValueError, r"epsilons must be .* got \[-1\.0\]"),
        ({"confidence": 1.0}, ValueError, r"confidence must be a number in \(0, 1\), got 1\.0"),
        ({"n_trials": 5}, ValueError, r"n_trials must be an integer of at least 100, got 5"),
        ({"band": "normal"}, ValueError, r"band must be one of 'dkw', 'binomial', got 'normal'"),
        ({"view": "grey-box"}, ValueError, r'view must be "black-box" or "white-box", got \'grey-box\''),
        ({"score": 3}, TypeError, r"attacks must be a mapping of name to function"),
    ],
)
def test_bad_arguments(options, error, words):
    with pytest.raises(error, match=words):
        privacy_profile(GAUSSIAN, (0.0, 1.0), **options)


def test_bad_scores():
    with pytest.raises(ValueError, match=r"equal length, at least 100, got shapes \(100,\) and \(101,\)"):
        profile_of_scores(np.zeros(100), np.zeros(101))


def test_a_few_random_clean_outputs_give_no_independent_draws():
    class Mechanism:
        def clean(self, dataset, rng):
            return rng.normal(dataset, 1)

        def privatize(self, clean, rng):
            return clean + rng.normal(0, 1, clean.shape)

    with pytest.raises(ValueError, match=r"give clean_batch, or use scope=.noise"):
        privacy_profile(Mechanism(), (0.0, 1.0), n_snapshots=100)
    profile = privacy_profile(Mechanism(), (0.0, 1.0), scope="noise", n_trials=1_000)
    assert profile.view == "black-box"
