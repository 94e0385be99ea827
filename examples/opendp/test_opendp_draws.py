"""How outputs are drawn: many per call, in worker processes, from noise that no seed reproduces."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import opendp.prelude as dp
import pytest
from scipy.stats import chi2_contingency

from pytest_snapaudit import PrivacyClaim, privacy_audit
from pytest_snapaudit.adapters.opendp import from_measurement
from pytest_snapaudit.engine.stability import verdict_stability

WHOLE = dp.atom_domain(T=int), dp.absolute_distance(T=int)


def make_discrete_laplace():
    dp.enable_features("contrib")
    return dp.m.make_laplace(*WHOLE, scale=1.0)


def test_many_per_call_are_independent_draws_of_the_same_noise():
    laplace = make_discrete_laplace()
    composed = np.array(from_measurement(laplace, d_in=1).sample(0, 20_000, np.random.default_rng(0)))
    one_by_one = np.array([laplace(0) for _ in range(5_000)])
    bins = np.arange(-4.5, 5.0)
    table = [np.histogram(np.clip(drawn, -4, 4), bins)[0] for drawn in (composed, one_by_one)]
    assert chi2_contingency(table).pvalue > 1e-6
    neighbouring_correlation = np.corrcoef(composed[:-1], composed[1:])[0, 1]
    assert abs(neighbouring_correlation) < 5 / np.sqrt(len(composed))  # 5 standard errors


@privacy_audit()
def test_worker_processes_build_their_own_measurement(privacy_auditor):
    sampler = from_measurement(make_discrete_laplace, d_in=1)
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as executor:
        result = privacy_auditor.check(sampler, (0, 1), n_trials=5_000, executor=executor)
    assert result.epsilon_lower > 0.7


@privacy_audit()
def test_a_bare_measurement_lacks_a_distance(privacy_auditor):
    with pytest.raises(TypeError, match=r"check\(from_measurement\(measurement, d_in=1\)"):
        privacy_auditor.check(make_discrete_laplace(), (0, 1))
    privacy_auditor.check(from_measurement(make_discrete_laplace(), d_in=1), (0, 1), n_trials=1_000)


@privacy_audit()
def test_secure_noise_is_reported(privacy_auditor):
    result = privacy_auditor.check(from_measurement(make_discrete_laplace(), d_in=1), (0, 1), n_trials=1_000)
    assert "borderline verdict may change from run to run" in dict(result.diagnostics)["reproducibility"]


def test_and_a_verdict_that_is_not_borderline_does_not_flip():
    sampler = from_measurement(make_discrete_laplace(), d_in=1)
    found = verdict_stability(sampler, (0, 1), PrivacyClaim(0.5), repeats=5, n_trials=2_000)
    assert (found.violations, found.flips) == (5, 0.0)
