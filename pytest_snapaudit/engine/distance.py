"""Distances between clean outputs, defined for every pair of outputs a mechanism may produce."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

NORMS = ("l0", "l1", "l2", "linf")
_EXACT_INTEGERS = 2**53


def observed_distance(a: ArrayLike, b: ArrayLike, norm: str = "l2") -> float:
    """Distance between two clean outputs, infinite where one of them gives the other away.

    Args:
        a: real or complex array of any shape; never modified.
        b: the other one.
        norm: ``"l0"`` (number of coordinates that differ), ``"l1"``, ``"l2"`` or ``"linf"``, over all
            coordinates of the flattened difference.

    Returns:
        The distance, at least 0. Coordinates that are both NaN, or the same infinity, are 0 apart; NaN or an
        infinity against anything else is infinitely far apart (1 coordinate under ``"l0"``). Outputs of
        different shapes are infinitely far apart: their shape alone tells the datasets apart. Integers are
        subtracted without wrap-around, and the norm neither overflows nor underflows before its result does.

    Raises:
        ValueError: if ``norm`` is unknown.
        TypeError: if an output is not an array of numbers.
    """
    validate_norm("observed_distance", norm)
    left, right = numeric(a), numeric(b)
    if left.shape != right.shape:
        return math.inf
    gaps = gaps_between(left.ravel(), right.ravel())
    if norm == "l0":
        return float(np.count_nonzero(gaps))
    largest = float(gaps.max(initial=0.0))
    if largest in (0.0, math.inf) or norm == "linf":
        return largest
    # Scaling by the largest gap keeps the squares of huge and tiny gaps in range.
    scaled = gaps / largest
    total = float(scaled.sum()) if norm == "l1" else float(np.sqrt(np.square(scaled).sum()))
    return largest * total


def numeric(output: object) -> NDArray[Any]:
    """``output`` as an array of numbers, else TypeError."""
    try:
        array = np.asarray(output)
    except ValueError:
        array = np.empty((), object)
    if array.dtype.kind not in "biufc":
        msg = (
            "observed_distance: a clean output must be an array of numbers, "
            f"got {output!r} of type {type(output).__name__}."
        )
        raise TypeError(msg)
    return array


def gaps_between(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.float64]:
    """|left - right| per coordinate of two (n,) arrays, as defined in :func:`observed_distance`."""
    if left.dtype.kind in "biu" and right.dtype.kind in "biu":
        return _integer_gaps(left, right)
    with np.errstate(invalid="ignore", over="ignore"):
        gaps = (
            np.abs(left.astype(np.complex128) - right)
            if "c" in left.dtype.kind + right.dtype.kind
            else (np.abs(left.astype(np.float64) - right.astype(np.float64)))
        )
    nan_left, nan_right = np.isnan(left), np.isnan(right)
    gaps = np.where(np.isnan(gaps) | nan_left | nan_right, math.inf, gaps)
    return np.where((left == right) | (nan_left & nan_right), 0.0, gaps)


def _integer_gaps(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.float64]:
    if left.size == 0:
        return np.zeros(0)
    extreme = max(abs(int(bound)) for side in (left, right) for bound in (side.min(), side.max()))
    wide: type = np.int64 if extreme < _EXACT_INTEGERS else object
    return np.abs(left.astype(wide) - right.astype(wide)).astype(np.float64)


def validate_norm(owner: str, norm: object) -> None:
    """Raise ValueError unless ``norm`` is one of :data:`NORMS`."""
    if not isinstance(norm, str) or norm not in NORMS:
        msg = f'{owner}: norm must be one of "l0", "l1", "l2", "linf", got {norm!r}.'
        raise ValueError(msg)
