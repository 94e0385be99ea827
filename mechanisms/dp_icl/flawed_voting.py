"""Private Voting with known flaws, one in each class; collected in :mod:`dp_icl.flawed`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from dp_icl.calibration import (
    Calibration,
    analytic_gaussian_sigma,
    classical_gaussian_sigma,
    gaussian_epsilon,
)
from dp_icl.labels import answers_array
from dp_icl.private_voting import PrivateVoting, VoterModel


@dataclass(frozen=True, repr=False)
class ClassicalPrivateVoting(PrivateVoting):
    """Private Voting with the classical σ = √2 · sqrt(2 ln(1.25/δ)) / ε at every ε.

    The formula is proven for ε below 1. Broken where :attr:`true_epsilon` exceeds ``epsilon``: at δ = 1e-5,
    for ε above about 8.4.
    """

    calibration: Calibration = field(default="classical", init=False)

    def _sigma(self) -> float:
        return classical_gaussian_sigma(self.epsilon, self.delta, self.sensitivity)

    @property
    def true_epsilon(self) -> float:
        """The smallest ε the noisy counts satisfy at the claimed δ, attained when a vote changes label."""
        return gaussian_epsilon(self.sigma, self.delta, self.sensitivity)


@dataclass(frozen=True, repr=False)
class UnitSensitivityPrivateVoting(PrivateVoting):
    """Private Voting with noise calibrated to sensitivity 1, as if a vote were only added or taken away.

    Broken at every ε: a vote that changes label moves the counts by √2, under either adjacency.
    """

    sensitivity: ClassVar[float] = 1.0

    @property
    def true_epsilon(self) -> float:
        """The smallest ε the noisy counts satisfy at the claimed δ, attained when a vote changes label.

        At δ = 1e-5: 1.47 for a claim of 1, and 25.28 for a claim of 16.
        """
        return gaussian_epsilon(self.sigma, self.delta, math.sqrt(2.0))


class LeakingTieBreakPrivateVoting(PrivateVoting):
    """Private Voting that settles a tie of the clean counts before the noise: the first tied label wins.

    The author reasons that tied labels tell nothing about any exemplar. That they are tied does: on a tie a
    label that is not released is released with probability 0, and on a neighbour without the tie it is not.
    """

    @property
    def true_epsilon(self) -> float:
        """Infinite: labels have probability 0 on one side and more than δ on the other.

        Attained by votes [1, 1] against [0, 2] (two partitions), or no vote against one (one partition).
        """
        return math.inf

    def privatize(self, clean_rows: ArrayLike, rng: Generator) -> NDArray[np.float64]:
        """As the correct mechanism, but rows whose largest count occurs twice stay without noise."""
        noisy = super().privatize(clean_rows, rng)
        rows = np.asarray(clean_rows)
        tied = (rows == rows.max(axis=1, keepdims=True)).sum(axis=1) > 1
        noisy[tied] = rows[tied]
        return noisy


class OneLabelNoisePrivateVoting(PrivateVoting):
    """Private Voting that adds noise to the count of the first label only.

    With two labels the released label looks random all the same; the counts of the other labels are exact.
    """

    @property
    def true_epsilon(self) -> float:
        """Infinite: a vote that moves changes a count without noise.

        Of the released label alone it is infinite from three labels on, when votes move between two labels
        without noise and so decide which of them can win.
        """
        return math.inf

    def privatize(self, clean_rows: ArrayLike, rng: Generator) -> NDArray[np.float64]:
        """As the correct mechanism, but only the first count is noisy."""
        noisy = super().privatize(clean_rows, rng)
        noisy[:, 1:] = np.asarray(clean_rows)[:, 1:]
        return noisy


@dataclass(frozen=True, repr=False)
class ReusedNoisePrivateVoting(PrivateVoting):
    """Private Voting for several queries that draws the noise once and adds it to the counts of each query.

    The claim is for all answers together, and the scale is that of the correct mechanism with independent
    noise: one exemplar may move a vote in every query, an L2 distance of sqrt(2 · queries). But the difference
    of the noisy counts of two queries has no noise.

    Args:
        queries: number Q ≥ 2 of queries. Datasets are recorded answers, (Q, T).

    Raises:
        ValueError: ``queries`` is no integer of at least 2; else as :class:`PrivateVoting`.
    """

    model: VoterModel | None = field(default=None, init=False, hash=False)
    queries: int = 2

    def __post_init__(self) -> None:
        if isinstance(self.queries, bool) or not isinstance(self.queries, int) or self.queries < 2:
            msg = f"queries must be an integer of at least 2, got {self.queries!r}."
            raise ValueError(msg)
        super().__post_init__()

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, queries={self.queries})"

    def _sigma(self) -> float:
        return analytic_gaussian_sigma(self.epsilon, self.delta, math.sqrt(2.0 * self.queries))

    @property
    def true_epsilon(self) -> float:
        """Infinite: whatever changes in one query alone is seen exactly in its difference to another.

        Attained by votes [1, 2] on two queries against [1, 2] and [0, 3]: the two released labels of the first
        are always equal, those of the second differ with probability above δ.
        """
        return math.inf

    def aggregate(self, answers: ArrayLike) -> NDArray[np.int64]:
        """Count the votes of every query: (Q, T) answers to (Q, K) counts."""
        said = answers_array(answers)
        if said.shape != (self.queries, self.partitions):
            msg = (
                f"answers must have shape ({self.queries}, {self.partitions}), one row per query, "
                f"got {said.shape}."
            )
            raise ValueError(msg)
        return np.stack([super(ReusedNoisePrivateVoting, self).aggregate(each) for each in said])

    def privatize(self, clean_rows: ArrayLike, rng: Generator) -> NDArray[np.float64]:
        """Add one noise vector per row to the counts of all its queries: (n, Q, K) to (n, Q, K)."""
        rows = np.asarray(clean_rows)
        shape = (self.queries, len(self.labels))
        if rows.shape[1:] != shape:
            msg = f"clean_rows must have shape (n, {shape[0]}, {shape[1]}), got {rows.shape}."
            raise ValueError(msg)
        noise = rng.standard_normal((len(rows), 1, shape[1])) * self.sigma
        noisy: NDArray[np.float64] = rows + noise
        return noisy

    def release(self, noisy: ArrayLike, rng: Generator) -> NDArray[np.intp]:
        """The winning label of every query: (n, Q, K) to (n, Q)."""
        winners: NDArray[np.intp] = np.argmax(np.asarray(noisy), axis=2)
        return winners
