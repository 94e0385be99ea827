"""Fixtures of the adapter tests."""

import sys

import pytest
from torch_stand_in import torch_module


@pytest.fixture
def torch(monkeypatch):
    """A stand-in for torch, where ``import torch`` finds it."""
    module = torch_module()
    monkeypatch.setitem(sys.modules, "torch", module)
    return module
