"""Outputs on a lattice: discrete noise leaves the remainder of what it is added to.

A lattice that may come from the spacing of floating-point numbers is none here: the last bits are a side channel, and
stay opt-in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_snapaudit.engine.attacks.scores import Score
from pytest_snapaudit.engine.outcomes import Layout, Rows

_ROWS = 200
"""Rows per side from which a step is read, and on which it must hold."""

_COARSE = 1e4
"""A step this many rounding errors wide is no accident: continuous noise leaves none so wide in a few draws."""

_FINEST, _FINEST_OF_FLOATS = 2.0**-20, 2.0**-12
"""Finest steps over the largest value: floats of 32 bits leave steps below 2**-22, and a little wider ones after
their mean is taken off; of values that such floats can hold, unless all are whole, only far wider steps count."""


@dataclass(frozen=True)
class Remainder(Score):
    """How far a coordinate is from a lattice, in steps from -0.499 to 0.5, to three decimals.

    Attributes:
        step, origin: the lattice is ``origin + step * integer``.
    """

    column: int
    step: float
    origin: float
    layout: Layout = field(repr=False)

    def __call__(self, rows: Rows) -> NDArray[np.float64]:
        with np.errstate(all="ignore"):
            steps = (rows[:, self.column].astype(np.float64) - self.origin) / self.step
            left = np.round(steps - np.rint(steps), 3)
        return np.where(np.isfinite(left), np.where(left == -0.5, 0.5, left) + 0.0, np.nan)

    @property
    def name(self) -> str:
        return (
            f"steps of {self.step:.6g} left over from {self.origin:.6g} to {self.layout.columns[self.column]}"
        )


def fit_remainders(column: int, layout: Layout, reference: Rows, canary: Rows) -> list[Remainder]:
    """The lattices on which a side's values lie, and the other side's do not lie or lie otherwise."""
    scores: list[Remainder] = []
    for side in (reference, canary):
        values = side[:_ROWS, column].astype(np.float64)
        values = values[np.isfinite(values)]
        error = 16.0 * float(np.finfo(side.dtype).eps)
        step = common_step(values, error * max(float(np.abs(values).max(initial=0.0)), 1e-300))
        if step is not None and not _of_floats(values, step):
            scores.append(Remainder(column, step, float(values[0]), layout))
    return [
        score for score in scores if len({*score(reference[:_ROWS]), *score(canary[:_ROWS])} - {math.nan}) > 1
    ]


def _of_floats(values: NDArray[np.float64], step: float) -> bool:
    """Whether the step may be the spacing of floating-point numbers of 32 bits."""
    return step < float(np.abs(values).max()) * (_FINEST_OF_FLOATS if short_floats(values) else _FINEST)


def short_floats(values: NDArray[np.floating[Any]]) -> bool:
    """Whether all values are numbers that floats of 32 bits can hold, and some are not whole."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool((values.astype(np.float32) == values).all() and (values != np.rint(values)).any())


def common_step(values: NDArray[np.float64], error: float) -> float | None:
    """The largest number of which all differences of ``values`` are multiples, up to rounding ``error``.

    None if it is not much larger than the error, or there are fewer than three different values.
    """
    if len(values) == 0:
        return None
    differences = np.unique(np.abs(values - values[0]))
    differences = differences[differences > error]
    if len(differences) < 2:
        return None
    step = 0.0
    for difference in differences[::-1].tolist():
        step = _common_divisor(difference, step, error)
        if step < _COARSE * error:
            return None
    return step


def _common_divisor(a: float, b: float, error: float) -> float:
    """Euclid's algorithm by nearest multiples; a remainder of at most ``error`` is none."""
    while b > error:
        a, b = b, abs(a - b * round(a / b))
    return a
