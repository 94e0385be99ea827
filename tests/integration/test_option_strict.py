"""``--snapaudit-strict`` and its ini twin."""

SUITE = """
@privacy_audit(epsilon=20.0)
def test_out_of_reach(privacy_auditor):
    privacy_auditor.check(LaplaceSum(20.0), PAIR)

@privacy_audit(epsilon=1.0)
def test_within_reach(privacy_auditor):
    privacy_auditor.check(LaplaceSum(1.0), PAIR)
"""


def test_an_inconclusive_audit_warns_and_stands_out(audits):
    run = audits(SUITE)
    run.result.assert_outcomes(passed=2, warnings=1)
    assert run.verdicts() == {
        "test_it.py::test_out_of_reach": "INCONCLUSIVE",
        "test_it.py::test_within_reach": "CONSISTENT",
    }
    run.result.stdout.fnmatch_lines(
        [
            "*SnapauditWarning: inconclusive: epsilon >= * against 20 claimed (delta=0); at most * was detectable",
            "*reproduce: pytest test_it.py::test_out_of_reach --snapaudit-seed=0 --snapaudit-trials=2000",
            "verdict *",
            "INCONCLUSIVE *(20, 0)*test_it.py::test_out_of_reach*",
            "CONSISTENT *(1, 0)*test_it.py::test_within_reach*",
        ]
    )


def test_the_warning_points_at_the_line_of_the_test(audits):
    run = audits(SUITE)
    run.result.stdout.fnmatch_lines(["*test_it.py:*: SnapauditWarning: *"])


def test_strict_fails_the_test(audits):
    run = audits(SUITE, "--snapaudit-strict")
    run.result.assert_outcomes(passed=1, failed=1)
    run.result.stdout.fnmatch_lines(
        [
            "snapaudit: *, strict",
            "*InconclusiveAudit: inconclusive: epsilon >= * against 20 claimed (delta=0); at most *",
            "FAILED test_it.py::test_out_of_reach - InconclusiveAudit: inconclusive: *",
        ]
    )


def test_the_ini_twin_is_strict_too(audits, pytester):
    pytester.makeini("[pytest]\nsnapaudit_strict = true\n")
    audits(SUITE).result.assert_outcomes(passed=1, failed=1)


def test_warnings_as_errors_fail_every_time_the_configuration_is_met(audits):
    suite = """
    from hypothesis import given, settings, strategies as st

    @privacy_audit(epsilon=20.0)
    @settings(max_examples=5, database=None)
    @given(st.integers(0, 3))
    def test_it(privacy_auditor, unused):
        privacy_auditor.check(LaplaceSum(20.0), PAIR)
    """
    run = audits(suite, "-W", "error::pytest_snapaudit.SnapauditWarning")
    run.result.assert_outcomes(failed=1)
    assert "Flaky" not in run.result.stdout.str()
