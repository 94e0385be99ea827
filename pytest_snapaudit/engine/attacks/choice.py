"""Choosing the event to certify among all candidate scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pytest_snapaudit.engine.attacks.event import Event
from pytest_snapaudit.engine.attacks.fitting import candidate_scores, refit
from pytest_snapaudit.engine.attacks.moments import ColumnMoments
from pytest_snapaudit.engine.attacks.scores import Coordinate, Score
from pytest_snapaudit.engine.attacks.selection import Goal, RatedEvent, best_event, best_event_of_scores
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.outcomes import Layout, Rows


@dataclass(frozen=True)
class CountedScore:
    """What one score said of trials that were counted on it.

    Attributes:
        score: fitted on earlier trials.
        reference, canary: (n,) its values on either side.
    """

    score: Score
    reference: NDArray[np.float64]
    canary: NDArray[np.float64]


def choose_event(
    reference: Rows,
    canary: Rows,
    layout: Layout,
    *,
    claim: PrivacyClaim,
    n_certify: int,
    alpha: float,
    direction: NDArray[np.float64] | None = None,
    side_channels: Sequence[str] = (),
    extra: Sequence[Score] = (),
    counted: CountedScore | None = None,
    moments: ColumnMoments | None = None,
    gaussian: bool = False,
) -> Event:
    """The event whose penalised bound is largest, over all candidate scores.

    Scores are fitted on one half of the tuning trials and compared on the other, so that a flexible score
    does not win by fitting noise; the winner is refitted, and its threshold chosen, on all of them.

    Args:
        reference, canary: (h, d) tuning outputs per side.
        layout: names of the columns.
        claim: under test.
        n_certify: trials per side of the batch that will be counted.
        alpha: error probability that batch may spend.
        direction: (d,) difference of the clean outputs, if there is one.
        side_channels: ``"low-bit"`` and ``"timing"``, opt-in.
        extra: scores supplied by the user.
        counted: the score that earlier trials were counted on, with what it said of each: trials it was not
            fitted on, and more of them than are kept as rows.
        moments: of trials that are not among the tuning outputs.
        gaussian: the rates of the event will be read on a Gaussian trade-off.
    """
    learned = None if moments is None else moments.discriminant()
    extra = (*extra, *([] if learned is None else [learned]))
    goal = Goal(claim.epsilon, claim.delta, n_certify, alpha, gaussian)
    half = len(reference) // 2
    with np.errstate(all="ignore"):
        best = _choose(reference, canary, layout, goal, half, direction, side_channels, extra)
        if counted is not None and len(counted.reference) > len(reference):
            again = best_event_of_scores(counted.score, counted.reference, counted.canary, goal)
            if again is not None and (best is None or again.value > best.value):
                return again.event
        if best is None:
            return Event(Coordinate(0, layout), ">", 0.0, 0, 0.5, 0.5, len(reference))
        final = best_event(refit(best.event.score, reference, canary), reference, canary, goal)
    return final.event if final is not None else best.event


def _choose(
    reference: Rows,
    canary: Rows,
    layout: Layout,
    goal: Goal,
    half: int,
    direction: NDArray[np.float64] | None,
    side_channels: Sequence[str],
    extra: Sequence[Score],
) -> RatedEvent | None:
    """The best event, each score fitted on the first ``half`` trials and rated on the others."""
    scores = candidate_scores(
        reference[:half], canary[:half], layout, direction=direction, side_channels=side_channels, extra=extra
    )
    best: RatedEvent | None = None
    for score in scores:
        rated = best_event(score, reference[half:], canary[half:], goal)
        if rated is not None and (best is None or rated.clearly_above(best)):
            best = rated
    return best
