"""Sparse vector (Lyu, Su and Li 2017): which counting query is the first one above a threshold of 10."""

import numpy as np
import pytest

from pytest_snapaudit import PrivacyViolation, from_sampler, privacy_audit

pytestmark = privacy_audit(epsilon=1.0)
NEIGHBOURS = (np.array([10, 10, 11, 11]), np.array([11, 11, 10, 10]))  # answers, each one count apart


def stops_at_the_first(answers, n, rng):
    threshold = 10 + rng.laplace(0, 2 / 1.0, (n, 1))
    above = answers + rng.laplace(0, 4 / 1.0, (n, 4)) >= threshold
    return np.where(above.any(axis=1), above.argmax(axis=1), -1)


def test_one_answer_then_stop(privacy_auditor):
    privacy_auditor.check(from_sampler(stops_at_the_first), NEIGHBOURS)


def noise_on_the_threshold_alone(answers, n, rng):
    """Algorithm 5 of the survey; its privacy loss is infinite."""
    return answers >= 10 + rng.laplace(0, 1 / 1.0, (n, 1))


@pytest.mark.xfail(strict=True, raises=PrivacyViolation)
def test_every_answer_under_one_noisy_threshold(privacy_auditor):
    privacy_auditor.check(from_sampler(noise_on_the_threshold_alone), NEIGHBOURS)
