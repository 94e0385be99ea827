"""A betting e-process for the claim itself, multiplied across looks.

Under an (ε, δ) claim, ``g = 1[X in S] - e^ε 1[Y in S] - δ`` on a pair of trials has mean at most 0, so
``Π (1 + λ g)`` is a test supermartingale for every bet λ in [0, 1/(e^ε + δ)) chosen on earlier trials, and
exceeds 1/α with probability at most α, whenever one looks (Ville's inequality). See STATISTICS, "Two gates".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_BETS = np.array([0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 0.95])
_SPREAD = np.array([0.35, 0.6, 1.0, 1.5])
_BOUNDARY_SPREAD = np.array([0.5, 1.0, 2.0])
_WEIGHTS = np.array([0.1, 0.15, 0.15, 0.1, 0.15, 0.2, 0.15])
_LARGEST_BET = 0.98


@dataclass(frozen=True)
class PairCounts:
    """How often the event held on both trials of a pair, on either one alone, on none.

    ``likelier_only`` counts pairs in which only the trial of the likelier side is in the event.
    """

    both: int
    likelier_only: int
    other_only: int
    neither: int

    @property
    def trials(self) -> int:
        """Number of pairs."""
        return self.both + self.likelier_only + self.other_only + self.neither

    @property
    def likelier(self) -> int:
        """Trials in the event on the side where it is likelier."""
        return self.both + self.likelier_only

    @property
    def other(self) -> int:
        """Trials in the event on the other side."""
        return self.both + self.other_only

    def __add__(self, more: PairCounts) -> PairCounts:
        return PairCounts(
            self.both + more.both,
            self.likelier_only + more.likelier_only,
            self.other_only + more.other_only,
            self.neither + more.neither,
        )

    @classmethod
    def of(cls, likelier: NDArray[np.bool_], other: NDArray[np.bool_]) -> PairCounts:
        """Counts over paired trials, (n,) booleans per side."""
        both = int(np.count_nonzero(likelier & other))
        in_likelier, in_other = int(np.count_nonzero(likelier)), int(np.count_nonzero(other))
        n = len(likelier)
        return cls(both, in_likelier - both, in_other - both, n - in_likelier - in_other + both)


@dataclass(frozen=True)
class BettingLook:
    """One look: its pair counts, and the rates its bets were tuned to on earlier trials."""

    counts: PairCounts
    tuned_p: float
    tuned_q: float


def _scales(epsilon: NDArray[np.float64], delta: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``1/(e^ε + δ)``, the largest bet, and ``e^ε`` times it; neither overflows."""
    shrunk = np.exp(-epsilon)
    other = 1.0 / (1.0 + delta * shrunk)
    return shrunk * other, other


def _outcomes(epsilon: NDArray[np.float64], delta: float) -> NDArray[np.float64]:
    """(4, k) payoffs of the largest bet for both, likelier only, other only, neither."""
    unit, other = _scales(epsilon, delta)
    gain = (1.0 - delta) * unit
    return np.stack([gain - other, gain, -other - delta * unit, -delta * unit])


def _best_bet(p: float, q: float, g: NDArray[np.float64]) -> NDArray[np.float64]:
    """(k,) bet with the largest expected log growth at rates (p, q), on a grid, per epsilon."""
    probabilities = np.array([p * q, p * (1 - q), (1 - p) * q, (1 - p) * (1 - q)])
    growth = np.einsum("o,ojk->jk", probabilities, np.log1p(_BETS[:, None] * g[:, None, :]))
    return np.asarray(_BETS[np.argmax(growth, axis=0)])


def expected_growth(
    p: NDArray[np.float64], q: NDArray[np.float64], epsilon: float, delta: float
) -> NDArray[np.float64]:
    """(k,) largest expected log growth per pair of trials of events with rates ``p`` and ``q``, at least 0."""
    g = _outcomes(np.array([epsilon]), delta)
    probabilities = np.stack([p * q, p * (1 - q), (1 - p) * q, (1 - p) * (1 - q)], axis=1)
    growth = probabilities @ np.log1p(_BETS * g)
    return np.asarray(np.maximum(growth.max(axis=1), 0.0))


def log_e_value(
    looks: Sequence[BettingLook], epsilon: NDArray[np.float64], delta: float, alpha: float, planned: int
) -> NDArray[np.float64]:
    """(k,) natural log of the e-value against each claimed epsilon, over all looks so far.

    A mixture of seven strategies, each of which bets through all looks: four around the bet with the largest
    growth at the rates seen in tuning, three around the bet that is best when the evidence of all ``planned``
    trials will just suffice for ``alpha``. Bets are in units of the largest.
    """
    g = _outcomes(epsilon, delta)
    wealth = np.zeros((len(_WEIGHTS), len(epsilon)))
    for look in looks:
        c = look.counts
        best = _best_bet(look.tuned_p, look.tuned_q, g)
        variance = _variance(look.tuned_p, look.tuned_q, epsilon, delta)
        boundary = np.sqrt(2.0 * np.log(1.0 / alpha) / (planned * variance))
        bets = np.concatenate([_SPREAD[:, None] * best, _BOUNDARY_SPREAD[:, None] * boundary])
        bets = np.minimum(bets, _LARGEST_BET)
        seen = np.array([c.both, c.likelier_only, c.other_only, c.neither], dtype=float)
        wealth += np.einsum("o,ojk->jk", seen, np.log1p(bets[None] * g[:, None, :]))
    peak = wealth.max(axis=0)
    return np.asarray(peak + np.log(_WEIGHTS @ np.exp(wealth - peak)))


def _variance(p: float, q: float, epsilon: NDArray[np.float64], delta: float) -> NDArray[np.float64]:
    unit, other = _scales(epsilon, delta)
    return np.asarray(unit * unit * p * (1 - p) + other * other * q * (1 - q))


def betting_epsilon_lower(
    looks: Sequence[BettingLook], claim: float, delta: float, alpha: float, planned: int
) -> float:
    """The largest epsilon below which every claim is rejected, on a grid that contains ``claim``.

    The grid is the same at every look, so that each claim on it has one e-process through all of them. Claims
    are nested and tested in increasing order, each at ``alpha``, stopping at the first one not rejected; the
    probability that the result exceeds the true epsilon is at most ``alpha``.
    """
    if not looks:
        return 0.0
    ceiling = np.log(max(planned, 2)) + 1.0
    grid = np.unique(
        np.concatenate(
            [[0.0, claim], claim * np.linspace(0.02, 1.0, 50), np.linspace(claim, max(ceiling, claim), 200)]
        )
    )
    rejected = log_e_value(looks, grid, delta, alpha, planned) >= -np.log(alpha)
    if rejected.all():
        return float(grid[-1])
    first_kept = int(np.argmin(rejected))
    if first_kept == 0:
        return 0.0
    bound = float(grid[first_kept - 1])
    return float(np.nextafter(bound, np.inf)) if bound == claim else bound


def clipped_rates(p: float, q: float, tuned_on: int) -> tuple[float, float]:
    """Tuning rates kept away from 0 and 1, so that the bets tuned to them stay finite."""
    floor = 0.5 / (tuned_on + 1)
    return min(max(p, 1e-6), 1 - 1e-6), min(max(q, floor), 1 - 1e-6)
