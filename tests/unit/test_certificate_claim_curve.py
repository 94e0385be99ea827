"""Points of a claim curve: read at the door, refuted together by one event, and never on a true curve."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from pytest_snapaudit.engine.attacks.scores import Coordinate
from pytest_snapaudit.engine.audit import audit
from pytest_snapaudit.engine.betting import PairCounts
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.claim_curve import choose_events, curve_of, read_curve, refuted_point
from pytest_snapaudit.engine.errors import MechanismError
from pytest_snapaudit.engine.mechanism import from_sampler
from pytest_snapaudit.engine.outcomes import fit_layout

CLAIM = PrivacyClaim(2.0, 1e-5)


def laplace_curve(epsilon_at_zero):
    return lambda epsilon: max(-math.expm1((epsilon - epsilon_at_zero) / 2), 0.0)


def rows(seed, n, scale=0.5):
    rng = np.random.default_rng(seed)
    return tuple(side + rng.laplace(0, scale, (n, 1)) for side in (0.0, 1.0))


def count(events, sides):
    return [PairCounts.of(e.hits(sides[e.likelier_on]), e.hits(sides[1 - e.likelier_on])) for e in events]


def test_a_curve_is_read_around_the_claim():
    curve = read_curve("m", lambda epsilon: 2.0 if epsilon < 1 else 0.1 / epsilon, CLAIM)
    assert curve.epsilons[-1] == pytest.approx(3.0)
    assert len(read_curve("m", laplace_curve(2.0), CLAIM).epsilons) == 57
    assert curve.epsilons[0] >= 1.0
    assert curve.deltas == pytest.approx(0.1 / curve.epsilons)
    assert read_curve("m", lambda epsilon: 0, PrivacyClaim(0.0, 0.1)).epsilons[-1] == pytest.approx(1.5)
    assert len(read_curve("m", lambda epsilon: 1.25, CLAIM).epsilons) == 0


@pytest.mark.parametrize("delta", [math.nan, -0.1, None, "0", True, 1j])
def test_a_curve_must_return_a_delta(delta):
    words = f"m: claim_curve(0.2) must return a delta, a number of at least 0, got {delta!r}"
    with pytest.raises(MechanismError, match=re.escape(words)):
        read_curve("m", lambda epsilon: delta, CLAIM)


def test_a_curve_that_raises_is_named():
    with pytest.raises(MechanismError, match=r"m: claim_curve\(0\.2\) raised ZeroDivisionError") as caught:
        read_curve("m", lambda epsilon: 1 / 0, CLAIM)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_curve_must_be_a_function():
    class Mechanism:
        claim_curve = 0.3

    with pytest.raises(
        TypeError, match=r"m: claim_curve must be a function of epsilon that returns delta, got 0\.3"
    ):
        curve_of(Mechanism(), None, CLAIM, "m")
    given = curve_of(Mechanism(), lambda epsilon: 0.5, CLAIM, "m")
    assert given is not None
    assert given.deltas[0] == 0.5
    assert curve_of(object(), None, CLAIM, "m") is None


def test_the_event_and_its_point_are_where_the_curve_is_wrong():
    """Truly 2: a curve that is right above ε = 1 and claims too little below can only be refuted below."""
    right = laplace_curve(2.0)
    curve = read_curve("m", lambda e: right(e) if e > 1.0 else 0.8 * right(e), CLAIM)
    reference, canary = rows(1, 5_000)
    layout = fit_layout([(reference, 5_000), (canary, 5_000)])
    events = choose_events([Coordinate(0, layout)], reference, canary, curve, 50_000)
    assert 1 <= len(events) <= 4
    point = refuted_point(curve, count(events, rows(2, 50_000)), events, 1e-3)
    assert point is not None
    assert point.claim.epsilon < 1.0
    assert point.epsilon_lower > point.claim.epsilon
    excess = point.rates.p_lower - math.exp(point.claim.epsilon) * point.rates.q_upper
    assert excess > point.claim.delta
    assert math.log((point.rates.p_lower - point.claim.delta) / point.rates.q_upper) == pytest.approx(
        point.epsilon_lower
    )


def test_no_points_no_event():
    curve = read_curve("m", lambda epsilon: 1.0, CLAIM)
    reference, canary = rows(1, 500)
    layout = fit_layout([(reference, 500), (canary, 500)])
    assert choose_events([Coordinate(0, layout)], reference, canary, curve, 500) == ()
    events = choose_events(
        [Coordinate(0, layout)], reference, canary, read_curve("m", laplace_curve(2), CLAIM), 500
    )
    assert len(set(events)) == len(events) > 0
    assert refuted_point(curve, [PairCounts(0, 500, 0, 0)] * len(events), events, 0.1) is None
    assert refuted_point(curve, [], [], 0.1) is None


def test_a_true_curve_is_refuted_as_rarely_as_stated():
    """300 choices and counts on a tight curve at α = 0.2: at most 83 refutations, the 99.9 % binomial point."""
    curve = read_curve("m", laplace_curve(2.0), CLAIM)
    refuted = 0
    for seed in range(300):
        reference, canary = rows((seed, 1), 500)
        layout = fit_layout([(reference, 500), (canary, 500)])
        events = choose_events([Coordinate(0, layout)], reference, canary, curve, 2_000)
        counts = count(events, rows((seed, 2), 2_000))
        refuted += refuted_point(curve, counts, events, 0.2) is not None
    assert refuted <= 83


def test_a_curve_given_to_an_audit_is_judged_in_place_of_the_claim():
    mechanism = from_sampler(lambda d, n, rng: d + rng.laplace(0, 0.5, n), name="Laplace")
    claim = PrivacyClaim(2.0)
    assert not audit(mechanism, (0.0, 1.0), claim, n_trials=6_000).violated
    right = laplace_curve(2.0)
    result = audit(
        mechanism, (0.0, 1.0), claim, n_trials=40_000, claim_curve=lambda e: 0.7 * right(e), confidence=0.99
    )
    assert result.violated
    assert result.claim.epsilon != 2.0
    assert result.epsilon_lower > result.claim.epsilon
    assert result.claim.delta == pytest.approx(0.7 * right(result.claim.epsilon))
    assert result.estimator == "claim curve, event counts"
    stated = f"(epsilon={result.claim.epsilon:g}, delta={result.claim.delta:.4g})"
    assert result.views[0].conditional_on == (
        f"the mechanism's claim_curve, which states {stated} at the noise of (epsilon=2, delta=0)"
    )
    assert dict(result.alpha_spent)["black-box, claim curve"] == pytest.approx(0.002)
    assert sum(share for _, share in result.alpha_spent) == pytest.approx(0.01)
