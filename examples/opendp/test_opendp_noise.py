"""Additive noise, continuous and discrete: Laplace, Gaussian, geometric, canonical; their composition."""

import opendp.prelude as dp
import pytest

from pytest_snapaudit import privacy_audit
from pytest_snapaudit.adapters.opendp import from_measurement

pytestmark = privacy_audit()
REAL = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
WHOLE = dp.atom_domain(T=int), dp.absolute_distance(T=int)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_laplace(privacy_auditor, epsilon):
    laplace = dp.m.make_laplace(*REAL, scale=1 / epsilon)
    privacy_auditor.check(from_measurement(laplace, d_in=1.0), (0.0, 1.0), stop_early=True)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_discrete_laplace(privacy_auditor, epsilon):
    laplace = dp.m.make_laplace(*WHOLE, scale=1 / epsilon)
    privacy_auditor.check(from_measurement(laplace, d_in=1), (10, 11), stop_early=True)


def test_geometric_in_constant_time(privacy_auditor):
    geometric = dp.m.make_geometric(*WHOLE, scale=1.0, bounds=(0, 20))
    privacy_auditor.check(from_measurement(geometric, d_in=1), (0, 1), n_trials=10_000, stop_early=True)


@pytest.mark.parametrize(("space", "far"), [(REAL, 2.0), (WHOLE, 2)], ids=["real", "whole"])
def test_gaussian_claims_a_curve(privacy_auditor, space, far):
    gaussian = dp.m.make_gaussian(*space, scale=4.0)
    sampler = from_measurement(gaussian, d_in=far, delta=1e-3)
    by_the_library = dp.c.make_zCDP_to_approxDP(gaussian).map(far)
    assert sampler.claim.epsilon == pytest.approx(by_the_library.epsilon(1e-3))
    assert sampler.claim_curve(0.5) == pytest.approx(by_the_library.delta(0.5))
    privacy_auditor.check(sampler, (0 * far, far), stop_early=True)


def test_gaussian_at_a_fixed_delta(privacy_auditor):
    gaussian = dp.m.make_gaussian(*WHOLE, scale=3.0)
    fixed = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian), delta=1e-3)
    privacy_auditor.check(from_measurement(fixed, d_in=3), (0, 3), stop_early=True)


def test_canonical_noise_is_tight(privacy_auditor):
    canonical = dp.m.make_canonical_noise(*REAL, d_in=1.0, d_out=(1.0, 0.05))
    privacy_auditor.check(from_measurement(canonical, d_in=1.0), (0.0, 1.0), stop_early=True)


def test_composition_adds_up(privacy_auditor):
    pair = dp.c.make_composition([dp.m.make_laplace(*REAL, scale=2.0), dp.m.make_laplace(*REAL, scale=1.0)])
    sampler = from_measurement(pair, d_in=1.0)
    assert sampler.claim.epsilon == pytest.approx(1.5)
    privacy_auditor.check(sampler, (0.0, 1.0), stop_early=True)
