"""One line of the session's table, made of built-in types so that xdist and JUnit XML can carry it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_snapaudit.engine.result import AuditResult
    from pytest_snapaudit.session import RunningTest

MEASURED = "MEASURED"
_SEVERITY = {"VIOLATION": 0, "INCONCLUSIVE": 1, "CONSISTENT": 2, MEASURED: 3}


@dataclass(frozen=True)
class AuditRow:
    """One result as shown; every field is a built-in type.

    Attributes:
        nodeid: the test.
        name: the mechanism.
        epsilon, delta: the claim.
        epsilon_lower: the certified lower bound.
        view, attack, estimator: where and how it was reached.
        n_trials: trials per side that were counted.
        verdict: of a check; ``MEASURED`` for a measurement.
        smallest_factor_caught, max_detectable_epsilon: what the audit was worth.
        confidence: at which the bound holds.
        seconds: run time.
        configurations: how many, met in Hypothesis examples, this is the worst of; 0 outside ``@given``.
        reproducible: False if two draws from one seed differed, so that a seed does not repeat the result.
        expected: whether the test is an expected failure.
    """

    nodeid: str
    name: str
    epsilon: float
    delta: float
    epsilon_lower: float
    view: str
    attack: str
    estimator: str
    n_trials: int
    verdict: str
    smallest_factor_caught: float
    max_detectable_epsilon: float
    confidence: float
    seconds: float
    configurations: int = 0
    reproducible: bool = True
    expected: bool = False

    @classmethod
    def of(
        cls, nodeid: str, result: AuditResult, *, gated: bool, seconds: float, configurations: int = 0
    ) -> AuditRow:
        """The row of ``result``, every number converted to a built-in type."""
        return cls(
            nodeid=str(nodeid),
            name=str(result.name),
            epsilon=float(result.claim.epsilon),
            delta=float(result.claim.delta),
            epsilon_lower=float(result.epsilon_lower),
            view=str(result.view),
            attack=str(result.attack),
            estimator=str(result.estimator),
            n_trials=int(result.n_trials),
            verdict=str(result.verdict.value) if gated else MEASURED,
            smallest_factor_caught=float(result.smallest_factor_caught),
            max_detectable_epsilon=float(result.max_detectable_epsilon),
            confidence=float(result.confidence),
            seconds=float(seconds),
            configurations=int(configurations),
            reproducible=result.reproducible is not False,
        )

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> AuditRow:
        """Rebuild a row that crossed a process boundary."""
        return cls(**plain)

    def to_dict(self) -> dict[str, Any]:
        """The row as built-in types."""
        return asdict(self)


def rows_of(running: RunningTest) -> list[AuditRow]:
    """The rows of one test, worst first: one per configuration, and one for all of its examples together."""
    rows = []
    for gated in (True, False):
        chosen = [audited for audited in running.audited.values() if audited.gated is gated]
        rows += [
            AuditRow.of(running.nodeid, audited.result, gated=gated, seconds=audited.result.elapsed)
            for audited in chosen
            if not audited.in_example
        ]
        examples = [audited.result for audited in chosen if audited.in_example]
        if examples:
            worst = min(
                examples, key=lambda found: badness(found.verdict, found.epsilon_lower, found.claim.epsilon)
            )
            seconds = sum(found.elapsed for found in examples)
            rows.append(
                AuditRow.of(running.nodeid, worst, gated=gated, seconds=seconds, configurations=len(examples))
            )
    return worst_first(rows)


def badness(verdict: str, epsilon_lower: float, epsilon: float) -> tuple[int, float]:
    """Sorts worst first: by verdict, then by how close the bound is to the claim."""
    ratio = epsilon_lower / epsilon if epsilon > 0 else math.inf if epsilon_lower > 0 else 0.0
    return _SEVERITY.get(verdict, 0), -ratio


def worst_first(rows: Iterable[AuditRow]) -> list[AuditRow]:
    """Rows sorted worst first; expected failures come after the unexpected ones of their kind."""

    def rank(row: AuditRow) -> tuple[int, bool, float, str]:
        severity, closeness = badness(row.verdict, row.epsilon_lower, row.epsilon)
        return severity, row.expected, closeness, row.nodeid

    return sorted(rows, key=rank)
