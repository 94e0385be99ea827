"""Disjoint partitions of the exemplars.

Invariant: which partition an exemplar belongs to depends on its position, the number of exemplars, the
number of partitions and the seed, and never on what any exemplar says. Replacing one exemplar therefore
changes exactly one partition, the fact on which the sensitivity of every partition-and-aggregate mechanism
rests.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Exemplar = TypeVar("Exemplar")


def assign(size: int, partitions: int, seed: int = 0) -> NDArray[np.int64]:
    """Assign positions to partitions at random, as evenly as possible.

    Partition sizes differ by at most one. With more partitions than exemplars, the first ``size``
    partitions hold one exemplar each and the others are empty. The assignment is the same on every platform
    and NumPy version.

    Args:
        size: number of exemplars, at least 0.
        partitions: number of partitions T, at least 1.
        seed: at least 0; another seed deals the exemplars differently.

    Returns:
        (size,) partition indices in [0, T).

    Raises:
        TypeError: an argument is not an integer.
        ValueError: an argument is below its minimum.
    """
    size = _integer("size", size, minimum=0)
    partitions = validate_partitions(partitions)
    # A bit generator's raw stream is fixed for ever, unlike Generator.permutation.
    keys = np.random.PCG64(validate_seed(seed)).random_raw(size)
    assignment = np.empty(size, np.int64)
    assignment[np.argsort(keys, kind="stable")] = np.arange(size) % partitions
    return assignment


def split(exemplars: Sequence[Exemplar], partitions: int, seed: int = 0) -> tuple[tuple[Exemplar, ...], ...]:
    """Split exemplars into disjoint partitions that together hold each exemplar once.

    Args:
        exemplars: a sequence; within a partition its order is kept, so the last exemplar comes last in its
            partition.
        partitions: number of partitions T, at least 1.
        seed: at least 0.

    Returns:
        T tuples of exemplars, some of them empty when there are more partitions than exemplars.

    Raises:
        TypeError: ``exemplars`` is not a sequence of exemplars, or another argument is not an integer.
        ValueError: ``partitions`` or ``seed`` is below its minimum.
    """
    if isinstance(exemplars, str | bytes) or not isinstance(exemplars, Sequence):
        msg = (
            f"exemplars must be a sequence such as a list or tuple, got {type(exemplars).__name__}; "
            "put a single exemplar in a list."
        )
        raise TypeError(msg)
    parts: list[list[Exemplar]] = [[] for _ in range(validate_partitions(partitions))]
    for exemplar, index in zip(exemplars, assign(len(exemplars), partitions, seed), strict=True):
        parts[index].append(exemplar)
    return tuple(tuple(part) for part in parts)


def validate_partitions(value: object) -> int:
    """Return the number of partitions as an int.

    Raises:
        TypeError: it is not an integer.
        ValueError: it is below 1.
    """
    return _integer("partitions", value, minimum=1)


def validate_seed(value: object) -> int:
    """Return the seed of the assignment as an int.

    Raises:
        TypeError: it is not an integer.
        ValueError: it is negative.
    """
    return _integer("seed", value, minimum=0)


def _integer(name: str, value: object, minimum: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        msg = (
            f"{name} must be an integer of at least {minimum}, got {value!r} of type {type(value).__name__}."
        )
        raise TypeError(msg)
    if value < minimum:
        msg = f"{name} must be an integer of at least {minimum}, got {value!r}."
        raise ValueError(msg)
    return int(value)
