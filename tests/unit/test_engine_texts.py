"""Texts: what is read off them, and that leaks in them are found and named."""

import numpy as np
import pytest

from pytest_snapaudit.engine.audit import audit
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.mechanism import from_sampler
from pytest_snapaudit.engine.outcomes import fit_layout
from pytest_snapaudit.engine.texts import MANY_LABELS, TextReader, fit_reader

WORDS = np.array(["ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen", "ibis", "jay"])


def test_a_reader_counts_words_and_finds_the_length_the_first_number_and_characters():
    reader = TextReader(words=("to", "be"), characters=3)
    assert reader.columns("output") == (
        "length of output",
        "first number in output",
        "number of times output says 'to'",
        "number of times output says 'be'",
        "code of character 0 of output",
        "code of character 1 of output",
        "code of character 2 of output",
    )
    assert reader.width == 7
    assert reader.read("to be, or -1.5e2 to").tolist() == [19, -150, 2, 1, ord("t"), ord("o"), ord(" ")]
    np.testing.assert_array_equal(reader.read(""), [0, np.nan, 0, 0, np.nan, np.nan, np.nan])


def test_words_that_tell_the_sides_apart_come_before_common_ones():
    sides = [["the cat sat", "the dog sat"] * 20, ["the cat ran", "the fox sat"] * 20]
    reader = fit_reader(sides)
    assert set(reader.words) == {"the", "cat", "dog", "sat", "ran", "fox"}
    assert reader.words[-1] in {"the", "sat"}
    assert reader.characters == len("the cat sat")
    assert fit_reader([["x" * 17], ["y"]]).characters == 0
    assert fit_reader([[], []]) == TextReader((), 0)


def test_few_different_strings_are_labels_and_many_are_texts():
    few = [f"label {i % MANY_LABELS}" for i in range(400)]
    many = [f"label {i}" for i in range(400)]
    assert fit_layout([(few, 400), (few, 400)]).texts == ()
    assert len(fit_layout([(many, 400), (many, 400)]).texts) == 1
    assert len(fit_layout([(np.array(many), 400), (np.array(many), 400)]).texts) == 1


def test_outputs_that_are_not_strings_have_no_numbers_of_a_text():
    texts = [f"word {i}" for i in range(300)]
    layout = fit_layout([(texts, 300), (texts, 300)])
    encoded = layout.encode([None, 3.0, "word 7"], 3)
    length, number = (layout.columns.index(name) for name in ("length of output", "first number in output"))
    np.testing.assert_array_equal(encoded[:, [length, number]], [[np.nan] * 2, [np.nan] * 2, [6, 7]])
    assert encoded.shape == (3, len(layout.columns))


def sentences(side, n, rng, rate):
    picked = WORDS[rng.integers(0, len(WORDS), (n, 6))]
    told = rng.random(n) < (rate if side else 0.05)
    picked[told, rng.integers(0, 6, told.sum())] = "zoe"
    return [" ".join(row) for row in picked]


def lengths(side, n, rng, rate):
    long = rng.random(n) < (rate if side else 0.05)
    letters = rng.integers(97, 123, (n, 9))
    return ["".join(map(chr, row[: 9 if is_long else 7])) for row, is_long in zip(letters, long, strict=True)]


def numbers(side, n, rng, rate):
    values = rng.normal(3.0 if rate > 0.05 and side else 0.0, 1.0, n)
    return [f"The answer is {value:.3f}." for value in values]


@pytest.mark.parametrize(
    ("law", "words"),
    [(sentences, "says 'zoe'"), (lengths, "length of output"), (numbers, "first number in output")],
)
def test_a_leak_in_texts_is_found_and_one_of_equal_laws_is_not(law, words):
    def leaking(side, n, rng):
        return law(side, n, rng, 0.5)

    def equal(side, n, rng):
        return law(side, n, rng, 0.05)

    found = audit(from_sampler(leaking), (0, 1), PrivacyClaim(1.0), n_trials=6_000)
    assert found.violated
    bounds = [
        audit(from_sampler(equal), (0, 1), PrivacyClaim(1.0), n_trials=1_500, confidence=0.95, seed=i)
        for i in range(8)
    ]
    assert sum(result.epsilon_lower > 0 for result in bounds) <= 3  # 1e-4 by a binomial law at 5 %
    columns = fit_layout([(leaking(side, 500, np.random.default_rng(side)), 500) for side in (0, 1)]).columns
    assert any(words in column for column in columns)
