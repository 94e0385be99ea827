"""Inside ``@given``: every configuration is screened, which steers Hypothesis and may settle the example.

The screen draws from a random stream of its own and depends on the configuration, the run seed and declared budgets
alone, as the verdict does; an example behaves alike when it is first met, shrunk, and replayed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_snapaudit.engine.errors import VacuousAudit
from pytest_snapaudit.engine.result import AuditResult, Verdict
from pytest_snapaudit.engine.screen import Screening

if TYPE_CHECKING:
    from pytest_snapaudit.examples import Example
    from pytest_snapaudit.requests import AuditRequest
    from pytest_snapaudit.session import RunningTest

__tracebackhide__ = True  # frames of this module say nothing to the author of a test

VACUOUS = "privacy audit: nothing tested, equal datasets or equal clean outputs"
SETTLED = "privacy audit: settled by screening"


def steer(running: RunningTest, example: Example, position: int, screening: Screening) -> None:
    """Tell Hypothesis how far the estimated privacy loss lies above the claim; it looks for more of it.

    Args:
        running: the test.
        example: the example.
        position: of the check among those of the example; Hypothesis takes one observation for each.
        screening: of the configuration.
    """
    observed = running.steered.setdefault(example.context, set())
    if position in observed:
        return
    observed.add(position)
    from hypothesis import target  # noqa: PLC0415

    target(float(screening.excess), label=f"privacy loss above the claim, check {position}")


def record(text: str) -> None:
    """Count an example in Hypothesis' statistics."""
    from hypothesis import event  # noqa: PLC0415

    event(text)


def vacuous(
    running: RunningTest, request: AuditRequest, error: VacuousAudit, confidence: float
) -> AuditResult:
    """The result of an example on which the two sides cannot differ: nothing was drawn, nothing is claimed.

    Such an example is no failure, and no audit either; a test that has no others fails when it ends.
    """
    running.note_vacuous(str(error))
    record(VACUOUS)
    return AuditResult(
        name=request.label,
        claim=request.claim,
        confidence=confidence,
        verdict=Verdict.INCONCLUSIVE,
        epsilon_lower=0.0,
        max_detectable_epsilon=0.0,
        smallest_factor_caught=float("inf"),
        view="",
        estimator="",
        correction=str(request.options["correction"]),
        scope=str(request.options["scope"]),
        attack="",
        n_trials=0,
        n_snapshots=0,
        reason=f"nothing was tested: {error}",
        seed=request.seed,
    )
