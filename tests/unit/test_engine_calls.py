"""Samplers whose outputs are not independent draws of one law are refused; independent ones never are."""

import numpy as np
import pytest

from pytest_snapaudit.engine.audit import audit
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.errors import MechanismError
from pytest_snapaudit.engine.mechanism import from_callable, from_sampler

SHARED = {
    "one component": lambda d, n, rng: {"a": np.full(n, d + rng.laplace()), "b": rng.integers(0, 3, n)},
    "one column": lambda d, n, rng: np.stack([np.full(n, d + rng.laplace()), rng.normal(size=n)], axis=1),
    "under other noise": lambda d, n, rng: d + rng.integers(0, 2, n) + rng.laplace(),
}
OF_THE_NUMBER = {
    "scale over n": lambda d, n, rng: d + rng.laplace(0, 1000 / n, n),
    "scale times n": lambda d, n, rng: d + rng.laplace(0, n / 1000, n),
}
INDEPENDENT = {
    "noise": lambda d, n, rng: d + rng.laplace(size=n),
    "heavy tails": lambda d, n, rng: d + rng.standard_cauchy((n, 40)),
    "a rare value": lambda d, n, rng: (rng.random(n) < 0.02) * 1.0,
    "labels": lambda d, n, rng: rng.choice(list("abc"), n),
    "a constant": lambda d, n, rng: np.stack([np.ones(n), rng.random(n)], axis=1),
    "missing values": lambda d, n, rng: np.where(rng.random(n) < 0.3, np.nan, rng.random(n)),
}


def run(sampler, seed=0):
    return audit(sampler, (0.0, 1.0), PrivacyClaim(1.0), n_trials=200, seed=seed)


@pytest.mark.parametrize("law", SHARED)
def test_noise_that_is_shared_by_the_rows_of_a_call_is_refused(law):
    with pytest.raises(MechanismError, match=r"part of the noise is drawn once for all rows of a call"):
        run(from_sampler(SHARED[law], name=law))


@pytest.mark.parametrize("law", OF_THE_NUMBER)
def test_a_law_that_depends_on_the_number_of_outputs_is_refused(law):
    with pytest.raises(MechanismError, match=r"depends on how many are asked for \(128 or 512 in one call\)"):
        run(from_sampler(OF_THE_NUMBER[law], name=law))


@pytest.mark.parametrize("law", INDEPENDENT)
def test_independent_outputs_are_not(law):
    for seed in range(20):
        run(from_sampler(INDEPENDENT[law], name=law), seed)


def test_one_output_per_call_is_not_asked_for_many():
    calls = []

    def one(dataset):
        calls.append(dataset)
        return dataset + np.random.laplace()

    run(from_callable(one))
    assert len(calls) < 2 * (200 + 500 + 300)
