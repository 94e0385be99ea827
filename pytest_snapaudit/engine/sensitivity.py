"""Observed against declared sensitivity of a clean stage: a deterministic pass that needs no trials.

The sensitivity Δ of a clean stage f is the largest ‖f(D) - f(D')‖ over neighbouring datasets (Dwork & Roth,
"The Algorithmic Foundations of Differential Privacy", 2014, Definition 3.1 for the L1 norm and 3.8 for the
L2 norm). Additive noise is calibrated to the declared Δ, so one pair whose clean outputs lie further apart
refutes the declaration. Pairs within it prove nothing about the pairs that were not tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_snapaudit.engine.distance import gaps_between, numeric, observed_distance, validate_norm
from pytest_snapaudit.engine.errors import MechanismError, SensitivityExceeded
from pytest_snapaudit.engine.mechanism import mechanism_name

_ROUNDING_ULPS = 4


@dataclass(frozen=True)
class SensitivityFinding:
    """The worst of the pairs a sensitivity check was given.

    Attributes:
        name: the mechanism, or the clean stage.
        norm: the norm distances are measured in.
        sensitivity: the declared sensitivity.
        distance: largest distance observed, infinite if only one side raised or answered with a number.
        n_pairs: how many pairs were tried.
        index: position of the worst pair among them, from 0; the first of equally bad ones.
        slack: the part of ``distance`` that rounding of the clean outputs may account for.
        tolerance: relative tolerance on the declared sensitivity.
        observation: what was seen on the worst pair, in words.
        pair: the worst pair, (reference, canary); excluded from equality.
    """

    name: str
    norm: str
    sensitivity: float
    distance: float
    n_pairs: int
    index: int
    slack: float
    tolerance: float
    observation: str
    pair: tuple[Any, Any] = field(compare=False)

    @property
    def ratio(self) -> float:
        """How many times the declared sensitivity the observed distance is."""
        return self.distance / self.sensitivity

    @property
    def exceeded(self) -> bool:
        """Whether the distance exceeds sensitivity · (1 + tolerance) + slack."""
        return self.distance > self.sensitivity * (1.0 + self.tolerance) + self.slack

    def __str__(self) -> str:
        """The finding as printed in failures, numbers first."""
        relation = ">" if self.exceeded else "<="
        return (
            f"sensitivity {self.distance:.6g} {relation} {self.sensitivity:.6g} declared "
            f"({self.norm}, ratio {self.ratio:.4g})\n"
            f"  {self.name}: {self.observation}, pair {self.index + 1} of {self.n_pairs}\n"
            f"  neighbours={_shortened(self.pair)}"
        )

    def require(self) -> None:
        """Raise :class:`~pytest_snapaudit.engine.errors.SensitivityExceeded` if :attr:`exceeded`."""
        if not self.exceeded:
            return
        repair = (
            f"declare a sensitivity of at least {self.distance:.6g} and calibrate the noise to it, "
            "or bound what one record contributes"
            if math.isfinite(self.distance)
            else "make the clean stage answer every dataset with finite numbers, in a shape that is public"
        )
        raise SensitivityExceeded(f"{self}\n  {repair}.", self)


def check_sensitivity(
    mechanism: Any,
    pairs: Iterable[tuple[Any, Any]],
    sensitivity: float | None = None,
    norm: str | None = None,
    *,
    tolerance: float = 1e-9,
    coupled: bool = False,
    seed: int = 0,
) -> SensitivityFinding:
    """Compare clean outputs of neighbours with the declared sensitivity; a finding is returned, not raised.

    Every clean stage is evaluated once per dataset, with a generator of the same seed on both sides. An
    exception or None is an output like any other: on one side only it is infinitely far from the other
    output, on both sides (exceptions of one type) it is 0 from it. Outputs that are mappings are compared key
    by key, and different keys are infinitely far apart.

    Args:
        mechanism: an object with ``clean(dataset, rng)``, or that function itself.
        pairs: neighbouring (reference, canary) pairs, at least one, or a single pair as the strategies draw
            it; consumed once.
        sensitivity: declared sensitivity, finite and above 0; by default ``mechanism.sensitivity``.
        norm: ``"l0"``, ``"l1"``, ``"l2"`` or ``"linf"``; by default ``mechanism.norm``, else ``"l2"``.
        tolerance: relative tolerance on the declared sensitivity, at least 0. On top of it, floating outputs
            may differ by 4 units in the last place (of their own dtype) of their largest coordinate, per
            coordinate.
        coupled: accept a random clean stage, and compare the two sides under one seed. The distance then
            holds for that coupling of the two sides only.
        seed: seed of the generators handed to the clean stage.

    Returns:
        The worst pair; see :attr:`SensitivityFinding.exceeded` and :meth:`SensitivityFinding.require`.

    Raises:
        TypeError: if an argument has the wrong type, or a clean output is not made of numbers.
        ValueError: if an argument is out of range, no sensitivity is declared, or there are no pairs.
        MechanismError: if the clean stage raises alike on both sides of every pair, or is random (the outputs of
            two evaluations on the first dataset differ) and ``coupled`` is False.
    """
    clean, name = _clean_stage(mechanism)
    declared = _declared(mechanism, sensitivity)
    used = norm if norm is not None else getattr(mechanism, "norm", "l2")
    validate_norm("check_sensitivity", used)
    _validate_tolerance(tolerance)
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        msg = f"check_sensitivity: seed must be a non-negative integer, got {seed!r}."
        raise ValueError(msg)
    worst: SensitivityFinding | None = None
    count, raised, chained = 0, 0, None
    for index, pair in enumerate(_as_pairs(pairs)):
        reference, canary = _sides(pair, index)
        left, right = (_evaluate(clean, dataset, seed) for dataset in (reference, canary))
        if index == 0 and not coupled:
            _probe(name, clean, reference, left, seed)
        count = index + 1
        if isinstance(left, _Raised) and isinstance(right, _Raised) and str(left) == str(right):
            raised, chained = raised + 1, left.error
        distance, slack, observation = _compare(left, right, used)
        if worst is None or distance - slack > worst.distance - worst.slack:
            worst = SensitivityFinding(
                name,
                used,
                declared,
                distance,
                count,
                index,
                slack,
                tolerance,
                observation,
                pair,
            )
    if worst is None:
        msg = "check_sensitivity: pairs must hold at least one (reference, canary) pair, got none."
        raise ValueError(msg)
    if raised == count:
        msg = (
            f"{name}: clean raised {type(chained).__name__} on both sides of all {count} pairs; "
            "nothing was compared. Check that the datasets are of the kind clean expects."
        )
        raise MechanismError(msg) from chained
    return replace(worst, n_pairs=count)


@dataclass(frozen=True)
class _Raised:
    error: Exception

    def __str__(self) -> str:
        return f"raised {type(self.error).__name__}"


def _evaluate(clean: Callable[..., Any], dataset: object, seed: int) -> Any:
    try:
        return clean(dataset, np.random.default_rng(seed))
    except Exception as error:
        return _Raised(error)


def _probe(name: str, clean: Callable[..., Any], dataset: object, output: Any, seed: int) -> None:
    distance, slack, _ = _compare(output, _evaluate(clean, dataset, seed + 1), "linf")
    if distance > slack:
        msg = (
            f"{name}: two evaluations of clean on one dataset are {distance:.6g} apart (linf); the "
            "sensitivity of a random stage is not defined. Leave the privacy noise to privatize, or pass "
            "coupled=True to compare both sides under one seed."
        )
        raise MechanismError(msg)


def _compare(left: Any, right: Any, norm: str) -> tuple[float, float, str]:
    """(distance, slack, observation) of two outcomes of the clean stage."""
    sides = (left, right)
    if any(isinstance(side, _Raised) or side is None for side in sides):
        kinds = [
            str(side) if isinstance(side, _Raised) else "returned None" if side is None else "answered"
            for side in sides
        ]
        if kinds[0] == kinds[1]:
            return 0.0, 0.0, f"clean {kinds[0]} on both sides"
        return math.inf, 0.0, f"clean {kinds[0]} on the reference, {kinds[1]} on the canary"
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        odd = [key for key in (*left, *right) if key not in left or key not in right]
        if odd:
            side = "reference" if odd[0] in left else "canary"
            return math.inf, 0.0, f"key {odd[0]!r} occurs on the {side} only"
        shapes = [(np.shape(left[key]), np.shape(right[key])) for key in left]
        if any(ours != theirs for ours, theirs in shapes):
            return math.inf, 0.0, "values under one key differ in shape"
        left, right = (_joined([side[key] for key in left]) for side in (left, right))
    return _compare_arrays(numeric(left), numeric(right), norm)


def _joined(values: list[Any]) -> NDArray[Any]:
    return np.concatenate([numeric(value).ravel() for value in values]) if values else np.zeros(0)


def _compare_arrays(left: NDArray[Any], right: NDArray[Any], norm: str) -> tuple[float, float, str]:
    if left.shape != right.shape:
        return math.inf, 0.0, f"clean outputs have shapes {left.shape} and {right.shape}"
    distance = observed_distance(left, right, norm)
    apart = np.flatnonzero(np.isinf(gaps_between(left.ravel(), right.ravel())))
    if len(apart):
        first = apart[0]
        observation = f"coordinate {first} is {left.ravel()[first]} against {right.ravel()[first]}"
        return distance, 0.0, observation
    return distance, _slack(left, right, norm), f"clean outputs are {distance:.6g} apart"


def _slack(left: NDArray[Any], right: NDArray[Any], norm: str) -> float:
    units = [
        float(np.finfo(side.dtype).eps * np.abs(side[np.isfinite(side)]).max(initial=0))
        for side in (left, right)
        if side.dtype.kind in "fc"
    ]
    terms = {"l0": 0.0, "l1": left.size, "l2": math.sqrt(left.size), "linf": 1.0}[norm]
    return _ROUNDING_ULPS * terms * max(units, default=0.0)


def _clean_stage(mechanism: Any) -> tuple[Callable[..., Any], str]:
    if isinstance(mechanism, type):
        msg = f"check_sensitivity: pass an instance of {mechanism.__name__}, not the class."
        raise TypeError(msg)
    clean = getattr(mechanism, "clean", None)
    if callable(clean):
        return clean, mechanism_name(mechanism)
    if callable(mechanism):
        return mechanism, getattr(mechanism, "__qualname__", type(mechanism).__name__).replace(
            "<locals>.", ""
        )
    msg = (
        "check_sensitivity: mechanism must have a clean(dataset, rng) method, or be such a function, "
        f"got {mechanism!r} of type {type(mechanism).__name__}; whole noisy outputs have no sensitivity."
    )
    raise TypeError(msg)


def _declared(mechanism: Any, sensitivity: object) -> float:
    value = sensitivity if sensitivity is not None else getattr(mechanism, "sensitivity", None)
    if value is None:
        msg = (
            "check_sensitivity: no sensitivity is declared; pass sensitivity=..., "
            "or give the mechanism a sensitivity."
        )
        raise ValueError(msg)
    if isinstance(value, bool) or not isinstance(value, Real):
        msg = f"check_sensitivity: sensitivity must be a finite number above 0, got {value!r}."
        raise TypeError(msg)
    if not 0.0 < float(value) < math.inf:
        msg = f"check_sensitivity: sensitivity must be a finite number above 0, got {value!r}."
        raise ValueError(msg)
    return float(value)


def _validate_tolerance(tolerance: object) -> None:
    accepted = "a finite number of at least 0"
    if isinstance(tolerance, bool) or not isinstance(tolerance, Real):
        msg = f"check_sensitivity: tolerance must be {accepted}, got {tolerance!r}."
        raise TypeError(msg)
    if not 0.0 <= float(tolerance) < math.inf:
        msg = f"check_sensitivity: tolerance must be {accepted}, got {tolerance!r}."
        raise ValueError(msg)


def _as_pairs(pairs: object) -> Iterable[Any]:
    if isinstance(pairs, tuple) and hasattr(pairs, "reference") and hasattr(pairs, "canary"):
        return [pairs]
    if isinstance(pairs, str | bytes | Mapping) or not isinstance(pairs, Iterable):
        msg = (
            "check_sensitivity: pairs must be an iterable of (reference, canary) pairs, "
            f"got {pairs!r} of type {type(pairs).__name__}."
        )
        raise TypeError(msg)
    return pairs


def _sides(pair: object, index: int) -> tuple[Any, Any]:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        msg = (
            f"check_sensitivity: pair {index} must be a (reference, canary) tuple, got {_shortened(pair)}; "
            "put a single pair in a list."
        )
        raise TypeError(msg)
    return pair[0], pair[1]


def _shortened(value: object, limit: int = 400) -> str:
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"
