"""The largest epsilon an audit can certify, and what would raise it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from pytest_snapaudit.engine import bounds
from pytest_snapaudit.engine.betting import BettingLook, PairCounts, clipped_rates, log_e_value
from pytest_snapaudit.engine.budget import AlphaShares
from pytest_snapaudit.engine.estimators import max_detectable_epsilon, trials_needed
from pytest_snapaudit.engine.looks import PILOT, Look
from pytest_snapaudit.engine.result import ViewResult
from pytest_snapaudit.engine.settings import Settings
from pytest_snapaudit.engine.trials import SPLITS, TUNING_TRIALS

if TYPE_CHECKING:
    from pytest_snapaudit.engine.settings import Settings
    from pytest_snapaudit.engine.subject import Subject


def ceiling_of_trials(
    looks: tuple[Look, ...], settings: Settings, shares: AlphaShares, subject: Subject
) -> float:
    """Epsilon certified if the event always held on one side and never on the other, in every look."""
    delta, best = settings.claim.delta, 0.0
    if settings.correction == "bernstein":
        return bernstein_ceiling(settings, looks[-1].trials, fixed=subject.clean == "fixed")
    if shares.counts > 0:
        for look in looks:
            alpha = shares.counts * look.share
            for split in (0.5,) if settings.correction == "clopper-pearson" else SPLITS.tolist():
                reach = max_detectable_epsilon(look.trials, delta, split * alpha, (1 - split) * alpha)
                best = max(best, reach)
    if shares.betting > 0:
        best = max(best, betting_ceiling(looks, delta, shares.betting))
    return best


def betting_ceiling(looks: tuple[Look, ...], delta: float, alpha: float) -> float:
    """The largest claim that the betting gate rejects if the event always held on one side, never on the other.

    Bets are tuned before each look to rates that are never seen to be 0, which is what keeps the gate from the
    ``ln(n / ln(1/α))`` of counting.
    """
    planned, tuned_on, perfect = sum(look.trials for look in looks), PILOT, []
    for look in looks:
        rates = clipped_rates(1.0, 0.0, min(tuned_on, TUNING_TRIALS))
        perfect.append(BettingLook(PairCounts(0, look.trials, 0, 0), *rates))
        tuned_on += look.trials
    low, high = 0.0, math.log(planned) + 1.0
    for _ in range(2):
        grid = np.linspace(low, high, 200)
        rejected = log_e_value(perfect, grid, delta, alpha, planned) >= -math.log(alpha)
        if rejected.all():
            return high
        kept = int(np.argmin(rejected))
        if kept == 0:
            return low
        low, high = float(grid[kept - 1]), float(grid[kept])
    return low


def bernstein_ceiling(settings: Settings, n: int, *, fixed: bool) -> float:
    """The ceiling of Algorithm 1: the radius at zero variance caps what the rates can show."""
    if fixed:
        radius = bounds.snapshot_radius(0.0, settings.n_snapshots, n, settings.alpha)
    else:
        radius = bounds.empirical_bernstein_radius(0.0, n, settings.alpha / 2)
    top = 1.0 - radius - settings.claim.delta
    return math.log(top / radius) if top > radius > 0 else 0.0


def ceiling_of_rows(n_rows: int, settings: Settings, shares: AlphaShares) -> float:
    """``ln(N / ln(1/α_q))``, whatever the number of trials (STATISTICS, "Random clean stage")."""
    alpha = (shares.counts + shares.betting) / 2
    if settings.correction == "bernstein":
        return bernstein_ceiling(settings, settings.n_trials, fixed=True)
    odds = n_rows / math.log(1.0 / alpha)
    return math.log(odds) if odds > 1.0 else 0.0


def reason_inconclusive(
    subject: Subject,
    settings: Settings,
    ceiling: float,
    rows: int,
    best: ViewResult,
    shares: AlphaShares,
) -> str:
    """Why a claim is out of reach, and what would decide it."""
    claim = settings.claim
    if settings.estimator == "gdp" and best.refusals:
        return f'estimator="gdp" does not apply: {"; ".join(best.refusals)}'
    if subject.clean == "rows":
        needed = math.ceil(
            math.exp(min(claim.epsilon, 60.0)) * -math.log((shares.counts + shares.betting) / 2)
        )
        return (
            f"epsilon={claim.epsilon:g} is above {ceiling:.2f}, the largest that {rows:,} clean outputs of a random "
            f"clean stage can refute; it takes about {needed:,} of them, a clean stage declared deterministic = True, "
            'or scope="noise" for a statement about the noise stage alone'
        )
    alpha = max(shares.counts / 4, 1e-300) if shares.counts > 0 else shares.betting
    trials = trials_needed(claim.epsilon, claim.delta, alpha, alpha)
    takes = (
        f"it takes about {trials:,} trials per side"
        if trials is not None
        else "no number of trials reaches it"
    )
    text = (
        f"epsilon={claim.epsilon:g} is above {ceiling:.2f}, the largest that {settings.n_trials:,} trials per side can "
        f"refute by counting; {takes}, or a certificate for declared noise"
    )
    if best.refusals:
        return f"{text}, which does not apply here: {'; '.join(best.refusals)}"
    return f"{text}: noise = GaussianNoise(sigma)" if subject.clean != "none" else text
