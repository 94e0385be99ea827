"""What every model-based certificate has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol, Self

from pytest_snapaudit.engine.outcomes import Rows

SHAPE_LEVEL = 1e-3
"""Level of the tests whose rejection withdraws a certificate; a withdrawal costs power, never validity."""

MIN_DRAWS = 5_000
"""White-box draws per side below which the shape tests have too little power to rest a certificate on."""


class Tally(Protocol):
    """Sufficient statistics of one side's draws; of fixed size, merged in any order."""

    def merge(self, other: Any) -> Self:
        """The tally of both tallies' draws."""
        ...


Tallies = tuple[Tally, Tally]
"""Reference and canary."""


@dataclass(frozen=True)
class CertificateBound:
    """What a certificate gives on all draws so far: a bound, or the conditions that failed.

    Attributes:
        epsilon_lower: lower bound on epsilon at the claim's delta, conditional on the declaration.
        mu_lower: for Gaussian noise, the lower bound on the distance in standard deviations.
        refusals: which conditions failed; then there is no bound.
        note: what the bound rests on, beside the declaration.
        estimator: what reached it, in words.
        attack: what was looked at, in words.
    """

    epsilon_lower: float
    mu_lower: float
    refusals: tuple[str, ...]
    note: str = ""
    estimator: str = "Gaussian trade-off"
    attack: str = "projection on the difference of the clean outputs"


class Certificate(ABC):
    """A declared noise stage on one fixed clean output per side."""

    @abstractmethod
    def tally(self, rows: tuple[Rows, Rows]) -> Tallies:
        """Sufficient statistics of one block of white-box draws, (n, d) per side."""

    @abstractmethod
    def failed_conditions(self, tallies: Tallies) -> tuple[str, ...]:
        """Which of the tested conditions fail on the draws so far."""

    @abstractmethod
    def bound(self, tallies: Tallies, alpha: float, delta: float) -> CertificateBound:
        """The bound from all draws so far; above the true epsilon with probability at most ``alpha``."""


def too_few(draws: int) -> tuple[str, ...]:
    """The refusal for fewer than :data:`MIN_DRAWS` draws on a side; empty if there are enough."""
    if draws >= MIN_DRAWS:
        return ()
    return (f"{draws:,} white-box draws per side are too few to test the shape ({MIN_DRAWS:,} needed)",)
