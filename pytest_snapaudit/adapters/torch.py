"""Plain PyTorch: functions whose noise comes from torch's global generator, or from one they are given."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator

from pytest_snapaudit.adapters.optional_imports import load
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.mechanism import Sampler, from_callable, from_sampler

_FORMS = "fn(dataset), fn(dataset, n), fn(dataset, generator) or fn(dataset, n, generator)"


def as_mechanism(obj: object) -> Sampler[Any]:
    """Refuse objects of torch: none of them says by itself how it is called, or adds privacy noise.

    Raises:
        TypeError: always; the message says how to wrap the object.
    """
    kind = type(obj).__name__
    if hasattr(obj, "param_groups"):
        msg = (
            f"{kind} adds no noise: pass the private optimizer that wraps it (Opacus: make_private returns it), or "
            "from_torch of a function that takes a private step."
        )
    else:
        msg = f"check takes a mechanism, got {kind}: wrap a function with from_torch, {_FORMS}."
    raise TypeError(msg)


def from_torch(
    fn: Callable[..., Any], *, name: str | None = None, claim: PrivacyClaim | None = None
) -> Sampler[Any]:
    """A PyTorch function as a sampler, by the names of its arguments.

    ========================== ==========================================================================
    ``fn(dataset)``            one output; noise from torch's global generator
    ``fn(dataset, n)``         n outputs along the first axis; noise from torch's global generator
    ``fn(dataset, generator)`` one output; noise from a ``torch.Generator`` with a fresh seed
    ``fn(dataset, n, generator)`` n outputs; noise from a ``torch.Generator`` with a fresh seed
    ========================== ==========================================================================

    The last argument is a generator if it is called ``generator``. All of them are seeded by the audit. One output
    per call means 20,000 trials per side unless the test says otherwise.

    Args:
        fn: returns tensors, or tuples, lists or dicts of them.
        name: printed in reports; the function's name by default.
        claim: used when the test states none.

    Raises:
        TypeError: ``fn`` is not callable, or takes other arguments.
    """
    if not callable(fn):
        msg = f"from_torch: fn must be callable, got {fn!r} of type {type(fn).__name__}."
        raise TypeError(msg)
    names = _argument_names(fn)
    with_generator = names[-1] == "generator"
    label = name or (getattr(fn, "__qualname__", None) or type(fn).__name__).replace("<locals>.", "")
    if len(names) - with_generator == 1:

        def one(dataset: Any) -> Any:
            return as_numpy(fn(dataset, *([_generator(None)] if with_generator else [])))

        return from_callable(one, name=label, claim=claim)

    def many(dataset: Any, n: int, rng: Generator) -> Any:
        return as_numpy(fn(dataset, n, *([_generator(rng)] if with_generator else [])))

    return from_sampler(many, name=label, claim=claim)


def as_numpy(outputs: Any) -> Any:
    """Tensors as arrays, inside tuples, lists and dicts too; anything else as it is."""
    if isinstance(outputs, dict):
        return {key: as_numpy(part) for key, part in outputs.items()}
    if isinstance(outputs, tuple | list):  # named tuples too, which are not built from one sequence
        parts = [as_numpy(part) for part in outputs]
        return parts if isinstance(outputs, list) else tuple(parts)
    if hasattr(outputs, "detach") and hasattr(outputs, "cpu"):
        return _array(outputs)
    return outputs


def _array(tensor: Any) -> Any:
    """A tensor of any kind that NumPy has a form for; bfloat16, which it has none for, as float32."""
    plain = tensor.detach().cpu()
    if str(getattr(plain, "layout", "torch.strided")) != "torch.strided":
        plain = plain.to_dense()
    for resolve in ("resolve_conj", "resolve_neg"):
        plain = getattr(plain, resolve)() if hasattr(plain, resolve) else plain
    if str(getattr(plain, "dtype", "")) == "torch.bfloat16":
        plain = plain.float()
    return np.asarray(plain.numpy())


def _generator(rng: Generator | None) -> Any:
    """A ``torch.Generator`` seeded from ``rng``, or from torch's global generator, which the engine seeded."""
    torch = load("torch", needed_for="from_torch", install="torch")
    generator = torch.Generator()
    seed = rng.integers(2**62) if rng is not None else torch.randint(2**62, (1,)).item()
    generator.manual_seed(int(seed))
    return generator


def _argument_names(fn: Callable[..., Any]) -> list[str]:
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        parameters = []  # type: ignore[assignment]
    names = [p.name for p in parameters if p.kind in positional and p.default is p.empty]
    generator_last = bool(names) and "generator" not in names[:-1]
    plain = [each for each in names if each != "generator"]
    if generator_last and len(plain) in (1, 2) and len(names) <= 3:
        return names
    msg = f"from_torch takes {_FORMS}, got {fn!r} with the arguments ({', '.join(names)})."
    raise TypeError(msg)
