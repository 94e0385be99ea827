"""The journal of model calls: paid once, kept through interruptions, never mixed between models."""

from __future__ import annotations

import json
import math
import sqlite3
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from fake_models import CountingEmbedding, CountingLanguage

from dp_icl.models import (
    CallCounts,
    CallKey,
    Journal,
    JournaledEmbeddingModel,
    JournaledLanguageModel,
    PartlyAnsweredError,
    digest,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "calls.journal.sqlite"


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


def test_made_and_saved_calls_are_counted_and_told(path: Path) -> None:
    model = JournaledLanguageModel(CountingLanguage(), path, chunk=2)
    model.complete(["abc", "de", "abc"])
    model.label_log_probabilities(["abc"], ["x"])
    model.complete(["abc", "f"])
    assert model.calls == CallCounts(made=4, resumed=1, shared=1)
    assert model.calls.saved == 2
    assert str(model.calls) == "4 model calls made, 2 saved (1 from the journal, 1 identical in one batch)"
    embedding = JournaledEmbeddingModel(CountingEmbedding(), path)
    embedding.embed(["a", "a", "b"])
    assert embedding.calls == CallCounts(made=2, shared=1)


def test_identical_calls_are_replicates_unless_they_are_shared(path: Path) -> None:
    inner = CountingLanguage()
    model = JournaledLanguageModel(inner, path, share_identical=False)
    sides = ["abc", "de"], ["abc", "f"]
    for side in sides:
        model.complete(list(side))
    assert inner.calls == [["abc", "de"], ["abc", "f"]]
    assert model.calls == CallCounts(made=4)
    assert model.complete(["abc", "abc"]) == ["cba", "cba"]
    assert inner.calls[2] == ["abc", "abc"]

    again = JournaledLanguageModel(inner, path, share_identical=False)
    for side in sides:
        again.complete(list(side))
    assert again.calls == CallCounts(resumed=4)
    shared = JournaledLanguageModel(CountingLanguage(), path.with_name("other.journal.sqlite"))
    for side in sides:
        shared.complete(list(side))
    assert shared.calls == CallCounts(made=3, resumed=1)


def test_replicates_that_failed_are_asked_for_again_under_the_same_number(path: Path) -> None:
    inner = CountingLanguage(dies_at=1)
    model = JournaledLanguageModel(inner, path, chunk=1, share_identical=False)
    with pytest.raises(KeyboardInterrupt):
        model.complete(["abc", "abc"])
    inner.dies_at = None
    assert model.complete(["abc", "abc"]) == ["cba", "cba"]
    assert model.calls == CallCounts(made=2, resumed=1)


def test_draws_are_told_apart_by_temperature_and_seed_and_shared_if_equal(path: Path) -> None:
    inner = CountingLanguage()
    model = JournaledLanguageModel(inner, path, chunk=10, share_identical=False)
    first = model.complete(["ab", "ab", "cd"], temperature=1, seed=[0, 1, 0])
    assert first == ["ba 0 1", "ba 1 1", "dc 0 1"]
    assert model.complete(["ab", "cd"], temperature=1.0, seed=0) == ["ba 0 1", "dc 0 1"]
    assert len(inner.calls) == 1
    assert model.complete(["ab"], temperature=0.5, seed=0) == ["ba 0 0.5"]
    assert model.complete(["ab"]) == ["ba"]
    assert len(inner.calls) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.5}, "temperature 0.5 draws tokens and needs seed="),
        ({"seed": 3}, "temperature 0 decodes greedily and takes no seed, got seed=3"),
        ({"temperature": -1.0, "seed": 0}, "temperature must be a finite number of at least 0, got -1.0"),
        ({"temperature": math.nan, "seed": 0}, "temperature must be a finite number"),
        ({"temperature": True, "seed": 0}, "temperature must be a finite number of at least 0, got True"),
        ({"temperature": 1.0, "seed": [1]}, "one per prompt, got 1 seeds for 2 prompts"),
        ({"temperature": 1.0, "seed": [1, -1]}, r"seeds must be integers from 0 to 2\*\*63 - 1, got -1"),
        ({"temperature": 1.0, "seed": 2**63}, "seeds must be integers from 0 to"),
        ({"temperature": 1.0, "seed": 1.5}, "seeds must be integers from 0 to"),
    ],
)
def test_temperature_and_seed_must_fit(path: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        JournaledLanguageModel(CountingLanguage(), path).complete(["a", "b"], **options)  # type: ignore[arg-type]


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
    single = model.continuation_log_probabilities(["abc", "abc"], [" x", " yy"])
    assert len(inner.calls) == 4
    assert first.tolist() == swapped[:, ::-1].tolist() == [single.tolist()] == [[-3.0, -4.0]]
    assert model.continuation_log_probabilities(["abc"], [" yy"]).tolist() == [-4.0]
    assert len(inner.calls) == 4


def test_every_prompt_needs_one_continuation(path: Path) -> None:
    with pytest.raises(ValueError, match="got 2 prompts and 1 continuations"):
        JournaledLanguageModel(CountingLanguage(), path).continuation_log_probabilities(["a", "b"], [" c"])


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


def test_impossible_labels_come_back_as_minus_infinity(path: Path) -> None:
    inner = CountingLanguage()
    inner.label_log_probabilities = lambda p, c: np.full((len(p), len(c)), -np.inf)  # type: ignore[method-assign]
    for _ in range(2):
        scores = JournaledLanguageModel(inner, path).label_log_probabilities(["a"], ["x"])
        assert scores.tolist() == [[-math.inf]]


def test_two_models_share_one_file_without_losing_answers(path: Path) -> None:
    language, embedding = CountingLanguage(), CountingEmbedding()
    speaks, embeds = JournaledLanguageModel(language, path), JournaledEmbeddingModel(embedding, path)
    for text in ("a", "bb", "ccc"):
        speaks.complete([text])
        embeds.embed([text])
    assert len(Journal(path)) == 6
    assert JournaledEmbeddingModel(embedding, Journal(path)).embed(["bb"]).shape == (1, 2)
    assert len(embedding.calls) == 3


def test_a_journal_that_another_process_made_meanwhile_is_found(path: Path) -> None:
    inner = CountingLanguage()
    early = JournaledLanguageModel(inner, path)
    JournaledLanguageModel(CountingLanguage(), path).complete(["ab"])
    assert early.complete(["ab"]) == ["ba"]
    assert inner.calls == []


def test_the_first_of_two_writers_wins(path: Path) -> None:
    key = CallKey("a", "b", "c")
    with Journal(path) as one, Journal(path) as other:
        one.add({key: "first"})
        other.add({key: "second", key._replace(replicate=1): "third"})
        assert one[key] == "first"
        assert one[key._replace(replicate=1)] == "third"
        assert len(one) == 2


def test_no_texts_cost_no_call_of_a_language_model(path: Path) -> None:
    inner = CountingLanguage()
    model = JournaledLanguageModel(inner, path)
    assert model.complete([]) == []
    assert model.complete([], temperature=1.0, seed=0) == []
    assert model.label_log_probabilities([], ["x", "y"]).shape == (0, 2)
    assert model.continuation_log_probabilities([], []).shape == (0,)
    assert inner.calls == []
    assert not path.exists()


def test_a_model_that_answers_too_few_texts_is_an_error_and_is_not_journaled(path: Path) -> None:
    inner = CountingLanguage()
    inner.complete = lambda prompts: ["only one"]  # type: ignore[method-assign,assignment]
    with pytest.raises(ValueError, match="must answer 2 prompts with a list of as many texts, got 1 of them"):
        JournaledLanguageModel(inner, path).complete(["a", "b"])
    assert not path.exists()


def test_answers_before_a_failure_are_kept(path: Path) -> None:
    def fail(items: list[str]) -> list[str]:
        message = "out of order"
        raise PartlyAnsweredError(message, [item.upper() for item in items[:2]])

    keys = [CallKey(name, "m", "p") for name in "abcd"]
    counts = CallCounts()
    with Journal(path) as journal:
        with pytest.raises(PartlyAnsweredError, match="out of order"):
            journal.fetch(keys, list("abcd"), fail, chunk=3, what="calls", counts=counts)
        assert [journal[key] for key in keys[:2]] == ["A", "B"]
        assert len(journal) == counts.made == 2
        with pytest.raises(KeyError):
            journal[keys[2]]


def test_a_failure_while_writing_leaves_none_of_the_chunk(path: Path) -> None:
    keys = [CallKey(name, "m", "p") for name in "ab"]
    with Journal(path) as journal:
        journal.add({keys[0]: 1})
        connection = journal._connection
        assert connection is not None
        connection.create_function("fail", 0, lambda: 1 / 0)
        connection.execute(
            "CREATE TEMP TRIGGER stop BEFORE INSERT ON answers WHEN NEW.answer = '3' BEGIN SELECT fail(); END"
        )
        with pytest.raises(sqlite3.OperationalError):
            journal.add({keys[1]: 2, keys[1]._replace(replicate=1): 3})
        assert len(journal) == 1
        journal.add({keys[1]: 2})
    assert len(Journal(path)) == 2


def test_a_closed_journal_is_one_file_and_opens_again(path: Path) -> None:
    key = CallKey("a", "b", "c")
    journal = Journal(path)
    journal.add({key: {"x": [1, "ä\n"]}})
    assert {file.name for file in path.parent.iterdir()} == {path.name + end for end in ("", "-wal", "-shm")}
    journal.close()
    journal.close()
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert key in journal
    journal.close()
    journal.add({key._replace(replicate=1): 2})
    assert len(journal) == 2
    assert key in journal
    assert journal[key] == {"x": [1, "ä\n"]}


def test_answers_are_synchronised_with_the_disk_in_write_ahead_mode(path: Path) -> None:
    with Journal(path) as journal:
        journal.add({CallKey("a", "b", "c"): 1})
        assert journal._rows("PRAGMA journal_mode") == [("wal",)]
        assert journal._rows("PRAGMA synchronous") == [(2,)]


@pytest.mark.parametrize(
    "content", [b'{"key": "a", "value": 1}\n' * 9, b"SQLite format 3\x00" + b"\xff" * 2000]
)
def test_a_file_of_another_kind_is_an_error_that_names_it_and_changes_nothing(
    path: Path, content: bytes
) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"calls\.journal\.sqlite is not a journal of model calls") as caught:
        Journal(path)
    assert "Delete the file, or name another" in str(caught.value)
    assert path.read_bytes() == content


def test_a_database_of_another_application_or_version_is_refused(path: Path) -> None:
    path.parent.mkdir()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE answers (x)")
    connection.close()
    with pytest.raises(ValueError, match="SQLite file of application 0, version 0"):
        Journal(path)
    path.unlink()
    with Journal(path) as journal:
        journal.add({CallKey("a", "b", "c"): 1})
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(ValueError, match="version 99"):
        Journal(path)


def test_a_file_left_empty_by_a_kill_is_used(path: Path) -> None:
    path.parent.mkdir()
    path.touch()
    assert JournaledLanguageModel(CountingLanguage(), path).complete(["ab"]) == ["ba"]


def test_the_digest_ignores_the_order_of_keys_and_not_the_order_of_items() -> None:
    assert digest({"a": 1, "b": [1, 2]}) == digest({"b": (1, 2), "a": 1})
    assert digest([1, 2]) != digest([2, 1])
    assert digest("1") != digest(1)
    with pytest.raises(TypeError, match="JSON values, got 1j"):
        digest(1j)  # type: ignore[arg-type]


def test_no_text_of_a_prompt_is_in_the_file(path: Path) -> None:
    with Journal(path) as journal:
        JournaledLanguageModel(CountingLanguage(), journal).label_log_probabilities(
            ["a private text"], [" x"]
        )
    assert b"private" not in path.read_bytes()
    rows = sqlite3.connect(path).execute("SELECT * FROM answers").fetchall()
    (prompt, model, parameters, replicate, answer) = rows[0]
    assert prompt == digest("a private text")
    assert model == digest(CountingLanguage().provenance)
    assert parameters == digest(["label_log_probabilities", [" x"]])
    assert (replicate, json.loads(answer)) == (0, [-14 / 3 - 2])


@pytest.mark.parametrize("chunk", [0, -1, 1.5, True])
def test_chunks_are_positive_integers(path: Path, chunk: object) -> None:
    with pytest.raises(ValueError, match=f"chunk must be a positive integer, got {chunk}"):
        JournaledLanguageModel(CountingLanguage(), path, chunk=chunk)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="chunk must be a positive integer"):
        JournaledEmbeddingModel(CountingEmbedding(), path, chunk=chunk)  # type: ignore[arg-type]


class Answering:
    """A model of which one call gives what it is told to."""

    provenance: ClassVar[dict[str, str]] = {"model": "answering"}

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **options: self.answer


@pytest.mark.parametrize(
    ("call", "answer", "message"),
    [
        ("complete", "ab", "must answer 2 prompts with a list of as many texts, got 'ab'"),
        ("complete", [None, "x"], "must answer every prompt with a text, got None"),
        ("label_log_probabilities", np.zeros((2, 4)), "must answer with 2 x 3 numbers, got shape"),
        ("continuation_log_probabilities", np.array(["x", "y"]), "must answer with 2 numbers, got shape"),
    ],
)
def test_answers_of_a_wrong_form_are_refused_and_not_kept(
    path: Path, call: str, answer: object, message: str
) -> None:
    model = JournaledLanguageModel(Answering(answer), path)
    more = {"label_log_probabilities": (["a", "b", "c"],), "continuation_log_probabilities": (["a", "b"],)}
    with pytest.raises((TypeError, ValueError), match=message):
        getattr(model, call)(["one", "two"], *more.get(call, ()))
    assert len(Journal(path)) == 0


def test_embeddings_of_a_wrong_number_are_not_kept(path: Path) -> None:
    model = JournaledEmbeddingModel(Answering(np.zeros((3, 4))), path)
    with pytest.raises(ValueError, match="must answer with 2 x any numbers, got shape"):
        model.embed(["one", "two"])
    assert len(Journal(path)) == 0


@pytest.mark.parametrize("statement", range(3))
def test_a_journal_that_is_made_while_it_is_opened_is_used(
    path: Path, monkeypatch: pytest.MonkeyPatch, statement: int
) -> None:
    """Another process makes the file before one of the first statements of this one."""
    connect, key = sqlite3.connect, CallKey("prompt", "model", "parameters")

    class Interrupted(sqlite3.Connection):
        executed = 0

        def execute(self, *args: Any) -> sqlite3.Cursor:
            if self.executed == statement:
                monkeypatch.setattr(sqlite3, "connect", connect)
                with Journal(path) as other:
                    other.add({key: "theirs"})
            self.executed += 1
            return super().execute(*args)

    monkeypatch.setattr(sqlite3, "connect", partial(connect, factory=Interrupted))
    journal = Journal(path)
    journal.add({key._replace(replicate=1): "ours"})
    assert (journal[key], len(journal)) == ("theirs", 2)


@pytest.mark.parametrize("kind", [JournaledLanguageModel, JournaledEmbeddingModel])
def test_a_model_without_provenance_is_refused(path: Path, kind: type) -> None:
    with pytest.raises(TypeError, match=rf"{kind.__name__}: model must have a provenance"):
        kind(object(), path)
    assert not path.exists()
