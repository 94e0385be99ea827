"""Optional early stop of an audit in which a violation has become unlikely.

Stopping early for want of evidence can only cost power, never validity: nothing is certified by it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pytest_snapaudit.engine.betting import BettingLook, expected_growth, log_e_value
from pytest_snapaudit.engine.bounds import clopper_pearson_lower, clopper_pearson_upper
from pytest_snapaudit.engine.claim import PrivacyClaim

OPTIMISM = 0.05
"""One-sided level of the optimistic rates the remaining trials are credited with."""


def violation_unlikely(looks: Sequence[BettingLook], claim: PrivacyClaim, alpha: float, planned: int) -> bool:
    """Whether the remaining trials would not refute the claim even at optimistic rates of the latest event.

    The rates are the one-sided 95 % bounds, in the violation's favour, from the last look's fresh counts; the
    remaining trials are credited with the log growth of the best bet at those rates.

    Args:
        looks: counts so far.
        claim: under test.
        alpha: error probability of the gate.
        planned: trials per side if the audit runs to its end.
    """
    if not looks or alpha <= 0:
        return False
    counts = looks[-1].counts
    p = np.asarray(clopper_pearson_upper(counts.likelier, counts.trials, OPTIMISM)).reshape(1)
    q = np.asarray(clopper_pearson_lower(counts.other, counts.trials, OPTIMISM)).reshape(1)
    remaining = planned - sum(look.counts.trials for look in looks)
    evidence = log_e_value(looks, np.array([claim.epsilon]), claim.delta, alpha, planned)
    credit = remaining * expected_growth(p, q, claim.epsilon, claim.delta)
    return bool((evidence + credit)[0] < -np.log(alpha))
