"""Collects the results of a session, from this process or from xdist workers, and prints them at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from pytest_snapaudit.names import node_id

if TYPE_CHECKING:
    from pytest_snapaudit.options import RunOptions
    from pytest_snapaudit.report.rows import AuditRow


class ResultCollector:
    """The results of one session; registered as a plugin.

    Args:
        config: the session's configuration.
        options: the session's options.
    """

    def __init__(self, config: pytest.Config, options: RunOptions) -> None:
        self._config = config
        self._options = options
        self._rows: dict[str, list[AuditRow]] = {}
        self._deselected: set[str] = set()
        self._selected: Counter[str] = Counter()
        self._ran: Counter[str] = Counter()
        self._file_tests: dict[str, int] = {}
        self._used: set[str] = set()
        self._recorded: list[str] = []
        self._unused: list[str] = []

    def file_tests(self, nodeid: str) -> int:
        """How many tests of this test's file were selected in this process; 0 if some were left out."""
        file = _file_of(nodeid)
        return 0 if file in self._deselected else self._selected[file]

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Note which files do not run as a whole."""
        self._deselected.update(_file_of(node_id(item)) for item in items)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Count the selected tests of every file."""
        self._selected = Counter(_file_of(node_id(item)) for item in session.items)
        partial_run = self._config.getoption("lf", False) or any("::" in arg for arg in self._config.args)
        if partial_run:
            self._deselected.update(self._selected)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take over what the report carries."""
        if self._options.is_worker:
            return
        expected = report.skipped and hasattr(report, "wasxfail")
        if report.when == "call" and (report.passed or expected):
            self._ran[_file_of(report.nodeid)] += 1
        carried = getattr(report, "snapaudit", None)
        if not carried:
            return
        from pytest_snapaudit.report.rows import AuditRow  # noqa: PLC0415

        if "rows" in carried:
            self._rows[report.nodeid] = [
                AuditRow.from_dict({**plain, "expected": expected}) for plain in carried["rows"]
            ]
        self._file_tests[_file_of(report.nodeid)] = carried["file_tests"]
        self._used.update(carried.get("used", ()))
        self._recorded += carried.get("recorded", ())

    def pytest_sessionfinish(self) -> None:
        """Find unused snapshots; remove them if asked to."""
        complete = {file for file, tests in self._file_tests.items() if 0 < tests == self._ran[file]}
        if self._options.is_worker or not complete or not self._options.directory.is_dir():
            return
        from pytest_snapaudit.recording import SnapshotRecorder  # noqa: PLC0415 - loads NumPy

        recorder = SnapshotRecorder(self._options, self._config.rootpath)
        for entry in recorder.unused(self._used, complete):
            if self._options.update == "all":
                self._recorded.append(recorder.remove(entry))
            else:
                self._unused.append(entry.key)

    def write(self, reporter: pytest.TerminalReporter) -> None:
        """Print the table of audits and what became of snapshots."""
        if not (self._rows or self._recorded or self._unused):
            return
        from pytest_snapaudit.report.numbers import percent  # noqa: PLC0415
        from pytest_snapaudit.report.terminal import write_snapshots, write_table  # noqa: PLC0415

        rows = [row for rows in self._rows.values() for row in rows]
        confidence = percent(self._options.confidence)
        title = f"privacy audits (seed {self._options.seed}, {confidence} confidence)"
        write_table(reporter, rows, title)
        write_snapshots(reporter, self._recorded, self._unused, "pytest --snapaudit-update=all")


def _file_of(nodeid: str) -> str:
    return nodeid.split("::", maxsplit=1)[0]
