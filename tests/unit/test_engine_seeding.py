"""Digests of configurations, seeds, and the generators a mechanism may use instead of the one it is given."""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
import os
import pathlib
import random
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

from pytest_snapaudit.engine.audit import audit
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.mechanism import from_callable, from_sampler
from pytest_snapaudit.engine.seeding import as_entropy, block_generator, digest, legacy_generators_seeded

CLAIM = PrivacyClaim(1.0)

PROGRAM = """
import enum, pathlib
from dataclasses import dataclass
import numpy as np
from pytest_snapaudit.engine.outcomes import fit_layout
from pytest_snapaudit.engine.seeding import digest

@dataclass
class Config:
    name: str
    sizes: set
    table: dict

class Mode(enum.Enum):
    FAST = 1

found = digest(
    Config("a", {"x", "y", "z"}, {"k": 1.5, "j": None, ("t", 2): b"v"}), Mode.FAST, {1, 2, 3}, frozenset("abc"),
    np.arange(6).reshape(2, 3), np.float32(0.1), pathlib.PurePosixPath("a/b"), range(4), 2**200, 1j, object(),
    np.array(["x", None], dtype=object), lambda: 0,
)
outputs = [{"words": {f"w{i}" for i in range(j)}, "label": "yes"} for j in range(300)]
layout = fit_layout([(outputs, 300)])
print(found, layout, layout.encode(outputs, 300).tolist())
"""


def test_digests_and_encodings_are_equal_in_every_process():
    outputs = set()
    for seed in ("0", "1", "77"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
        )
        outputs.add(done.stdout)
    assert len(outputs) == 1


@dataclasses.dataclass(frozen=True)
class Config:
    epsilon: float
    parts: Any = ()


@dataclasses.dataclass(frozen=True)
class OtherConfig:
    epsilon: float
    parts: Any = ()


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


class Opaque:
    def __init__(self, value):
        self.value = value


EXACT = [
    None,
    True,
    1,
    1.0,
    "1",
    b"1",
    1j,
    -1,
    0.0,
    -0.0,
    math.nan,
    math.inf,
    2**200,
    10**5000,
    "",
    [],
    [1],
    [[1]],
    [1, [2]],
    [[1], 2],
    {},
    {1: 2},
    {2: 1},
    {1},
    {"a": [1]},
    Mode.FAST,
    Mode.SLOW,
    pathlib.PurePosixPath("a"),
    Config(1.0),
    Config(2.0),
    Config(1.0, (1,)),
    OtherConfig(1.0),
    np.arange(3),
    np.arange(3.0),
    np.arange(4),
    np.arange(6).reshape(2, 3),
    np.arange(6).reshape(3, 2),
    np.array(["a", "b"]),
    np.array([1, "a", None], dtype=object),
    np.array([(1, "a")], dtype=[("x", int), ("y", object)]),
    np.array([(1, "b")], dtype=[("x", int), ("y", object)]),
    np.ma.masked_array([1, 2, 3], mask=[0, 1, 0]),
    np.ma.masked_array([1, 2, 3], mask=[0, 0, 1]),
    np.longdouble(2) / 3,
    np.datetime64("2020-01-01"),
    "[1]",
    "1.0",
]


def test_different_values_have_different_digests_and_all_of_them_are_exact():
    found = [digest(value) for value in EXACT]
    assert all(one.exact for one in found)
    assert len({one.value for one in found}) == len(EXACT)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"a": 1, "b": [2]}, {"b": [2], "a": 1}),
        ({1, 2, 3}, {3, 2, 1}),
        ((1, 2), [1, 2]),
        (range(3), [0, 1, 2]),
        (np.float64(0.1), 0.1),
        (np.int64(7), 7),
        (np.arange(6).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3))),
        (np.arange(10)[::2], np.array([0, 2, 4, 6, 8])),
        (math.nan, float("nan")),
        (Config(1.0, {"b": 1, "a": 2}), Config(1.0, {"a": 2, "b": 1})),
        (
            np.array([(1, "aaa" + str(len(os.sep)))], dtype=[("x", int), ("y", object)]),
            np.array([(1, "".join(["aa", "a1"]))], dtype=[("x", int), ("y", object)]),
        ),
        (np.array([("a" * 3,)], dtype=object), np.array([("".join(["a", "aa"]),)], dtype=object)),
    ],
)
def test_equal_values_have_equal_digests(first, second):
    assert digest(first) == digest(second)
    assert digest(first).exact


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Opaque(1), Opaque(2)),
        (Config(1.0, Opaque(1)), Config(1.0, Opaque(2))),
        ({"a": Opaque(1)}, {"a": Opaque(2)}),
        (np.array([Opaque(1)]), np.array([Opaque(2)])),
        (functools.partial(max, Opaque(1)), functools.partial(max, Opaque(2))),
        (Opaque(1).__init__, Opaque(2).__init__),
    ],
)
def test_unknown_objects_count_by_type_name_only(first, second):
    assert digest(first) == digest(second)
    assert not digest(first).exact
    assert digest(first) != digest(repr(first))


def test_functions_count_by_name_and_their_bound_arguments():
    assert digest(functools.partial(max, 1)) != digest(functools.partial(max, 2))
    assert digest(math.sqrt) == digest(math.exp)  # built-in functions: by type name
    assert digest(as_entropy) != digest(block_generator)
    assert not digest(as_entropy).exact


def test_the_division_into_objects_counts():
    assert digest(1, 2) != digest((1, 2))
    assert digest("ab") != digest("a", "b")
    assert digest([["a"], "b"]) != digest([["a", "b"]])


def test_streams_differ_by_every_coordinate_and_repeat():
    drawn = {
        coordinates: block_generator(*coordinates).integers(2**62)
        for coordinates in [
            ((0,), 0, 0, 0),
            ((0,), 0, 0, 1),
            ((0,), 0, 1, 0),
            ((0,), 1, 0, 0),
            ((1,), 0, 0, 0),
            ((0, 1), 0, 0, 0),
        ]
    }
    assert len(set(drawn.values())) == len(drawn)
    assert block_generator((0,), 0, 0, 1).integers(2**62) == drawn[((0,), 0, 0, 1)]


def test_entropy_is_a_tuple_of_integers():
    assert as_entropy(5) == (5,)
    assert as_entropy([np.uint8(1), 2**100]) == (1, 2**100)


def draw_legacy() -> tuple[float, float]:
    return random.random(), float(np.random.random())


def test_legacy_generators_are_seeded_and_restored():
    random.seed(1)
    np.random.seed(2)
    expected = draw_legacy()
    random.seed(1)
    np.random.seed(2)
    with legacy_generators_seeded(np.random.default_rng(9)):
        first = draw_legacy()
    again = []

    def fail():
        with legacy_generators_seeded(np.random.default_rng(9)):
            again.append(draw_legacy())
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert again == [first]
    assert draw_legacy() == expected
    with legacy_generators_seeded(np.random.default_rng(10)):
        assert draw_legacy() != first


def test_one_thread_at_a_time_has_the_global_generators():
    entered = threading.Event()

    def enter():
        with legacy_generators_seeded(np.random.default_rng(2)):
            entered.set()

    other = threading.Thread(target=enter)
    with legacy_generators_seeded(np.random.default_rng(1)):
        other.start()
        assert not entered.wait(0.2)
    other.join(60)
    assert entered.is_set()


class FakeTorch:
    """The part of torch that is seeded: a global generator with a state."""

    def __init__(self):
        self.state = "user's"

    def get_rng_state(self):
        return self.state

    def set_rng_state(self, state):
        self.state = state

    def manual_seed(self, seed):
        self.state = seed


def test_torch_is_seeded_and_restored_if_it_is_loaded(monkeypatch):
    torch = FakeTorch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    seen = []
    for seed in (3, 3, 4):
        with legacy_generators_seeded(np.random.default_rng(seed)):
            seen.append(torch.state)
        assert torch.state == "user's"
    assert seen[0] == seen[1] != seen[2]


def reproducibility(mechanism: Any, **options: Any) -> str:
    result = audit(mechanism, (0.0, 1.0), CLAIM, n_trials=200, n_snapshots=100, **options)
    return dict(result.diagnostics)["reproducibility"]


def entropy_noise(n: int) -> np.ndarray:
    return np.frombuffer(os.urandom(8 * n), dtype=np.uint64) / 2**61


def test_a_mechanism_that_draws_from_the_operating_system_is_reported():
    class Stages:
        def __init__(self, deterministic):
            self.deterministic = deterministic

        def clean(self, dataset, rng):
            return np.array([dataset + (0.0 if self.deterministic else rng.random())])

        def privatize(self, clean, rng):
            return clean + entropy_noise(clean.size).reshape(clean.shape)

    for mechanism in (
        from_sampler(lambda dataset, n, rng: dataset + entropy_noise(n)),
        from_callable(lambda dataset: dataset + entropy_noise(1)[0]),
        from_callable(lambda dataset: {"a": [dataset + entropy_noise(1)[0], "b"]}),
        Stages(deterministic=True),
        Stages(deterministic=False),
    ):
        assert "two draws from one seed differ: the mechanism ignores the rng" in reproducibility(mechanism)


@pytest.mark.parametrize(
    "mechanism",
    [
        from_sampler(lambda dataset, n, rng: dataset + np.random.laplace(size=n)),
        from_sampler(lambda dataset, n, rng: [dataset + random.gauss(0, 1) for _ in range(n)]),
        from_callable(lambda dataset: dataset + random.gauss(0, 1)),
        from_callable(
            lambda dataset: {"a": {f"{random.random():.1f}", "b"}, "c": [None, np.random.random(3)]}
        ),
        from_sampler(lambda dataset, n, rng: np.full(n, np.nan) if dataset else rng.random(n)),
        from_callable(lambda dataset: object() if dataset else random.random()),
    ],
)
def test_a_mechanism_that_draws_from_global_generators_is_reproducible(mechanism):
    assert reproducibility(mechanism) == "two draws from one seed are equal"
    options = {"n_trials": 300}
    random.seed()
    first = audit(mechanism, (0.0, 1.0), CLAIM, **options)
    np.random.seed()
    assert audit(mechanism, (0.0, 1.0), CLAIM, **options) == first


def test_an_audit_leaves_the_global_generators_as_they_were():
    random.seed(5)
    np.random.seed(6)
    expected = draw_legacy()
    random.seed(5)
    np.random.seed(6)
    reproducibility(from_callable(lambda dataset: dataset + random.random() + np.random.random()))
    assert draw_legacy() == expected


def test_results_depend_on_the_seed_and_on_nothing_else():
    sampler = from_sampler(lambda dataset, n, rng: dataset + rng.laplace(size=n))
    first, again, other = (audit(sampler, (0.0, 1.0), CLAIM, n_trials=2000, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first.elapsed > 0
    assert first != other
