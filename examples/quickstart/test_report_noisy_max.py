"""Report noisy max (Dwork and Roth 2014, section 3.3): which of five products is asked for most."""

import numpy as np
import pytest

from pytest_snapaudit import PrivacyViolation, from_sampler, privacy_audit

pytestmark = privacy_audit(epsilon=1.0)


def noisy_orders(orders, n, rng):
    return orders + rng.laplace(0, 2 / 1.0, (n, len(orders)))


def the_index(orders, n, rng):
    return noisy_orders(orders, n, rng).argmax(axis=1)


def test_which_is_the_largest(privacy_auditor):
    neighbours = np.array([3, 4, 4, 4, 4]), np.array([4, 3, 3, 3, 3])  # one customer moves every count by one
    privacy_auditor.check(from_sampler(the_index), neighbours)


def the_value(orders, n, rng):
    return noisy_orders(orders, n, rng).max(axis=1)


@pytest.mark.xfail(strict=True, raises=PrivacyViolation)
def test_how_large_it_is(privacy_auditor):
    neighbours = np.array([3, 3, 3, 3, 3]), np.array([4, 4, 4, 4, 4])
    privacy_auditor.check(from_sampler(the_value), neighbours)
