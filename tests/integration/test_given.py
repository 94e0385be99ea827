"""Under Hypothesis: one error probability for all examples, no Flaky, and a readable first failure."""

import re

HEAD = """
from hypothesis import assume, example, given, settings, strategies as st
"""


def test_a_hundred_examples_of_a_tight_mechanism_pass_and_are_never_flaky(audits):
    run = audits(
        HEAD
        + """
@privacy_audit(epsilon=1.0)
@settings(max_examples=100, database=None)
@given(st.integers(0, 10**6))
def test_it(privacy_auditor, offset):
    privacy_auditor.check(LaplaceSum(1.0), ((float(offset),), (offset + 1.0,)))
""",
        trials=500,
    )
    run.result.assert_outcomes(passed=1)
    (row,) = run.rows
    assert 80 <= row.configurations <= 100  # some versions of Hypothesis repeat themselves
    assert "Flaky" not in run.result.stdout.str()


def test_every_example_gets_its_share(audits):
    run = audits(
        HEAD
        + """
@privacy_audit(epsilon=1.0, max_checks=2)
@settings(max_examples=5, database=None)
@example(10**6)
@example(10**7)
@given(st.integers(0, 10**5))
def test_it(privacy_auditor, offset):
    for place, epsilon in enumerate((1.0, 0.9), start=1):
        result = privacy_auditor.check(LaplaceSum(epsilon), ((float(offset),), (offset + 1.0,)))
        share = 0.001 / (2 * (2 * 5 + 2)) * 6 / (np.pi**2 * place**2)
        assert 1 - result.confidence == pytest.approx(share, rel=1e-9)
"""
    )
    run.result.assert_outcomes(passed=1)


def test_shrinking_finds_the_smallest_failure_and_names_the_first(audits):
    run = audits(
        HEAD
        + """
@privacy_audit(epsilon=1.0)
@settings(max_examples=30, database=None)
@given(st.integers(1, 100))
def test_it(privacy_auditor, partitions):
    understated = 1.0 if partitions < 7 else 2.0 + partitions / 100
    privacy_auditor.check(LaplaceSum(1.0, understated=understated), PAIR)
"""
    )
    run.result.assert_outcomes(failed=1)
    text = run.result.stdout.str()
    assert "Flaky" not in text
    run.result.stdout.fnmatch_lines(
        [
            "E *PrivacyViolation: epsilon >= * > 1 claimed (delta=0, 99.9% confidence)",
            "E *LaplaceSum(epsilon=1.0, understated=2.07), *",
            "E *the confidence covers all of at most 60 examples (max_examples=30, 0 explicit)",
            "E *first failing configuration: LaplaceSum(epsilon=1.0, understated=*): epsilon >= * > 1 claimed*",
            "E *reproduce: pytest test_it.py::test_it --snapaudit-seed=0 --snapaudit-trials=2000",
            "E *privacy_auditor=privacy_auditor,",
            "E *partitions=7,",
        ]
    )
    first = re.search(r"first failing configuration: LaplaceSum\(epsilon=1.0, understated=([\d.]+)\)", text)
    assert float(first.group(1)) > 2.07


def test_failures_of_the_test_itself_shrink_without_exhausting_the_budget(audits):
    run = audits(
        HEAD
        + """
@privacy_audit(epsilon=1.0)
@settings(max_examples=5, database=None)
@given(st.lists(st.integers(0, 10**6), min_size=1))
def test_it(privacy_auditor, values):
    neighbours = ((0.0, *map(float, values)), (1.0, *map(float, values)))
    privacy_auditor.check(LaplaceSum(1.0), neighbours)
    assert sum(values) < 100
""",
        trials=200,
    )
    run.result.assert_outcomes(failed=1)
    assert "BudgetExceeded" not in run.result.stdout.str()
    assert "Flaky" not in run.result.stdout.str()
    run.result.stdout.fnmatch_lines(["E *values=[[]100],"])


def test_two_checks_in_an_example_must_be_declared(audits):
    run = audits(
        HEAD
        + """
@privacy_audit(epsilon=1.0)
@settings(max_examples=10, database=None)
@given(st.integers(0, 5))
def test_it(privacy_auditor, offset):
    for epsilon in (1.0, 0.9):
        privacy_auditor.check(LaplaceSum(epsilon), ((float(offset),), (offset + 1.0,)))
"""
    )
    run.result.assert_outcomes(failed=1)
    assert "Flaky" not in run.result.stdout.str()
    run.result.stdout.fnmatch_lines(
        [
            "*BudgetExceeded: one Hypothesis example checks 2 different configurations, but its error probability is "
            "shared by max_checks=1. Declare them: @privacy_audit(max_checks=2). *"
        ]
    )


def test_more_examples_than_declared_are_an_error(audits):
    run = audits(
        HEAD
        + """
@privacy_audit(epsilon=1.0)
@settings(max_examples=4, database=None, suppress_health_check=list(__import__("hypothesis").HealthCheck))
@given(st.integers(0, 10**6))
def test_it(privacy_auditor, offset):
    privacy_auditor.check(LaplaceSum(1.0), ((float(offset),), (offset + 1.0,)))
    assume(False)
""",
        trials=200,
    )
    run.result.assert_outcomes(failed=1)
    assert "Flaky" not in run.result.stdout.str()
    run.result.stdout.fnmatch_lines(
        [
            "*BudgetExceeded: more than 8 Hypothesis examples check a new configuration, but the error probability "
            "is shared by N = 2 x max_examples + explicit examples = 2 x 4 + 0. Call assume() before check(), *"
        ]
    )


def test_repeated_configurations_cost_nothing(audits):
    run = audits(
        HEAD
        + """
AUDITED = []

@privacy_audit(epsilon=1.0)
@settings(max_examples=50, database=None)
@given(st.booleans(), st.integers())
def test_it(privacy_auditor, flag, unused):
    AUDITED.append(privacy_auditor.check(LaplaceSum(1.0 if flag else 0.9), PAIR))

def test_count():
    assert len(AUDITED) == 50
    assert len({id(result) for result in AUDITED}) == 2
"""
    )
    run.result.assert_outcomes(passed=2)
    assert run.rows[0].configurations == 2


def test_the_deadline_is_lifted_from_audited_tests_only(audits):
    run = audits(
        HEAD
        + """
import time

SLOW = [0.3]

@privacy_audit(epsilon=1.0)
@settings(max_examples=2, deadline=150, database=None)
@given(st.integers(0, 10**6))
def test_audit(privacy_auditor, offset):
    assert settings().deadline is None
    def slow_once(dataset, n, rng):
        time.sleep(SLOW.pop() if SLOW else 0)
        return dataset + rng.laplace(size=n)
    privacy_auditor.check(from_sampler(slow_once), (float(offset), offset + 1.0))
    assert not SLOW

class TestClass:
    @privacy_audit(epsilon=1.0)
    @given(st.integers(0, 1))
    def test_method(self, privacy_auditor, offset):
        assert settings().deadline is None
        privacy_auditor.check(LaplaceSum(1.0), PAIR)

@settings(max_examples=2, deadline=150, database=None)
@given(st.just(0))
def test_other(offset):
    time.sleep(0.3)
""",
        trials=200,
    )
    run.result.assert_outcomes(passed=2, failed=1)
    run.result.stdout.fnmatch_lines(["*DeadlineExceeded*"])


def test_given_called_inside_a_test_shares_with_the_checks_around_it(audits):
    run = audits(
        HEAD
        + """
def conforms(privacy_auditor, epsilon):
    @settings(max_examples=4, database=None)
    @given(st.integers(0, 10**6))
    def body(offset):
        privacy_auditor.check(LaplaceSum(epsilon), ((float(offset),), (offset + 1.0,)))

    body()

@privacy_audit(epsilon=1.0, max_checks=3)
def test_declared(privacy_auditor):
    conforms(privacy_auditor, 1.0)
    conforms(privacy_auditor, 0.9)
    result = privacy_auditor.check(LaplaceSum(1.0), PAIR)
    assert 1 - result.confidence == pytest.approx(0.001 / 3)

@privacy_audit(epsilon=1.0)
def test_undeclared(privacy_auditor):
    privacy_auditor.check(LaplaceSum(1.0), PAIR)
    conforms(privacy_auditor, 1.0)
"""
    )
    run.result.assert_outcomes(passed=1, failed=1)
    run.result.stdout.fnmatch_lines(
        [
            "*BudgetExceeded: the checks of this test need 1.* times its error probability: max_checks=1 must cover *"
        ]
    )


def test_the_example_database_replays_a_failure_to_the_same_verdict(audits):
    suite = (
        HEAD
        + """
@privacy_audit(epsilon=1.0)
@settings(max_examples=30)
@given(st.integers(1, 100))
def test_it(privacy_auditor, partitions):
    privacy_auditor.check(LaplaceSum(1.0, understated=1.0 if partitions < 7 else 2.0), PAIR)
"""
    )
    first, second = audits(suite), audits(suite)
    bounds = [run.rows[0].epsilon_lower for run in (first, second)]
    assert bounds[0] == bounds[1] > 1.0
    assert "Flaky" not in second.result.stdout.str()
    second.result.stdout.fnmatch_lines(["E *partitions=7,"])
