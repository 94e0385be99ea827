"""Keyword Space Aggregation: texts, counts, their sensitivity, the drawn keywords and the answer."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dp_icl import (
    GumbelKeywordSpaceAggregation,
    GumbelNoise,
    JointExponential,
    KeywordSpaceAggregation,
    RecordedAnswers,
    privacy_loss,
    public_vocabulary,
)

VOCABULARY = ("bridge", "farmers", "river", "rain")
RNG = np.random.default_rng(0)

texts = st.lists(st.sampled_from([*VOCABULARY, "River", "rain,", "the", "-"]), max_size=6).map(" ".join)


def space(**changes):
    return KeywordSpaceAggregation(
        **{"vocabulary": VOCABULARY, "partitions": 3, "keywords": 2, "epsilon": 1.0} | changes
    )


def repeat_the_answers(partition):
    return " ".join(answer for _, answer in partition) or "rain"


def test_a_token_counts_once_in_every_text_that_has_it():
    counts = space().aggregate(["River, river and RIVER: a bridge.", "the river", "rain"])
    assert counts.tolist() == [1, 0, 2, 1]
    assert counts.dtype == np.int64


@pytest.mark.parametrize(
    "said", [["", "", ""], ["?!", " ", "the riverbank"], np.array([None, "", "x"], object)]
)
def test_words_outside_the_vocabulary_and_empty_texts_count_for_nothing(said):
    assert space().aggregate(said).tolist() == [0, 0, 0, 0]


@settings(max_examples=25)
@given(data=st.data(), partitions=st.integers(1, 6))
def test_replacing_one_text_moves_every_count_by_at_most_one(data, partitions):
    mechanism = space(partitions=partitions)
    said = data.draw(st.lists(texts, min_size=partitions, max_size=partitions))
    neighbour = list(said)
    neighbour[data.draw(st.integers(0, partitions - 1))] = data.draw(texts)
    moved = mechanism.aggregate(said) - mechanism.aggregate(neighbour)
    assert np.abs(moved).max() <= mechanism.sensitivity == 1
    assert mechanism.norm == "linf"


exemplar = st.tuples(st.just("text"), texts)


def loss_between(mechanism, *datasets):
    laws = (JointExponential(mechanism.clean(d, RNG), mechanism.keywords, mechanism.rate) for d in datasets)
    return privacy_loss(*laws)


@settings(max_examples=25)
@given(data=st.data(), partitions=st.integers(1, 5), keywords=st.integers(1, 4), seed=st.integers(0, 9))
def test_replacing_one_exemplar_keeps_the_claim(data, partitions, keywords, seed):
    mechanism = space(partitions=partitions, keywords=keywords, seed=seed, model=repeat_the_answers)
    exemplars = data.draw(st.lists(exemplar, min_size=1, max_size=8))
    neighbour = list(exemplars)
    neighbour[data.draw(st.integers(0, len(exemplars) - 1))] = data.draw(exemplar)
    assert loss_between(mechanism, exemplars, neighbour) <= mechanism.epsilon * (1 + 1e-9)


@settings(max_examples=25)
@given(data=st.data(), partitions=st.integers(1, 5), keywords=st.integers(1, 4))
def test_adding_one_exemplar_keeps_the_claim_dealt_by_content(data, partitions, keywords):
    mechanism = space(
        partitions=partitions, keywords=keywords, model=repeat_the_answers, adjacency="add-remove"
    )
    exemplars = data.draw(st.lists(exemplar, max_size=8))
    more = [*exemplars, data.draw(exemplar)]
    moved = mechanism.clean(more, RNG) - mechanism.clean(exemplars, RNG)
    assert np.abs(moved).max() <= 1
    assert loss_between(mechanism, exemplars, more) <= mechanism.epsilon * (1 + 1e-9)


@pytest.mark.parametrize(
    ("partitions", "keywords", "tokens", "share"),
    [(1, 1, 4, 2), (1, 2, 4, 2), (2, 2, 4, 3), (3, 2, 4, 4), (64, 4, 4, 4), (64, 1, 4, 2), (9, 2, 2, 2)],
)
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_the_rate_is_epsilon_over_the_spread(partitions, keywords, tokens, share, adjacency):
    mechanism = space(
        vocabulary=VOCABULARY[:tokens],
        partitions=partitions,
        keywords=keywords,
        epsilon=8.0,
        adjacency=adjacency,
    )
    assert mechanism.rate == 8.0 / share


def test_clean_takes_recorded_texts_when_there_is_no_model():
    assert space().clean(["rain", "", "bridge rain"], RNG).tolist() == [1, 0, 0, 2]


def test_clean_asks_the_model_once_per_partition():
    asked = []

    def model(partition):
        asked.append(partition)
        return " ".join(partition)

    exemplars = ["river", "rain", "rain", "bridge", "farmers", "rain"]
    counts = space(model=model).clean(exemplars, RNG)
    assert sorted(each for partition in asked for each in partition) == sorted(exemplars)
    assert [len(partition) for partition in asked] == [2, 2, 2]
    assert 2 <= counts[3] <= 3


def test_more_partitions_than_exemplars_are_answered_zero_shot():
    mechanism = space(partitions=5, model=repeat_the_answers)
    assert mechanism.clean([("text", "river"), ("text", "river")], RNG).tolist() == [0, 0, 2, 3]


def test_what_the_model_said_is_recorded_as_said():
    said = iter(["River!", None, ""])
    mechanism = space(model=lambda partition: next(said))
    assert mechanism.responses([]).tolist() == ["River!", "", ""]


def test_recorded_texts_replay_to_the_same_counts():
    mechanism = space(model=repeat_the_answers)
    exemplars = [("text", answer) for answer in ("river", "rain bridge", "unknown", "rain")]
    rows = mechanism.record(exemplars, 4, RNG)
    assert rows.shape == (4, 3)
    assert rows.dtype.kind == "U"
    for row in rows:
        assert (space().aggregate(row) == mechanism.clean(exemplars, RNG)).all()


def test_asking_without_a_model_is_an_error():
    with pytest.raises(ValueError, match="has no model to ask"):
        space().responses(["river"])


def chosen_often(mechanism, rows, n=20_000):
    """Counts of every sequence against its exact law, at level 1e-6."""
    drawn = mechanism.privatize(np.broadcast_to(rows, (n, len(rows))), np.random.default_rng(1))
    sequences = np.array(list(itertools.permutations(range(len(rows)), mechanism.keywords)))
    law = JointExponential(rows, mechanism.keywords, mechanism.rate)
    expected = np.exp(law.log_probability(sequences)) * n
    observed = [(drawn == sequence).all(axis=1).sum() for sequence in sequences]
    return stats.chisquare(observed, expected).pvalue


@pytest.mark.parametrize("rows", [[3, 1, 1, 0], [0, 0, 0, 0], [3, 3, 3, 3]])
def test_privatize_draws_from_the_joint_exponential_mechanism(rows):
    assert chosen_often(space(epsilon=2.0), np.array(rows)) > 1e-6


def test_all_tokens_may_be_keywords():
    drawn = space(keywords=4).privatize([[3, 1, 0, 0]] * 50, np.random.default_rng(0))
    assert (np.sort(drawn, axis=1) == np.arange(4)).all()


def test_privatize_leaves_its_input_alone_and_repeats_with_its_seed():
    clean = np.array([[2, 1, 0, 0]])
    clean.flags.writeable = False
    rows = np.broadcast_to(clean, (5, 4))
    first = space().privatize(rows, np.random.default_rng(7))
    assert clean.tolist() == [[2, 1, 0, 0]]
    assert first.dtype == np.intp
    assert (first == space().privatize(rows, np.random.default_rng(7))).all()


def test_privatize_takes_a_different_row_per_trial():
    rows = np.array([[0, 0, 3, 3], [3, 3, 0, 0], [0, 0, 3, 3], [3, 0, 0, 3]])
    drawn = space(epsilon=200.0).privatize(rows, np.random.default_rng(0))
    assert np.sort(drawn, axis=1).tolist() == [[2, 3], [0, 1], [2, 3], [0, 3]]


def test_equal_rows_draw_the_same_whether_broadcast_or_copied():
    row = np.array([3, 1, 1, 0])
    broadcast = space().privatize(np.broadcast_to(row, (99, 4)), np.random.default_rng(3))
    assert (broadcast == space().privatize(np.tile(row, (99, 1)), np.random.default_rng(3))).all()


def test_counts_may_be_floats():
    drawn = space(epsilon=200.0).privatize([[0.0, 0.0, 3.0, 3.0]], np.random.default_rng(0))
    assert sorted(drawn[0]) == [2, 3]


@pytest.mark.parametrize("shape", [(4,), (2, 3), (2, 2, 4)])
def test_privatize_refuses_rows_of_another_shape(shape):
    with pytest.raises(ValueError, match=r"clean_rows must have shape \(n, 4\)"):
        space().privatize(np.zeros(shape), RNG)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([4, 0, 0, 0], r"counts must lie in \[0, 3\], got 0 to 4"),
        ([-1, 0, 0, 0], "got -1 to 0"),
        ([0.5, 0, 0, 0], "whole numbers"),
        ([math.nan, 0, 0, 0], "whole numbers"),
    ],
)
def test_counts_that_no_texts_have_are_refused(row, message):
    with pytest.raises(ValueError, match=message):
        space().privatize([row], RNG)


def test_no_rows_are_no_outputs():
    drawn = space().privatize(np.zeros((0, 4)), RNG)
    assert drawn.shape == (0, 2)
    assert space().release(drawn, RNG).shape == (0, 2)


@pytest.mark.parametrize(
    ("drawn", "error", "message"),
    [
        ([[0.0, 1.0]], TypeError, "drawn must hold token indices, got dtype float64"),
        ([[0, 1, 2]], ValueError, r"drawn must have shape \(n, 2\).*, got \(1, 3\)"),
        ([0, 1], ValueError, r"drawn must have shape \(n, 2\)"),
    ],
)
def test_release_refuses_what_was_not_drawn(drawn, error, message):
    with pytest.raises(error, match=message):
        space().release(drawn, RNG)


def test_the_released_keywords_have_no_order():
    released = space().release([[3, 0], [0, 3], [2, 1]], RNG)
    assert released.tolist() == [[0, 3], [0, 3], [1, 2]]
    assert released.dtype == np.intp


def test_a_vocabulary_of_100_000_tokens():
    vocabulary = tuple(f"w{i:06d}" for i in range(100_000))
    mechanism = KeywordSpaceAggregation(vocabulary, 64, 10, 32.0)
    counts = mechanism.aggregate(["w000007 w099999"] * 64)
    drawn = mechanism.privatize(np.broadcast_to(counts, (300, len(counts))), np.random.default_rng(0))
    # e^(-8 · 64) for every sequence that misses one of the two; there are fewer than e^116 sequences.
    assert (np.sort(drawn[:, :2], axis=1) == [7, 99_999]).all()
    assert all(len(set(row)) == 10 for row in drawn.tolist())


def test_the_answer_is_made_of_the_keywords_alone_and_asked_for_once_per_set():
    asked = []

    def writer(words, query):
        asked.append(words)
        return f"{query} {' '.join(words)}"

    mechanism = space(writer=writer)
    answers = mechanism.answer([[2, 0], [0, 2], [3, 1]], "Headline:")
    assert answers.tolist() == ["Headline: bridge river", "Headline: bridge river", "Headline: farmers rain"]
    assert sorted(asked) == [("bridge", "river"), ("farmers", "rain")]
    assert mechanism.answer(np.empty((0, 2), int), "Headline:").shape == (0,)


def test_answers_may_be_recorded():
    recorded = RecordedAnswers("Headline:", {("bridge", "river"): "A bridge."}, otherwise="Nothing.")
    answers = space(writer=recorded).answer([[2, 0], [1, 3]], "Headline:")
    assert answers.tolist() == ["A bridge.", "Nothing."]
    with pytest.raises(KeyError, match="no answer is recorded for the query 'Topic:'"):
        space(writer=recorded).answer([[2, 0]], "Topic:")
    strict = dataclasses.replace(recorded, otherwise=None)
    with pytest.raises(KeyError, match=r"the words \('farmers', 'rain'\); there are 1"):
        space(writer=strict).answer([[1, 3]], "Headline:")


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ([[0.0, 1.0]], TypeError, "token indices, got dtype float64"),
        ([0, 1], ValueError, r"of shape \(n, 2\), got shape \(2,\)"),
        ([[0, 4]], ValueError, r"token indices in \[0, 4\)"),
        ([[-1, 0]], ValueError, r"token indices in \[0, 4\)"),
    ],
)
def test_bad_keywords_are_named(keywords, error, message):
    with pytest.raises(error, match=message):
        space(writer=lambda words, query: "").answer(keywords, "?")


def test_writing_needs_a_writer_that_writes():
    with pytest.raises(ValueError, match="has no writer to ask"):
        space().answer([[0, 1]], "?")
    with pytest.raises(TypeError, match="writer must return a text, got 3 of type int"):
        space(writer=lambda words, query: 3).answer([[0, 1]], "?")


def test_the_declarations():
    mechanism = space(epsilon=8)
    assert mechanism.claim == (8.0, 0.0)
    assert mechanism.deterministic is True
    assert mechanism.claimed_views == {"black-box", "white-box"}
    assert not hasattr(mechanism, "noise")


def test_the_repr_rebuilds_the_mechanism_unless_the_vocabulary_is_long():
    assert eval(repr(space(seed=3, adjacency="add-remove"))) == space(seed=3, adjacency="add-remove")
    assert "0x" not in repr(space(model=repeat_the_answers))
    long = space(vocabulary=[f"w{i}" for i in range(1_000)])
    assert repr(long) == (
        "KeywordSpaceAggregation(vocabulary=<1000 tokens>, partitions=3, keywords=2, epsilon=1.0)"
    )


def test_equal_configurations_are_equal():
    assert space() == space(vocabulary=list(VOCABULARY))
    assert hash(space()) == hash(space(vocabulary=list(VOCABULARY)))
    assert space() != space(epsilon=2.0)
    assert space() != space(model=repeat_the_answers)
    assert dataclasses.replace(space(), epsilon=4.0).rate == 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        space().epsilon = 2.0


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"vocabulary": "rain"}, TypeError, "vocabulary must be a sequence of different words"),
        ({"vocabulary": ()}, ValueError, "got none"),
        ({"vocabulary": ("Rain",)}, ValueError, r"'Rain' is read as \['rain'\]"),
        ({"partitions": 0}, ValueError, "partitions must be an integer of at least 1, got 0"),
        ({"keywords": 5}, ValueError, "from 1 to the number of tokens, 4, got 5"),
        ({"keywords": 0}, ValueError, "got 0"),
        ({"epsilon": -1.0}, ValueError, r"epsilon .* got -1\.0"),
        ({"epsilon": math.inf}, ValueError, "epsilon .* got inf"),
        ({"seed": -1}, ValueError, "seed .* got -1"),
        ({"model": "gpt"}, TypeError, "model must be callable or None, got 'gpt'"),
        ({"writer": "gpt"}, TypeError, "writer must be callable or None, got 'gpt'"),
        ({"adjacency": "swap"}, ValueError, "adjacency must be"),
    ],
)
def test_bad_configurations_are_named(changes, error, message):
    with pytest.raises(error, match=message):
        space(**changes)


@pytest.mark.parametrize("said", [[], ["rain"], ["rain"] * 4, "rain", [["rain"] * 3]])
def test_there_is_one_text_per_partition(said):
    with pytest.raises(ValueError, match=r"one text per partition, shape \(3,\), got shape"):
        space().aggregate(said)


@pytest.mark.parametrize("said", [[0.0, 1.0, 1.0], [True, False, True], [b"rain"] * 3])
def test_texts_of_another_type_are_refused(said):
    with pytest.raises(TypeError, match="a response must be a text or None"):
        space().aggregate(said)


def test_a_model_that_answers_with_another_type_is_refused():
    with pytest.raises(TypeError, match=r"got 0\.5 of type float"):
        space(model=lambda partition: 0.5).responses([])


def gumbel(**changes):
    return GumbelKeywordSpaceAggregation(
        **{"vocabulary": VOCABULARY, "partitions": 3, "epsilon": 2.0} | changes
    )


def test_the_argmax_of_noisy_counts_has_the_law_of_one_keyword():
    mechanism, rows, n = gumbel(), np.array([3, 1, 1, 0]), 50_000
    rng = np.random.default_rng(1)
    noisy = mechanism.privatize(np.broadcast_to(rows, (n, 4)), rng)
    released = mechanism.release(noisy, rng)
    assert (noisy.shape, released.shape) == ((n, 4), (n, 1))
    law = JointExponential(rows, 1, space(keywords=1, epsilon=2.0).rate)
    expected = np.exp(law.log_probability(np.arange(4)[:, None])) * n
    assert stats.chisquare(np.bincount(released[:, 0], minlength=4), expected).pvalue > 1e-6


def test_noisy_counts_are_declared_and_outside_the_claim():
    mechanism = gumbel()
    assert mechanism.noise == GumbelNoise(1.0)
    assert mechanism.keywords == 1
    assert mechanism.claim == (2.0, 0.0)
    assert mechanism.claimed_views == {"black-box"}
    assert mechanism != space(keywords=1, epsilon=2.0)
    with pytest.raises(ValueError, match=r"clean_rows must have shape \(n, 4\)"):
        mechanism.privatize(np.zeros((2, 3)), RNG)
    with pytest.raises(ValueError, match="epsilon must be above 0"):
        gumbel(epsilon=0.0)
    with pytest.raises(TypeError, match="keywords"):
        gumbel(keywords=2)


def test_the_vocabulary_may_be_made_of_public_texts():
    vocabulary = public_vocabulary(["Rain on the river.", "The bridge"])
    assert space(vocabulary=vocabulary).aggregate(["rain", "the", "the"]).tolist() == [0, 0, 1, 0, 2]
