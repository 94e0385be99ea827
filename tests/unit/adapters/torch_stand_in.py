"""As much of torch, of Opacus' optimizers and of its samplers as their adapters touch, made of NumPy."""

from __future__ import annotations

import math
import types
from dataclasses import dataclass, field
from typing import Any

import numpy as np


class Tensor(np.ndarray):
    """An array that carries gradients as attributes; ``requires_grad`` for all of them."""

    device = "cpu"

    def detach(self) -> Tensor:
        return self.view()

    def cpu(self) -> Tensor:
        return self

    def numpy(self) -> np.ndarray:
        return np.array(self)

    def clone(self) -> Tensor:
        return self.copy()


def tensor(values: Any, dtype: Any = None, device: str = "cpu") -> Tensor:
    assert device == "cpu"
    return np.array(values, dtype=dtype or np.float32).view(Tensor)


class TorchGenerator:
    """``torch.Generator``: without a seed of its own it differs from run to run."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = device
        self.numbers = np.random.default_rng()

    def manual_seed(self, seed: int) -> TorchGenerator:
        self.numbers = np.random.default_rng(seed)
        return self


def torch_module() -> types.ModuleType:
    """A module to put into ``sys.modules`` as torch."""
    torch = types.ModuleType("torch")
    common = TorchGenerator().manual_seed(0)
    torch.common = common
    torch.Generator = TorchGenerator
    torch.as_tensor = tensor
    torch.zeros_like = lambda like: tensor(np.zeros(like.shape))
    torch.nn = types.SimpleNamespace(Parameter=tensor)
    torch.manual_seed = common.manual_seed
    torch.get_rng_state = lambda: common.numbers.bit_generator.state
    torch.set_rng_state = lambda state: setattr(common.numbers.bit_generator, "state", state)
    torch.randint = lambda high, size: common.numbers.integers(high, size=size).view(Tensor)
    torch.normal = lambda std, size, generator=None: tensor(
        (generator or common).numbers.normal(0.0, std, size)
    )
    return torch


@dataclass
class PlainOptimizer:
    """What Opacus wraps."""

    param_groups: list[dict[str, Any]]

    def step(self) -> None:
        raise AssertionError("a trial must not change the model")


@dataclass
class DPOptimizer:
    """Clips to ``max_grad_norm``, adds noise of ``noise_multiplier`` times that, divides by the expected batch size."""

    torch: Any
    shapes: tuple[tuple[int, ...], ...] = ((2,), ())
    noise_multiplier: float = 1.0
    max_grad_norm: float = 0.5
    expected_batch_size: int = 2
    generator: Any = None
    secure_mode: bool = False
    step_hook: Any = None
    original_optimizer: Any = None
    _step_skip_queue: list[bool] = field(default_factory=list)
    _is_last_step_skipped: bool = False

    def __post_init__(self) -> None:
        parameters = [tensor(np.zeros(shape)) for shape in self.shapes]
        for p in parameters:
            p.grad = p.grad_sample = p.summed_grad = None
        groups = [{"params": [p], "lr": 0.1} for p in parameters]
        self.original_optimizer = PlainOptimizer(groups)

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        return self.original_optimizer.param_groups

    @property
    def params(self) -> list[Tensor]:
        return [p for group in self.param_groups for p in group["params"]]

    def signal_skip_step(self, do_skip: bool = True) -> None:
        self._step_skip_queue.append(do_skip)

    def step(self) -> None:
        if self.pre_step():
            self.original_optimizer.step()

    def zero_grad(self) -> None:
        for p in self.params:
            p.grad = p.grad_sample = None
            if not self._is_last_step_skipped:
                p.summed_grad = None

    def clip_and_accumulate(self) -> None:
        samples = [np.asarray(p.grad_sample) for p in self.params]
        flat = np.concatenate([g.reshape(len(g), math.prod(g.shape[1:])) for g in samples], axis=1)
        factors = np.minimum(1.0, self.max_grad_norm / (np.linalg.norm(flat, axis=1) + 1e-6))
        for p in self.params:
            total = tensor(np.einsum("i,i...->...", factors, np.asarray(p.grad_sample)))
            p.summed_grad = total if p.summed_grad is None else p.summed_grad + total

    def add_noise(self) -> None:
        for p in self.params:
            std = self.noise_multiplier * self.max_grad_norm
            p.grad = tensor(
                p.summed_grad + self.torch.normal(std, p.summed_grad.shape, generator=self.generator)
            )

    def scale_grad(self) -> None:
        for p in self.params:
            p.grad = tensor(p.grad / self.expected_batch_size)

    def pre_step(self) -> bool:
        self.clip_and_accumulate()
        if self._step_skip_queue and self._step_skip_queue.pop(0):
            self._is_last_step_skipped = True
            return False
        self.add_noise()
        self.scale_grad()
        if self.step_hook:
            self.step_hook(self)
        self._is_last_step_skipped = False
        return True


DPOptimizer.__module__ = "opacus.optimizers.optimizer"


@dataclass
class PoissonSampler:
    """Every record with probability ``sample_rate``, ``steps`` times."""

    torch: Any
    num_samples: int
    sample_rate: float
    steps: int
    generator: Any = None

    def __iter__(self):
        for _ in range(self.steps):
            uniform = (self.generator or self.torch.common).numbers.random(self.num_samples)
            yield np.flatnonzero(uniform < self.sample_rate).tolist()


@dataclass
class Loader:
    """Collates records, which are rows of per-sample gradients, into a batch of shape (B, d)."""

    batch_sampler: PoissonSampler
    width: int = 3

    def collate_fn(self, records: list[Any]) -> np.ndarray:
        return np.array(records, dtype=float).reshape(len(records), self.width)
