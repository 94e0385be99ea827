"""Objects of differential-privacy libraries, given to ``check`` as they are.

An object is recognised by the package its class, or a base class, comes from, so that no library is imported to find
out; the adapter is loaded when the first such object appears. An adapter is a module with ``as_mechanism(obj)``, which
returns a mechanism or sampler, None for an object that is not its business, or raises TypeError with the call to write
instead. Hooks of a user's own come first.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_snapaudit.engine.mechanism import Mechanism, Sampler

__tracebackhide__ = True  # frames of this module say nothing to the author of a test

ADAPTERS: Mapping[str, str] = {
    "opendp": "pytest_snapaudit.adapters.opendp",
    "diffprivlib": "pytest_snapaudit.adapters.diffprivlib",
    "dp_accounting": "pytest_snapaudit.adapters.accounting",
    "opacus": "pytest_snapaudit.adapters.opacus",
    "torch": "pytest_snapaudit.adapters.torch",
    "jax": "pytest_snapaudit.adapters.jax",
    "jaxlib": "pytest_snapaudit.adapters.jax",
}
"""The adapter of each library, by top-level package."""


@pytest.hookimpl(trylast=True)
def pytest_snapaudit_as_mechanism(obj: object) -> Mechanism[Any] | Sampler[Any] | None:
    """What the first adapter that knows ``obj`` makes of it; None if no adapter does.

    Raises:
        TypeError: the library is known, and the object needs to be wrapped; the message shows how.
    """
    for name in adapters_of(type(obj)):
        adapted: Mechanism[Any] | Sampler[Any] | None = importlib.import_module(name).as_mechanism(obj)
        if adapted is not None:
            return adapted
    return None


def adapters_of(cls: type) -> Iterator[str]:
    """Names of the adapter modules for a class, each once, in the order of its bases."""
    packages = (base.__module__.partition(".")[0] for base in cls.__mro__)
    yield from dict.fromkeys(ADAPTERS[package] for package in packages if package in ADAPTERS)
