"""Choices: randomised response, noisy max, top k, quantiles."""

import math

import opendp.prelude as dp
import pytest

from pytest_snapaudit import privacy_audit
from pytest_snapaudit.adapters.opendp import from_measurement

pytestmark = privacy_audit()
SCORES = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
REALS = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()


def test_randomised_response(privacy_auditor):
    sampler = from_measurement(dp.m.make_randomized_response_bool(prob=0.75), d_in=1)
    assert sampler.claim.epsilon == pytest.approx(math.log(3))
    privacy_auditor.check(sampler, (False, True), stop_early=True)


def test_randomised_response_of_three(privacy_auditor):
    response = dp.m.make_randomized_response([0, 1, 2], prob=0.6)
    privacy_auditor.check(from_measurement(response, d_in=1), (0, 2), stop_early=True)


@pytest.mark.parametrize(
    ("measure", "delta"),
    [(dp.max_divergence(), None), (dp.zero_concentrated_divergence(), 1e-4)],
    ids=["permute-and-flip", "exponential"],
)
def test_noisy_max(privacy_auditor, measure, delta):
    noisy_max = dp.m.make_noisy_max(*SCORES, measure, scale=2.0)
    privacy_auditor.check(from_measurement(noisy_max, d_in=1, delta=delta), ([3, 5], [4, 4]), stop_early=True)


def test_noisy_top_two(privacy_auditor):
    top = dp.m.make_noisy_top_k(*SCORES, dp.max_divergence(), k=2, scale=4.0)
    privacy_auditor.check(from_measurement(top, d_in=1), ([3, 5, 5], [4, 4, 4]), stop_early=True)


def test_median(privacy_auditor):
    median = dp.m.make_private_quantile(
        *REALS, dp.max_divergence(), candidates=[0.0, 1.0, 2.0, 3.0], alpha=0.5, scale=1.0
    )
    privacy_auditor.check(
        from_measurement(median, d_in=1), ([0.5, 1.5, 2.5], [0.5, 1.5, 2.5, 2.5]), stop_early=True
    )
