"""The broken specimens of Keyword Space Aggregation: each wrong in one thing, and by as much as it says."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_icl import JointExponential, KeywordSpaceAggregation, privacy_loss
from dp_icl.flawed_keywords import (
    RepeatCountingKeywordSpaceAggregation,
    ResponseDomainKeywordSpaceAggregation,
    UnitSensitivityKeywordSpaceAggregation,
)

VOCABULARY = ("bridge", "farmers", "rain", "river")
RNG = np.random.default_rng(0)


def specimen(kind, **changes):
    return kind(**{"vocabulary": VOCABULARY, "partitions": 3, "keywords": 2, "epsilon": 2.0} | changes)


@pytest.mark.parametrize(
    ("keywords", "partitions", "true"), [(1, 8, 2.0), (2, 1, 2.0), (2, 2, 3.0), (2, 3, 4.0), (4, 64, 4.0)]
)
def test_the_rate_of_the_papers_is_too_high_from_two_keywords_and_partitions_on(keywords, partitions, true):
    flawed = specimen(UnitSensitivityKeywordSpaceAggregation, keywords=keywords, partitions=partitions)
    correct = specimen(KeywordSpaceAggregation, keywords=keywords, partitions=partitions)
    assert flawed.rate == 1.0
    assert flawed.true_epsilon == pytest.approx(true)
    assert flawed.true_epsilon / correct.epsilon == pytest.approx(flawed.rate / correct.rate)


def worst_pair(tokens, partitions):
    first, second = np.zeros(tokens, int), np.ones(tokens, int)
    first[:3] = partitions, 1, 1
    second[:3] = partitions - 1, 2, 0
    return first, second


def test_the_true_epsilon_of_the_rate_of_the_papers_is_neared_by_large_vocabularies():
    lost = []
    for tokens in (10, 100, 1_000, 100_000):
        flawed = UnitSensitivityKeywordSpaceAggregation([f"w{i}" for i in range(tokens)], 3, 2, 2.0)
        sides = [JointExponential(counts, 2, flawed.rate) for counts in worst_pair(tokens, 3)]
        lost.append(privacy_loss(*sides))
    assert lost == sorted(lost)
    assert lost[0] > 1.5 * flawed.epsilon
    assert lost[-1] == pytest.approx(flawed.true_epsilon, rel=1e-3)


def test_repeats_are_counted_up_to_their_bound():
    flawed = specimen(RepeatCountingKeywordSpaceAggregation, max_repeats=3)
    said = ["Rain, rain, rain, rain", "river rain", ""]
    assert flawed.aggregate(said).tolist() == [0, 0, 4, 1]
    assert specimen(KeywordSpaceAggregation).aggregate(said).tolist() == [0, 0, 2, 1]
    assert flawed.privatize([[9, 0, 0, 0]], RNG).shape == (1, 2)
    assert repr(flawed).endswith(", max_repeats=3)")
    with pytest.raises(ValueError, match=r"counts must lie in \[0, 9\]"):
        flawed.privatize([[10, 0, 0, 0]], RNG)


@settings(max_examples=25)
@given(data=st.data(), repeats=st.integers(1, 4), partitions=st.integers(1, 5), keywords=st.integers(1, 4))
def test_counting_repeats_never_loses_more_than_its_true_epsilon(data, repeats, partitions, keywords):
    flawed = specimen(
        RepeatCountingKeywordSpaceAggregation,
        max_repeats=repeats,
        partitions=partitions,
        keywords=keywords,
    )
    text = st.lists(st.sampled_from(VOCABULARY), max_size=8).map(" ".join)
    said = data.draw(st.lists(text, min_size=partitions, max_size=partitions))
    pair = said, [data.draw(text), *said[1:]]
    sides = [JointExponential(flawed.aggregate(each), keywords, flawed.rate) for each in pair]
    assert privacy_loss(*sides) <= flawed.true_epsilon * (1 + 1e-9)


def test_the_true_epsilon_of_counting_repeats_is_neared_by_many_partitions():
    flawed = specimen(
        RepeatCountingKeywordSpaceAggregation, vocabulary=("no", "yes"), keywords=1, partitions=40
    )
    pair = ["no " * 8] * 40, [*["no " * 8] * 39, "yes " * 8]
    sides = [JointExponential(flawed.aggregate(each), 1, flawed.rate) for each in pair]
    assert flawed.true_epsilon == 8 * flawed.epsilon
    assert privacy_loss(*sides) == pytest.approx(flawed.true_epsilon, rel=1e-6)


@pytest.mark.parametrize("repeats", [0, -1, 1.0, True, None])
def test_the_bound_of_repeats_is_checked(repeats):
    with pytest.raises(ValueError, match="max_repeats must be an integer of at least 1"):
        specimen(RepeatCountingKeywordSpaceAggregation, max_repeats=repeats)


def test_a_domain_read_from_the_texts_leaves_out_what_no_text_says():
    flawed = specimen(ResponseDomainKeywordSpaceAggregation, keywords=3)
    rng = np.random.default_rng(1)
    rows = np.array([[1, 0, 1, 3], [0, 0, 2, 0], [0, 0, 0, 0]])
    drawn = flawed.privatize(np.repeat(rows, 200, axis=0), rng)
    assert {frozenset(row) for row in drawn[:200].tolist()} == {frozenset({0, 2, 3})}
    assert {tuple(row) for row in drawn[200:400].tolist()} == {(2, -1, -1)}
    assert {tuple(row) for row in drawn[400:].tolist()} == {(-1, -1, -1)}
    assert flawed.true_epsilon == math.inf
    correct = specimen(KeywordSpaceAggregation, keywords=3).privatize(rows[1:2].repeat(200, axis=0), rng)
    assert set(correct.ravel().tolist()) == {0, 1, 2, 3}


def test_a_specimen_never_equals_or_reads_like_the_correct_mechanism():
    for kind in (
        UnitSensitivityKeywordSpaceAggregation,
        RepeatCountingKeywordSpaceAggregation,
        ResponseDomainKeywordSpaceAggregation,
    ):
        flawed, correct = specimen(kind), specimen(KeywordSpaceAggregation)
        assert flawed != correct
        assert correct != flawed
        assert repr(flawed).startswith(f"{kind.__name__}(vocabulary=")
        assert flawed.claim == correct.claim
        assert flawed.claimed_views == correct.claimed_views
