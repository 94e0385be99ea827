"""diffprivlib: mechanisms with ``randomise`` as they are, mechanisms built for a dataset, tools and models.

diffprivlib draws from the operating system unless it is given a ``random_state``. Then the audit takes over the state:
numbers come from the generators it seeds, so that a verdict repeats with the run seed and no two worker processes
draw the same numbers.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import random
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pytest_snapaudit.adapters.sampler import LibrarySampler
from pytest_snapaudit.engine.claim import PrivacyClaim

__tracebackhide__ = True  # frames of this module say nothing to the author of a test

_HELPERS = "pytest_snapaudit.adapters.diffprivlib"


def as_mechanism(obj: object) -> LibrarySampler | None:
    """A mechanism or transformer with ``randomise`` as a sampler with its own claim; see :func:`from_mechanism`.

    Raises:
        TypeError: for a diffprivlib object that is not one; the message shows what to write instead.
    """
    if callable(getattr(obj, "randomise", None)):
        return from_mechanism(obj)
    if callable(getattr(obj, "fit", None)):
        msg = (
            f"{type(obj).__name__} is a diffprivlib model; say what of the fitted model is released: "
            f"check(from_model(model, lambda fitted: fitted.coef_), ...), after from {_HELPERS} import from_model."
        )
        raise TypeError(msg)
    msg = (
        f"check takes a diffprivlib mechanism with randomise, got {type(obj).__name__}; for tools and models there are "
        f"from_tool and from_model in {_HELPERS}."
    )
    raise TypeError(msg)


def from_mechanism(mechanism: Any, *, name: str | None = None) -> LibrarySampler:
    """A mechanism whose datasets are the values it randomises, such as ``Laplace``; what ``check`` does by itself.

    Args:
        mechanism: has ``randomise(value)``; ``epsilon`` and ``delta``, its own or those of the mechanism a transformer
            wraps, are the claim. It is copied before use.
        name: printed in reports; the mechanism's ``repr`` by default.

    Returns:
        A sampler of 20 000 outputs per side unless told otherwise.

    Raises:
        TypeError: no ``randomise``, or no ``epsilon``.
        InvalidClaim: an infinite epsilon, or (0, 0).
    """
    return LibrarySampler(
        fn=_Randomise(_taken_over(mechanism)),
        name=name or _name(mechanism),
        claim=_claim(mechanism),
        batched=False,
    )


def from_builder(
    build: Callable[[Any], Any], *, epsilon: float, delta: float = 0.0, name: str | None = None
) -> LibrarySampler:
    """A mechanism that is built from the dataset, such as ``Exponential``, whose utilities are the dataset.

    Args:
        build: ``build(dataset)`` returns a mechanism with ``randomise()``. It is called once per dataset and block of
            trials, not per output: for a mechanism that changes when it is used, use ``from_callable`` instead.
        epsilon, delta: the claim.
        name: printed in reports; the function's name by default.

    Example::

        from_builder(lambda votes: PermuteAndFlip(epsilon=1, sensitivity=1, utility=votes), epsilon=1)
    """
    if not callable(build):
        msg = f"from_builder: build must be a function of the dataset, got {build!r} of type {type(build).__name__}."
        raise TypeError(msg)
    return LibrarySampler(
        fn=_Built(build),
        name=name or str(getattr(build, "__name__", type(build).__name__)),
        claim=PrivacyClaim(epsilon, delta),
        batched=False,
    )


def from_tool(
    tool: Callable[..., Any],
    *,
    epsilon: float,
    delta: float = 0.0,
    seeded: bool = False,
    name: str | None = None,
    **arguments: Any,
) -> LibrarySampler:
    """A function of ``diffprivlib.tools``, such as ``mean``: each output is ``tool(dataset, epsilon=epsilon, ...)``.

    Args:
        tool: called with the dataset, ``epsilon`` and ``arguments``.
        epsilon, delta: the claim; only ``epsilon`` is passed on.
        seeded: pass a ``random_state`` drawn from the audit's generator with every call, so that verdicts repeat.
        name: printed in reports.
        arguments: passed on, for example ``bounds=(0, 1)``. Where no ``accountant`` is given, every call gets an
            unlimited one of its own, so that trials are not charged to the default accountant.

    Raises:
        TypeError: ``tool`` is not callable.
        ValueError: ``random_state`` among the arguments: a fixed one would repeat the same numbers.
    """
    if not callable(tool):
        msg = f"from_tool: tool must be callable, got {tool!r} of type {type(tool).__name__}."
        raise TypeError(msg)
    if "random_state" in arguments:
        msg = (
            f"from_tool: random_state={arguments['random_state']!r} would give every call the same or a shared state; "
            "leave it out, or write seeded=True."
        )
        raise ValueError(msg)
    shown = ", ".join(f"{key}={value!r}" for key, value in {"epsilon": epsilon, **arguments}.items())
    return LibrarySampler(
        fn=_Tool(tool, {"epsilon": epsilon, **arguments}, seeded, _charges(tool)),
        name=name or f"{getattr(tool, '__name__', type(tool).__name__)}({shown})",
        claim=PrivacyClaim(epsilon, delta),
        batched=False,
    )


def from_model(
    model: Any, read: Callable[[Any], Any], *, seeded: bool = False, name: str | None = None
) -> LibrarySampler:
    """A model of ``diffprivlib.models``: each output is what ``read`` takes from a copy fitted to the dataset.

    Every copy has an unlimited accountant of its own, so that trials are not charged to the model's.

    Args:
        model: has ``fit``, ``epsilon`` and perhaps ``delta``, which are the claim; not fitted itself.
        read: ``read(fitted)`` returns numbers, arrays or tuples of them, for example ``lambda m: m.coef_``.
        seeded: give each copy a ``random_state`` drawn from the audit's generator, so that verdicts repeat; done in
            any case for a model that was given one, which would repeat the same noise.
        name: printed in reports; the class name by default.

    Returns:
        A sampler whose datasets are tuples of arguments of ``fit``: ``(X,)`` or ``(X, y)``.

    Raises:
        TypeError: no ``fit``, no ``epsilon``, or ``read`` is not callable.
    """
    if not callable(getattr(model, "fit", None)) or not callable(read):
        msg = (
            f"from_model takes a model with fit and a function of the fitted model, got {model!r} and {read!r}; "
            "for example from_model(LinearRegression(epsilon=1, ...), lambda fitted: fitted.coef_)."
        )
        raise TypeError(msg)
    return LibrarySampler(
        fn=_Fit(model, read, seeded),
        name=name or type(model).__name__,
        claim=_claim(model),
        batched=False,
    )


@dataclass(frozen=True)
class _Randomise:
    mechanism: Any

    def __call__(self, value: Any) -> Any:
        return self.mechanism.randomise(value)

    def __reduce__(self) -> tuple[Any, ...]:
        return _sent, (_sendable(self.mechanism),)


@dataclass
class _Built:
    build: Callable[[Any], Any]
    last: tuple[Any, Any] | None = field(default=None, repr=False)

    def __call__(self, dataset: Any) -> Any:
        if self.last is None or self.last[0] is not dataset:
            self.last = dataset, _taken_over(self.build(dataset))
        return self.last[1].randomise()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.build,)


@dataclass(frozen=True)
class _Tool:
    tool: Callable[..., Any]
    arguments: dict[str, Any]
    seeded: bool
    charges: bool

    def __call__(self, dataset: Any) -> Any:
        given = dict(self.arguments)
        if self.charges and "accountant" not in given:
            given["accountant"] = importlib.import_module("diffprivlib.accountant").BudgetAccountant()
        if self.seeded:
            given["random_state"] = _drawn_seed()
        return self.tool(dataset, **given)


@dataclass(frozen=True)
class _Fit:
    model: Any
    read: Callable[[Any], Any]
    seeded: bool

    def __call__(self, dataset: tuple[Any, ...]) -> Any:
        fitted = copy.copy(self.model)
        accountant = getattr(fitted, "accountant", None)
        if accountant is not None:
            fitted.accountant = type(accountant)()  # unlimited, and without the history of all other trials
        if self.seeded or getattr(fitted, "random_state", None) is not None:
            fitted.random_state = _drawn_seed()
        fitted.fit(*dataset)
        return self.read(fitted)


def _charges(tool: Callable[..., Any]) -> bool:
    """Whether a tool of diffprivlib charges an accountant."""
    if not str(getattr(tool, "__module__", "")).startswith("diffprivlib."):
        return False
    try:
        return "accountant" in inspect.signature(tool).parameters
    except (TypeError, ValueError):
        return False


def _drawn_seed() -> int:
    """A seed from Python's own generator, which the audit seeds for every block of trials."""
    return random.getrandbits(32)


def _chain(mechanism: Any) -> list[Any]:
    """A transformer, what it wraps, and so on down to the mechanism."""
    found = [mechanism]
    while getattr(found[-1], "parent", None) is not None:
        found.append(found[-1].parent)
    return found


def _taken_over(mechanism: Any) -> Any:
    """A copy that draws from ``numpy.random``, which the audit seeds, if it was given a state; else as it is."""
    if not callable(getattr(mechanism, "randomise", None)):
        msg = f"a diffprivlib mechanism has randomise, got {mechanism!r} of type {type(mechanism).__name__}."
        raise TypeError(msg)
    copied = copy.copy(mechanism)
    inner = getattr(copied, "parent", None)
    if inner is not None:
        copied.parent = _taken_over(inner)
    elif isinstance(getattr(copied, "_rng", None), np.random.RandomState):
        copied._rng = _global_state()
    return copied


def _global_state() -> Any:
    return np.random.mtrand._rand


def _sendable(mechanism: Any) -> Any:
    """A copy that can be pickled: generators, which cannot, are replaced by whether they are secure."""
    copied = copy.copy(mechanism)
    if getattr(copied, "parent", None) is not None:
        copied.parent = _sendable(copied.parent)
    elif hasattr(copied, "_rng"):
        copied._rng = isinstance(copied._rng, random.SystemRandom)
        if hasattr(copied, "random_state"):
            copied.random_state = None
    return copied


def _sent(mechanism: Any) -> _Randomise:
    """What :func:`_sendable` made, with a generator again."""
    inner = _chain(mechanism)[-1]
    if isinstance(getattr(inner, "_rng", None), bool):
        inner._rng = secrets.SystemRandom() if inner._rng else _global_state()
    return _Randomise(mechanism)


def _claim(mechanism: Any) -> PrivacyClaim:
    if isinstance(mechanism, type):
        msg = f"got the class {mechanism.__name__}; write {mechanism.__name__}(...) with its arguments."
        raise TypeError(msg)
    inner = _chain(mechanism)[-1]
    if getattr(inner, "epsilon", None) is None:
        msg = f"{type(mechanism).__name__} has no epsilon to test; wrap it with from_callable and state the claim."
        raise TypeError(msg)
    return PrivacyClaim(inner.epsilon, getattr(inner, "delta", None) or 0.0)


def _name(mechanism: Any) -> str:
    package = f"{type(mechanism).__module__}."
    text = repr(mechanism).removeprefix(package)
    return type(mechanism).__name__ if " at 0x" in text or len(text) > 160 else text
