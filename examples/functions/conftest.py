"""Each module is skipped, with this reason, where its library is not installed."""

from importlib.metadata import PackageNotFoundError, version

import pytest

NEEDED = {"test_torch_functions.py": "torch", "test_jax_functions.py": "jax"}


class NeedsLibrary(pytest.Module):
    def collect(self):
        pytest.skip(f"{NEEDED[self.path.name]} is not installed", allow_module_level=True)


def pytest_pycollect_makemodule(module_path, parent):
    try:
        version(NEEDED[module_path.name])
    except PackageNotFoundError:
        return NeedsLibrary.from_parent(parent, path=module_path)
    return None
