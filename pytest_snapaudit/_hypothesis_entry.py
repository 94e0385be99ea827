"""Entry point that Hypothesis calls whenever it is imported.

Types become known to ``st.from_type`` by the name of the module that defines them, and only once Hypothesis
looks a type up, so nothing is imported before a test asks for one: neither the types, nor the strategies, nor
NumPy, nor the part of Hypothesis that resolves types.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pytest_snapaudit.profile import register_profile

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from hypothesis.strategies import SearchStrategy

    Resolver = Callable[[type], SearchStrategy[Any] | None]

OWN, REFERENCE = "pytest_snapaudit", "dp_icl"
_RESOLUTION = "hypothesis.strategies._internal.types"


def register() -> None:
    """Make the plugin's types and the mechanisms of ``dp_icl`` resolvable by ``st.from_type``; name the profile.

    Hypothesis keeps a table of resolvers by module name, which it asks about types it does not know once that
    module is imported; it is how Hypothesis serves NumPy without importing it. The table is not public API:
    should it be gone, the types are registered in the public way as soon as the strategies are imported.
    A strategy that a user registers for one of these types takes precedence. The settings profile becomes known
    too; it is not loaded.
    """
    register_profile()
    loaded = sys.modules.get(_RESOLUTION)
    if loaded is not None:
        _add_resolvers(loaded)
    elif not any(isinstance(finder, _AfterImport) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AfterImport(_RESOLUTION, _add_resolvers))


def resolver_table() -> dict[str, Resolver] | None:
    """Hypothesis' resolvers by module name, or None if this version has no such table."""
    from hypothesis.strategies._internal import types  # noqa: PLC0415

    return _table_of(types)


class _AfterImport:
    """A finder that steps aside when the module it waits for is imported, and calls back after that."""

    def __init__(self, name: str, callback: Callable[[ModuleType], None]) -> None:
        self.name, self.callback = name, callback

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        loader, execute = spec.loader, spec.loader.exec_module

        def execute_and_call_back(module: ModuleType) -> None:
            del loader.exec_module
            execute(module)
            self.callback(module)

        loader.exec_module = execute_and_call_back  # type: ignore[method-assign]
        return spec


def _add_resolvers(types: ModuleType) -> None:
    table = _table_of(types)
    if table is not None:
        table.setdefault(OWN, _own_types)
        table.setdefault(REFERENCE, _reference_mechanisms)


def _table_of(types: ModuleType) -> dict[str, Resolver] | None:
    table = getattr(types, "_global_extra_lookup", None)
    return table if isinstance(table, dict) else None


def _own_types(thing: type) -> SearchStrategy[Any] | None:
    if not _defined_in(thing, OWN):
        return None
    from pytest_snapaudit.strategies.registered import own_strategies  # noqa: PLC0415

    return own_strategies().get(thing)


def _reference_mechanisms(thing: type) -> SearchStrategy[Any] | None:
    if not _defined_in(thing, REFERENCE):
        return None
    from pytest_snapaudit.strategies.registered import reference_configurations  # noqa: PLC0415

    return reference_configurations(thing)


def _defined_in(thing: object, package: str) -> bool:
    module = getattr(thing, "__module__", None)
    return (
        isinstance(thing, type)
        and isinstance(module, str)
        and (module == package or module.startswith(package + "."))
    )
