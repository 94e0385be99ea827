"""Conformance of the released OpenDP: what its measurements claim, tested.

Skipped where OpenDP is not installed. From a clone::

    pip install -c .ci/constraints-downstream.txt -e . opendp && pytest examples/opendp
"""

import importlib.util

import pytest

REASON = "OpenDP is not installed: pip install -c .ci/constraints-downstream.txt -e . opendp"


class NeedsOpenDP(pytest.Module):
    def collect(self):
        pytest.skip(REASON, allow_module_level=True)


def pytest_pycollect_makemodule(module_path, parent):
    if (
        importlib.util.find_spec("opendp.prelude") is None
    ):  # this folder alone passes for a package called opendp
        return NeedsOpenDP.from_parent(parent, path=module_path)
    import opendp.prelude as dp  # noqa: PLC0415

    dp.enable_features("contrib")
    return None
