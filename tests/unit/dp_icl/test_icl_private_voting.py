"""Private Voting: the votes, their sensitivity, the noise and the released label."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dp_icl import GaussianNoise, PrivateVoting
from dp_icl.calibration import analytic_gaussian_sigma, classical_gaussian_sigma

LABELS = ("World", "Sports", "Business", "Science")
RNG = np.random.default_rng(0)

answers_or_noise = st.sampled_from([*LABELS, "Politics", "", " Sports\n"])


def voting(**changes):
    return PrivateVoting(**{"labels": LABELS, "partitions": 3, "epsilon": 1.0, "delta": 1e-5} | changes)


def copy_last_label(partition):
    return partition[-1][1] if partition else "World"


def test_votes_are_counted_per_label():
    counts = voting().aggregate(["Sports", "World", "Sports"])
    assert counts.tolist() == [1, 2, 0, 0]
    assert counts.dtype == np.int64


@pytest.mark.parametrize(
    "answers",
    [
        ("Sports", "World", "Sports"),
        [1, 0, 1],
        np.array([1, 0, 1], np.uint8),
        np.array(["Sports", "World", "Sports"]),
        np.array(["Sports", " World\n", "Sports"], dtype=object),
        np.array(["Sports", np.int64(0), 1], dtype=object),
    ],
)
def test_answers_may_be_texts_or_indices(answers):
    assert voting().aggregate(answers).tolist() == [1, 2, 0, 0]


@pytest.mark.parametrize(
    "answers",
    [
        ["sports", "Sportsmanship", "World"],
        ["", "I do not know", "World"],
        [-1, 4, 0],
        np.array([None, "", "World"], dtype=object),
    ],
)
def test_answers_that_name_no_label_cast_no_vote(answers):
    assert voting().aggregate(answers).tolist() == [1, 0, 0, 0]


def test_no_votes_at_all_are_zero_counts():
    assert voting().aggregate(["?", "?", "?"]).tolist() == [0, 0, 0, 0]


@given(data=st.data(), partitions=st.integers(1, 12))
def test_replacing_one_answer_moves_the_counts_by_at_most_the_sensitivity(data, partitions):
    mechanism = voting(partitions=partitions)
    answers = data.draw(st.lists(answers_or_noise, min_size=partitions, max_size=partitions))
    neighbour = list(answers)
    neighbour[data.draw(st.integers(0, partitions - 1))] = data.draw(answers_or_noise)
    moved = mechanism.aggregate(answers) - mechanism.aggregate(neighbour)
    assert np.linalg.norm(moved) <= mechanism.sensitivity
    assert np.abs(moved).sum() in (0, 1, 2)


def test_the_sensitivity_is_attained_by_a_vote_that_changes_label():
    mechanism = voting()
    moved = mechanism.aggregate([0, 0, 1]) - mechanism.aggregate([0, 0, 2])
    assert np.linalg.norm(moved) == mechanism.sensitivity == math.sqrt(2)


@given(data=st.data(), partitions=st.integers(1, 8), seed=st.integers(0, 100))
def test_replacing_one_exemplar_moves_the_counts_by_at_most_the_sensitivity(data, partitions, seed):
    mechanism = voting(partitions=partitions, seed=seed, model=copy_last_label)
    exemplar = st.tuples(st.just("text"), answers_or_noise)
    exemplars = data.draw(st.lists(exemplar, min_size=1, max_size=12))
    neighbour = list(exemplars)
    neighbour[data.draw(st.integers(0, len(exemplars) - 1))] = data.draw(exemplar)
    moved = mechanism.clean(exemplars, RNG) - mechanism.clean(neighbour, RNG)
    assert np.linalg.norm(moved) <= mechanism.sensitivity


def test_clean_takes_recorded_answers_when_there_is_no_model():
    assert voting().clean(["Sports", "World", "Sports"], RNG).tolist() == [1, 2, 0, 0]


def test_clean_asks_the_model_once_per_partition():
    asked = []

    def model(partition):
        asked.append(partition)
        return partition[-1]

    exemplars = ["World", "Sports", "Sports", "Business", "Science", "World"]
    counts = voting(model=model).clean(exemplars, RNG)
    assert sorted(exemplar for partition in asked for exemplar in partition) == sorted(exemplars)
    assert [len(partition) for partition in asked] == [2, 2, 2]
    assert counts.sum() == 3


def test_more_partitions_than_exemplars_are_answered_zero_shot():
    mechanism = voting(partitions=5, model=copy_last_label)
    assert mechanism.clean([("text", "Sports"), ("text", "Sports")], RNG).tolist() == [3, 2, 0, 0]


def test_one_partition_casts_one_vote():
    mechanism = voting(partitions=1, model=copy_last_label)
    assert mechanism.clean([("text", "World"), ("text", "Business")], RNG).tolist() == [0, 0, 1, 0]


def test_what_the_model_said_is_recorded_as_said():
    said = iter(["Sports", " no idea", None, 2, 9])
    mechanism = voting(partitions=5, model=lambda partition: next(said))
    assert mechanism.answers([]).tolist() == ["Sports", " no idea", "", "Business", ""]


def test_recorded_answers_replay_to_the_same_counts():
    mechanism = voting(model=copy_last_label)
    exemplars = [("text", label) for label in ("World", "Sports", "unknown", "Sports")]
    rows = mechanism.record(exemplars, 4, RNG)
    assert rows.shape == (4, 3)
    assert rows.dtype.kind == "U"
    for row in rows:
        assert (voting().aggregate(row) == mechanism.clean(exemplars, RNG)).all()


def test_asking_without_a_model_is_an_error():
    with pytest.raises(ValueError, match="has no model to ask"):
        voting().answers(["World"])


def test_privatize_adds_the_declared_noise_to_every_count():
    mechanism, n = voting(epsilon=4.0), 100_000
    clean = np.broadcast_to(np.array([2, 1, 0, 0]), (n, 4))
    residual = mechanism.privatize(clean, np.random.default_rng(1)) - clean
    assert residual.shape == (n, 4)
    # χ² bounds on the scale and z bounds on means and correlations, each at two-sided level 1e-6.
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], n)
    squares = (residual**2).sum(axis=0) / mechanism.sigma**2
    assert ((low < squares) & (squares < high)).all()
    assert np.abs(residual.mean(axis=0)).max() < 4.9 * mechanism.sigma / math.sqrt(n)
    assert np.abs(np.corrcoef(residual.T) - np.eye(4)).max() < 4.9 / math.sqrt(n)
    assert stats.kstest(residual[:, 0] / mechanism.sigma, "norm").pvalue > 1e-6


def test_privatize_leaves_its_input_alone():
    clean = np.array([[2, 1, 0, 0]])
    clean.flags.writeable = False
    rows = np.broadcast_to(clean, (5, 4))
    first = voting().privatize(rows, np.random.default_rng(7))
    assert clean.tolist() == [[2, 1, 0, 0]]
    assert first.dtype == np.float64
    assert (first == voting().privatize(rows, np.random.default_rng(7))).all()
    assert len(np.unique(first)) == 20


def test_privatize_takes_a_different_row_per_trial():
    rows = np.array([[1000, 0, 0, 0], [0, 0, 0, 1000]])
    released = voting().release(voting().privatize(rows, np.random.default_rng(0)), RNG)
    assert released.tolist() == [0, 3]


@pytest.mark.parametrize("shape", [(4,), (2, 3), (2, 2, 4)])
def test_privatize_refuses_rows_of_another_shape(shape):
    with pytest.raises(ValueError, match=r"clean_rows must have shape \(n, 4\)"):
        voting().privatize(np.zeros(shape), RNG)


def test_no_rows_are_no_outputs():
    noisy = voting().privatize(np.zeros((0, 4)), RNG)
    assert noisy.shape == (0, 4)
    assert voting().release(noisy, RNG).shape == (0,)


def within_binomial(count, n, probability):
    """Two-sided exact binomial bound at level 1e-6."""
    return stats.binom.ppf(5e-7, n, probability) <= count <= stats.binom.ppf(1 - 5e-7, n, probability)


def test_the_released_label_has_its_closed_form_distribution():
    mechanism, n = PrivateVoting(("yes", "no"), 3, epsilon=2.0, delta=1e-5), 100_000
    rng = np.random.default_rng(2)
    released = mechanism.release(mechanism.privatize(np.broadcast_to([2, 1], (n, 2)), rng), rng)
    winning = stats.norm.cdf(1 / (mechanism.sigma * math.sqrt(2)))
    assert within_binomial((released == 0).sum(), n, winning)


def test_tied_counts_are_decided_by_the_noise():
    mechanism, n = voting(partitions=4, epsilon=16.0), 100_000
    rng = np.random.default_rng(3)
    clean = mechanism.aggregate(LABELS)
    assert clean.tolist() == [1, 1, 1, 1]
    released = mechanism.release(mechanism.privatize(np.broadcast_to(clean, (n, 4)), rng), rng)
    assert all(within_binomial(count, n, 0.25) for count in np.bincount(released, minlength=4))


def test_equal_noisy_counts_go_to_the_first_label():
    assert voting().release(np.array([[0.5, 1.0, 1.0, 0.0], [2.0, 2.0, 2.0, 2.0]]), RNG).tolist() == [1, 0]


def test_the_declarations():
    mechanism = voting(epsilon=8, delta=1e-6)
    assert mechanism.claim == (8.0, 1e-6)
    assert mechanism.noise == GaussianNoise(mechanism.sigma)
    assert mechanism.sigma == analytic_gaussian_sigma(8.0, 1e-6, math.sqrt(2))
    assert mechanism.sensitivity == math.sqrt(2)
    assert mechanism.norm == "l2"
    assert mechanism.deterministic is True
    assert mechanism.claimed_views == {"black-box", "white-box"}


def test_the_classical_calibration_is_accepted_only_where_it_is_proven():
    sigma = voting(epsilon=0.5, calibration="classical").sigma
    assert sigma == classical_gaussian_sigma(0.5, 1e-5, math.sqrt(2))
    with pytest.raises(ValueError, match="proven for epsilon below 1"):
        voting(epsilon=16.0, calibration="classical")


def test_the_repr_rebuilds_the_mechanism_and_shows_no_address():
    mechanism = voting(model=copy_last_label)
    assert "0x" not in repr(mechanism)
    assert repr(voting()) == (
        "PrivateVoting(labels=('World', 'Sports', 'Business', 'Science'), partitions=3, epsilon=1.0, "
        "delta=1e-05, calibration='analytic', seed=0)"
    )
    assert eval(repr(voting())) == voting()


def test_equal_configurations_are_equal():
    assert voting() == voting(labels=list(LABELS))
    assert hash(voting()) == hash(voting(labels=list(LABELS)))
    assert voting() != voting(epsilon=2.0)
    assert voting() != voting(model=copy_last_label)


def test_a_replaced_configuration_is_recalibrated():
    assert dataclasses.replace(voting(), epsilon=4.0).sigma == voting(epsilon=4.0).sigma


def test_a_mechanism_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        voting().epsilon = 2.0


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"labels": "World"}, TypeError, "labels must be a sequence of at least two distinct"),
        ({"labels": ("World",)}, ValueError, r"labels .* got \('World',\)"),
        ({"labels": ("World", "World")}, ValueError, "labels must be at least two distinct"),
        ({"labels": ("World", "")}, ValueError, "non-empty"),
        ({"labels": ("World", " Sports")}, ValueError, "without surrounding whitespace"),
        ({"labels": ("World", 3)}, TypeError, "got 3 of type int"),
        ({"partitions": 0}, ValueError, "partitions must be an integer of at least 1, got 0"),
        ({"epsilon": -1.0}, ValueError, r"epsilon .* got -1\.0"),
        ({"delta": 0.0}, ValueError, r"delta .* got 0\.0"),
        ({"calibration": "exact"}, ValueError, "method must be"),
        ({"seed": -1}, ValueError, "seed .* got -1"),
        ({"model": "gpt"}, TypeError, "model must be callable or None, got 'gpt'"),
    ],
)
def test_bad_configurations_are_named(changes, error, message):
    with pytest.raises(error, match=message):
        voting(**changes)


@pytest.mark.parametrize("answers", [[], ["World"], ["World"] * 4, "World", [["World"] * 3]])
def test_there_is_one_answer_per_partition(answers):
    with pytest.raises(ValueError, match=r"one answer per partition, shape \(3,\), got shape"):
        voting().aggregate(answers)


@pytest.mark.parametrize("answers", [[0.0, 1.0, 1.0], [True, False, True], [b"World"] * 3])
def test_answers_of_another_type_are_refused(answers):
    with pytest.raises(TypeError, match="an answer must be a text, an index into labels, or None"):
        voting().aggregate(answers)


def test_a_model_that_answers_with_another_type_is_refused():
    with pytest.raises(TypeError, match=r"got 0\.5 of type float"):
        voting(model=lambda partition: 0.5).answers([])


@pytest.mark.parametrize("last", ["no", None, 0])
def test_an_answer_of_another_kind_changes_no_other_vote(last):
    mechanism = PrivateVoting(("no", "yes"), 11, 1.0, 1e-5)
    indices = [1] * 10
    counts = mechanism.aggregate([*indices, 1])
    moved = mechanism.aggregate([*indices, last])
    np.testing.assert_array_equal(counts, [0, 11])
    assert np.linalg.norm(moved - counts) <= mechanism.sensitivity * (1 + 1e-12)
    assert moved[1] == 10


def test_a_boolean_beside_indices_is_no_index():
    with pytest.raises(TypeError, match="an answer must be a text, an index into labels, or None, got True"):
        PrivateVoting(("no", "yes"), 2, 1.0, 1e-5).aggregate([True, 1])
