"""Faults of the released OpenDP (found in 0.15.1 and in 0.16.0): each breaks the claim of the library itself.

The tests are strict expected violations: they start to fail with the release that repairs a fault.
"""

import opendp.prelude as dp
import pytest

from pytest_snapaudit import PrivacyViolation, privacy_audit
from pytest_snapaudit.adapters.opendp import from_measurement

pytestmark = [privacy_audit(), pytest.mark.xfail(strict=True, raises=PrivacyViolation)]
NAMES = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()


def counts(size):
    return dp.vector_domain(dp.atom_domain(T=int), size=size)


def test_tree_under_l2(privacy_auditor):
    """A change of every leaf piles up in the root: sqrt(16² + 16) where the map says 2 · 4.

    https://github.com/opendp/opendp/issues/2924
    """
    tree = dp.t.make_b_ary_tree(counts(16), dp.l2_distance(T=int), leaf_count=16, branching_factor=16)
    release = from_measurement(tree >> dp.m.then_gaussian(scale=8.0), d_in=4, delta=1e-6)
    privacy_auditor.check(release, ([0] * 16, [1] * 16))


def test_tree_at_the_end_of_the_integers(privacy_auditor):
    """The sum of 2³¹ − 1 and 1 wraps around.

    https://github.com/opendp/opendp/issues/2925
    """
    tree = dp.t.make_b_ary_tree(counts(2), dp.l1_distance(T=int), leaf_count=2, branching_factor=2)
    release = from_measurement(tree >> dp.m.then_laplace(scale=2.0), d_in=1)
    privacy_auditor.check(release, ([2**31 - 1, 0], [2**31 - 1, 1]))


def test_thresholded_whole_counts(privacy_auditor):
    """A noisy count equal to the threshold is released, but its probability is missing from delta.

    https://github.com/opendp/opendp/issues/2922
    """
    release = NAMES >> dp.t.then_count_by() >> dp.m.then_laplace_threshold(scale=1.0, threshold=4)
    privacy_auditor.check(from_measurement(release, d_in=1), ([], ["eve"]))


def test_thresholded_whole_counts_with_gaussian_noise(privacy_auditor):
    """The same for Gaussian noise.

    https://github.com/opendp/opendp/issues/2922
    """
    release = dp.m.make_gaussian_threshold(
        dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=int)),
        dp.l02inf_distance(dp.absolute_distance(T=int)),
        scale=1.0,
        threshold=3,
    )
    privacy_auditor.check(from_measurement(release, d_in=(1, 1, 1), delta=0.035), ({}, {"eve": 1}))
