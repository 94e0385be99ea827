"""The audit of a random clean stage known by a finite sample of clean outputs.

One bound covers snapshot and Monte Carlo error: each certifying clean output gets its own fresh draws, and
the mean of its hit rates is bounded by betting over rows (STATISTICS, "Random clean stage"). The attack is
chosen on clean outputs kept apart: chosen on the certifying ones it would see differences that are not there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_snapaudit.engine import bounds, estimators
from pytest_snapaudit.engine.attacks.choice import choose_event
from pytest_snapaudit.engine.attacks.event import Event
from pytest_snapaudit.engine.budget import AlphaShares
from pytest_snapaudit.engine.outcomes import Layout, Rows
from pytest_snapaudit.engine.pilot import Pilot, draw_pilot
from pytest_snapaudit.engine.result import RateBounds
from pytest_snapaudit.engine.seeding import BLOCK, block_generator
from pytest_snapaudit.engine.settings import Settings
from pytest_snapaudit.engine.simulation import (
    CLEAN_PHASE,
    FIRST_LOOK_PHASE,
    TUNE_ROWS_PHASE,
    CopiedSource,
    FixedRowsSource,
    MixedCleanSource,
    Source,
    SteadySource,
    draw_raw,
    encode,
    run_tasks,
)
from pytest_snapaudit.engine.subject import Subject
from pytest_snapaudit.engine.trials import split_alpha

TUNING_DRAWS = 20_000
"""Draws per side from the tuning rows on which the event is chosen."""

_VARIANCE_ROWS = 200
_LEAST_VARIANCE = 1.0 / (4.0 * _VARIANCE_ROWS)
"""What a few tuning rows without a hit leave open; without it a rare event makes the upper bound wide."""


@dataclass(frozen=True)
class RowsOutcome:
    """The bound on one view of a random clean stage."""

    epsilon_lower: float
    event: Event
    rates: RateBounds
    rows: int
    trials: int
    remarks: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class RowTask:
    """Some certifying rows of one side, and the draws each of them gets."""

    mechanism: Any
    rows: NDArray[Any]
    draws: int
    entropy: tuple[int, ...]
    phase: int
    side: int
    block: int
    pilot: Source


def hit_rates(
    task: RowTask, *, events: dict[str, Event], layouts: dict[str, Layout]
) -> dict[str, NDArray[np.float64]]:
    """(r,) share of each row's draws that fall in the event, per view."""
    rng = block_generator(task.entropy, task.phase, task.side, task.block)
    size = len(task.rows)
    hits = {view: np.zeros(size) for view in events}
    step = max(BLOCK // size, 1)
    for start in range(0, task.draws, step):
        draws = min(step, task.draws - start)
        source: Source = FixedRowsSource(task.mechanism, np.repeat(task.rows, draws, axis=0))
        if isinstance(task.pilot, SteadySource):
            source = replace(task.pilot, source=source)
        encoded = encode(draw_raw(source, size * draws, rng), layouts, size * draws)
        for view, event in events.items():
            hits[view] += event.hits(encoded[view]).reshape(size, draws).sum(axis=1)
    return {view: of_view / task.draws for view, of_view in hits.items()}


def split_rows(
    subject: Subject, entropy: tuple[int, ...]
) -> tuple[tuple[NDArray[Any], NDArray[Any]], tuple[NDArray[Any], NDArray[Any]]]:
    """Shuffle each side's clean outputs and split them into tuning and certifying rows (one fifth to four)."""
    if subject.clean_rows is None:
        msg = "a subject without clean outputs has no rows to split"
        raise ValueError(msg)
    tuning, certifying = [], []
    for side, rows in enumerate(subject.clean_rows):
        order = block_generator(entropy, CLEAN_PHASE, side, 2**30).permutation(len(rows))
        cut = max(len(rows) // 5, 1)
        tuning.append(rows[order[:cut]])
        certifying.append(rows[order[cut:]] if len(rows) > 1 else rows)
    return (tuning[0], tuning[1]), (certifying[0], certifying[1])


def audit_rows(
    subject: Subject, settings: Settings, shares: dict[str, AlphaShares]
) -> dict[str, RowsOutcome]:
    """Choose an event per view on the tuning rows, certify it on the others."""
    tuning, certifying = split_rows(subject, settings.entropy)
    a, b = (
        CopiedSource(source) if isinstance(probed, CopiedSource) else source
        for probed, source in zip(
            subject.sources, (MixedCleanSource(subject.mechanism, rows) for rows in tuning), strict=True
        )
    )
    sources: tuple[Source, Source] = (a, b)
    events, pilot = _choose(subject, settings, sources, shares, min(len(rows) for rows in certifying))
    variances = [
        _side_rates(
            subject,
            settings,
            rows[:_VARIANCE_ROWS],
            _draws(settings, certifying[side]),
            side,
            1,
            events,
            pilot,
        )
        for side, rows in enumerate(tuning)
    ]
    rates = [
        _side_rates(subject, settings, rows, _draws(settings, rows), side, 0, events, pilot)
        for side, rows in enumerate(certifying)
    ]
    outcomes = {}
    for view, event in events.items():
        likelier, other = event.likelier_on, 1 - event.likelier_on
        tuned = [_tuned_variance(variance[view]) for variance in variances]
        bound = _rate_bounds(
            rates[likelier][view],
            rates[other][view],
            tuned[likelier],
            tuned[other],
            event,
            settings,
            shares[view],
        )
        estimator = "gdp" if settings.estimator == "gdp" else "dp"
        epsilon = estimators.epsilon_from_rates(bound.p_lower, bound.q_upper, settings.claim.delta, estimator)
        size = min(len(rows) for rows in certifying)
        trials = size * _draws(settings, certifying[0])
        outcomes[view] = RowsOutcome(epsilon, event, bound, size, trials, pilot.remarks)
    return outcomes


def _tuned_variance(rates: NDArray[np.float64]) -> float:
    return float(np.var(rates, ddof=1)) if len(rates) > 1 else 0.25


def _draws(settings: Settings, rows: NDArray[Any]) -> int:
    return max(-(-settings.n_trials // len(rows)), 1)


def _choose(
    subject: Subject,
    settings: Settings,
    sources: tuple[Source, Source],
    shares: dict[str, AlphaShares],
    n_rows: int,
) -> tuple[dict[str, Event], Pilot]:
    draws = min(TUNING_DRAWS, settings.n_trials)
    pilot = draw_pilot(subject.name, sources, settings.entropy, TUNE_ROWS_PHASE, draws, subject.views)
    events = {
        view: _select(subject, settings, rows, pilot.layouts[view], shares[view], n_rows)
        for view, rows in pilot.rows.items()
    }
    return events, pilot


def _select(
    subject: Subject,
    settings: Settings,
    tuning: tuple[Rows, Rows],
    layout: Layout,
    shares: AlphaShares,
    n_rows: int,
) -> Event:
    direction = subject.clean_direction
    if direction is not None and len(direction) != tuning[0].shape[1]:
        direction = None
    return choose_event(
        *tuning,
        layout,
        direction=direction,
        side_channels=settings.side_channels,
        extra=settings.attacks,
        claim=settings.claim,
        n_certify=n_rows,
        alpha=shares.counts + shares.betting,
        gaussian=settings.estimator == "gdp",
    )


def _side_rates(
    subject: Subject,
    settings: Settings,
    rows: NDArray[Any],
    draws: int,
    side: int,
    phase: int,
    events: dict[str, Event],
    pilot: Pilot,
) -> dict[str, NDArray[np.float64]]:
    per_block = max(BLOCK // draws, 1)
    tasks = [
        RowTask(
            subject.mechanism,
            rows[start : start + per_block],
            draws,
            settings.entropy,
            FIRST_LOOK_PHASE + phase,
            side,
            i,
            pilot.sources[side],
        )
        for i, start in enumerate(range(0, len(rows), per_block))
    ]
    parts = list(
        run_tasks(settings.executor, partial(hit_rates, events=events, layouts=pilot.layouts), tasks)
    )
    return {view: np.concatenate([part[view] for part in parts]) for view in events}


def _rate_bounds(
    z_p: NDArray[np.float64],
    z_q: NDArray[np.float64],
    variance_p: float,
    variance_q: float,
    event: Event,
    settings: Settings,
    shares: AlphaShares,
) -> RateBounds:
    alpha = shares.counts + shares.betting
    p, q, n = float(z_p.mean()), float(z_q.mean()), min(len(z_p), len(z_q))
    if settings.correction == "bernstein":
        trials = n * _draws(settings, z_p)
        spread = [float(z.var(ddof=1)) if len(z) > 1 else 0.25 for z in (z_p, z_q)]
        low = p - bounds.snapshot_radius(spread[0], max(len(z_p), 2), trials, alpha)
        high = q + bounds.snapshot_radius(spread[1], max(len(z_q), 2), trials, alpha)
        return RateBounds(p, q, max(low, 0.0), min(high, 1.0), trials)
    alpha_p, alpha_q = split_alpha(event, n, settings.claim.delta, alpha)
    low = bounds.rowwise_betting_lower(z_p, alpha_p, variance_p)
    high = bounds.rowwise_betting_upper(z_q, alpha_q, max(variance_q, _LEAST_VARIANCE))
    return RateBounds(p, q, low, high, n * _draws(settings, z_p))
