"""Tools and models: whole releases on small datasets, one person's record replaced."""

import numpy as np
import pytest
from diffprivlib import models, tools

from pytest_snapaudit import privacy_audit
from pytest_snapaudit.adapters.diffprivlib import from_model, from_tool

pytestmark = [
    privacy_audit(n_trials=4_000),
    pytest.mark.filterwarnings("error::diffprivlib.utils.PrivacyLeakWarning"),
]
REPLACED = np.array([0.0, 0.5, 0.0]), np.array([0.0, 0.5, 1.0])


@pytest.mark.parametrize("tool", [tools.sum, tools.mean, tools.var], ids=lambda tool: tool.__name__)
def test_moments(privacy_auditor, tool):
    sampler = from_tool(tool, epsilon=1.0, bounds=(0, 1), seeded=True)
    privacy_auditor.check(sampler, REPLACED, stop_early=True)


def test_values_beyond_the_bounds_are_clipped(privacy_auditor):
    beyond = np.array([0.0, 0.5, 0.0]), np.array([0.0, 0.5, 1000.0])
    privacy_auditor.check(
        from_tool(tools.mean, epsilon=1.0, bounds=(0, 1), seeded=True), beyond, stop_early=True
    )


def test_count(privacy_auditor):
    privacy_auditor.check(from_tool(tools.count_nonzero, epsilon=1.0, seeded=True), REPLACED, stop_early=True)


def test_median(privacy_auditor):
    sampler = from_tool(tools.median, epsilon=1.0, bounds=(0, 1), seeded=True)
    privacy_auditor.check(sampler, REPLACED, stop_early=True)


def test_histogram(privacy_auditor):
    """One added record: a replaced one is two changes."""
    sampler = from_tool(tools.histogram, epsilon=1.0, bins=3, range=(0, 1), seeded=True)
    privacy_auditor.check(sampler, (np.array([0.1, 0.5]), np.array([0.1, 0.5, 0.9])), stop_early=True)


LINE = np.array([[-1.0], [0.0], [1.0]])


def test_linear_regression(privacy_auditor):
    """Bounds around 0, for which the sensitivity is right."""
    model = models.LinearRegression(epsilon=1.0, bounds_X=(-1, 1), bounds_y=(-1, 1), fit_intercept=False)
    sampler = from_model(model, lambda fitted: fitted.coef_, seeded=True)
    privacy_auditor.check(sampler, ((LINE, [-1, 0, 1]), (LINE, [-1, 0, -1])), n_trials=500, stop_early=True)


def test_standard_scaler(privacy_auditor):
    scaler = models.StandardScaler(epsilon=1.0, bounds=(-1, 1))
    sampler = from_model(scaler, lambda fitted: (fitted.mean_, fitted.var_), seeded=True)
    privacy_auditor.check(sampler, ((LINE,), (-np.abs(LINE),)), n_trials=500, stop_early=True)
