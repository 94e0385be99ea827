"""Libraries that are imported when one of their objects is under test, and never before."""

from __future__ import annotations

import importlib
from typing import Any


def load(module: str, *, needed_for: str, install: str) -> Any:
    """Import ``module`` by its absolute name.

    Args:
        module: for example ``"torch"`` or ``"opacus.accountants"``.
        needed_for: what asks for it, for the message.
        install: the requirement that brings it.

    Raises:
        ModuleNotFoundError: it is not installed; the message says what to install.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or module.partition(".")[0] != error.name.partition(".")[0]:
            raise
        msg = f"{needed_for} needs {module}, which is not installed: pip install {install}."
        raise ModuleNotFoundError(msg, name=error.name) from error
