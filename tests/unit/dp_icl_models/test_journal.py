"""The journal of model calls: paid once, kept through interruptions, never mixed between models."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from dp_icl.models import JSON, Journal, JournaledEmbeddingModel, JournaledLanguageModel, digest


class CountingLanguage:
    """Answers a prompt with its reverse; dies at the call number ``dies_at``."""

    def __init__(self, name: str = "reverse", dies_at: int | None = None) -> None:
        self.calls: list[list[str]] = []
        self.dies_at = dies_at
        self.provenance: Mapping[str, JSON] = {"model": name, "versions": {"reverse": "1"}}

    def _count(self, prompts: Sequence[str]) -> None:
        if len(self.calls) == self.dies_at:
            raise KeyboardInterrupt
        self.calls.append(list(prompts))

    def complete(self, prompts: Sequence[str]) -> list[str]:
        self._count(prompts)
        return [prompt[::-1] for prompt in prompts]

    def label_log_probabilities(
        self, prompts: Sequence[str], continuations: Sequence[str]
    ) -> NDArray[np.float64]:
        self._count(prompts)
        return np.asarray([[-len(p) / 3 - len(c) for c in continuations] for p in prompts], np.float64)


class CountingEmbedding:
    """Embeds a text on the circle, by its length."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.provenance: Mapping[str, JSON] = {"model": "circle"}

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls.append(list(texts))
        angles = np.asarray([len(text) / 7 for text in texts], np.float32)
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "calls.journal.jsonl"


def test_answers_come_in_order_and_are_paid_for_once(path: Path) -> None:
    inner = CountingLanguage()
    model = JournaledLanguageModel(inner, path, chunk=2)
    assert model.complete(["abc", "de", "abc", "f"]) == ["cba", "ed", "cba", "f"]
    assert inner.calls == [["abc", "de"], ["f"]]
    assert model.complete(["f", "abc"]) == ["f", "cba"]
    assert JournaledLanguageModel(inner, path).complete(["de"]) == ["ed"]
    assert len(inner.calls) == 2


def test_an_interrupted_run_resumes_with_what_is_missing(path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        JournaledLanguageModel(CountingLanguage(dies_at=2), path, chunk=2).complete(list("abcdefg"))
    after = CountingLanguage()
    assert JournaledLanguageModel(after, path, chunk=2).complete(list("abcdefg")) == list("abcdefg")
    assert after.calls == [["e", "f"], ["g"]]


def test_answers_survive_a_process_that_is_killed_in_the_next_call(path: Path) -> None:
    program = f"""
import os, signal
from dp_icl.models import JournaledLanguageModel
class Model:
    provenance = {{"model": "reverse", "versions": {{"reverse": "1"}}}}
    calls = 0
    def complete(self, prompts):
        if self.calls == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        self.calls += 1
        return [prompt[::-1] for prompt in prompts]
JournaledLanguageModel(Model(), {str(path)!r}, chunk=1).complete(["ab", "cd", "ef", "gh"])
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    inner = CountingLanguage()
    assert JournaledLanguageModel(inner, path).complete(["ab", "cd", "ef", "gh"]) == ["ba", "dc", "fe", "hg"]
    assert inner.calls == [["gh"]]


def test_a_torn_last_line_is_ignored_and_replaced_wherever_it_is_cut(path: Path) -> None:
    JournaledLanguageModel(CountingLanguage(), path).complete(["abc", "de"])
    whole = path.read_bytes()
    last = whole[:-1].rindex(b"\n") + 1
    for cut in range(last, len(whole)):
        path.write_bytes(whole[:cut])
        inner = CountingLanguage()
        assert JournaledLanguageModel(inner, path).complete(["abc", "de"]) == ["cba", "ed"]
        assert inner.calls == [["de"]]
        assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "line", [b"{", b"[1, 2]", b'{"key": "a"}', b'{"key": 1, "value": 2}', b"\xff\xfe", b"\x00" * 8]
)
def test_a_foreign_complete_line_is_an_error_that_names_it_and_changes_nothing(
    path: Path, line: bytes
) -> None:
    Journal(path).add({"a": 1})
    content = path.read_bytes() + line + b"\n" + path.read_bytes()
    path.write_bytes(content)
    with pytest.raises(
        ValueError, match=r"line 2 of .*calls\.journal\.jsonl is not a journal entry"
    ) as caught:
        Journal(path)
    assert "Delete that line" in str(caught.value)
    assert path.read_bytes() == content


def test_another_model_version_or_parameter_never_finds_foreign_answers(path: Path) -> None:
    JournaledLanguageModel(CountingLanguage(), path).complete(["abc"])
    newer = CountingLanguage()
    newer.provenance = {"model": "reverse", "versions": {"reverse": "2"}}
    for other in (CountingLanguage("mirror"), newer):
        JournaledLanguageModel(other, path).complete(["abc"])
        assert other.calls == [["abc"]]


def test_kinds_of_call_and_labels_are_told_apart(path: Path) -> None:
    inner = CountingLanguage()
    model = JournaledLanguageModel(inner, path)
    model.complete(["abc"])
    first = model.label_log_probabilities(["abc"], [" x", " yy"])
    swapped = model.label_log_probabilities(["abc"], [" yy", " x"])
    assert len(inner.calls) == 3
    assert first.tolist() == swapped[:, ::-1].tolist() == [[-3.0, -4.0]]


def test_numbers_come_back_bit_for_bit(path: Path) -> None:
    language, embedding = CountingLanguage(), CountingEmbedding()
    prompts = ["a", "bb", "ccccc"]
    JournaledLanguageModel(language, path).label_log_probabilities(prompts, ["x"])
    JournaledEmbeddingModel(embedding, path).embed(prompts)
    scores = JournaledLanguageModel(language, path).label_log_probabilities(prompts, ["x"])
    rows = JournaledEmbeddingModel(embedding, path).embed(prompts)
    assert len(language.calls) == len(embedding.calls) == 1
    assert scores.dtype == np.float64
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(scores, CountingLanguage().label_log_probabilities(prompts, ["x"]))
    np.testing.assert_array_equal(rows, CountingEmbedding().embed(prompts))


def test_two_models_share_one_file_without_losing_lines(path: Path) -> None:
    language, embedding = CountingLanguage(), CountingEmbedding()
    speaks, embeds = JournaledLanguageModel(language, path), JournaledEmbeddingModel(embedding, path)
    for text in ("a", "bb", "ccc"):
        speaks.complete([text])
        embeds.embed([text])
    assert len(Journal(path)) == 6
    assert JournaledEmbeddingModel(embedding, Journal(path)).embed(["bb"]).shape == (1, 2)
    assert len(embedding.calls) == 3


def test_no_texts_cost_no_call_of_a_language_model(path: Path) -> None:
    inner = CountingLanguage()
    model = JournaledLanguageModel(inner, path)
    assert model.complete([]) == []
    assert model.label_log_probabilities([], ["x", "y"]).shape == (0, 2)
    assert inner.calls == []
    assert not path.exists()


def test_a_model_that_answers_too_few_texts_is_an_error_and_is_not_journaled(path: Path) -> None:
    inner = CountingLanguage()
    inner.complete = lambda prompts: ["only one"]  # type: ignore[method-assign]
    with pytest.raises(ValueError, match="given 2 prompts and gave 1 answers"):
        JournaledLanguageModel(inner, path).complete(["a", "b"])
    assert not path.exists()


def test_the_digest_ignores_the_order_of_keys_and_not_the_order_of_items() -> None:
    assert digest({"a": 1, "b": [1, 2]}) == digest({"b": (1, 2), "a": 1})
    assert digest([1, 2]) != digest([2, 1])
    assert digest("1") != digest(1)
    with pytest.raises(TypeError, match="JSON values, got 1j"):
        digest(1j)  # type: ignore[arg-type]


def test_every_line_is_one_json_object(path: Path) -> None:
    JournaledLanguageModel(CountingLanguage(), path).complete(["ä\nb", "c"])
    entries = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [entry["value"] for entry in entries] == ["b\nä", "c"]


@pytest.mark.parametrize("chunk", [0, -1, 1.5, True])
def test_chunks_are_positive_integers(path: Path, chunk: object) -> None:
    with pytest.raises(ValueError, match=f"chunk must be a positive integer, got {chunk}"):
        JournaledLanguageModel(CountingLanguage(), path, chunk=chunk)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="chunk must be a positive integer"):
        JournaledEmbeddingModel(CountingEmbedding(), path, chunk=chunk)  # type: ignore[arg-type]
