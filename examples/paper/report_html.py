"""The report as one HTML page that loads nothing: styles and plots are inside, every text is escaped."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from cells import NOTES, Cell, Facts, Report, Table, spread
from plots import svg

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #5a6572; --line: #d6dbe1; --page: #fff; --mark: #b42318;
  --head: #f4f6f8; --c0: #2563b0; --c1: #b8541a; --c2: #23804a; --c3: #8040a0; --c4: #8a6d00; --c5: #007a8a; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ed; --soft: #9aa5b1; --line: #3a424c; --page: #16191d; --mark: #ff8a7a; --head: #20252b;
    --c0: #78b0f5; --c1: #f0a066; --c2: #70c893; --c3: #c996e8; --c4: #d9bd55; --c5: #5cc8d6; } }
body { margin: 2rem auto; max-width: 76rem; padding: 0 1rem; background: var(--page); color: var(--ink);
  font: 15px/1.45 system-ui, sans-serif; }
h2 { margin: 2.5rem 0 .5rem; font-size: 1.2rem; }
nav a { margin-right: .8rem; }
a { color: var(--c0); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding-bottom: .4rem; }
th, td { padding: .3rem .7rem; border-bottom: 1px solid var(--line); vertical-align: top; }
thead th { background: var(--head); text-align: right; }
th[scope=row], thead th:first-child { text-align: left; font-weight: 600; }
td { text-align: right; white-space: nowrap; }
.facts td { text-align: left; white-space: normal; }
.facts thead th { text-align: left; }
td b { display: block; font-weight: 600; }
td span { display: block; color: var(--soft); font-size: .86em; }
td .above { color: var(--mark); }
svg { width: 100%; max-width: 46rem; height: auto; margin-top: .8rem; font: 11px system-ui, sans-serif; }
svg text { fill: var(--ink); }
svg polyline, svg line, svg path { fill: none; stroke-width: 1.8; }
svg .grid { stroke: var(--line); stroke-width: 1; }
svg .axis { stroke: var(--soft); stroke-width: 1; }
""" + "".join(
    f"svg polyline.c{i}, svg line.c{i} {{ stroke: var(--c{i}); }} svg circle.c{i} {{ fill: var(--c{i}); }}\n"
    for i in range(6)
)


def render(report: Report) -> str:
    """The page."""
    links = "".join(f'<a href="#{_id(part.name)}">{escape(part.name)}</a> ' for part in report.parts)
    body = [
        f"<h1>{escape(report.title)}</h1>",
        *(f"<p>{escape(text)}</p>" for text in report.introduction),
        f'<nav aria-label="tables">{links}</nav>',
    ]
    for part in report.parts:
        body += _table(part) if isinstance(part, Table) else _facts(part)
    body += ['<h2 id="notes">Notes</h2>', "<dl>"]
    body += [
        f'<dt id="note-{letter}">({letter})</dt><dd>{escape(note)}</dd>' for letter, note in NOTES.items()
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(report.title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join([*body, "</dl>"])
        + "\n</main>\n</body>\n</html>\n"
    )


def _id(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name.lower())


def _table(table: Table) -> Iterator[str]:
    yield f'<h2 id="{_id(table.name)}">{escape(table.name)}: {escape(table.title)}</h2>'
    yield '<div class="scroll" role="region" tabindex="0" aria-label="' + escape(table.name) + '"><table>'
    yield (
        "<caption>Bold: our bound, mean ± standard error over the pairs. Below: the true ε of our pairs, the plugin's "
        "own bound, our bound at the printed clean outputs with their true ε, and what the paper prints.</caption>"
    )
    heads = "".join(f'<th scope="col">{escape(column)}</th>' for column in table.columns)
    yield f'<thead><tr><th scope="col">{escape(table.row_label)}</th>{heads}</tr></thead><tbody>'
    for row in table.rows:
        cells = "".join(f"<td>{_cell(table.cells.get((row, column)))}</td>" for column in table.columns)
        yield f'<tr><th scope="row">{escape(row)}</th>{cells}</tr>'
    yield "</tbody></table></div>"
    yield from (f"<p>{escape(remark)}</p>" for remark in table.remarks)
    plot = svg(table)
    if plot:
        yield plot


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return ""
    lines = [f"<b>{escape(spread(cell.ours))}</b>"]
    if cell.truth:
        lines.append(f"<span>true {escape(spread(cell.truth))}</span>")
    if cell.gate is not None:
        lines.append(f"<span>gate {cell.gate:.2f}</span>")
    if cell.vector is not None:
        bound, true = cell.vector
        lines.append(f"<span>at print {bound:.2f} of {true:.2f}</span>".replace("inf", "∞"))
    if cell.printed is not None:
        above = ' class="above"' if cell.above_truth else ""
        lines.append(f"<span{above}>paper {escape(str(cell.printed))}{_marks(cell)}</span>")
    return "".join(lines)


def _marks(cell: Cell) -> str:
    return "".join(
        f' <a href="#note-{letter}" title="{escape(NOTES[letter])}">({letter})</a>' for letter in cell.marks
    )


def _facts(facts: Facts) -> Iterator[str]:
    yield f'<h2 id="{_id(facts.name)}">{escape(facts.name)}: {escape(facts.title)}</h2>'
    heads = "".join(f'<th scope="col">{escape(column)}</th>' for column in facts.columns)
    yield f'<div class="scroll"><table class="facts"><thead><tr>{heads}</tr></thead><tbody>'
    for first, *others in facts.rows:
        cells = "".join(f"<td>{escape(text)}</td>" for text in others)
        yield f'<tr><th scope="row">{escape(first)}</th>{cells}</tr>'
    yield "</tbody></table></div>"
    yield from (f"<p>{escape(remark)}</p>" for remark in facts.remarks)
