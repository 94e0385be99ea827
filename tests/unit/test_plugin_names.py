"""Public names, node ids, and options without a session."""

import argparse
import inspect
import subprocess
import sys
from types import SimpleNamespace

import pytest

import pytest_snapaudit
from pytest_snapaudit.engine.audit import audit
from pytest_snapaudit.names import node_id
from pytest_snapaudit.options import MIN_TRIALS, parse_confidence, parse_seed, parse_trials, parse_update
from pytest_snapaudit.testing import UNIT_NEIGHBOURS, LaplaceSum


def test_every_public_name_loads_and_is_listed():
    for name in pytest_snapaudit.__all__:
        assert getattr(pytest_snapaudit, name) is not None
        assert name in dir(pytest_snapaudit)
    assert pytest_snapaudit.audit is audit
    with pytest.raises(AttributeError, match="module 'pytest_snapaudit' has no attribute 'nonsense'"):
        _ = pytest_snapaudit.nonsense


@pytest.mark.parametrize("statement", ["import pytest_snapaudit", "import pytest_snapaudit.plugin"])
def test_importing_loads_no_numerical_library(statement):
    program = f"{statement}, sys; print({{'numpy', 'scipy', 'hypothesis'}} & set(sys.modules))"
    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert printed.strip() == "set()"


def test_no_module_of_the_plugin_reaches_into_pytest():
    import pytest_snapaudit.auditor
    import pytest_snapaudit.plugin

    loaded = [module for name, module in sys.modules.items() if name.startswith("pytest_snapaudit.")]
    assert pytest_snapaudit.plugin in loaded
    for module in loaded:
        assert "import _pytest" not in inspect.getsource(module)
        assert "from _pytest" not in inspect.getsource(module)


def _item(nodeid, name="test_a[x@y]", parent="tests/test_it.py::TestA"):
    return SimpleNamespace(nodeid=nodeid, name=name, parent=SimpleNamespace(nodeid=parent))


@pytest.mark.parametrize(
    ("found", "plain"),
    [
        ("tests/test_it.py::TestA::test_a[x@y]", "tests/test_it.py::TestA::test_a[x@y]"),
        ("tests/test_it.py::TestA::test_a[x@y]@group", "tests/test_it.py::TestA::test_a[x@y]"),
        ("tests/test_it.py::TestA::test_a[x@y]@a_b@c", "tests/test_it.py::TestA::test_a[x@y]"),
        ("something/else.txt", "something/else.txt"),
    ],
)
def test_the_group_that_xdist_appends_is_no_part_of_a_node_id(found, plain):
    assert node_id(_item(found)) == plain


def test_values_of_options():
    assert [parse_seed("0"), parse_seed("12"), parse_seed("random")] == [0, 12, "random"]
    assert [parse_trials("400_000"), parse_confidence("0.95"), parse_update("all")] == [400_000, 0.95, "all"]


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (parse_seed, "-3", "must be a non-negative integer or 'random', got '-3'"),
        (parse_seed, "1.5", "must be a non-negative integer or 'random', got '1.5'"),
        (parse_trials, "99", "must be an integer of at least 100, got '99'"),
        (parse_trials, "1e5", "must be an integer of at least 100, got '1e5'"),
        (parse_confidence, "0", "must lie strictly between 0 and 1, got '0'"),
        (parse_confidence, "nan", "must lie strictly between 0 and 1, got 'nan'"),
        (parse_confidence, "95%", "must lie strictly between 0 and 1, got '95%'"),
        (parse_update, "ALL", "must be one of none, new, all, got 'ALL'"),
    ],
)
def test_other_values_of_options_are_refused(parse, text, message):
    with pytest.raises(argparse.ArgumentTypeError, match=message):
        parse(text)


def test_the_fewest_trials_an_option_accepts_are_the_fewest_the_engine_accepts():
    claim = pytest_snapaudit.PrivacyClaim(1.0)
    assert audit(LaplaceSum(1.0), UNIT_NEIGHBOURS, claim, n_trials=MIN_TRIALS).n_trials == MIN_TRIALS
    with pytest.raises(ValueError, match=f"at least {MIN_TRIALS}, got {MIN_TRIALS - 1}"):
        audit(LaplaceSum(1.0), UNIT_NEIGHBOURS, claim, n_trials=MIN_TRIALS - 1)
