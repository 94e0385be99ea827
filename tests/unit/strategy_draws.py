"""Drawing and searching with fixed seeds, for the tests of the strategies."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, find, given, seed, settings
from hypothesis import strategies as st

QUIET = {"database": None, "derandomize": False, "deadline": None, "suppress_health_check": list(HealthCheck)}


def draws(strategy: st.SearchStrategy[Any], count: int = 400, run: int = 0) -> list[Any]:
    """Up to ``count`` distinct draws, as Hypothesis generates them in a test (no shrinking)."""
    drawn: list[Any] = []

    @seed(run)
    @settings(max_examples=count, phases=[Phase.generate], **QUIET)
    @given(strategy)
    def collect(value: object) -> None:
        drawn.append(value)

    collect()
    return drawn


def share(drawn: list[Any], predicate: Callable[[Any], bool]) -> float:
    return sum(map(predicate, drawn)) / len(drawn)


def simplest(strategy: st.SearchStrategy[Any], predicate: Callable[[Any], bool] = lambda _: True) -> Any:
    """What a failing test would be reported with: the shrunk draw that satisfies ``predicate``."""
    return find(strategy, predicate, settings=settings(max_examples=5000, **QUIET), random=Random(7))


def is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)
