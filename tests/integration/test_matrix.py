"""One suite, every way to run it: the same verdicts, and never an internal error."""

import pytest

SUITE = """
from hypothesis import given, settings, strategies as st

pytestmark = privacy_audit(confidence=0.99)
GIVEN = settings(max_examples=5, deadline=None)

@pytest.mark.slow
@pytest.mark.xdist_group("laplace")
@privacy_audit(epsilon=1.0)
def test_tight(privacy_auditor):
    privacy_auditor.check(LaplaceSum(1.0), PAIR)

@privacy_audit(epsilon=1.0)
def test_broken(privacy_auditor):
    privacy_auditor.check(LaplaceSum(1.0, understated=2.0), PAIR)

@pytest.mark.xfail(strict=True, raises=PrivacyViolation)
@privacy_audit(epsilon=1.0)
def test_broken_expected(privacy_auditor):
    privacy_auditor.check(LaplaceSum(1.0, understated=2.0), PAIR)

@privacy_audit(epsilon=1.0)
@GIVEN
@given(st.integers(0, 9))
def test_above_given(privacy_auditor, offset):
    privacy_auditor.check(LaplaceSum(1.0), ((float(offset),), (offset + 1.0,)))

@GIVEN
@given(st.integers(0, 9))
@privacy_audit(epsilon=1.0)
def test_below_given(privacy_auditor, offset):
    privacy_auditor.check(LaplaceSum(1.0, understated=1.0 if offset < 2 else 3.0), PAIR)

@privacy_audit(epsilon=1.0)
class TestClass:
    def test_method(self, privacy_auditor):
        privacy_auditor.check(LaplaceSum(0.5), PAIR)

    @pytest.mark.parametrize(
        "understated", [1.0, pytest.param(3.0, marks=privacy_audit(epsilon=3.0)), pytest.param(4.0, id="a b")]
    )
    def test_parameters(self, privacy_auditor, understated):
        privacy_auditor.check(LaplaceSum(1.0, understated), PAIR)

@privacy_audit(epsilon=12.0)
def test_out_of_reach(privacy_auditor):
    privacy_auditor.check(LaplaceSum(12.0), PAIR)

def test_random_state_is_left_alone(privacy_auditor):
    import random
    noisy = from_callable(lambda d: sum(d) + np.random.laplace() + 0 * random.random())
    state = random.getstate(), np.random.get_state()[1].tolist()
    privacy_auditor.check(noisy, PAIR, epsilon=1.0)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == state

def test_vacuous(privacy_auditor):
    privacy_auditor.measure(LaplaceSum(1.0), PAIR, epsilon=1.0)
"""

EXPECTED = {
    "test_tight": "CONSISTENT",
    "test_broken": "VIOLATION",
    "test_broken_expected": "VIOLATION",
    "test_above_given": "CONSISTENT",
    "test_below_given": "VIOLATION",
    "TestClass::test_method": "CONSISTENT",
    "TestClass::test_parameters[1.0]": "CONSISTENT",
    "TestClass::test_parameters[3.0]": "CONSISTENT",
    "TestClass::test_parameters[a b]": "VIOLATION",
    "test_out_of_reach": "INCONCLUSIVE",
    "test_random_state_is_left_alone": "CONSISTENT",
    "test_vacuous": "MEASURED",
}
OUTCOMES = {"failed": 4, "passed": 7, "xfailed": 1}
FIXED = (
    "test_tight",
    "test_broken",
    "TestClass::test_method",
    "TestClass::test_parameters[a b]",
    "test_out_of_reach",
)


def _bounds(run):
    """Bounds of the tests in which Hypothesis does not choose the configuration."""
    bounds = {row.nodeid.removeprefix("test_it.py::"): row.epsilon_lower for row in run.rows}
    return {name: bounds[name] for name in FIXED if name in bounds}


def _verdicts(run):
    return {nodeid.removeprefix("test_it.py::"): verdict for nodeid, verdict in run.verdicts().items()}


_PLAIN: dict[str, float] = {}


@pytest.fixture
def plain_bounds(audits, pytester):
    pytester.makeini("[pytest]\nmarkers = slow: takes long\n")
    if not _PLAIN:
        _PLAIN.update(_bounds(audits(SUITE)))
    return _PLAIN


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("-p", "no:cacheprovider"),
        ("-p", "no:terminal"),
        ("-p", "no:hypothesispytest"),
        ("-p", "randomly", "-p", "no:cacheprovider"),
        ("--reruns=1",),
        ("-n2",),
        ("-n2", "--dist=loadgroup", "-p", "randomly"),
    ],
    ids=" ".join,
)
def test_the_verdicts_do_not_depend_on_how_the_suite_is_run(audits, plain_bounds, args):
    run = audits(SUITE, *args)
    assert _verdicts(run) == EXPECTED
    assert _bounds(run) == plain_bounds
    text = run.result.stdout.str() + run.result.stderr.str()
    assert "INTERNALERROR" not in text
    assert "Flaky" not in text
    assert run.result.ret == pytest.ExitCode.TESTS_FAILED
    if "no:terminal" not in args:
        found = run.result.parseoutcomes()
        assert {outcome: found.get(outcome, 0) for outcome in OUTCOMES} == OUTCOMES
        assert found.get("rerun", 0) == (4 if "--reruns=1" in args else 0)
        run.result.stdout.fnmatch_lines(["*= privacy audits (seed 0, 99.9% confidence) =*", "verdict *"])


@pytest.mark.parametrize(
    ("args", "selected"),
    [
        (("-k", "tight or method"), ("test_tight", "TestClass::test_method")),
        (("-m", "slow"), ("test_tight",)),
        (("-m", "privacy_audit", "-k", "above_given"), ("test_above_given",)),
        (("test_it.py::TestClass::test_parameters[a b]",), ("TestClass::test_parameters[a b]",)),
    ],
    ids=" ".join,
)
def test_selected_tests_have_the_verdicts_they_have_in_the_whole_suite(audits, plain_bounds, args, selected):
    run = audits(SUITE, *args)
    assert _verdicts(run) == {name: EXPECTED[name] for name in selected}
    assert _bounds(run) == {name: plain_bounds[name] for name in selected if name in plain_bounds}


@pytest.mark.usefixtures("plain_bounds")
def test_collecting_audits_nothing(audits):
    run = audits(SUITE, "--co")
    assert run.rows == ()
    run.result.stdout.fnmatch_lines(["*<Function test_tight>", "*12 tests collected*"])
    assert "INTERNALERROR" not in run.result.stdout.str()


@pytest.mark.usefixtures("plain_bounds")
def test_the_printed_command_selects_the_failing_test(audits):
    run = audits(SUITE, "-k", "a and b and parameters")
    run.result.stdout.fnmatch_lines(
        ["*reproduce: pytest 'test_it.py::TestClass::test_parameters[[]a b]' --snapaudit-seed=0*"]
    )
