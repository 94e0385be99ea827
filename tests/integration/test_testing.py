"""The helpers for people who test their own use of the plugin."""

import re
import textwrap

import numpy as np

import pytest_snapaudit.testing
from pytest_snapaudit.testing import UNIT_NEIGHBOURS, LaplaceSum, run_audits


def test_the_documented_example_runs(pytester):
    example = pytest_snapaudit.testing.__doc__.split("and write::\n\n")[1]
    namespace = {}
    exec(textwrap.dedent(example), namespace)
    namespace["test_the_suite_notices_missing_noise"](pytester)


def test_results_come_from_xdist_workers_too(pytester):
    pytester.makepyfile(
        test_it="""
        from pytest_snapaudit.testing import UNIT_NEIGHBOURS, LaplaceSum

        def test_it(privacy_auditor):
            privacy_auditor.check(LaplaceSum(2.0), UNIT_NEIGHBOURS, epsilon=1.0)
        """
    )
    run = run_audits(pytester, "-n1", "--snapaudit-trials=1000")
    assert run.verdicts() == {"test_it.py::test_it": "VIOLATION"}
    assert re.fullmatch(r"LaplaceSum\(.*\)", run.rows[0].name)


def test_the_mechanism_has_the_law_it_states():
    rng = np.random.default_rng(0)
    mechanism = LaplaceSum(epsilon=2.0, understated=2.0)
    assert mechanism.scale == 0.25
    clean = [mechanism.clean(data, rng) for data in UNIT_NEIGHBOURS]
    assert clean[1] - clean[0] == 1.0
    noise = mechanism.privatize(np.zeros(200_000), rng)
    # E|X| = scale for a Laplace law, with standard error scale / sqrt(n); the bound is 5 of them
    assert abs(np.abs(noise).mean() - 0.25) < 5 * 0.25 / np.sqrt(200_000)
