"""Disjoint partitions of the exemplars, so dealt that a neighbouring dataset changes exactly one of them.

On this fact the sensitivity of every partition-and-aggregate mechanism rests. No single way of dealing has it
for both notions of neighbours:

- Replace-one (:func:`assign`): the partition depends on the position, the number of exemplars, the number of
  partitions and the seed, never on what an exemplar says. A replaced exemplar's successor takes its place. When
  one is added or removed, all are dealt anew and many partitions change.
- Add-remove (:func:`assign_by_content`): the partition depends on the exemplar itself, the number of partitions
  and the seed, never on the others. Those that stay, stay where they are. When one is replaced, two partitions
  may change: its own and its successor's.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from numbers import Integral
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

Exemplar = TypeVar("Exemplar")
Adjacency = Literal["replace-one", "add-remove"]


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


def assign_by_content(exemplars: Sequence[object], partitions: int, seed: int = 0) -> NDArray[np.int64]:
    """Assign every exemplar to a partition by what it says.

    Each partition index is a hash of the seed and the exemplar, so equal exemplars share a partition, sizes are
    even only on average, and a partition may be empty. Which partition an exemplar has tells nothing of the
    others. The assignment is the same on every platform.

    Args:
        exemplars: made of strings, bytes, integers, floats, booleans, None, tuples, lists, mappings, dataclasses
            and NumPy arrays or numbers (not records, objects or masked arrays). Equal values of different types
            are different exemplars.
        partitions: number of partitions T, at least 1.
        seed: at least 0; another seed deals the exemplars differently.

    Returns:
        (n,) partition indices in [0, T).

    Raises:
        TypeError: an exemplar holds something whose content cannot be read, or another argument has the wrong
            type.
        ValueError: ``partitions`` or ``seed`` is below its minimum.
    """
    partitions, seed = validate_partitions(partitions), validate_seed(seed)
    key = f"{seed}:".encode()
    digests = (hashlib.sha256(key + _content(each)).digest() for each in validate_exemplars(exemplars))
    return np.array([int.from_bytes(each, "big") % partitions for each in digests], np.int64)


def split(
    exemplars: Sequence[Exemplar], partitions: int, seed: int = 0, adjacency: Adjacency = "replace-one"
) -> tuple[tuple[Exemplar, ...], ...]:
    """Split exemplars into disjoint partitions that together hold each exemplar once.

    Args:
        exemplars: a sequence; within a partition its order is kept, so the last exemplar comes last in its
            partition.
        partitions: number of partitions T, at least 1.
        seed: at least 0.
        adjacency: the neighbours that change exactly one partition: ``"replace-one"`` deals by
            :func:`assign`, ``"add-remove"`` by :func:`assign_by_content`.

    Returns:
        T tuples of exemplars, some of them possibly empty.

    Raises:
        TypeError: ``exemplars`` is not a sequence of exemplars, or another argument has the wrong type.
        ValueError: ``partitions`` or ``seed`` is below its minimum, or ``adjacency`` is unknown.
    """
    validate_exemplars(exemplars)
    parts: list[list[Exemplar]] = [[] for _ in range(validate_partitions(partitions))]
    if validate_adjacency(adjacency) == "replace-one":
        assignment = assign(len(exemplars), partitions, seed)
    else:
        assignment = assign_by_content(exemplars, partitions, seed)
    for exemplar, index in zip(exemplars, assignment, strict=True):
        parts[index].append(exemplar)
    return tuple(tuple(part) for part in parts)


def validate_exemplars(exemplars: Sequence[Exemplar]) -> Sequence[Exemplar]:
    """Return the exemplars as they are.

    Raises:
        TypeError: they are not a sequence, or a single text.
    """
    if isinstance(exemplars, str | bytes) or not isinstance(exemplars, Sequence):
        msg = (
            f"exemplars must be a sequence such as a list or tuple, got {type(exemplars).__name__}; "
            "put a single exemplar in a list."
        )
        raise TypeError(msg)
    return exemplars


def validate_adjacency(value: object) -> Adjacency:
    """Return the notion of neighbouring datasets.

    Raises:
        ValueError: it is neither ``"replace-one"`` nor ``"add-remove"``.
    """
    for known in get_args(Adjacency):
        if isinstance(value, str) and value == known:
            found: Adjacency = known
            return found
    msg = f'adjacency must be "replace-one" or "add-remove", got {value!r}.'
    raise ValueError(msg)


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


def _is_plain(value: np.ndarray[Any, Any] | np.generic) -> bool:
    """Whether the bytes of an array are its content: no references, no padding between fields, no mask."""
    return not (value.dtype.hasobject or value.dtype.names or isinstance(value, np.ma.MaskedArray))


def _content(value: object) -> bytes:
    """Bytes that are equal exactly for exemplars of equal types and values."""
    name = type(value).__qualname__
    if isinstance(value, np.ndarray | np.generic) and _is_plain(value):
        content = f"{value.dtype.str} {value.shape}:".encode() + np.ascontiguousarray(value).tobytes()
    elif isinstance(value, bytes):
        content = value
    elif isinstance(value, float):
        content = struct.pack(">d", value)
    elif value is None or isinstance(value, str | int):
        content = str(value).encode("utf-8", "surrogatepass")
    elif isinstance(value, tuple | list):
        content = b"".join(map(_content, value))
    elif isinstance(value, Mapping):
        content = b"".join(sorted(_content(key) + _content(item) for key, item in value.items()))
    elif is_dataclass(value) and not isinstance(value, type):
        content = b"".join(_content(getattr(value, each.name)) for each in fields(value))
    else:
        msg = (
            f"an exemplar dealt by its content must be made of texts, numbers, sequences, mappings and dataclasses, "
            f'got {name}; describe it by those, or use adjacency="replace-one", which deals by position.'
        )
        raise TypeError(msg)
    return f"{name}:{len(content)}:".encode() + content
