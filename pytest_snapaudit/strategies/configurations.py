"""What a preset draws: a configuration of a mechanism, its claim, and a pair to audit it on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.strategies.pairs import NeighbouringPair


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """A claim and a neighbouring pair; the ``repr`` is code to paste into ``@example``.

    Attributes:
        epsilon: claimed ε.
        delta: claimed δ.
        neighbours: (reference, canary), in the form the family's clean stage takes.
    """

    epsilon: float
    delta: float
    neighbours: NeighbouringPair[list[Any]]

    @property
    def claim(self) -> PrivacyClaim:
        """The claim under test."""
        return PrivacyClaim(self.epsilon, self.delta)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))


@dataclass(frozen=True, kw_only=True)
class AdditiveNoiseConfiguration(Configuration):
    """A noisy sum or mean of scalar rows.

    Attributes:
        bounds: (lower, upper) clipping bounds; ``neighbours`` hold values on and beyond them.
    """

    bounds: tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class PrivateVotingConfiguration(Configuration):
    """A noisy vote of partitions over labels; ``neighbours`` are lists of one answer per partition.

    An answer is a label or, for a partition that answered with no label, the empty string.

    Attributes:
        partitions: number of votes T.
        labels: the labels voted for.
    """

    partitions: int
    labels: tuple[str, ...]

    @property
    def votes(self) -> NeighbouringPair[list[int]]:
        """The same pair as vote counts per label."""
        counts = [[answers.count(label) for label in self.labels] for answers in self.neighbours]
        return NeighbouringPair(counts[0], counts[1], self.neighbours.adjacency)


@dataclass(frozen=True, kw_only=True)
class EmbeddingSpaceConfiguration(Configuration):
    """A noisy mean of unit vectors; ``neighbours`` are lists of one embedding per partition.

    Attributes:
        partitions: number of embeddings T.
        dimension: length of each embedding.
    """

    partitions: int
    dimension: int

    @property
    def candidates(self) -> list[list[float]]:
        """Two opposite unit vectors to release the nearest of."""
        rest = [0.0] * (self.dimension - 1)
        return [[1.0, *rest], [-1.0, *rest]]


@dataclass(frozen=True, kw_only=True)
class SelectionConfiguration(Configuration):
    """Selection of the best of some candidates; ``neighbours`` are lists of one utility per candidate.

    Attributes:
        sensitivity: largest change of one utility between the two sides.
        k: how many candidates are selected.
    """

    sensitivity: float
    k: int


@dataclass(frozen=True, kw_only=True)
class HistogramConfiguration(Configuration):
    """Noisy counts per category; ``neighbours`` are lists of rows, each one category.

    Attributes:
        domain: the public categories; rows may hold others.
    """

    domain: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class QuantileConfiguration(Configuration):
    """A private quantile of scalar rows.

    Attributes:
        quantile: in [0, 1].
        bounds: (lower, upper) bounds of the released value.
    """

    quantile: float
    bounds: tuple[float, float]
