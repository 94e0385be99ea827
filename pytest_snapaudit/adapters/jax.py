"""jax: functions of a key and a dataset, vectorised over keys."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator

from pytest_snapaudit.adapters.optional_imports import load
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.mechanism import Sampler, from_sampler

_AT_ONCE = 1024
"""Keys per call of the vectorised function: one shape, so that it is compiled once for a dataset."""

_REMEMBERED = 8


def as_mechanism(obj: object) -> Sampler[Any]:
    """A jitted function of (key, dataset) as a sampler.

    Raises:
        TypeError: an object of another kind, or a function that does not take two arguments.
    """
    if callable(obj) and not isinstance(obj, type):
        return from_jax(obj)
    msg = f"check takes a function of (key, dataset), got {type(obj).__name__}: wrap one with from_jax(fn)."
    raise TypeError(msg)


def from_jax(
    fn: Callable[[Any, Any], Any],
    *,
    name: str | None = None,
    claim: PrivacyClaim | None = None,
    jit: bool = True,
) -> Sampler[Any]:
    """``fn(key, dataset)``, which returns one output, as a sampler of many: ``vmap`` over keys split from one.

    The keys come from the audit's generator, so verdicts are reproducible. They are used 1,024 at once, whatever the
    number of outputs, so that one program is compiled for each dataset.

    Args:
        fn: a jax function of a key and a dataset. Its output is an array, or a tuple, list or dict of arrays (their
            components are seen together). The dataset may be any object: it is closed over, not traced.
        name: printed in reports; the function's name by default.
        claim: used when the test states none.
        jit: compile the vectorised function; False for functions that cannot be compiled.

    Raises:
        TypeError: ``fn`` does not take (key, dataset), or its output is not made of arrays.
    """
    if not callable(fn):
        msg = f"from_jax: fn must be callable, got {fn!r} of type {type(fn).__name__}."
        raise TypeError(msg)
    _check_arity(fn)
    compiled: dict[int, tuple[Any, Callable[[Any], Any]]] = {}

    def draw(dataset: Any, n: int, rng: Generator) -> Any:
        jax = load("jax", needed_for="from_jax", install="jax")
        if id(dataset) not in compiled:
            if len(compiled) >= _REMEMBERED:
                compiled.clear()
            compiled[id(dataset)] = (dataset, _vectorised(jax, fn, dataset, jit))
        many = compiled[id(dataset)][1]
        return _joined([many(_key(jax, rng)) for _ in range(0, n, _AT_ONCE)], n)

    label = name or getattr(fn, "__qualname__", None) or getattr(fn, "__name__", None) or "from_jax"
    return from_sampler(draw, name=label.replace("<locals>.", ""), claim=claim)


def _vectorised(jax: Any, fn: Callable[[Any, Any], Any], dataset: Any, jit: bool) -> Callable[[Any], Any]:
    """A function of one key that returns the outputs of ``fn`` for the keys split from it."""

    def many(key: Any) -> Any:
        return jax.vmap(lambda each: fn(each, dataset))(jax.random.split(key, _AT_ONCE))

    return jax.jit(many) if jit else many


def _key(jax: Any, rng: Generator) -> Any:
    words = rng.integers(2**32, size=2, dtype=np.uint32)
    return jax.random.wrap_key_data(words, impl="threefry2x32")


def _joined(parts: list[Any], n: int) -> Any:
    """The first ``n`` outputs of equally structured parts, as NumPy arrays of that structure."""
    first = parts[0]
    if isinstance(first, dict):
        return {key: _joined([part[key] for part in parts], n) for key in first}
    if isinstance(first, tuple | list):
        return tuple(_joined(list(column), n) for column in zip(*parts, strict=True))
    if not hasattr(first, "shape") or not hasattr(first, "dtype"):
        msg = f"from_jax: fn must return an array, or a tuple, list or dict of arrays, got {type(first).__name__}."
        raise TypeError(msg)
    return np.concatenate([np.asarray(part) for part in parts])[:n]


def _check_arity(fn: Callable[..., Any]) -> None:
    try:
        inspect.signature(fn).bind("key", "dataset")
    except TypeError as error:
        msg = f"from_jax calls fn(key, dataset), which {fn!r} does not accept ({error}); close over other arguments."
        raise TypeError(msg) from None
    except ValueError:
        return
