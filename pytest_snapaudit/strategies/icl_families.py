"""Preset families of private in-context learning: private voting and embedding space.

Each function returns (strategy, must-try configurations). Budgets outside the given limits are moved to the
nearest limit in the must-try configurations, so that these stay within what the mechanism accepts.
"""

from __future__ import annotations

import math

from hypothesis import strategies as st

from pytest_snapaudit.strategies._arguments import REPLACE_ONE, integer
from pytest_snapaudit.strategies._presets_common import Budgets, one_apart
from pytest_snapaudit.strategies.configurations import EmbeddingSpaceConfiguration, PrivateVotingConfiguration
from pytest_snapaudit.strategies.pairs import NeighbouringPair
from pytest_snapaudit.strategies.parameters import dimensions, partitions

_LABELS = ("A", "B", "C", "D")


def private_voting(
    *,
    max_partitions: int = 16,
    max_labels: int = 4,
    min_epsilon: float = 1e-3,
    max_epsilon: float = 50.0,
    min_delta: float = 1e-12,
    max_delta: float = 0.1,
) -> tuple[st.SearchStrategy[PrivateVotingConfiguration], tuple[PrivateVotingConfiguration, ...]]:
    """Noisy votes under replace-one: one partition answers differently, and always in a way that counts."""
    budgets = Budgets(min_epsilon, max_epsilon, min_delta, max_delta)
    counts = partitions(integer("private_voting", "max_partitions", max_partitions, 1))
    label_counts = st.integers(2, integer("private_voting", "max_labels", max_labels, 2))

    @st.composite
    def configurations(draw: st.DrawFn) -> PrivateVotingConfiguration:
        epsilon, delta = draw(budgets.strategy)
        total = draw(counts)
        labels = _label_names(draw(label_counts))
        answer = st.sampled_from((*labels, ""))
        unanimous = st.sampled_from(labels).map(lambda label: [label] * total)
        halves = st.integers(0, 1).map(lambda first: [labels[(i + first) % 2] for i in range(total)])
        said = draw(st.one_of(unanimous, halves, st.lists(answer, min_size=total, max_size=total)))
        position = total - 1 - draw(st.integers(0, total - 1))
        changed = draw(answer.filter(lambda drawn: drawn != said[position]))
        pair = NeighbouringPair(said, [*said[:position], changed, *said[position + 1 :]], REPLACE_ONE)
        return PrivateVotingConfiguration(
            epsilon=epsilon, delta=delta, neighbours=pair, partitions=total, labels=labels
        )

    def case(epsilon: float, said: str, changed: str) -> PrivateVotingConfiguration:
        return PrivateVotingConfiguration(
            **budgets.at(epsilon, 1e-5),
            neighbours=one_apart(REPLACE_ONE, said[:-1], said[-1], changed),
            partitions=len(said),
            labels=_LABELS[:2],
        )

    fixed = (
        *(case(epsilon, "A", "B") for epsilon in (1.0, 16.0)),
        *(case(epsilon, "BBA", "B") for epsilon in (1.0, 8.0, 16.0)),
        case(1.0, "A", ""),
        case(1.0, "AB", "A"),
    )
    return configurations(), tuple(entry for entry in fixed if entry.partitions <= max_partitions)


def _label_names(count: int) -> tuple[str, ...]:
    return tuple(f"L{i}" for i in range(count)) if count > len(_LABELS) else _LABELS[:count]


def embedding_space(
    *,
    max_partitions: int = 16,
    max_dimension: int = 8,
    min_epsilon: float = 1e-3,
    max_epsilon: float = 50.0,
    min_delta: float = 1e-12,
    max_delta: float = 0.1,
) -> tuple[st.SearchStrategy[EmbeddingSpaceConfiguration], tuple[EmbeddingSpaceConfiguration, ...]]:
    """Noisy means of embeddings under replace-one: one partition's embedding changes its direction.

    Opposite directions, at which the mean moves by the whole 2/T, are the most likely; so are embeddings that
    are not of unit length, which the mechanism has to scale.
    """
    budgets = Budgets(min_epsilon, max_epsilon, min_delta, max_delta)
    counts = partitions(integer("embedding_space", "max_partitions", max_partitions, 1))
    lengths = dimensions(integer("embedding_space", "max_dimension", max_dimension, 1))

    @st.composite
    def configurations(draw: st.DrawFn) -> EmbeddingSpaceConfiguration:
        epsilon, delta = draw(budgets.strategy)
        total, dimension = draw(counts), draw(lengths)
        directions = st.sampled_from(_directions(dimension))
        scale = draw(st.sampled_from([1.0, 2.0, 0.5]))
        alike = directions.map(lambda direction: [direction] * total)
        rows = draw(st.one_of(alike, st.lists(directions, min_size=total, max_size=total)))
        position = total - 1 - draw(st.integers(0, total - 1))
        old = rows[position]
        opposite = st.just([-x if x else 0.0 for x in old])
        new = draw(st.one_of(opposite, directions.filter(lambda direction: direction != old)))
        embeddings = [list(row) for row in rows]
        changed = [*embeddings[:position], [scale * x for x in new], *embeddings[position + 1 :]]
        return EmbeddingSpaceConfiguration(
            epsilon=epsilon,
            delta=delta,
            neighbours=NeighbouringPair(embeddings, changed, REPLACE_ONE),
            partitions=total,
            dimension=dimension,
        )

    def case(epsilon: float, total: int, dimension: int, scale: float = 1.0) -> EmbeddingSpaceConfiguration:
        up = [1.0] + [0.0] * (dimension - 1)
        down = [-scale] + [0.0] * (dimension - 1)
        return EmbeddingSpaceConfiguration(
            **budgets.at(epsilon, 1e-5),
            neighbours=one_apart(REPLACE_ONE, [up] * (total - 1), up, down),
            partitions=total,
            dimension=dimension,
        )

    fixed = (
        *(case(epsilon, 1, 1) for epsilon in (1.0, 8.0, 16.0)),
        case(1.0, 1, 2),
        case(1.0, 1, 2, scale=2.0),
        case(1.0, 2, 2),
        case(1.0, 4, 2),
    )
    kept = [e for e in fixed if e.partitions <= max_partitions and e.dimension <= max_dimension]
    return configurations(), tuple(kept)


def _directions(dimension: int) -> list[list[float]]:
    def axis(index: int, value: float) -> list[float]:
        return [value if i == index else 0.0 for i in range(dimension)]

    share = 1.0 / math.sqrt(dimension)
    diagonal = [[share] * dimension, [-share] * dimension] if dimension > 1 else []
    return [axis(0, 1.0), axis(0, -1.0), *diagonal, *([axis(dimension - 1, 1.0)] if dimension > 1 else [])]
