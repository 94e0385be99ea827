"""Any executor, any order of execution: the same result."""

from __future__ import annotations

import random
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from pytest_snapaudit.engine.audit import audit
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.errors import MechanismError
from pytest_snapaudit.engine.mechanism import from_callable, from_sampler
from pytest_snapaudit.engine.noise import GaussianNoise
from pytest_snapaudit.engine.result import AuditResult
from pytest_snapaudit.engine.snapshot import Snapshot, SnapshotPair

CLAIM = PrivacyClaim(1.0, 1e-5)


@dataclass(frozen=True)
class Gaussian:
    """Two views, declared noise, a random clean stage if ``spread`` is positive."""

    sigma: float = 4.0
    spread: float = 0.0
    claimed_views: frozenset[str] = frozenset({"white-box", "black-box"})
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def deterministic(self) -> bool:
        return self.spread == 0

    @property
    def noise(self) -> GaussianNoise:
        return GaussianNoise(self.sigma)

    def clean(self, dataset, rng):
        return np.array([dataset, -dataset, 0.0]) + self.spread * rng.random()

    def privatize(self, clean, rng):
        return clean + self.sigma * rng.standard_normal(clean.shape)

    def release(self, noisy, rng):
        return np.argmax(noisy, axis=1)


def global_laplace(dataset, n, rng):
    """Uses the global generators, and several draws of them."""
    return [dataset + np.random.laplace() + 0.01 * random.random() for _ in range(n)]


def one_label(dataset):
    return "yes" if random.random() + 0.2 * dataset > 0.5 else "no"


def snapshots() -> SnapshotPair:
    rows = np.random.default_rng(0).normal(size=(60, 3))
    return SnapshotPair(Snapshot(rows, np.full(60, 3)), Snapshot(rows + 0.5, np.full(60, 3)))


CASES: dict[str, tuple[Any, Any, int]] = {
    "two views and a certificate": (Gaussian(), (0.0, 1.0), 30_000),
    "recorded rows": (Gaussian(spread=1.0), snapshots(), 40_000),
    "global generators": (from_sampler(global_laplace), (0.0, 0.3), 20_000),
    "one call per output": (from_callable(one_label), (0, 1), 20_000),
}


class Shuffled(Executor):
    """Runs tasks one by one in a random order; results come in the order of the tasks."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def map(self, fn, *iterables, timeout=None, chunksize=1):
        tasks = list(zip(*iterables, strict=True))
        results: list[Any] = [None] * len(tasks)
        for i in self.rng.sample(range(len(tasks)), len(tasks)):
            results[i] = fn(*tasks[i])
        return iter(results)


def run(case: str, executor: Executor | None) -> AuditResult:
    mechanism, neighbours, n_trials = CASES[case]
    return audit(mechanism, neighbours, CLAIM, n_trials=n_trials, seed=(4, 2), executor=executor)


@pytest.fixture(scope="module")
def in_place() -> dict[str, AuditResult]:
    return {case: run(case, None) for case in CASES}


@pytest.mark.parametrize("case", CASES)
def test_an_executor_that_shuffles_gives_the_same_result(case, in_place):
    assert run(case, Shuffled(1)) == in_place[case]


@pytest.mark.parametrize("case", CASES)
def test_threads_give_the_same_result_and_leave_the_global_generators_alone(case, in_place):
    random.seed(3)
    np.random.seed(4)
    before = random.getstate(), np.random.get_state()[1].tolist()
    with ThreadPoolExecutor(3) as executor:
        assert run(case, executor) == in_place[case]
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before


@pytest.mark.parametrize("case", CASES)
def test_processes_give_the_same_result(case, in_place):
    with ProcessPoolExecutor(2) as executor:
        assert run(case, executor) == in_place[case]


def test_equality_of_results_ignores_the_time_they_took(in_place):
    case = "two views and a certificate"
    again = run(case, None)
    assert again == in_place[case]
    assert again.elapsed != in_place[case].elapsed


def test_the_cases_are_what_they_are_called(in_place):
    assert in_place["two views and a certificate"].estimator == "Gaussian trade-off"
    assert in_place["recorded rows"].estimator == "row-wise betting"
    assert in_place["global generators"].n_trials > 8192
    assert all("are equal" in dict(result.diagnostics)["reproducibility"] for result in in_place.values())


def test_an_attack_is_carried_to_the_workers():
    mechanism, neighbours, n_trials = CASES["two views and a certificate"]
    with ProcessPoolExecutor(2) as executor:
        carried = audit(
            mechanism, neighbours, CLAIM, n_trials=n_trials, attacks={"third": third}, executor=executor
        )
    assert carried == audit(mechanism, neighbours, CLAIM, n_trials=n_trials, attacks={"third": third})


def third(rows):
    return rows[:, -1]


class Own:
    """Noise from a generator that the mechanism holds: a worker process would get a copy of it."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(4)

    def __call__(self, data: float, n: int, rng: np.random.Generator) -> Any:
        return data + self.rng.laplace(size=n)


def test_a_generator_that_every_worker_would_copy_is_refused():
    sampler = from_sampler(Own())
    claim = PrivacyClaim(1.0)
    with ProcessPoolExecutor(1) as pool, pytest.raises(MechanismError, match="holds a generator of its own"):
        audit(sampler, (0.0, 1.0), claim, n_trials=2_000, executor=pool)
    with ThreadPoolExecutor(1) as threads:
        assert not audit(sampler, (0.0, 1.0), claim, n_trials=2_000, executor=threads).violated
