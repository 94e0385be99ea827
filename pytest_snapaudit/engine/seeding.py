"""Seeds: every random stream is a function of the audit's inputs and of nothing else.

A block of :data:`BLOCK` trials has its own generator, derived from the audit's seed, the phase and the
block number, so results do not depend on how blocks are grouped, ordered or distributed over workers.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import hashlib
import random
import struct
import sys
import threading
import types
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.random import Generator

BLOCK = 8192
"""Trials per block: the unit that is seeded."""

_LEGACY_GENERATORS = threading.RLock()


@dataclasses.dataclass(frozen=True)
class Digest:
    """SHA-256 of a configuration.

    Attributes:
        value: the first 128 bits as an integer.
        exact: whether everything in the object was hashed by value; an object of an unknown type counts by
            its type name alone, so two objects with equal inexact digests may differ.
    """

    value: int
    exact: bool


class _Hasher:
    def __init__(self) -> None:
        self.sha = hashlib.sha256()
        self.exact = True

    def text(self, tag: str, value: str) -> None:
        self.raw(tag, value.encode("utf-8", "surrogatepass"))

    def raw(self, tag: str, value: bytes) -> None:
        self.sha.update(f"{tag}:{len(value)}:".encode())
        self.sha.update(value)

    def add(self, obj: object) -> None:
        if isinstance(obj, int) and not isinstance(obj, bool):
            self.text(type(obj).__name__, f"{int(obj):x}")
        elif obj is None or isinstance(obj, bool | str | bytes | complex):
            self.raw("bytes", obj) if isinstance(obj, bytes) else self.text(type(obj).__name__, str(obj))
        elif isinstance(obj, float):
            self.raw("float", struct.pack(">d", obj))
        elif isinstance(obj, enum.Enum):
            self.text("enum", f"{type(obj).__qualname__}.{obj.name}")
        elif isinstance(obj, np.ndarray):
            self._array(obj)
        elif isinstance(obj, np.generic):
            item = obj.item() if obj.dtype.kind in "biufcU" else obj
            self.text(obj.dtype.str, str(obj)) if isinstance(item, np.generic) else self.add(item)
        elif isinstance(obj, PurePath):
            self.text("path", obj.as_posix())
        elif dataclasses.is_dataclass(obj) and not isinstance(obj, type):
            self.text("dataclass", _type_name(type(obj)))
            self._sequence([(f.name, getattr(obj, f.name)) for f in dataclasses.fields(obj)])
        elif isinstance(obj, Mapping):
            self.text("mapping", "")
            self._unordered([(key, value) for key, value in obj.items()])
        elif isinstance(obj, Set):
            self.text("set", "")
            self._unordered(list(obj))
        elif isinstance(obj, list | tuple | range):
            self.text("sequence", "")
            self._sequence(list(obj))
        else:
            self._opaque(obj)

    def _array(self, array: np.ndarray[Any, Any]) -> None:
        if isinstance(array, np.ma.MaskedArray):
            self._array(np.ma.getmaskarray(array))
            array = array.filled()
        if array.dtype.hasobject:
            self.text("objects", f"{array.dtype}{array.shape}")
            self._sequence(array.ravel().tolist())
        else:
            self.text("array", f"{array.dtype.str}{array.shape}")
            self.raw("data", np.ascontiguousarray(array).tobytes())

    def _sequence(self, items: Sequence[object]) -> None:
        self.text("items", str(len(items)))
        for item in items:
            self.add(item)

    def _unordered(self, items: Sequence[object]) -> None:
        parts = []
        for item in items:
            child = _Hasher()
            child.add(item)
            self.exact &= child.exact
            parts.append(child.sha.digest())
        self.raw("unordered", b"".join(sorted(parts)))

    def _opaque(self, obj: object) -> None:
        self.exact = False
        if isinstance(obj, functools.partial):
            self.text("partial", "")
            self._sequence([obj.func, obj.args, obj.keywords])
        elif isinstance(obj, types.MethodType):
            self.text("method", obj.__func__.__qualname__)
            self.add(obj.__self__)
            self.exact = False
        elif isinstance(obj, types.FunctionType):
            self.text("function", f"{obj.__module__}.{obj.__qualname__}")
        else:
            self.text("object", _type_name(type(obj)))


def _type_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def digest(*objects: object) -> Digest:
    """SHA-256 over dataclass fields, arrays and built-ins; never ``repr``, never ``hash()``."""
    hasher = _Hasher()
    for obj in objects:
        hasher.add(obj)
    return Digest(int.from_bytes(hasher.sha.digest()[:16], "big"), hasher.exact)


def as_entropy(seed: object) -> tuple[int, ...]:
    """Validate a seed: a non-negative integer, or a sequence of them."""
    values = seed if isinstance(seed, Sequence) and not isinstance(seed, str | bytes) else [seed]
    accepted = "a non-negative integer or a sequence of them"
    entropy = []
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
            msg = f"seed must be {accepted}, got {seed!r}."
            raise ValueError(msg)
        entropy.append(int(value))
    if not entropy:
        msg = f"seed must be {accepted}, got an empty sequence."
        raise ValueError(msg)
    return tuple(entropy)


def block_generator(entropy: tuple[int, ...], phase: int, side: int, block: int) -> Generator:
    """The generator of one block of trials on one side."""
    return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(phase, side, block)))


@contextlib.contextmanager
def legacy_generators_seeded(rng: Generator) -> Iterator[None]:
    """Seed ``random``, ``numpy.random`` and (if already imported) torch from ``rng``; restore them after.

    They are shared by all threads of a process, so one thread at a time has them.
    """
    with _LEGACY_GENERATORS:
        yield from _seeded(int(rng.integers(2**32)))


def _seeded(seed: int) -> Iterator[None]:
    python_state, numpy_state = random.getstate(), np.random.get_state()
    torch = sys.modules.get("torch")
    torch_state = torch.get_rng_state() if torch is not None and hasattr(torch, "get_rng_state") else None
    random.seed(seed)
    np.random.seed(seed)
    if torch_state is not None:
        torch.manual_seed(seed)  # type: ignore[union-attr]
    try:
        yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)
        if torch_state is not None:
            torch.set_rng_state(torch_state)  # type: ignore[union-attr]
