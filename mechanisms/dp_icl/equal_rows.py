"""Rows of an array that are copies of each other, found without comparing where possible."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

_COMPARED_AT_ONCE = 2**20

Where = slice | NDArray[np.intp]


def groups_of_equal_rows(rows: NDArray[Any]) -> Iterator[tuple[NDArray[Any], Where]]:
    """Each different row, with where it stands; in order of first appearance.

    Rows of one broadcast row (a stride of zero) are known to be equal. Others are compared with the first one in
    blocks, and hashed only if one differs, so that memory stays near that of the array and its different rows.

    Args:
        rows: (n, V).

    Yields:
        The row, (V,), and a slice or the indices of its copies; nothing for n = 0.
    """
    if not len(rows):
        return
    if len(rows) == 1 or rows.strides[0] == 0 or _all_equal(rows):
        yield rows[0], slice(None)
        return
    where: dict[bytes, list[int]] = {}
    for i, row in enumerate(rows):
        where.setdefault(row.tobytes(), []).append(i)
    for indices in where.values():
        yield rows[indices[0]], np.array(indices, np.intp)


def _all_equal(rows: NDArray[Any]) -> bool:
    step = max(1, _COMPARED_AT_ONCE // max(rows.shape[1], 1))
    first = rows[0]
    return all((rows[start : start + step] == first).all() for start in range(0, len(rows), step))
