"""Noisy count: how many visits a museum had, with Laplace noise for the visits of one person."""

from dataclasses import dataclass

import numpy as np
import pytest

from pytest_snapaudit import PrivacyViolation, privacy_audit

ONE_VISITOR_MORE = ([[1], [3, 4]], [[1], [3, 4], [2, 5]])  # days on which each person came


@dataclass(frozen=True)
class NoisyVisits:
    sensitivity: float
    deterministic = True

    def clean(self, people, rng):
        return sum(len(visits[:2]) for visits in people)  # at most two visits of a person count

    def privatize(self, clean, rng):
        return clean + rng.laplace(0, self.sensitivity / 1.0, np.shape(clean))


@privacy_audit(epsilon=1.0)
def test_noise_for_two_visits_per_person(privacy_auditor):
    privacy_auditor.check(NoisyVisits(sensitivity=2), ONE_VISITOR_MORE)


@pytest.mark.xfail(strict=True, raises=PrivacyViolation)
@privacy_audit(epsilon=1.0)
def test_noise_for_one_visit_per_person(privacy_auditor):
    privacy_auditor.check(NoisyVisits(sensitivity=1), ONE_VISITOR_MORE)
