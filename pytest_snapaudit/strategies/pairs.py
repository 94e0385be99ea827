"""The neighbouring pair a strategy draws: a (reference, canary) tuple that prints as code."""

from __future__ import annotations

import math
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np

from pytest_snapaudit.strategies._arguments import ADJACENCIES, REPLACE_ONE, choice, integer

D = TypeVar("D")


def as_code(value: object) -> str:
    """``value`` as an expression that evaluates to it, NaN and infinities included.

    Differs from ``repr`` in writing ``float('nan')`` and ``float('inf')``, at any depth of the built-in
    containers.
    """
    if isinstance(value, NeighbouringPair):
        return repr(value)
    if type(value) is float and not math.isfinite(value):
        return f"float('{value}')"
    if type(value) is list:
        return f"[{', '.join(map(as_code, value))}]"
    if type(value) is tuple:
        return f"({', '.join(map(as_code, value))}{',' if len(value) == 1 else ''})"
    if type(value) is dict:
        return "{" + ", ".join(f"{as_code(key)}: {as_code(item)}" for key, item in value.items()) + "}"
    return repr(value)


def same(a: object, b: object) -> bool:
    """Whether two pieces of content are equal; NaN equals NaN, and 0.0 equals -0.0."""
    if as_code(a) == as_code(b):
        return True
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return bool(np.array_equal(np.asarray(a), np.asarray(b)))
    if isinstance(a, list | tuple) and type(a) is type(b) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


class _Sides(NamedTuple, Generic[D]):
    reference: D
    canary: D


class NeighbouringPair(_Sides[D]):
    """Two neighbouring datasets, usable wherever a (reference, canary) pair is accepted.

    A tuple of length 2 with two more attributes; it compares as the plain tuple does, and its ``repr`` is
    code that rebuilds it (paste it into ``@example``).

    Attributes:
        adjacency: ``"add-remove"`` (the canary side holds one more record, or one more user) or
            ``"replace-one"`` (one record, or one user, differs).
        distance: how many rows differ: 1 for record-level neighbours, the number of rows the changed user
            owns for user-level neighbours.

    Raises:
        ValueError: if ``adjacency`` is neither of the two names, or ``distance`` is below 1.
        TypeError: if ``distance`` is not an integer.
    """

    adjacency: str = REPLACE_ONE
    distance: int = 1

    def __new__(cls, reference: D, canary: D, adjacency: str = REPLACE_ONE, distance: int = 1) -> Self:  # noqa: D102
        choice("NeighbouringPair", "adjacency", adjacency, ADJACENCIES)
        steps = integer("NeighbouringPair", "distance", distance, 1)
        pair = tuple.__new__(cls, (reference, canary))
        pair.__dict__.update(adjacency=adjacency, distance=steps)
        return pair

    def __setattr__(self, name: str, value: object) -> None:
        msg = f"NeighbouringPair is immutable; build a new one instead of setting {name}."
        raise AttributeError(msg)

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (self.reference, self.canary, self.adjacency, self.distance)

    def __repr__(self) -> str:
        sides = f"{as_code(self.reference)}, {as_code(self.canary)}, {self.adjacency!r}"
        return f"NeighbouringPair({sides}{f', distance={self.distance}' if self.distance != 1 else ''})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))
