"""What a session prints and writes: table, JUnit XML, reports that cross processes."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

SUITE = """
@privacy_audit(epsilon=1.0)
def test_tight(privacy_auditor):
    privacy_auditor.check(LaplaceSum(1.0), PAIR)

@privacy_audit(epsilon=1.0)
def test_broken(privacy_auditor):
    privacy_auditor.check(LaplaceSum(1.0, understated=2.0), PAIR)

@privacy_audit(epsilon=12.0, max_checks=2)
def test_two(privacy_auditor):
    privacy_auditor.check(LaplaceSum(12.0), PAIR)
    privacy_auditor.check(LaplaceSum(1.0), PAIR, epsilon=2.0)

def test_measured(privacy_auditor):
    privacy_auditor.measure(LaplaceSum(1.0), PAIR, epsilon=1.0)

def test_other():
    pass
"""


def test_the_table_is_sorted_worst_first(audits):
    run = audits(SUITE)
    lines = run.result.outlines
    start = next(i for i, line in enumerate(lines) if "privacy audits (seed 0, 99.9% confidence)" in line)
    table = lines[start + 1 : start + 7]
    assert table[0].split() == [
        "verdict",
        "claim",
        "epsilon",
        ">=",
        "view",
        "trials",
        "catches",
        "cost",
        "test",
    ]
    assert [line.split()[0] for line in table[1:]] == [
        "VIOLATION",
        "INCONCLUSIVE",
        "CONSISTENT",
        "CONSISTENT",
        "MEASURED",
    ]
    assert "test_it.py::test_broken  LaplaceSum(epsilon=1.0, understated=2.0)" in table[1]
    assert [row.nodeid.split("::")[1] for row in run.rows] == [
        "test_broken",
        "test_two",
        "test_tight",
        "test_two",
        "test_measured",
    ]


def test_a_session_without_audits_prints_no_table(audits):
    run = audits("def test_other(): pass")
    run.result.stdout.no_fnmatch_line("*privacy audits*")


def test_many_passing_audits_are_counted_unless_verbose(audits):
    suite = """
    @privacy_audit(epsilon=1.0)
    @pytest.mark.parametrize("case", range(45))
    def test_it(privacy_auditor, case):
        privacy_auditor.check(LaplaceSum(1.0), PAIR)
    """
    brief = audits(suite, trials=100)
    brief.result.stdout.fnmatch_lines(["... and 5 more, all passing or measured (-v shows them)"])
    assert sum(line.startswith("CONSISTENT") for line in brief.result.outlines) == 40
    full = audits(suite, "-v", trials=100)
    assert sum(line.startswith("CONSISTENT") for line in full.result.outlines) == 45
    full.result.stdout.no_fnmatch_line("... and *")


SECURE = """
import secrets
from pytest_snapaudit import from_callable

def survey(answer):
    return answer if secrets.randbelow(4) else not answer

@privacy_audit(epsilon=1.2, n_trials=1_000)
def test_secure(privacy_auditor):
    assert privacy_auditor.check(from_callable(survey), (True, False)).reproducible is False
"""


@pytest.mark.parametrize("secure", [True, False])
def test_noise_that_no_seed_repeats_has_a_footnote(audits, secure):
    run = audits(SECURE if secure else SUITE)
    starred = [line for line in run.result.outlines if line.startswith(("CONSISTENT* ", "* noise that no"))]
    assert len(starred) == (2 if secure else 0)
    assert [row.reproducible for row in run.rows] == [not secure] * len(run.rows)


@pytest.mark.parametrize("args", [(), ("-n1",), ("--reruns=1",)], ids=["plain", "xdist", "reruns"])
def test_junit_xml_carries_every_result_once(audits, pytester, args):
    audits(SUITE, "--junitxml=junit.xml", *args)
    found = {}
    for case in ET.parse(pytester.path / "junit.xml").iter("testcase"):
        properties = [(p.get("name"), p.get("value")) for p in case.iter("property")]
        assert len({name for name, _ in properties}) == len(properties)
        found[case.get("name")] = dict(properties)
    broken = found["test_broken"]
    assert broken["snapaudit.verdict"] == "VIOLATION"
    assert float(broken["snapaudit.epsilon_lower"]) > 1.0
    assert (broken["snapaudit.epsilon"], broken["snapaudit.delta"]) == ("1.0", "0.0")
    assert (broken["snapaudit.seed"], broken["snapaudit.view"]) == ("0", "black-box")
    two = found["test_two"]
    assert (two["snapaudit.verdict"], two["snapaudit[1].verdict"]) == ("INCONCLUSIVE", "CONSISTENT")
    assert found["test_measured"]["snapaudit.verdict"] == "MEASURED"
    assert found["test_other"] == {}


def test_user_properties_and_reports_hold_built_in_types_only(audits, pytester):
    pytester.makeconftest(
        """
        BUILT_IN = (str, int, float, bool, type(None))

        def leaves(value):
            if type(value) is dict:
                for key, item in value.items():
                    yield key
                    yield from leaves(item)
            elif type(value) in (list, tuple):
                for item in value:
                    yield from leaves(item)
            else:
                yield value

        def pytest_runtest_logreport(report):
            if report.when == "call":
                found = list(leaves(report.user_properties)) + list(leaves(getattr(report, "snapaudit", None)))
                assert found
                odd = [value for value in found if type(value) not in BUILT_IN]
                print("ODD", odd)
        """
    )
    run = audits(
        """
        def test_it(privacy_auditor):
            privacy_auditor.check(
                LaplaceSum(np.float64(1.0)), (np.zeros(2), np.eye(2)[0]), n_trials=np.int64(500),
                epsilon=np.float64(1.0), delta=np.float32(0.0), name="numbers",
            )
        """,
        "-s",
        trials=None,
    )
    run.result.assert_outcomes(passed=1)
    run.result.stdout.fnmatch_lines(["*ODD []*"])


def test_an_unused_plugin_loads_no_numerical_library(pytester):
    pytester.makepyfile(
        test_it="""
        def test_it(request):
            import sys
            loaded = {"numpy", "scipy"} & set(sys.modules)
            assert not loaded
        """
    )
    pytester.makepyfile(
        other="import pytest_snapaudit.plugin, sys; print(sorted({'numpy', 'hypothesis'} & set(sys.modules)))"
    )
    env_args = ["-p", "no:hypothesispytest", "-p", "no:randomly", "-p", "no:xdist", "-p", "no:benchmark"]
    result = pytester.runpytest_subprocess(*env_args)
    result.assert_outcomes(passed=1)
    printed = subprocess.run([sys.executable, "other.py"], capture_output=True, text=True, check=True).stdout
    assert json.loads(printed.replace("'", '"')) == []
