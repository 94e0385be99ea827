"""Validation of the arguments that markers and ``check`` share."""

from __future__ import annotations

import math
from numbers import Integral, Real

__tracebackhide__ = True  # frames of this module say nothing to the author of a test


def positive_integer(owner: str, name: str, value: object) -> int:
    """Return ``value`` as an int if it is an integer at least 1.

    Raises:
        TypeError: if it is not an integer.
        ValueError: if it is below 1.
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        msg = f"{owner}: {name} must be a positive integer, got {value!r} of type {type(value).__name__}."
        raise TypeError(msg)
    if value < 1:
        msg = f"{owner}: {name} must be a positive integer, got {value!r}."
        raise ValueError(msg)
    return int(value)


def _real(owner: str, name: str, value: object, accepted: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        msg = f"{owner}: {name} must be {accepted}, got {value!r} of type {type(value).__name__}."
        raise TypeError(msg)
    return float(value)


def open_unit(owner: str, name: str, value: object) -> float:
    """Return ``value`` as a float if it lies strictly between 0 and 1.

    Raises:
        TypeError: if it is not a number.
        ValueError: if it is outside (0, 1).
    """
    accepted = "a number strictly between 0 and 1"
    number = _real(owner, name, value, accepted)
    if not 0.0 < number < 1.0:
        msg = f"{owner}: {name} must be {accepted}, got {value!r}."
        raise ValueError(msg)
    return number


def factor_above_one(owner: str, name: str, value: object) -> float:
    """Return ``value`` as a float if it is finite and above 1.

    Raises:
        TypeError: if it is not a number.
        ValueError: if it is at most 1 or not finite.
    """
    accepted = "a finite number above 1"
    number = _real(owner, name, value, accepted)
    if not math.isfinite(number) or number <= 1.0:
        msg = f"{owner}: {name} must be {accepted}, got {value!r}."
        raise ValueError(msg)
    return number
