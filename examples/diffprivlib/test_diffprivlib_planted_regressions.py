"""Copies of diffprivlib's mechanisms and tools in which one thing is broken: the suite has to notice."""

import numpy as np
import pytest
from diffprivlib import mechanisms as dp
from diffprivlib import tools
from diffprivlib.tools import utils

from pytest_snapaudit import PrivacyViolation, privacy_audit
from pytest_snapaudit.adapters.diffprivlib import from_tool

pytestmark = [privacy_audit(), pytest.mark.xfail(strict=True, raises=PrivacyViolation)]
REPLACED = np.array([0.0, 0.5, 0.0]), np.array([0.0, 0.5, 1.0])


class HalfLaplace(dp.Laplace):
    def randomise(self, value):
        return value + (super().randomise(value) - value) / 2


class HalfGaussian(dp.GaussianAnalytic):
    def randomise(self, value):
        return value + (super().randomise(value) - value) / 2


class LooseGeometric(dp.Geometric):
    def __init__(self, *, epsilon, sensitivity, random_state=None):
        super().__init__(epsilon=2 * epsilon, sensitivity=sensitivity, random_state=random_state)
        self._scale, self.epsilon = self._scale, epsilon  # noise for twice the epsilon that is claimed


def test_half_the_laplace_noise(privacy_auditor):
    privacy_auditor.check(HalfLaplace(epsilon=1, sensitivity=1), (0.0, 1.0))


def test_half_the_gaussian_noise(privacy_auditor):
    privacy_auditor.check(HalfGaussian(epsilon=1, delta=1e-3, sensitivity=1), (0.0, 1.0))


def test_noise_for_another_epsilon(privacy_auditor):
    privacy_auditor.check(LooseGeometric(epsilon=1, sensitivity=1), (0, 1))


def test_no_clipping(privacy_auditor, monkeypatch):
    monkeypatch.setattr(utils, "clip_to_bounds", lambda array, bounds: array)
    beyond = np.array([0.0, 0.5, 0.0]), np.array([0.0, 0.5, 5.0])
    privacy_auditor.check(from_tool(tools.mean, epsilon=1.0, bounds=(0, 1), seeded=True), beyond)


def test_sensitivity_of_the_wrong_norm(privacy_auditor):
    """Four sums share the noise of the l2 norm of their changes, 2, where Laplace noise needs the l1 norm, 4."""
    laplace = dp.Laplace(epsilon=1, sensitivity=2)

    def four_sums(rows, epsilon):
        laplace.epsilon = epsilon
        return [laplace.randomise(float(total)) for total in rows.sum(axis=0)]

    privacy_auditor.check(from_tool(four_sums, epsilon=1.0), (np.zeros((1, 4)), np.ones((1, 4))))


def test_a_mean_with_the_sensitivity_of_one_row_fewer(privacy_auditor):
    def careless_mean(rows, epsilon, **given):
        return tools.mean(np.append(rows, rows), epsilon=epsilon, **given)  # twice the rows, twice the change

    privacy_auditor.check(from_tool(careless_mean, epsilon=1.0, bounds=(0, 1), seeded=True), REPLACED)
