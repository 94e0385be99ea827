"""Mechanisms go to check as they are: a value is the dataset, and their own epsilon and delta are the claim."""

import numpy as np
import pytest
from diffprivlib import mechanisms as dp
from diffprivlib.mechanisms.transforms import RoundedInteger

from pytest_snapaudit import privacy_audit
from pytest_snapaudit.adapters.diffprivlib import from_builder

pytestmark = privacy_audit()
UNIT = {"sensitivity": 1}
BOUNDED = {"lower": 0, "upper": 3, **UNIT}

CONTINUOUS = [
    dp.Laplace(epsilon=1, **UNIT),
    dp.LaplaceTruncated(epsilon=1, **BOUNDED),
    dp.LaplaceFolded(epsilon=1, **BOUNDED),
    dp.LaplaceBoundedDomain(epsilon=1, **BOUNDED),
    dp.LaplaceBoundedNoise(epsilon=1, delta=0.1, **UNIT),
    dp.Snapping(epsilon=1, **BOUNDED),
    dp.Staircase(epsilon=1, **UNIT),
    dp.Uniform(delta=0.2, **UNIT),
    dp.Gaussian(epsilon=0.9, delta=1e-3, **UNIT),
    dp.GaussianAnalytic(epsilon=2, delta=1e-3, **UNIT),
]
DISCRETE = [
    dp.Geometric(epsilon=1, **UNIT),
    dp.GeometricTruncated(epsilon=1, **BOUNDED),
    dp.GaussianDiscrete(epsilon=1, delta=1e-2, **UNIT),
]


def named(mechanism):
    return type(mechanism).__name__


@pytest.mark.parametrize("mechanism", CONTINUOUS, ids=named)
def test_continuous_noise(privacy_auditor, mechanism):
    privacy_auditor.check(mechanism, (0.0, 1.0), stop_early=True)


@pytest.mark.parametrize("mechanism", DISCRETE, ids=named)
def test_discrete_noise(privacy_auditor, mechanism):
    privacy_auditor.check(mechanism, (0, 1), stop_early=True)


def test_folded_discrete_noise(privacy_auditor):
    folded = dp.GeometricFolded(epsilon=1, **BOUNDED)
    privacy_auditor.check(folded, (0, 1), n_trials=6_000, stop_early=True)


def test_randomised_response(privacy_auditor):
    privacy_auditor.check(dp.Binary(epsilon=1, value0="no", value1="yes"), ("no", "yes"), stop_early=True)


@pytest.mark.parametrize("selection", [dp.Exponential, dp.PermuteAndFlip])
def test_selection(privacy_auditor, selection):
    """The utilities are the dataset, so a mechanism is built for each."""

    def choose(utilities):
        return selection(epsilon=1, sensitivity=1, utility=utilities)

    privacy_auditor.check(from_builder(choose, epsilon=1), ([3, 5], [4, 4]), stop_early=True)


def test_transformed_to_whole_numbers(privacy_auditor):
    rounded = RoundedInteger(dp.Laplace(epsilon=1, sensitivity=1))
    privacy_auditor.check(rounded, (0, 1), stop_early=True)


def test_with_a_random_state_the_verdict_repeats(privacy_auditor):
    seeded = dp.Laplace(epsilon=1, sensitivity=1, random_state=np.random.RandomState(5))
    result = privacy_auditor.check(seeded, (0.0, 1.0), n_trials=2_000)
    assert dict(result.diagnostics)["reproducibility"] == "two draws from one seed are equal"


def test_secure_noise_is_reported(privacy_auditor):
    result = privacy_auditor.check(dp.Laplace(epsilon=1, sensitivity=1), (0.0, 1.0), n_trials=2_000)
    assert "borderline verdict may change from run to run" in dict(result.diagnostics)["reproducibility"]
