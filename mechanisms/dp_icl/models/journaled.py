"""Models that pay for no call twice, by way of a journal."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dp_icl.models.journal import CallCounts, CallKey, Journal, digest
from dp_icl.models.protocols import (
    JSON,
    EmbeddingModel,
    LanguageModel,
    check_pairs,
    check_positive,
    check_sampling,
    check_texts,
)

_Model = TypeVar("_Model", bound=EmbeddingModel | LanguageModel)


class JournaledLanguageModel:
    """A :class:`~dp_icl.models.protocols.LanguageModel` that pays for no call twice.

    A recording that was interrupted is run again from its start: calls that were paid for are answered by
    the journal, the others by the model.

    Args:
        model: the model that answers what the journal does not hold.
        journal: the journal, or the path of its file; models may share one.
        chunk: prompts per call of ``model``; an interruption repeats at most these.
        share_identical: whether calls that are identical at temperature 0 are one call for good, so that a
            partition that both neighbouring datasets have in common is asked once, not twice. It takes the
            model at its word that equal calls have equal answers. With False the k-th identical call of this
            object is replicate k in the journal. Draws with equal seeds are always one call.

    Attributes:
        calls: how many calls were made and saved so far.
    """

    def __init__(
        self,
        model: LanguageModel,
        journal: Journal | str | os.PathLike[str],
        *,
        chunk: int = 8,
        share_identical: bool = True,
    ) -> None:
        self._model = _with_provenance(model, "JournaledLanguageModel")
        self._chunk = check_positive(chunk, "JournaledLanguageModel", "chunk")
        self._journal = journal if isinstance(journal, Journal) else Journal(journal)
        self._asked: Counter[CallKey] | None = None if share_identical else Counter()
        self.calls = CallCounts()

    @property
    def provenance(self) -> Mapping[str, JSON]:
        """Provenance of the wrapped model."""
        return self._model.provenance

    def complete(
        self, prompts: Sequence[str], *, temperature: float = 0.0, seed: int | Sequence[int] | None = None
    ) -> list[str]:
        """Continue every prompt; see :meth:`LanguageModel.complete`."""
        owner = "JournaledLanguageModel.complete"
        prompts = check_texts(prompts, owner, "prompts")
        seeds = check_sampling(temperature, seed, len(prompts), owner)
        if seeds is None:

            def write(part: list[str]) -> list[str]:
                return _checked_texts(self._model.complete(part), len(part), self._model)

            keys = _keys(self.provenance, "complete", prompts)
            return self._fetch_replicates(keys, prompts, write, "completions")

        def draw(part: list[tuple[str, int]]) -> list[str]:
            texts, own = [text for text, _ in part], [seed for _, seed in part]
            answers = self._model.complete(texts, temperature=temperature, seed=own)
            return _checked_texts(answers, len(texts), self._model)

        keys = _keys(self.provenance, "complete", prompts, float(temperature))
        keys = [key._replace(replicate=seed) for key, seed in zip(keys, seeds, strict=True)]
        return self._fetch(keys, list(zip(prompts, seeds, strict=True)), draw, "completions")

    def label_log_probabilities(
        self, prompts: Sequence[str], continuations: Sequence[str]
    ) -> NDArray[np.float64]:
        """Score every continuation after every prompt; see :meth:`LanguageModel.label_log_probabilities`."""
        owner = "JournaledLanguageModel.label_log_probabilities"
        prompts = check_texts(prompts, owner, "prompts")
        labels = check_texts(continuations, owner, "continuations")

        def score(part: list[str]) -> list[JSON]:
            scores = self._model.label_log_probabilities(part, labels)
            return _checked_numbers(scores, (len(part), len(labels)), self._model)

        keys = _keys(self.provenance, "label_log_probabilities", prompts, labels)
        rows = self._fetch_replicates(keys, prompts, score, "label scores")
        return np.asarray(rows, np.float64).reshape(len(prompts), len(labels))

    def continuation_log_probabilities(
        self, prompts: Sequence[str], continuations: Sequence[str]
    ) -> NDArray[np.float64]:
        """Score one continuation per prompt; see :meth:`LanguageModel.continuation_log_probabilities`."""
        owner = "JournaledLanguageModel.continuation_log_probabilities"
        prompts, ends = check_pairs(prompts, continuations, owner)

        def score(part: list[list[str]]) -> list[JSON]:
            texts, own = [text for text, _ in part], [end for _, end in part]
            scores = self._model.continuation_log_probabilities(texts, own)
            return _checked_numbers(scores, (len(part),), self._model)

        pairs = [list(pair) for pair in zip(prompts, ends, strict=True)]
        keys = _keys(self.provenance, "continuation_log_probabilities", pairs)
        scores = self._fetch_replicates(keys, pairs, score, "continuation scores")
        return np.asarray(scores, np.float64)

    def _fetch_replicates(self, keys: list[CallKey], items: Sequence[Any], call: Any, what: str) -> list[Any]:
        if self._asked is None:
            return self._fetch(keys, items, call, what)
        asked = self._asked.copy()
        numbered = []
        for key in keys:
            numbered.append(key._replace(replicate=asked[key]))
            asked[key] += 1
        answers = self._fetch(numbered, items, call, what)
        self._asked = asked  # not after a failure, so that asking again finds what was paid for
        return answers

    def _fetch(self, keys: list[CallKey], items: Sequence[Any], call: Any, what: str) -> list[Any]:
        return self._journal.fetch(keys, items, call, chunk=self._chunk, what=what, counts=self.calls)


class JournaledEmbeddingModel:
    """An :class:`~dp_icl.models.protocols.EmbeddingModel` that pays for no call twice, not even for equal texts.

    Args:
        model: the model that answers what the journal does not hold.
        journal: the journal, or the path of its file; models may share one.
        chunk: texts per call of ``model``; an interruption repeats at most these.

    Attributes:
        calls: how many calls were made and saved so far.
    """

    def __init__(
        self, model: EmbeddingModel, journal: Journal | str | os.PathLike[str], *, chunk: int = 64
    ) -> None:
        self._model = _with_provenance(model, "JournaledEmbeddingModel")
        self._chunk = check_positive(chunk, "JournaledEmbeddingModel", "chunk")
        self._journal = journal if isinstance(journal, Journal) else Journal(journal)
        self.calls = CallCounts()

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
            return _checked_numbers(self._model.embed(part), (len(part), None), self._model)

        keys = _keys(self.provenance, "embed", texts)
        rows = self._journal.fetch(
            keys, texts, embed, chunk=self._chunk, what="embeddings", counts=self.calls
        )
        return np.asarray(rows, np.float32)


def _with_provenance(model: _Model, owner: str) -> _Model:
    """The model, whose provenance is part of what identifies a call."""
    if not isinstance(getattr(model, "provenance", None), Mapping):
        msg = (
            f"{owner}: model must have a provenance, a mapping that names what its answers depend on, such as "
            f"{{'model': 'name', 'version': '1.0'}}, since a journal may not mix models; got {model!r}."
        )
        raise TypeError(msg)
    return model


def _checked_texts(answers: object, size: int, model: object) -> list[str]:
    """Completions as a list, before they are kept for good."""
    if isinstance(answers, str) or not isinstance(answers, Sequence) or len(answers) != size:
        what = f"{len(answers)} of them" if isinstance(answers, list | tuple) else repr(answers)
        msg = f"{type(model).__name__} must answer {size} prompts with a list of as many texts, got {what}."
        raise ValueError(msg)
    for answer in answers:
        if not isinstance(answer, str):
            msg = f"{type(model).__name__} must answer every prompt with a text, got {answer!r}."
            raise TypeError(msg)
    return list(answers)


def _checked_numbers(answers: object, shape: tuple[int | None, ...], model: object) -> list[JSON]:
    """Scores or embeddings as lists, before they are kept for good; None in ``shape`` is any width."""
    rows = np.asarray(answers)
    fits = rows.ndim == len(shape) and all(
        want is None or have == want for want, have in zip(shape, rows.shape, strict=True)
    )
    if rows.dtype.kind not in "iuf" or not fits:
        wanted = " x ".join("any" if want is None else str(want) for want in shape)
        msg = f"{type(model).__name__} must answer with {wanted} numbers, got shape {rows.shape} of {rows.dtype}."
        raise ValueError(msg)
    found: list[JSON] = rows.tolist()
    return found


def _keys(
    provenance: Mapping[str, JSON], kind: str, items: Sequence[JSON], parameters: JSON = None
) -> list[CallKey]:
    model, rest = digest(provenance), digest([kind, parameters])
    return [CallKey(digest(item), model, rest) for item in items]
