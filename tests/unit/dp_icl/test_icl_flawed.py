"""The broken specimens: wrong by exactly as much as their papers' figures say."""

import math

import numpy as np
import pytest

from dp_icl import EmbeddingSpaceAggregation, PrivateVoting
from dp_icl.calibration import analytic_gaussian_sigma, classical_gaussian_sigma
from dp_icl.flawed import ClassicalPrivateVoting, UnitSensitivityEmbeddingSpaceAggregation

LABELS = ("World", "Sports", "Business", "Science")
RNG = np.random.default_rng(0)


def classical(epsilon):
    return ClassicalPrivateVoting(LABELS, 3, epsilon, 1e-5)


def unit_sensitivity(partitions, epsilon=1.0):
    return UnitSensitivityEmbeddingSpaceAggregation(partitions, epsilon, 1e-5)


@pytest.mark.parametrize(
    ("epsilon", "true"), [(1, 0.75), (2, 1.61), (4, 3.51), (8, 7.91), (16, 18.90), (32, 49.2)]
)
def test_true_epsilon_of_classical_private_voting(epsilon, true):
    assert classical(epsilon).true_epsilon == pytest.approx(true, abs=0.05 if epsilon == 32 else 0.005)


@pytest.mark.parametrize(("epsilon", "true"), [(1, 2.15), (2, 4.39), (4, 9.08), (8, 19.1), (16, 40.9)])
def test_true_epsilon_of_unit_sensitivity_with_one_partition(epsilon, true):
    found = unit_sensitivity(1, epsilon).true_epsilon
    assert found == pytest.approx(true, abs=0.05 if epsilon > 4 else 0.005)


def test_unit_sensitivity_is_broken_at_one_partition_only():
    true = [unit_sensitivity(partitions).true_epsilon for partitions in range(1, 17)]
    assert true[0] > 2
    assert true[1] == pytest.approx(1.0, rel=1e-9)
    assert all(epsilon < 1 for epsilon in true[2:])


def test_classical_private_voting_differs_from_the_correct_one_in_its_noise_alone():
    flawed, correct = classical(16.0), PrivateVoting(LABELS, 3, 16.0, 1e-5)
    assert flawed.sigma == flawed.noise.sigma == classical_gaussian_sigma(16.0, 1e-5, math.sqrt(2))
    assert flawed.sigma < correct.sigma
    assert flawed.claim == correct.claim
    assert flawed.claimed_views == correct.claimed_views
    assert flawed.sensitivity == correct.sensitivity
    answers = ["World", "Sports", "?"]
    assert (flawed.aggregate(answers) == correct.aggregate(answers)).all()


def test_unit_sensitivity_differs_from_the_correct_one_in_its_noise_alone():
    flawed, correct = unit_sensitivity(1, 8.0), EmbeddingSpaceAggregation(1, 8.0, 1e-5)
    assert flawed.sigma == flawed.noise.sigma == analytic_gaussian_sigma(8.0, 1e-5, 1.0)
    assert correct.sigma == pytest.approx(2 * flawed.sigma, rel=1e-15)
    assert flawed.claim == correct.claim
    assert flawed.claimed_views == correct.claimed_views
    assert (flawed.sensitivity, correct.sensitivity) == (1.0, 2.0)
    assert (flawed.aggregate([[3.0, 4.0]]) == correct.aggregate([[3.0, 4.0]])).all()


def test_the_smaller_scale_is_the_one_drawn():
    flawed, correct = classical(16.0), PrivateVoting(LABELS, 3, 16.0, 1e-5)
    rows = np.zeros((10, 4))
    drawn = flawed.privatize(rows, np.random.default_rng(1))
    reference = correct.privatize(rows, np.random.default_rng(1))
    assert drawn == pytest.approx(reference * flawed.sigma / correct.sigma, rel=1e-12)


def test_a_specimen_never_equals_or_reads_like_the_correct_mechanism():
    assert unit_sensitivity(1) != EmbeddingSpaceAggregation(1, 1.0, 1e-5)
    assert EmbeddingSpaceAggregation(1, 1.0, 1e-5) != unit_sensitivity(1)
    assert classical(0.5) != PrivateVoting(LABELS, 3, 0.5, 1e-5, "classical")
    assert repr(unit_sensitivity(1)).startswith("UnitSensitivityEmbeddingSpaceAggregation(partitions=1")
    assert repr(classical(16.0)) == (
        "ClassicalPrivateVoting(labels=('World', 'Sports', 'Business', 'Science'), partitions=3, "
        "epsilon=16.0, delta=1e-05, calibration='classical', seed=0)"
    )


def test_the_specimen_takes_no_other_calibration():
    with pytest.raises(TypeError, match="calibration"):
        ClassicalPrivateVoting(LABELS, 3, 16.0, 1e-5, calibration="analytic")
