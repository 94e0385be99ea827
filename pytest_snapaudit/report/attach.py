"""What a test's report carries from the process that ran it to the one that prints: built-in types only."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_snapaudit.report.junit import properties, replace_properties
from pytest_snapaudit.report.rows import rows_of
from pytest_snapaudit.session import RunningTest


def to_properties(item: pytest.Item, running: RunningTest, seed: int) -> None:
    """Put the results of the test into its ``user_properties``."""
    replace_properties(item.user_properties, properties(rows_of(running), seed))


def to_report(report: pytest.TestReport, running: RunningTest, file_tests: int) -> None:
    """Put the results, and the snapshots the test asked for, on its report.

    Args:
        report: of the call, of a failed setup, or of the teardown.
        running: the test.
        file_tests: how many tests of its file were selected; 0 if not all of them.
    """
    carried: dict[str, Any] = {"file_tests": file_tests}
    if report.when == "call" or (report.when == "setup" and not report.passed):
        carried["rows"] = [row.to_dict() for row in rows_of(running)]
    if report.when == "teardown":
        carried["used"] = sorted(running.snapshots)
        carried["recorded"] = list(running.recorded)
    report.snapaudit = carried  # type: ignore[attr-defined]  # reports take extra attributes along
