"""Values by their own frequencies: many values of which each is likelier on one side, in no order.

A generator with a short seed, or a choice among thousands of labels, gives outputs that no threshold tells apart, and
yet each side has values of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pytest_snapaudit.engine.attacks.event import evaluate
from pytest_snapaudit.engine.attacks.scores import MISSING, Score
from pytest_snapaudit.engine.outcomes import Rows

_REPEATS = 0.005
"""Share of rows that must repeat others; continuous outputs have no repeats, and floats of 32 bits fewer."""


@dataclass(frozen=True)
class SeenValues(Score):
    """Log of how much more often a value of another score was seen on the canary; 0 for values never seen.

    Attributes:
        base: the score whose values are counted.
        values: (k,) increasing, those seen.
        weights: (k,) log-ratios.
    """

    base: Score
    values: NDArray[np.float64]
    weights: NDArray[np.float64]

    def __call__(self, rows: Rows) -> NDArray[np.float64]:
        scores = self.base(rows)
        scores = np.where(np.isnan(scores), MISSING, scores)
        at = np.minimum(np.searchsorted(self.values, scores), len(self.values) - 1)
        return np.where(self.values[at] == scores, self.weights[at], 0.0)

    @property
    def name(self) -> str:
        return f"log-likelihood ratio of the {len(self.values):,} values seen of {self.base.name}"


def repeats(score: Score, rows: Rows) -> bool:
    """Whether enough values of a score occur more than once to count them one by one."""
    values = np.sort(evaluate(score, rows))
    again = np.count_nonzero(values[1:] == values[:-1])
    return bool(again >= max(10.0, _REPEATS * len(rows)))


def fit_seen_values(base: Score, reference: Rows, canary: Rows) -> SeenValues:
    """Count every value on both sides, of as many tuning trials each."""
    sides = evaluate(base, reference), evaluate(base, canary)
    values, which = np.unique(np.concatenate(sides), return_inverse=True)
    on_reference, on_canary = (
        np.bincount(part, minlength=len(values)) + 0.5 for part in np.split(which, [len(sides[0])])
    )
    return SeenValues(base, values, np.log(on_canary / on_reference))
