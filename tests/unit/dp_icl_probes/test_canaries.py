"""Canaries: their formats, their uniformity, and the exactness of a rank among exchangeable identifiers."""

from __future__ import annotations

import itertools
import os
import re
import uuid

import numpy as np
import pytest
from scipy.stats import binom, chi2

from dp_icl.probes import (
    FORMATS,
    IdentifierFormat,
    crafted_canaries,
    format_of,
    fresh_identifiers,
    rank_p_value,
    sampled_canaries,
)

RUNS = 30 * int(os.environ.get("SNAPAUDIT_SEEDS", "10"))
PATTERNS = {
    "md5": r"[0-9a-f]{32}",
    "sha1": r"[0-9a-f]{40}",
    "sha256": r"[0-9a-f]{64}",
    "uuid4": r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
    "short url": r"https://sho\.rt/[0-9A-Za-z]{7}",
    "key": r"key-[0-9A-Za-z]{32}",
}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_every_format_is_tested_here():
    assert PATTERNS.keys() == FORMATS.keys()


@pytest.mark.parametrize("name", sorted(PATTERNS))
def test_identifiers_have_the_form_of_their_format_and_only_of_that(name, rng):
    drawn = FORMATS[name].draw(50, rng)
    assert len(set(drawn)) == 50
    for text in drawn:
        assert re.fullmatch(PATTERNS[name], text)
        assert format_of(text) is FORMATS[name]
        for other, entry in FORMATS.items():
            assert entry.matches(text) is (other == name)
        assert not FORMATS[name].matches(text + "0")
        assert not FORMATS[name].matches(text[:-1])


def test_uuids_are_uuids_of_version_4(rng):
    for text in FORMATS["uuid4"].draw(20, rng):
        value = uuid.UUID(text)
        assert (value.version, value.variant, str(value)) == (4, uuid.RFC_4122, text)
    assert FORMATS["uuid4"].matches(str(uuid.uuid4()))
    assert FORMATS["uuid4"].bits == 122


@pytest.mark.parametrize("name", sorted(PATTERNS))
def test_every_character_is_uniform_and_independent_of_its_neighbour(name):
    """χ² tests of each random position, and of each pair of neighbours by parity, at 1e-4 over all together."""
    entry = FORMATS[name]
    texts = entry.draw(500, np.random.default_rng(1))
    columns = [[text[i] for text in texts] for i in range(len(texts[0]))]
    alphabets = [
        alphabet
        for part in entry.pattern
        for alphabet in ([None] * len(part) if isinstance(part, str) else [part[0]] * part[1])
    ]
    random = [i for i, alphabet in enumerate(alphabets) if alphabet is not None]
    limit = 1e-4 / (2 * len(random))
    for i in random:
        alphabet = alphabets[i]
        counts = [columns[i].count(character) for character in alphabet]
        statistic = ((np.asarray(counts) - 500 / len(alphabet)) ** 2).sum() / (500 / len(alphabet))
        assert chi2.sf(statistic, len(alphabet) - 1) > limit
    for i, j in itertools.pairwise(random):
        halves = [[alphabets[k].index(character) % 2 for character in columns[k]] for k in (i, j)]
        agree = sum(a == b for a, b in zip(*halves, strict=True))
        assert 2 * min(binom.cdf(agree, 500, 0.5), binom.sf(agree - 1, 500, 0.5)) > limit


def test_a_skewed_format_fails_the_uniformity_test():
    skewed = IdentifierFormat("skewed", (("0123456789", 1),))
    counts = [skewed.draw(1_000, np.random.default_rng(2)).count(digit) for digit in "0123456789"]
    counts[0], counts[1] = counts[0] + 60, counts[1] - 60
    statistic = ((np.asarray(counts) - 100) ** 2).sum() / 100
    assert chi2.sf(statistic, 9) < 1e-4


@pytest.mark.parametrize("name", ["sha1", "short url"])
def test_the_rank_of_an_identifier_that_left_no_trace_is_uniform(name):
    """Any score of the text alone: here its number of distinct characters, which ties often, and its last one."""
    rng = np.random.default_rng(3)
    for score in (lambda text: len(set(text)), lambda text: ord(text[-1]) + ord(text[-2]) / 1_000):
        small = 0
        for _ in range(RUNS):
            (natural,) = FORMATS[name].draw(1, rng)
            fresh = fresh_identifiers(natural, 19, rng)
            small += rank_p_value(score(natural), [score(text) for text in fresh]) <= 0.1
        assert small <= binom.ppf(1 - 1e-4, RUNS, 0.1)


def test_without_ties_the_p_value_takes_every_value_equally_often():
    rng = np.random.default_rng(4)
    counts = np.zeros(5)
    for _ in range(RUNS):
        values = rng.random(5)
        counts[round(5 * rank_p_value(values[0], values[1:])) - 1] += 1
    assert chi2.sf(((counts - RUNS / 5) ** 2).sum() / (RUNS / 5), 4) > 1e-4


def test_a_trace_of_the_identifier_gives_the_smallest_p_value(rng):
    (canary,) = FORMATS["md5"].draw(1, rng)
    output = f"the record {canary} was seen"
    fresh = fresh_identifiers(canary, 99, rng)

    def overlap(text: str) -> int:
        return max(n for n in range(len(text) + 1) if text[:n] in output)

    assert rank_p_value(overlap(canary), [overlap(text) for text in fresh]) == 0.01


def test_an_identifier_that_was_drawn_again_counts_as_a_tie():
    assert rank_p_value(1.0, [1.0, 1.0, 1.0]) == 1.0
    assert rank_p_value(2.0, [1.0, 1.0, 3.0]) == 0.5
    assert rank_p_value(np.inf, [1.0]) == 0.5


@pytest.mark.parametrize(("canary", "fresh"), [(np.nan, [1.0]), (1.0, []), (1.0, [np.nan]), (1.0, 2.0)])
def test_scores_are_numbers(canary, fresh):
    with pytest.raises(ValueError, match="wants a number and"):
        rank_p_value(canary, fresh)


def test_sampled_canaries_are_different_records_and_each_equally_likely():
    corpus = ["a", "b", "c", "d", "a"]
    rng = np.random.default_rng(5)
    counts = dict.fromkeys("abcd", 0)
    for _ in range(RUNS):
        first, second = sampled_canaries(corpus, 2, rng)
        assert first != second
        counts[first] += 1
        counts[second] += 1
    for count in counts.values():
        assert binom.ppf(1e-5, RUNS, 0.5) <= count <= binom.ppf(1 - 1e-5, RUNS, 0.5)
    with pytest.raises(ValueError, match="5 canaries from 4 different records"):
        sampled_canaries(corpus, 5, rng)


def test_crafted_canaries_are_sentences_that_no_record_holds(rng):
    words = ["one", "two", "three"]
    canaries = crafted_canaries(words, 4, rng, length=2, absent_from=["He said: One two. Then he left."])
    assert len(set(canaries)) == 4
    assert "One two." not in canaries
    assert all(re.fullmatch(r"[A-Z][a-z]+ [a-z]+\.", canary) for canary in canaries)
    with pytest.raises(ValueError, match="found 5 of 6 canaries"):
        crafted_canaries(words, 6, rng, length=2, absent_from=["One two."])
    with pytest.raises(ValueError, match="8 words per canary, got 3 words"):
        crafted_canaries(words, 1, rng)


def test_equal_generators_give_equal_canaries():
    for draw in (
        lambda rng: FORMATS["key"].draw(3, rng),
        lambda rng: sampled_canaries(list("abcdef"), 3, rng),
        lambda rng: crafted_canaries(list("abcdefgh"), 3, rng, length=3),
    ):
        assert draw(np.random.default_rng(7)) == draw(np.random.default_rng(7))


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (("abc",), "nothing in the pattern is random"),
        ((("a", 3),), "two characters or more, each once"),
        ((("aab", 3),), "two characters or more, each once"),
        ((("ab", 0),), "count must be a positive integer, got 0"),
    ],
)
def test_formats_are_checked_at_the_door(pattern, message):
    with pytest.raises(ValueError, match=message):
        IdentifierFormat("mine", pattern)


def test_an_identifier_of_no_format_is_named():
    with pytest.raises(ValueError, match="'hello' is an identifier of none of the formats md5, sha1"):
        format_of("hello")
    assert format_of("AB12", [IdentifierFormat("plate", (("AB", 2), ("0123456789", 2)))]).name == "plate"


def test_a_text_is_no_list_of_words_or_records():
    rng = np.random.default_rng(0)
    with pytest.raises(TypeError, match="words"):
        crafted_canaries("abcdefgh", 1, rng, length=2)
    with pytest.raises(TypeError, match="absent_from"):
        crafted_canaries(["a", "b"], 1, rng, length=2, absent_from="A b. B a.")
