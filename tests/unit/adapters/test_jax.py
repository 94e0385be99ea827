"""The jax adapter, on a stand-in made of NumPy."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

from pytest_snapaudit import PrivacyClaim, Verdict, audit
from pytest_snapaudit.adapters import jax as adapter
from pytest_snapaudit.adapters.jax import from_jax
from pytest_snapaudit.testing import UNIT_NEIGHBOURS

RNG = np.random.default_rng


@pytest.fixture
def jax(monkeypatch):
    """Keys are pairs of words; ``vmap`` is a loop over the first axis; ``jit`` keeps what it is given."""

    def vmap(fn):
        def many(keys):
            return _stack([fn(key) for key in keys])

        return many

    def split(key, n):
        return np.random.default_rng(key).integers(2**32, size=(n, 2), dtype=np.uint32)

    module = types.ModuleType("jax")
    module.random = types.SimpleNamespace(split=split, wrap_key_data=lambda words, impl: words)
    module.vmap = vmap
    module.compiled = []
    module.jit = lambda fn: (module.compiled.append(fn), fn)[1]
    monkeypatch.setitem(sys.modules, "jax", module)
    return module


def _stack(outputs):
    first = outputs[0]
    if isinstance(first, dict):
        return {key: _stack([output[key] for output in outputs]) for key in first}
    if isinstance(first, tuple | list):
        return type(first)(_stack(list(column)) for column in zip(*outputs, strict=True))
    return np.array(outputs) if isinstance(first, np.ndarray | np.generic) else first


def laplace(scale):
    def noisy_sum(key, dataset):
        return np.float64(sum(dataset)) + np.random.default_rng(key).laplace(0, scale)

    return noisy_sum


def test_outputs_are_independent_and_follow_the_seed(jax):
    sampler = from_jax(laplace(1.0))
    draws = [sampler.sample((1.0, 2.0), 100, RNG(seed)) for seed in (1, 1, 2)]
    assert draws[0].shape == (100,)
    assert len(np.unique(draws[0])) == 100
    assert np.array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])


def test_keys_are_used_in_one_width_and_a_dataset_is_compiled_once(jax):
    widths = []
    split = jax.random.split
    jax.random.split = lambda key, n: (widths.append(n), split(key, n))[1]
    sampler, dataset = from_jax(laplace(1.0)), (1.0,)
    for n in (1, 1024, 1025, 3000):
        outputs = sampler.sample(dataset, n, RNG(0))
        assert len(np.unique(outputs)) == n
    assert widths == [1024] * (1 + 1 + 2 + 3)
    assert len(jax.compiled) == 1
    for other in range(20):
        sampler.sample((float(other),), 1, RNG(0))
    assert len(jax.compiled) == 21


def test_without_jit_nothing_is_compiled(jax):
    from_jax(laplace(1.0), jit=False).sample((1.0,), 3, RNG(0))
    assert jax.compiled == []


def test_a_correct_function_passes_and_one_with_half_the_noise_does_not(jax):
    verdicts = [
        audit(from_jax(laplace(scale)), UNIT_NEIGHBOURS, PrivacyClaim(1.0), n_trials=4_000).verdict
        for scale in (1.0, 0.5)
    ]
    assert verdicts == [Verdict.CONSISTENT, Verdict.VIOLATION]


def test_outputs_of_several_components_are_seen_together(jax):
    def both(key, dataset):
        noise = np.random.default_rng(key).normal(size=2)
        return {"sum": (noise[0], [noise[1]])}

    outputs = from_jax(both).sample((1.0,), 5, RNG(0))
    first, (second,) = outputs["sum"]
    assert first.shape == second.shape == (5,)


def test_an_output_that_is_no_array_is_refused(jax):
    with pytest.raises(TypeError, match="must return an array, or a tuple, list or dict of arrays, got str"):
        from_jax(lambda key, dataset: "one").sample((1.0,), 5, RNG(0))


def test_names_claims_and_arguments():
    claim = PrivacyClaim(1.0)
    assert from_jax(laplace(1.0), claim=claim).claim is claim
    assert from_jax(laplace(1.0)).name == "laplace.noisy_sum"
    assert from_jax(laplace(1.0), name="sum").name == "sum"
    with pytest.raises(TypeError, match="must be callable, got 3"):
        from_jax(3)
    with pytest.raises(TypeError, match=r"calls fn\(key, dataset\), which .* does not accept"):
        from_jax(lambda key: key)


def test_a_jitted_function_is_recognised_and_other_objects_are_refused():
    assert adapter.as_mechanism(laplace(1.0)).name == "laplace.noisy_sum"
    with pytest.raises(TypeError, match=r"takes a function of \(key, dataset\), got int"):
        adapter.as_mechanism(3)


def test_without_jax_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(
        ModuleNotFoundError, match="from_jax needs jax, which is not installed: pip install jax"
    ):
        from_jax(laplace(1.0)).sample((1.0,), 5, RNG(0))
