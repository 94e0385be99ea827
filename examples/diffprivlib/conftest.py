"""Conformance of the released diffprivlib: the claims of its mechanisms, tools and models, tested.

Skipped where diffprivlib is not installed. From a clone::

    pip install -c .ci/constraints-downstream.txt -e . diffprivlib && pytest examples/diffprivlib
"""

import importlib.util

import pytest

REASON = "diffprivlib is not installed: pip install -c .ci/constraints-downstream.txt -e . diffprivlib"


class NeedsDiffprivlib(pytest.Module):
    def collect(self):
        pytest.skip(REASON, allow_module_level=True)


def pytest_pycollect_makemodule(module_path, parent):
    if importlib.util.find_spec("diffprivlib.mechanisms") is None:  # this folder alone passes for a package
        return NeedsDiffprivlib.from_parent(parent, path=module_path)
    return None
