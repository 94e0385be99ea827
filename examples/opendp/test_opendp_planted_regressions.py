"""Measurements that keep the map of the original and lose what it rests on: the suite has to notice.

A user-defined measurement takes its function from one measurement and its promise from another.
"""

import math

import opendp.prelude as dp
import pytest

from pytest_snapaudit import PrivacyViolation, privacy_audit
from pytest_snapaudit.adapters.opendp import from_measurement

dp.enable_features("honest-but-curious")
pytestmark = [privacy_audit(), pytest.mark.xfail(strict=True, raises=PrivacyViolation)]

WHOLE = dp.atom_domain(T=int), dp.absolute_distance(T=int)
REALS = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
TWO = dp.vector_domain(dp.atom_domain(T=int), size=2)
FOUR = dp.vector_domain(dp.atom_domain(T=int), size=4)


def behaves_like(other, original):
    """A copy of ``original`` whose outputs come from ``other``."""
    return dp.m.make_user_measurement(*original.input_space, original.output_measure, other, original.map)


@pytest.mark.parametrize("noise", [dp.m.make_laplace, dp.m.make_geometric], ids=["laplace", "geometric"])
def test_half_the_noise(privacy_auditor, noise):
    halved = behaves_like(noise(*WHOLE, scale=0.5), original=noise(*WHOLE, scale=1.0))
    privacy_auditor.check(from_measurement(halved, d_in=1), (0, 1))


def test_half_the_gaussian_noise(privacy_auditor):
    halved = behaves_like(
        dp.m.make_gaussian(*WHOLE, scale=1.0), original=dp.m.make_gaussian(*WHOLE, scale=2.0)
    )
    privacy_auditor.check(from_measurement(halved, d_in=2, delta=1e-3), (0, 2))


def test_nothing_is_clamped(privacy_auditor):
    noise = dp.m.then_laplace(scale=1.0)
    clamped = REALS >> dp.t.then_clamp((0.0, 1.0)) >> dp.t.then_sum() >> noise

    def unclamped(rows):
        return dp.m.make_laplace(
            dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=1.0
        )(sum(rows))

    privacy_auditor.check(from_measurement(behaves_like(unclamped, clamped), d_in=1), ([0.5], [0.5, 3.0]))


def test_sensitivity_of_the_wrong_norm(privacy_auditor):
    """Laplace noise for the l2 distance of two counts, sqrt(2), where their l1 distance is 2."""
    laplace = dp.m.make_laplace(TWO, dp.l1_distance(T=int), scale=1.0)
    wrong = dp.m.make_user_measurement(
        TWO, dp.l2_distance(T=float), dp.max_divergence(), laplace, lambda d_in: d_in
    )
    privacy_auditor.check(from_measurement(wrong, d_in=math.sqrt(2)), ([0, 0], [1, 1]))


def test_all_levels_of_the_tree_but_one_forgotten(privacy_auditor):
    tree = dp.t.make_b_ary_tree(FOUR, dp.l1_distance(T=int), leaf_count=4, branching_factor=2)
    laplace = tree >> dp.m.then_laplace(scale=3.0)
    forgotten = dp.m.make_user_measurement(
        *laplace.input_space, dp.max_divergence(), laplace, lambda d_in: d_in / 3.0
    )
    privacy_auditor.check(from_measurement(forgotten, d_in=3), ([0] * 4, [3, 0, 0, 0]))
