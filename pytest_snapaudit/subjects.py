"""What a test passes to ``check``, as a mechanism the engine takes and a digest that identifies it."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_snapaudit.engine.mechanism import Mechanism, Sampler
from pytest_snapaudit.engine.seeding import Digest, digest
from pytest_snapaudit.engine.snapshot import SnapshotPair


def as_mechanism(obj: object, config: pytest.Config) -> Mechanism[Any] | Sampler[Any]:
    """``obj`` if it is a mechanism or sampler, else what a ``pytest_snapaudit_as_mechanism`` hook returns.

    Raises:
        TypeError: if no hook recognises the object, or one returns something else.
    """
    __tracebackhide__ = True
    if _accepted(obj):
        return obj  # type: ignore[return-value]
    adapted = None
    if not isinstance(obj, type):
        adapted = config.hook.pytest_snapaudit_as_mechanism(obj=obj)
    if adapted is not None:
        if _accepted(adapted):
            return adapted  # type: ignore[no-any-return]
        msg = (
            f"a pytest_snapaudit_as_mechanism hook returned {adapted!r} of type {type(adapted).__name__} for "
            f"{type(obj).__name__}; it must return a mechanism (clean and privatize), a sampler, or None."
        )
        raise TypeError(msg)
    if isinstance(obj, type):
        label = obj.__name__
        msg = f"check takes an instance of a mechanism, got the class {label}: write {label}(...)."
        raise TypeError(msg)
    if callable(obj) and not hasattr(obj, "privatize"):
        label = getattr(obj, "__name__", type(obj).__name__)
        msg = (
            f"check takes a mechanism, got the callable {label}: say what it returns, "
            f"from_sampler({label}) for fn(dataset, n, rng) -> n outputs, "
            f"or from_callable({label}) for fn(dataset) -> one output."
        )
        raise TypeError(msg)
    missing = [member for member in ("clean", "privatize") if not callable(getattr(obj, member, None))]
    msg = (
        f"check takes a mechanism, got {obj!r} of type {type(obj).__name__} without {' and '.join(missing)}: "
        "give it clean(dataset, rng) and privatize(clean, rng), wrap a function with from_sampler or "
        "from_callable, or implement the pytest_snapaudit_as_mechanism hook."
    )
    raise TypeError(msg)


def _accepted(obj: object) -> bool:
    if isinstance(obj, type):
        return False
    two_stages = callable(getattr(obj, "clean", None)) and callable(getattr(obj, "privatize", None))
    return isinstance(obj, Sampler) or two_stages


def configuration_digest(obj: object, mechanism: object, neighbours: object, *rest: object) -> Digest:
    """Identify one configuration; what recorded rows say about their origin plays no part."""
    if isinstance(neighbours, SnapshotPair):
        sides = (neighbours.reference, neighbours.canary)
        neighbours = tuple((side.rows, side.counts) for side in sides)
    subject = (mechanism,) if obj is mechanism else (obj, mechanism)
    return digest(*subject, neighbours, *rest)
