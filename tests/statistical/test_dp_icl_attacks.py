"""Every membership attack and the passive baseline: no more false bounds than stated, and power where there is loss.

Error rates: the number of bounds above the truth stays at or below the 99.9 % point of the binomial with the stated
error probability. Power: at least what the exact rates of the attack's event give, less 4.9 standard errors of each.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from dp_icl import (
    EmbeddingSpaceAggregation,
    GumbelKeywordSpaceAggregation,
    KeywordSpaceAggregation,
    PrivateVoting,
    ProductOfExperts,
    privacy_loss,
    selection_epsilon,
)
from dp_icl.attacks import Attack, TextSays
from dp_icl.joint_exponential import JointExponential
from dp_icl.membership import membership_attacks
from pytest_snapaudit import PrivacyClaim, Snapshot, SnapshotPair, audit, from_callable, passive_audit
from pytest_snapaudit.engine.bounds import pair_rate_bounds
from pytest_snapaudit.engine.estimators import epsilon_from_rates
from statistical.mechanisms import binomial_point, randomised_response, seeds, tight_gaussian

AUDITS = int(os.environ.get("SNAPAUDIT_AUDITS", "64"))
SEEDS = seeds(20) if "SNAPAUDIT_SEEDS" in os.environ else range(2)
DELTA = 1e-5
CLIP = 2.0


@dataclass(frozen=True)
class Case:
    """A mechanism, clean outputs of a neighbouring pair, and the exact loss between them per view, at its delta."""

    mechanism: object
    reference: tuple
    canary: tuple
    black: float
    white: float = math.inf

    def pair(self, *, null: bool = False) -> SnapshotPair:
        sides = (self.reference, self.reference if null else self.canary)
        return SnapshotPair(*(Snapshot.from_rows(np.array([side])) for side in sides))


VOTING = PrivateVoting(("yes", "no"), 3, 4.0, DELTA)
EXPERTS = ProductOfExperts(("yes", "no"), 4.0, CLIP)
SPACE = EmbeddingSpaceAggregation(1, 4.0, DELTA, np.array([[1.0, 0.0], [-1.0, 0.0]]))
KEYWORDS = KeywordSpaceAggregation(("yes", "no", "maybe"), 2, 2, 4.0)
KEYWORD = GumbelKeywordSpaceAggregation(("yes", "no"), 2, 4.0)


def law(counts: tuple) -> JointExponential:
    return JointExponential(counts, KEYWORDS.keywords, KEYWORDS.rate)


CASES = {
    "voting": Case(VOTING, (0, 3), (1, 2), 4.0, 4.0),
    "experts": Case(
        EXPERTS, (-4.0, 0.0), (-2.0, -2.0), selection_epsilon([-4.0, 0.0], [-2.0, -2.0], EXPERTS.scale)
    ),
    "embeddings": Case(SPACE, (-1.0, 0.0), (1.0, 0.0), 4.0, 4.0),
    "keywords": Case(KEYWORDS, (0, 2, 1), (1, 1, 1), *[privacy_loss(law((0, 2, 1)), law((1, 1, 1)))] * 2),
    "one keyword": Case(KEYWORD, (0, 2), (1, 1), selection_epsilon([0, 2], [1, 1], KEYWORD.noise.scale)),
}
ATTACKS = [
    pytest.param(case, attack, id=f"{name}, {attack.view}")
    for name, case in CASES.items()
    for attack in membership_attacks(case.mechanism, case.reference, case.canary).values()
]


def bound(
    case: Case, attack: Attack, *, null: bool = False, tuned: bool, seed: int, runs: int = 1_000
) -> float:
    return passive_audit(
        case.mechanism,
        case.pair(null=null),
        attack=attack if tuned else attack.decide,
        tuning_runs=runs // 4 if tuned else 0,
        runs=runs,
        view=attack.view,
        seed=seed,
    ).epsilon_lower


@pytest.mark.parametrize(("case", "attack"), ATTACKS)
def test_an_attack_on_equal_sides_finds_nothing_more_often_than_stated(case, attack):
    """Threshold chosen on a part of the runs; γ = 0.95, so each rate's bound fails with probability 0.025."""
    found = sum(bound(case, attack, null=True, tuned=True, seed=seed) > 0 for seed in range(AUDITS // 4))
    assert found <= binomial_point(AUDITS // 4, 0.05)


@pytest.mark.parametrize(("case", "attack"), ATTACKS)
def test_an_attack_never_finds_more_than_the_exact_loss_more_often_than_stated(case, attack):
    exact = case.black if attack.view == "black-box" else case.white
    found = sum(bound(case, attack, tuned=True, seed=seed) > exact for seed in range(AUDITS // 8))
    assert found <= binomial_point(AUDITS // 8, 0.05)


def decision_rates(name: str, attack: Attack) -> tuple[float, float]:
    """Exact probabilities that the canary is decided present: where it is, and where it is not."""
    case = CASES[name]
    if name == "voting" and attack.view == "black-box":
        spread = math.sqrt(2) * VOTING.sigma
        return norm.cdf(-1 / spread), norm.cdf(-3 / spread)
    if name in {"voting", "embeddings"}:
        half = np.linalg.norm(np.subtract(case.canary, case.reference)) / case.mechanism.sigma / 2
        return norm.cdf(half), norm.cdf(-half)
    if name == "keywords":
        both = [law(counts) for counts in (case.canary, case.reference)]
        sequences = np.array([[a, b] for a in range(3) for b in range(3) if a != b])
        present = attack.decide(sequences)
        rates = [float(np.exp(each.log_probability(sequences[present])).sum()) for each in both]
        return rates[0], rates[1]
    scale = case.mechanism.noise.scale
    return tuple(float(expit((side[0] - side[1]) / scale)) for side in (case.canary, case.reference))


@pytest.mark.parametrize("name", CASES)
def test_each_attack_has_the_power_of_its_rates(name):
    case, n = CASES[name], 20_000
    for attack in membership_attacks(case.mechanism, case.reference, case.canary).values():
        if attack.view == "white-box" and name in {"experts", "one keyword"}:
            continue  # no closed form: below
        p, q = decision_rates(name, attack)
        low = max(p - 4.9 * math.sqrt(p * (1 - p) / n), 0.0)
        high = min(q + 4.9 * math.sqrt(q * (1 - q) / n), 1.0)
        p_lower, q_upper = pair_rate_bounds(n * low, n * high, n, 0.025, 0.025)
        delta = case.mechanism.claim[1]
        least = epsilon_from_rates(float(p_lower), float(q_upper), delta, "dp")
        assert least > 0.2
        for seed in SEEDS:
            assert bound(case, attack, tuned=False, seed=seed, runs=n) >= least


@pytest.mark.parametrize("name", ["experts", "one keyword"])
def test_the_ratio_of_gumbel_noise_finds_what_the_released_value_hides(name):
    case = CASES[name]
    (white,) = (
        attack
        for attack in membership_attacks(case.mechanism, case.reference, case.canary).values()
        if attack.view == "white-box"
    )
    for seed in SEEDS:
        assert (
            bound(case, white, tuned=True, seed=seed, runs=40_000)
            > 1.25 * case.mechanism.epsilon
            > case.black
        )


@pytest.mark.parametrize("name", CASES)
def test_the_attacks_serve_an_active_audit_as_they_are(name):
    """Both views are measured with one mapping; the auditor's bound is at least nearly that of the attack."""
    case = CASES[name]
    attacks = membership_attacks(case.mechanism, case.reference, case.canary)
    result = audit(
        case.mechanism,
        case.pair(),
        PrivacyClaim(*case.mechanism.claim),
        n_trials=20_000,
        views={"black-box", "white-box"},
        attacks=attacks,
    )
    assert not result.violated
    views = {view.view: view.epsilon_lower for view in result.views}
    assert views["black-box"] <= case.black
    for attack in attacks.values():
        assert views[attack.view] >= 0.8 * bound(case, attack, tuned=True, seed=1, runs=5_000)


def test_a_phrase_in_the_answer_is_an_attack_on_a_whole_pipeline():
    truth = expit(2.0)
    rng = np.random.default_rng(0)
    pipeline = from_callable(lambda yes: "Yes, it is." if (rng.random() < truth) == yes else "No.")
    result = passive_audit(pipeline, (False, True), attack=TextSays("yes").decide, runs=4_000, delta=0.0)
    assert 1.7 < result.epsilon_lower < 2.0
    assert result.attack == "phrase in the answer, likelier on the canary"


# -- the baseline itself -----------------------------------------------------------------------------------------


def says_canary(rows):
    return rows[:, 0] > 0.5


def first_column(rows):
    return rows[:, 0]


def test_a_fixed_event_exceeds_a_tight_claim_no_more_often_than_stated():
    mechanism = randomised_response(1.0)
    settings = {"attack": says_canary, "runs": 2_000, "delta": 0.0}
    exceeded = sum(
        passive_audit(mechanism, (0, 1), seed=seed, **settings).epsilon_lower > 1.0 for seed in range(AUDITS)
    )
    assert exceeded <= binomial_point(AUDITS, 0.05)


@pytest.mark.parametrize("estimator", ["dp", "gdp"])
def test_a_tuned_event_exceeds_a_tight_claim_no_more_often_than_stated(estimator):
    mechanism = tight_gaussian(1.0)
    settings = {
        "attack": first_column,
        "runs": 2_000,
        "tuning_runs": 500,
        "delta": DELTA,
        "estimator": estimator,
    }
    pair = SnapshotPair(*(Snapshot.from_rows(np.array([[side]])) for side in (0.0, 1.0)))
    exceeded = sum(
        passive_audit(mechanism, pair, seed=seed, **settings).epsilon_lower > 1.0 for seed in range(AUDITS)
    )
    assert exceeded <= binomial_point(AUDITS, 0.05)


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_the_baseline_reaches_what_its_runs_allow(epsilon):
    """Randomised response with a fixed event: the bound at counts 4.9 standard errors worse than expected."""
    truth, n = float(expit(epsilon)), 2_000
    worse = 4.9 * math.sqrt(n * truth * (1 - truth))
    p_lower, q_upper = pair_rate_bounds(n * truth - worse, n * (1 - truth) + worse, n, 0.025, 0.025)
    least = epsilon_from_rates(float(p_lower), float(q_upper), 0.0, "dp")
    for seed in SEEDS:
        result = passive_audit(
            randomised_response(epsilon), (0, 1), attack=says_canary, runs=n, delta=0.0, seed=seed
        )
        assert least <= result.epsilon_lower < result.max_detectable_epsilon < 6.3


def test_the_same_model_calls_reach_less_than_the_active_audit():
    """Private Voting at ε = 16: 2000 recorded answers per side, passive and active."""
    voting = PrivateVoting(("yes", "no"), 3, 16.0, DELTA)
    pair = SnapshotPair(*(Snapshot(np.array([side]), np.array([2_000])) for side in ((0, 3), (1, 2))))
    (black, _) = membership_attacks(voting, (0, 3), (1, 2)).values()
    passive = passive_audit(voting, pair, attack=black.decide, estimator="gdp")
    active = audit(
        voting,
        pair,
        PrivacyClaim(16.0, DELTA),
        confidence=0.95,
        correction="clopper-pearson",
        estimator="gdp",
        views={"black-box"},
    )
    assert passive.model_calls == 4_000
    assert passive.epsilon_lower < 9
    assert 13 < active.epsilon_lower < 16
