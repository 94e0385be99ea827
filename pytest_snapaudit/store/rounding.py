"""Rows that drift by less than a stated tolerance, recorded as one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pytest_snapaudit.engine.snapshot import Snapshot, SnapshotPair, merge_rows

_PROJECTIONS = 4


def validate_tolerance(value: object, where: str) -> float:
    """Return ``value`` as a float.

    Raises:
        ValueError: unless it is a finite number above 0.
    """
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float | np.floating | np.integer)
        or not math.isfinite(value)
        or value <= 0
    ):
        msg = f"{where} must be a finite number above 0, or None for rows as recorded; got {value!r}."
        raise ValueError(msg)
    return float(value)


def round_rows(rows: ArrayLike, tolerance: float, *, anchors: NDArray[Any] | None = None) -> NDArray[Any]:
    """Replace each row by the first row before it that is less than ``tolerance`` away in every coordinate.

    A grid would still separate rows that drift across one of its boundaries, which in hundreds of dimensions
    some coordinate always does; here any drift below the tolerance disappears, rows without a near
    predecessor stay exactly as recorded, no coordinate moves by ``tolerance`` or more, and rounding twice
    changes nothing. NaN is near NaN, and an infinity is near itself.

    Args:
        rows: (n, *shape) floats or complex numbers; arrays of other dtypes are returned as they are.
        tolerance: finite and positive, in units of the rows.
        anchors: (m, *shape) rows that come before ``rows``, for example those of the previous recording.

    Returns:
        (n, *shape) array of the dtype of ``rows``.

    Raises:
        ValueError: if the tolerance is out of range, or the shapes do not fit.
    """
    tolerance = validate_tolerance(tolerance, "round_rows: tolerance")
    array = np.asarray(rows)
    if array.ndim < 1:
        msg = f"round_rows: rows must have shape (n, *shape), got a scalar {array!r}."
        raise ValueError(msg)
    if anchors is not None and anchors.shape[1:] != array.shape[1:]:
        msg = f"round_rows: anchors must hold rows of shape {array.shape[1:]}, got {anchors.shape[1:]}."
        raise ValueError(msg)
    if array.dtype.kind not in "fc" or array.size == 0:
        return array.copy()
    earlier = 0 if anchors is None else len(anchors)
    pool = array if anchors is None else np.concatenate([anchors.astype(array.dtype), array])
    wide = np.complex128 if array.dtype.kind == "c" else np.float64
    flat = pool.reshape(len(pool), -1).astype(wide)
    sketch, slack = _sketch(flat, tolerance)
    kept, kept_sketch = np.empty_like(flat), np.empty_like(sketch)
    origin = np.empty(len(pool), dtype=np.intp)
    leaders = np.arange(len(pool))
    count = 0
    for i, row in enumerate(flat):
        screened = np.flatnonzero((np.abs(kept_sketch[:count] - sketch[i]) <= slack).all(axis=1))
        near = screened[_near(kept[screened], row, tolerance)]
        if len(near):
            leaders[i] = origin[near[0]]
        else:
            kept[count], kept_sketch[count], origin[count] = row, sketch[i], i
            count += 1
    return pool[leaders[earlier:]]


def _sketch(flat: NDArray[Any], tolerance: float) -> tuple[NDArray[Any], float]:
    """Random signed sums of each row, (n, 4), and how far apart those of two near rows can be.

    Near rows have their NaNs and infinities in the same places, so these can count as 0. The second term of
    the slack bounds the rounding errors of the sums.
    """
    finite = np.where(np.isfinite(flat), flat, 0)
    scale = max(float(np.abs(finite.view(np.float64)).max()), float(np.finfo(float).tiny))
    width = flat.shape[1]
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (width, _PROJECTIONS))
    slack = width * (tolerance / scale + 16 * width * float(np.finfo(float).eps))
    return (finite / scale) @ signs, slack


def _near(rows: NDArray[Any], row: NDArray[Any], tolerance: float) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore", over="ignore"):
        same = (np.abs(rows - row) < tolerance) | (rows == row) | (np.isnan(rows) & np.isnan(row))
    return np.asarray(same.all(axis=1))


def rounds(pair: SnapshotPair) -> bool:
    """Whether either side holds numbers that rounding can act on."""
    return pair.reference.rows.dtype.kind in "fc" or pair.canary.rows.dtype.kind in "fc"


def round_pair(pair: SnapshotPair, tolerance: float, previous: SnapshotPair | None = None) -> SnapshotPair:
    """Round both sides of ``pair`` together and merge the rows that became equal.

    Args:
        pair: the recording.
        tolerance: as in :func:`round_rows`.
        previous: the recording it replaces; its rows come first, so that a recording which drifted by less
            than the tolerance comes out identical.
    """
    reference, canary = pair.reference.rows, pair.canary.rows
    if reference.dtype != canary.dtype:
        return SnapshotPair(
            _merged(pair.reference, round_rows(reference, tolerance)),
            _merged(pair.canary, round_rows(canary, tolerance)),
        )
    anchors = None
    if previous is not None:
        earlier = [previous.reference.rows, previous.canary.rows]
        if all((rows.dtype, rows.shape[1:]) == (reference.dtype, reference.shape[1:]) for rows in earlier):
            anchors = np.concatenate(earlier)
    both = round_rows(np.concatenate([reference, canary]), tolerance, anchors=anchors)
    return SnapshotPair(
        _merged(pair.reference, both[: len(reference)]), _merged(pair.canary, both[len(reference) :])
    )


def _merged(snapshot: Snapshot, rounded: NDArray[Any]) -> Snapshot:
    rows, counts = merge_rows(rounded, snapshot.counts)
    return Snapshot(rows, counts, snapshot.provenance)
