"""Conformance of the released Opacus: what DP-SGD steps and accountants claim, tested.

Skipped, with this reason, where Opacus is not installed. From a clone::

    pip install -c .ci/constraints-downstream.txt -e . opacus && pytest examples/opacus

``torch`` resolves to a CPU wheel with ``--extra-index-url https://download.pytorch.org/whl/cpu``.
"""

from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent
REASON = "Opacus is not installed: pip install -c .ci/constraints-downstream.txt -e . opacus"
HARMLESS = ("Full backward hook is firing", "Secure RNG turned off", "GDP accounting is experimental")


class NeedsOpacus(pytest.Module):
    def collect(self):
        pytest.skip(REASON, allow_module_level=True)


def pytest_pycollect_makemodule(module_path, parent):
    if find_spec("opacus.optimizers") is None:  # the folder alone would pass for a package called opacus
        return NeedsOpacus.from_parent(parent, path=module_path)
    return None


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            for message in HARMLESS:
                item.add_marker(pytest.mark.filterwarnings(f"ignore:{message}"))
