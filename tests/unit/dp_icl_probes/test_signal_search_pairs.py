"""Signal pairs as JSON, the words that come with the package, and what a model writes when asked."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from toy_embedding import random_embedding

from dp_icl.models import LanguageModel
from dp_icl.probes.signal_search import (
    REQUESTS,
    SignalPair,
    load_signal_pairs,
    load_words,
    model_written_pairs,
    random_sentences,
    read_pairs,
    two_sentences,
    write_pairs,
)

PAIR = SignalPair("one döor", "two", 1.25, "MSGS", {"seeds": 3})


def test_pairs_survive_the_way_to_disk_and_back(tmp_path):
    write_pairs(tmp_path / "pairs.json", [PAIR, SignalPair("a", "b", 0.1, "GS")], "toy")
    assert read_pairs(tmp_path / "pairs.json") == (PAIR, SignalPair("a", "b", 0.1, "GS"))


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"pairs": 3},
        {"pairs": [{"first": "a"}]},
        {"pairs": [{"method": "x", "distance": 3, "first": "a", "second": "b", "details": {}}]},
        {"pairs": [{"method": "x", "distance": "1", "first": "a", "second": "b", "details": {}}]},
    ],
)
def test_another_file_is_refused_by_name(tmp_path, change):
    path = tmp_path / "pairs.json"
    write_pairs(path, [PAIR], "toy")
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ValueError, match=r"pairs\.json is not a file of signal pairs"):
        read_pairs(path)


@pytest.mark.parametrize("distance", [-0.1, 2.1, float("nan")])
def test_distances_of_unit_vectors_are_at_most_2(distance):
    with pytest.raises(ValueError, match="distance of unit vectors"):
        SignalPair("a", "b", distance, "GS")


def test_sentences_are_texts():
    with pytest.raises(ValueError, match="second is empty"):
        SignalPair("a", " ", 1.0, "GS")
    with pytest.raises(TypeError, match="first must be a string, got 3"):
        SignalPair(3, "b", 1.0, "GS")  # type: ignore[arg-type]


def test_the_words_are_different_plain_words_in_order():
    words = load_words()
    assert len(words) == len(set(words)) == 11_293
    assert list(words) == sorted(words)
    assert all(re.fullmatch(r"[a-z]{4,}", word) for word in words)


def test_random_sentences_depend_on_the_seed_alone_and_repeat_no_word():
    words = load_words()
    sentences = random_sentences(words, 3, 10, 1)
    assert sentences == random_sentences(words, 3, 10, 1) != random_sentences(words, 3, 10, 2)
    assert all(len(set(sentence.split())) == 10 for sentence in sentences)
    with pytest.raises(ValueError, match="3 words needs as many different ones, got 2"):
        random_sentences(["a", "b"], 1, 3, 0)


def test_the_pairs_that_come_with_the_package_are_sentences_of_its_words():
    pairs = {pair.method: pair for pair in load_signal_pairs()}
    assert set(pairs) == {"gradient-guided", "MSGS", "GS", "model-written"}
    words = set(load_words())
    for method in ("gradient-guided", "MSGS", "GS"):
        assert words.issuperset(" ".join(pairs[method].sentences).split())
    assert pairs["gradient-guided"].distance >= 1.85
    assert pairs["MSGS"].distance >= 1.42
    assert pairs["GS"].distance < pairs["MSGS"].distance < pairs["gradient-guided"].distance < 2
    assert pairs["model-written"].distance < 0.2  # a 135M model writes the same sentence twice, or nearly


@pytest.mark.parametrize(
    ("answer", "sentences"),
    [
        (" The sea.\nSentence 2: Add it.", ("The sea.", "Add it.")),
        ("Sentence 1: The\n  sea. sentence 2. Add it.\nSentence 3: No.", ("The sea.", "Add it.")),
    ],
)
def test_two_sentences_are_taken_out_of_an_answer(answer, sentences):
    assert two_sentences(answer) == sentences


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("The sea.", "no second sentence"),
        ("", "no second sentence"),
        ("The sea.\nSentence 2:", "an empty sentence"),
        ("Sentence 2: Add it.", "an empty sentence"),
        ("The sea.\nSentence 2: the  sea.", "the same sentence twice"),
    ],
)
def test_an_answer_without_two_sentences_says_so(answer, problem):
    with pytest.raises(ValueError, match=problem):
        two_sentences(answer)


class Writer:
    """Answers every prompt with the next of its texts."""

    provenance = {"model": "writer"}  # noqa: RUF012

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)

    def complete(self, prompts, *, temperature=0.0, seed=None):
        return [self.answers.pop(0) for _ in prompts]

    def label_log_probabilities(self, prompts, continuations):
        return np.zeros((len(prompts), len(continuations)))

    def continuation_log_probabilities(self, prompts, continuations):
        return np.zeros(len(prompts))


def test_what_a_model_writes_is_measured_or_reported():
    model = random_embedding(9, 4, 0)
    writer = Writer("aaa\nSentence 2: aab", "aaa aaa", "aaa\nSentence 2: aac aad")
    assert isinstance(writer, LanguageModel)
    result = model_written_pairs(writer, model, requests=REQUESTS[:3])
    assert [answer.problem for answer in result.answers] == ["", "no second sentence", ""]
    assert [answer.request for answer in result.answers] == list(REQUESTS[:3])
    pairs = [answer.pair for answer in result.answers]
    assert pairs[0].sentences == ("aaa", "aab")
    assert pairs[1] is None
    assert result.best.distance == max(pairs[0].distance, pairs[2].distance)
    assert result.best.method == "model-written"


def test_a_sentence_of_the_request_is_not_one_of_the_model():
    request = "For example: aaa\nSentence 1:"
    result = model_written_pairs(
        Writer("aaa\nSentence 2: aab"), random_embedding(9, 4, 0), requests=[request]
    )
    assert result.best is None
    assert [answer.problem for answer in result.answers] == ["a sentence of the request"]


def test_a_model_that_writes_no_pair_has_no_best_one():
    result = model_written_pairs(Writer("yes", "no"), random_embedding(9, 4, 0), requests=REQUESTS[:2])
    assert result.best is None
    assert [answer.text for answer in result.answers] == ["yes", "no"]


def test_every_request_ends_where_the_first_sentence_begins():
    assert all(request.endswith("Sentence 1:") for request in REQUESTS)
