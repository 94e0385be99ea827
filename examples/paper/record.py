"""Records what the real models say, before any aggregation or noise: ``python examples/paper/record.py``.

Needs the extras ``llm`` and ``embeddings`` and the packages with the weights; the tables need neither. Entries that are
already recorded for the same inputs are left alone, unless ``--all`` is given. The language model is SmolLM2-135M. It
answers questions about membership at chance, so no query asks "is this text in the context?": the canary's exemplar
carries the answer, and the model copies it (see :mod:`experiments`). The second "model" of Table 13 is no language
model: it answers as the exemplar does whose text is nearest to the query under MiniLM.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from experiments import Context, Pair, prompts
from numpy.typing import NDArray
from printed import SIGNALS
from recordings import DRIFT, MAX_NEW_TOKENS, RETRIEVAL_MODEL, STORE, Recording, everything

from dp_icl.models import (
    JSON,
    EmbeddingModel,
    JournaledEmbeddingModel,
    JournaledLanguageModel,
    LanguageModel,
    load_minilm,
    load_smollm2,
)
from pytest_snapaudit import Snapshot, SnapshotPair
from pytest_snapaudit.engine.errors import SnapshotError

JOURNAL = Path(__file__).parent / "recording.journal.sqlite"
SCALE = 20.0
"""Similarities under MiniLM are multiplied by this before the softmax that makes log-probabilities of them."""


@cache
def language_model() -> LanguageModel:
    """SmolLM2, decoded greedily up to the end of the line."""
    return load_smollm2(max_new_tokens=MAX_NEW_TOKENS, stop="\n")


@cache
def embedding_model() -> EmbeddingModel:
    """all-MiniLM-L6-v2, behind the journal."""
    return JournaledEmbeddingModel(load_minilm(), JOURNAL)


class LanguageAnswers:
    """What the language model says in every partition.

    Args:
        journaled: pay for no prompt twice; False evaluates equal prompts anew.
    """

    def __init__(
        self,
        language: Callable[[], LanguageModel] = language_model,
        embedding: Callable[[], EmbeddingModel] = embedding_model,
        *,
        journaled: bool = True,
    ) -> None:
        self.language = cache(
            lambda: JournaledLanguageModel(language(), JOURNAL) if journaled else language()
        )
        self.embedding = embedding

    def scores(self, recording: Recording, context: Context, query: str) -> NDArray[np.float64]:
        """(T, K) log-probabilities of the labels."""
        return self.language().label_log_probabilities(
            prompts(recording.template, context, query), [" " + label for label in recording.labels]
        )

    def responses(self, recording: Recording, context: Context, query: str) -> list[str]:
        """T texts."""
        return self.language().complete(prompts(recording.template, context, query))

    def embeddings(self, recording: Recording, context: Context, query: str) -> NDArray[np.float32]:
        """(T, d) embeddings of the responses; a response of nothing is embedded as a full stop."""
        return self.embedding().embed([text or "." for text in self.responses(recording, context, query)])

    @property
    def provenance(self) -> Mapping[str, JSON]:
        return {"language model": self.language().provenance}


class RetrievalAnswers(LanguageAnswers):
    """The answer of the exemplar nearest to the query; a label's score is that of its nearest exemplar or its name."""

    def scores(self, recording: Recording, context: Context, query: str) -> NDArray[np.float64]:
        names = self._similarities(list(recording.labels), query)
        rows = []
        for partition in context:
            found = names.copy()
            near = self._similarities([exemplar.text for exemplar in partition], query)
            for exemplar, similarity in zip(partition, near, strict=True):
                column = recording.labels.index(exemplar.answer)
                found[column] = max(found[column], similarity)
            scaled = SCALE * found
            rows.append(scaled - np.logaddexp.reduce(scaled))
        return np.array(rows)

    def responses(self, recording: Recording, context: Context, query: str) -> list[str]:
        near = [self._similarities([e.text for e in partition], query).argmax() for partition in context]
        return [partition[i].answer for partition, i in zip(context, near, strict=True)]

    def _similarities(self, texts: Sequence[str], query: str) -> NDArray[np.float64]:
        rows = self.embedding().embed([*texts, query]).astype(np.float64)
        similarities: NDArray[np.float64] = rows[:-1] @ rows[-1]
        return similarities

    @property
    def provenance(self) -> Mapping[str, JSON]:
        return {"retrieval": RETRIEVAL_MODEL, "embedding model": self.embedding().provenance}


def rows_of(recording: Recording, answers: LanguageAnswers) -> tuple[NDArray[Any], NDArray[Any]]:
    """(repeats, pairs, partitions, ...) without and with the canary."""
    if recording.repeats == 1 and not isinstance(answers, RetrievalAnswers) and not recording.labels:
        texts = [
            prompt
            for pair in recording.pairs
            for context in pair.sides
            for prompt in prompts(recording.template, context, pair.query)
        ]
        answers.language().complete(list(dict.fromkeys(texts)))  # in large batches, into the journal
    sides = []
    for side in (0, 1):
        evaluations = [
            [_one(recording, answers, pair, side) for pair in recording.pairs]
            for _ in range(recording.repeats)
        ]
        sides.append(np.array(evaluations))
    return sides[0], sides[1]


def _one(recording: Recording, answers: LanguageAnswers, pair: Pair, side: int) -> Any:
    return getattr(answers, recording.what)(recording, pair.sides[side], pair.query)


def signal_rows(embedding: EmbeddingModel) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(1, methods, d) embeddings of the sentences y2 and y1 of Table 14."""
    reference, canary = (embedding.embed([SIGNALS[method][side] for method in SIGNALS]) for side in (1, 0))
    return reference[None], canary[None]


def record(recording: Recording, answers: LanguageAnswers) -> None:
    """Evaluate and save one recording."""
    provenance = dict(answers.provenance)
    if recording.what in ("embeddings", "signals"):
        provenance["embedding model"] = answers.embedding().provenance
    if recording.what == "signals":
        provenance.pop("language model", None)
        reference, canary = signal_rows(answers.embedding())
    else:
        started = time.process_time()
        reference, canary = rows_of(recording, answers)
        if recording.repeats > 1:
            spent = (time.process_time() - started) / (2 * recording.repeats)
            provenance["cpu_seconds_per_evaluation"] = round(spent, 4)
    pair = SnapshotPair(Snapshot.from_rows(reference), Snapshot.from_rows(canary))
    tolerance = None if recording.repeats > 1 else DRIFT
    STORE.save(recording.name, recording.inputs, pair, provenance=provenance, rounded_to=tolerance)


def main(arguments: Sequence[str] = sys.argv[1:]) -> None:
    answers = {"language": LanguageAnswers(), "retrieval": RetrievalAnswers()}
    for recording in everything():
        try:
            recording.load()
            missing = False
        except SnapshotError:
            missing = True
        if missing or "--all" in arguments:
            print(recording.name, flush=True)
            once = recording.repeats == 1
            record(recording, answers[recording.model] if once else LanguageAnswers(journaled=False))


if __name__ == "__main__":
    main()
