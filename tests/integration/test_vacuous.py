"""A marked test that checks nothing fails, in its call phase; one that ends early for another reason does not."""


def test_no_check_is_a_failure_of_the_call(audits):
    run = audits(
        """
        @privacy_audit(epsilon=1.0)
        def test_nothing(privacy_auditor):
            pass

        @privacy_audit(epsilon=1.0)
        def test_measure_alone(privacy_auditor):
            assert privacy_auditor.measure(LaplaceSum(1.0), PAIR).epsilon_lower < 1.0

        @pytest.mark.xfail(strict=True, raises=VacuousAudit)
        @privacy_audit(epsilon=1.0)
        def test_expected():
            pass

        @pytest.mark.xfail(strict=True, raises=PrivacyViolation)
        @privacy_audit(epsilon=1.0)
        def test_another_failure_was_expected():
            pass
        """
    )
    run.result.assert_outcomes(failed=3, xfailed=1)
    run.result.stdout.fnmatch_lines(
        [
            "*VacuousAudit: test_it.py::test_nothing is marked privacy_audit but checked nothing: call "
            "privacy_auditor.check(mechanism, neighbours) in it (measure alone gates nothing), or remove the marker.",
            "FAILED test_it.py::test_nothing - VacuousAudit: *",
            "FAILED test_it.py::test_measure_alone - VacuousAudit: *",
            "FAILED test_it.py::test_another_failure_was_expected - VacuousAudit: *",
        ]
    )


def test_other_endings_are_left_alone(audits):
    run = audits(
        """
        import unittest

        @privacy_audit(epsilon=1.0)
        def test_skips():
            pytest.skip("no data")

        @privacy_audit(epsilon=1.0)
        def test_xfails():
            pytest.xfail("not yet")

        @privacy_audit(epsilon=1.0)
        def test_fails():
            raise OSError("disk")

        class TestCase(unittest.TestCase):
            @privacy_audit(epsilon=1.0)
            def test_skips(self):
                self.skipTest("no data")

        def test_unmarked(privacy_auditor):
            pass
        """
    )
    run.result.assert_outcomes(skipped=2, xfailed=1, failed=1, passed=1)
    assert "VacuousAudit" not in run.result.stdout.str()


def test_a_check_that_was_expected_to_fail_counts(audits):
    run = audits(
        """
        @privacy_audit(epsilon=1.0)
        def test_it(privacy_auditor):
            with pytest.raises(PrivacyViolation) as caught:
                privacy_auditor.check(LaplaceSum(1.0, understated=3.0), PAIR)
            assert caught.value.result.epsilon_lower > 1.0
        """
    )
    run.result.assert_outcomes(passed=1)
    assert run.verdicts() == {"test_it.py::test_it": "VIOLATION"}


def test_a_check_in_a_fixture_of_the_test_counts(audits):
    run = audits(
        """
        @pytest.fixture
        def audited(privacy_auditor):
            return privacy_auditor.check(LaplaceSum(1.0), PAIR)

        @privacy_audit(epsilon=1.0)
        def test_it(audited):
            assert audited.epsilon_lower < 1.0

        @pytest.fixture
        def broken(privacy_auditor):
            return privacy_auditor.check(LaplaceSum(1.0, understated=3.0), PAIR)

        @privacy_audit(epsilon=1.0)
        def test_broken(broken):
            pass
        """
    )
    run.result.assert_outcomes(passed=1, errors=1)
    assert run.verdicts() == {"test_it.py::test_it": "CONSISTENT", "test_it.py::test_broken": "VIOLATION"}


def test_outside_a_test_the_auditor_says_so(audits, pytester):
    pytester.makeconftest(
        """
        import pytest

        KEPT = []

        @pytest.fixture(autouse=True)
        def keep(privacy_auditor):
            KEPT.append(privacy_auditor)

        def pytest_sessionfinish():
            for method in ("check", "measure"):
                with pytest.raises(RuntimeError) as caught:
                    getattr(KEPT[0], method)(None, None)
                print(caught.value)
        """
    )
    run = audits("def test_it(): pass", "-s")
    run.result.assert_outcomes(passed=1)
    run.result.stdout.fnmatch_lines(
        [
            f"*privacy_auditor.{method} was called while no test is running: call it in a test, or in a fixture "
            "while a test that uses it is being set up."
            for method in ("check", "measure")
        ]
    )
