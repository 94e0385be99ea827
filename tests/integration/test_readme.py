"""Every block of README.md: snippets run with the outcome they state, printed output is what a run prints.

A fenced block says in its info string what it is:

- ``python NAME.py [ARGUMENT ...] -> OUTCOMES``: a test module, run by pytest with the arguments;
- ``python conftest.py``: belongs to the next test module;
- ``python script``: runs by itself;
- ``text output of PATH``: what running that module, or these examples, prints (run times aside);
- ``sh NAME``: a command for a fresh clone.
"""

from __future__ import annotations

import math
import re
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_snapaudit import PrivacyClaim, audit
from pytest_snapaudit.testing import UNIT_NEIGHBOURS, AuditRun, LaplaceSum, run_audits

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COLUMNS = "110"


@dataclass(frozen=True)
class Block:
    """A fenced block: the words of its info string and its text."""

    language: str
    info: str
    text: str


def _blocks() -> list[Block]:
    fences = re.findall(r"^```(\w+) ?([^\n]*)\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
    return [Block(*fence) for fence in fences]


@dataclass(frozen=True)
class Snippet:
    """A test module of the README with its conftest, arguments and stated outcome."""

    name: str
    source: str
    arguments: tuple[str, ...]
    outcomes: dict[str, int]
    conftest: str


def _snippets() -> list[Snippet]:
    found, conftest = [], ""
    for block in _blocks():
        if block.language != "python" or block.info == "script":
            continue
        if block.info == "conftest.py":
            conftest = block.text
            continue
        head, _, stated = block.info.partition(" -> ")
        name, *arguments = head.split()
        outcomes = {word: int(count) for count, word in re.findall(r"(\d+) (\w+)", stated)}
        found.append(Snippet(name, block.text, tuple(arguments), outcomes, conftest))
        conftest = ""
    return found


SNIPPETS = _snippets()
SCRIPTS = [block.text for block in _blocks() if block.info == "script"]
OUTPUTS = {
    block.info.removeprefix("output of "): block.text
    for block in _blocks()
    if block.info.startswith("output of ")
}
COMMANDS = {block.info: block.text.strip() for block in _blocks() if block.language == "sh"}


def _run(pytester: pytest.Pytester, snippet: Snippet) -> AuditRun:
    (pytester.path / snippet.name).write_text(snippet.source, encoding="utf-8")
    if snippet.conftest:
        pytester.makeconftest(snippet.conftest)
    pytester.makeini("[pytest]")
    fixed = ("-p", "no:randomly", "-p", "no:cacheprovider", "--hypothesis-seed=0")
    return run_audits(pytester, *fixed, snippet.name, *snippet.arguments)


@pytest.fixture(autouse=True)
def _a_fixed_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", COLUMNS)
    monkeypatch.delenv("CI", raising=False)


def test_every_python_block_is_run():
    python = [block for block in _blocks() if block.language == "python"]
    conftests = sum(block.info == "conftest.py" for block in python)
    assert README.count("```python") == len(python)
    assert len(python) == len(SNIPPETS) + len(SCRIPTS) + conftests
    assert [name for name, count in Counter(s.name for s in SNIPPETS).items() if count > 1] == []


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_runs(script, capsys):
    exec(compile(script, "README.md", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out


def _plain(text: str) -> list[str]:
    """Lines without run times, which differ, and without what pads them."""
    timeless = re.sub(r"\d+ ms|\d+\.\d+ ?s\b", "TIME", text)
    return [re.sub(r"=+|\s+", " ", line).strip() for line in timeless.splitlines()]


def _assert_printed(wanted: str, stdout: str) -> None:
    printed = _plain(stdout)
    missing = [line for line in _plain(wanted) if line not in printed]
    assert not missing, f"README.md shows lines that this run did not print:\n{missing}\n\n{stdout}"


def _first_failure(run: AuditRun) -> None:
    _assert_printed(OUTPUTS["test_visits.py"], run.result.stdout.str())
    stated = _stated(r"no better than ([\d.]+)-DP")
    assert stated == f"{math.floor(100 * run.rows[0].epsilon_lower) / 100:.2f}"


def _counterexample(run: AuditRun) -> None:
    assert _stated(r"Hypothesis reports\s+`(.*?)`") in run.result.stdout.str()


def _classical_calibration(run: AuditRun) -> None:
    stated = float(_stated(r"The classical formula fails with epsilon >= ([\d.]+)\."))
    assert run.rows[0].epsilon_lower == pytest.approx(stated, abs=0.1)


def _stated(pattern: str) -> str:
    found = re.search(pattern, README, flags=re.DOTALL)
    assert found is not None, pattern
    return " ".join(found.group(1).split())


SAID_ABOUT = {
    "test_visits.py": _first_failure,
    "test_configurations.py": _counterexample,
    "test_vote.py": _classical_calibration,
}


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.name)
def test_a_snippet_has_the_outcome_it_states(pytester, snippet):
    assert snippet.outcomes, f"{snippet.name} states no outcome"
    run = _run(pytester, snippet)
    run.result.assert_outcomes(**snippet.outcomes)
    if snippet.name in SAID_ABOUT:
        SAID_ABOUT[snippet.name](run)


def test_the_table_is_that_of_the_examples(pytester):
    shutil.copytree(ROOT / "examples" / "quickstart", pytester.path / "examples" / "quickstart")
    pytester.makeini("[pytest]")
    run = run_audits(pytester, "-p", "no:randomly", "examples")
    _assert_printed(OUTPUTS["examples/quickstart"], run.result.stdout.str())


def test_the_commands_are_one_line_each_and_set_everything_up():
    assert set(COMMANDS) == {"examples", "tests"}
    for name, command in COMMANDS.items():
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install ")
        assert "\n" not in command, name
        (constraints,) = re.findall(r"-c (\S+)", command)
        assert (ROOT / constraints).is_file()
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "readme_command examples" in ci
    assert "readme_command tests" in ci


def test_the_options_are_those_the_plugin_registers(pytestconfig):
    group = pytestconfig._parser.getgroup("snapaudit")
    registered = {name for option in group.options for name in option.names()}
    assert set(re.findall(r"--snapaudit-[a-z]+", README)) == registered
    keys = {key for key in pytestconfig._parser._inidict if key.startswith("snapaudit_")}
    assert set(re.findall(r"\bsnapaudit_[a-z]+", README)) == keys
    table = README[README.index("## Options") : README.index("## In CI")]
    for name in registered:
        (row,) = [line for line in table.splitlines() if line.startswith(f"| `{name}")]
        assert f"`{name.removeprefix('--').replace('-', '_')}`" in row


def test_the_ceiling_of_counting_is_the_one_stated():
    stated = float(_stated(r"at most about\s+epsilon = ([\d.]+)"))
    result = audit(LaplaceSum(1.0), UNIT_NEIGHBOURS, PrivacyClaim(1.0))
    assert result.max_detectable_epsilon == pytest.approx(stated, abs=0.05)


def test_the_ceilings_of_a_random_clean_stage_are_those_stated():
    values = re.search(r"([\d.]+) for N = 2,000\s+at 95 % and ([\d.]+) at\s+99.9 %", README).groups()

    class Jittered:
        def clean(self, dataset, rng):
            return sum(dataset) + rng.normal()

        def privatize(self, clean, rng):
            return clean + rng.laplace(0.0, 2.0, clean.shape)

    for stated, confidence in zip(values, (0.95, 0.999), strict=True):
        result = audit(Jittered(), UNIT_NEIGHBOURS, PrivacyClaim(1.0), confidence=confidence, n_trials=1_000)
        assert result.n_snapshots == 2_000
        assert result.max_detectable_epsilon == pytest.approx(float(stated), abs=0.05)
