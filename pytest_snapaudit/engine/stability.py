"""How often a fresh run of an audit would come to another verdict.

A library with secure noise ignores seeds, so that its audits differ from run to run; a random run seed does the same to
any mechanism. A clear verdict repeats all the same; a borderline one flips. For a mechanism that meets its claim the
chance of VIOLATION is at most ``1 - confidence`` in any case.

:func:`verdict_stability` repeats the audit. :func:`predicted_stability` needs no further draws: it replays the looks on
simulated counts of the event that the audit chose, with both of its gates, at rates that agree with what was counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from pytest_snapaudit.engine.audit import audit
from pytest_snapaudit.engine.betting import BettingLook, PairCounts, clipped_rates, log_e_value
from pytest_snapaudit.engine.bounds import clopper_pearson_lower, clopper_pearson_upper, pair_rate_bounds
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.estimators import dp_epsilon
from pytest_snapaudit.engine.looks import schedule
from pytest_snapaudit.engine.result import AuditResult, RateBounds, Verdict
from pytest_snapaudit.engine.seeding import as_entropy
from pytest_snapaudit.engine.settings import validate_count

_LEVEL = 0.025


@dataclass(frozen=True)
class VerdictStability:
    """How often runs of one audit find a violation.

    Attributes:
        repeats: runs, or simulated runs.
        violations: how many of them refuted the claim.
        results: of the runs; empty if they were simulated.
    """

    repeats: int
    violations: int
    results: tuple[AuditResult, ...] = ()

    @property
    def rate(self) -> float:
        """Share of the runs that refuted the claim."""
        return self.violations / self.repeats

    @property
    def bounds(self) -> tuple[float, float]:
        """Two-sided 95 % Clopper–Pearson bounds on the chance that a run refutes the claim."""
        low = clopper_pearson_lower(self.violations, self.repeats, _LEVEL)
        high = clopper_pearson_upper(self.violations, self.repeats, _LEVEL)
        return float(low), float(high)

    @property
    def flips(self) -> float:
        """Chance that two runs disagree on whether the claim is refuted, at the observed rate."""
        return 2.0 * self.rate * (1.0 - self.rate)

    def __str__(self) -> str:
        low, high = self.bounds
        return (
            f"{self.violations} of {self.repeats} runs refute the claim (95% bounds {low:.2g} to {high:.2g}); "
            f"two runs disagree with probability {self.flips:.2g}"
        )


def verdict_stability(
    mechanism: Any,
    neighbours: Any,
    claim: PrivacyClaim,
    *,
    repeats: int = 20,
    seed: int | Sequence[int] = 0,
    **options: Any,
) -> VerdictStability:
    """Run an audit several times, each with a seed of its own, and count the violations.

    Args:
        mechanism, neighbours, claim: as for :func:`~pytest_snapaudit.engine.audit.audit`.
        repeats: at least 2.
        seed: of the first run; run i has the seed ``(*seed, i)``.
        options: further arguments of :func:`~pytest_snapaudit.engine.audit.audit`.

    Raises:
        ValueError, TypeError, MechanismError, VacuousAudit: as :func:`~pytest_snapaudit.engine.audit.audit`.
    """
    runs, entropy = validate_count("repeats", repeats, least=2), as_entropy(seed)
    results = tuple(audit(mechanism, neighbours, claim, seed=(*entropy, i), **options) for i in range(runs))
    return VerdictStability(runs, sum(result.verdict is Verdict.VIOLATION for result in results), results)


def predicted_stability(
    result: AuditResult, *, n_trials: int | None = None, repeats: int = 1_000, seed: int = 0
) -> VerdictStability:
    """Estimate from one result how often a fresh audit of the same mechanism would refute the claim.

    The event's two rates are drawn from their Jeffreys posteriors given the counts in ``result``, so that the estimate
    includes how little those are known. That a fresh audit may choose another event is left out.

    Args:
        result: of an audit with ``correction="auto"`` or ``"betting"`` whose bound comes from counting.
        n_trials: planned trials per side; by default those of ``result``, which a violation may have ended early.
        repeats: simulated audits, at least 100.
        seed: of the simulation.

    Raises:
        ValueError: the bound rests on a declared distribution or on recorded rows, or the audit counted no event.
    """
    runs = validate_count("repeats", repeats, least=100)
    planned = result.n_trials if n_trials is None else validate_count("n_trials", n_trials)
    rates = next((view.rates for view in result.views if view.view == result.view), None)
    shares = dict(result.alpha_spent)
    betting = shares.get(f"{result.view}, betting", 0.0)
    if rates is None or betting <= 0.0 or result.estimator not in ("betting", "event counts"):
        msg = (
            f"predicted_stability needs event counts of a sequential audit, got estimator={result.estimator!r} with "
            f'correction={result.correction!r}; audit with correction="auto", or repeat it with verdict_stability.'
        )
        raise ValueError(msg)
    counts = shares.get(f"{result.view}, event counts", 0.0)
    rng = np.random.default_rng(seed)
    violations = sum(_refutes(rates, result.claim, planned, counts, betting, rng) for _ in range(runs))
    return VerdictStability(runs, violations)


def _refutes(
    seen: RateBounds, claim: PrivacyClaim, planned: int, counts: float, betting: float, rng: Generator
) -> bool:
    """Whether one simulated audit refutes the claim."""
    p, q = (
        float(rng.beta(rate * seen.trials + 0.5, (1.0 - rate) * seen.trials + 0.5))
        for rate in (seen.p, seen.q)
    )
    tuned = clipped_rates(seen.p, seen.q, seen.trials)
    looks: list[BettingLook] = []
    for look in schedule(planned):
        cells = rng.multinomial(
            look.trials, [p * q, p * (1.0 - q), (1.0 - p) * q, (1.0 - p) * (1.0 - q)]
        ).tolist()
        drawn = PairCounts(*cells)
        looks.append(BettingLook(drawn, *tuned))
        evidence = log_e_value(looks, np.array([claim.epsilon]), claim.delta, betting, planned)
        if evidence[0] >= -np.log(betting):
            return True
        if counts > 0.0:
            half = 0.5 * counts * look.share
            low, high = pair_rate_bounds(drawn.likelier, drawn.other, look.trials, half, half)
            if dp_epsilon(float(low), float(high), claim.delta) > claim.epsilon:
                return True
    return False
