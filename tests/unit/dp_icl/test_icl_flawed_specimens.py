"""Specimens of voting and experts: each wrong in one thing, by exactly as much as it says."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import dp_icl.flawed
from dp_icl import EmbeddingSpaceAggregation, PrivateVoting, ProductOfExperts, selection_epsilon
from dp_icl.calibration import analytic_gaussian_sigma, classical_gaussian_sigma, gaussian_epsilon
from dp_icl.flawed import (
    HalfScaleProductOfExperts,
    LeakingTieBreakPrivateVoting,
    OneLabelNoisePrivateVoting,
    PublishedEmbeddingSpaceAggregation,
    ReusedNoisePrivateVoting,
    UnclippedProductOfExperts,
    UnitSensitivityPrivateVoting,
)
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.mechanism import Mechanism, mechanism_name

LABELS = ("yes", "no")


def drawn(mechanism, clean, n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    noisy = mechanism.privatize(np.broadcast_to(clean, (n, *np.shape(clean))), rng)
    return noisy, mechanism.release(noisy, rng)


def test_every_specimen_states_its_true_epsilon_and_its_fault():
    assert len(dp_icl.flawed.__all__) == 12
    for name in dp_icl.flawed.__all__:
        specimen = getattr(dp_icl.flawed, name)
        assert isinstance(specimen.true_epsilon, property)
        assert specimen.__doc__
        assert specimen.true_epsilon.__doc__


@pytest.mark.parametrize(("epsilon", "true"), [(0.1, 0.15), (1, 1.47), (2, 2.95), (8, 12.26), (16, 25.28)])
def test_true_epsilon_of_voting_calibrated_for_sensitivity_1(epsilon, true):
    specimen = UnitSensitivityPrivateVoting(LABELS, 3, epsilon, 1e-5)
    assert specimen.sigma == specimen.noise.sigma == analytic_gaussian_sigma(epsilon, 1e-5, 1.0)
    assert specimen.true_epsilon == gaussian_epsilon(specimen.sigma, 1e-5, math.sqrt(2))
    assert specimen.true_epsilon == pytest.approx(true, abs=0.005)


def test_it_is_broken_for_added_and_removed_exemplars_too():
    specimen = UnitSensitivityPrivateVoting(
        LABELS, 1, 1.0, 1e-5, model=lambda part: "no" if part else "yes", adjacency="add-remove"
    )
    rng = np.random.default_rng(0)
    moved = specimen.clean(["a"], rng) - specimen.clean([], rng)
    assert np.linalg.norm(moved) == math.sqrt(2) > specimen.sensitivity == 1.0


def test_a_tie_is_settled_before_the_noise():
    specimen, correct = (kind(LABELS, 2, 1.0, 1e-5) for kind in (LeakingTieBreakPrivateVoting, PrivateVoting))
    noisy, released = drawn(specimen, [1, 1])
    assert (noisy == [1.0, 1.0]).all()
    assert not released.any()
    _, released = drawn(correct, [1, 1])
    assert 0.45 < released.mean() < 0.55
    for counts in ([0, 2], [2, 0]):
        assert (drawn(specimen, counts)[0] == drawn(correct, counts)[0]).all()
    assert specimen.true_epsilon == math.inf


def test_no_vote_at_all_is_a_tie():
    specimen = LeakingTieBreakPrivateVoting(LABELS, 1, 1.0, 1e-5)
    assert not drawn(specimen, specimen.aggregate(["?"]))[1].any()
    assert drawn(specimen, specimen.aggregate(["yes"]))[1].any()


def test_only_the_first_label_is_noisy():
    specimen = OneLabelNoisePrivateVoting(("a", "b", "c"), 3, 1.0, 1e-5)
    noisy, _ = drawn(specimen, [0, 2, 1])
    assert (noisy[:, 1:] == [2.0, 1.0]).all()
    assert stats.kstest(noisy[:, 0] / specimen.sigma, "norm").pvalue > 1e-6
    released = [set(drawn(specimen, counts)[1].tolist()) for counts in ([0, 2, 1], [0, 1, 2])]
    assert released == [{0, 1}, {0, 2}]
    assert specimen.true_epsilon == math.inf


def test_noise_is_reused_across_queries_and_not_across_trials():
    specimen = ReusedNoisePrivateVoting(LABELS, 3, 1.0, 1e-5)
    clean = specimen.aggregate([["yes", "no", "no"], ["no", "no", "no"]])
    assert clean.tolist() == [[1, 2], [0, 3]]
    noisy, released = drawn(specimen, clean)
    assert released.shape == (20_000, 2)
    assert noisy[:, 0] - noisy[:, 1] == pytest.approx(np.broadcast_to([1.0, -1.0], (20_000, 2)), abs=1e-9)
    assert stats.kstest((noisy[:, 0, 0] - 1) / specimen.sigma, "norm").pvalue > 1e-6
    assert specimen.sigma == analytic_gaussian_sigma(1.0, 1e-5, 2.0)
    assert specimen.true_epsilon == math.inf
    same = drawn(specimen, clean[[0, 0]])[1]
    assert (same[:, 0] == same[:, 1]).all()
    assert (released[:, 0] != released[:, 1]).any()


@pytest.mark.parametrize(
    ("labels", "experts", "epsilon"), [(2, 1, 1.0), (2, 2, 1.0), (3, 2, 2.0), (2, 4, 0.7), (3, 1, 1.5)]
)
def test_true_epsilon_of_half_the_scale_is_that_of_all_extreme_neighbours(labels, experts, epsilon):
    specimen = HalfScaleProductOfExperts(tuple("abcd"[:labels]), epsilon, 2.0)
    rows = [np.array(row) for row in itertools.product([0.0, -2.0], repeat=labels)]
    worst = max(
        selection_epsilon(sum(others) + before, sum(others) + after, specimen.scale)
        for *others, before, after in itertools.product(rows, repeat=experts + 1)
    )
    assert specimen.true_epsilon_of(experts) == pytest.approx(worst, rel=1e-12)
    assert worst < specimen.true_epsilon == 2 * epsilon


def test_half_the_scale_with_one_expert_and_two_labels_is_no_fault():
    specimen = HalfScaleProductOfExperts(LABELS, 3.0, 2.0)
    assert specimen.true_epsilon_of(1) == pytest.approx(3.0, rel=1e-12)
    assert specimen.true_epsilon_of(2) > 1.25 * 3.0
    assert specimen.true_epsilon_of(1000) == pytest.approx(6.0, rel=1e-12)
    assert specimen.scale == specimen.noise.scale == ProductOfExperts(LABELS, 3.0, 2.0).scale / 2


@pytest.mark.parametrize("experts", [0, -1, 1.0, True, None])
def test_the_number_of_experts_is_checked(experts):
    with pytest.raises(ValueError, match="experts must be an integer of at least 1"):
        HalfScaleProductOfExperts(LABELS, 1.0, 2.0).true_epsilon_of(experts)


def test_without_clipping_one_expert_moves_a_utility_by_anything():
    specimen, correct = (kind(LABELS, 1.0, 2.0) for kind in (UnclippedProductOfExperts, ProductOfExperts))
    said = [[-50.0, -0.5], [math.nan, 3.0]]
    assert specimen.aggregate(said).tolist() == [-math.inf, -0.5]
    assert correct.aggregate(said).tolist() == [-4.0, -0.5]
    assert specimen.scale == correct.scale
    before, after = (specimen.aggregate([row]) for row in ([-50.0, 0.0], [0.0, -50.0]))
    assert selection_epsilon(before, after, specimen.scale) == pytest.approx(12.5, rel=1e-5)
    assert specimen.true_epsilon == math.inf


@pytest.mark.parametrize(("epsilon", "true"), [(1, 1.00), (2, 2.16), (4, 4.75), (8, 10.91), (16, 26.83)])
def test_the_published_embedding_aggregation_at_the_distance_of_table_9(epsilon, true):
    specimen = PublishedEmbeddingSpaceAggregation(1, epsilon, 1e-5)
    assert specimen.sigma == classical_gaussian_sigma(epsilon, 1e-5, 1.0)
    assert gaussian_epsilon(specimen.sigma, 1e-5, 1.30) == pytest.approx(true, abs=0.006)
    assert specimen.true_epsilon == gaussian_epsilon(specimen.sigma, 1e-5, 2.0)


CLAIMS = [
    (UnitSensitivityPrivateVoting, PrivateVoting, (LABELS, 3, 2.0, 1e-5)),
    (LeakingTieBreakPrivateVoting, PrivateVoting, (LABELS, 3, 2.0, 1e-5)),
    (OneLabelNoisePrivateVoting, PrivateVoting, (LABELS, 3, 2.0, 1e-5)),
    (ReusedNoisePrivateVoting, PrivateVoting, (LABELS, 3, 2.0, 1e-5)),
    (HalfScaleProductOfExperts, ProductOfExperts, (LABELS, 2.0, 4.0)),
    (UnclippedProductOfExperts, ProductOfExperts, (LABELS, 2.0, 4.0)),
    (PublishedEmbeddingSpaceAggregation, EmbeddingSpaceAggregation, (1, 2.0, 1e-5)),
]


@pytest.mark.parametrize(("kind", "correct", "arguments"), CLAIMS, ids=[kind.__name__ for kind, *_ in CLAIMS])
def test_a_specimen_claims_what_the_correct_mechanism_claims(kind, correct, arguments):
    specimen, original = kind(*arguments), correct(*arguments)
    assert isinstance(specimen, Mechanism)
    assert specimen.claim == original.claim
    assert specimen.claimed_views == original.claimed_views
    assert specimen.true_epsilon > 1.25 * PrivacyClaim(*specimen.claim).epsilon
    assert specimen != original
    assert original != specimen
    assert mechanism_name(specimen).startswith(kind.__name__)


@pytest.mark.parametrize("queries", [1, 0, 2.0, True, None])
def test_noise_cannot_be_reused_in_less_than_two_queries(queries):
    with pytest.raises(ValueError, match="queries must be an integer of at least 2"):
        ReusedNoisePrivateVoting(LABELS, 3, 1.0, 1e-5, queries=queries)


def test_answers_and_counts_of_other_shapes_are_refused():
    specimen = ReusedNoisePrivateVoting(LABELS, 3, 1.0, 1e-5, queries=3)
    with pytest.raises(ValueError, match=r"answers must have shape \(3, 3\)"):
        specimen.aggregate([["yes", "no", "no"]] * 2)
    with pytest.raises(ValueError, match=r"clean_rows must have shape \(n, 3, 2\)"):
        specimen.privatize(np.zeros((4, 2)), np.random.default_rng(0))
    assert repr(specimen).endswith("seed=0, queries=3)")
