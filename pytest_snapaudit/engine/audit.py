"""One audit: a mechanism, a neighbouring pair and a claim in, a verdict with its evidence out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_snapaudit.engine import budget, declaration, diagnostics
from pytest_snapaudit.engine.attacks.scores import Score
from pytest_snapaudit.engine.budget import AlphaShares
from pytest_snapaudit.engine.ceiling import ceiling_of_rows, ceiling_of_trials, reason_inconclusive
from pytest_snapaudit.engine.certificates import static_refusals
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.claim_curve import Curve, RefutedPoint, curve_of
from pytest_snapaudit.engine.datasets import fingerprints, refuse_changed
from pytest_snapaudit.engine.outcomes import Rows
from pytest_snapaudit.engine.result import AuditResult, Verdict, ViewResult
from pytest_snapaudit.engine.rows import RowsOutcome, audit_rows
from pytest_snapaudit.engine.settings import SCOPES, Settings, read_settings, validate_choice
from pytest_snapaudit.engine.subject import Subject, resolve_subject
from pytest_snapaudit.engine.trials import TrialsOutcome, ViewState, audit_trials
from pytest_snapaudit.engine.wiring import check_copies, probe


def audit(
    mechanism: Any,
    neighbours: Any,
    claim: PrivacyClaim,
    *,
    confidence: float = 0.999,
    n_trials: int | None = None,
    n_snapshots: int = 2_000,
    views: Any = None,
    scope: str = "pipeline",
    correction: str = "auto",
    estimator: str = "auto",
    seed: int | Sequence[int] = 0,
    name: str | None = None,
    attacks: Sequence[Score] | Mapping[str, Callable[[Rows], Any]] = (),
    side_channels: Sequence[str] = (),
    claim_curve: Curve | None = None,
    stop_early: bool = False,
    executor: Executor | None = None,
) -> AuditResult:
    """Bound the mechanism's privacy loss on one neighbouring pair from below, and judge the claim.

    The probability that a mechanism which meets its claim is found in VIOLATION is at most
    ``1 - confidence``.

    Args:
        mechanism: a :class:`~pytest_snapaudit.engine.mechanism.Mechanism` or
            :class:`~pytest_snapaudit.engine.mechanism.Sampler`.
        neighbours: a (reference, canary) pair of datasets, or a
            :class:`~pytest_snapaudit.engine.snapshot.SnapshotPair` of recorded clean outputs.
        claim: what the mechanism promises for this pair.
        confidence: γ, in (0, 1).
        n_trials: counted trials per side; tuning trials come on top. By default 400 000, or 20 000 for one
            output per call.
        n_snapshots: clean outputs per side for a clean stage that is neither deterministic nor batched.
        views: ``"black-box"`` and/or ``"white-box"``; the views the claim covers by default. A view the claim
            does not cover is measured, never gated.
        scope: ``"pipeline"`` speaks of the whole mechanism, ``"noise"`` of the noise stage on one feasible
            pair of clean outputs.
        correction: ``"auto"`` (event counts and betting over growing looks), ``"betting"``,
            ``"clopper-pearson"`` (one look, as in the paper's tables) or ``"bernstein"`` (Algorithm 1).
        estimator: ``"dp"`` (distribution-free), ``"gdp"`` (Gaussian trade-off of the event's rates; needs
            declared and tested Gaussian noise), or ``"auto"`` (distribution-free plus certificates that apply).
        seed: a non-negative integer or a sequence of them; equal inputs give equal results.
        name: printed in reports.
        attacks: further scores to try: a mapping of name to a function from (n, d) outputs to (n,) numbers.
        side_channels: ``"low-bit"`` and ``"timing"``, opt-in.
        claim_curve: a function of epsilon that returns the delta claimed at the same noise; the mechanism's own
            ``claim_curve`` by default. If it is refuted and the claim is not, the result's claim is the refuted
            point.
        stop_early: end a passing audit once a violation has become unlikely; the result says so, and its
            ceiling is that of the trials that were counted. Costs power, never validity.
        executor: any ``concurrent.futures`` executor; results do not depend on it.

    Raises:
        TypeError, ValueError: an argument of the wrong type or out of range.
        MechanismError: the mechanism is wired wrongly.
        VacuousAudit: equal datasets or equal clean outputs.
        DeclarationMismatch: a declaration the mechanism is held to does not hold.

    Source: PAPER §1 (decomposition), STATISTICS (looks, gates, certificates).
    """
    started = time.perf_counter()
    settings = read_settings(
        mechanism,
        claim,
        confidence,
        n_trials,
        n_snapshots,
        correction,
        estimator,
        seed,
        attacks,
        side_channels,
        executor,
        stop_early,
    )
    validate_choice("scope", scope, SCOPES)
    if name is not None and not isinstance(name, str):
        msg = f"name must be a string, got {name!r} of type {type(name).__name__}."
        raise TypeError(msg)
    subject = resolve_subject(
        mechanism,
        neighbours,
        scope=scope,
        views=views,
        n_snapshots=n_snapshots,
        entropy=settings.entropy,
        name=name,
        timed="timing" in settings.side_channels,
    )
    diagnostics.declared_norm(subject.mechanism)
    subject, reproducible = probe(subject, settings.entropy)
    if settings.executor is not None and not isinstance(settings.executor, ThreadPoolExecutor):
        check_copies(subject, settings.entropy)
    contents = fingerprints(neighbours)
    if correction in ("auto", "betting") and subject.clean != "rows":
        settings = replace(settings, curve=curve_of(mechanism, claim_curve, claim, subject.name))
    applies = subject.noise is not None and not static_refusals(subject)
    held = settings.alpha * declaration.SHARE if subject.noise is not None and subject.noise.enforced else 0.0
    shares = budget.split(
        settings.alpha - held,
        subject.views,
        subject.covered,
        certificate=subject.noise_view if applies else None,
        correction=correction,
        estimator=estimator,
        curve=settings.curve is not None,
    )
    if subject.clean == "rows":
        if correction == "clopper-pearson":
            msg = (
                'correction="clopper-pearson" ignores how few clean outputs were seen of a random clean stage; '
                'use correction="auto", or scope="noise" for a statement about the noise stage alone.'
            )
            raise ValueError(msg)
        found = _of_rows(audit_rows(subject, settings, shares), subject, settings, shares)
    else:
        found = _of_trials(audit_trials(subject, settings, shares), subject, settings, shares)
    refuse_changed(subject.name, neighbours, contents)
    result = _result(subject, settings, found, shares, scope, float(confidence), reproducible, started)
    if held > 0 and not result.violated:
        declaration.hold_to_declaration(subject, settings.entropy, held)
        return replace(
            result,
            alpha_spent=(*result.alpha_spent, ("declaration", held)),
            elapsed=time.perf_counter() - started,
        )
    return result


@dataclass(frozen=True)
class _Found:
    views: tuple[ViewResult, ...]
    trials: int
    snapshots: int
    ceiling: float
    shares: AlphaShares
    pilot: tuple[Rows, Rows] | None
    remarks: tuple[tuple[str, str], ...]
    refuted: Mapping[str, RefutedPoint] = field(default_factory=dict)
    stopped_early: bool = False


def _of_trials(
    outcome: TrialsOutcome, subject: Subject, settings: Settings, shares: dict[str, AlphaShares]
) -> _Found:
    refusals = outcome.refusals
    wanted = subject.noise is not None or settings.estimator == "gdp"
    views = tuple(
        _view_of_trials(view, state, subject, settings, refusals if wanted else ())
        for view, state in outcome.views.items()
    )
    first = _headline(subject, views).view
    certified = any(view.conditional_on for view in views if view.gated)
    ceiling = math.inf if certified else ceiling_of_trials(outcome.looks, settings, shares[first], subject)
    pilot = outcome.pilot.get(subject.noise_view)
    refuted = {view: state.refuted for view, state in outcome.views.items() if state.refuted is not None}
    clean = int(subject.clean == "fixed")
    return _Found(
        views,
        outcome.trials,
        clean,
        ceiling,
        shares[first],
        pilot,
        outcome.remarks,
        refuted,
        outcome.stopped_early,
    )


def _view_of_trials(
    view: str, state: ViewState, subject: Subject, settings: Settings, refusals: tuple[str, ...]
) -> ViewResult:
    gdp = settings.estimator == "gdp"
    counts = 0.0 if gdp and refusals else state.count_bound
    certificate = state.certificate
    model = certificate.epsilon_lower if certificate is not None and not certificate.refusals else 0.0
    bound = max(counts, state.betting_bound, model)
    conditional = ""
    estimator = "event counts"
    if gdp:
        estimator = "Gaussian trade-off of event rates"
        conditional = "" if refusals else f"the declared {subject.noise}"
    elif certificate is not None and not certificate.refusals and model >= max(counts, state.betting_bound):
        estimator, conditional = certificate.estimator, f"the declared {subject.noise} ({certificate.note})"
    elif state.betting_bound > counts:
        estimator = "betting"
    attack = state.best_event or state.event
    words = attack.describe() if attack is not None else ""
    if certificate is not None and estimator == certificate.estimator:
        words = certificate.attack
    return ViewResult(
        view=view,
        gated=view in subject.covered,
        epsilon_lower=bound,
        estimator=estimator,
        attack=words,
        rates=state.rates,
        conditional_on=conditional,
        refusals=refusals,
    )


def _of_rows(
    outcomes: dict[str, RowsOutcome], subject: Subject, settings: Settings, shares: dict[str, AlphaShares]
) -> _Found:
    wanted = subject.noise is not None or settings.estimator == "gdp"
    refusals = static_refusals(subject) if wanted else ()
    views = tuple(
        ViewResult(
            view=view,
            gated=view in subject.covered,
            epsilon_lower=0.0 if settings.estimator == "gdp" else outcome.epsilon_lower,
            estimator="row-wise betting" if settings.correction != "bernstein" else "Algorithm 1",
            attack=outcome.event.describe(),
            rates=outcome.rates,
            refusals=refusals,
        )
        for view, outcome in outcomes.items()
    )
    first = outcomes[_headline(subject, views).view]
    ceiling = ceiling_of_rows(first.rows, settings, shares[_headline(subject, views).view])
    return _Found(views, first.trials, first.rows, ceiling, shares[subject.views[0]], None, first.remarks)


def _headline(subject: Subject, views: tuple[ViewResult, ...]) -> ViewResult:
    gated = [view for view in views if view.view in subject.covered] or list(views)
    return max(gated, key=lambda view: view.epsilon_lower)


def _declaration(subject: Subject, best: ViewResult) -> tuple[tuple[str, str], ...]:
    if subject.noise is None or not best.refusals:
        return ()
    return (("declaration", f"{subject.noise} gives no certificate: {'; '.join(best.refusals)}"),)


def _early_stop(found: _Found, settings: Settings) -> tuple[tuple[str, str], ...]:
    if not found.stopped_early:
        return ()
    words = f"after {found.trials:,} of {settings.n_trials:,} trials per side, since a violation had become unlikely"
    return (("stopped early", words),)


def _refuted_point(
    found: _Found, claim: PrivacyClaim
) -> tuple[PrivacyClaim, tuple[ViewResult, ...], ViewResult]:
    """The refuted point of the claim curve as the claim, and the view it was refuted on as the best one."""
    name, point = next(iter(found.refuted.items()))
    stated = f"(epsilon={point.claim.epsilon:g}, delta={point.claim.delta:.4g})"
    best = replace(
        next(view for view in found.views if view.view == name),
        epsilon_lower=point.epsilon_lower,
        estimator="claim curve, event counts",
        attack=point.event.describe(),
        rates=point.rates,
        conditional_on=(
            f"the mechanism's claim_curve, which states {stated} at the noise of "
            f"(epsilon={claim.epsilon:g}, delta={claim.delta:g})"
        ),
    )
    return point.claim, tuple(best if view.view == name else view for view in found.views), best


def _result(
    subject: Subject,
    settings: Settings,
    found: _Found,
    shares: dict[str, AlphaShares],
    scope: str,
    confidence: float,
    reproducible: bool,
    started: float,
) -> AuditResult:
    claim, views, best = settings.claim, found.views, _headline(subject, found.views)
    if best.gated and best.epsilon_lower <= claim.epsilon and found.refuted:
        claim, views, best = _refuted_point(found, claim)
    verdict, reason = Verdict.CONSISTENT, ""
    if not best.gated:
        verdict = Verdict.INCONCLUSIVE
        reason = f"the claim does not cover the {best.view} view, so it is measured and not gated"
    elif best.epsilon_lower > claim.epsilon:
        verdict = Verdict.VIOLATION
    elif found.ceiling <= claim.epsilon or (settings.estimator == "gdp" and best.refusals):
        verdict = Verdict.INCONCLUSIVE
        reason = reason_inconclusive(subject, settings, found.ceiling, found.snapshots, best, found.shares)
    factor = 1.0 if verdict is Verdict.VIOLATION else math.inf
    if verdict is Verdict.CONSISTENT and best.epsilon_lower > 0:
        factor = claim.epsilon / best.epsilon_lower
    return AuditResult(
        name=subject.name,
        claim=claim,
        confidence=confidence,
        verdict=verdict,
        epsilon_lower=best.epsilon_lower,
        max_detectable_epsilon=found.ceiling,
        smallest_factor_caught=factor,
        view=best.view,
        estimator=best.estimator,
        correction=settings.correction,
        scope=scope,
        attack=best.attack,
        n_trials=found.trials,
        n_snapshots=found.snapshots,
        views=views,
        reason=reason,
        alpha_spent=budget.spent(shares, subject.covered),
        diagnostics=(
            *diagnostics.describe(subject, claim, found.pilot, reproducible=reproducible),
            *_early_stop(found, settings),
            *found.remarks,
            *_declaration(subject, best),
        ),
        seed=settings.entropy,
        reproducible=reproducible,
        elapsed=time.perf_counter() - started,
    )
