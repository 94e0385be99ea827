"""Is the mechanism wired as it should be? Checked on the first draws, before anything is counted."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from pytest_snapaudit.engine.batches import Raised, Rows, as_batch, is_numeric, iterate_outputs, numeric_parts
from pytest_snapaudit.engine.errors import MechanismError
from pytest_snapaudit.engine.independence import check_calls
from pytest_snapaudit.engine.leaves import is_opaque, kind_text, leaves
from pytest_snapaudit.engine.seeding import block_generator
from pytest_snapaudit.engine.simulation import (
    PROBE,
    ConstantSource,
    CopiedSource,
    FixedCleanSource,
    Source,
    draw_raw,
)
from pytest_snapaudit.engine.subject import Subject
from pytest_snapaudit.engine.uniform import uniform_numbers

_PROBE_TRIALS = 64
_VARIED = 8
_SAME_SIZE = 8
"""Number of the block of draws that is compared with the first of as many."""


def check_pilot(name: str, sides: tuple[Any, Any], n: int) -> None:
    """Refuse outputs that can only be a wiring mistake.

    Raises:
        MechanismError: a wrong number of rows; the same exception in more than half of the outputs of both
            sides; outputs without a number.
    """
    try:
        batches = [as_batch(raw, n) for raw in sides]
    except MechanismError as error:
        msg = f"{name}: {error}"
        raise MechanismError(msg) from error
    common = [_most_common_exception(batch, n) for batch in batches]
    first, second = common
    if first is not None and second is not None and type(first) is type(second):
        msg = (
            f"{name}: more than half of the outputs on both datasets are {type(first).__name__} ({first}); "
            "an exception on one side is a finding, on both it is a wiring mistake: check how the mechanism "
            "is called."
        )
        raise MechanismError(msg) from first
    if all(is_numeric(batch) and _width(batch, n) == 0 for batch in batches):
        msg = f"{name}: the outputs are empty on both datasets; return at least one number per output."
        raise MechanismError(msg)
    if all(isinstance(batch, list) and all(map(is_opaque, batch)) for batch in batches):
        msg = (
            f"{name}: nothing but their type can be told of the outputs, which are {type(batches[0][0]).__name__} "
            "objects; return numbers, labels, arrays, or tuples, dicts or dataclasses of them."
        )
        raise MechanismError(msg)


def check_not_empty(
    name: str, sides: tuple[Any, Any], n: int, more: Callable[[], tuple[tuple[Any, Any], int]]
) -> None:
    """Refuse outputs that are NaN or None on both datasets, also when many more are drawn.

    Raises:
        MechanismError: nothing else came.
    """
    if not all(_all_nan(as_batch(raw, n), n) for raw in sides):
        return
    others, size = more()
    if all(_all_nan(as_batch(raw, size), size) for raw in others):
        msg = (
            f"{name}: every output is NaN or None on both datasets; check how it is called, and that it returns "
            "its result."
        )
        raise MechanismError(msg)


def exceptions_in_words(sides: tuple[Any, Any], n: int) -> str:
    """How many of ``n`` outputs of each side are exceptions, and the commonest of them; "" if none is."""
    words, found = [], False
    for side, raw in zip(("reference", "canary"), sides, strict=True):
        batch = as_batch(raw, n)
        objects = iterate_outputs(batch, n) if isinstance(batch, Raised | list) else ()
        raised = Counter(kind_text(output) for output in objects if isinstance(output, BaseException))
        found = found or bool(raised)
        commonest = f", mostly {raised.most_common(1)[0][0]}" if raised else ""
        words.append(f"{raised.total():,} of the first {n:,} outputs on the {side}{commonest}")
    return "; ".join(words) if found else ""


def constant_in_words(sides: tuple[Rows, Rows], n: int) -> str:
    """That every output of a side is the same, on both sides, if it is so."""
    if not all(np.array_equal(rows, np.broadcast_to(rows[:1], rows.shape), equal_nan=True) for rows in sides):
        return ""
    return (
        f"the first {n:,} outputs on either dataset are all the same: "
        "no noise is added, or it is seeded anew in every call"
    )


def _width(batch: Any, n: int) -> int:
    return sum(part.shape[1] for part in numeric_parts(batch, n).values())


def _all_nan(batch: Any, n: int) -> bool:
    if isinstance(batch, list):
        return all(output is None or (isinstance(output, float) and math.isnan(output)) for output in batch)
    if not is_numeric(batch) or _width(batch, n) == 0:
        return False
    return all(bool(np.isnan(part).all()) for part in numeric_parts(batch, n).values())


def _most_common_exception(batch: Any, n: int) -> Exception | None:
    if isinstance(batch, Raised):
        return batch.exception
    if not isinstance(batch, list):
        return None
    raised = [output for output in iterate_outputs(batch, n) if isinstance(output, Exception)]
    kinds = Counter(type(exception) for exception in raised).most_common(1)
    if not kinds or kinds[0][1] <= n / 2:
        return None
    return next(exception for exception in raised if type(exception) is kinds[0][0])


def probe(subject: Subject, entropy: tuple[int, ...]) -> tuple[Subject, bool]:
    """Draw a few trials twice from one seed, and once from another.

    Returns:
        The subject, with clean outputs handed out as writable copies if ``privatize`` writes into them, and
        outputs copied if one call overwrites those of another; and whether equal seeds gave equal outputs.
    """
    found = [
        _probe_source(subject.name, source, entropy, side) for side, source in enumerate(subject.sources)
    ]
    sources = found[0][0], found[1][0]
    return replace(subject, sources=sources), all(same for _, same in found)


def _check_independence(
    name: str, source: Source, first: dict[str, Any], entropy: tuple[int, ...], side: int
) -> None:
    """Refuse outputs of one call that share a draw, depend on how many are asked for, or ignore the seed.

    A correct mechanism is refused with probability below 1e-9: the rows of one call all agree and differ
    from those of another only if an output of probability p, and another of probability q, each came 64
    times; and varied outputs repeat under another seed with probability below 1 / C(64, 8).
    """
    n = _PROBE_TRIALS + 1
    sizes = (_PROBE_TRIALS, n)
    other = draw_raw(source, n, block_generator(entropy, PROBE, side, 2))
    for view in first.keys() & other.keys():
        try:
            batches = as_batch(first[view], _PROBE_TRIALS), as_batch(other[view], n)
        except MechanismError:
            return  # the pilot says what is wrong
        if not all(
            is_numeric(batch) and _width(batch, rows) for batch, rows in zip(batches, sizes, strict=True)
        ):
            continue
        a, b = (
            np.concatenate(list(numeric_parts(batch, rows).values()), axis=1)
            for batch, rows in zip(batches, sizes, strict=True)
        )
        if a.shape[1] == _PROBE_TRIALS and b.shape[1] == n:
            msg = (
                f"{name}: asked for n outputs, it returns an (n, n) array, whatever n: noise of shape (n,) was added "
                "to values of shape (n, 1); draw noise of np.shape(clean), one row per output."
            )
            raise MechanismError(msg)
        if a.shape[1] != b.shape[1] or np.isnan(a).any() or np.isnan(b).any():
            continue
        if (a == a[0]).all() and (b == b[0]).all() and (a[0] != b[0]).any():
            msg = (
                f"{name}: the outputs of one call are all equal, and differ from those of the next call: one draw is "
                "shared by all of them; draw noise for every row, for example rng.laplace(0, scale, "
                "np.shape(clean)), or audit one output per call with from_callable."
            )
            raise MechanismError(msg)
    again = draw_raw(source, _PROBE_TRIALS, block_generator(entropy, PROBE, side, _SAME_SIZE))
    if _same_random_outputs(first, again, _PROBE_TRIALS):
        msg = (
            f"{name}: different seeds give the same random outputs: its randomness is seeded anew in every call; "
            "draw from the rng it is given."
        )
        raise MechanismError(msg)


def check_copies(subject: Subject, entropy: tuple[int, ...]) -> None:
    """Refuse a mechanism of which every worker process gets a copy with the same generator in it.

    Raises:
        MechanismError: two copies give the same random outputs under different seeds.
    """
    for side, source in enumerate(subject.sources):
        try:
            copies = copy.deepcopy(source), copy.deepcopy(source)
        except Exception:  # what cannot be copied cannot be sent either, and the executor says so
            return
        first, second = (
            draw_raw(each, _PROBE_TRIALS, block_generator(entropy, PROBE, side, _SAME_SIZE + i))
            for i, each in enumerate(copies)
        )
        if _same_random_outputs(first, second, _PROBE_TRIALS):
            msg = (
                f"{subject.name}: it holds a generator of its own, whose state every worker process would copy, and "
                "all of them would draw the same noise; draw from the rng it is given, or leave out executor."
            )
            raise MechanismError(msg)


def _same_random_outputs(first: dict[str, Any], second: dict[str, Any], n: int) -> bool:
    """Whether two draws are equal though their outputs vary: 8 of 64 at least differ from the commonest."""
    for view in first.keys() & second.keys():
        a, b = (_numbers(raw[view], n) for raw in (first, second))
        if a is None or b is None or a.shape != b.shape or a.shape[1] == 0:
            continue
        _, counts = np.unique(a, axis=0, return_counts=True)
        if n - counts.max() >= _VARIED and np.array_equal(a, b):
            return True
    return False


def _numbers(raw: Any, n: int) -> Any:
    """(n, d) numbers, also of lists of numbers; None if the outputs are something else."""
    try:
        batch = as_batch(raw, n)
    except MechanismError:
        return None
    if is_numeric(batch):
        values = np.concatenate(list(numeric_parts(batch, n).values()), axis=1)
    else:
        uniform = uniform_numbers(batch) if isinstance(batch, list) else None
        if uniform is None:
            return None
        values = uniform[1]
    return np.where(np.isnan(values), -np.inf, values)  # so that NaN equals NaN


def _probe_source(name: str, source: Source, entropy: tuple[int, ...], side: int) -> tuple[Source, bool]:
    source = _writable(source, entropy)
    first, second = (
        draw_raw(source, _PROBE_TRIALS, block_generator(entropy, PROBE, side, 0)) for _ in range(2)
    )
    if not isinstance(source, ConstantSource | CopiedSource) and _share_memory(first, second):
        return _probe_source(name, CopiedSource(source), entropy, side)
    _check_independence(name, source, first, entropy, side)
    check_calls(name, source, entropy, side)
    return source, _same(first, second)


def _share_memory(first: Any, second: Any) -> bool:
    """Whether the outputs of two calls are, or hold, the same arrays."""
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return np.may_share_memory(first, second)
    if isinstance(first, dict) and isinstance(second, dict):
        return any(_share_memory(first[key], second[key]) for key in first.keys() & second.keys())
    if isinstance(first, tuple) and isinstance(second, tuple):
        return any(_share_memory(a, b) for a, b in zip(first, second, strict=False))
    if isinstance(first, list) or hasattr(first, "data_ptr"):
        return first is second
    return False


def _writable(source: Source, entropy: tuple[int, ...]) -> Source:
    if not isinstance(source, FixedCleanSource):
        return source
    raw = draw_raw(source, _PROBE_TRIALS, block_generator(entropy, PROBE, 0, 1))
    failed = [value.exception for value in raw.values() if isinstance(value, Raised)]
    if failed and isinstance(failed[0], ValueError) and "read-only" in str(failed[0]):
        return replace(source, copy=True)
    return source


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, Raised | Exception) or isinstance(b, Raised | Exception):
        return type(a) is type(b)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    if (
        isinstance(a, np.ndarray)
        and isinstance(b, np.ndarray)
        and not (a.dtype.hasobject or b.dtype.hasobject)
    ):
        floating = a.dtype.kind in "fc" and b.dtype.kind in "fc"
        return bool(np.array_equal(a, b, equal_nan=floating))
    return sorted(map(str, leaves(a))) == sorted(map(str, leaves(b)))
