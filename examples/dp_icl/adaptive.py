"""A row-wise betting bound that may be looked at while rows are still being recorded.

Given to ``dp_icl.models.record_adaptively``. The event, its direction and the bets are settled on tuning rows,
which are never counted, before the first counted row is seen; each counted row gets its own noise draws, once.
So the shares of hits are a sequence of independent numbers, the bets on it are fixed, and the wealth of each bet
is a test supermartingale: by Ville's inequality the bounds below hold at all looks at once with probability at
least ``1 - alpha``, wherever recording stops.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_snapaudit.engine.bounds import rowwise_betting_lower, rowwise_betting_upper

Event = Callable[[NDArray[Any]], NDArray[np.bool_]]


@dataclass
class RowwiseBettingBound:
    """``bound(reference_rows, canary_rows)``: what the rows so far say of ε, from below and from above.

    Args:
        privatize: ``privatize(rows, rng)``, one noisy output per clean row.
        event: on (n, ...) outputs, likelier on the canary side; settled without the rows that are counted.
        tuning: clean rows of each side that are not counted; they say how wide to bet.
        planned: rows per side of the last look, for which the bets are sized.
        delta: of the claim.
        alpha: error probability of all that is said.
        draws: noise draws per row.
        seed: of the noise.
    """

    privatize: Callable[[NDArray[Any], np.random.Generator], NDArray[Any]]
    event: Event
    tuning: tuple[NDArray[Any], NDArray[Any]]
    planned: int
    delta: float
    alpha: float
    draws: int = 50
    seed: int = 0
    _rates: tuple[list[float], list[float]] = field(init=False, repr=False)
    _variances: tuple[float, float] = field(init=False, repr=False)
    _rngs: list[np.random.Generator] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        streams = np.random.SeedSequence(self.seed).spawn(3)
        *self._rngs, for_tuning = (np.random.default_rng(stream) for stream in streams)
        self._rates = ([], [])
        least = 1.0 / (4.0 * min(len(rows) for rows in self.tuning))
        reference, canary = (
            max(float(np.var(self._hit_rates(rows, for_tuning), ddof=1)), least) for rows in self.tuning
        )
        self._variances = reference, canary

    def __call__(self, reference: NDArray[Any], canary: NDArray[Any]) -> tuple[float, float]:
        for side, rows in enumerate((reference, canary)):
            known = self._rates[side]
            if len(rows) > len(known):
                known += self._hit_rates(rows[len(known) :], self._rngs[side])
        q_low, q_high = self._bounds(0)
        p_low, p_high = self._bounds(1)
        return _epsilon(p_low, q_high, self.delta), _epsilon(p_high, q_low, self.delta)

    def _hit_rates(self, rows: NDArray[Any], rng: np.random.Generator) -> list[float]:
        """Share of each row's noise draws that are in the event."""
        outputs = self.privatize(np.repeat(rows, self.draws, axis=0), rng)
        rates: list[float] = self.event(outputs).reshape(len(rows), self.draws).mean(axis=1).tolist()
        return rates

    def _bounds(self, side: int) -> tuple[float, float]:
        """Bounds on the event's probability, each with a quarter of alpha."""
        z = self._rates[side]
        # the bets are sized for len(z) rows of this variance, which makes them those for all planned rows
        variance = self._variances[side] * self.planned / len(z)
        return (
            rowwise_betting_lower(z, self.alpha / 4, variance),
            rowwise_betting_upper(z, self.alpha / 4, variance),
        )


def _epsilon(p: float, q: float, delta: float) -> float:
    """ε that an event of these probabilities implies (Kairouz, Oh and Viswanath 2015)."""
    if p <= delta:
        return 0.0
    return max(math.log((p - delta) / q), 0.0) if q > 0 else math.inf
