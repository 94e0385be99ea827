"""Keyword Space Aggregation under audit: the correct mechanism passes, each flaw is found.

One audit of a correct mechanism errs with probability at most 0.001. In full (``SNAPAUDIT_SEEDS=100``) there are 300
audits of random histograms and 800 of extreme ones: even one that used up this probability would pass all of the
former with probability 0.74. None is expected to, since no pair here attains its claim; the seeds are fixed.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from dp_icl import GumbelKeywordSpaceAggregation, JointExponential, KeywordSpaceAggregation, privacy_loss
from dp_icl.flawed_keywords import (
    RepeatCountingKeywordSpaceAggregation,
    ResponseDomainKeywordSpaceAggregation,
    UnitSensitivityKeywordSpaceAggregation,
)
from pytest_snapaudit.engine.audit import audit
from pytest_snapaudit.engine.bounds import clopper_pearson_lower, clopper_pearson_upper
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.estimators import dp_epsilon
from pytest_snapaudit.engine.result import AuditResult
from statistical.mechanisms import seeds

SEEDS = seeds(20)
FULL = len(SEEDS) == 20
FEW = SEEDS if FULL else SEEDS[:2]

Texts = list[str]


def judged(
    mechanism: KeywordSpaceAggregation, pair: tuple[Texts, Texts], seed: int, n_trials: int = 10_000
) -> AuditResult:
    return audit(mechanism, pair, PrivacyClaim(*mechanism.claim), n_trials=n_trials, seed=seed)


def exact_epsilon(mechanism: KeywordSpaceAggregation, pair: tuple[Texts, Texts]) -> float:
    laws = (JointExponential(mechanism.aggregate(said), mechanism.keywords, mechanism.rate) for said in pair)
    return privacy_loss(*laws)


def random_case(seed: int, epsilon: float) -> tuple[KeywordSpaceAggregation, tuple[Texts, Texts]]:
    """A small vocabulary, random texts of its tokens, and another random text in place of the first."""
    rng = np.random.default_rng([seed, 77])
    vocabulary = tuple(f"w{i}" for i in range(rng.integers(2, 9)))
    mechanism = KeywordSpaceAggregation(
        vocabulary,
        partitions=int(rng.integers(1, 9)),
        keywords=int(rng.integers(1, min(len(vocabulary), 4) + 1)),
        epsilon=epsilon,
    )
    often = rng.beta(0.5, 0.5, len(vocabulary))
    while True:
        said = [
            " ".join(itertools.compress(vocabulary, rng.random(len(vocabulary)) < often))
            for _ in range(mechanism.partitions + 1)
        ]
        pair = said[:-1], [said[-1], *said[1:-1]]
        if (mechanism.aggregate(pair[0]) != mechanism.aggregate(pair[1])).any():
            return mechanism, pair


@pytest.mark.parametrize("seed", seeds(100) if FULL else seeds(3))
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_random_histograms_keep_the_claim(epsilon, seed):
    mechanism, pair = random_case(seed, epsilon)
    exact = exact_epsilon(mechanism, pair)
    assert exact <= epsilon * (1 + 1e-9)
    result = judged(mechanism, pair, seed)
    assert not result.violated
    assert result.epsilon_lower <= exact + 0.05


def one_keyword(partitions: int) -> tuple[Texts, Texts]:
    """Counts 1:T−1 and 0:T of yes and no."""
    return ["no"] * (partitions - 1) + ["yes"], ["no"] * partitions


def two_keywords(partitions: int, tokens: int = 10) -> tuple[Texts, Texts]:
    """The first place falls and the second rises: counts (T, 1, 1, 0, …) and (T − 1, 2, 0, 1, …), where T ≥ 2."""
    shared = ["w0 w1", *["w0"] * partitions][: partitions - 1]
    return [*shared, "w0 w2"], [*shared, " ".join(f"w{i}" for i in range(1, tokens) if i != 2)]


def mechanism_of(keywords: int, partitions: int, epsilon: float, kind=KeywordSpaceAggregation):
    vocabulary = ("no", "yes") if keywords == 1 else tuple(f"w{i}" for i in range(10))
    return kind(vocabulary, partitions, keywords, epsilon)


CASES = list(itertools.product([1, 2], [1, 2, 8, 64], [0.1, 1.0, 8.0, 16.0, 32.0], SEEDS))


@pytest.mark.parametrize(("keywords", "partitions", "epsilon", "seed"), CASES if FULL else CASES[::13])
def test_the_correct_mechanism_is_never_refuted(keywords, partitions, epsilon, seed):
    pair = one_keyword(partitions) if keywords == 1 else two_keywords(partitions)
    mechanism = mechanism_of(keywords, partitions, epsilon)
    assert exact_epsilon(mechanism, pair) <= epsilon * (1 + 1e-9)
    assert not judged(mechanism, pair, seed).violated


@pytest.mark.parametrize("seed", FEW)
@pytest.mark.parametrize(("partitions", "epsilon"), [(3, 1.0), (3, 2.0), (3, 4.0), (4, 2.0)])
def test_the_rate_of_the_papers_is_found_for_two_keywords(partitions, epsilon, seed):
    mechanism = mechanism_of(2, partitions, epsilon, UnitSensitivityKeywordSpaceAggregation)
    pair = two_keywords(partitions)
    exact = exact_epsilon(mechanism, pair)
    assert 1.25 * epsilon < exact < mechanism.true_epsilon == 2 * epsilon
    result = audit(
        mechanism,
        pair,
        PrivacyClaim(epsilon),
        views={"white-box"},
        attacks={"the first, then the third token": lambda rows: (rows == [0, 2]).all(axis=1)},
        n_trials=200_000,
        seed=seed,
    )
    assert result.violated
    assert epsilon < result.epsilon_lower < exact


@pytest.mark.parametrize("seed", FEW)
@pytest.mark.parametrize(("repeats", "epsilon"), [(2, 0.5), (2, 1.0), (2, 2.0), (8, 0.25), (8, 0.5)])
def test_counting_repeats_is_found(repeats, epsilon, seed):
    kind = RepeatCountingKeywordSpaceAggregation
    mechanism = kind(("no", "yes"), 3, 1, epsilon, max_repeats=repeats)
    said = [" ".join([word] * repeats) for word in ("no", "yes")]
    pair = [said[0]] * 3, [said[0], said[0], said[1]]
    exact = exact_epsilon(mechanism, pair)
    assert 1.25 * epsilon < exact < mechanism.true_epsilon == repeats * epsilon
    result = judged(mechanism, pair, seed)
    assert result.violated
    assert result.epsilon_lower < exact


@pytest.mark.parametrize("seed", FEW)
@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_a_domain_read_from_the_texts_is_found(epsilon, seed):
    mechanism = mechanism_of(1, 4, epsilon, ResponseDomainKeywordSpaceAggregation)
    assert mechanism.true_epsilon == math.inf
    assert judged(mechanism, one_keyword(4), seed).violated


TRIALS, TEXTS = 400_000, one_keyword(8)
PRINTED = [(1.0, 0.92), (2.0, 1.85)]


def rate_of_yes(epsilon: float, said: Texts) -> float:
    mechanism = mechanism_of(1, 8, epsilon)
    law = JointExponential(mechanism.aggregate(said), 1, mechanism.rate)
    return float(np.exp(law.log_probability([[1]])[0]))


def bound_of(hits: float, other_hits: float) -> float:
    """From one-sided 95 % Clopper–Pearson bounds on either rate, which is how the SnapAudit paper reads them."""
    low = float(clopper_pearson_lower(hits, TRIALS, 0.05))
    return dp_epsilon(low, float(clopper_pearson_upper(other_hits, TRIALS, 0.05)), 0.0)


@pytest.mark.parametrize(("epsilon", "printed"), PRINTED)
def test_black_box_figures_of_the_paper_at_exact_expected_counts(epsilon, printed):
    p, q = (rate_of_yes(epsilon, said) for said in TEXTS)
    bound = bound_of(p * TRIALS, q * TRIALS)
    assert bound == pytest.approx(printed, abs=0.05)
    assert bound == pytest.approx({1.0: 0.9386, 2.0: 1.8015}[epsilon], abs=1e-3)


@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_one_run_agrees_with_the_expected_counts(epsilon):
    """Within four standard deviations of log p/q: 0.06 at epsilon 1; 0.37 at 2, where about 134 of the rarer occur."""
    mechanism, hits = mechanism_of(1, 8, epsilon), []
    rng = np.random.default_rng(0)
    rates = [rate_of_yes(epsilon, said) for said in TEXTS]
    for said, rate in zip(TEXTS, rates, strict=True):
        rows = np.broadcast_to(mechanism.aggregate(said), (TRIALS, 2))
        released = mechanism.release(mechanism.privatize(rows, rng), rng)
        hits.append(int((released[:, 0] == 1).sum()))
        assert binom.ppf(5e-7, TRIALS, rate) <= hits[-1] <= binom.ppf(1 - 5e-7, TRIALS, rate)
    spread = math.sqrt(sum(1.0 / (rate * TRIALS) for rate in rates))
    expected = bound_of(*(rate * TRIALS for rate in rates))
    assert bound_of(*hits) == pytest.approx(expected, abs=4.0 * spread)


@pytest.mark.parametrize("epsilon", [2.0])
def test_noisy_counts_show_more_than_the_claim_and_are_not_gated(epsilon):
    mechanism = GumbelKeywordSpaceAggregation(("no", "yes"), 8, epsilon)
    result = audit(
        mechanism,
        one_keyword(8),
        PrivacyClaim(epsilon),
        views={"black-box", "white-box"},
        n_trials=50_000,
        seed=1,
    )
    views = {view.view: view for view in result.views}
    assert not result.violated
    assert views["white-box"].epsilon_lower > 1.25 * epsilon
    assert not views["white-box"].gated
    assert views["black-box"].epsilon_lower <= epsilon
    assert views["black-box"].gated
