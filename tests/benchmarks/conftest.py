"""Collects the figures of the benchmarks and prints them together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

FIGURES = pytest.StashKey[dict[str, dict[str, Any]]]()

Record = Callable[[Mapping[str, Any]], None]


def pytest_configure(config: pytest.Config) -> None:
    config.stash[FIGURES] = {}


@pytest.fixture
def record(request: pytest.FixtureRequest, benchmark: Any) -> Record:
    """``record(figures)``: store figures beside the benchmark, and print them at the end."""

    def keep(figures: Mapping[str, Any]) -> None:
        benchmark.extra_info.update(figures)
        request.config.stash[FIGURES][request.node.name] = dict(figures)

    return keep


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if not config.stash[FIGURES]:
        return
    terminalreporter.section("figures")
    for name, figures in config.stash[FIGURES].items():
        terminalreporter.write_line(
            f"{name}: " + ", ".join(f"{key} {value}" for key, value in figures.items())
        )
