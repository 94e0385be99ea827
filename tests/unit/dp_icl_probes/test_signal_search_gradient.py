"""The gradient-guided search on an embedding small enough to know the optimum, and its checkpoints."""

from __future__ import annotations

import numpy as np
import pytest
from toy_embedding import ToyEmbedding, furthest_distance, random_embedding, words

from dp_icl.models import EmbeddingModel
from dp_icl.probes.signal_search import (
    GradientEmbeddingModel,
    embedding_distance,
    gradient_search,
    multi_sweep_greedy_search,
    random_sentences,
)


def test_the_toy_is_a_gradient_embedding_and_its_slopes_are_derivatives():
    model = random_embedding(9, 5, 0)
    assert isinstance(model, GradientEmbeddingModel)
    assert not isinstance(object(), EmbeddingModel)
    sentence, anchor, step = ["aaa", "aab", "aac"], model.unit(["aad"]), 1e-6
    slopes = model.replacement_slopes(sentence, 1, anchor)
    vectors = np.asarray([model.table[word] for word in sentence])
    for word, slope in zip(model.vocabulary, slopes, strict=True):
        moved = vectors.copy()
        moved[1] += step * model.table[word]
        units = [rows.mean(axis=0) / np.linalg.norm(rows.mean(axis=0)) for rows in (vectors, moved)]
        assert (units[1] - units[0]) @ anchor / step == pytest.approx(slope, abs=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_it_finds_the_optimum_of_a_small_world(seed):
    model = random_embedding(7, 3, seed)
    result = gradient_search(model, lengths=(2,), seeds=(0, 1, 2), evaluations=2_500, shortlist=2)
    assert result.best.distance == pytest.approx(furthest_distance(model, 2), abs=1e-5)


def test_it_finds_the_opposite_words_of_a_circle_of_a_thousand():
    angles = np.arange(500) * 2 * np.pi / 500
    table = dict(zip(words(500), np.stack([np.cos(angles), np.sin(angles)], axis=1).tolist(), strict=True))
    model = ToyEmbedding(table)
    result = gradient_search(model, lengths=(3,), evaluations=2_000, shortlist=4)
    assert result.best.distance == pytest.approx(2, abs=1e-4)
    assert model.embedded < 2_100  # the vocabulary itself is never embedded position by position


@pytest.mark.parametrize("seed", range(3))
def test_a_few_candidates_a_word_do_as_well_as_the_whole_vocabulary(seed):
    model = random_embedding(200, 12, seed)
    guided = gradient_search(model, lengths=(5,), seeds=(0,), evaluations=2_000)
    greedy = multi_sweep_greedy_search(
        model, model.vocabulary, random_sentences(model.vocabulary, 1, 5, 0), sweeps=2
    )
    assert greedy.evaluations > 2_000
    assert guided.best.distance > greedy.best.distance - 0.01


def test_every_start_is_reported_with_its_length_and_seed_and_the_distance_of_its_texts():
    model = random_embedding(30, 6, 1)
    result = gradient_search(model, lengths=(2, 4), seeds=(3, 5), evaluations=200)
    assert [(pair.details["length"], pair.details["seed"]) for pair in result.found] == [
        (2, 3),
        (2, 5),
        (4, 3),
        (4, 5),
    ]
    for pair in result.found:
        assert {len(text.split()) for text in pair.sentences} == {pair.details["length"]}
        assert pair.distance == pytest.approx(embedding_distance(*model.embed(pair.sentences)), abs=1e-12)
    assert result.best in result.found
    assert result.best.distance == max(pair.distance for pair in result.found)


def test_where_all_words_are_alike_nothing_is_found():
    model = ToyEmbedding(dict.fromkeys(words(9), (0.6, 0.8)))
    assert gradient_search(model, lengths=(2,), evaluations=100).best.distance == pytest.approx(0, abs=1e-6)


def test_an_interruption_changes_nothing_and_repeats_one_sweep_at_most(tmp_path):
    options = {"lengths": (2, 3), "seeds": (0, 1), "evaluations": 150, "shortlist": 2, "kicked": 1}
    whole = random_embedding(20, 4, 2)
    expected = gradient_search(whole, **options)
    assert expected == gradient_search(random_embedding(20, 4, 2), **options)
    assert whole.called > 100
    for calls in range(0, whole.called, 19):
        path = tmp_path / f"{calls}.json"
        interrupted, resumed = random_embedding(20, 4, 2, calls=calls), random_embedding(20, 4, 2)
        with pytest.raises(KeyboardInterrupt):
            gradient_search(interrupted, **options, checkpoint=path)
        assert gradient_search(resumed, **options, checkpoint=path) == expected
        assert interrupted.embedded + resumed.embedded <= whole.embedded + 3 * 20 + 4


def test_the_checkpoint_of_another_search_is_refused(tmp_path):
    path = tmp_path / "state.json"
    gradient_search(random_embedding(12, 4, 2), lengths=(2,), evaluations=50, checkpoint=path)
    with pytest.raises(ValueError, match="another model, vocabulary or parameters"):
        gradient_search(random_embedding(12, 4, 2), lengths=(3,), evaluations=50, checkpoint=path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lengths": ()}, "at least one value each"),
        ({"seeds": ()}, "at least one value each"),
        ({"lengths": (2, 0)}, "lengths must be a positive integer, got 0"),
        ({"evaluations": 0}, "evaluations must be a positive integer, got 0"),
        ({"shortlist": -1}, "shortlist must be a positive integer, got -1"),
        ({"longest_shortlist": True}, "longest_shortlist must be a positive integer, got True"),
        ({"kicked": 0.5}, "kicked must be a positive integer, got 0.5"),
    ],
)
def test_arguments_are_checked_at_the_door(arguments, message):
    with pytest.raises(ValueError, match=message):
        gradient_search(random_embedding(5, 3, 0, calls=0), **arguments)
