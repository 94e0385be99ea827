"""Which adapter an object goes to, and that nobody else's package is imported to find out."""

from __future__ import annotations

import json
import subprocess
import sys
import types

import pytest

from pytest_snapaudit import adapters


def class_of(module, name="Thing", bases=()):
    return type(name, bases, {"__module__": module})


@pytest.mark.parametrize(
    ("module", "adapter"),
    [
        ("opendp.mod", "opendp"),
        ("diffprivlib.mechanisms.laplace", "diffprivlib"),
        ("dp_accounting.dp_event", "accounting"),
        ("opacus.optimizers.optimizer", "opacus"),
        ("torch.nn", "torch"),
        ("jaxlib._jax", "jax"),
    ],
)
def test_by_the_package_of_the_class(module, adapter):
    assert list(adapters.adapters_of(class_of(module))) == [f"pytest_snapaudit.adapters.{adapter}"]


def test_a_subclass_of_ones_own_is_recognised_by_its_base():
    mine = class_of("my_tests", bases=(class_of("diffprivlib.mechanisms.laplace"),))
    assert list(adapters.adapters_of(mine)) == ["pytest_snapaudit.adapters.diffprivlib"]


def test_every_adapter_of_the_bases_is_asked_once_in_their_order(monkeypatch):
    optimizer = class_of("opacus.optimizers", bases=(class_of("torch.optim"),))
    assert [name.rpartition(".")[2] for name in adapters.adapters_of(optimizer)] == ["opacus", "torch"]
    asked = []

    def importing(name):
        return types.SimpleNamespace(as_mechanism=lambda obj: asked.append((name, obj)))

    monkeypatch.setattr(adapters.importlib, "import_module", importing)
    thing = optimizer()
    assert adapters.pytest_snapaudit_as_mechanism(thing) is None
    assert asked == [("pytest_snapaudit.adapters.opacus", thing), ("pytest_snapaudit.adapters.torch", thing)]


@pytest.mark.parametrize("obj", [object(), 3, print, class_of("opendpish")(), class_of("my.opendp")()])
def test_other_objects_are_left_alone(obj):
    assert adapters.pytest_snapaudit_as_mechanism(obj) is None


def test_importing_the_adapters_loads_no_numerical_library_and_none_of_theirs():
    code = "import sys, json, pytest_snapaudit.adapters; print(json.dumps(sorted(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in json.loads(run.stdout.splitlines()[-1])}
    assert loaded & {"numpy", "scipy", "hypothesis", *adapters.ADAPTERS} == set()


STAND_IN = """
class Laplace:
    epsilon, delta = 1.0, 0.0

    def randomise(self, value):
        return value + np.random.laplace(0, 1)

Laplace.__module__ = "diffprivlib.mechanisms.laplace"

@privacy_audit()
def test_it(privacy_auditor):
    result = privacy_auditor.check(Laplace(), (0.0, 1.0))
    assert result.name == NAME
"""


def test_an_object_of_a_library_passes_to_check(audits):
    audits(STAND_IN.replace("NAME", "'Laplace'")).result.assert_outcomes(passed=1)


def test_hooks_of_a_users_own_come_first(audits, pytester):
    pytester.makeconftest("""
import numpy as np

from pytest_snapaudit import PrivacyClaim, from_sampler

def pytest_snapaudit_as_mechanism(obj):
    return from_sampler(lambda x, n, rng: x + rng.laplace(0, 1, n), name="mine", claim=PrivacyClaim(1.0))
""")
    audits(STAND_IN.replace("NAME", "'mine'")).result.assert_outcomes(passed=1)


def test_a_bare_measurement_fails_with_the_call_to_write(audits):
    run = audits("""
class Measurement:
    input_metric = "AbsoluteDistance(f64)"

    def __call__(self, value):
        return value

Measurement.__module__ = "opendp.mod"

@privacy_audit(epsilon=1)
def test_it(privacy_auditor):
    privacy_auditor.check(Measurement(), (0.0, 1.0))
""")
    run.result.assert_outcomes(failed=1)
    run.result.stdout.fnmatch_lines(
        ["*TypeError: *under AbsoluteDistance(f64): check(from_measurement(measurement, d_in=1), ...)*"]
    )
