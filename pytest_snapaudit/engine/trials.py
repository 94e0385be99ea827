"""The sequential audit of independent trials: tuned on the past, counted on fresh draws, over growing looks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from pytest_snapaudit.engine import bounds, claim_curve, estimators
from pytest_snapaudit.engine.attacks.choice import CountedScore, choose_event
from pytest_snapaudit.engine.attacks.event import Event, evaluate
from pytest_snapaudit.engine.attacks.moments import LEAST_COLUMNS, ColumnMoments
from pytest_snapaudit.engine.attacks.scores import Projection, Score
from pytest_snapaudit.engine.betting import (
    BettingLook,
    PairCounts,
    betting_epsilon_lower,
    clipped_rates,
)
from pytest_snapaudit.engine.budget import AlphaShares
from pytest_snapaudit.engine.certificates import Certificate, CertificateBound, Tallies, prepare
from pytest_snapaudit.engine.claim_curve import ClaimCurve, RefutedPoint
from pytest_snapaudit.engine.futility import violation_unlikely
from pytest_snapaudit.engine.looks import PILOT, Look, schedule
from pytest_snapaudit.engine.outcomes import Layout, Rows
from pytest_snapaudit.engine.pilot import TUNING_BYTES, draw_pilot, joined
from pytest_snapaudit.engine.result import RateBounds
from pytest_snapaudit.engine.settings import Settings
from pytest_snapaudit.engine.simulation import (
    FIRST_LOOK_PHASE,
    PILOT_PHASE,
    BlockTask,
    block_tasks,
    run_tasks,
)
from pytest_snapaudit.engine.subject import Subject

TUNING_TRIALS = 50_000
"""At most this many trials per side and view are kept for tuning; of narrow outputs more, see below."""

_MOST_TUNING_TRIALS, _TUNING_CELLS = 160_000, 200_000
"""An event as rare as delta is told from noise only by many trials; where outputs are narrow they cost little."""

_SINGLE_LOOK_PILOT = 20_000


@dataclass
class ViewState:
    """What is known about one view so far."""

    shares: AlphaShares
    curve: ClaimCurve | None = None
    tuning: list[tuple[Rows, Rows]] = field(default_factory=list)
    counted: CountedScore | None = None
    moments: ColumnMoments | None = None
    looks: list[BettingLook] = field(default_factory=list)
    count_bound: float = 0.0
    betting_bound: float = 0.0
    event: Event | None = None
    best_event: Event | None = None
    rates: RateBounds | None = None
    certificate: CertificateBound | None = None
    curve_events: tuple[Event, ...] = ()
    refuted: RefutedPoint | None = None

    @property
    def kept(self) -> int:
        """Tuning trials per side held so far."""
        return sum(len(reference) for reference, _ in self.tuning)

    @property
    def epsilon_lower(self) -> float:
        """The best bound so far."""
        model = self.certificate.epsilon_lower if self.certificate is not None else 0.0
        return max(self.count_bound, self.betting_bound, model)


@dataclass(frozen=True)
class TrialsOutcome:
    """What the looks gave."""

    views: dict[str, ViewState]
    trials: int
    looks: tuple[Look, ...]
    pilot: dict[str, tuple[Rows, Rows]]
    refusals: tuple[str, ...]
    remarks: tuple[tuple[str, str], ...] = ()
    stopped_early: bool = False


@dataclass(frozen=True)
class BlockCounts:
    """What one block contributes."""

    counts: dict[str, PairCounts]
    curve_counts: dict[str, list[PairCounts]]
    kept: dict[str, tuple[Rows, Rows]]
    scores: dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]
    moments: dict[str, ColumnMoments]
    tallies: Tallies | None


def count_block(
    task: BlockTask,
    *,
    events: dict[str, Event],
    curve_events: dict[str, tuple[Event, ...]],
    layouts: dict[str, Layout],
    certificate: Certificate | None,
    certificate_view: str,
    keep: dict[str, int],
) -> BlockCounts:
    """Draw one block, count every view's event on it, and keep scores and first rows for later tuning."""
    reference, canary = task.encoded(layouts)
    counts, curve_counts, kept, scores, moments = {}, {}, {}, {}, {}
    for view, event in events.items():
        sides = reference[view], canary[view]
        of_sides = evaluate(event.score, sides[0]), evaluate(event.score, sides[1])
        counts[view] = PairCounts.of(
            event.holds(of_sides[event.likelier_on]), event.holds(of_sides[1 - event.likelier_on])
        )
        if view in keep:
            scores[view] = of_sides
            if sides[0].shape[1] >= LEAST_COLUMNS and len(sides[0]) > keep[view]:
                moments[view] = ColumnMoments.of(sides[0][keep[view] :], sides[1][keep[view] :])
        if view in curve_events:
            curve_counts[view] = [_pair_counts(other, sides) for other in curve_events[view]]
        if keep.get(view):
            kept[view] = (sides[0][: keep[view]].copy(), sides[1][: keep[view]].copy())
    tallies = None
    if certificate is not None:
        tallies = certificate.tally((reference[certificate_view], canary[certificate_view]))
    return BlockCounts(counts, curve_counts, kept, scores, moments, tallies)


def _pair_counts(event: Event, sides: tuple[Rows, Rows]) -> PairCounts:
    return PairCounts.of(event.hits(sides[event.likelier_on]), event.hits(sides[1 - event.likelier_on]))


def audit_trials(subject: Subject, settings: Settings, shares: dict[str, AlphaShares]) -> TrialsOutcome:
    """Run the looks and return the best bound per audited view."""
    single = settings.correction in ("clopper-pearson", "bernstein")
    looks = schedule(settings.n_trials, single=single)
    pilot_trials = max(PILOT, min(_SINGLE_LOOK_PILOT, settings.n_trials // 8)) if single else PILOT
    drawn_views = subject.views if subject.noise is None else (*subject.views, subject.noise_view)
    drawn = draw_pilot(
        subject.name, subject.sources, settings.entropy, PILOT_PHASE, pilot_trials, drawn_views
    )
    pilot, layouts, subject = drawn.rows, drawn.layouts, replace(subject, sources=drawn.sources)
    certificate, refusals = _certificate(subject, settings, pilot, shares)
    states = {
        view: ViewState(shares[view], settings.curve if view in subject.covered else None, [pilot[view]])
        for view in subject.views
    }
    tallies: Tallies | None = None
    trials, stopped_early = 0, False
    for look in looks:
        for view, state in states.items():
            _tune(state, subject, view, layouts[view], look, settings)
        tallies = _count_look(subject, settings, look, layouts, certificate, states, tallies)
        trials += look.trials
        for view, state in states.items():
            _bound_view(state, look, settings, subject)
            if certificate is not None and tallies is not None and view == subject.noise_view:
                _bound_certificate(state, certificate, tallies, look, settings)
        if settings.estimator == "gdp" and certificate is not None and tallies is not None:
            refusals = certificate.failed_conditions(tallies)
        if _decided(states, subject, settings, refusals):
            break
        if settings.stop_early and not look.last and _unlikely(states, subject, settings, certificate):
            looks, stopped_early = looks[: look.index + 1], True
            break
    if certificate is not None and tallies is not None:
        bound = states[subject.noise_view].certificate if subject.noise_view in states else None
        refusals = bound.refusals if bound is not None else certificate.failed_conditions(tallies)
    return TrialsOutcome(states, trials, looks, pilot, refusals, drawn.remarks, stopped_early)


def _unlikely(
    states: dict[str, ViewState], subject: Subject, settings: Settings, certificate: Certificate | None
) -> bool:
    """Whether no covered view is likely to refute the claim; a certificate that may still apply goes on."""
    if certificate is not None:
        return False
    return all(
        violation_unlikely(state.looks, settings.claim, state.shares.betting, settings.n_trials)
        for view, state in states.items()
        if view in subject.covered
    )


def _decided(
    states: dict[str, ViewState],
    subject: Subject,
    settings: Settings,
    refusals: tuple[str, ...],
) -> bool:
    """Whether a covered view refutes the claim; rates read as Gaussian also need their declaration tested."""
    if settings.estimator == "gdp" and refusals:
        return False
    return any(
        state.epsilon_lower > settings.claim.epsilon or state.refuted is not None
        for view, state in states.items()
        if view in subject.covered
    )


def _certificate(
    subject: Subject,
    settings: Settings,
    pilot: dict[str, tuple[Rows, Rows]],
    shares: dict[str, AlphaShares],
) -> tuple[Certificate | None, tuple[str, ...]]:
    if settings.estimator == "dp" or (subject.noise is None and settings.estimator == "auto"):
        return None, ()
    share = shares[subject.noise_view].certificate if subject.noise_view in shares else 0.0
    prepared = prepare(
        subject,
        pilot.get(subject.noise_view),
        delta=settings.claim.delta,
        planned=settings.n_trials,
        alpha=schedule(settings.n_trials)[-1].share * (share if share > 0 else settings.alpha),
        gaussian=settings.estimator == "gdp",
    )
    return (None, prepared) if isinstance(prepared, tuple) else (prepared, ())


def _room(state: ViewState) -> int:
    first = state.tuning[0][0]
    width = max(int(first.shape[1]), 1)
    most = max(TUNING_TRIALS, min(_MOST_TUNING_TRIALS, _TUNING_CELLS // width))
    return max(min(most, TUNING_BYTES // (int(first.dtype.itemsize) * width)) - state.kept, 0)


def _tune(
    state: ViewState, subject: Subject, view: str, layout: Layout, look: Look, settings: Settings
) -> None:
    reference, canary = joined(state.tuning)
    state.tuning = [(reference, canary)]
    state.event = choose_event(
        reference,
        canary,
        layout,
        direction=_direction(subject, view, reference),
        side_channels=settings.side_channels,
        extra=settings.attacks,
        counted=state.counted,
        moments=state.moments,
        claim=settings.claim,
        n_certify=look.trials,
        alpha=max(state.shares.counts * look.share, state.shares.betting),
        gaussian=settings.estimator == "gdp",
    )
    if state.curve is not None:
        scores: list[Score] = [state.event.score]
        direction = _direction(subject, view, reference)
        if direction is not None:
            scores.append(Projection(direction, "projection on the difference of the clean outputs"))
        state.curve_events = claim_curve.choose_events(scores, reference, canary, state.curve, look.trials)


def _direction(subject: Subject, view: str, rows: Rows) -> NDArray[np.float64] | None:
    direction = subject.clean_direction
    if direction is None or view != subject.noise_view or len(direction) != rows.shape[1]:
        return None
    norm = float(np.linalg.norm(direction))
    return direction / norm if norm > 0 else None


def _count_look(
    subject: Subject,
    settings: Settings,
    look: Look,
    layouts: dict[str, Layout],
    certificate: Certificate | None,
    states: dict[str, ViewState],
    tallies: Tallies | None,
) -> Tallies | None:
    tasks = block_tasks(subject.sources, settings.entropy, FIRST_LOOK_PHASE + look.index, look.trials)
    events = {view: state.event for view, state in states.items() if state.event is not None}
    drawn = (*events, subject.noise_view) if certificate is not None else tuple(events)
    curve_events = {view: state.curve_events for view, state in states.items() if state.curve_events}
    totals = {view: PairCounts(0, 0, 0, 0) for view in events}
    curve_totals = {view: [PairCounts(0, 0, 0, 0)] * len(chosen) for view, chosen in curve_events.items()}
    count = partial(
        count_block,
        events=events,
        curve_events=curve_events,
        layouts={view: layouts[view] for view in dict.fromkeys(drawn)},
        certificate=certificate,
        certificate_view=subject.noise_view,
        keep={} if look.last else {view: _room(state) for view, state in states.items()},
    )
    scored: dict[str, list[tuple[NDArray[np.float64], NDArray[np.float64]]]] = {view: [] for view in events}
    for block in run_tasks(settings.executor, count, tasks):
        for view, counts in block.counts.items():
            totals[view] += counts
        for view, several in block.curve_counts.items():
            curve_totals[view] = [a + b for a, b in zip(curve_totals[view], several, strict=True)]
        for view, (reference, canary) in block.kept.items():
            room = _room(states[view])
            if room:
                states[view].tuning.append((reference[:room], canary[:room]))
        for view, of_sides in block.scores.items():
            scored[view].append(of_sides)
        for view, more in block.moments.items():
            so_far = states[view].moments
            states[view].moments = more if so_far is None else so_far + more
        tallies = merge_tallies(tallies, block.tallies)
    for view, event in events.items():
        if scored[view]:
            of_reference, of_canary = (np.concatenate(parts) for parts in zip(*scored[view], strict=True))
            states[view].counted = CountedScore(event.score, of_reference, of_canary)
        p, q = clipped_rates(event.p, event.q, event.tuned_on)
        states[view].looks.append(BettingLook(totals[view], p, q))
    for view, chosen in curve_events.items():
        state, alpha = states[view], states[view].shares.curve * look.share
        if state.curve is not None and alpha > 0.0:
            state.refuted = claim_curve.refuted_point(state.curve, curve_totals[view], chosen, alpha)
    return tallies


def merge_tallies(total: Tallies | None, more: Tallies | None) -> Tallies | None:
    """Both sides' tallies of two sets of draws."""
    if total is None or more is None:
        return more if total is None else total
    return total[0].merge(more[0]), total[1].merge(more[1])


SPLITS = np.array([0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9])
"""Shares of the error probability that the likelier side's rate may get."""


def split_alpha(event: Event, n: int, delta: float, alpha: float) -> tuple[float, float]:
    """How to share ``alpha`` between the two rates so that the tuned event would certify the most."""
    p_lower, q_upper = bounds.pair_rate_bounds(
        event.p * n, event.q * n, n, SPLITS * alpha, (1 - SPLITS) * alpha
    )
    excess = np.maximum(np.asarray(p_lower) - delta, 1e-300)
    share = float(SPLITS[int(np.argmax(np.log(excess) - np.log(np.maximum(q_upper, 1e-300))))])
    return share * alpha, (1 - share) * alpha


def _rate_bounds(
    counts: PairCounts, event: Event, alpha: float, settings: Settings, subject: Subject
) -> RateBounds:
    n, p, q = counts.trials, counts.likelier / counts.trials, counts.other / counts.trials
    if settings.correction == "bernstein":
        if subject.clean == "fixed":
            radius = bounds.snapshot_radius(0.0, settings.n_snapshots, n, alpha)
            low, high = p - radius, q + radius
        else:
            low = p - bounds.empirical_bernstein_radius(p * (1 - p) * n / (n - 1), n, alpha / 2)
            high = q + bounds.empirical_bernstein_radius(q * (1 - q) * n / (n - 1), n, alpha / 2)
        return RateBounds(p, q, max(low, 0.0), min(high, 1.0), n)
    if settings.correction == "clopper-pearson":
        alpha_p = alpha_q = alpha / 2
    else:
        alpha_p, alpha_q = split_alpha(event, n, settings.claim.delta, alpha)
    low_array, high_array = bounds.pair_rate_bounds(counts.likelier, counts.other, n, alpha_p, alpha_q)
    return RateBounds(p, q, float(low_array), float(high_array), n)


def _bound_view(state: ViewState, look: Look, settings: Settings, subject: Subject) -> None:
    event = state.event
    if event is None:
        return
    counts, claim = state.looks[-1].counts, settings.claim
    if state.shares.counts > 0:
        rates = _rate_bounds(counts, event, state.shares.counts * look.share, settings, subject)
        estimator = "gdp" if settings.estimator == "gdp" else "dp"
        bound = estimators.epsilon_from_rates(rates.p_lower, rates.q_upper, claim.delta, estimator)
        if bound > state.count_bound or state.rates is None:
            state.count_bound, state.rates, state.best_event = max(bound, state.count_bound), rates, event
    if state.shares.betting > 0:
        bound = betting_epsilon_lower(
            state.looks, claim.epsilon, claim.delta, state.shares.betting, settings.n_trials
        )
        if bound > max(state.betting_bound, state.count_bound):
            state.best_event = event
        state.betting_bound = max(bound, state.betting_bound)


def _bound_certificate(
    state: ViewState,
    certificate: Certificate,
    tallies: Tallies,
    look: Look,
    settings: Settings,
) -> None:
    alpha = state.shares.certificate * look.share
    if alpha <= 0:
        return
    bound = certificate.bound(tallies, alpha, settings.claim.delta)
    best = state.certificate
    if bound.refusals or best is None or best.refusals or bound.epsilon_lower > best.epsilon_lower:
        state.certificate = bound
