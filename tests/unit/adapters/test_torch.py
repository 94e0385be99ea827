"""The PyTorch adapter, on a stand-in made of NumPy."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest
from torch_stand_in import tensor, torch_module

from pytest_snapaudit import PrivacyClaim, Verdict, audit
from pytest_snapaudit.adapters import torch as adapter
from pytest_snapaudit.adapters.torch import as_numpy, from_torch
from pytest_snapaudit.testing import UNIT_NEIGHBOURS


@pytest.fixture
def torch(monkeypatch):
    module = torch_module()
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


def forms(torch, sigma):
    """The four forms of one Gaussian sum."""

    def one(dataset):
        return sum(dataset) + torch.normal(sigma, ())

    def many(dataset, n):
        return sum(dataset) + torch.normal(sigma, (n,))

    def one_from(dataset, generator):
        return sum(dataset) + torch.normal(sigma, (), generator=generator)

    def many_from(dataset, n, generator):
        return sum(dataset) + torch.normal(sigma, (n,), generator=generator)

    return one, many, one_from, many_from


@pytest.mark.parametrize("form", range(4), ids=["one", "many", "one from", "many from"])
def test_every_form_is_seeded_by_the_audit(torch, form):
    sampler = from_torch(forms(torch, 1.0)[form])
    assert sampler.batched == (form % 2 == 1)
    result = audit(sampler, UNIT_NEIGHBOURS, PrivacyClaim(4.5, 1e-5), n_trials=2_000)
    assert result.verdict is not Verdict.VIOLATION
    assert "two draws from one seed are equal" in dict(result.diagnostics)["reproducibility"]
    weak = from_torch(forms(torch, 0.2)[form])
    violated = audit(weak, UNIT_NEIGHBOURS, PrivacyClaim(1.0, 1e-5), n_trials=2_000)
    assert violated.verdict is Verdict.VIOLATION


def test_tensors_become_arrays_wherever_they_are():
    outputs = as_numpy({"a": (tensor([1.0]), [tensor(2.0)]), "b": "label"})
    assert type(outputs["a"][0]) is np.ndarray
    assert type(outputs["a"][1][0]) is np.ndarray
    assert outputs["b"] == "label"


def test_arguments_with_a_default_do_not_count(torch):
    def with_a_default(dataset, n, sigma=1.0):
        return sum(dataset) + torch.normal(sigma, (n,))

    assert from_torch(with_a_default).batched


@pytest.mark.parametrize(
    "fn",
    [
        lambda: 0.0,
        lambda generator: 0.0,
        lambda generator, dataset: 0.0,
        lambda dataset, n, rng, generator: 0.0,
        lambda dataset, n, rng: 0.0,
    ],
)
def test_other_arguments_are_refused(fn):
    with pytest.raises(TypeError, match=r"from_torch takes fn\(dataset\), fn\(dataset, n\)"):
        from_torch(fn)


def test_names_and_claims():
    claim = PrivacyClaim(1.0)
    assert from_torch(lambda dataset: 0.0, name="zero", claim=claim).claim is claim
    with pytest.raises(TypeError, match="must be callable, got 3"):
        from_torch(3)


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        (types.SimpleNamespace(param_groups=[]), "adds no noise: pass the private optimizer"),
        (object(), "got object: wrap a function with from_torch"),
    ],
)
def test_objects_of_torch_are_refused_with_the_call_to_write(obj, message):
    with pytest.raises(TypeError, match=message):
        adapter.as_mechanism(obj)


class Top(tuple):
    """A named tuple of torch: not built from one sequence."""

    def __new__(cls, values, indices):
        return super().__new__(cls, (values, indices))


class BrainFloat:
    """A conjugated sparse tensor of a dtype that NumPy has none for."""

    dtype, layout = "torch.bfloat16", "torch.sparse_coo"

    def __init__(self):
        self.calls = []

    def _noted(self, what):
        self.calls.append(what)
        return self

    def detach(self):
        return self._noted("detach")

    def cpu(self):
        return self._noted("cpu")

    def to_dense(self):
        return self._noted("to_dense")

    def resolve_conj(self):
        return self._noted("resolve_conj")

    def float(self):
        return self._noted("float")

    def numpy(self):
        return np.float32([1.5])


def test_tensors_of_any_kind_become_arrays():
    rare = BrainFloat()
    assert as_numpy(rare).tolist() == [1.5]
    assert rare.calls == ["detach", "cpu", "to_dense", "resolve_conj", "float"]
    values, indices = as_numpy(Top(tensor([2.0]), tensor([1.0])))
    assert (values.tolist(), indices.tolist()) == ([2.0], [1.0])
    assert type(as_numpy(Top(tensor(1.0), tensor(1.0)))) is tuple
