"""The quickstart: its verdicts, its brevity, and that it notices when a violation vanishes."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

from pytest_snapaudit.testing import run_audits

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MODULES = sorted(path.name for path in (EXAMPLES / "quickstart").glob("test_*.py"))
MOST_LINES = 15

REPAIRS = {
    "test_noisy_count.py": ("NoisyVisits(sensitivity=1)", "NoisyVisits(sensitivity=2)"),
    "test_randomised_response.py": ("from_sampler(else_a_guess)", "from_sampler(else_the_opposite)"),
    "test_report_noisy_max.py": ("from_sampler(the_value)", "from_sampler(the_index)"),
    "test_sparse_vector.py": (
        "from_sampler(noise_on_the_threshold_alone)",
        "from_sampler(stops_at_the_first)",
    ),
}


@pytest.fixture
def quickstart(pytester):
    shutil.copytree(EXAMPLES / "quickstart", pytester.path / "quickstart")
    shutil.copy(EXAMPLES / "conftest.py", pytester.path)
    return pytester.path / "quickstart"


@pytest.mark.parametrize("module", MODULES)
def test_the_correct_mechanism_passes_and_the_broken_one_is_expected_to_fail(pytester, quickstart, module):
    run = run_audits(pytester, "-p", "no:randomly", str(quickstart / module))
    run.result.assert_outcomes(passed=1, xfailed=1)
    assert sorted(run.verdicts().values()) == ["CONSISTENT", "VIOLATION"]
    (correct,) = [row for row in run.rows if row.verdict == "CONSISTENT"]
    assert 0.5 * correct.epsilon < correct.epsilon_lower <= correct.epsilon


@pytest.mark.parametrize("module", MODULES)
def test_the_suite_breaks_if_the_violation_vanishes(pytester, quickstart, module):
    broken, repaired = REPAIRS[module]
    source = (quickstart / module).read_text(encoding="utf-8")
    assert source.count(broken) == 1
    (quickstart / module).write_text(source.replace(broken, repaired), encoding="utf-8")
    run = run_audits(pytester, "-p", "no:randomly", "--snapaudit-trials=20_000", str(quickstart / module))
    run.result.assert_outcomes(passed=1, failed=1)
    run.result.stdout.fnmatch_lines(["*XPASS(strict)*"])


@pytest.mark.parametrize("module", MODULES)
def test_correct_and_broken_take_fewer_than_15_lines_each(module):
    source = (EXAMPLES / "quickstart" / module).read_text(encoding="utf-8")
    body = [
        node
        for node in ast.parse(source).body
        if not isinstance(node, ast.Import | ast.ImportFrom | ast.Expr)
    ]
    tests = [node for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    assert len(tests) == 2
    shared = sum(_lines(source, node) for node in body if node not in tests)
    assert all(shared + _lines(source, test) < MOST_LINES for test in tests)


def _lines(source: str, node: ast.stmt) -> int:
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    return sum(bool(line.strip()) for line in source.splitlines()[first - 1 : node.end_lineno])
