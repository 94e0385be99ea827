"""Product of Experts: the utilities, their sensitivity, the noise and the released label."""

import dataclasses
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy
from scipy import stats

from dp_icl import GumbelNoise, ProductOfExperts, selection_epsilon
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.mechanism import Mechanism, claimed_views, declared_noise, mechanism_name
from pytest_snapaudit.engine.noise import GumbelNoise as EngineGumbelNoise

LABELS = ("World", "Sports", "Business")
RNG = np.random.default_rng(0)

anything = st.floats(width=64, allow_nan=True, allow_infinity=True)


def experts(**changes):
    return ProductOfExperts(**{"labels": LABELS, "epsilon": 1.0, "clip": 4.0} | changes)


def matrix(rows):
    return st_numpy.arrays(np.float64, st.tuples(st.just(rows), st.just(3)), elements=anything)


def likes_its_label(exemplar):
    return {exemplar: -0.1, "World": -1.5}


def test_log_probabilities_are_clipped_and_added():
    utilities = experts().aggregate([[-0.5, -1.0, -9.0], [-3.0, -0.25, -4.0]])
    assert utilities.tolist() == [-3.5, -1.25, -8.0]
    assert utilities.dtype == np.float64


@pytest.mark.filterwarnings("error")
def test_what_is_no_log_probability_stays_within_the_clip():
    said = [[math.nan, -math.inf, math.inf], [0.3, -1e308, 1e308]]
    assert experts().aggregate(said).tolist() == [-4.0, -8.0, 0.0]


def test_integers_and_single_precision_are_numbers():
    assert experts().aggregate([[-1, -2, -9]]).tolist() == [-1.0, -2.0, -4.0]
    assert experts().aggregate(np.array([[-1, -2, -9]], np.float32)).tolist() == [-1.0, -2.0, -4.0]


def test_no_expert_has_no_preference():
    assert experts().aggregate(np.zeros((0, 3))).tolist() == [0.0, 0.0, 0.0]
    assert experts(model=likes_its_label).clean([], RNG).tolist() == [0.0, 0.0, 0.0]


@settings(max_examples=40)
@given(data=st.data(), rows=st.integers(1, 8))
def test_replacing_one_expert_moves_each_utility_by_at_most_the_sensitivity(data, rows):
    mechanism = experts()
    said = data.draw(matrix(rows))
    neighbour = said.copy()
    neighbour[data.draw(st.integers(0, rows - 1))] = data.draw(matrix(1))[0]
    moved = mechanism.aggregate(said) - mechanism.aggregate(neighbour)
    assert np.abs(moved).max() <= mechanism.sensitivity * (1 + 1e-12)


@settings(max_examples=40)
@given(data=st.data(), rows=st.integers(1, 8))
def test_adding_one_expert_lowers_every_utility_by_at_most_the_sensitivity(data, rows):
    mechanism = experts(adjacency="add-remove")
    said = data.draw(matrix(rows))
    moved = mechanism.aggregate(
        np.delete(said, data.draw(st.integers(0, rows - 1)), 0)
    ) - mechanism.aggregate(said)
    assert (moved >= -1e-12).all()
    assert moved.max() <= mechanism.sensitivity * (1 + 1e-12)


@settings(max_examples=40)
@given(data=st.data(), rows=st.integers(1, 8), epsilon=st.sampled_from([0.1, 1.0, 8.0, 32.0]))
def test_the_released_label_satisfies_the_claim_exactly(data, rows, epsilon):
    """No sampling: the largest ratio of the selection probabilities, on both kinds of neighbours."""
    replacing, adding = (experts(epsilon=epsilon, adjacency=kind) for kind in ("replace-one", "add-remove"))
    said = data.draw(matrix(rows))
    position = data.draw(st.integers(0, rows - 1))
    neighbour, fewer = said.copy(), np.delete(said, position, 0)
    neighbour[position] = data.draw(matrix(1))[0]
    utilities = replacing.aggregate(said)
    assert selection_epsilon(utilities, replacing.aggregate(neighbour), replacing.scale) <= epsilon + 1e-9
    assert selection_epsilon(utilities, adding.aggregate(fewer), adding.scale) <= epsilon + 1e-9


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_both_claims_are_tight(epsilon):
    """The least upper bound over many experts is epsilon: what all others exclude, one expert comes to favour."""
    replacing = experts(epsilon=epsilon)
    others = np.tile([-4.0, 0.0, 0.0], (200, 1))
    against, towards = np.array([[-4.0, 0.0, 0.0]]), np.array([[0.0, -4.0, -4.0]])
    before, after = (replacing.aggregate(np.concatenate([others, row])) for row in (against, towards))
    assert selection_epsilon(before, after, replacing.scale) == pytest.approx(epsilon, rel=1e-6)

    adding = experts(epsilon=epsilon, adjacency="add-remove")
    before, after = adding.aggregate(others), adding.aggregate(np.concatenate([others, towards]))
    assert selection_epsilon(before, after, adding.scale) == pytest.approx(epsilon, rel=1e-6)


def test_the_scale_for_adding_is_half_of_that_for_replacing():
    assert experts(epsilon=0.5).scale == experts(epsilon=0.5).noise.scale == 16.0
    assert experts(epsilon=0.5, adjacency="add-remove").scale == 8.0


def test_privatize_adds_the_declared_noise_to_every_utility():
    mechanism, n = experts(epsilon=2.0), 100_000
    clean = np.broadcast_to([-3.0, -1.0, -8.0], (n, 3))
    residual = (mechanism.privatize(clean, np.random.default_rng(1)) - clean) / mechanism.scale
    assert residual.shape == (n, 3)
    for column in residual.T:
        assert stats.kstest(column, "gumbel_r").pvalue > 1e-6
    assert np.abs(np.corrcoef(residual.T) - np.eye(3)).max() < 4.9 / math.sqrt(n)


def test_the_noisy_utilities_are_the_papers_in_other_units():
    """Algorithm 4 draws ε u / (2Γ) + Gumbel(0, 1)."""
    mechanism, clean = experts(epsilon=2.0), np.array([[-3.0, -1.0, -8.0]])
    noisy = mechanism.privatize(clean, np.random.default_rng(5))
    paper = clean * 2.0 / (2 * 4.0) + np.random.default_rng(5).gumbel(size=(1, 3))
    assert noisy / mechanism.scale == pytest.approx(paper, rel=1e-12)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_the_released_label_has_its_closed_form_distribution(adjacency):
    mechanism, n = experts(epsilon=3.0, adjacency=adjacency), 100_000
    clean = np.array([-3.0, -1.0, -8.0])
    rng = np.random.default_rng(2)
    released = mechanism.release(mechanism.privatize(np.broadcast_to(clean, (n, 3)), rng), rng)
    weights = np.exp(clean / mechanism.scale)
    # χ² with two degrees of freedom at level 1e-6
    assert stats.chisquare(np.bincount(released, minlength=3), n * weights / weights.sum()).pvalue > 1e-6


def test_tied_utilities_are_decided_by_the_noise():
    mechanism, n = experts(), 90_000
    rng = np.random.default_rng(3)
    released = mechanism.release(mechanism.privatize(np.zeros((n, 3)), rng), rng)
    assert stats.chisquare(np.bincount(released, minlength=3)).pvalue > 1e-6


def test_equal_noisy_utilities_go_to_the_first_label():
    assert experts().release(np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 2.0]]), RNG).tolist() == [0, 1]


def test_privatize_leaves_its_input_alone():
    clean = np.array([[-2.0, -1.0, 0.0]])
    clean.flags.writeable = False
    first = experts().privatize(np.broadcast_to(clean, (5, 3)), np.random.default_rng(7))
    assert clean.tolist() == [[-2.0, -1.0, 0.0]]
    assert (first == experts().privatize(np.broadcast_to(clean, (5, 3)), np.random.default_rng(7))).all()
    assert len(np.unique(first)) == 15


def test_no_rows_are_no_outputs():
    noisy = experts().privatize(np.zeros((0, 3)), RNG)
    assert noisy.shape == (0, 3)
    assert experts().release(noisy, RNG).shape == (0,)


def test_the_model_is_asked_once_per_exemplar():
    asked = []

    def model(exemplar):
        asked.append(exemplar)
        return [-1.0, -2.0, -3.0]

    mechanism = experts(model=model)
    assert mechanism.clean(["a", "b"], RNG).tolist() == [-2.0, -4.0, -6.0]
    assert asked == ["a", "b"]


def test_a_label_the_model_does_not_produce_has_probability_0():
    mechanism = experts(model=likes_its_label)
    assert mechanism.log_probabilities(["Sports"]).tolist() == [[-1.5, -0.1, -math.inf]]
    assert mechanism.clean(["Sports", "Politics"], RNG).tolist() == [-3.0, -4.1, -8.0]


def test_recorded_log_probabilities_replay_to_the_same_utilities():
    mechanism = experts(model=likes_its_label)
    rows = mechanism.record(["World", "Sports", "Sports"], 4, RNG)
    assert rows.shape == (4, 3, 3)
    for row in rows:
        assert (experts().aggregate(row) == mechanism.clean(["World", "Sports", "Sports"], RNG)).all()
        assert (experts().clean(row, RNG) == experts().aggregate(row)).all()


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"labels": "World"}, TypeError, "labels must be a sequence"),
        ({"labels": ("World",)}, ValueError, "at least two distinct"),
        ({"epsilon": 0.0}, ValueError, r"epsilon must be a finite number above 0, got 0\.0"),
        ({"epsilon": math.inf}, ValueError, "epsilon must be a finite number above 0, got inf"),
        ({"epsilon": "1"}, TypeError, "epsilon must be a real number, got '1' of type str"),
        ({"clip": -4.0}, ValueError, r"clip must be a finite number above 0, got -4\.0"),
        ({"clip": True}, TypeError, "clip must be a real number, got True of type bool"),
        (
            {"adjacency": "replace"},
            ValueError,
            'adjacency must be "replace-one" or "add-remove", got \'replace\'',
        ),
        ({"adjacency": None}, ValueError, "got None"),
        ({"model": 3}, TypeError, "model must be callable or None, got 3"),
    ],
)
def test_bad_arguments_are_named(changes, error, message):
    with pytest.raises(error, match=message):
        experts(**changes)


@pytest.mark.parametrize(
    ("said", "error", "message"),
    [
        ([-1.0, -2.0, -3.0], ValueError, r"shape \(J, 3\), .* got shape \(3,\)"),
        ([[-1.0, -2.0]], ValueError, r"got shape \(1, 2\)"),
        ([["a", "b", "c"]], TypeError, "array of real numbers, got dtype <U1"),
        ([[1j, 0, 0]], TypeError, "got dtype complex128"),
    ],
)
def test_recorded_data_of_another_form_is_refused(said, error, message):
    with pytest.raises(error, match=message):
        experts().aggregate(said)


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        ([-1.0], ValueError, r"model must return 3 log-probabilities, one per label, got shape \(1,\)"),
        ("World", TypeError, "model must return real numbers, one per label, got 'World'"),
    ],
)
def test_a_model_that_answers_otherwise_is_refused(answer, error, message):
    with pytest.raises(error, match=message):
        experts(model=lambda exemplar: answer).clean(["a"], RNG)


def test_asking_without_a_model_is_an_error():
    with pytest.raises(ValueError, match="has no model to ask"):
        experts().log_probabilities(["World"])


def test_a_single_text_is_no_sequence_of_exemplars():
    with pytest.raises(TypeError, match="exemplars must be a sequence"):
        experts(model=likes_its_label).clean("World", RNG)


@pytest.mark.parametrize("shape", [(3,), (2, 4), (2, 2, 3)])
def test_privatize_refuses_rows_of_another_shape(shape):
    with pytest.raises(ValueError, match=r"clean_rows must have shape \(n, 3\)"):
        experts().privatize(np.zeros(shape), RNG)


@pytest.mark.parametrize(
    ("row", "error", "message"),
    [
        ([0.0, math.nan, 0.0], ValueError, "must not hold NaN"),
        (["a", "b", "c"], TypeError, "must hold numbers"),
    ],
)
def test_privatize_refuses_what_is_no_utility(row, error, message):
    with pytest.raises(error, match=message):
        experts().privatize([row], RNG)


def test_an_auditor_recognises_the_mechanism_and_its_declarations():
    mechanism = experts(epsilon=2.0)
    assert isinstance(mechanism, Mechanism)
    assert mechanism.noise == GumbelNoise(4.0)
    assert declared_noise(mechanism) == EngineGumbelNoise(4.0)
    assert claimed_views(mechanism) == ("black-box",)
    assert PrivacyClaim(*mechanism.claim) == PrivacyClaim(2.0, 0.0)
    assert (mechanism.norm, mechanism.sensitivity, mechanism.deterministic) == ("linf", 4.0, True)


def test_it_is_a_value():
    assert experts() == experts(labels=list(LABELS))
    assert hash(experts()) == hash(experts())
    assert experts() != experts(adjacency="add-remove")
    assert pickle.loads(pickle.dumps(experts())) == experts()
    assert (
        repr(experts())
        == mechanism_name(experts())
        == ("ProductOfExperts(labels=('World', 'Sports', 'Business'), epsilon=1.0, clip=4.0)")
    )
    assert repr(experts(adjacency="add-remove")).endswith("clip=4.0, adjacency='add-remove')")
    with pytest.raises(dataclasses.FrozenInstanceError):
        experts().epsilon = 2.0
