"""The Hypothesis settings profile ``snapaudit``: loaded by name, printed in the header, never active unasked."""

import subprocess
import sys

HEAD = """
from hypothesis import given, settings, strategies as st
"""

SUITE = (
    HEAD
    + """
@privacy_audit(epsilon=1.0)
@given(st.just(0))
def test_given(privacy_auditor, x):
    assert settings().max_examples == EXAMPLES and settings().deadline is None
    assert privacy_auditor.check(LaplaceSum(1.0), PAIR).n_trials == TRIALS

@privacy_audit(epsilon=1.0)
@settings(max_examples=3, database=None)
@given(st.just(0))
def test_fewer_examples(privacy_auditor, x):
    assert privacy_auditor.check(LaplaceSum(1.0), PAIR, n_trials=300).n_trials == 300
    assert privacy_auditor.measure(LaplaceSum(1.0), PAIR).n_trials == TRIALS

@privacy_audit(epsilon=1.0, n_trials=500)
def test_outside_given(privacy_auditor):
    assert privacy_auditor.check(LaplaceSum(1.0), PAIR).n_trials == 500
"""
)


def _suite(examples, trials):
    return SUITE.replace("EXAMPLES", str(examples)).replace("TRIALS", str(trials))


def test_by_option(explored):
    run = explored(_suite(100, 20_000))
    run.result.assert_outcomes(passed=3)
    run.result.stdout.fnmatch_lines(
        ["snapaudit: Hypothesis profile snapaudit: 100 examples per test, 20,000 trials per side in each"]
    )


def test_by_conftest(audits, pytester, hypothesis_state):
    pytester.makeconftest("from hypothesis import settings; settings.load_profile('snapaudit')")
    run = audits(_suite(100, 20_000), trials=None)
    run.result.assert_outcomes(passed=3)
    run.result.stdout.fnmatch_lines(["snapaudit: Hypothesis profile snapaudit: 100 examples per test, *"])


def test_under_xdist_workers_load_it_too(explored):
    run = explored(_suite(100, 20_000), "-n2")
    run.result.assert_outcomes(passed=3)


def test_the_session_may_say_how_many_trials(explored, pytester):
    pytester.makeini("[pytest]\nsnapaudit_trials = 700\n")
    run = explored(_suite(100, 700))
    run.result.assert_outcomes(passed=3)
    run.result.stdout.fnmatch_lines(
        [
            "snapaudit: *, 700 trials per side",
            "snapaudit: Hypothesis profile snapaudit: 100 examples per test",
        ]
    )


def test_a_failure_is_reproduced_under_the_profile(explored):
    run = explored(
        HEAD
        + """
@privacy_audit(epsilon=1.0)
@settings(database=None)
@given(st.integers(0, 9))
def test_it(privacy_auditor, offset):
    privacy_auditor.check(LaplaceSum(1.0, understated=3.0), ((float(offset),), (offset + 1.0,)))
"""
    )
    run.result.assert_outcomes(failed=1)
    run.result.stdout.fnmatch_lines(
        [
            "E *reproduce: pytest test_it.py::test_it --snapaudit-seed=0 --hypothesis-profile=snapaudit",
            "E *@reproduce_failure(*",
        ]
    )


def test_unasked_nothing_changes(audits):
    run = audits(
        HEAD
        + """
def test_it():
    assert settings.get_current_profile_name() != "snapaudit"
    assert settings.get_profile("snapaudit").max_examples == 100
"""
    )
    run.result.assert_outcomes(passed=1)
    assert "Hypothesis profile snapaudit" not in run.result.stdout.str()


def test_a_profile_of_the_same_name_is_left_alone():
    code = (
        "from hypothesis import settings; settings.register_profile('snapaudit', max_examples=7); "
        "import pytest_snapaudit.strategies; assert settings.get_profile('snapaudit').max_examples == 7"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
