"""Stopping early: on violation always, for want of one on request; neither costs validity."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_snapaudit.engine.audit import audit
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.result import Verdict
from statistical.mechanisms import audits, binomial_point, from_sampler, laplace

GROSS = {
    "scale halved": laplace(2.0),
    "no noise": from_sampler(lambda d, n, rng: np.full(n, float(d))),
    "missing clipping": from_sampler(lambda d, n, rng: 5.0 * d + rng.laplace(0.0, 1.0, n)),
}


@pytest.mark.parametrize("bug", GROSS)
def test_gross_bugs_fall_within_two_thousand_trials(bug):
    results = [audit(GROSS[bug], (0, 1), PrivacyClaim(1.0), seed=seed) for seed in range(20)]
    assert all(result.violated and result.n_trials <= 2_000 for result in results)


def test_a_twentieth_too_much_is_flagged_within_a_quarter_of_a_million():
    results = [audit(laplace(1.05), (0, 1), PrivacyClaim(1.0), seed=seed) for seed in range(20)]
    assert sum(result.violated and result.n_trials <= 250_000 for result in results) >= 19


def test_a_loose_mechanism_is_let_go_and_the_result_says_so():
    result = audit(laplace(0.2), (0, 1), PrivacyClaim(1.0), stop_early=True)
    assert result.verdict is Verdict.CONSISTENT
    assert result.n_trials < 400_000
    assert "a violation had become unlikely" in dict(result.diagnostics)["stopped early"]
    whole = audit(laplace(0.2), (0, 1), PrivacyClaim(1.0))
    assert whole.n_trials == 400_000
    assert result.max_detectable_epsilon < whole.max_detectable_epsilon


def test_a_violation_is_rarely_let_go():
    """Truly 1.1 against 1: the optimistic rates keep at least 18 of 20 audits going until they refute it."""
    results = [
        audit(laplace(1.1), (0, 1), PrivacyClaim(1.0), stop_early=True, seed=seed) for seed in range(20)
    ]
    assert sum(result.violated for result in results) >= 18


def test_early_stops_raise_no_alarm():
    """500 tight audits (a quick run: fewer) at γ = 0.95, violations at most at the 99.9 % binomial point."""
    results = [
        audit(
            laplace(1.0),
            (0, 1),
            PrivacyClaim(1.0),
            confidence=0.95,
            n_trials=20_000,
            stop_early=True,
            seed=(8, i),
        )
        for i in range(audits(500))
    ]
    assert sum(result.violated for result in results) <= binomial_point(len(results), 0.05)


def test_the_flag_is_validated():
    with pytest.raises(TypeError, match=r"stop_early must be True or False, got 1\."):
        audit(laplace(1.0), (0, 1), PrivacyClaim(1.0), stop_early=1)
