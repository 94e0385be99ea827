"""One error probability for a whole Hypothesis run: tight mechanisms seldom fail it, whatever the number of examples.

Each run is one test item under ``@given`` at γ = 0.95 on a mechanism that meets its claim with nothing to spare; every
example is another configuration with noise of its own. The number of failed items is held to the 99.9 % point of the
binomial law of that many items, each failing with probability 5 %.

SNAPAUDIT_FAMILY_RUNS sets the number of items per test, 2 unless stated: 200 take 12 and 35 CPU-minutes.
"""

from __future__ import annotations

import os

from statistical.mechanisms import binomial_point

RUNS = int(os.environ.get("SNAPAUDIT_FAMILY_RUNS", "2"))
CONFIDENCE = 0.95

SUITE = """
from hypothesis import Phase, given, seed, settings, strategies as st


def laplace(offset):
    return from_sampler(lambda d, n, rng: d + offset + rng.laplace(0.0, 1.0, n), name=f"Laplace {offset}")


def randomised_response(offset):
    truth = 1.0 / (1.0 + np.exp(-1.0))
    return from_sampler(
        lambda d, n, rng: np.where(rng.random(n) < truth, d, 1 - d) + offset, name=f"randomised response {offset}"
    )


def geometric(offset):
    stop = -np.expm1(-1.0)
    return from_sampler(
        lambda d, n, rng: d + offset + rng.geometric(stop, n) - rng.geometric(stop, n), name=f"geometric {offset}"
    )


KINDS = (laplace, randomised_response, geometric)


@pytest.mark.parametrize("run", range(RUNS))
@privacy_audit(epsilon=1.0, confidence=0.95, n_trials=TRIALS, max_checks=CHECKS)
def test_it(privacy_auditor, run):
    @seed(run)
    @settings(max_examples=EXAMPLES, database=None, deadline=None, phases=(Phase.generate, Phase.target))
    @given(st.integers(0, 10**9))
    def body(offset):
        for number in range(CHECKS):
            mechanism = KINDS[(run + number) % len(KINDS)](offset)
            privacy_auditor.check(mechanism, (0, 1), name=f"{mechanism.name}, {number}")

    body()
"""


def _failed(audits, *, runs: int, checks: int, examples: int, trials: int) -> int:
    suite = SUITE
    for name, value in {"RUNS": runs, "CHECKS": checks, "EXAMPLES": examples, "TRIALS": trials}.items():
        suite = suite.replace(name, str(value))
    run = audits(suite, "-q", "--tb=line", trials=None)
    outcomes = run.result.parseoutcomes()
    failed = outcomes.get("failed", 0)
    print(f"{failed} of {runs} items with {checks} x {examples} audits failed")  # shown by -rP
    assert failed + outcomes.get("passed", 0) == runs
    assert (
        sum(row.verdict == "VIOLATION" for row in run.rows) == failed
    )  # and no item failed for another reason
    assert min(row.configurations for row in run.rows if row.verdict != "VIOLATION") > 0.8 * examples * checks
    return failed


def test_a_hundred_examples(audits):
    assert _failed(audits, runs=RUNS, checks=1, examples=100, trials=500) <= binomial_point(
        RUNS, 1 - CONFIDENCE
    )


def test_three_checks_in_each_of_a_hundred_examples(audits):
    runs = max(RUNS // 3, 1)
    assert _failed(audits, runs=runs, checks=3, examples=100, trials=500) <= binomial_point(
        runs, 1 - CONFIDENCE
    )
