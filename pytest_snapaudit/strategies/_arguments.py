"""Validation of strategy arguments at construction, so that mistakes surface where they are written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real

ADD_REMOVE, REPLACE_ONE = "add-remove", "replace-one"
ADJACENCIES = (ADD_REMOVE, REPLACE_ONE)


def integer(owner: str, name: str, value: object, minimum: int, maximum: int | None = None) -> int:
    """``value`` as an int in [minimum, maximum], else TypeError or ValueError naming the argument."""
    accepted = (
        f"an integer of at least {minimum}" if maximum is None else f"an integer in [{minimum}, {maximum}]"
    )
    if isinstance(value, bool) or not isinstance(value, Integral):
        msg = f"{owner}: {name} must be {accepted}, got {value!r} of type {type(value).__name__}."
        raise TypeError(msg)
    number = int(value)
    if number < minimum or (maximum is not None and number > maximum):
        msg = f"{owner}: {name} must be {accepted}, got {value!r}."
        raise ValueError(msg)
    return number


def size_range(owner: str, minimum: object, maximum: object, at_least: int) -> tuple[int, int]:
    """A (min_size, max_size) pair of integers with ``at_least`` <= min_size <= max_size."""
    low = integer(owner, "min_size", minimum, at_least)
    return low, integer(owner, "max_size", maximum, low)


def real(owner: str, name: str, value: object, accepted: str, low: float, high: float) -> float:
    """``value`` as a finite float in [low, high], else TypeError or ValueError naming the argument."""
    if isinstance(value, bool) or not isinstance(value, Real):
        msg = f"{owner}: {name} must be {accepted}, got {value!r} of type {type(value).__name__}."
        raise TypeError(msg)
    number = float(value)
    if not math.isfinite(number) or not low <= number <= high:
        msg = f"{owner}: {name} must be {accepted}, got {value!r}."
        raise ValueError(msg)
    return number


def positive(owner: str, name: str, value: object) -> float:
    """``value`` as a finite float above 0."""
    return real(owner, name, value, "a finite number above 0", math.nextafter(0.0, 1.0), math.inf)


def flag(owner: str, name: str, value: object) -> bool:
    """``value`` if it is a bool."""
    if not isinstance(value, bool):
        msg = f"{owner}: {name} must be True or False, got {value!r}."
        raise TypeError(msg)
    return value


def choice(owner: str, name: str, value: object, accepted: Sequence[str]) -> str:
    """``value`` if it is one of the accepted names."""
    if not isinstance(value, str) or value not in accepted:
        listed = ", ".join(f'"{option}"' for option in accepted)
        msg = f"{owner}: {name} must be one of {listed}; got {value!r}."
        raise ValueError(msg)
    return value


def interval(owner: str, name: str, value: object) -> tuple[float, float]:
    """A (lower, upper) pair of finite numbers with lower < upper."""
    accepted = "a (lower, upper) pair of finite numbers with lower < upper"
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:
        msg = f"{owner}: {name} must be {accepted}, got {value!r}."
        raise TypeError(msg)
    lower = real(owner, f"{name}[0]", value[0], "a finite number", -math.inf, math.inf)
    upper = real(owner, f"{name}[1]", value[1], "a finite number", -math.inf, math.inf)
    if lower >= upper:
        msg = f"{owner}: {name} must be {accepted}, got {value!r}."
        raise ValueError(msg)
    return lower, upper
