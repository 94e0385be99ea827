"""Recorded clean outputs, stored once per distinct row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Clean outputs of one side: distinct rows and how often each was seen.

    Attributes:
        rows: (k, *shape) distinct clean outputs.
        counts: (k,) positive integers; their sum is the number of evaluations recorded.
        provenance: where the rows come from (model, parameters, versions); never used in the audit.
    """

    rows: NDArray[Any]
    counts: NDArray[np.int64]
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rows = np.asarray(self.rows)
        counts = np.asarray(self.counts)
        if rows.dtype == object:
            msg = "Snapshot: rows must be a numeric or string array, got dtype object."
            raise TypeError(msg)
        if rows.ndim < 1 or len(rows) == 0:
            msg = f"Snapshot: rows must hold at least one clean output, got an array of shape {rows.shape}."
            raise ValueError(msg)
        if counts.shape != (len(rows),) or counts.dtype.kind not in "iu" or (counts < 1).any():
            msg = (
                f"Snapshot: counts must be {len(rows)} positive integers, one per row, "
                f"got shape {counts.shape} of dtype {counts.dtype}."
            )
            raise ValueError(msg)
        rows, counts = rows.copy(), counts.astype(np.int64)
        rows.flags.writeable = counts.flags.writeable = False
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "counts", counts)

    @classmethod
    def from_rows(cls, rows: ArrayLike, provenance: Mapping[str, Any] | None = None) -> Self:
        """Collapse ``rows`` of shape (size, *shape) to distinct rows with counts, first seen first."""
        array = np.asarray(rows)
        if array.ndim < 1 or len(array) == 0:
            msg = f"Snapshot: rows must hold at least one clean output, got an array of shape {array.shape}."
            raise ValueError(msg)
        _, first, counts = np.unique(
            array.reshape(len(array), -1), axis=0, return_index=True, return_counts=True
        )
        order = np.argsort(first)
        return cls(array[first[order]], counts[order].astype(np.int64), provenance or {})

    @property
    def size(self) -> int:
        """Number of evaluations recorded."""
        return int(self.counts.sum())

    def expand(self) -> NDArray[Any]:
        """All evaluations, (size, *shape), each distinct row repeated as often as it was seen."""
        return np.repeat(self.rows, self.counts, axis=0)

    def map(self, fn: Callable[[NDArray[Any]], ArrayLike]) -> Snapshot:
        """Apply ``fn``, one clean output in and one out, to every distinct row; equal results are merged."""
        mapped = np.stack([np.asarray(fn(row)) for row in self.rows])
        collapsed = Snapshot.from_rows(mapped)
        flat = mapped.reshape(len(mapped), -1)
        counts = [
            int(self.counts[_equal_rows(flat, kept)].sum())
            for kept in collapsed.rows.reshape(len(collapsed.rows), -1)
        ]
        return Snapshot(collapsed.rows, np.asarray(counts, np.int64), self.provenance)


def _equal_rows(rows: NDArray[Any], row: NDArray[Any]) -> NDArray[np.bool_]:
    same = rows == row
    if rows.dtype.kind in "fc":
        same |= np.isnan(rows) & np.isnan(row)
    return np.asarray(same.all(axis=1))


@dataclass(frozen=True, eq=False)
class SnapshotPair:
    """Recorded clean outputs of a neighbouring pair: the reference side and the side with the canary."""

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
        """
        return SnapshotPair(self.reference.map(fn), self.canary.map(fn))
