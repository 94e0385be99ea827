"""The sampler that adapters return: a library's own call, with what the library claims for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pytest_snapaudit.engine.mechanism import CALLABLE_TRIALS, Sampler


@dataclass(frozen=True, eq=False)
class LibrarySampler(Sampler[Any]):
    """Whole outputs of a library's mechanism.

    Attributes:
        claim_curve: a function of epsilon that returns the delta the library claims there at the same noise; None if
            it claims one pair only. The audit tests all of its points.
    """

    claim_curve: Callable[[float], float] | None = None

    @property
    def default_trials(self) -> int:
        """Trials per side when the test states none: 20 000, since an output costs 0.01 to 0.4 ms."""
        return CALLABLE_TRIALS
