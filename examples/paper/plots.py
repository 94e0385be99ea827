"""Curves as inline SVG: bounds over claims or over the swept quantity, drawn with the colours of the page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from cells import Table
from truths import mean_and_error

WIDTH, HEIGHT = 600, 300
LEFT, RIGHT, TOP, BOTTOM = 52, 185, 14, 42
COLOURS = 6
_FEW_TICKS = 7
_TICKS = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


class Curve(NamedTuple):
    """A named line of points; dashed for true values."""

    name: str
    points: tuple[tuple[float, float], ...]
    colour: int
    dashed: bool = False


def curves_of(table: Table) -> list[Curve]:
    """Bounds, dashed true values, for the plotted columns; rows whose name is no number have no place."""
    found = []
    for number, column in enumerate(table.plotted):
        ours, truth = [], []
        for row in table.rows:
            cell = table.cells.get((row, column))
            if cell is None:
                continue
            ours.append((float(row), mean_and_error(cell.ours)[0]))
            if cell.truth and math.isfinite(mean_and_error(cell.truth)[0]):
                truth.append((float(row), mean_and_error(cell.truth)[0]))
        found.append(Curve(column, tuple(ours), number % COLOURS))
        if truth:
            found.append(Curve(f"{column}, true", tuple(truth), number % COLOURS, dashed=True))
    return found


class _Axis(NamedTuple):
    low: float
    high: float
    start: float
    end: float
    logarithmic: bool

    def __call__(self, value: float) -> float:
        low, high = (math.log(self.low), math.log(self.high)) if self.logarithmic else (self.low, self.high)
        at = math.log(max(value, self.low)) if self.logarithmic else value
        return self.start + (self.end - self.start) * (at - low) / (high - low)

    def ticks(self) -> Sequence[float]:
        if self.logarithmic:
            return [tick for tick in _TICKS if self.low <= tick <= self.high]
        step = 10 ** math.floor(math.log10(self.high))
        step = next(size for size in (step / 5, step / 2, step, 2 * step) if self.high / size <= 6)
        return [i * step for i in range(int(self.high / step) + 1)]


def _axis(values: Sequence[float], start: float, end: float, logarithmic: bool) -> _Axis:
    positive = [value for value in values if value > 0] or [1.0]
    if logarithmic:
        return _Axis(max(min(positive) / 1.15, 0.04), max(positive) * 1.15, start, end, True)
    return _Axis(0.0, max(positive) * 1.05, start, end, False)


def svg(table: Table) -> str:
    """The plot of one table, or nothing if nothing is plotted. A bound of 0 lies on a logarithmic axis's floor."""
    curves = curves_of(table)
    if not curves:
        return ""
    places = [x for curve in curves for x, _ in curve.points]
    x = _axis(places, LEFT, WIDTH - RIGHT, table.logarithmic)
    y = _axis([y for curve in curves for _, y in curve.points], HEIGHT - BOTTOM, TOP, table.logarithmic)
    label = escape(f"{table.name}: {table.title}; {table.row_label} across, lower bound on epsilon upwards")
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">']
    parts += _grid(x, y, places, table.row_label)
    for place, curve in enumerate(curves):
        parts += _line(curve, x, y, place)
    return "\n".join([*parts, "</svg>"])


def _grid(x: _Axis, y: _Axis, places: Sequence[float], label: str) -> Iterator[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    for tick in y.ticks():
        yield f'<line class="grid" x1="{LEFT}" y1="{y(tick):.1f}" x2="{right}" y2="{y(tick):.1f}"/>'
        yield f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>'
    for tick in sorted(set(places)) if len(set(places)) <= _FEW_TICKS else x.ticks():
        yield f'<text x="{x(tick):.1f}" y="{bottom + 16}" text-anchor="middle">{tick:g}</text>'
    yield f'<text x="{(LEFT + right) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{escape(label)}</text>'
    yield f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{right}"/>'


def _line(curve: Curve, x: _Axis, y: _Axis, place: int) -> Iterator[str]:
    path = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in sorted(curve.points))
    dash = ' stroke-dasharray="5 4"' if curve.dashed else ""
    yield f'<polyline class="c{curve.colour}" points="{path}"{dash}/>'
    if not curve.dashed:
        for a, b in curve.points:
            yield f'<circle class="c{curve.colour}" cx="{x(a):.1f}" cy="{y(b):.1f}" r="3"/>'
    top = TOP + 8 + 17 * place
    start = WIDTH - RIGHT + 10
    yield f'<line class="c{curve.colour}" x1="{start}" y1="{top}" x2="{start + 18}" y2="{top}"{dash}/>'
    yield f'<text x="{start + 23}" y="{top + 4}">{escape(curve.name)}</text>'
