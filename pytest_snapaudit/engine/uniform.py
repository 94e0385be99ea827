"""Outputs that are all of one form and made of numbers, read at once instead of leaf by leaf."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_snapaudit.engine.leaves import atoms

_NUMBERS = frozenset({float, int, bool, np.float64})


def uniform_numbers(outputs: list[Any]) -> tuple[list[str], NDArray[np.float64]] | None:
    """The leaves of ``n`` outputs: numbers, sequences of as many numbers, dicts with equal keys, arrays of one shape.

    Returns:
        The paths that :func:`~pytest_snapaudit.engine.leaves.atoms` gives to the leaves, sizes of containers among
        them, and (n, paths) values; None if the outputs are of another form, or of several.
    """
    values = _values(outputs)
    if values is None or values.size == 0:
        return None
    found = list(atoms(outputs[0]))
    sizes = [float(atom) if path.endswith(("()", "{}")) else None for path, atom in found]
    paths = [path for path, _ in found]
    if sizes.count(None) != values.shape[1] or len(set(paths)) < len(paths):
        return None
    table = np.empty((len(outputs), len(paths)))
    table[:, [j for j, size in enumerate(sizes) if size is None]] = values
    for j, size in enumerate(sizes):
        if size is not None:
            table[:, j] = size
    return paths, table


def _values(outputs: list[Any]) -> NDArray[np.float64] | None:
    """(n, m) numbers, without sizes; None if the outputs differ in form."""
    n = len(outputs)
    if n == 0 or len({_form(output) for output in outputs}) > 1:
        return None
    if type(outputs[0]) is np.ndarray:
        return (
            np.stack(outputs).reshape(n, -1).astype(np.float64) if outputs[0].dtype.kind in "biuf" else None
        )
    if type(outputs[0]) is dict:
        return _numbers(itertools.chain.from_iterable(output.values() for output in outputs), n)
    return _numbers(
        itertools.chain.from_iterable(outputs) if type(outputs[0]) in (list, tuple) else outputs, n
    )


def _form(output: Any) -> Any:
    """What outputs that are read together have in common."""
    kind = type(output)
    if kind in _NUMBERS:
        return float
    if kind in (list, tuple):
        return len(output)
    if kind is dict:
        return dict, *output
    return (output.shape, output.dtype) if kind is np.ndarray else kind


def _numbers(parts: Iterable[Any], n: int) -> NDArray[np.float64] | None:
    listed = list(parts)
    if not listed or not _NUMBERS.issuperset(map(type, listed)):
        return None
    try:
        return np.array(listed, dtype=np.float64).reshape(n, -1)
    except OverflowError:  # an integer beyond the floating-point numbers
        return None
