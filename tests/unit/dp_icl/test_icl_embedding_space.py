"""Embedding Space Aggregation: the mean, its sensitivity, the noise and the released candidate."""

import dataclasses
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy
from scipy import stats

from dp_icl import EmbeddingSpaceAggregation, GaussianNoise
from dp_icl.calibration import analytic_gaussian_sigma

RNG = np.random.default_rng(0)
DIMENSION = 4

anything = st.floats(width=64, allow_nan=True, allow_infinity=True)
ordinary = st.floats(-10, 10)


def aggregation(**changes):
    return EmbeddingSpaceAggregation(**{"partitions": 1, "epsilon": 1.0, "delta": 1e-5} | changes)


def embedding_matrix(partitions, elements=None):
    return st_numpy.arrays(
        np.float64, (partitions, DIMENSION), elements=anything if elements is None else elements
    )


def test_unit_embeddings_are_averaged():
    mean = aggregation(partitions=2).aggregate([[1.0, 0.0], [0.0, -1.0]])
    assert mean.tolist() == [0.5, -0.5]
    assert mean.dtype == np.float64


def test_one_partition_is_its_own_mean():
    assert aggregation().aggregate([[0.6, 0.8]]) == pytest.approx([0.6, 0.8], rel=1e-15)


@pytest.mark.parametrize("length", [1e-320, 1e-200, 0.5, 3.0, 1e200, 1e308])
def test_embeddings_are_scaled_to_unit_length(length):
    mean = aggregation(partitions=2).aggregate([[length, 0.0], [length, length]])
    assert mean == pytest.approx([(1 + math.sqrt(0.5)) / 2, math.sqrt(0.5) / 2], rel=1e-15)


def test_integers_and_single_precision_are_numbers():
    expected = [0.6, 0.8]
    assert aggregation().aggregate([[3, 4]]) == pytest.approx(expected, rel=1e-15)
    assert aggregation().aggregate(np.array([[3, 4]], np.float32)) == pytest.approx(expected, rel=1e-15)
    assert aggregation().aggregate(np.array([[-128, 0]], np.int8)).tolist() == [-1.0, 0.0]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "vector",
    [[0.0, 0.0], [math.nan, 1.0], [math.inf, 0.0], [-math.inf, math.nan]],
    ids=["zero", "nan", "infinite", "both"],
)
def test_a_vector_without_a_direction_counts_as_zero(vector):
    assert aggregation(partitions=2).aggregate([[1.0, 0.0], vector]).tolist() == [0.5, 0.0]


@given(data=st.data(), partitions=st.integers(1, 8))
def test_replacing_one_embedding_moves_the_mean_by_at_most_the_sensitivity(data, partitions):
    mechanism = aggregation(partitions=partitions)
    embeddings = data.draw(embedding_matrix(partitions))
    neighbour = embeddings.copy()
    neighbour[data.draw(st.integers(0, partitions - 1))] = data.draw(embedding_matrix(1))[0]
    moved = mechanism.aggregate(embeddings) - mechanism.aggregate(neighbour)
    assert np.linalg.norm(moved) <= 2 / partitions * (1 + 1e-14)


@given(data=st.data(), partitions=st.integers(1, 8))
def test_the_mean_lies_in_the_unit_ball(data, partitions):
    mean = aggregation(partitions=partitions).aggregate(data.draw(embedding_matrix(partitions)))
    assert np.linalg.norm(mean) <= 1 + 1e-14


@given(data=st.data(), partitions=st.integers(1, 4), scale=st.floats(1e-3, 1e3))
def test_the_mean_ignores_the_length_of_embeddings(data, partitions, scale):
    embeddings = data.draw(embedding_matrix(partitions, ordinary))
    mechanism = aggregation(partitions=partitions)
    # Subnormal coordinates lose digits when scaled.
    embeddings[np.abs(embeddings) < 1e-290] = 0.0
    assert mechanism.aggregate(embeddings * scale) == pytest.approx(
        mechanism.aggregate(embeddings), abs=1e-14
    )


@pytest.mark.parametrize("partitions", [1, 2, 4, 16])
def test_the_sensitivity_is_attained_by_opposite_embeddings(partitions):
    mechanism = aggregation(partitions=partitions)
    embeddings = np.tile([0.0, 1.0], (partitions, 1))
    neighbour = embeddings.copy()
    neighbour[-1] *= -1
    moved = np.linalg.norm(mechanism.aggregate(embeddings) - mechanism.aggregate(neighbour))
    assert moved == pytest.approx(2 / partitions, rel=1e-15)
    assert mechanism.sensitivity == 2 / partitions


def angle_of_last(partition):
    angle = float(partition[-1]) if partition else 0.0
    return [math.cos(angle), math.sin(angle)]


@given(data=st.data(), partitions=st.integers(1, 6), seed=st.integers(0, 100))
def test_replacing_one_exemplar_moves_the_mean_by_at_most_the_sensitivity(data, partitions, seed):
    mechanism = aggregation(partitions=partitions, seed=seed, model=angle_of_last)
    exemplars = data.draw(st.lists(ordinary, min_size=1, max_size=10))
    neighbour = list(exemplars)
    neighbour[data.draw(st.integers(0, len(exemplars) - 1))] = data.draw(ordinary)
    moved = mechanism.clean(exemplars, RNG) - mechanism.clean(neighbour, RNG)
    assert np.linalg.norm(moved) <= mechanism.sensitivity * (1 + 1e-14)


def test_clean_takes_recorded_embeddings_when_there_is_no_model():
    assert aggregation(partitions=2).clean([[1.0, 0.0], [0.0, 1.0]], RNG).tolist() == [0.5, 0.5]


def test_more_partitions_than_exemplars_are_answered_zero_shot():
    mechanism = aggregation(partitions=4, model=angle_of_last)
    assert mechanism.clean([math.pi], RNG) == pytest.approx([0.5, 0.0], abs=1e-15)


def test_recorded_responses_replay_to_the_same_mean():
    mechanism = aggregation(partitions=3, model=angle_of_last)
    rows = mechanism.record([0.1, 0.2, 0.3, 0.4], 5, RNG)
    assert rows.shape == (5, 3, 2)
    replayed = aggregation(partitions=3).aggregate(rows[0])
    assert (replayed == mechanism.clean([0.1, 0.2, 0.3, 0.4], RNG)).all()


def test_responses_are_recorded_as_the_model_gave_them():
    mechanism = aggregation(partitions=2, model=lambda partition: np.array([3.0, 4.0], np.float32))
    responses = mechanism.responses(["a", "b"])
    assert responses.dtype == np.float32
    assert responses.tolist() == [[3.0, 4.0], [3.0, 4.0]]


def test_asking_without_a_model_is_an_error():
    with pytest.raises(ValueError, match="has no model to ask"):
        aggregation().responses(["a"])


def test_a_model_must_return_vectors_of_one_length():
    with pytest.raises(ValueError, match=r"one vector of shape \(d,\) per partition"):
        aggregation(partitions=2, model=lambda part: [1.0] * (1 + len(part))).responses(["a"])
    with pytest.raises(ValueError, match=r"one vector of shape \(d,\) per partition"):
        aggregation(model=lambda part: [[1.0]]).responses(["a"])
    with pytest.raises(TypeError, match="embeddings must be an array of real numbers, got dtype <U4"):
        aggregation(model=lambda part: ["text"]).responses(["a"])


@pytest.mark.parametrize("epsilon", [1.0, 16.0])
def test_privatize_adds_the_declared_noise_to_every_coordinate(epsilon):
    mechanism, n = aggregation(partitions=4, epsilon=epsilon), 50_000
    clean = np.broadcast_to(mechanism.aggregate(np.eye(4)), (n, 4))
    residual = mechanism.privatize(clean, np.random.default_rng(1)) - clean
    # χ² bounds on the scale and z bounds on means and correlations, each at two-sided level 1e-6.
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], n)
    squares = (residual**2).sum(axis=0) / mechanism.sigma**2
    assert ((low < squares) & (squares < high)).all()
    assert np.abs(residual.mean(axis=0)).max() < 4.9 * mechanism.sigma / math.sqrt(n)
    assert np.abs(np.corrcoef(residual.T) - np.eye(4)).max() < 4.9 / math.sqrt(n)
    assert stats.kstest(residual[:, 0] / mechanism.sigma, "norm").pvalue > 1e-6


def test_privatize_leaves_its_input_alone():
    clean = np.array([[1.0, 0.0, 0.0]])
    clean.flags.writeable = False
    rows = np.broadcast_to(clean, (6, 3))
    first = aggregation().privatize(rows, np.random.default_rng(7))
    assert clean.tolist() == [[1.0, 0.0, 0.0]]
    assert (first == aggregation().privatize(rows, np.random.default_rng(7))).all()
    assert len(np.unique(first)) == 18


@pytest.mark.parametrize("shape", [(3,), (2, 2, 3)])
def test_privatize_refuses_rows_of_another_shape(shape):
    with pytest.raises(ValueError, match=r"clean_rows must have shape \(n, d\)"):
        aggregation().privatize(np.zeros(shape), RNG)


def test_rows_must_be_as_long_as_the_candidates():
    mechanism = aggregation(candidates=np.eye(3))
    with pytest.raises(ValueError, match=r"clean_rows must have shape \(n, 3\).* got \(5, 2\)"):
        mechanism.privatize(np.zeros((5, 2)), RNG)
    with pytest.raises(ValueError, match=r"noisy must have shape \(n, 3\).* got \(5, 2\)"):
        mechanism.release(np.zeros((5, 2)), RNG)


def test_without_candidates_there_is_no_release():
    mechanism = aggregation()
    assert not hasattr(mechanism, "release")
    assert getattr(mechanism, "release", None) is None
    with pytest.raises(AttributeError, match="has no release: the noisy mean is its output"):
        mechanism.release  # noqa: B018


@given(
    noisy=st_numpy.arrays(np.float64, (5, DIMENSION), elements=ordinary),
    candidates=st_numpy.arrays(np.float64, (3, DIMENSION), elements=st.integers(-5, 5)),
)
def test_the_released_candidate_is_the_nearest(noisy, candidates):
    candidates[(candidates == 0).all(axis=1)] = 1.0
    released = aggregation(candidates=candidates).release(noisy, RNG)
    unit = candidates / np.linalg.norm(candidates, axis=1, keepdims=True)
    distances = np.linalg.norm(noisy[:, None, :] - unit[None, :, :], axis=2)
    chosen = distances[np.arange(5), released]
    assert chosen == pytest.approx(distances.min(axis=1), abs=1e-7)


def test_candidates_are_compared_by_direction():
    mechanism = aggregation(candidates=[[100.0, 0.0], [0.0, 0.01]])
    assert mechanism.release(np.array([[0.4, 0.5], [0.5, 0.4]]), RNG).tolist() == [1, 0]


def test_equally_near_candidates_go_to_the_first():
    mechanism = aggregation(candidates=[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert mechanism.release(np.array([[2.0, 0.0], [1.0, 1.0]]), RNG).tolist() == [0, 0]


def test_the_released_candidate_has_its_closed_form_distribution():
    candidates = np.array([[1.0, 0.0, 0.0], [-0.6, 0.8, 0.0]])
    mechanism, n = aggregation(epsilon=4.0, candidates=candidates), 100_000
    rng = np.random.default_rng(2)
    noisy = mechanism.privatize(np.broadcast_to(candidates[0], (n, 3)), rng)
    first = int((mechanism.release(noisy, rng) == 0).sum())
    # The nearer of two points d apart, seen from one of them through N(0, σ²): Φ(d / 2σ).
    distance = np.linalg.norm(candidates[0] - candidates[1])
    right = stats.norm.cdf(distance / (2 * mechanism.sigma))
    # Two-sided exact binomial bound at level 1e-6.
    assert stats.binom.ppf(5e-7, n, right) <= first <= stats.binom.ppf(1 - 5e-7, n, right)


def test_the_declarations():
    mechanism = aggregation(partitions=4, epsilon=8, delta=1e-6)
    assert mechanism.claim == (8.0, 1e-6)
    assert mechanism.noise == GaussianNoise(mechanism.sigma)
    assert mechanism.sigma == analytic_gaussian_sigma(8.0, 1e-6, 0.5)
    assert mechanism.sensitivity == 0.5
    assert mechanism.norm == "l2"
    assert mechanism.deterministic is True
    assert mechanism.claimed_views == {"black-box", "white-box"}


def test_the_repr_names_the_configuration_and_shows_no_address():
    mechanism = aggregation(candidates=np.eye(2), seed=3, model=angle_of_last)
    assert repr(mechanism) == (
        "EmbeddingSpaceAggregation(partitions=1, epsilon=1.0, delta=1e-05, candidates=<2 embeddings>, seed=3)"
    )
    assert repr(aggregation()) == "EmbeddingSpaceAggregation(partitions=1, epsilon=1.0, delta=1e-05)"


def test_equal_configurations_are_equal():
    assert aggregation() == aggregation()
    assert aggregation(candidates=np.eye(2)) == aggregation(candidates=[[1, 0], [0, 1]])
    assert hash(aggregation(candidates=np.eye(2))) == hash(aggregation(candidates=[[1, 0], [0, 1]]))
    assert aggregation(candidates=np.eye(2)) != aggregation(candidates=np.eye(3))
    assert aggregation(candidates=np.eye(2)) != aggregation(candidates=-np.eye(2))
    assert aggregation(candidates=np.eye(2)) != aggregation()
    assert aggregation() != aggregation(partitions=2)
    assert aggregation() != "EmbeddingSpaceAggregation"


def test_a_replaced_configuration_is_recalibrated():
    original = aggregation(candidates=[[0.1, 0.7]])
    replaced = dataclasses.replace(original, partitions=4)
    assert replaced.sigma == aggregation(partitions=4).sigma
    assert dataclasses.replace(replaced, partitions=1) == original


def test_candidates_are_copied_and_read_only():
    candidates = np.eye(2)
    mechanism = aggregation(candidates=candidates)
    candidates[0] = 0.0
    assert mechanism.candidates.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    with pytest.raises(ValueError, match="read-only"):
        mechanism.candidates[0] = 0.0


def test_a_mechanism_crosses_process_boundaries():
    mechanism = aggregation(candidates=np.eye(2))
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism


def test_a_mechanism_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        aggregation().epsilon = 2.0


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"partitions": 0}, ValueError, "partitions must be an integer of at least 1, got 0"),
        ({"partitions": 1.5}, TypeError, r"partitions .* got 1\.5 of type float"),
        ({"epsilon": math.inf}, ValueError, "epsilon .* got inf"),
        ({"delta": 1.0}, ValueError, r"delta .* got 1\.0"),
        ({"seed": "0"}, TypeError, "seed .* got '0'"),
        ({"model": 3}, TypeError, "model must be callable or None, got 3"),
        ({"candidates": ["text"]}, TypeError, "candidates must be an array of real numbers"),
        ({"candidates": [1.0, 0.0]}, ValueError, r"candidates must have shape \(m, d\).* got shape \(2,\)"),
        ({"candidates": np.zeros((0, 3))}, ValueError, r"m and d at least 1, got shape \(0, 3\)"),
        ({"candidates": [[1.0, 0.0], [0.0, 0.0]]}, ValueError, "not zero, got such a vector at row 1"),
        ({"candidates": [[1.0, math.nan]]}, ValueError, "finite and not zero, got such a vector at row 0"),
    ],
)
def test_bad_configurations_are_named(changes, error, message):
    with pytest.raises(error, match=message):
        aggregation(**changes)


@pytest.mark.parametrize("shape", [(2,), (1, 2), (3, 2), (2, 0), (2, 2, 2)])
def test_there_is_one_embedding_per_partition(shape):
    with pytest.raises(ValueError, match=r"one vector per partition, shape \(2, d\), got shape"):
        aggregation(partitions=2).aggregate(np.ones(shape))


def test_embeddings_of_another_type_are_refused():
    with pytest.raises(TypeError, match="embeddings must be an array of real numbers, got dtype <U1"):
        aggregation().aggregate([["a", "b"]])
