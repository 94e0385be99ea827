"""The table at the end of a session."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from pytest_snapaudit.report.numbers import duration, factor, lower_bound
from pytest_snapaudit.report.rows import AuditRow, worst_first

_HEADINGS = ("verdict", "claim", "epsilon >=", "view", "trials", "catches", "cost", "test")
_RIGHT = frozenset({"epsilon >=", "trials", "catches", "cost"})
_COLOURS = {"VIOLATION": "red", "INCONCLUSIVE": "yellow", "CONSISTENT": "green"}
_MAX_ROWS = 40
_MARK = "*"
_FOOTNOTE = f"{_MARK} noise that no seed repeats: a borderline verdict may change from run to run"


def cells(row: AuditRow) -> tuple[str, ...]:
    """The texts of one row, in the order of the headings."""
    verdict = f"{row.verdict} (expected)" if row.expected and row.verdict == "VIOLATION" else row.verdict
    mark = "" if row.reproducible else _MARK
    count = row.configurations
    about = f"worst of {count} configurations: {row.name}" if count > 1 else row.name
    return (
        verdict + mark,
        f"({row.epsilon:g}, {row.delta:g})",
        lower_bound(row.epsilon_lower, row.epsilon),
        row.view,
        f"{row.n_trials:,}",
        "-" if row.verdict == "VIOLATION" else factor(row.smallest_factor_caught),
        duration(row.seconds),
        f"{row.nodeid}  {about}",
    )


def layout(rows: Sequence[AuditRow]) -> list[str]:
    """The heading and one line per row, aligned."""
    table = [_HEADINGS, *(cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(_HEADINGS))]
    lines = []
    for line in table:
        padded = [
            text.rjust(width) if heading in _RIGHT else text.ljust(width)
            for text, width, heading in zip(line, widths, _HEADINGS, strict=True)
        ]
        lines.append("  ".join(padded).rstrip())
    return lines


def write_table(reporter: pytest.TerminalReporter, rows: Iterable[AuditRow], title: str) -> None:
    """Write the table, worst first; passing rows beyond a screenful are counted unless ``-v`` is given."""
    ordered = worst_first(rows)
    if not ordered:
        return
    shown = ordered
    if reporter.config.get_verbosity() <= 0:
        alarming = sum(row.verdict in ("VIOLATION", "INCONCLUSIVE") for row in ordered)
        shown = ordered[: max(_MAX_ROWS, alarming)]
    heading, *lines = layout(shown)
    reporter.section(title, sep="=")
    reporter.write_line(heading)
    for row, line in zip(shown, lines, strict=True):
        colour = _COLOURS.get(row.verdict)
        markup = {colour: True} if colour and not row.expected else {}
        reporter.write_line(line, **markup)
    if not all(row.reproducible for row in shown):
        reporter.write_line(_FOOTNOTE)
    if len(shown) < len(ordered):
        reporter.write_line(
            f"... and {len(ordered) - len(shown)} more, all passing or measured (-v shows them)"
        )


def write_snapshots(
    reporter: pytest.TerminalReporter, recorded: Sequence[str], unused: Sequence[str], repair: str
) -> None:
    """Say which snapshots were written, and which nobody asked for."""
    if not recorded and not unused:
        return
    reporter.section("privacy snapshots", sep="=")
    for line in recorded:
        reporter.write_line(line, green=line.startswith("CREATE"), yellow=not line.startswith("CREATE"))
    if unused:
        reporter.write_line(f"{len(unused)} unused, remove with {repair}:", yellow=True)
        for key in unused:
            reporter.write_line(f"  {key}")
