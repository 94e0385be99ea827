"""Search, then certify: of many configurations the worst one is audited at the full confidence of the test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pytest_snapaudit import exploration
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.errors import VacuousAudit
from pytest_snapaudit.engine.result import AuditResult
from pytest_snapaudit.engine.screen import Screening
from pytest_snapaudit.requests import AuditRequest
from pytest_snapaudit.session import RunningTest

__tracebackhide__ = True  # frames of this module say nothing to the author of a test


@dataclass(frozen=True)
class SearchResult:
    """What :meth:`~pytest_snapaudit.auditor.PrivacyAuditor.search` found.

    Attributes:
        configuration: the worst one met, as the strategy drew it.
        result: its audit, on noise the search never saw.
        trace: every different configuration met, in order: its ``repr``, and the point estimate of its privacy loss.
        vacuous: how many more had equal datasets or equal clean outputs on both sides.
    """

    configuration: Any
    result: AuditResult
    trace: tuple[tuple[str, float], ...] = field(repr=False)
    vacuous: int = 0


@dataclass(frozen=True)
class Candidate:
    """A configuration that was screened."""

    configuration: Any
    request: AuditRequest
    screening: Screening

    def rank(self) -> tuple[float, int]:
        """By the lower bound of the screen over the claim: an estimate that stands on few events comes later."""
        return self.screening.epsilon_lower - self.screening.claim.epsilon, -len(repr(self.configuration))


@dataclass
class Search:
    """One search: what it met so far.

    Args:
        resolve: (mechanism, neighbours, claim or None) to an audit.
        build: the user's function from a configuration to these.
        alpha: error probability that certification will have.
    """

    resolve: Callable[[Any, Any, PrivacyClaim | None], AuditRequest]
    build: Callable[[Any], Any]
    alpha: float
    candidates: dict[object, Candidate] = field(default_factory=dict)
    vacuous: dict[object, str] = field(default_factory=dict)

    def visit(self, configuration: Any) -> float | None:
        """Screen a configuration; how far its estimated loss lies above its claim, or None if nothing can differ."""
        request = self.resolve(*_parts(configuration, self.build(configuration)))
        key = request.key()
        known = self.candidates.get(key)
        if known is None:
            try:
                screening = request.screen(self.alpha)
            except VacuousAudit as error:
                self.vacuous[key] = str(error)
                return None
            known = self.candidates[key] = Candidate(configuration, request, screening)
        return float(known.screening.excess)

    def worst(self) -> Candidate:
        """The configuration to certify.

        Raises:
            VacuousAudit: if there is none.
        """
        if not self.candidates:
            reason = next(iter(self.vacuous.values()), "the strategy drew nothing that build accepts")
            msg = f"search: none of the configurations met can tell the two sides apart, for example {reason}"
            raise VacuousAudit(msg)
        return max(self.candidates.values(), key=Candidate.rank)

    def trace(self) -> tuple[tuple[str, float], ...]:
        """What was met, in order."""
        return tuple((repr(c.configuration), c.screening.estimate) for c in self.candidates.values())


def run(
    search: Search, running: RunningTest, strategy: Any, *, examples: int, run_seed: int, name: str
) -> None:
    """Explore a strategy, or a preset, with draws that depend on run seed, test and name alone."""
    drawn, must_try = exploration.as_strategy("search", "strategy", strategy)
    origin = (run_seed, running.nodeid, name)
    exploration.explore(drawn, must_try, search.visit, examples=examples, origin=origin)


def _parts(configuration: Any, built: Any) -> tuple[Any, Any, PrivacyClaim | None]:
    accepted = "(mechanism, neighbours) or (mechanism, neighbours, PrivacyClaim)"
    if not isinstance(built, tuple) or len(built) not in (2, 3):
        msg = f"search: build must return {accepted}, got {built!r} for {configuration!r}."
        raise TypeError(msg)
    claim = built[2] if len(built) == 3 else None
    if claim is not None and not isinstance(claim, PrivacyClaim):
        msg = f"search: build must return {accepted}, got the claim {claim!r} for {configuration!r}."
        raise TypeError(msg)
    return built[0], built[1], claim
