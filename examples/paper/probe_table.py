"""Table 12 on recorded answers: AUC of membership inference by query, defence and mechanism.

The answers are those of SmolLM2-135M-Instruct (see ``probe_recordings.py``), 20 contexts with the canary and 20
without. Intervals are exact (no assumption on the scores), hence wide. An interval that holds 0.5 shows nothing either
way, and the table says so. Print it with::

    python examples/paper/probe_table.py
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from probe_recordings import PROMPT_DEFENCES, STORE, inputs

from dp_icl.probes import DEFENCES, QUERIES, STATISTICS, MembershipAUC, clean_statistic, membership_auc
from pytest_snapaudit.store import SnapshotStore

CONFIDENCE = 0.95
PRINTED = {
    "direct": {"voting": 0.99, "product of experts": 0.99, "keywords": 1.00, "embedding": 1.00},
    "semantic": {"voting": 1.00, "product of experts": 1.00, "keywords": 1.00, "embedding": 1.00},
}
"""The paper's Table 12 without defence: Llama-3.1-8B-Instruct, 500 canaries."""
PRINTED_DEFENDED = {
    "direct": {"voting": 0.97, "product of experts": 1.00, "keywords": 0.50, "embedding": 0.73},
    "semantic": {"voting": 0.99, "product of experts": 0.99, "keywords": 1.00, "embedding": 0.99},
}


@dataclass(frozen=True)
class ProbeCell:
    """One cell of the table.

    Attributes:
        query: direct, semantic or continuation.
        defence: none, basic, strict or inspection.
        mechanism: one of :data:`dp_icl.probes.STATISTICS`, or ``"answer"``: the canary's partition alone, unrounded.
        auc: with its interval.
    """

    query: str
    defence: str
    mechanism: str
    auc: MembershipAUC


Recorded = tuple[NDArray[np.float64], NDArray[np.float64]]


def recorded_scores() -> Recorded:
    """Scores (2, contexts, queries, defences, partitions) and inspections (2, contexts, queries), absent first."""
    store = SnapshotStore(STORE)
    scores, inspections = (
        np.stack([pair.reference.rows[0], pair.canary.rows[0]]).astype(np.float64)
        for pair in (store.load(name, inputs()) for name in ("membership_scores", "membership_inspections"))
    )
    return scores, inspections


def side_scores(
    recorded: Recorded, query: str, defence: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(present, absent) scores, each (contexts, partitions); a withheld answer scores 0 in every partition.

    The second model withholds an answer of which it rather says Yes, it reveals something. It was shown the answer of
    the canary's partition.
    """
    scores, inspections = recorded
    j = QUERIES.index(query)
    chosen = scores[:, :, j, 0 if defence == "inspection" else PROMPT_DEFENCES.index(defence)]
    if defence == "inspection":
        chosen = np.where(inspections[:, :, j, None] > 0, 0.0, chosen)
    return chosen[1], chosen[0]


def withheld(recorded: Recorded) -> dict[str, tuple[float, float]]:
    """Shares of answers that the second model withholds, by query: (with the canary, without)."""
    _, inspections = recorded
    shares = (inspections > 0).mean(axis=1)
    return {query: (float(shares[1, j]), float(shares[0, j])) for j, query in enumerate(QUERIES)}


def probe_rows(recorded: Recorded | None = None) -> list[ProbeCell]:
    """All cells: by query, defence and mechanism; of the committed recordings by default."""
    given = recorded_scores() if recorded is None else recorded
    cells = []
    for query in QUERIES:
        for defence in DEFENCES:
            present, absent = side_scores(given, query, defence)
            statistics = {"answer": (present[:, 0], absent[:, 0])}
            for mechanism in STATISTICS:
                statistics[mechanism] = (
                    clean_statistic(mechanism, present),
                    clean_statistic(mechanism, absent),
                )
            for mechanism, (ones, zeros) in statistics.items():
                auc = membership_auc(ones, zeros, confidence=CONFIDENCE)
                cells.append(ProbeCell(query, defence, mechanism, auc))
    return cells


def _shown(auc: MembershipAUC) -> str:
    return f"{auc}{' ?' if auc.at_chance else '  '}".rjust(22)


def main() -> None:
    recorded = recorded_scores()
    cells = probe_rows(recorded)
    mechanisms = ("answer", *STATISTICS)
    print(f"{'query':13} {'defence':11}" + "".join(f"{mechanism:>22}" for mechanism in mechanisms))
    for query in QUERIES:
        for defence in DEFENCES:
            row = [cell for cell in cells if (cell.query, cell.defence) == (query, defence)]
            shown = "".join(_shown(cell.auc) for cell in row)
            print(f"{query:13} {defence:11}{shown}")
    print("? the interval holds 0.5: at chance, or too few contexts to tell; below 0.5: the wrong way round")
    for query, (with_canary, without) in withheld(recorded).items():
        print(
            f"the second model withholds {query} answers: {with_canary:.0%} with the canary, {without:.0%} without"
        )


if __name__ == "__main__":
    main()
