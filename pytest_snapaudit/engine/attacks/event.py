"""A distinguishing event: a set of outputs, likelier on one side than on the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pytest_snapaudit.engine.attacks.scores import MISSING, Score, interval
from pytest_snapaudit.engine.outcomes import Rows


def comparable(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores with NaN replaced by a very small number, so that every output falls in or out of every event."""
    return np.where(np.isnan(scores), MISSING, scores)


WIDE = 64
"""More columns than this are scored in chunks of rows, and fitted by moments rather than order statistics."""

_CHUNK = 1024


def evaluate(score: Score, rows: Rows) -> NDArray[np.float64]:
    """Comparable scores of (n, d) outputs, (n,); wide outputs in chunks, so that temporaries stay small."""
    with np.errstate(all="ignore"):
        if rows.shape[1] <= WIDE or len(rows) <= _CHUNK:
            return comparable(score(rows))
        parts = [score(rows[start : start + _CHUNK]) for start in range(0, len(rows), _CHUNK)]
        return comparable(np.concatenate(parts))


@dataclass(frozen=True)
class Event:
    """The set of outputs whose score compares with a threshold.

    Attributes:
        score: (n, d) outputs to (n,) scores.
        op: ``"<="``, ``">"``, ``"=="``, or ``"in"`` for an interval, open below.
        threshold: in units of the score; of an interval the lower end.
        likelier_on: the side on which the event is likelier: 0 the reference, 1 the canary.
        p, q: rates on the likelier and the other side, as seen in tuning.
        tuned_on: tuning trials per side behind ``p`` and ``q``.
        upper: of an interval the upper end, which belongs to it.
    """

    score: Score
    op: Literal["<=", ">", "==", "in"]
    threshold: float
    likelier_on: int
    p: float
    q: float
    tuned_on: int
    upper: float = np.inf

    def hits(self, rows: Rows) -> NDArray[np.bool_]:
        """Which outputs are in the event."""
        return self.holds(evaluate(self.score, rows))

    def holds(self, scores: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which of the scores are in the event."""
        if self.op == "<=":
            return np.asarray(scores <= self.threshold)
        if self.op == ">":
            return np.asarray(scores > self.threshold)
        if self.op == "in":
            return np.asarray((scores > self.threshold) & (scores <= self.upper))
        return np.asarray(scores == self.threshold)

    def describe(self) -> str:
        """The event in words, with the side on which it is likelier."""
        side = "canary" if self.likelier_on else "reference"
        if self.op == "in":
            return f"{self.score.name} in {interval(self.threshold, self.upper)}, likelier on the {side}"
        return f"{self.score.describe(self.op, self.threshold)}, likelier on the {side}"
