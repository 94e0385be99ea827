"""What every family of presets shares: budgets within limits, and pairs one record apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_snapaudit.strategies._arguments import ADD_REMOVE
from pytest_snapaudit.strategies.budgets import privacy_budgets
from pytest_snapaudit.strategies.pairs import NeighbouringPair


class Budgets:
    """Budgets drawn within limits, and fixed ones moved into them."""

    def __init__(self, min_epsilon: float, max_epsilon: float, min_delta: float, max_delta: float) -> None:
        self.strategy = privacy_budgets(
            min_epsilon=min_epsilon, max_epsilon=max_epsilon, min_delta=min_delta, max_delta=max_delta
        )
        self.epsilon_limits, self.delta_limits = (min_epsilon, max_epsilon), (min_delta, max_delta)

    def at(self, epsilon: float, delta: float) -> dict[str, float]:
        low, high = self.epsilon_limits
        least, most = self.delta_limits
        """``epsilon`` and ``delta`` as keyword arguments, each moved to the nearest limit."""
        return {"epsilon": min(max(epsilon, low), high), "delta": min(max(delta, least), most)}


def one_apart(adjacency: str, rest: Sequence[Any], other: Any, row: Any) -> NeighbouringPair[list[Any]]:
    """``rest`` with ``row`` added, or with ``other`` replaced by ``row``."""
    reference = list(rest) if adjacency == ADD_REMOVE else [*rest, other]
    return NeighbouringPair(reference, [*rest, row], adjacency)
