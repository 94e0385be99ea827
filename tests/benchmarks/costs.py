"""What the benchmarks measure: CPU seconds of an audit beside those of the draws it makes, and peak memory."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pytest_snapaudit import PrivacyClaim, Sampler, audit, from_sampler

ROUNDS = 5


@dataclass
class Recorder:
    """A mechanism that notes the size of every batch it is asked for.

    Attributes:
        mechanism: does the work.
        batches: (clean row, shape) of every ``privatize`` call.
    """

    mechanism: Any
    batches: list[tuple[Any, tuple[int, ...]]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.mechanism, name)

    def privatize(self, clean: Any, rng: np.random.Generator) -> Any:
        self.batches.append((clean[0].copy(), clean.shape))
        return self.mechanism.privatize(clean, rng)

    def replay(self) -> None:
        """The same draws, with nothing around them; ``release`` is not one of them."""
        for block, (row, shape) in enumerate(self.batches):
            self.mechanism.privatize(np.broadcast_to(row, shape), np.random.default_rng(block))


def recorded_sampler(sampler: Sampler[Any]) -> tuple[Sampler[Any], Callable[[], None]]:
    """A sampler that notes its batches, and a function that repeats them alone."""
    batches: list[tuple[Any, int]] = []

    def sample(dataset: Any, n: int, rng: np.random.Generator) -> Any:
        batches.append((dataset, n))
        return sampler.fn(dataset, n, rng)

    def replay() -> None:
        for block, (dataset, n) in enumerate(batches):
            sampler.fn(dataset, n, np.random.default_rng(block))

    return from_sampler(sample, name=sampler.name), replay


def cpu_seconds(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Least CPU seconds of this process over ``rounds`` calls: the others were disturbed."""
    seconds = []
    for _ in range(rounds):
        started = time.process_time()
        work()
        seconds.append(time.process_time() - started)
    return min(seconds)


@dataclass(frozen=True)
class Cost:
    """CPU seconds of an audit, and of the draws it makes.

    Attributes:
        audit, draws: in CPU seconds.
        trials: per side, counted.
    """

    audit: float
    draws: float
    trials: int

    @property
    def ratio(self) -> float:
        """Audit over draws."""
        return self.audit / self.draws

    @property
    def beyond(self) -> float:
        """CPU seconds the audit adds to its draws."""
        return self.audit - self.draws

    def figures(self) -> dict[str, float | int]:
        """As stored beside a benchmark."""
        return {
            "audit CPU s": round(self.audit, 4),
            "draws CPU s": round(self.draws, 4),
            "ratio": round(self.ratio, 3),
            "beyond CPU s": round(self.beyond, 4),
            "trials per side": self.trials,
        }


def cost_of(
    mechanism: Any, neighbours: Any, claim: PrivacyClaim, n_trials: int, rounds: int = ROUNDS
) -> Cost:
    """Measure both, in turn, in one process."""
    recorder: Any
    replay: Callable[[], None]
    if isinstance(mechanism, Sampler):
        recorder, replay = recorded_sampler(mechanism)
    else:
        recorder = Recorder(mechanism)
        replay = recorder.replay
    found = audit(recorder, neighbours, claim, n_trials=n_trials)
    assert not found.violated, found

    audits, draws = [], []
    for _ in range(rounds):
        audits.append(cpu_seconds(lambda: audit(mechanism, neighbours, claim, n_trials=n_trials), 1))
        draws.append(cpu_seconds(replay, 1))
    return Cost(min(audits), min(draws), found.n_trials)


def peak_bytes(mechanism: Any, neighbours: Any, claim: PrivacyClaim, n_trials: int) -> int:
    """Largest size of everything one audit holds at a time."""
    audit(mechanism, neighbours, claim, n_trials=1_000)  # loads what is loaded once
    tracemalloc.start()
    try:
        audit(mechanism, neighbours, claim, n_trials=n_trials)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
