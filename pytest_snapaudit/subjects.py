"""What a test passes to ``check``, as a mechanism the engine takes and a digest that identifies it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from pytest_snapaudit.engine.mechanism import Mechanism, Sampler
from pytest_snapaudit.engine.seeding import Digest, digest
from pytest_snapaudit.engine.settings import validate_attacks
from pytest_snapaudit.engine.snapshot import SnapshotPair

__tracebackhide__ = True  # frames of this module say nothing to the author of a test


def as_mechanism(obj: object, config: pytest.Config) -> Mechanism[Any] | Sampler[Any]:
    """``obj`` if it is a mechanism or sampler, else what a ``pytest_snapaudit_as_mechanism`` hook returns.

    Raises:
        TypeError: if no hook recognises the object, or one returns something else.
    """
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


def attacks_on(mechanism: object, asked: Any, item: pytest.Item) -> Any:
    """The attacks a test asks for, and those of ``pytest_snapaudit_attacks`` hooks under other names.

    Raises:
        TypeError: if a hook returns something other than a mapping of name to function.
    """
    found: dict[str, Callable[..., Any]] = {}
    for answer in item.ihook.pytest_snapaudit_attacks(item=item, mechanism=mechanism):
        if not isinstance(answer, Mapping) or not all(callable(attack) for attack in answer.values()):
            msg = (
                f"a pytest_snapaudit_attacks hook returned {answer!r} of type {type(answer).__name__}; it must return "
                "a mapping of name to a function from (n, d) outputs to n numbers, or None."
            )
            raise TypeError(msg)
        found.update(answer)
    if not found:
        return asked
    if isinstance(asked, Mapping):
        return {**found, **asked}
    return (*validate_attacks(found), *validate_attacks(asked))


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


def cache_key(identity: Digest, mechanism: Any) -> object:
    """What a verdict is remembered under: equal keys, equal audits.

    An object that is not known by value has a key of its own every time; so has a dataclass with attributes
    beside its fields. The methods are part of the key, since a test may replace them.
    """
    fields = {field.name for field in dataclasses.fields(mechanism)} if _is_dataclass(mechanism) else set()
    if not identity.exact or set(getattr(mechanism, "__dict__", ())) - fields:
        return object()
    return (identity.value, *(getattr(type(mechanism), method, None) for method in _METHODS))


_METHODS = ("clean", "clean_batch", "privatize", "release")


def _is_dataclass(obj: object) -> bool:
    return dataclasses.is_dataclass(obj) and not isinstance(obj, type)
