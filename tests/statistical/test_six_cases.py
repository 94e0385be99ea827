"""The six cases on which auditors are compared, at default settings, 20 seeds each.

Restated here: a correct Laplace mechanism, half its scale, a true epsilon of 1.1, the classical Gaussian
calibration at epsilon 16, a sparse vector without query noise, and 384-d noise for half the sensitivity.
"""

from __future__ import annotations

import numpy as np
import pytest

from pytest_snapaudit.engine.audit import audit
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.estimators import analytic_gaussian_sigma
from pytest_snapaudit.engine.mechanism import from_sampler
from pytest_snapaudit.engine.result import Verdict
from statistical.mechanisms import DELTA, Gaussian, classical_sigma, laplace, seeds

SEEDS = range(20)
DIMENSION = 384


def above_threshold_without_query_noise(queries, n, rng):
    """Lyu et al. (VLDB 2017), Algorithm 5: the threshold is noised once, the queries never, no cut-off."""
    threshold = rng.laplace(0.0, 2.0, (n, 1))
    return (np.asarray(queries) >= threshold).astype(np.float32)


def unit(sign: float) -> np.ndarray:
    vector = np.zeros(DIMENSION, dtype=np.float32)
    vector[0] = sign
    return vector


NUMBERS = (0.0, 1.0)
SWAPPED = ([0.0] * 5 + [1.0] * 5, [1.0] * 5 + [0.0] * 5)
EMBEDDINGS = (unit(-1.0), unit(1.0))

CASES = {
    "1 Laplace, correct": (laplace(1.0), NUMBERS, PrivacyClaim(1.0), False),
    "2 Laplace, half the scale": (laplace(2.0), NUMBERS, PrivacyClaim(1.0), True),
    "3 Laplace, truly 1.1": (laplace(1.1), NUMBERS, PrivacyClaim(1.0), True),
    "4 classical Gaussian at 16, declared": (
        Gaussian(classical_sigma(16.0)),
        NUMBERS,
        PrivacyClaim(16.0, DELTA),
        True,
    ),
    "5 sparse vector without query noise": (
        from_sampler(above_threshold_without_query_noise),
        SWAPPED,
        PrivacyClaim(1.0),
        True,
    ),
    "6 noise for half the sensitivity, declared": (
        Gaussian(analytic_gaussian_sigma(1.0, DELTA), dtype="float32"),
        EMBEDDINGS,
        PrivacyClaim(1.0, DELTA),
        True,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_right_on_every_seed(case):
    mechanism, neighbours, claim, broken = CASES[case]
    expected = Verdict.VIOLATION if broken else Verdict.CONSISTENT
    verdicts = [audit(mechanism, neighbours, claim, seed=seed).verdict for seed in SEEDS]
    assert verdicts == [expected] * len(SEEDS)


def test_case_6_from_the_sampler_alone():
    """Without the declaration the direction has to be learnt from the outputs."""
    sigma = np.float32(analytic_gaussian_sigma(1.0, DELTA))
    sampler = from_sampler(
        lambda centre, n, rng: centre + sigma * rng.standard_normal((n, DIMENSION), dtype=np.float32)
    )
    results = [audit(sampler, EMBEDDINGS, PrivacyClaim(1.0, DELTA), seed=seed) for seed in seeds(20)]
    assert all(result.violated for result in results)


def test_case_4_undeclared_is_inconclusive_and_says_what_would_decide_it():
    sigma = classical_sigma(16.0)
    sampler = from_sampler(lambda d, n, rng: d + sigma * rng.standard_normal(n))
    result = audit(sampler, NUMBERS, PrivacyClaim(16.0, DELTA))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.max_detectable_epsilon == pytest.approx(10.72, abs=0.05)
    assert "trials per side" in result.reason
