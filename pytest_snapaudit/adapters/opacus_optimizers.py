"""Handling an Opacus optimizer: what it clips, what it adds, and the batches its loader samples."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pytest_snapaudit.adapters.optional_imports import load
from pytest_snapaudit.adapters.torch import as_numpy

Backward = Callable[[Any], object]
"""Runs the model forward and backward on a batch, so that the optimizer's parameters carry gradients."""

_OPTIMIZER_MEMBERS = (
    "add_noise",
    "pre_step",
    "step",
    "signal_skip_step",
    "noise_multiplier",
    "max_grad_norm",
)
_SAMPLER_MEMBERS = ("num_samples", "sample_rate", "steps")


def clipped(optimizer: Any, backward: Backward | None, batch: Any) -> tuple[NDArray[Any], list[Any]]:
    """What ``pre_step`` accumulates when it is told to skip the noise, and the per-sample gradients.

    The optimizer is left cleared.
    """
    try:
        fill(optimizer, backward, batch)
        optimizer.signal_skip_step(do_skip=True)
        optimizer.pre_step()
        sums = flat([p.summed_grad for p in optimizer.params])
        return sums, [getattr(p, "grad_sample", None) for p in optimizer.params]
    finally:
        optimizer._step_skip_queue.clear()
        clear(optimizer)


def fill(optimizer: Any, backward: Backward | None, batch: Any) -> None:
    """Give the parameters the gradients of ``batch``: by ``backward``, or because they are the batch."""
    clear(optimizer)
    if backward is not None:
        backward(batch)
        return
    torch = load("torch", needed_for="an Opacus optimizer", install="torch")
    parameters = list(optimizer.params)
    for parameter, gradients in zip(parameters, _per_parameter(batch, parameters), strict=True):
        parameter.grad_sample = torch.as_tensor(gradients, dtype=parameter.dtype, device=parameter.device)


def clear(optimizer: Any) -> None:
    """Forget all gradients, also those of a skipped step."""
    optimizer._is_last_step_skipped = False
    optimizer.zero_grad()
    for parameter in optimizer.params:
        parameter.summed_grad = None


def _per_parameter(batch: Any, parameters: Sequence[Any]) -> list[NDArray[Any]]:
    """Per-sample gradients as one (B, *shape) array per parameter."""
    width = sum(map(_size, parameters))
    if isinstance(batch, tuple):
        parts = [_numpy(part) for part in batch]
        if [part.shape[1:] for part in parts] == [tuple(p.shape) for p in parameters]:
            return parts
        received = f"a tuple of arrays of shapes {[part.shape for part in parts]}"
    else:
        rows = _numpy(batch)
        if rows.ndim == 2 and rows.shape[1] == width:
            columns = np.split(rows, np.cumsum([_size(p) for p in parameters])[:-1], axis=1)
            return [part.reshape((len(rows), *p.shape)) for part, p in zip(columns, parameters, strict=True)]
        received = f"an array of shape {rows.shape}"
    msg = (
        f"from_opacus: without backward a dataset is the per-sample gradients, an array of shape (B, {width}) or a "
        f"tuple of {len(parameters)} arrays (B, *shape), got {received}; give backward(batch) for batches of records."
    )
    raise ValueError(msg)


def add_noise(optimizer: Any, clean: NDArray[Any], rng: Generator) -> NDArray[Any]:
    """The optimizer's ``add_noise`` on (n, d) clipped sums, or on one of shape (d,)."""
    stand_in = stand_in_for(optimizer, clean, rng)
    stand_in.add_noise()
    return grad_rows(stand_in, len(clean) if clean.ndim == 2 else 1)


def stand_in_for(optimizer: Any, sums: NDArray[Any], rng: Generator) -> Any:
    """Another optimizer of the class whose parameters carry ``sums``, with a leading axis if ``sums`` has one.

    It shares nothing with the optimizer that a step changes, and draws from a generator seeded by ``rng`` if the
    optimizer has one of its own.
    """
    torch = load("torch", needed_for="an Opacus optimizer", install="torch")
    twins: dict[int, Any] = {}
    start = 0
    for parameter in optimizer.params:
        stop = start + _size(parameter)
        part = np.array(sums[..., start:stop]).reshape((*sums.shape[:-1], *parameter.shape))
        summed = torch.as_tensor(part, dtype=parameter.dtype, device=parameter.device)
        twins[id(parameter)] = torch.nn.Parameter(torch.zeros_like(summed))
        twins[id(parameter)].summed_grad = summed
        start = stop
    groups = [
        {
            **group,
            "params": [twins[id(p)] for p in group["params"] if id(p) in twins],
        }
        for group in optimizer.param_groups
    ]
    stand_in = object.__new__(type(optimizer))
    vars(stand_in).update(vars(optimizer))
    stand_in.original_optimizer = SimpleNamespace(param_groups=groups)
    stand_in._step_skip_queue = []
    seed_generator(stand_in, rng)
    return stand_in


def grad_rows(optimizer: Any, n: int) -> NDArray[Any]:
    """(n, d) gradients of all parameters, whose leading axis is the trial."""
    return np.concatenate([_numpy(p.grad).reshape(n, -1) for p in optimizer.params], axis=1)


def _size(parameter: Any) -> int:
    return math.prod(parameter.shape)


def seed_generator(optimizer: Any, rng: Generator) -> None:
    """A generator seeded from ``rng`` instead of the optimizer's own, unless that one is secure."""
    own = getattr(optimizer, "generator", None)
    if own is not None and not getattr(optimizer, "secure_mode", False):
        optimizer.generator = _seeded_like(own, rng)


def _seeded_like(generator: Any, rng: Generator) -> Any:
    seeded = type(generator)(device=generator.device)
    seeded.manual_seed(int(rng.integers(2**62)))
    return seeded


def batches(loader: Any, dataset: Any, n: int, rng: Generator) -> Iterator[tuple[int, ...]]:
    """Indices of ``n`` sampled batches; without a loader the dataset is the batch and the indices are empty."""
    if loader is None:
        return iter([()] * n)
    require_poisson(loader)
    return sampled_indices(loader, dataset, n, rng)


def sampled_indices(loader: Any, dataset: Any, n: int, rng: Generator) -> Iterator[tuple[int, ...]]:
    """``n`` batches of the loader's own batch sampler, over the records of ``dataset``."""
    sampler = copy.copy(loader.batch_sampler)
    sampler.num_samples, sampler.steps = len(dataset), n
    if getattr(sampler, "generator", None) is not None:
        sampler.generator = _seeded_like(sampler.generator, rng)
    return map(tuple, sampler)


def flat(tensors: Sequence[Any]) -> NDArray[Any]:
    """(d,) coordinates of all tensors in order."""
    return np.concatenate([_numpy(tensor).reshape(-1) for tensor in tensors])


def _numpy(value: Any) -> NDArray[Any]:
    return np.asarray(as_numpy(value))


def is_optimizer(obj: object) -> bool:
    """Whether ``obj`` steps as the optimizers of Opacus do."""
    return not isinstance(obj, type) and all(hasattr(obj, member) for member in _OPTIMIZER_MEMBERS)


def steps_in_its_own_way(optimizer: Any) -> bool:
    """Whether a subclass overrides ``step`` without the ``pre_step`` that clips and adds noise."""
    kind = next(cls for cls in type(optimizer).__mro__ if "step" in vars(cls))
    return "pre_step" not in vars(kind) and not kind.__module__.startswith("opacus.")


def require_optimizer(owner: str, obj: object) -> None:
    """Raise TypeError unless ``obj`` is an optimizer of Opacus."""
    if not is_optimizer(obj):
        msg = f"{owner} takes an optimizer of opacus.optimizers, got {obj!r} of type {type(obj).__name__}."
        raise TypeError(msg)


def require_poisson(loader: Any) -> None:
    """Raise TypeError unless ``loader`` samples every record independently."""
    sampler = getattr(loader, "batch_sampler", None)
    if not all(hasattr(sampler, member) for member in _SAMPLER_MEMBERS):
        msg = (
            f"data_loader must sample with opacus.utils.uniform_sampler.UniformWithReplacementSampler, as the one "
            f"that make_private returns, got {type(loader).__name__} with {type(sampler).__name__}; for another way "
            "of sampling draw whole outputs with from_sampler."
        )
        raise TypeError(msg)
