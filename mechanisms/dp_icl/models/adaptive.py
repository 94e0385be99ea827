"""Snapshots of as many rows as the answer needs: recording stops when more rows could not matter.

A random clean stage (sampled texts) is recorded as rows, one per evaluation and side, each of which costs T
model calls. Rows are recorded in growing looks; after each, ``bound`` says between which two numbers the
audited ε lies, and recording stops when the claim is decided, or when the bounds are close enough.

**Validity.** The rows that decide when to stop are the rows that are counted, so ``bound`` must hold at the
look where it happens to stop. There are two ways: a lower bound by betting whose bets are fixed before the
rows are seen, a test supermartingale, which holds at all looks at once (Ville's inequality); or, for any
other bound, the error probability divided by the number of looks (:func:`look_sizes` says how many) and the
bound computed at that share (union bound). Then ``epsilon_lower``, the largest lower bound over all looks,
exceeds the true ε with at most the stated probability. A bound for a fixed number of rows at its full error
probability is *not* valid here.

Stopping because of the upper number costs no validity, only power: it must merely not be too small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dp_icl.models.progress import Progress
from dp_icl.models.protocols import check_positive

D = TypeVar("D")
D_contra = TypeVar("D_contra", contravariant=True)

MAX_ROWS = 2_000
"""Rows per side of a fixed-size snapshot (the paper's N)."""


class RowRecorder(Protocol[D_contra]):
    """Evaluates the clean stage of one dataset."""

    def __call__(self, dataset: D_contra, first: int, count: int) -> NDArray[Any]:
        """Evaluations number ``first`` to ``first + count - 1``.

        Args:
            dataset: one of the neighbours.
            first: number of the first evaluation, from which its seeds follow; evaluations are independent.
            count: how many.

        Returns:
            (count, *shape) rows.
        """


Bound = Callable[[NDArray[Any], NDArray[Any]], tuple[float, float]]
"""``bound(reference_rows, canary_rows)`` returns (lower, upper): ε is at least ``lower``, and more rows would not
lift the lower bound above ``upper``."""


@dataclass(frozen=True)
class Look:
    """What was known after so many rows per side.

    Attributes:
        rows: rows per side.
        epsilon_lower, epsilon_upper: what ``bound`` said.
    """

    rows: int
    epsilon_lower: float
    epsilon_upper: float


@dataclass(frozen=True)
class AdaptiveRecording:
    """Rows of both sides, and why there are not more.

    Attributes:
        reference, canary: (n, *shape) rows.
        looks: every look that was taken.
        reason: ``"claim refuted"``, ``"claim not refutable"``, ``"tolerance"`` or ``"all rows"``.
        partitions: T, model calls per row.
        max_rows: rows per side of the fixed size.
    """

    reference: NDArray[Any]
    canary: NDArray[Any]
    looks: tuple[Look, ...]
    reason: str
    partitions: int
    max_rows: int

    @property
    def rows(self) -> int:
        """Rows per side."""
        return len(self.reference)

    @property
    def epsilon_lower(self) -> float:
        """The largest lower bound over all looks, at least 0."""
        return max(0.0, *(look.epsilon_lower for look in self.looks))

    @property
    def calls(self) -> int:
        """Model calls of these rows, 2 · n · T."""
        return 2 * self.rows * self.partitions

    @property
    def fixed_calls(self) -> int:
        """Model calls of a snapshot of fixed size, 2 · max_rows · T."""
        return 2 * self.max_rows * self.partitions

    def __str__(self) -> str:
        return (
            f"{self.reason} after {self.rows:,} of {self.max_rows:,} rows per side: "
            f"epsilon >= {self.epsilon_lower:.4g}; {self.calls:,} model calls instead of {self.fixed_calls:,} "
            f"({self.calls / self.fixed_calls:.1%})"
        )


def look_sizes(max_rows: int = MAX_ROWS, *, first: int = 125) -> tuple[int, ...]:
    """Rows per side at each look: ``first``, then twice as many, up to ``max_rows``.

    Raises:
        ValueError: an argument is not a positive integer.
    """
    check_positive(max_rows, "look_sizes", "max_rows")
    size = check_positive(first, "look_sizes", "first")
    sizes = []
    while size < max_rows:
        sizes.append(size)
        size *= 2
    return (*sizes, max_rows)


def record_adaptively(
    record: RowRecorder[D],
    neighbours: tuple[D, D],
    bound: Bound,
    *,
    partitions: int,
    claim: float | None = None,
    tolerance: float | None = None,
    looks: Sequence[int] | None = None,
) -> AdaptiveRecording:
    """Record rows of both sides until more of them could not change the answer.

    Args:
        record: evaluates the clean stage; put the model behind a journal, so that nothing is paid for twice.
        neighbours: (reference, canary).
        bound: the bounds on ε that the rows so far imply, valid at every look (see the module).
        partitions: T, the model calls that one row costs.
        claim: ε under test: stop when the lower bound is above it, or the upper one at most it.
        tolerance: stop when the bounds are at most this far apart.
        looks: increasing numbers of rows per side at which to look; :func:`look_sizes` by default. The last
            one is where recording ends in any case.

    Returns:
        The rows, with every look and the calls spent.

    Raises:
        ValueError: neither ``claim`` nor ``tolerance`` is given, one is negative or not finite, ``looks`` does
            not increase, ``record`` returned another number of rows, or ``bound`` returned a lower bound
            above the upper one.
    """
    owner = "record_adaptively"
    check_positive(partitions, owner, "partitions")
    if claim is None and tolerance is None:
        msg = f"{owner}: give claim, tolerance or both; without either nothing says when to stop."
        raise ValueError(msg)
    for argument, value in (("claim", claim), ("tolerance", tolerance)):
        if value is not None and not (math.isfinite(value) and value >= 0):
            msg = f"{owner}: {argument} must be a finite number of at least 0, got {value!r}."
            raise ValueError(msg)
    sizes = look_sizes() if looks is None else _check_looks(looks)
    sides: list[list[NDArray[Any]]] = [[], []]
    taken: list[Look] = []
    reason = "all rows"
    with Progress("rows per side", sizes[-1]) as progress:
        done = 0
        for size in sizes:
            for rows, dataset in zip(sides, neighbours, strict=True):
                rows.append(_record(record, dataset, done, size - done))
            progress.advance(size - done)
            done = size
            lower, upper = bound(*(np.concatenate(rows) for rows in sides))
            taken.append(_look(size, lower, upper))
            stop = _reason(max(look.epsilon_lower for look in taken), upper, claim, tolerance)
            if stop is not None:
                reason = stop
                break
    reference, canary = (np.concatenate(rows) for rows in sides)
    return AdaptiveRecording(reference, canary, tuple(taken), reason, partitions, sizes[-1])


def _reason(lower: float, upper: float, claim: float | None, tolerance: float | None) -> str | None:
    if claim is not None and lower > claim:
        return "claim refuted"
    if claim is not None and upper <= claim:
        return "claim not refutable"
    if tolerance is not None and upper - lower <= tolerance:
        return "tolerance"
    return None


def _record(record: RowRecorder[D], dataset: D, first: int, count: int) -> NDArray[Any]:
    rows = np.asarray(record(dataset, first, count))
    if rows.ndim < 1 or len(rows) != count:
        msg = (
            f"record_adaptively: record(dataset, first={first}, count={count}) must return {count} rows, got an "
            f"array of shape {rows.shape}."
        )
        raise ValueError(msg)
    return rows


def _look(size: int, lower: float, upper: float) -> Look:
    if not lower <= upper:
        msg = (
            f"record_adaptively: bound must return (lower, upper) with lower at most upper, got ({lower!r}, "
            f"{upper!r}) at {size} rows per side."
        )
        raise ValueError(msg)
    return Look(size, float(lower), float(upper))


def _check_looks(looks: Sequence[int]) -> tuple[int, ...]:
    sizes = tuple(check_positive(size, "record_adaptively", "looks") for size in looks)
    if not sizes or any(later <= earlier for earlier, later in pairwise(sizes)):
        msg = f"record_adaptively: looks must be increasing numbers of rows, got {list(looks)}."
        raise ValueError(msg)
    return sizes
