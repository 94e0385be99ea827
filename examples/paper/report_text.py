"""The report on a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from cells import NOTES, Cell, Facts, Report, Table, spread


def render(report: Report) -> str:
    """The whole report as text."""
    lines = [report.title, *report.introduction, ""]
    for part in report.parts:
        lines += [*(_table(part) if isinstance(part, Table) else _facts(part)), ""]
    lines += [f"({letter}) {note}" for letter, note in NOTES.items()]
    return "\n".join(lines) + "\n"


def _table(table: Table) -> Iterator[str]:
    yield f"{table.name}: {table.title}"
    width = max(len(column) for column in table.columns)
    yield f"{table.row_label:>{width + 9}}" + "".join(f"{row:>20}" for row in table.rows)
    for column in table.columns:
        cells = [table.cells.get((row, column)) for row in table.rows]
        for number, (name, shown) in enumerate(_lines(cells)):
            head = column if number == 0 else ""
            yield f"{head:<{width}} {name:<8}" + "".join(f"{text:>20}" for text in shown)
    yield from (f"  {remark}" for remark in table.remarks)


def _lines(cells: list[Cell | None]) -> Iterator[tuple[str, list[str]]]:
    yield "ours", ["" if cell is None else spread(cell.ours) for cell in cells]
    if any(cell is not None and cell.truth for cell in cells):
        yield "true", ["" if cell is None else spread(cell.truth) for cell in cells]
    if any(cell is not None and cell.gate is not None for cell in cells):
        yield "gate", ["" if cell is None or cell.gate is None else f"{cell.gate:.2f}" for cell in cells]
    if any(cell is not None and cell.vector for cell in cells):
        yield "at print", [_vector(cell) for cell in cells]
    if any(cell is not None and cell.printed for cell in cells):
        yield "paper", ["" if cell is None else _printed(cell) for cell in cells]


def _vector(cell: Cell | None) -> str:
    if cell is None or cell.vector is None:
        return ""
    bound, true = cell.vector
    return f"{bound:.2f} of {true:.2f}".replace("inf", "∞")


def _printed(cell: Cell) -> str:
    return (str(cell.printed) if cell.printed else "") + (f" ({cell.marks})" if cell.marks else "")


def _facts(facts: Facts) -> Iterator[str]:
    yield f"{facts.name}: {facts.title}"
    rows = [facts.columns, *facts.rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(facts.columns))]
    for row in rows:
        yield "  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip()
    yield from (f"  {remark}" for remark in facts.remarks)
