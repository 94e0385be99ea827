"""The betting gate: brute force over explicit trials, exact expectations under the claim, sane bounds."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from pytest_snapaudit.engine import betting
from pytest_snapaudit.engine.betting import (
    BettingLook,
    PairCounts,
    betting_epsilon_lower,
    clipped_rates,
    expected_growth,
    log_e_value,
)

PAYOFF = {(1, 1): "both", (1, 0): "likelier only", (0, 1): "other only", (0, 0): "neither"}
CLAIMS = [(1.0, 0.0), (0.1, 0.0), (0.5, 1e-3), (3.0, 1e-5), (0.0, 0.2), (2.0, 0.3)]
RATES = [(0.6, 0.1), (0.3, 0.29), (0.05, 1e-4), (0.999999, 1e-6), (0.5, 0.5)]


def payoff(x: int, y: int, epsilon: float, delta: float) -> float:
    """g = 1[X in S] − e^ε 1[Y in S] − δ, as the module's docstring has it."""
    return x - math.exp(epsilon) * y - delta


def strategies(looks, epsilon: float, delta: float, alpha: float, planned: int):
    """(weights, bets per look and strategy), written out from the definition."""
    largest = 1.0 / (math.exp(epsilon) + delta)
    grid = [0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 0.95]
    bets = []
    for look in looks:
        p, q = look.tuned_p, look.tuned_q
        chance = {(1, 1): p * q, (1, 0): p * (1 - q), (0, 1): (1 - p) * q, (0, 0): (1 - p) * (1 - q)}

        def growth(bet, chance=chance):
            return sum(w * math.log1p(bet * payoff(*pair, epsilon, delta)) for pair, w in chance.items())

        best = max((step * largest for step in grid), key=growth)
        variance = p * (1 - p) + math.exp(2 * epsilon) * q * (1 - q)
        boundary = math.sqrt(2 * math.log(1 / alpha) / (planned * variance))
        tried = [0.35 * best, 0.6 * best, best, 1.5 * best, 0.5 * boundary, boundary, 2 * boundary]
        bets.append([min(bet, 0.98 * largest) for bet in tried])
    return [0.1, 0.15, 0.15, 0.1, 0.15, 0.2, 0.15], bets


def counts_of(trials) -> PairCounts:
    x, y = (np.array(side, dtype=bool) for side in zip(*trials, strict=True))
    return PairCounts.of(x, y)


def test_pair_counts_count_pairs():
    counts = counts_of([(1, 1), (1, 0), (1, 0), (0, 1), (0, 0), (0, 0), (0, 0)])
    assert counts == PairCounts(1, 2, 1, 3)
    assert (counts.trials, counts.likelier, counts.other) == (7, 3, 2)
    assert counts + PairCounts(1, 1, 1, 1) == PairCounts(2, 3, 2, 4)


@pytest.mark.parametrize(("epsilon", "delta"), CLAIMS)
@pytest.mark.parametrize("alpha", [0.05, 5e-4])
def test_the_e_value_is_the_mixture_of_products_over_trials(epsilon, delta, alpha):
    rng = np.random.default_rng(8)
    batches = [rng.integers(0, 2, (size, 2)).tolist() for size in (7, 19)]
    looks = [
        BettingLook(counts_of(batch), *rates)
        for batch, rates in zip(batches, [(0.6, 0.1), (0.3, 0.2)], strict=True)
    ]
    weights, bets = strategies(looks, epsilon, delta, alpha, planned=100)
    expected = sum(
        weight
        * math.prod(
            1 + bets[look][j] * payoff(x, y, epsilon, delta)
            for look, batch in enumerate(batches)
            for x, y in batch
        )
        for j, weight in enumerate(weights)
    )
    (found,) = log_e_value(looks, np.array([epsilon]), delta, alpha, 100)
    assert found == pytest.approx(math.log(expected), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), CLAIMS)
@pytest.mark.parametrize(("tuned_p", "tuned_q"), RATES)
@pytest.mark.parametrize("q", [0.0, 1e-3, 0.2, 0.7])
def test_no_strategy_grows_in_expectation_while_the_claim_holds(
    epsilon, delta, tuned_p, tuned_q, q, monkeypatch
):
    """Exactly, over the four outcomes of one pair, at the largest p the claim allows, and for any dependence of
    the pair on each other: g is linear in the two indicators."""
    p = min(math.exp(epsilon) * q + delta, 1.0)
    single = {
        PairCounts(1, 0, 0, 0): p * q,
        PairCounts(0, 1, 0, 0): p * (1 - q),
        PairCounts(0, 0, 1, 0): (1 - p) * q,
        PairCounts(0, 0, 0, 1): (1 - p) * (1 - q),
    }
    for only in range(7):
        monkeypatch.setattr(betting, "_WEIGHTS", np.eye(7)[only])
        with np.errstate(divide="ignore"):
            mean = sum(
                chance
                * math.exp(
                    log_e_value([BettingLook(pair, tuned_p, tuned_q)], np.array([epsilon]), delta, 0.01, 10)[
                        0
                    ]
                )
                for pair, chance in single.items()
            )
        assert mean <= 1 + 1e-12
        if p < 1:
            assert mean == pytest.approx(1.0, abs=1e-9)


def test_the_weights_of_the_strategies_add_up_to_one():
    assert betting._WEIGHTS.sum() == pytest.approx(1.0, abs=1e-15)
    assert len(betting._WEIGHTS) == len(betting._SPREAD) + len(betting._BOUNDARY_SPREAD)
    assert betting._BETS.max() < 1
    assert betting._LARGEST_BET < 1


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.3])
@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_over_two_looks_the_e_value_has_mean_1_at_most_though_the_second_is_tuned_on_the_first(
    epsilon, delta
):
    """Exact enumeration of all outcomes of 2 + 2 pairs; the second look's bets follow the first look's counts."""
    q = 0.15
    p = math.exp(epsilon) * q + delta
    chance = {(1, 1): p * q, (1, 0): p * (1 - q), (0, 1): (1 - p) * q, (0, 0): (1 - p) * (1 - q)}
    mean = 0.0
    for pairs in itertools.product(chance, repeat=4):
        first, second = counts_of(pairs[:2]), counts_of(pairs[2:])
        tuned = clipped_rates(first.likelier / 2, first.other / 2, 2)
        looks = [BettingLook(first, 0.5, 0.2), BettingLook(second, *tuned)]
        weight = math.prod(chance[pair] for pair in pairs)
        mean += weight * math.exp(log_e_value(looks, np.array([epsilon]), delta, 0.01, 4)[0])
    assert mean == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("rates", [(0.7, 0.2), (0.3, 0.05), (0.9, 1e-5)])
@pytest.mark.filterwarnings("error")
def test_evidence_falls_as_the_claim_grows_and_never_overflows(rates):
    n = 10_000
    p, q = rates
    counts = PairCounts(
        int(n * p * q), int(n * p * (1 - q)), int(n * (1 - p) * q), int(n * (1 - p) * (1 - q))
    )
    epsilons = np.array([0.0, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 20.0, 100.0, 400.0, 700.0, 1e5, 1e300])
    evidence = log_e_value([BettingLook(counts, p, q)], epsilons, 1e-6, 1e-3, n)
    assert np.isfinite(evidence).all()
    rejected = evidence > math.log(1000)
    assert rejected[0]
    assert (np.diff(rejected.astype(int)) <= 0).all()
    reach = min(math.log(p / q), math.log(n / math.log(1e4)))
    assert rejected.sum() == (epsilons < 0.97 * reach).sum()


def bound(counts: PairCounts, claim: float = 1.0, alpha: float = 5e-4, delta: float = 0.0) -> float:
    p, q = clipped_rates(counts.likelier / counts.trials, counts.other / counts.trials, 1000)
    return betting_epsilon_lower([BettingLook(counts, p, q)], claim, delta, alpha, counts.trials)


def pairs(n: int, p: float, q: float) -> PairCounts:
    return PairCounts(
        round(n * p * q), round(n * p * (1 - q)), round(n * (1 - p) * q), round(n * (1 - p) * (1 - q))
    )


def test_the_bound_grows_with_the_evidence():
    by_trials = [bound(pairs(n, 0.6, 0.1)) for n in (10, 100, 1000, 10_000, 100_000)]
    assert by_trials == sorted(by_trials)
    assert by_trials[0] < 0.5
    assert by_trials[-1] > math.log(6) * 0.94
    by_rate = [bound(pairs(10_000, p, 0.1)) for p in (0.1, 0.2, 0.4, 0.8)]
    assert by_rate == sorted(by_rate)
    assert by_rate[0] == 0.0
    by_alpha = [bound(pairs(10_000, 0.6, 0.1), alpha=alpha) for alpha in (1e-6, 1e-3, 0.1)]
    assert by_alpha == sorted(by_alpha)
    by_delta = [bound(pairs(10_000, 0.6, 0.1), delta=delta) for delta in (0.5, 0.1, 0.0)]
    assert by_delta == sorted(by_delta)
    assert all(value <= math.log(6) for value in (*by_trials, *by_alpha, *by_delta))


@pytest.mark.parametrize("claim", [0.2, 1.0, 1.5, math.log(6), 3.0, 12.0, 1000.0])
def test_the_bound_stays_below_the_observed_ratio_whatever_the_claim(claim):
    found = bound(pairs(100_000, 0.6, 0.1), claim)
    assert 0.9 * math.log(6) - 0.025 * min(claim, 12.0) < found < math.log(6) or (
        claim == 1000.0 and found == 0.0
    )


def test_a_rejected_claim_is_always_exceeded():
    """Just enough evidence against the claim and none against the next point of the grid."""
    claim, n = 1.0, 4000
    for p in np.linspace(0.3, 0.4, 201):
        counts = pairs(n, p, 0.1)
        look = [BettingLook(counts, *clipped_rates(counts.likelier / n, counts.other / n, 1000))]
        rejected = log_e_value(look, np.array([claim]), 0.0, 5e-4, n)[0] >= math.log(2000)
        assert (bound(counts, claim) > claim) == rejected


def test_the_grid_of_claims_does_not_change_between_looks(monkeypatch):
    grids = []

    def spy(looks, epsilon, *rest):
        grids.append(epsilon.tolist())
        return log_e_value(looks, epsilon, *rest)

    monkeypatch.setattr(betting, "log_e_value", spy)
    look = BettingLook(pairs(1000, 0.6, 0.1), 0.6, 0.1)
    for looks in ([look], [look, look], [look] * 5):
        betting_epsilon_lower(looks, 1.3, 0.0, 1e-3, 20_000)
    assert grids[0] == grids[1] == grids[2]
    assert {0.0, 1.3} <= set(grids[0])


def test_without_looks_nothing_is_rejected():
    assert betting_epsilon_lower([], 1.0, 0.0, 0.01, 100) == 0.0
    assert bound(PairCounts(0, 0, 0, 1000)) == 0.0
    assert bound(PairCounts(0, 0, 1000, 0)) == 0.0


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (0.5, 1e-3), (800.0, 0.0)])
@pytest.mark.filterwarnings("error")
def test_the_expected_growth_is_that_of_the_best_bet_of_the_grid(epsilon, delta):
    p, q = np.array([0.6, 0.3, 0.5, 1.0]), np.array([0.1, 0.29, 0.5, 0.0])
    found = expected_growth(p, q, epsilon, delta)
    for one_p, one_q, value in zip(p, q, found, strict=True):
        growth = []
        for step in betting._BETS:
            bet = step / (math.exp(min(epsilon, 700)) + delta)
            chances = [(1, 1, one_p * one_q), (1, 0, one_p * (1 - one_q)), (0, 1, (1 - one_p) * one_q)]
            growth.append(
                sum(w * math.log1p(bet * payoff(x, y, min(epsilon, 700), delta)) for x, y, w in chances)
                + (1 - one_p) * (1 - one_q) * math.log1p(-bet * delta)
            )
        assert value == pytest.approx(max(*growth, 0.0), abs=1e-12)


def test_tuning_rates_stay_inside_the_open_interval():
    assert clipped_rates(0.0, 0.0, 499) == (1e-6, 0.001)
    assert clipped_rates(1.0, 1.0, 499) == (1 - 1e-6, 1 - 1e-6)
    assert clipped_rates(0.4, 0.3, 10) == (0.4, 0.3)
