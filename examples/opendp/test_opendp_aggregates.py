"""Queries on rows: counts, bounded sums and means, histograms, thresholded counts of unknown keys."""

import opendp.prelude as dp
import pytest

from pytest_snapaudit import privacy_audit
from pytest_snapaudit.adapters.opendp import from_measurement

pytestmark = privacy_audit()
NAMES = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
REALS = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
WHOLES = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()


def test_count(privacy_auditor):
    count = NAMES >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0)
    privacy_auditor.check(from_measurement(count, d_in=1), (["ann"], ["ann", "bob"]), stop_early=True)


def test_bounded_sum_of_reals(privacy_auditor):
    total = REALS >> dp.t.then_clamp((0.0, 2.0)) >> dp.t.then_sum() >> dp.m.then_laplace(scale=2.0)
    privacy_auditor.check(from_measurement(total, d_in=1), ([0.5], [0.5, 100.0]), stop_early=True)


def test_bounded_sum_at_the_end_of_the_integers(privacy_auditor):
    most = 2**31 - 1
    total = WHOLES >> dp.t.then_clamp((0, most)) >> dp.t.then_sum() >> dp.m.then_laplace(scale=float(most))
    privacy_auditor.check(from_measurement(total, d_in=1), ([], [most]), stop_early=True)


def test_mean_of_a_known_number_of_rows(privacy_auditor):
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=3), dp.symmetric_distance()
    mean = space >> dp.t.then_clamp((0.0, 3.0)) >> dp.t.then_mean() >> dp.m.then_laplace(scale=1.0)
    sampler = from_measurement(mean, d_in=2)  # one row replaced
    assert sampler.claim.epsilon == pytest.approx(1.0)
    privacy_auditor.check(sampler, ([0.0, 1.0, 0.0], [0.0, 1.0, 3.0]), stop_early=True)


def test_histogram(privacy_auditor):
    histogram = (
        NAMES >> dp.t.then_count_by_categories(categories=["ann", "bob"]) >> dp.m.then_laplace(scale=1.0)
    )
    privacy_auditor.check(from_measurement(histogram, d_in=1), (["ann"], ["ann", "eve"]), stop_early=True)


def test_thresholded_real_counts_of_unknown_keys(privacy_auditor):
    threshold = dp.m.make_laplace_threshold(
        dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=float, nan=False)),
        dp.l01inf_distance(dp.absolute_distance(T=float)),
        scale=1.0,
        threshold=4.0,
    )
    privacy_auditor.check(from_measurement(threshold, d_in=(1, 1.0, 1.0)), ({}, {"eve": 1.0}), n_trials=5_000)
