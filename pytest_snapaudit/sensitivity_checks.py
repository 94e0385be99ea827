"""The deterministic pass over neighbours: clean outputs against the declared sensitivity, without a trial."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pytest_snapaudit import exploration
from pytest_snapaudit.engine.errors import MechanismError, SensitivityExceeded
from pytest_snapaudit.engine.sensitivity import SensitivityFinding

__tracebackhide__ = True  # frames of this module say nothing to the author of a test

_LARGEST_RATIO = 1e300

Compare = Callable[[list[Any]], SensitivityFinding]


def over_strategy(
    compare: Compare, strategy: Any, *, examples: int, origin: tuple[int, str]
) -> SensitivityFinding:
    """The worst pair that a strategy draws; the simplest one if it exceeds the declared sensitivity.

    Args:
        compare: the finding of some pairs.
        strategy: draws pairs, or configurations with ``neighbours``.
        examples: number of draws.
        origin: run seed and test, which seed the draws.

    Raises:
        MechanismError: the clean stage raises on both sides of every pair.
    """
    drawn, must_try = exploration.as_strategy("check_sensitivity", "neighbours", strategy)
    worst: SensitivityFinding | None = None
    both_raised: list[Any] = []
    tried = 0
    exceeded_at: int | None = None

    def visit(argument: Any) -> float | None:
        nonlocal worst, tried, exceeded_at
        tried += 1
        pair = getattr(argument, "neighbours", argument)
        try:
            finding = compare([pair])
        except MechanismError as error:
            if error.__cause__ is None:  # a random clean stage
                raise
            both_raised.append(pair)
            return None
        if worst is None or finding.distance - finding.slack > worst.distance - worst.slack:
            worst = replace(finding, index=tried - 1)
        if finding.exceeded:
            exceeded_at = exceeded_at or tried
            raise SensitivityExceeded(str(finding), finding)
        return min(finding.ratio, _LARGEST_RATIO)

    try:
        exploration.explore(drawn, must_try, visit, examples=examples, origin=origin, shrink=True)
    except SensitivityExceeded as error:
        simplest, count = error.finding, exceeded_at or tried
        return replace(simplest, index=count - 1, n_pairs=count)
    return compare(both_raised) if worst is None else replace(worst, n_pairs=tried)
