"""What can be put under test: mechanisms with a clean and a noise stage, and samplers without."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.noise import KINDS, NoiseDeclaration, read_declaration

D = TypeVar("D")
D_contra = TypeVar("D_contra", contravariant=True)

WHITE_BOX, BLACK_BOX = "white-box", "black-box"
VIEWS = (WHITE_BOX, BLACK_BOX)

CALLABLE_TRIALS, DEFAULT_TRIALS = 20_000, 400_000


@runtime_checkable
class Mechanism(Protocol[D_contra]):
    """A mechanism split into its clean stage and its noise stage; exactly these two members are required.

    Used when present:
        ``clean_batch(dataset, size, rng)`` -> (size, *shape): many evaluations at once, for a random clean
        stage; in pipeline scope it is re-drawn for every trial.
        ``release(noisy, rng)`` -> (n, ...): what a black-box attacker sees; identity if absent.
        ``deterministic``: True if one clean evaluation stands for all; a second one verifies it.
        ``noise``: a declaration of :mod:`~pytest_snapaudit.engine.noise`, such as ``GaussianNoise(sigma)``.
        ``claim_curve(epsilon)`` -> delta: what the calibration claims at other epsilons for the same noise.
        ``sensitivity``, ``norm``: declared bound on the distance of clean outputs, and its norm: ``"l1"``,
            ``"l2"`` or ``"linf"``.
        ``claim``: a :class:`PrivacyClaim` or an (epsilon, delta) pair.
        ``claimed_views``: which of ``"black-box"`` and ``"white-box"`` the claim covers.
    """

    def clean(self, dataset: D_contra, rng: Generator) -> ArrayLike:
        """One evaluation of the stage without privacy noise, of shape (*shape)."""
        ...

    def privatize(self, clean: NDArray[Any], rng: Generator) -> ArrayLike:
        """One independent draw per row: (n, *shape) in, (n, *shape') out."""
        ...


@dataclass(frozen=True, eq=False)
class Sampler(Generic[D]):
    """Whole outputs of a mechanism; no clean stage, and a black-box view only.

    Attributes:
        fn: many outputs per call (``batched``) or one.
        name: printed in reports.
        claim: the claim to test when the test states none.
        batched: whether ``fn`` takes (dataset, n, rng) and returns n outputs, or a dataset and returns one.
    """

    fn: Callable[..., Any]
    name: str
    claim: PrivacyClaim | None = None
    batched: bool = True

    @property
    def default_trials(self) -> int:
        """Trials per side when the test states none: fewer for one output per call."""
        return DEFAULT_TRIALS if self.batched else CALLABLE_TRIALS

    def sample(self, dataset: D, n: int, rng: Generator) -> Any:
        """``n`` outputs on ``dataset``; an exception is an output like any other."""
        if self.batched:
            return self.fn(dataset, n, rng)
        return [_outcome(self.fn, dataset) for _ in range(n)]

    def call_timed(self, dataset: D) -> tuple[Any, float]:
        """One output of a function of one, and the seconds it took."""
        started = time.perf_counter()
        output = _outcome(self.fn, dataset)
        return output, time.perf_counter() - started


def _outcome(fn: Callable[[Any], Any], dataset: object) -> Any:
    try:
        return fn(dataset)
    except Exception as raised:
        return raised


def _validated(owner: str, fn: object, name: object, claim: object) -> tuple[str, PrivacyClaim | None]:
    if not callable(fn):
        msg = f"{owner}: fn must be callable, got {fn!r} of type {type(fn).__name__}."
        raise TypeError(msg)
    if name is not None and not isinstance(name, str):
        msg = f"{owner}: name must be a string, got {name!r}."
        raise TypeError(msg)
    if claim is not None and not isinstance(claim, PrivacyClaim):
        msg = f"{owner}: claim must be a PrivacyClaim, got {claim!r}."
        raise TypeError(msg)
    _check_arity(owner, fn, SIGNATURES[owner])
    label = name or getattr(fn, "__qualname__", None) or type(fn).__name__
    return label.replace("<locals>.", ""), claim


SIGNATURES = {"from_sampler": ("dataset", "n", "rng"), "from_callable": ("dataset",)}


def _check_arity(owner: str, fn: Callable[..., Any], names: tuple[str, ...]) -> None:
    """Refuse a function that cannot be called with these positional arguments."""
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*names)
    except TypeError as error:
        other = {
            "from_sampler": "for a function of the dataset alone use from_callable",
            "from_callable": "a function of (dataset, n, rng) goes to from_sampler; close over a generator otherwise",
        }[owner]
        msg = f"{owner} calls fn({', '.join(names)}), which {fn!r} does not accept ({error}); {other}."
        raise TypeError(msg) from None


def from_sampler(
    fn: Callable[[D, int, Generator], Any], *, name: str | None = None, claim: PrivacyClaim | None = None
) -> Sampler[D]:
    """A mechanism known by its outputs, many per call.

    Args:
        fn: ``fn(dataset, n, rng)`` returns n independent outputs: an array of shape (n, ...), a list of n
            objects, or a tuple or dict of arrays of length n (the components of each output).
        name: printed in reports; the function's name by default.
        claim: used when the test states no claim.
    """
    label, claim = _validated("from_sampler", fn, name, claim)
    return Sampler(fn, label, claim, batched=True)


def from_callable(
    fn: Callable[[D], Any], *, name: str | None = None, claim: PrivacyClaim | None = None
) -> Sampler[D]:
    """A mechanism known by its outputs, one per call: ``fn(dataset)``.

    Outputs may be numbers, strings, arrays, tuples, dicts, None; an exception is an output too.
    ``random``, ``numpy.random`` and torch are seeded around the calls, so that verdicts are reproducible.
    """
    label, claim = _validated("from_callable", fn, name, claim)
    return Sampler(fn, label, claim, batched=False)


def mechanism_name(mechanism: object) -> str:
    """A short name without addresses: the ``name``, a dataclass repr, or the class name."""
    name = getattr(mechanism, "name", None)
    if isinstance(name, str) and name:
        return name
    if hasattr(type(mechanism), "__dataclass_fields__"):
        text = repr(mechanism)
        if " at 0x" not in text and len(text) <= 160:
            return text
    return type(mechanism).__name__


def declared_noise(mechanism: object) -> NoiseDeclaration | None:
    """The mechanism's noise declaration, recognised by type or by name and parameter."""
    noise = getattr(mechanism, "noise", None)
    if noise is None:
        return None
    declared = read_declaration(noise)
    if declared is not None:
        return declared
    others = ", ".join(name for name in KINDS if name not in ("GaussianNoise", "LaplaceNoise"))
    msg = (
        f"{mechanism_name(mechanism)}: noise must be GaussianNoise(sigma) or LaplaceNoise(scale), "
        f"got {noise!r} of type {type(noise).__name__}; {others} are accepted too."
    )
    raise TypeError(msg)


def validate_views(owner: str, views: object) -> tuple[str, ...]:
    """Check a collection of view names; the white-box view comes first."""
    accepted = 'a collection of "black-box" and "white-box"'
    if isinstance(views, str) or not isinstance(views, set | frozenset | tuple | list):
        msg = f"{owner} must be {accepted}, got {views!r}."
        raise TypeError(msg)
    unknown = [view for view in views if not isinstance(view, Hashable) or view not in VIEWS]
    if unknown or not views:
        msg = f"{owner} must be {accepted}, got {views!r}."
        raise ValueError(msg)
    return tuple(view for view in VIEWS if view in views)


def claimed_views(mechanism: object) -> tuple[str, ...]:
    """The views the mechanism's claim covers; the black-box view alone unless it says otherwise."""
    declared = getattr(mechanism, "claimed_views", frozenset({BLACK_BOX}))
    return validate_views(f"{mechanism_name(mechanism)}: claimed_views", declared)
