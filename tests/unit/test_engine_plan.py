"""The plan of an audit: looks, shares of the error probability, and the ceiling they imply."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pytest_snapaudit.engine import bounds
from pytest_snapaudit.engine.attacks.event import Event
from pytest_snapaudit.engine.attacks.scores import UserScore
from pytest_snapaudit.engine.audit import audit
from pytest_snapaudit.engine.budget import AlphaShares, spent, split
from pytest_snapaudit.engine.ceiling import betting_ceiling, ceiling_of_rows, ceiling_of_trials
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.looks import schedule
from pytest_snapaudit.engine.mechanism import from_sampler
from pytest_snapaudit.engine.noise import GaussianNoise
from pytest_snapaudit.engine.result import Verdict
from pytest_snapaudit.engine.settings import CORRECTIONS, ESTIMATORS
from pytest_snapaudit.engine.trials import split_alpha

BLACK, WHITE = "black-box", "white-box"


@pytest.mark.parametrize(
    "n", [100, 999, 1000, 1999, 2000, 2001, 11_999, 12_000, 20_000, 10**5, 400_000, 10**7]
)
@pytest.mark.parametrize("single", [False, True])
def test_looks_spend_all_trials_and_all_of_alpha(n, single):
    looks = schedule(n, single=single)
    assert sum(look.trials for look in looks) == n
    assert sum(look.share for look in looks) == 1.0
    assert all(look.trials > 0 and 0 < look.share <= 1 for look in looks)
    assert [look.index for look in looks] == list(range(len(looks)))
    assert [look.last for look in looks] == [False] * (len(looks) - 1) + [True]
    assert len(looks) == 1 or looks[-1].share == 0.5
    assert not single or len(looks) == 1


@pytest.mark.parametrize(
    ("n", "sizes"),
    [
        (500, [500]),
        (2_000, [1_000, 1_000]),
        (20_000, [1_000, 5_000, 14_000]),
        (400_000, [1_000, 5_000, 25_000, 125_000, 244_000]),
    ],
)
def test_sizes_of_the_looks(n, sizes):
    assert [look.trials for look in schedule(n)] == sizes


@pytest.mark.parametrize("views", [(BLACK,), (WHITE,), (WHITE, BLACK)])
@pytest.mark.parametrize("covered", [{BLACK}, {WHITE}, {WHITE, BLACK}])
@pytest.mark.parametrize("certificate", [None, WHITE, BLACK])
@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_gates_never_spend_more_than_alpha(views, covered, certificate, correction, estimator):
    alpha = 0.03
    shares = split(
        alpha, views, frozenset(covered), certificate=certificate, correction=correction, estimator=estimator
    )
    assert set(shares) == set(views)
    of_gates = [share for _, share in spent(shares, frozenset(covered))]
    gated = [view for view in views if view in covered]
    assert sum(of_gates) == pytest.approx(alpha if gated else 0.0, rel=1e-12)
    assert sum(of_gates) <= alpha * (1 + 1e-12)
    for view, share in shares.items():
        own = share.counts + share.betting + share.certificate
        assert own == pytest.approx(alpha / max(len(gated), 1) if view in covered else alpha, rel=1e-12)
        assert share.certificate == 0 or (view == certificate and estimator == "auto")
        assert share.betting == 0 or (correction in ("auto", "betting") and estimator != "gdp")
        assert share.counts == 0 or correction != "betting" or estimator == "gdp"
        assert min(share.counts, share.betting, share.certificate) >= 0


def test_only_gates_that_spend_are_named():
    assert AlphaShares(0.1, 0.0, 0.2).items() == (("event counts", 0.1), ("certificate", 0.2))


@pytest.mark.parametrize("p_and_q", [(1.0, 0.0), (0.5, 0.2), (0.01, 0.001), (0.3, 0.3), (0.0, 0.0)])
def test_alpha_is_shared_between_the_rates_to_certify_the_most(p_and_q):
    event = Event(UserScore(lambda rows: rows[:, 0], "first"), ">", 0.0, 0, *p_and_q, 500)
    alpha_p, alpha_q = split_alpha(event, 10_000, 1e-5, 0.01)
    assert alpha_p + alpha_q == pytest.approx(0.01)
    assert min(alpha_p, alpha_q) > 0

    def certified(share: float) -> float:
        low, high = bounds.pair_rate_bounds(
            event.p * 10_000, event.q * 10_000, 10_000, share * 0.01, (1 - share) * 0.01
        )
        return float(np.log(max(float(low) - 1e-5, 1e-300)) - np.log(high))

    best = max(certified(share) for share in (0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9))
    assert certified(alpha_p / 0.01) == pytest.approx(best)


def settings(correction: str, delta: float = 0.0, alpha: float = 1e-3, n_trials: int = 400_000) -> Any:
    return SimpleNamespace(
        claim=PrivacyClaim(1.0, delta),
        correction=correction,
        alpha=alpha,
        n_snapshots=2_000,
        n_trials=n_trials,
    )


FIXED = SimpleNamespace(clean="fixed")
SAMPLED = SimpleNamespace(clean="none")


def test_one_look_of_400_000_counts_up_to_10_9():
    (look,) = looks = schedule(400_000, single=True)
    found = ceiling_of_trials(looks, settings("clopper-pearson"), AlphaShares(1e-3, 0.0, 0.0), FIXED)
    assert found == pytest.approx(
        math.log(5e-4 ** (1 / look.trials) / -math.expm1(math.log(5e-4) / look.trials))
    )
    assert 10.85 < found < 10.9


def test_growing_looks_cost_less_than_a_fifth_of_that():
    looks = schedule(400_000)
    shares = AlphaShares(5e-4, 5e-4, 0.0)
    assert 10.7 < ceiling_of_trials(looks, settings("auto"), shares, SAMPLED) < 10.87
    betting_alone = ceiling_of_trials(looks, settings("betting"), AlphaShares(0.0, 1e-3, 0.0), SAMPLED)
    assert betting_alone == betting_ceiling(looks, 0.0, 1e-3)
    assert 10.7 < betting_alone < math.log(400_000 / math.log(1e3)) + 0.01


def test_a_large_delta_lowers_the_ceiling():
    looks = schedule(20_000)
    shares = AlphaShares(5e-4, 5e-4, 0.0)
    reached = [
        ceiling_of_trials(looks, settings("auto", delta), shares, SAMPLED)
        for delta in (0.0, 0.5, 0.99, 0.9999)
    ]
    assert reached == sorted(reached, reverse=True)
    assert reached[0] - reached[1] == pytest.approx(math.log(2), abs=0.05)
    assert reached[3] == 0.0


def test_the_ceiling_of_algorithm_1():
    looks = schedule(400_000, single=True)
    radius = bounds.snapshot_radius(0.0, 2_000, 400_000, 1e-3)
    found = ceiling_of_trials(looks, settings("bernstein"), AlphaShares(1e-3, 0.0, 0.0), FIXED)
    assert found == pytest.approx(math.log((1 - radius) / radius))
    sampled = ceiling_of_trials(looks, settings("bernstein"), AlphaShares(1e-3, 0.0, 0.0), SAMPLED)
    radius = bounds.empirical_bernstein_radius(0.0, 400_000, 5e-4)
    assert sampled == pytest.approx(math.log((1 - radius) / radius))


def test_the_ceiling_of_a_random_clean_stage_does_not_depend_on_trials():
    shares = AlphaShares(0.025, 0.025, 0.0)
    assert ceiling_of_rows(2_000, settings("auto"), shares) == pytest.approx(6.296, abs=1e-3)
    assert ceiling_of_rows(3, settings("auto"), shares) == 0.0


def gives_away(dataset, n, rng):
    return np.full(n, float(dataset))


@pytest.mark.parametrize("n", [100, 500, 2_000, 20_000])
@pytest.mark.parametrize("correction", ["auto", "betting", "clopper-pearson", "bernstein"])
def test_the_ceiling_is_what_a_mechanism_that_gives_all_away_reaches(n, correction):
    sampler = from_sampler(gives_away)

    def run(epsilon: float):
        return audit(sampler, (0, 1), PrivacyClaim(epsilon, 1e-6), n_trials=n, correction=correction)

    above = run(50.0)
    ceiling = above.max_detectable_epsilon
    assert above.verdict is Verdict.INCONCLUSIVE
    assert above.epsilon_lower <= ceiling + 1e-9
    assert run(ceiling * (1 - 1e-3)).verdict is Verdict.VIOLATION
    beyond = run(ceiling * (1 + 1e-3))
    assert beyond.verdict is Verdict.INCONCLUSIVE
    assert beyond.epsilon_lower <= beyond.max_detectable_epsilon + 1e-9


def test_a_claim_beyond_the_trials_names_what_would_decide_it():
    result = audit(from_sampler(gives_away), (0, 1), PrivacyClaim(12.0), n_trials=2_000)
    assert f"epsilon=12 is above {result.max_detectable_epsilon:.2f}" in result.reason
    assert "2,000 trials per side can refute by counting; it takes about " in result.reason
    named = int(result.reason.split("it takes about ")[1].split(" trials")[0].replace(",", ""))
    assert 10**6 < named < 10**7
    assert (
        "no number of trials reaches it"
        in audit(from_sampler(gives_away), (0, 1), PrivacyClaim(900.0), n_trials=500).reason
    )


class Rows:
    """A random clean stage that gives everything away."""

    def clean(self, dataset, rng):
        return dataset + 0.01 * rng.random()

    def privatize(self, clean, rng):
        return clean


@pytest.mark.parametrize("rows", [100, 400])
def test_a_random_clean_stage_is_limited_by_its_rows_and_says_so(rows):
    result = audit(Rows(), (0.0, 1.0), PrivacyClaim(20.0), n_trials=20_000, n_snapshots=rows)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.n_snapshots == rows
    assert result.max_detectable_epsilon == pytest.approx(math.log(rows / math.log(1 / 5e-4)))
    assert result.epsilon_lower == pytest.approx(result.max_detectable_epsilon, abs=0.1)
    assert f"the largest that {rows:,} clean outputs of a random clean stage can refute" in result.reason
    assert "deterministic = True" in result.reason
    assert 'scope="noise"' in result.reason


def test_the_shares_of_an_audit_are_reported():
    result = audit(from_sampler(gives_away), (0, 1), PrivacyClaim(1.0), n_trials=500, confidence=0.9)
    assert dict(result.alpha_spent) == pytest.approx(
        {"black-box, event counts": 0.05, "black-box, betting": 0.05}
    )


class Declared:
    """Gaussian noise with a release: both views, both covered."""

    deterministic = True
    claimed_views = frozenset({WHITE, BLACK})

    def __init__(self, enforced: bool = False):
        self.noise = GaussianNoise(4.0, enforced)

    def clean(self, dataset, rng):
        return np.array([dataset, 0.0])

    def privatize(self, clean, rng):
        return clean + 4.0 * rng.standard_normal(clean.shape)

    def release(self, noisy, rng):
        return (noisy[:, 0] > 0.5).astype(float)


@pytest.mark.parametrize("enforced", [False, True])
def test_the_certificate_and_the_declaration_have_shares_of_their_own(enforced):
    result = audit(Declared(enforced), (0.0, 1.0), PrivacyClaim(2.0, 1e-5), n_trials=20_000, confidence=0.99)
    spent_on = dict(result.alpha_spent)
    assert sum(spent_on.values()) == pytest.approx(0.01)
    assert set(spent_on) - {"declaration"} == {
        *("white-box, event counts", "white-box, betting", "white-box, certificate"),
        *("black-box, event counts", "black-box, betting"),
    }
    assert ("declaration" in spent_on) == enforced
    assert result.estimator == "Gaussian trade-off"
    white, black = result.views
    assert white.epsilon_lower > black.epsilon_lower
    assert (white.conditional_on != "", black.conditional_on) == (True, "")


def test_every_correction_runs_at_its_usual_size():
    """400 000 trials take pilots of several blocks with one look."""
    for correction in ("clopper-pearson", "bernstein"):
        result = audit(
            from_sampler(lambda dataset, n, rng: dataset + rng.laplace(size=n)),
            (0.0, 1.0),
            PrivacyClaim(1.0),
            correction=correction,
        )
        assert result.n_trials == 400_000
        rates = result.views[0].rates
        assert rates is not None
        assert rates.trials == 400_000
        assert rates.p_lower < rates.p
        assert rates.q < rates.q_upper
        assert 0.9 < result.epsilon_lower < 1.0
