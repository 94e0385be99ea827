"""Drawing trials in seeded blocks, with memory that does not grow with their number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pytest_snapaudit.engine.errors import MechanismError
from pytest_snapaudit.engine.mechanism import BLACK_BOX, WHITE_BOX, Sampler, mechanism_name
from pytest_snapaudit.engine.outcomes import Layout, Raised, Rows
from pytest_snapaudit.engine.seeding import BLOCK, block_generator, legacy_generators_seeded

Task = TypeVar("Task")
Result = TypeVar("Result")

PROBE, PILOT_PHASE, CLEAN_PHASE, TUNE_ROWS_PHASE, DECLARATION_PHASE, FIRST_LOOK_PHASE = 0, 1, 2, 3, 4, 16
"""Phases of an audit: each has random streams of its own."""


class Drawable(Protocol):
    """What trials are drawn from."""

    def draw(self, n: int, rng: Generator) -> dict[str, Any]:
        """Raw outputs of ``n`` trials per view."""
        ...


@dataclass(frozen=True)
class SamplerSource:
    """Whole outputs of a sampler on one dataset."""

    sampler: Sampler[Any]
    dataset: Any

    def draw(self, n: int, rng: Generator) -> dict[str, Any]:
        """Raw outputs per view."""
        return {BLACK_BOX: self.sampler.sample(self.dataset, n, rng)}


@dataclass(frozen=True)
class TimedSource:
    """Whole outputs of a sampler with the seconds each call took."""

    sampler: Sampler[Any]
    dataset: Any

    def draw(self, n: int, rng: Generator) -> dict[str, Any]:
        """Raw outputs per view, each paired with its elapsed time."""
        return {BLACK_BOX: [self.sampler.call_timed(self.dataset) for _ in range(n)]}


@dataclass(frozen=True)
class FixedCleanSource:
    """The noise stage of a mechanism on one clean output; ``copy`` for mechanisms that write into it."""

    mechanism: Any
    clean: NDArray[Any]
    copy: bool = False

    def draw(self, n: int, rng: Generator) -> dict[str, Any]:
        """Raw outputs per view."""
        rows = np.broadcast_to(self.clean, (n, *self.clean.shape))
        return noise_stage(self.mechanism, rows.copy() if self.copy else rows, rng)


@dataclass(frozen=True)
class LiveCleanSource:
    """Both stages of a mechanism, the random clean stage re-drawn for every trial."""

    mechanism: Any
    dataset: Any

    def draw(self, n: int, rng: Generator) -> dict[str, Any]:
        """Raw outputs per view."""
        rows = np.asarray(self.mechanism.clean_batch(self.dataset, n, rng))
        if rows.ndim < 1 or len(rows) != n:
            msg = (
                f"{mechanism_name(self.mechanism)}: clean_batch must return {n} clean outputs, one per row, "
                f"got an array of shape {rows.shape}."
            )
            raise MechanismError(msg)
        return noise_stage(self.mechanism, rows, rng)


@dataclass(frozen=True)
class MixedCleanSource:
    """The noise stage on clean outputs drawn at random from given rows."""

    mechanism: Any
    rows: NDArray[Any]

    def draw(self, n: int, rng: Generator) -> dict[str, Any]:
        """Raw outputs per view."""
        return noise_stage(self.mechanism, self.rows[rng.integers(len(self.rows), size=n)], rng)


@dataclass(frozen=True)
class FixedRowsSource:
    """The noise stage on given clean outputs, one draw for each, in order."""

    mechanism: Any
    rows: NDArray[Any]

    def draw(self, n: int, rng: Generator) -> dict[str, Any]:
        """Raw outputs per view; ``n`` is the number of rows."""
        return noise_stage(self.mechanism, self.rows, rng)


@dataclass(frozen=True)
class CopiedSource:
    """Outputs of a mechanism that returns the same buffer call after call, copied before the next call."""

    source: Drawable

    def draw(self, n: int, rng: Generator) -> dict[str, Any]:
        """Raw outputs per view."""
        raw = self.source.draw(n, rng)
        copies = {id(outputs): _copied(outputs) for outputs in raw.values()}
        return {view: copies[id(outputs)] for view, outputs in raw.items()}


def _copied(outputs: Any) -> Any:
    if isinstance(outputs, dict):
        return {key: _copied(part) for key, part in outputs.items()}
    if isinstance(outputs, tuple):
        return tuple(map(_copied, outputs))
    if isinstance(outputs, np.ndarray | list):
        return outputs.copy()
    return outputs.clone() if hasattr(outputs, "clone") else outputs


@dataclass(frozen=True)
class SteadySource:
    """A source of which every call raises, or none: the draws of a call fail together, not independently."""

    name: str
    source: Drawable
    raises: bool

    def draw(self, n: int, rng: Generator) -> dict[str, Any]:
        """Raw outputs per view."""
        try:
            raw = self.source.draw(n, rng)
        except MechanismError:
            raise
        except Exception as error:
            if self.raises:
                raise
            first = str(error).strip().partition("\n")[0]
            raise self._unsteady(f"raised {type(error).__name__}: {first}, and others did not") from error
        if self.raises:
            raise self._unsteady("succeeded, and others raised")
        return raw

    def _unsteady(self, what: str) -> MechanismError:
        return MechanismError(
            f"{self.name}: a call for many outputs {what}; the outputs of one call then fail together, so they are "
            "not independent trials. Return a failure as one output among the others, or wrap a function that "
            "returns one output per call with from_callable."
        )


@dataclass(frozen=True)
class ConstantSource:
    """A side on which every output is the same, such as an exception in the clean stage."""

    outcome: Any

    def draw(self, n: int, rng: Generator) -> dict[str, Any]:
        """Raw outputs per view."""
        return {WHITE_BOX: self.outcome, BLACK_BOX: self.outcome}


Source = (
    SamplerSource
    | TimedSource
    | FixedCleanSource
    | LiveCleanSource
    | MixedCleanSource
    | FixedRowsSource
    | CopiedSource
    | SteadySource
    | ConstantSource
)


def noise_stage(mechanism: Any, rows: NDArray[Any], rng: Generator) -> dict[str, Any]:
    """``privatize`` and, if there is one, ``release``, on (n, *shape) clean outputs: raw outputs per view."""
    noisy = mechanism.privatize(rows, rng)
    if noisy is rows and not rows.flags.writeable:
        noisy = rows.copy()
    release = getattr(mechanism, "release", None)
    if release is None:
        return {WHITE_BOX: noisy, BLACK_BOX: noisy}
    given = noisy.copy() if isinstance(noisy, np.ndarray) else noisy
    return {WHITE_BOX: noisy, BLACK_BOX: release(given, rng)}


def draw_raw(source: Source, n: int, rng: Generator) -> dict[str, Any]:
    """Raw outputs per view; a batch that raises is n times its exception."""
    with legacy_generators_seeded(rng):
        try:
            return source.draw(n, rng)
        except MechanismError:
            raise
        except Exception as raised:
            return {WHITE_BOX: Raised(raised), BLACK_BOX: Raised(raised)}


def encode(raw: dict[str, Any], layouts: dict[str, Layout], n: int) -> dict[str, Rows]:
    """(n, d) outputs per view that has a layout; views that are the same object are encoded alike, once."""
    encoded: dict[str, Rows] = {}
    for view, layout in layouts.items():
        same = [seen for seen in encoded if raw[seen] is raw[view] and layouts[seen] == layout]
        encoded[view] = encoded[same[0]] if same else layout.encode(raw[view], n)
    return encoded


def draw_timed_in_turns(
    sources: tuple[TimedSource, TimedSource], n: int, order: Generator, rng: Generator
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Raw outputs on both sides, one call of each in turn, which first at random.

    The clock of a machine drifts; sides timed one after the other would differ by the drift alone.
    """
    outputs: tuple[list[Any], list[Any]] = ([], [])
    with legacy_generators_seeded(rng):
        for first in order.integers(2, size=n).tolist():
            for side in (first, 1 - first):
                source = sources[side]
                outputs[side].append(source.sampler.call_timed(source.dataset))
    return {BLACK_BOX: outputs[0]}, {BLACK_BOX: outputs[1]}


@dataclass(frozen=True)
class BlockTask:
    """One block of paired trials: what to draw and from which stream."""

    sources: tuple[Source, Source]
    entropy: tuple[int, ...]
    phase: int
    block: int
    trials: int

    def raw(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Raw outputs per view on both sides."""
        timed = self._timed()
        return (self._side(0), self._side(1)) if timed is None else timed

    def encoded(self, layouts: dict[str, Layout]) -> tuple[dict[str, Rows], dict[str, Rows]]:
        """(n, d) outputs per view on both sides; of one side's raw outputs at a time, unless they are timed."""
        timed = self._timed()
        if timed is None:
            a, b = (encode(self._side(side), layouts, self.trials) for side in (0, 1))
        else:
            a, b = (encode(raw, layouts, self.trials) for raw in timed)
        return a, b

    def _side(self, side: int) -> dict[str, Any]:
        return draw_raw(self.sources[side], self.trials, self._generator(side))

    def _timed(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        a, b = (source.source if isinstance(source, SteadySource) else source for source in self.sources)
        if not isinstance(a, TimedSource) or not isinstance(b, TimedSource):
            return None
        return draw_timed_in_turns((a, b), self.trials, self._generator(0), self._generator(1))

    def _generator(self, side: int) -> Generator:
        return block_generator(self.entropy, self.phase, side, self.block)


def block_tasks(
    sources: tuple[Source, Source], entropy: tuple[int, ...], phase: int, trials: int
) -> list[BlockTask]:
    """The blocks that make up ``trials`` paired trials."""
    starts = range(0, trials, BLOCK)
    return [
        BlockTask(sources, entropy, phase, i, min(BLOCK, trials - start)) for i, start in enumerate(starts)
    ]


def run_tasks(
    executor: Executor | None, fn: Callable[[Task], Result], tasks: Sequence[Task]
) -> Iterator[Result]:
    """``fn`` over independent tasks, results in order, on any ``concurrent.futures`` executor or in place."""
    results: Iterable[Result] = map(fn, tasks) if executor is None else executor.map(fn, tasks)
    return iter(results)
