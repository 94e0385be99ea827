"""Randomised response (Warner 1965): one person's yes or no, told truly three times in four."""

import math

import pytest

from pytest_snapaudit import PrivacyViolation, from_sampler, privacy_audit

pytestmark = privacy_audit(epsilon=math.log(3))  # 3/4 against 1/4


def else_the_opposite(truth, n, rng):
    return truth ^ (rng.random(n) >= 3 / 4)


def test_otherwise_the_opposite_is_told(privacy_auditor):
    privacy_auditor.check(from_sampler(else_the_opposite), (False, True))


def else_a_guess(truth, n, rng):
    return (truth & (rng.random(n) < 3 / 4)) | (rng.random(n) < 1 / 2)


@pytest.mark.xfail(strict=True, raises=PrivacyViolation)
def test_otherwise_a_guess_is_told(privacy_auditor):
    privacy_auditor.check(from_sampler(else_a_guess), (False, True))
