"""The claim curve of a calibrator: every (ε′, δ(ε′)) it states at one noise level, tested by counting.

A calibration formula that gives the noise for (ε, δ) gives the same noise for other claims (ε′, δ′); all of them are
claims about one mechanism, and refuting any of them refutes the calibration (Lokna, Paradis, Dimitrov and Vechev,
"Group and attack: auditing differential privacy", CCS 2023). Where the claim under test is out of reach of counting,
a point of the same curve often is not.

Before each look up to four events are chosen on earlier trials, and counted on fresh ones at a quarter of the look's
error probability each. The two rates of an event are bounded together, ``p_lower`` and ``q_upper``, and then every
point of the curve is tested at once: it is refuted if ``p_lower − e^{ε′} q_upper > δ(ε′)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_snapaudit.engine.attacks.event import Event, comparable
from pytest_snapaudit.engine.attacks.scores import Score
from pytest_snapaudit.engine.betting import PairCounts
from pytest_snapaudit.engine.bounds import pair_rate_bounds
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.errors import MechanismError
from pytest_snapaudit.engine.outcomes import Rows
from pytest_snapaudit.engine.result import RateBounds

_FRACTIONS = np.linspace(0.1, 1.5, 57)
_LEVELS = np.concatenate(
    [np.logspace(-4, -1.2, 24), np.linspace(0.07, 0.93, 44), 1.0 - np.logspace(-1.2, -4, 24)]
)
_PENALTY_LEVEL = 0.02
_MOST_RATED, _MOST_EVENTS, _RATIO = 30, 4, 1.15
_SPLITS = np.array([0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9])

Curve = Callable[[float], float]


@dataclass(frozen=True)
class ClaimCurve:
    """Points of a claim curve.

    Attributes:
        epsilons: (k,) increasing.
        deltas: (k,) claimed there; points with a delta of 1 or more claim nothing and are left out.
    """

    epsilons: NDArray[np.float64]
    deltas: NDArray[np.float64]


@dataclass(frozen=True)
class RefutedPoint:
    """A point of the claim curve that fresh trials refuted.

    Attributes:
        claim: the point.
        epsilon_lower: lower bound on epsilon at the point's delta.
        rates: of the event, with their bounds.
        event: in whose counts the refutation rests.
    """

    claim: PrivacyClaim
    epsilon_lower: float
    rates: RateBounds
    event: Event


def curve_of(mechanism: Any, given: Any, claim: PrivacyClaim, name: str) -> ClaimCurve | None:
    """The curve that is given, else the mechanism's own ``claim_curve``; None if there is neither.

    Raises:
        TypeError: for anything but a function.
        MechanismError: as in :func:`read_curve`.
    """
    curve = given if given is not None else getattr(mechanism, "claim_curve", None)
    if curve is None:
        return None
    if not callable(curve):
        msg = f"{name}: claim_curve must be a function of epsilon that returns delta, got {curve!r}."
        raise TypeError(msg)
    return read_curve(name, curve, claim)


def read_curve(name: str, curve: Curve, claim: PrivacyClaim) -> ClaimCurve:
    """The curve at 57 epsilons from 0.1 to 1.5 times the claimed one (or 1, if that is 0).

    Raises:
        MechanismError: if the function raises, or returns something other than a number of at least 0.
    """
    epsilons = (claim.epsilon or 1.0) * _FRACTIONS
    deltas = np.array([_delta_at(name, curve, float(epsilon)) for epsilon in epsilons])
    some = deltas < 1.0
    return ClaimCurve(epsilons[some], deltas[some])


def _delta_at(name: str, curve: Curve, epsilon: float) -> float:
    try:
        delta = curve(epsilon)
    except Exception as raised:
        msg = f"{name}: claim_curve({epsilon:g}) raised {raised!r}."
        raise MechanismError(msg) from raised
    if isinstance(delta, bool) or not isinstance(delta, Real) or not float(delta) >= 0.0:
        msg = f"{name}: claim_curve({epsilon:g}) must return a delta, a number of at least 0, got {delta!r}."
        raise MechanismError(msg)
    return float(delta)


def choose_events(
    scores: Sequence[Score], reference: Rows, canary: Rows, curve: ClaimCurve, n_certify: int
) -> tuple[Event, ...]:
    """The events that promise most clearly to refute some point of the curve, of clearly different rates.

    Args:
        scores: candidates, fitted on the tuning trials.
        reference, canary: (h, d) tuning outputs per side.
        curve: under test.
        n_certify: trials per side of the batch that will be counted.

    Returns:
        Up to four events, the most promising first; none for a curve without points.
    """
    if len(curve.epsilons) == 0:
        return ()
    h, rated = len(reference), list[tuple[float, Event]]()
    for score in scores:
        sides = [np.sort(comparable(score(rows))) for rows in (reference, canary)]
        thresholds = np.unique(np.quantile(np.concatenate(sides), _LEVELS, method="inverted_cdf"))
        at_most = [np.searchsorted(side, thresholds, side="right").astype(float) for side in sides]
        for op, counts in (("<=", at_most), (">", [h - below for below in at_most])):
            for side in (0, 1):
                promise = _promise(counts[side], counts[1 - side], h, curve, n_certify)
                for at in np.argsort(-promise)[:_MOST_RATED]:
                    p, q = float(counts[side][at] / h), float(counts[1 - side][at] / h)
                    event = Event(score, "<=" if op == "<=" else ">", float(thresholds[at]), side, p, q, h)
                    rated.append((float(promise[at]), event))
    chosen: list[Event] = []
    for _, event in sorted(rated, key=lambda pair: -pair[0]):
        if len(chosen) < _MOST_EVENTS and all(_different(event, other) for other in chosen):
            chosen.append(event)
    return tuple(chosen)


def _different(event: Event, other: Event) -> bool:
    return max(event.p, other.p) > _RATIO * min(event.p, other.p)


def _promise(
    k_p: NDArray[np.float64], k_q: NDArray[np.float64], h: int, curve: ClaimCurve, n: int
) -> NDArray[np.float64]:
    """(events,) largest excess over the curve, in standard errors of the batch, at penalised rates."""
    p, q = pair_rate_bounds(k_p, k_q, h, _PENALTY_LEVEL, _PENALTY_LEVEL)
    growth = np.exp(np.minimum(curve.epsilons, 700.0))[:, None]
    excess = p - growth * q - curve.deltas[:, None]
    error = np.sqrt((p * (1.0 - p) + growth**2 * q * (1.0 - q)) / n)
    return np.asarray((excess / np.maximum(error, 1e-300)).max(axis=0))


def refuted_point(
    curve: ClaimCurve, counts: Sequence[PairCounts], events: Sequence[Event], alpha: float
) -> RefutedPoint | None:
    """The point refuted by the widest margin, or None.

    Args:
        curve: under test.
        counts: of each event on fresh trials.
        events: chosen on earlier trials.
        alpha: error probability; every event has an equal share of it, divided between its two rates as its tuning
            rates favour. All points share the two bounds.
    """
    widest, found = 0.0, None
    for event, seen in zip(events, counts, strict=True):
        n, each = seen.trials, alpha / len(events)
        share = _best_split(curve, event, n, each)
        low, high = pair_rate_bounds(seen.likelier, seen.other, n, share * each, (1.0 - share) * each)
        p_lower, q_upper = float(low), float(high)
        reached = _reached(p_lower, q_upper, curve)
        margin = reached - curve.epsilons
        at = int(np.argmax(margin)) if len(margin) else -1
        if at >= 0 and margin[at] > widest:
            widest = float(margin[at])
            rates = RateBounds(seen.likelier / n, seen.other / n, p_lower, q_upper, n)
            claim = PrivacyClaim(float(curve.epsilons[at]), float(curve.deltas[at]))
            found = RefutedPoint(claim, float(reached[at]), rates, event)
    return found


def _reached(p_lower: float, q_upper: float, curve: ClaimCurve) -> NDArray[np.float64]:
    """(k,) epsilon that the two rates certify at each point's delta; −inf where none."""
    excess = p_lower - curve.deltas
    logs = np.log(np.maximum(excess, 1e-300)) - math.log(max(q_upper, 1e-300))
    return np.asarray(np.where(excess > 0.0, logs, -np.inf))


def _best_split(curve: ClaimCurve, event: Event, n: int, alpha: float) -> float:
    """The share of ``alpha`` for the likelier side's rate that would serve the tuning rates best."""
    low, high = pair_rate_bounds(event.p * n, event.q * n, n, _SPLITS * alpha, (1.0 - _SPLITS) * alpha)
    margins = [
        float((_reached(p, q, curve) - curve.epsilons).max(initial=-math.inf))
        for p, q in zip(low.tolist(), high.tolist(), strict=True)
    ]
    return float(_SPLITS[int(np.argmax(margins))])
