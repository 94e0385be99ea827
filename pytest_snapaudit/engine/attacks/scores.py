"""Scores: functions of an output on which a threshold or an atom is a distinguishing event.

Every score takes an (n, d) floating array and returns (n,) floats; each says in words what an event on it
means. Scores with parameters are fitted on tuning trials only.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_snapaudit.engine.outcomes import KIND_PREFIX, Layout, Rows

HUGE = 1e12
"""Stands for an infinite coordinate in sums and norms."""

MISSING = -1e300
"""Stands for a missing score: NaN compares as this."""


def finite(rows: Rows) -> Rows:
    """``rows`` with NaN as 0 and infinities as ±:data:`HUGE`; the same array if it is all finite."""
    if np.isfinite(rows).all():
        return rows
    return np.nan_to_num(rows, nan=0.0, posinf=HUGE, neginf=-HUGE)


def _comparison(op: str, threshold: float) -> str:
    words = {"<=": "at most", ">": "above", "==": "equal to"}[op]
    return f"{words} {threshold:.6g}"


def _holds(values: Any, op: str, threshold: float) -> Any:
    if op == "==":
        return values == threshold
    return values <= threshold if op == "<=" else values > threshold


class Score(ABC):
    """A function of an output, with a name."""

    @abstractmethod
    def __call__(self, rows: Rows) -> NDArray[np.float64]:
        """(n, d) outputs to (n,) scores."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What the score measures, as a noun phrase."""

    def describe(self, op: str, threshold: float) -> str:
        """An event on this score in words."""
        return f"{self.name} {_comparison(op, threshold)}"


@dataclass(frozen=True)
class Coordinate(Score):
    """One column of the output."""

    column: int
    layout: Layout = field(repr=False)

    def __call__(self, rows: Rows) -> NDArray[np.float64]:
        return rows[:, self.column].astype(np.float64, copy=False)

    @property
    def name(self) -> str:
        return self.layout.columns[self.column]

    def describe(self, op: str, threshold: float) -> str:
        if threshold == MISSING:
            return f"{self.name} {'is' if op != '>' else 'is not'} {self.layout.missing_text}"
        names = self.layout.names_of(self.column)
        if threshold not in names:
            return super().describe(op, threshold)
        return self.describe_atoms([value for value in names if _holds(value, op, threshold)])

    def describe_atoms(self, values: Sequence[float]) -> str:
        """The event that the column has one of these values, in words."""
        known = {MISSING: self.layout.missing_text} | self.layout.names_of(self.column)
        names = [known.get(value, f"{value:.6g}") for value in values]
        shown = " or ".join(names[:6]) + (f" or {len(names) - 6} more" if len(names) > 6 else "")
        return f"{self.name.removeprefix(KIND_PREFIX)} is {shown or 'something not seen in tuning'}"


@dataclass(frozen=True)
class Projection(Score):
    """Inner product with a direction, the outputs first clipped to a box if one is given."""

    direction: NDArray[np.float64]
    label: str
    lower: NDArray[np.float64] | None = None
    upper: NDArray[np.float64] | None = None

    def __call__(self, rows: Rows) -> NDArray[np.float64]:
        direction = self.direction.astype(rows.dtype)
        if self.lower is not None and self.upper is not None:
            values = np.clip(finite(rows), self.lower.astype(rows.dtype), self.upper.astype(rows.dtype))
            return np.asarray(values @ direction, dtype=np.float64)
        scores = rows @ direction
        if not np.isfinite(scores).all():
            scores = finite(rows) @ direction
        return np.asarray(scores, dtype=np.float64)

    @property
    def name(self) -> str:
        return self.label


@dataclass(frozen=True)
class Distance(Score):
    """Euclidean distance from a centre, in units of each coordinate's spread."""

    centre: NDArray[np.float64]
    spread: NDArray[np.float64]

    def __call__(self, rows: Rows) -> NDArray[np.float64]:
        values = finite(rows)
        scaled = (values - self.centre.astype(values.dtype)) / self.spread.astype(values.dtype)
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", scaled, scaled)), dtype=np.float64)

    @property
    def name(self) -> str:
        return f"distance of the output from its centre {_short(self.centre)} (in spreads)"


@dataclass(frozen=True)
class Reduction(Score):
    """A symmetric function of all coordinates."""

    kind: str

    def __call__(self, rows: Rows) -> NDArray[np.float64]:
        values = finite(rows).astype(np.float64, copy=False)
        if self.kind == "sum":
            reduced = values.sum(axis=1)
        elif self.kind == "largest coordinate":
            reduced = values.max(axis=1)
        elif self.kind == "smallest coordinate":
            reduced = values.min(axis=1)
        elif self.kind == "number of non-zero coordinates":
            reduced = np.count_nonzero(values, axis=1)
        elif self.kind == "number of positive coordinates":
            reduced = np.count_nonzero(values > 0, axis=1)
        elif self.kind == "number of repeated values":
            reduced = np.count_nonzero(np.diff(np.sort(values, axis=1), axis=1) == 0, axis=1)
        else:
            reduced = np.sqrt(np.einsum("ij,ij->i", values, values))
        return np.asarray(reduced, dtype=np.float64)

    @property
    def name(self) -> str:
        return f"{self.kind} of the output"


@dataclass(frozen=True)
class Difference(Score):
    """Difference of two coordinates."""

    first: int
    second: int
    layout: Layout = field(repr=False)

    def __call__(self, rows: Rows) -> NDArray[np.float64]:
        with np.errstate(invalid="ignore"):
            return (rows[:, self.first] - rows[:, self.second]).astype(np.float64, copy=False)

    @property
    def name(self) -> str:
        return f"{self.layout.columns[self.first]} minus {self.layout.columns[self.second]}"


@dataclass(frozen=True)
class MissingPattern(Score):
    """Which coordinates are NaN, as a number whose bits are the coordinates."""

    columns: tuple[int, ...]
    layout: Layout = field(repr=False)

    def __call__(self, rows: Rows) -> NDArray[np.float64]:
        return np.asarray(np.isnan(rows[:, self.columns]) @ (2.0 ** np.arange(len(self.columns))))

    @property
    def name(self) -> str:
        return "pattern of NaN coordinates"

    def describe(self, op: str, threshold: float) -> str:
        if op != "==":
            return super().describe(op, threshold)
        missing = [c for bit, c in enumerate(self.columns) if int(threshold) >> bit & 1]
        if not missing:
            return "no coordinate is NaN"
        return f"exactly these are NaN: {', '.join(self.layout.columns[c] for c in missing)}"


@dataclass(frozen=True)
class RowKey(Score):
    """A hash of the whole output: equal outputs, equal scores. A collision only merges two atoms."""

    def __call__(self, rows: Rows) -> NDArray[np.float64]:
        values = np.where(np.isnan(rows), -9.87654321e13, rows) + 0.0
        bits = np.ascontiguousarray(values, dtype=np.float64).view(np.int64)
        key = np.zeros(len(bits), dtype=np.int64)
        with np.errstate(over="ignore"):
            for column in bits.T:
                key = (key ^ column) * np.int64(-7046029254386353131)
                key ^= key >> 29
        return (key >> 11).astype(np.float64)

    @property
    def name(self) -> str:
        return "the whole output"

    def describe(self, op: str, threshold: float) -> str:
        if op == "==":
            return "the whole output equals one particular value"
        return "the whole output falls in one half of its hashed values"


@dataclass(frozen=True)
class LogRatio(Score):
    """Log of the likelihood ratio of the two sides, estimated on the cells of another score.

    Attributes:
        base: the score whose values are cut into cells.
        cuts: (k,) increasing cell boundaries.
        weights: (k + 1,) log-ratio per cell, shrunk towards 0 where few trials fell.
        bins: how many cells of equal probability were asked for.
    """

    base: Score
    cuts: NDArray[np.float64]
    weights: NDArray[np.float64]
    bins: int = 64

    def __call__(self, rows: Rows) -> NDArray[np.float64]:
        values = self.base(rows)
        cells = np.searchsorted(self.cuts, np.where(np.isnan(values), MISSING, values), side="left")
        return self.weights[cells]

    @property
    def name(self) -> str:
        return f"log-likelihood ratio of {self.base.name}"

    def describe(self, op: str, threshold: float) -> str:
        inside = _holds(self.weights, op, threshold)
        atoms = self.cuts[inside[:-1]].tolist()
        if isinstance(self.base, Coordinate) and atoms:
            names = {MISSING} | self.base.layout.names_of(self.base.column).keys()
            if names.issuperset(atoms):
                rest = " or something not seen in tuning" if inside[-1] else ""
                return self.base.describe_atoms(atoms) + rest
        return f"{self.base.name} in {self._cells_in_words(inside)}"

    def _cells_in_words(self, inside: NDArray[np.bool_]) -> str:
        edges = np.concatenate([[-np.inf], self.cuts, [np.inf]])
        changes = np.flatnonzero(np.diff(np.concatenate([[False], inside, [False]]).astype(int)))
        ranges = [
            interval(float(edges[start]), float(edges[end]))
            for start, end in zip(changes[::2], changes[1::2], strict=True)
        ]
        shown = " or ".join(ranges[:3])
        return shown if len(ranges) <= 3 else f"{shown} or {len(ranges) - 3} more intervals"


def interval(above: float, most: float) -> str:
    """An interval that is open below, in words; one that holds a single number as that number."""
    if above == math.nextafter(most, -math.inf):
        return f"{{{_edge(most)}}}"
    return f"({'-inf' if above == MISSING else _edge(above)}, {_edge(most)}]"


def _edge(value: float) -> str:
    return "NaN" if value == MISSING else f"{value:.6g}"


@dataclass(frozen=True)
class NaiveBayes(Score):
    """Sum of log-likelihood ratios, one per column."""

    ratios: tuple[LogRatio, ...]

    def __call__(self, rows: Rows) -> NDArray[np.float64]:
        total = np.zeros(len(rows))
        for ratio in self.ratios:
            total += ratio(rows)
        return total

    @property
    def name(self) -> str:
        return f"sum of the log-likelihood ratios of {len(self.ratios)} columns"


@dataclass(frozen=True)
class LowestSetBit(Score):
    """Exponent of the lowest set mantissa bit: a side channel of floating-point noise (Mironov, CCS 2012)."""

    column: int
    layout: Layout = field(repr=False)
    within: float = np.inf

    def __call__(self, rows: Rows) -> NDArray[np.float64]:
        values = np.where(np.isfinite(rows[:, self.column]), rows[:, self.column], 0.0).astype(np.float64)
        mantissa, exponent = np.frexp(values)
        scaled = np.abs(mantissa * 2.0**53).astype(np.int64)
        lowest = np.where(scaled > 0, scaled & -scaled, 1)
        position = exponent - 53 + np.round(np.log2(lowest))
        return np.where((scaled > 0) & (np.abs(values) < self.within), position, 99.0)

    @property
    def name(self) -> str:
        inside = f" (where its magnitude is below {self.within:g})" if np.isfinite(self.within) else ""
        return f"side channel: exponent of the lowest set bit of {self.layout.columns[self.column]}{inside}"


@dataclass(frozen=True)
class UserScore(Score):
    """A score supplied by the user: a callable from (n, d) outputs to (n,) numbers."""

    fn: Callable[[Rows], Any]
    label: str

    def __call__(self, rows: Rows) -> NDArray[np.float64]:
        try:
            scores = np.asarray(self.fn(rows), dtype=np.float64)
        except Exception as error:
            error.add_note(f"raised by the attack {self.label!r} on outputs of shape {rows.shape}")
            raise
        if scores.shape != (len(rows),):
            msg = (
                f"attack {self.label!r} must return one score per output: expected shape ({len(rows)},), "
                f"got {scores.shape}."
            )
            raise ValueError(msg)
        return scores

    @property
    def name(self) -> str:
        return f"attack {self.label!r}"


def _short(values: NDArray[np.float64]) -> str:
    head = ", ".join(f"{value:.4g}" for value in values[:3])
    return f"({head}{', ...' if len(values) > 3 else ''})"
