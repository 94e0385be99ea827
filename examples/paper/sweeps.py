"""The sweeps of the paper's first version: partitions, shots, flips of the clean output, signal distance, model.

Its figures are curves without printed numbers (``printed.V1_FIGURES``), so ours stand beside the true values alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import experiments as ex
import truths
from clean_outputs import Clean, apart, mean_embeddings, votes
from paper_tables import PRINTED_VOTES, embedding_space, row, voting
from plans import Planned
from printed import DELTA, EFFECTIVE_DISTANCE, EPSILONS, SIGNAL_DISTANCES, V1_DISTANCES
from recordings import EMBEDDINGS, RETRIEVAL, SCORES, SHOTS, SUMMARY_PARTITIONS, SUMMARY_SHOTS

EPSILON = 4.0
"""The claim of every sweep but the one over models."""
PARTITIONS = (1, 2, 3, 5, 8)
FLIPS = (0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5)
DISTANCES = tuple(
    sorted({0.25, 1.0, 1.75, 2.0, EFFECTIVE_DISTANCE, *V1_DISTANCES, *SIGNAL_DISTANCES.values()})
)


def _black(
    table: str,
    at: str,
    what: str,
    design: Callable[[Clean], Any],
    cleans: Sequence[Clean],
    gaussian: bool = True,
    truth: Callable[[Any, Clean], float] = truths.gaussian,
) -> list[Planned]:
    return [
        Planned(table, at, f"{what} {mode}", design, cleans, "black-box", mode, gaussian, truth)
        for mode in ("passive", "active")
    ]


def partitions() -> list[Planned]:
    """Votes move by √2 whatever T, but the winner turns ever more rarely; mean embeddings move by d/T."""
    found: list[Planned] = []
    for count in PARTITIONS:
        cleans = votes(SCORES["news"], count)
        found += _black(
            "Sweep: partitions", str(count), "PV", partial(voting, EPSILON, partitions=count), cleans
        )
    for count, recording in SUMMARY_PARTITIONS.items():
        cleans = mean_embeddings(recording, "MSGS", count)
        design = partial(embedding_space, EPSILON, partitions=count)
        found += _black("Sweep: partitions", str(count), "ESA", design, cleans)
    return found


def shots() -> list[Planned]:
    """Exemplars per partition, the canary's last: does the model still repeat it?"""
    found: list[Planned] = []
    for count, recording in SHOTS.items():
        cleans = votes(recording, ex.VOTERS, SCORES["news"])
        found += _black("Sweep: shots", str(count), "PV", partial(voting, EPSILON), cleans)
    for count, recording in SUMMARY_SHOTS.items():
        cleans = mean_embeddings(recording, "MSGS")
        found += _black("Sweep: shots", str(count), "ESA", partial(embedding_space, EPSILON), cleans)
    return found


def flips() -> list[Planned]:
    """The printed votes, with clean outputs that come out as on the other side at some rate (as by temperature)."""
    return [
        Planned(
            "Sweep: flips",
            f"{rate:g}",
            "PV active",
            partial(voting, EPSILON),
            [PRINTED_VOTES],
            "black-box",
            "active",
            False,
            partial(_flipped, rate),
            flips=rate,
        )
        for rate in FLIPS
    ]


def _flipped(rate: float, mechanism: Any, clean: Clean) -> float:
    return truths.two_label_vote(mechanism.sigma, clean, DELTA, rate)


def distances() -> list[Planned]:
    """Mean embeddings at chosen distances: the truth is a closed form of d alone."""
    found: list[Planned] = []
    for distance in DISTANCES:
        design = partial(embedding_space, EPSILON)
        found += _black("Sweep: distance", f"{distance:g}", "ESA", design, [apart(distance)])
    return found


def models() -> list[Planned]:
    """Private Voting and Embedding Space Aggregation on what two models said."""
    found: list[Planned] = []
    for name, scores, embeddings in (
        ("SmolLM2", SCORES["questions"], EMBEDDINGS["dialogues", "MSGS"]),
        ("MiniLM", RETRIEVAL["PV"], RETRIEVAL["ESA"]),
    ):
        for epsilon in EPSILONS:
            both: list[tuple[str, Any, Sequence[Clean]]] = [
                ("PV", voting, votes(scores, ex.VOTERS)),
                ("ESA", embedding_space, mean_embeddings(embeddings, "MSGS")),
            ]
            found += [
                Planned(
                    "Sweep: model",
                    row(epsilon),
                    f"{what} {name}",
                    partial(design, epsilon),
                    cleans,
                    "black-box",
                    "active",
                    True,
                    truths.gaussian,
                )
                for what, design, cleans in both
            ]
    return found
