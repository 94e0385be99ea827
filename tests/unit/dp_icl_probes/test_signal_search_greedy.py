"""Greedy searches on an embedding small enough to know the optimum, and their checkpoints."""

from __future__ import annotations

import numpy as np
import pytest
from toy_embedding import ToyEmbedding, furthest_distance, random_embedding, words

from dp_icl.probes.signal_search import (
    SearchResult,
    embedding_distance,
    multi_sweep_greedy_search,
    random_sentences,
    single_sweep_greedy_search,
)

COMPASS = {
    name: (np.cos(angle), np.sin(angle))
    for name, angle in zip(words(12), np.arange(12) * np.pi / 6, strict=True)
}


def starts(model: ToyEmbedding, count: int, length: int) -> list[str]:
    return random_sentences(model.vocabulary, count, length, 5)


def improvement(model: ToyEmbedding, sentence: str, anchor: str) -> float:
    """By how much the best single replacement moves ``sentence`` further from ``anchor``."""
    there = model.unit(anchor.split())
    split = sentence.split()
    reached = [
        embedding_distance(model.unit([*split[:i], word, *split[i + 1 :]]), there)
        for i in range(len(split))
        for word in model.vocabulary
    ]
    return max(reached) - embedding_distance(model.unit(split), there)


def test_one_sweep_finds_the_opposite_point_of_the_circle():
    model = ToyEmbedding(COMPASS)
    result = single_sweep_greedy_search(model, model.vocabulary, ["aaa aab aac"])
    assert result.best.first == "aaa aab aac"  # the anchor of the first sweep is the seed itself
    assert result.best.distance == pytest.approx(2, abs=1e-6)
    assert result.best.second.split() == ["aah", "aah", "aah"] or embedding_distance(
        model.unit(result.best.second.split()), -model.unit(["aab"])
    ) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_seeds_everywhere_find_the_optimum_of_a_small_world(seed):
    model = random_embedding(7, 3, seed)
    everywhere = [f"{one} {other}" for one in model.vocabulary for other in model.vocabulary]
    result = multi_sweep_greedy_search(model, model.vocabulary, everywhere, sweeps=6)
    assert result.best.distance == pytest.approx(furthest_distance(model, 2), abs=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_a_finished_search_is_a_local_optimum_of_both_sides(seed):
    model = random_embedding(30, 8, seed)
    result = multi_sweep_greedy_search(model, model.vocabulary, starts(model, 2, 4), sweeps=50)
    for pair in result.found:
        assert improvement(model, *pair.sentences) < 1e-5
        assert improvement(model, *reversed(pair.sentences)) < 1e-5


def test_one_sweep_ends_only_when_no_replacement_of_the_second_sentence_helps():
    model = random_embedding(30, 8, 1)
    for pair in single_sweep_greedy_search(model, model.vocabulary, starts(model, 4, 4)).found:
        assert improvement(model, pair.second, pair.first) < 1e-5


@pytest.mark.parametrize("seed", range(5))
def test_more_sweeps_are_never_worse(seed):
    model = random_embedding(30, 8, seed)
    distances = [
        [
            pair.distance
            for pair in multi_sweep_greedy_search(
                model, model.vocabulary, starts(model, 3, 4), sweeps=sweeps
            ).found
        ]
        for sweeps in (1, 2, 3, 6)
    ]
    assert (np.diff(distances, axis=0) >= -1e-6).all()
    assert distances[-1] > distances[0]


def test_the_best_pair_is_the_best_of_all_seeds_and_its_distance_is_that_of_its_texts():
    model = random_embedding(20, 6, 3)
    result = multi_sweep_greedy_search(model, model.vocabulary, starts(model, 4, 3))
    assert result.best.distance == max(pair.distance for pair in result.found)
    assert len(result.found) == 4
    for pair in result.found:
        assert pair.distance == pytest.approx(embedding_distance(*model.embed(pair.sentences)), abs=1e-12)


def test_where_all_words_are_alike_nothing_is_found_and_nothing_is_replaced():
    model = ToyEmbedding(dict.fromkeys(words(9), (0.6, 0.8)))
    result = multi_sweep_greedy_search(model, model.vocabulary, ["aaa aab"])
    assert result.best.sentences == ("aaa aab", "aaa aab")
    assert result.best.distance == pytest.approx(0, abs=1e-6)


def search(model: ToyEmbedding, checkpoint=None) -> SearchResult:
    return multi_sweep_greedy_search(
        model, model.vocabulary, starts(model, 3, 3), sweeps=3, checkpoint=checkpoint
    )


def test_an_interruption_changes_nothing_and_repeats_one_position_at_most(tmp_path):
    whole = random_embedding(12, 4, 2)
    expected = search(whole)
    assert expected == search(random_embedding(12, 4, 2))
    assert expected.evaluations == whole.embedded
    assert whole.called > 30
    for calls in range(0, whole.called, 7):
        path = tmp_path / f"{calls}.json"
        interrupted, resumed = random_embedding(12, 4, 2, calls=calls), random_embedding(12, 4, 2)
        with pytest.raises(KeyboardInterrupt):
            search(interrupted, path)
        assert search(resumed, path) == expected
        assert interrupted.embedded + resumed.embedded <= expected.evaluations + 13


def test_a_finished_search_is_read_from_its_checkpoint(tmp_path):
    expected = search(random_embedding(12, 4, 2), tmp_path / "state.json")
    again = random_embedding(12, 4, 2, calls=0)
    assert search(again, tmp_path / "state.json") == expected
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


def test_the_checkpoint_of_another_search_is_refused(tmp_path):
    path = tmp_path / "state.json"
    search(random_embedding(12, 4, 2), path)
    with pytest.raises(ValueError, match="another model, vocabulary or parameters"):
        search(random_embedding(12, 4, 3), path)
    model = random_embedding(12, 4, 2)
    with pytest.raises(ValueError, match="another model, vocabulary or parameters"):
        single_sweep_greedy_search(model, model.vocabulary, starts(model, 3, 3), checkpoint=path)


@pytest.mark.parametrize("content", ["", "[]", '{"search": "x"}', '{"search": "x", "state": 3}'])
def test_a_damaged_checkpoint_is_named(tmp_path, content):
    path = tmp_path / "state.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"state\.json is not the checkpoint of a search.*delete it"):
        search(random_embedding(12, 4, 2), path)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"vocabulary": "aaa"}, TypeError, "vocabulary must be a sequence of words, got 'aaa'"),
        ({"vocabulary": ["aaa", 3]}, TypeError, r"vocabulary\[1\] must be a string, got 3"),
        ({"vocabulary": ["aaa", "a b"]}, ValueError, r"vocabulary\[1\] must be one word .* 'a b'"),
        ({"vocabulary": ["aaa", "aaa"]}, ValueError, "at least two words, each once; got 2"),
        ({"vocabulary": ["aaa"]}, ValueError, "at least two words, each once; got 1"),
        ({"seeds": []}, ValueError, "at least one sentence"),
        ({"seeds": "aaa"}, TypeError, "put a single text in a list"),
        ({"seeds": ["aaa", " "]}, ValueError, "needs at least one word, got ' '"),
        ({"sweeps": 0}, ValueError, "sweeps must be a positive integer, got 0"),
        ({"sweeps": 1.5}, ValueError, "sweeps must be a positive integer, got 1.5"),
    ],
)
def test_arguments_are_checked_at_the_door(arguments, error, message):
    model = ToyEmbedding(COMPASS, calls=0)
    given = {"vocabulary": model.vocabulary, "seeds": ["aaa aab"], **arguments}
    with pytest.raises(error, match=message):
        multi_sweep_greedy_search(model, given.pop("vocabulary"), given.pop("seeds"), **given)
