"""Every snippet of examples/README.md runs, with the outcome it states.

An info string is ``python NAME.py [needs=LIBRARY] -> OUTCOMES``, or ``python conftest.py`` for the module that
follows; a snippet that needs a library is skipped only where the library is absent.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_snapaudit.testing import run_audits

GUIDE = (Path(__file__).resolve().parents[2] / "examples" / "README.md").read_text(encoding="utf-8")
LIBRARIES = {
    "opendp": "opendp.prelude",
    "diffprivlib": "diffprivlib.mechanisms",
    "opacus": "opacus.optimizers",
    "torch": "torch.nn",
    "jax": "jax.numpy",
}


@dataclass(frozen=True)
class Snippet:
    """A test module of the guide with its conftest, the library it needs, and its stated outcome."""

    name: str
    source: str
    needs: str
    outcomes: dict[str, int]
    conftest: str


def _fences(language: str) -> list[tuple[str, str]]:
    """Info string without the language, and text."""
    pattern = rf"^```{language} ([^\n]*)\n(.*?)^```$"
    return re.findall(pattern, GUIDE, flags=re.MULTILINE | re.DOTALL)


def _snippets() -> list[Snippet]:
    found, conftest = [], ""
    for info, text in _fences("python"):
        if info == "conftest.py":
            conftest = text
            continue
        head, _, stated = info.partition(" -> ")
        name, _, needs = head.partition(" needs=")
        outcomes = {word: int(count) for count, word in re.findall(r"(\d+) (\w+)", stated)}
        found.append(Snippet(name, text, needs, outcomes, conftest))
        conftest = ""
    return found


SNIPPETS = _snippets()


def _absent(library: str) -> bool:
    try:
        return importlib.util.find_spec(LIBRARIES[library]) is None
    except ModuleNotFoundError:
        return True


# Looking for a submodule loads its package, and torch cannot be loaded again once pytester has put modules back.
ABSENT = {library for library in LIBRARIES if _absent(library)}


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.name)
def test_a_snippet_has_the_outcome_it_states(pytester, monkeypatch, snippet):
    if snippet.needs in ABSENT:
        pytest.skip(f"needs {snippet.needs}")
    assert snippet.outcomes, f"{snippet.name} states no outcome"
    monkeypatch.delenv("CI", raising=False)
    (pytester.path / snippet.name).write_text(snippet.source, encoding="utf-8")
    if snippet.conftest:
        pytester.makeconftest(snippet.conftest)
    pytester.makeini("[pytest]")
    options = ("-p", "no:randomly", "-p", "no:cacheprovider", snippet.name)
    if snippet.needs:  # torch and jax cannot be loaded twice in one process
        run = subprocess.run(
            [sys.executable, "-m", "pytest", *options],
            cwd=pytester.path,
            capture_output=True,
            text=True,
            check=False,
        )
        last = run.stdout.splitlines()[-1]
        assert {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|xfailed|errors?)", last)} == (
            snippet.outcomes
        ), run.stdout
        return
    audited = run_audits(pytester, *options)
    audited.result.assert_outcomes(**snippet.outcomes)
    tests = sum(snippet.outcomes.values())
    assert len(audited.verdicts()) == tests
    assert list(audited.verdicts().values()).count("VIOLATION") == snippet.outcomes.get("xfailed", 0)


def test_every_python_fence_is_a_snippet_and_all_can_be_run_on_their_own():
    fences = _fences("python")
    conftests = sum(info == "conftest.py" for info, _ in fences)
    assert GUIDE.count("```python") == len(fences) == len(SNIPPETS) + conftests
    names = [snippet.name for snippet in SNIPPETS]
    assert len(set(names)) == len(names)
    assert {snippet.needs for snippet in SNIPPETS} == {"", *LIBRARIES}


def test_the_workflow_has_a_gate_for_pull_requests_and_a_nightly_run(pytestconfig):
    ((path, workflow),) = _fences("yaml")
    assert path == ".github/workflows/privacy.yml"
    assert re.findall(r"^  (\w+):$", workflow[workflow.index("jobs:") :], flags=re.MULTILINE) == [
        "gate",
        "nightly",
    ]
    gate, nightly = re.findall(r"run: (pytest .*)", workflow)
    options = {name for o in pytestconfig._parser.getgroup("snapaudit").options for name in o.names()}
    used = set(re.findall(r"--snapaudit-[a-z]+", GUIDE))
    assert used <= options
    assert "--snapaudit-seed" not in gate
    assert "--snapaudit-seed=random" in nightly
    assert "--snapaudit-trials=" in nightly
    assert "--snapaudit-strict" in gate
