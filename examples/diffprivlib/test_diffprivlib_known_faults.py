"""Faults of the released diffprivlib 0.6.6, each a claim of the library itself that does not hold.

The tests are strict expected violations: they start to fail with the release that repairs a fault.
"""

import math

import numpy as np
import pytest
from diffprivlib import models, tools
from diffprivlib.models.linear_regression import _construct_regression_obj

from pytest_snapaudit import PrivacyViolation, from_callable, privacy_audit
from pytest_snapaudit.adapters.diffprivlib import from_model, from_tool

pytestmark = [privacy_audit(), pytest.mark.xfail(strict=True, raises=PrivacyViolation)]


def noisy_coefficients(bounds_x, epsilon):
    """What a fit without intercept adds noise to: the coefficients y², xy and x² of its objective."""

    def release(rows):
        x, y = rows
        ends = tuple(np.array([end], dtype=float) for end in bounds_x), (np.array([0.0]), np.array([1.0]))
        return _construct_regression_obj(x, y, *ends, epsilon=epsilon, alpha=0, random_state=None)[1]

    return from_callable(release, name=f"LinearRegression(epsilon={epsilon}, bounds_X={bounds_x})")


@privacy_audit(epsilon=3.0)
def test_linear_regression_between_2_and_3(privacy_auditor):
    """x² has noise for the square of the lower bound, 4; a record with x = 3 changes it by 9.

    https://github.com/IBM/differential-privacy-library/issues/105
    """
    two_records = np.array([[2.0], [3.0]]), np.array([1.0, 1.0])
    one_record = two_records[0][:1], two_records[1][:1]
    sampler = noisy_coefficients((2, 3), epsilon=3.0)
    privacy_auditor.check(sampler, (one_record, two_records), n_trials=30_000)


@privacy_audit(epsilon=1.0)
def test_linear_regression_between_0_and_3(privacy_auditor):
    """The square of the lower bound is 0: x² is released without noise, as the fitted model shows.

    https://github.com/IBM/differential-privacy-library/issues/105
    """
    model = models.LinearRegression(epsilon=1.0, bounds_X=(0, 3), bounds_y=(0, 1), fit_intercept=False)
    replaced = (np.array([[1.0], [1.0]]), np.zeros(2)), (np.array([[1.0], [3.0]]), np.zeros(2))
    sampler = from_model(model, lambda fitted: fitted._obj_coefs, seeded=True)
    privacy_auditor.check(sampler, replaced, n_trials=300)


@pytest.mark.parametrize("tool", [tools.mean, tools.sum, tools.median], ids=lambda tool: tool.__name__)
def test_nan_propagates(privacy_auditor, tool):
    """One NaN makes every output NaN.

    https://github.com/IBM/differential-privacy-library/issues/80
    """
    sampler = from_tool(tool, epsilon=1.0, bounds=(0, 1), seeded=True)
    privacy_auditor.check(sampler, (np.array([0.5, 0.5]), np.array([0.5, math.nan])), n_trials=300)


@pytest.mark.filterwarnings("ignore:invalid value encountered in divide")
def test_quantile_crashes(privacy_auditor):
    """All probabilities underflow to 0 when many rows are equal; one row replaced decides whether they do.

    https://github.com/IBM/differential-privacy-library/issues/107
    """
    equal = np.full(745, 0.5)
    sampler = from_tool(tools.median, epsilon=4.0, bounds=(0, 1), seeded=True)
    privacy_auditor.check(sampler, (np.append(equal, 1.0), np.append(equal, 0.5)), n_trials=700)
