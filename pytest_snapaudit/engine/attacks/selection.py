"""The best event on one score: the one whose penalised bound is largest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from pytest_snapaudit.engine.attacks.event import Event, evaluate
from pytest_snapaudit.engine.attacks.scores import Score
from pytest_snapaudit.engine.betting import expected_growth
from pytest_snapaudit.engine.outcomes import Rows

_LEVELS = np.unique(
    np.concatenate([np.logspace(-5, -1.2, 40), np.linspace(0.07, 0.93, 61), 1.0 - np.logspace(-1.2, -5, 40)])
)
_MAX_ATOMS, _FEW = 60, 5
_MAX_UNEQUAL, _UNEQUAL = 20, 3.0
"""Rare values are tried where the sides have seen numbers of them this many standard errors apart."""

_WINDOW_CELLS, _LEAST_ROWS = 4_096, 2_000
"""Windows end at so many ranks of the pooled scores; they are tried from so many tuning trials per side on."""

_WINDOW_ERRORS = 4.0
"""Standard errors of a window's log-ratio that count against it, since the best of thousands is looked at."""

_ERRORS, _GAUSSIAN_ERRORS = float(-ndtri(0.1)), float(-ndtri(0.001))
"""Standard errors that tuning rates are shrunk by. In the tails of a Gaussian trade-off a small error of a rate is a
large one of μ, so there the level is one in ten for all thresholds together."""

_EXCESS = 4.1
_BEYOND_THE_CLAIM = 1e6


def approximate_rate_bounds(
    k_p: NDArray[np.float64], k_q: NDArray[np.float64], n: float, alpha_p: float, alpha_q: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower bound for k_p/n and upper bound for k_q/n, by a Wilson–Hilferty approximation.

    Good enough to rank candidates (relative error below a few percent); never used to certify.
    """
    return _rate_bounds(k_p, k_q, n, -ndtri(alpha_p), -ndtri(alpha_q))


def _rate_bounds(
    k_p: NDArray[np.float64],
    k_q: NDArray[np.float64],
    n: float,
    z_p: float | NDArray[np.float64],
    z_q: float | NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    k = np.maximum(k_p, 1e-9)
    thin = np.sqrt(np.maximum(1.0 - k / (n + 1.0), 1e-12))
    root = np.maximum(1.0 - 1.0 / (9.0 * k) - z_p * thin / (3.0 * np.sqrt(k)), 0.0)
    low = k * root * root * root
    k = k_q + 1.0
    thin = np.sqrt(np.maximum(1.0 - k / (n + 1.0), 1e-12))
    root = 1.0 - 1.0 / (9.0 * k) + z_q * thin / (3.0 * np.sqrt(k))
    high = k * root * root * root
    return np.where(k_p > 0, low / n, 0.0), np.minimum(high / n, 1.0)


def _thresholds(pooled: NDArray[np.float64]) -> NDArray[np.float64]:
    n = len(pooled)
    return np.unique(pooled[np.minimum((_LEVELS * n).astype(int), n - 1)])


def _atoms(
    pooled: NDArray[np.float64], a: NDArray[np.float64], b: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The heaviest values, and those of which the two sides have seen the most unequal numbers.

    Args:
        pooled, a, b: sorted scores of both sides together, and of each.
    """
    starts = np.flatnonzero(np.concatenate([[True], pooled[1:] != pooled[:-1]]))
    counts = np.diff(np.append(starts, len(pooled)))
    heaviest = np.argsort(-counts, kind="stable")[:_MAX_ATOMS]
    heaviest = heaviest[counts[heaviest] > max(_FEW, 2e-4 * len(pooled))]
    often = np.flatnonzero(counts > _FEW)
    values = pooled[starts[often]]
    seen_a, seen_b = (
        np.searchsorted(side, values, side="right") - np.searchsorted(side, values, side="left")
        for side in (a, b)
    )
    unequal = np.abs(seen_b - seen_a) / np.sqrt(counts[often])
    rare = np.argsort(-unequal, kind="stable")[:_MAX_UNEQUAL]
    rare = often[rare[unequal[rare] > _UNEQUAL]]
    return np.unique(pooled[starts[np.concatenate([heaviest, rare])]])


def _windows(
    pooled: NDArray[np.float64], a: NDArray[np.float64], b: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Intervals in which one side is clearly denser: for every width, in ranks, the best one of either side.

    A bump in one density is lost among the cells of a histogram if it is narrow, and behind every threshold.

    Returns:
        (k, 2) ends, the lower one outside.
    """
    step = -(-len(pooled) // _WINDOW_CELLS)
    ends = np.unique(pooled[step - 1 :: step])
    if len(a) < _LEAST_ROWS or len(ends) < _WINDOW_CELLS // 4:
        return np.empty((0, 2))
    cumulated = [np.searchsorted(side, ends, side="right") for side in (a, b)]
    found = []
    width = 2
    while width < len(ends) // 4:
        inside = [(counts[width:] - counts[:-width])[:: max(width // 4, 1)] + 0.5 for counts in cumulated]
        error = _WINDOW_ERRORS * np.sqrt(1.0 / inside[0] + 1.0 / inside[1])
        ratio = np.log(inside[1] / inside[0])
        for lower_bound in (ratio - error, -ratio - error):
            at = int(np.argmax(lower_bound))
            if lower_bound[at] > 0:
                start = at * max(width // 4, 1)
                found.append((ends[start], ends[start + width]))
        width *= 2
    return np.array(found).reshape(-1, 2)


def _counts(
    ordered: NDArray[np.float64],
    thresholds: NDArray[np.float64],
    atoms: NDArray[np.float64],
    windows: NDArray[np.float64],
) -> NDArray[np.float64]:
    below = np.searchsorted(ordered, thresholds, side="right")
    at = np.searchsorted(ordered, atoms, side="right") - np.searchsorted(ordered, atoms, side="left")
    within = np.diff(np.searchsorted(ordered, windows, side="right"), axis=1)[:, 0]
    return np.concatenate([below, len(ordered) - below, at, within]).astype(np.float64)


@dataclass(frozen=True)
class Goal:
    """What the chosen event will be used for.

    Attributes:
        epsilon, delta: of the claim.
        n_certify: trials per side of the batch that will be counted.
        alpha: error probability that batch may spend.
        gaussian: the rates will be read on a Gaussian trade-off, on which all parts of the curve count alike.
    """

    epsilon: float
    delta: float
    n_certify: int
    alpha: float
    gaussian: bool = False


@dataclass(frozen=True)
class RatedEvent:
    """An event and its penalised bound; beyond the claim, ``_BEYOND_THE_CLAIM`` plus the growth of a bet on it.

    Where the goal is Gaussian, the bound is that on the trade-off's μ instead, beyond the claim as before it.
    """

    value: float
    event: Event

    def clearly_above(self, other: RatedEvent) -> bool:
        """Whether this event is better by more than a plainer one is to be preferred for."""
        if self.value < _BEYOND_THE_CLAIM:
            return self.value > other.value + 0.005 * min(abs(other.value), 1.0)
        return self.value > other.value + max(0.05 * (other.value - _BEYOND_THE_CLAIM), 0.0)


def best_event(score: Score, reference: Rows, canary: Rows, goal: Goal) -> RatedEvent | None:
    """The best event on one score, over thresholds, atoms and both directions.

    The tuning counts are first shrunk to one-sided bounds at a mild level. Events that refute the claim at
    these shrunken rates come first, by the evidence a bet on them is expected to gather in the certifying
    batch; the others are compared by the bound on epsilon that batch would certify (STATISTICS, "Selecting
    the event").

    Args:
        reference, canary: (h, d) tuning outputs per side.
    """
    return best_event_of_scores(score, evaluate(score, reference), evaluate(score, canary), goal)


def best_event_of_scores(
    score: Score, reference: NDArray[np.float64], canary: NDArray[np.float64], goal: Goal
) -> RatedEvent | None:
    """As :func:`best_event`, from the (h,) values that ``score`` took on each side."""
    h = len(reference)
    a, b = np.sort(reference), np.sort(canary)
    pooled = np.sort(np.concatenate([a, b]), kind="stable")
    thresholds, atoms, windows = _thresholds(pooled), _atoms(pooled, a, b), _windows(pooled, a, b)
    counts = _counts(a, thresholds, atoms, windows), _counts(b, thresholds, atoms, windows)
    k_p, k_q = np.concatenate(counts), np.concatenate(counts[::-1])
    errors = np.full(len(counts[0]), _GAUSSIAN_ERRORS if goal.gaussian else _ERRORS)
    errors[len(errors) - len(windows) :] = _WINDOW_ERRORS
    value = _penalised_value(k_p, k_q, h, goal, np.tile(errors, 2))
    best = int(np.argmax(value))
    if not value[best] > -np.inf:
        return None
    side, at = divmod(best, len(counts[0]))
    op, threshold, upper = _event_at(at, thresholds, atoms, windows)
    event = Event(score, op, threshold, side, float(k_p[best] / h), float(k_q[best] / h), h, upper)
    return RatedEvent(float(value[best]), event)


def _penalised_value(
    k_p: NDArray[np.float64],
    k_q: NDArray[np.float64],
    h: int,
    goal: Goal,
    errors: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The bounds to be expected of each event, its rates first shrunk by so many standard errors."""
    n, alpha = goal.n_certify, goal.alpha
    if goal.gaussian:
        p, q = _bounds_near_one(k_p, k_q, h, errors, errors)
        z = float(-ndtri(alpha / 2))
        p, q = _bounds_near_one(np.floor(p * n), np.ceil(q * n), n, z, z)
        return np.where(p > q, ndtri(p) - ndtri(q), -np.inf)
    p, q = _rate_bounds(k_p, k_q, h, errors, errors)
    p_lower, q_upper = approximate_rate_bounds(np.floor(p * n), np.ceil(q * n), n, alpha / 3, 2 * alpha / 3)
    excess = p_lower - goal.delta
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.log(np.maximum(excess, 1e-300) / np.maximum(q_upper, 1e-300))
    bound = np.where((excess > 0) & (p > q), value, -np.inf)
    p, q = _rates_less_an_excess(k_p, k_q, h, goal.epsilon)
    growth = n * expected_growth(p, q, goal.epsilon, goal.delta)
    return np.where(growth > 0, _BEYOND_THE_CLAIM + growth, bound)


def _bounds_near_one(
    k_p: NDArray[np.float64],
    k_q: NDArray[np.float64],
    n: float,
    z_p: float | NDArray[np.float64],
    z_q: float | NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """As :func:`_rate_bounds`, as good for rates near 1 as for rates near 0: by their complements."""
    p, q = _rate_bounds(k_p, k_q, n, z_p, z_q)
    beyond_q, beyond_p = _rate_bounds(n - k_q, n - k_p, n, z_q, z_p)
    return np.where(2 * k_p > n, 1.0 - beyond_p, p), np.where(2 * k_q > n, 1.0 - beyond_q, q)


def _rates_less_an_excess(
    k_p: NDArray[np.float64], k_q: NDArray[np.float64], h: int, epsilon: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rates at which ``p - e^ε q`` lies ``_EXCESS`` of its standard errors below what was seen.

    The error is shared out as it arises: where one side's rate is hardly uncertain it is hardly shrunk.
    """
    weight = np.exp(min(epsilon, 50.0))
    error_p = np.sqrt((k_p + 0.5) * (1.0 - k_p / (h + 1.0)))
    error_q = weight * np.sqrt((k_q + 0.5) * (1.0 - k_q / (h + 1.0)))
    total = np.hypot(error_p, error_q)
    return _rate_bounds(k_p, k_q, h, _EXCESS * error_p / total, _EXCESS * error_q / total)


def _event_at(
    at: int, thresholds: NDArray[np.float64], atoms: NDArray[np.float64], windows: NDArray[np.float64]
) -> tuple[Literal["<=", ">", "==", "in"], float, float]:
    """Comparison, threshold and upper end of the event of one index in :func:`_counts`."""
    m = len(thresholds)
    if at < m:
        return "<=", float(thresholds[at]), np.inf
    if at < 2 * m:
        return ">", float(thresholds[at - m]), np.inf
    if at < 2 * m + len(atoms):
        return "==", float(atoms[at - 2 * m]), np.inf
    lower, upper = windows[at - 2 * m - len(atoms)].tolist()
    return "in", lower, upper
