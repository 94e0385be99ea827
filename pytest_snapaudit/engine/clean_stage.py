"""Evaluating the clean stage: once, many times, and whether evaluations agree."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pytest_snapaudit.engine.errors import DeclarationMismatch, MechanismError
from pytest_snapaudit.engine.outcomes import Raised
from pytest_snapaudit.engine.seeding import block_generator, legacy_generators_seeded
from pytest_snapaudit.engine.simulation import CLEAN_PHASE

SIDES = ("reference", "canary")
_FEASIBLE_PAIRS = 100
"""How many pairs of clean outputs are tried for one whose sides differ, in noise scope."""


def as_clean_array(value: Any, label: str) -> NDArray[Any]:
    """What ``clean`` returned, as an array of numbers or labels of shape (*shape)."""
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        value = value.detach().cpu().numpy()
    try:
        array = np.array(value)
    except ValueError as error:
        msg = f"{label}: clean must return an array-like of one shape, got {type(value).__name__}: {error}."
        raise MechanismError(msg) from error
    if array.dtype == object:
        msg = (
            f"{label}: clean must return numbers or labels, got {type(value).__name__} holding objects; wrap "
            "whole outputs of arbitrary type with from_sampler or from_callable."
        )
        raise MechanismError(msg)
    return array


def evaluate_once(mechanism: Any, dataset: Any, label: str, entropy: tuple[int, ...], index: int) -> Any:
    """One clean output, or :class:`Raised`. Both sides share the stream, which couples their randomness."""
    rng = block_generator(entropy, CLEAN_PHASE, 0, index)
    with legacy_generators_seeded(rng):
        return _evaluate(mechanism, dataset, label, rng)


def _evaluate(mechanism: Any, dataset: Any, label: str, rng: Generator) -> Any:
    try:
        return as_clean_array(mechanism.clean(dataset, rng), label)
    except MechanismError:
        raise
    except Exception as raised:
        return Raised(raised)


def first_clean(mechanism: Any, dataset: Any, label: str, entropy: tuple[int, ...]) -> Any:
    """The clean output that stands for all where the stage is deterministic, or :class:`Raised`."""
    return evaluate_once(mechanism, dataset, label, entropy, 0)


def feasible_pair(
    mechanism: Any, datasets: tuple[Any, Any], label: str, entropy: tuple[int, ...]
) -> list[Any]:
    """The first pair of clean outputs, evaluated on a common random stream, that differs between the sides."""
    pair: list[Any] = []
    for index in range(_FEASIBLE_PAIRS):
        pair = [evaluate_once(mechanism, dataset, label, entropy, index) for dataset in datasets]
        if any(isinstance(clean, Raised) for clean in pair) or not same_array(pair[0], pair[1]):
            break
    return pair


def verify_determinism(
    mechanism: Any, datasets: tuple[Any, Any], rows: list[Any], label: str, entropy: tuple[int, ...]
) -> None:
    """Evaluate the clean stage of both sides again; DeclarationMismatch if a row differs."""
    for side, dataset, row in zip(SIDES, datasets, rows, strict=True):
        again = evaluate_once(mechanism, dataset, label, entropy, 1)
        if isinstance(row, Raised) or isinstance(again, Raised):
            same = type(row) is type(again)
        else:
            same = same_array(row, again)
        if not same:
            msg = (
                f"{label}: declared deterministic, but two evaluations of clean on the {side} dataset differ; "
                "remove deterministic = True (and add clean_batch if it is random)."
            )
            raise DeclarationMismatch(msg)


def same_array(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Equality of arrays in which NaN equals NaN."""
    floating = a.dtype.kind in "fc" and b.dtype.kind in "fc"
    return a.shape == b.shape and bool(np.array_equal(a, b, equal_nan=floating))


def all_nan(a: NDArray[Any]) -> bool:
    """Whether nothing but NaN is in a floating array."""
    return a.dtype.kind in "fc" and a.size > 0 and bool(np.isnan(a).all())


def evaluate_many(
    mechanism: Any, dataset: Any, label: str, entropy: tuple[int, ...], n_snapshots: int
) -> Any:
    """Clean outputs for tuning (a quarter) and for certifying, as one array, or :class:`Raised`."""
    total = n_snapshots + max(n_snapshots // 4, 1)
    rng = block_generator(entropy, CLEAN_PHASE, 0, 0)
    with legacy_generators_seeded(rng):
        values = [_evaluate(mechanism, dataset, label, rng) for _ in range(total)]
    raised = [value for value in values if isinstance(value, Raised)]
    if raised:
        return raised[0] if len(raised) == total else _mixed_failure(label, raised[0], len(raised), total)
    shapes = {value.shape for value in values}
    if len(shapes) > 1:
        msg = f"{label}: clean returned arrays of different shapes for one dataset: {sorted(shapes)}."
        raise MechanismError(msg)
    return np.stack(values)


def _mixed_failure(label: str, raised: Raised, failures: int, total: int) -> Any:
    msg = (
        f"{label}: clean raised {raised.exception!r} in {failures} of {total} evaluations of one dataset; a "
        "clean stage that sometimes fails can only be audited as a whole, with from_callable."
    )
    raise MechanismError(msg) from raised.exception


def refuse_if_both_raised(label: str, sides: list[Any]) -> None:
    """MechanismError if the clean stage raised on both sides."""
    if all(isinstance(side, Raised) for side in sides):
        msg = f"{label}: clean raises on both datasets ({sides[0].exception!r}); check how it is called."
        raise MechanismError(msg) from sides[0].exception


def check_shapes(label: str, shapes: list[tuple[int, ...]]) -> None:
    """MechanismError unless clean outputs have one shape on both sides."""
    if len(set(shapes)) > 1:
        msg = (
            f"{label}: clean outputs must have one shape on both sides, got {shapes[0]} on the reference and "
            f"{shapes[1]} on the canary; if the shape itself depends on the data, audit whole outputs with "
            "from_callable."
        )
        raise MechanismError(msg)
