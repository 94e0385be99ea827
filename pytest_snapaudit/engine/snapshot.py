"""Recorded clean outputs, stored once per distinct row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

_MAX_COUNT = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False, repr=False)
class Snapshot:
    """Clean outputs of one side: distinct rows and how often each was seen.

    Args:
        rows: (k, *shape) distinct clean outputs, numbers or text; copied and made read-only.
        counts: (k,) positive integers; their sum is the number of evaluations recorded.
        provenance: where the rows come from (model, parameters, versions); never used in the audit.

    Raises:
        TypeError: if ``rows`` is an object array.
        ValueError: if there is no row, or ``counts`` are not positive integers, one per row.
    """

    rows: NDArray[Any]
    counts: NDArray[np.int64]
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rows = _as_rows(self.rows)
        counts = np.asarray(self.counts)
        if (
            counts.shape != (len(rows),)
            or counts.dtype.kind not in "iu"
            or (counts < 1).any()
            or sum(counts.tolist()) > _MAX_COUNT
        ):
            msg = (
                f"Snapshot: counts must be {len(rows)} positive integers, one per row, "
                f"got shape {counts.shape} of dtype {counts.dtype}: {str(counts.tolist())[:80]}."
            )
            raise ValueError(msg)
        rows, counts = rows.copy(), counts.astype(np.int64)
        rows.flags.writeable = counts.flags.writeable = False
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "counts", counts)

    def __repr__(self) -> str:
        shape, dtype = self.rows.shape[1:], self.rows.dtype
        return f"Snapshot({len(self.rows)} distinct of {self.size} rows of shape {shape}, {dtype})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython and Hypothesis print, which would print every field of a dataclass otherwise."""
        printer.text(repr(self))

    @classmethod
    def from_rows(cls, rows: ArrayLike, provenance: Mapping[str, Any] | None = None) -> Self:
        """Collapse ``rows`` of shape (size, *shape) to distinct rows with counts, first seen first.

        Raises:
            TypeError, ValueError: as the constructor.
        """
        array = _as_rows(rows)
        distinct, counts = merge_rows(array, np.ones(len(array), dtype=np.int64))
        return cls(distinct, counts, provenance or {})

    @property
    def size(self) -> int:
        """Number of evaluations recorded."""
        return int(self.counts.sum())

    def expand(self) -> NDArray[Any]:
        """All evaluations, (size, *shape), each distinct row repeated as often as it was seen."""
        return np.repeat(self.rows, self.counts, axis=0)

    def map(self, fn: Callable[[NDArray[Any]], ArrayLike]) -> Snapshot:
        """Apply ``fn`` once to every distinct row; rows with equal results are merged, counts added.

        Args:
            fn: one recorded output of shape (*shape), read-only, in; one clean output out.

        Raises:
            TypeError: if ``fn`` returns an object that is no array of numbers or text.
            ValueError: if ``fn`` returns shapes that differ between rows.
        """
        results = [np.asarray(fn(row)) for row in self.rows]
        shapes = {result.shape for result in results}
        if len(shapes) > 1:
            msg = (
                "Snapshot.map: fn must return one shape for every row, got "
                f"{' and '.join(str(shape) for shape in sorted(shapes)[:3])}."
            )
            raise ValueError(msg)
        rows, counts = merge_rows(_as_rows(np.stack(results)), self.counts)
        return Snapshot(rows, counts, self.provenance)


def _as_rows(rows: ArrayLike) -> NDArray[Any]:
    array = np.asarray(rows)
    if array.dtype == object:
        msg = "Snapshot: rows must be a numeric or string array, got dtype object."
        raise TypeError(msg)
    if array.ndim < 1 or len(array) == 0:
        msg = f"Snapshot: rows must hold at least one clean output, got an array of shape {array.shape}."
        raise ValueError(msg)
    return array


def merge_rows(rows: NDArray[Any], counts: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Merge equal rows of shape (k, *shape) and add their counts (k,), first seen first.

    NaN equals NaN, and 0.0 equals -0.0.
    """
    keys = _keys(rows)
    first: dict[bytes, int] = {}
    for i, key in enumerate(keys):
        first.setdefault(key, i)
    place = {key: j for j, key in enumerate(first)}
    merged = np.zeros(len(first), dtype=np.int64)
    np.add.at(merged, np.fromiter((place[key] for key in keys), np.intp, len(keys)), counts)
    return rows[list(first.values())], merged


def _keys(rows: NDArray[Any]) -> list[bytes]:
    """Bytes for each row, the same exactly if the rows are equal."""
    flat = np.ascontiguousarray(rows).reshape(len(rows), -1)
    if flat.dtype.kind == "c":
        flat = np.concatenate([flat.real, flat.imag], axis=1)
    if flat.dtype.kind == "f":
        flat = np.where(np.isnan(flat), np.asarray(np.nan, dtype=flat.dtype), flat + flat.dtype.type(0))
    width = flat.shape[1] * flat.dtype.itemsize
    if width == 0:
        return [b""] * len(flat)
    flat = np.ascontiguousarray(flat)
    return [bytes(key) for key in flat.view(np.dtype((np.void, width))).ravel().tolist()]


@dataclass(frozen=True, eq=False)
class SnapshotPair:
    """Recorded clean outputs of a neighbouring pair: the reference side and the side with the canary.

    Raises:
        TypeError: if a side is no :class:`Snapshot`.
        ValueError: if the sides hold clean outputs of different shapes.
    """

    reference: Snapshot
    canary: Snapshot

    def __post_init__(self) -> None:
        for side in ("reference", "canary"):
            if not isinstance(getattr(self, side), Snapshot):
                msg = f"SnapshotPair: {side} must be a Snapshot, got {type(getattr(self, side)).__name__}."
                raise TypeError(msg)
        if self.reference.rows.shape[1:] != self.canary.rows.shape[1:]:
            msg = (
                "SnapshotPair: both sides must hold clean outputs of one shape, got "
                f"{self.reference.rows.shape[1:]} and {self.canary.rows.shape[1:]}."
            )
            raise ValueError(msg)

    def map(self, fn: Callable[[NDArray[Any]], ArrayLike]) -> SnapshotPair:
        """Run the mechanism's own aggregation, live, on every recorded clean output of both sides.

        Args:
            fn: one recorded output of shape (*shape) in, one clean output out.

        Raises:
            TypeError, ValueError: as :meth:`Snapshot.map`, and if the sides' results differ in shape.
        """
        return SnapshotPair(self.reference.map(fn), self.canary.map(fn))
