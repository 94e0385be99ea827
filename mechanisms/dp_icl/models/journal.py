"""A journal of model calls that were paid for, so that an interrupted recording loses nothing.

One JSON object per line, ``{"key": ..., "value": ...}``, appended and flushed to disk as soon as the answer
is there. The key is a digest of the model's provenance, the kind of call and its text, so another model,
another version or another decoding parameter never finds foreign answers. The journal is a cache of one
writer at a time: deleting it costs calls, never results. Name it ``*.journal.jsonl`` to keep it out of
version control.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dp_icl.models.progress import Progress
from dp_icl.models.protocols import JSON, EmbeddingModel, LanguageModel, check_positive, check_texts


def digest(value: JSON) -> str:
    """SHA-256 of the canonical JSON text of ``value``, in hexadecimal."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=_plain)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    msg = f"journal: a key is made of JSON values, got {value!r} of type {type(value).__name__}."
    raise TypeError(msg)


class Journal:
    """Append-only mapping from call digests to answers, kept in one file.

    A last line cut off by an interruption is dropped, and the call behind it is paid for again.

    Args:
        path: the file; it and its directory are made when the first answer is written.

    Raises:
        ValueError: a complete line is not an entry of a journal.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._answers: dict[str, Any] = {}
        content = self.path.read_bytes() if self.path.exists() else b""
        *lines, _torn = content.split(b"\n")
        for number, line in enumerate(lines, start=1):
            entry = _parse(line)
            if entry is None:
                msg = (
                    f"journal: line {number} of {self.path} is not a journal entry: {line[:60]!r}. "
                    "Delete that line, or the file, and run again; only the calls in it are repeated."
                )
                raise ValueError(msg)
            self._answers[entry[0]] = entry[1]

    def __len__(self) -> int:
        return len(self._answers)

    def __contains__(self, key: str) -> bool:
        return key in self._answers

    def __getitem__(self, key: str) -> Any:
        return self._answers[key]

    def add(self, entries: Mapping[str, JSON]) -> None:
        """Append answers and flush them to disk before returning."""
        lines = "".join(json.dumps({"key": key, "value": value}) + "\n" for key, value in entries.items())
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            _drop_torn_line(file)
            file.write(lines.encode("ascii"))
            file.flush()
            os.fsync(file.fileno())
        self._answers.update(entries)

    def fetch(
        self,
        keys: Sequence[str],
        items: Sequence[str],
        call: Callable[[list[str]], Sequence[JSON]],
        *,
        chunk: int,
        what: str,
    ) -> list[Any]:
        """Answers to ``items``, from the journal where it has them and from ``call`` otherwise.

        Args:
            keys: n digests, one per item.
            items: n texts.
            call: answers a list of texts; equal texts are asked once.
            chunk: how many texts go into one call; what one interruption can cost.
            what: the name of the calls in the progress line.

        Returns:
            n answers, in the order of the items.

        Raises:
            ValueError: ``call`` gave more or fewer answers than it was given texts.
        """
        missing = {key: item for key, item in zip(keys, items, strict=True) if key not in self}
        progress = Progress(what, len(missing))
        pending = list(missing)
        for start in range(0, len(pending), chunk):
            part = pending[start : start + chunk]
            answers = call([missing[key] for key in part])
            if len(answers) != len(part):
                msg = f"journal: the model was given {len(part)} prompts and gave {len(answers)} answers."
                raise ValueError(msg)
            self.add(dict(zip(part, answers, strict=True)))
            progress.advance(len(part))
        return [self[key] for key in keys]


def _drop_torn_line(file: BinaryIO) -> None:
    end = file.seek(0, os.SEEK_END)
    if end == 0:
        return
    file.seek(end - 1)
    if file.read(1) != b"\n":
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)


def _parse(line: bytes) -> tuple[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    if not isinstance(entry, dict) or entry.keys() != {"key", "value"} or not isinstance(entry["key"], str):
        return None
    return entry["key"], entry["value"]


class JournaledLanguageModel:
    """A :class:`~dp_icl.models.protocols.LanguageModel` that pays for no call twice.

    Args:
        model: the model that answers what the journal does not hold.
        journal: the journal, or the path of its file; models may share one.
        chunk: prompts per call of ``model``; an interruption repeats at most these.
    """

    def __init__(
        self, model: LanguageModel, journal: Journal | str | os.PathLike[str], *, chunk: int = 8
    ) -> None:
        self._model = model
        self._chunk = check_positive(chunk, "JournaledLanguageModel", "chunk")
        self._journal = journal if isinstance(journal, Journal) else Journal(journal)

    @property
    def provenance(self) -> Mapping[str, JSON]:
        """Provenance of the wrapped model."""
        return self._model.provenance

    def complete(self, prompts: Sequence[str]) -> list[str]:
        """Continue every prompt greedily; see :meth:`LanguageModel.complete`."""
        prompts = check_texts(prompts, "JournaledLanguageModel.complete", "prompts")
        keys = _keys(self.provenance, "complete", prompts)
        return self._journal.fetch(keys, prompts, self._model.complete, chunk=self._chunk, what="completions")

    def label_log_probabilities(
        self, prompts: Sequence[str], continuations: Sequence[str]
    ) -> NDArray[np.float64]:
        """Score every continuation after every prompt; see :meth:`LanguageModel.label_log_probabilities`."""
        owner = "JournaledLanguageModel.label_log_probabilities"
        prompts = check_texts(prompts, owner, "prompts")
        labels = check_texts(continuations, owner, "continuations")

        def score(part: list[str]) -> list[JSON]:
            scores: list[JSON] = self._model.label_log_probabilities(part, labels).tolist()
            return scores

        keys = _keys(self.provenance, "label_log_probabilities", prompts, labels)
        rows = self._journal.fetch(keys, prompts, score, chunk=self._chunk, what="label scores")
        return np.asarray(rows, np.float64).reshape(len(prompts), len(labels))


class JournaledEmbeddingModel:
    """An :class:`~dp_icl.models.protocols.EmbeddingModel` that pays for no call twice.

    Args:
        model: the model that answers what the journal does not hold.
        journal: the journal, or the path of its file; models may share one.
        chunk: texts per call of ``model``; an interruption repeats at most these.
    """

    def __init__(
        self, model: EmbeddingModel, journal: Journal | str | os.PathLike[str], *, chunk: int = 64
    ) -> None:
        self._model = model
        self._chunk = check_positive(chunk, "JournaledEmbeddingModel", "chunk")
        self._journal = journal if isinstance(journal, Journal) else Journal(journal)

    @property
    def provenance(self) -> Mapping[str, JSON]:
        """Provenance of the wrapped model."""
        return self._model.provenance

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed every text; see :meth:`EmbeddingModel.embed`."""
        texts = check_texts(texts, "JournaledEmbeddingModel.embed", "texts")
        if not texts:
            return self._model.embed(texts)

        def embed(part: list[str]) -> list[JSON]:
            rows: list[JSON] = self._model.embed(part).tolist()
            return rows

        keys = _keys(self.provenance, "embed", texts)
        return np.asarray(
            self._journal.fetch(keys, texts, embed, chunk=self._chunk, what="embeddings"), np.float32
        )


def _keys(provenance: Mapping[str, JSON], kind: str, texts: Sequence[str], extra: JSON = None) -> list[str]:
    return [digest([kind, provenance, extra, text]) for text in texts]
