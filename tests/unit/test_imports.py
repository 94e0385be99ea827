"""Which package may import which, and what importing the plugin costs a session without audits."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dp_icl
import pytest_snapaudit

PLUGIN = Path(pytest_snapaudit.__file__).parent
REFERENCE = Path(dp_icl.__file__).parent
HEAVY = {"torch", "transformers", "sentence_transformers", "vllm", "jax", "tensorflow", "sklearn", "pandas"}
MUST_WAIT = ("numpy", "scipy", "hypothesis")


def _imports(package: Path) -> Iterator[tuple[str, str]]:
    """(file, absolute module) for every import statement, also inside functions and conditions."""
    for path in sorted(package.rglob("*.py")):
        shown = path.relative_to(package.parent).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from ((shown, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{shown} has a relative import"
                yield shown, str(node.module)


def _top(module: str) -> str:
    return module.split(".", maxsplit=1)[0]


def test_the_engine_imports_neither_pytest_nor_hypothesis_nor_the_plugin_around_it():
    seen = list(_imports(PLUGIN / "engine"))
    assert len(seen) > 50
    allowed = {*sys.stdlib_module_names, "numpy", "scipy"}
    foreign = [
        (file, module)
        for file, module in seen
        if _top(module) not in allowed and not f"{module}.".startswith("pytest_snapaudit.engine.")
    ]
    assert foreign == []


def test_the_plugin_needs_nothing_heavy_and_knows_no_reference_mechanism():
    allowed = {*sys.stdlib_module_names, "numpy", "scipy", "hypothesis", "pytest", "pluggy", "_pytest"}
    foreign = [
        (file, module)
        for file, module in _imports(PLUGIN)
        if _top(module) not in {*allowed, "pytest_snapaudit"}
    ]
    assert foreign == []
    assert not HEAVY & allowed


def test_the_reference_mechanisms_do_not_know_the_plugin():
    assert [
        (file, module) for file, module in _imports(REFERENCE) if _top(module) == "pytest_snapaudit"
    ] == []


def _loaded_after(statement: str) -> set[str]:
    code = (
        f"import sys, json; {statement}; print(json.dumps(sorted({{m.split('.')[0] for m in sys.modules}})))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(run.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "statement",
    [
        "import pytest_snapaudit",
        "import pytest_snapaudit.plugin",
        "from pytest_snapaudit import privacy_audit; privacy_audit(epsilon=1.0)",
    ],
)
def test_importing_the_plugin_loads_no_numerical_library(statement):
    assert _loaded_after(statement) & {*MUST_WAIT, *HEAVY} == set()


def test_importing_hypothesis_does_not_load_the_plugins_strategies():
    loaded = _loaded_after("import hypothesis; assert 'pytest_snapaudit.strategies' not in sys.modules")
    assert loaded & {"numpy", "scipy", *HEAVY} == set()


def test_auditing_loads_no_heavy_library():
    assert (
        _loaded_after("import pytest_snapaudit.auditor, pytest_snapaudit.strategies, dp_icl") & HEAVY == set()
    )


def test_a_session_without_audits_loads_no_numerical_library(pytester):
    pytester.makepyfile(
        """
        import sys

        def test_it(pytestconfig):
            assert pytestconfig.pluginmanager.hasplugin("snapaudit")
            assert [name for name in ("numpy", "scipy", "hypothesis") if name in sys.modules] == []
        """
    )
    # -p no: for plugins of others that load them
    quiet = [part for name in ("randomly", "hypothesispytest", "benchmark") for part in ("-p", f"no:{name}")]
    run = pytester.runpytest_subprocess(*quiet)
    run.assert_outcomes(passed=1)
