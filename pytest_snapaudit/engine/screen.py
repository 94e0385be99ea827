"""A cheap look at one configuration before it is certified: where to search, and what need not be certified.

A screen draws a few thousand trials from a random stream of its own, chooses an event on one part of them and counts
it on the rest. Its estimate steers a search towards the configurations that leak most. It never refutes a claim, so
it costs no error probability; certification follows on fresh noise.

**What the upper bound bounds.** No sample bounds the epsilon of a mechanism from above: a leak may be rarer than any
sample shows. :attr:`Screening.epsilon_upper` is an upper confidence bound on what certification could report, over

- every candidate event of the screen, one per score, by Clopper–Pearson on its counts, simultaneously; and
- every event so rare that the screen never met it: at most ``1 - β^(1/n)`` likely on one side, and on the other side at
  best as rare as ``n_certify`` trials without a hit can show.

An event that the screen met and no score of it singles out is not covered. The bound is infinite where certification
does more than count: for a random clean stage known by rows, declared noise, a claim curve, a view the claim does not
cover, a claim beyond the reach of ``n_certify`` trials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_snapaudit.engine.attacks.choice import choose_event
from pytest_snapaudit.engine.attacks.event import Event
from pytest_snapaudit.engine.attacks.fitting import candidate_scores
from pytest_snapaudit.engine.attacks.scores import Score
from pytest_snapaudit.engine.attacks.selection import Goal, best_event
from pytest_snapaudit.engine.bounds import clopper_pearson_lower, clopper_pearson_upper
from pytest_snapaudit.engine.certificates import static_refusals
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.estimators import epsilon_from_rates, gdp_epsilon, max_detectable_epsilon
from pytest_snapaudit.engine.noise import GaussianNoise
from pytest_snapaudit.engine.outcomes import Layout, Rows, fit_layout
from pytest_snapaudit.engine.result import AuditResult, RateBounds, Verdict, ViewResult
from pytest_snapaudit.engine.seeding import as_entropy
from pytest_snapaudit.engine.settings import validate_attacks, validate_count
from pytest_snapaudit.engine.simulation import FIRST_LOOK_PHASE, PILOT_PHASE, block_tasks
from pytest_snapaudit.engine.subject import Subject, resolve_subject
from pytest_snapaudit.engine.wiring import check_pilot, probe

COUNTED_TRIALS = 2_000
"""Trials per side that are counted, unless certification itself has few; half as many come on top for tuning."""

ESTIMATOR = "screening"
"""The estimator of a result that ended with its screen."""

_LEAST_TRIALS = 200
_CLEAN_OUTPUTS = 200
_STREAM = 0x5C4EE7
"""Appended to the seed: no trial of a screen is a trial of the audit with the same seed."""

_ALPHA_LOWER, _ALPHA_UPPER = 0.1, 1e-3
_LARGEST = 1e3


@dataclass(frozen=True)
class Screening:
    """What a screen saw of one configuration.

    Attributes:
        name: the mechanism.
        claim: under test.
        estimate: point estimate of the privacy loss at the claim's delta: finite, at least 0, and shrunk by one count,
            so that an event met once is not infinitely telling.
        epsilon_lower: lower bound at 90 % confidence for the event alone; for ranking, never for a verdict.
        epsilon_upper: upper bound at 99.9 % confidence on what certification could report; infinite if unknown. See
            the module's text for what it bounds.
        view, attack: where the estimate was reached.
        rates: event counts of the chosen event, as rates; its bounds are those of ``epsilon_lower``.
        n_trials: trials per side that were counted.
        likelier, other: events counted on the side where the event is likelier, and on the other.
    """

    name: str
    claim: PrivacyClaim
    estimate: float
    epsilon_lower: float
    epsilon_upper: float
    view: str
    attack: str
    rates: RateBounds
    n_trials: int
    likelier: int
    other: int

    @property
    def excess(self) -> float:
        """How far the estimated loss lies above the claim."""
        return self.estimate - self.claim.epsilon

    @property
    def settles(self) -> bool:
        """The fixed rule by which certification is skipped: the upper bound is below the claim."""
        return self.epsilon_upper < self.claim.epsilon

    def as_result(self, *, confidence: float, n_certify: int, seed: tuple[int, ...]) -> AuditResult:
        """The result of an audit that ended with the screen.

        Args:
            confidence: at which the lower bound is to hold.
            n_certify: trials per side that certification would have counted.
            seed: of the audit.
        """
        half = (1.0 - confidence) / 2
        p_lower = float(clopper_pearson_lower(self.likelier, self.n_trials, half))
        q_upper = float(clopper_pearson_upper(self.other, self.n_trials, half))
        bound = epsilon_from_rates(p_lower, q_upper, self.claim.delta, "dp")
        rates = RateBounds(self.rates.p, self.rates.q, p_lower, q_upper, self.n_trials)
        view = ViewResult(
            view=self.view,
            gated=True,
            epsilon_lower=bound,
            estimator=ESTIMATOR,
            attack=self.attack,
            rates=rates,
        )
        note = (
            f"certification was skipped: no event seen in {self.n_trials:,} trials per side can refute the claim "
            f"(epsilon <= {self.epsilon_upper:.4g} at {100 * (1 - _ALPHA_UPPER):g}% confidence)"
        )
        return AuditResult(
            name=self.name,
            claim=self.claim,
            confidence=confidence,
            verdict=Verdict.CONSISTENT,
            epsilon_lower=bound,
            max_detectable_epsilon=max_detectable_epsilon(n_certify, self.claim.delta, half, half),
            smallest_factor_caught=self.claim.epsilon / bound if bound > 0 else math.inf,
            view=self.view,
            estimator=ESTIMATOR,
            correction="auto",
            scope="pipeline",
            attack=self.attack,
            n_trials=self.n_trials,
            n_snapshots=0,
            views=(view,),
            alpha_spent=(("screening", 2 * half),),
            diagnostics=(("screen", note),),
            seed=seed,
        )


def counted_trials(n_certify: int) -> int:
    """Trials per side that a screen counts before a certification of ``n_certify``."""
    return min(COUNTED_TRIALS, max(validate_count("n_certify", n_certify) // 4, _LEAST_TRIALS))


def can_settle(claim: PrivacyClaim, n_certify: int, alpha: float) -> bool:
    """Whether some screen could settle this claim; known before a trial is drawn."""
    reach = max_detectable_epsilon(n_certify, claim.delta, alpha / 2, alpha / 2)
    return _unseen_loss(counted_trials(n_certify), n_certify, alpha, claim.delta) < claim.epsilon < reach


def screen(
    mechanism: Any,
    neighbours: Any,
    claim: PrivacyClaim,
    *,
    n_certify: int,
    alpha: float,
    n_snapshots: int = 2_000,
    views: Any = None,
    scope: str = "pipeline",
    seed: int | Sequence[int] = 0,
    name: str | None = None,
    attacks: Sequence[Score] | Mapping[str, Callable[[Rows], Any]] = (),
    side_channels: Sequence[str] = (),
) -> Screening:
    """Screen one configuration.

    Args:
        mechanism, neighbours, claim, views, scope, name, attacks, side_channels: as in
            :func:`~pytest_snapaudit.engine.audit.audit`.
        n_certify: trials per side that certification would count; the screen takes at most a quarter of them.
        alpha: error probability certification would have.
        n_snapshots: clean outputs per side of a random clean stage; the screen takes at most 200.
        seed: as in ``audit``; the same seed gives another stream here.

    Raises:
        TypeError, ValueError, MechanismError, VacuousAudit, DeclarationMismatch: as ``audit``.
    """
    entropy = (*as_entropy(seed), _STREAM)
    counted = counted_trials(n_certify)
    subject = resolve_subject(
        mechanism,
        neighbours,
        scope=scope,
        views=views,
        n_snapshots=min(n_snapshots, _CLEAN_OUTPUTS),
        entropy=entropy,
        name=name,
        timed="timing" in side_channels,
    )
    subject, _ = probe(subject, entropy)
    extra = validate_attacks(attacks)
    gated = [view for view in subject.views if view in subject.covered] or list(subject.views)
    drawn = _draw(subject, gated, entropy, counted)
    worth_bounding = (
        scope == "pipeline"
        and subject.clean != "rows"
        and subject.noise is None
        and bool(subject.covered & set(subject.views))
        and getattr(mechanism, "claim_curve", None) is None
        and can_settle(claim, n_certify, alpha)
    )
    found = [_screen_view(subject, view, drawn[view], claim, counted, extra, side_channels) for view in gated]
    best = max(found, key=lambda seen: (seen.estimate, seen.epsilon_lower))
    upper = math.inf
    if worth_bounding and best.epsilon_lower < claim.epsilon:
        seen = [
            _loss_of_candidates(drawn[view], claim, counted, extra, side_channels, _ALPHA_UPPER / len(gated))
            for view in gated
        ]
        upper = max(_unseen_loss(counted, n_certify, alpha, claim.delta), *seen)
    return Screening(
        name=subject.name,
        claim=claim,
        estimate=best.estimate,
        epsilon_lower=best.epsilon_lower,
        epsilon_upper=upper,
        view=best.view,
        attack=best.event.describe(),
        rates=best.rates,
        n_trials=counted,
        likelier=best.likelier,
        other=best.other,
    )


@dataclass(frozen=True)
class _Drawn:
    layout: Layout
    tuning: tuple[Rows, Rows]
    counting: tuple[Rows, Rows]


@dataclass(frozen=True)
class _Seen:
    view: str
    estimate: float
    epsilon_lower: float
    event: Event
    rates: RateBounds
    likelier: int
    other: int


def _draw(subject: Subject, views: list[str], entropy: tuple[int, ...], counted: int) -> dict[str, _Drawn]:
    """Tuning and counting trials of every view; the layout is learned from the tuning trials."""
    tuned = max(counted // 2, 1)
    (first,) = block_tasks(subject.sources, entropy, PILOT_PHASE, tuned)
    (second,) = block_tasks(subject.sources, entropy, FIRST_LOOK_PHASE, counted)
    raw = first.raw()
    layouts, tuning = {}, {}
    for view in views:
        sides = raw[0][view], raw[1][view]
        check_pilot(subject.name, sides, tuned)
        layouts[view] = layout = fit_layout([(side, tuned) for side in sides])
        tuning[view] = (layout.encode(sides[0], tuned), layout.encode(sides[1], tuned))
    reference, canary = second.encoded(layouts)
    return {view: _Drawn(layouts[view], tuning[view], (reference[view], canary[view])) for view in views}


def _hits(event: Event, sides: tuple[Rows, Rows]) -> tuple[int, int]:
    likelier, other = sides[event.likelier_on], sides[1 - event.likelier_on]
    return int(np.count_nonzero(event.hits(likelier))), int(np.count_nonzero(event.hits(other)))


def _screen_view(
    subject: Subject,
    view: str,
    drawn: _Drawn,
    claim: PrivacyClaim,
    n: int,
    extra: tuple[Score, ...],
    side_channels: Sequence[str],
) -> _Seen:
    direction = _direction(subject, view, drawn.tuning[0])
    event = choose_event(
        *drawn.tuning,
        drawn.layout,
        claim=claim,
        n_certify=n,
        alpha=_ALPHA_LOWER,
        direction=direction,
        side_channels=side_channels,
        extra=extra,
    )
    likelier, other = _hits(event, drawn.counting)
    excess = likelier / (n + 1) - claim.delta
    estimate = max(math.log(excess / ((other + 1) / (n + 1))), 0.0) if excess > 0 else 0.0
    p_lower = float(clopper_pearson_lower(likelier, n, _ALPHA_LOWER / 2))
    q_upper = float(clopper_pearson_upper(other, n, _ALPHA_LOWER / 2))
    lower = epsilon_from_rates(p_lower, q_upper, claim.delta, "dp")
    if direction is not None and isinstance(subject.noise, GaussianNoise) and not static_refusals(subject):
        model = _gaussian_loss(direction, drawn.counting, claim.delta)
        estimate, lower = max(estimate, model), max(lower, 0.95 * model)
    rates = RateBounds(likelier / n, other / n, p_lower, q_upper, n)
    return _Seen(view, estimate, lower, event, rates, likelier, other)


def _direction(subject: Subject, view: str, rows: Rows) -> NDArray[np.float64] | None:
    direction = subject.clean_direction
    if (
        direction is None
        or view != subject.noise_view
        or len(direction) != rows.shape[1]
        or not direction.any()
    ):
        return None
    return direction


def _gaussian_loss(direction: NDArray[np.float64], sides: tuple[Rows, Rows], delta: float) -> float:
    """Loss of Gaussian noise whose scale is estimated along ``direction``; 0 if that cannot be done."""
    distance = float(np.linalg.norm(direction))
    along = [(rows @ (direction / distance)).astype(np.float64) for rows in sides]
    spread = math.sqrt(max((along[0].var() + along[1].var()) / 2, 0.0))
    if delta <= 0.0 or not math.isfinite(spread) or spread == 0.0:
        return 0.0
    return min(gdp_epsilon(distance / spread, delta), _LARGEST)


def _unseen_loss(n: int, n_certify: int, alpha: float, delta: float) -> float:
    """The most that certification could report for an event the screen never met."""
    p = float(clopper_pearson_upper(0, n, _ALPHA_UPPER / 2))
    q = float(clopper_pearson_upper(0, n_certify, alpha))
    return math.log((p - delta) / q) if p - delta > q else 0.0


def _loss_of_candidates(
    drawn: _Drawn,
    claim: PrivacyClaim,
    n: int,
    extra: tuple[Score, ...],
    side_channels: Sequence[str],
    alpha: float,
) -> float:
    """Upper bound on the loss of the best event of every candidate score, simultaneously."""
    scores = candidate_scores(*drawn.tuning, drawn.layout, side_channels=side_channels, extra=extra)
    goal = Goal(claim.epsilon, claim.delta, n, _ALPHA_LOWER)
    rated = [best_event(score, *drawn.tuning, goal) for score in scores]
    events = [candidate.event for candidate in rated if candidate is not None]
    worst = 0.0
    for event in events:
        likelier, other = _hits(event, drawn.counting)
        share = alpha / (4 * len(events))
        p = float(clopper_pearson_upper(likelier, n, share))
        q = float(clopper_pearson_lower(other, n, share))
        if p > claim.delta:
            worst = max(worst, math.log((p - claim.delta) / q) if q > 0 else math.inf)
    return worst
