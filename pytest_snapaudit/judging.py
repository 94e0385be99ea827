"""From a request to a verdict, and from a verdict to an outcome of the test."""

from __future__ import annotations

import warnings

from pytest_snapaudit import steering
from pytest_snapaudit.engine.errors import (
    DeclarationMismatch,
    InconclusiveAudit,
    MechanismError,
    PrivacyViolation,
    VacuousAudit,
)
from pytest_snapaudit.engine.result import AuditResult, Verdict
from pytest_snapaudit.engine.screen import ESTIMATOR, Screening
from pytest_snapaudit.examples import Example, on_failure
from pytest_snapaudit.options import RunOptions
from pytest_snapaudit.outcomes import SnapauditWarning
from pytest_snapaudit.report import failure
from pytest_snapaudit.requests import AuditRequest
from pytest_snapaudit.session import RunningTest

__tracebackhide__ = True  # frames of this module say nothing to the author of a test


def judge(
    running: RunningTest, options: RunOptions, request: AuditRequest, example: Example | None
) -> AuditResult:
    """The verdict on a configuration: known, or found for a share of the error probability.

    A verdict is a function of the configuration, the run seed and its share, and a share one of declared budgets and
    the check's place in its example: which examples ran before does not matter.

    Raises:
        BudgetExceeded: more configurations or examples than declared.
        MechanismError, VacuousAudit, DeclarationMismatch: as the engine; the share is given back.
    """
    enter(running, example)
    budget, configuration = running.budget, request.key()
    share = budget.share(configuration, example)
    key = (configuration, share)
    alpha = (1.0 - running.confidence(options)) * share
    screening = None
    # After a failure Hypothesis only simplifies: there is nothing to steer, but verdicts stay what they are.
    if example is not None and (not budget.waived or request.can_settle(alpha)):
        try:
            screening = running.screenings.get(key) or request.screen(alpha)
        except (MechanismError, VacuousAudit, DeclarationMismatch) as error:
            budget.refund(configuration, 0.0)
            raise error.with_traceback(None) from error.__cause__
        running.screenings[key] = screening
        steering.steer(running, example, budget.position(configuration), screening)
    result = running.verdicts.get(key)
    if result is None:
        budget.charge(share, example)
        try:
            result = certify(running, request, 1.0 - alpha, screening)
        except DeclarationMismatch:
            raise
        except Exception:
            budget.refund(configuration, share)
            raise
        running.verdicts[key] = result
    if result.estimator == ESTIMATOR:
        steering.record(steering.SETTLED)
    running.show(key, result, gated=True, in_example=example is not None)
    return result


def enter(running: RunningTest, example: Example | None) -> None:
    """Note where the next check happens; after the first failure of an example nothing is charged."""
    if running.budget.enter(example):
        on_failure(running.budget.waive)


def certify(
    running: RunningTest, request: AuditRequest, confidence: float, screening: Screening | None = None
) -> AuditResult:
    """Run the audit, unless a screen settles it, and tell the hooks."""
    try:
        if screening is not None and _settled(running, request, screening):
            result = request.settled_by(screening, confidence)
        else:
            result = request.run(confidence)
    except (MechanismError, VacuousAudit, DeclarationMismatch) as error:
        raise error.with_traceback(None) from error.__cause__
    running.item.ihook.pytest_snapaudit_result(item=running.item, result=result)
    return result


def _settled(running: RunningTest, request: AuditRequest, screening: Screening) -> bool:
    """Whether certification is skipped: by the screen's rule, and only where the audit asks for nothing special."""
    plain = request.options["correction"] == request.options["estimator"] == "auto"
    return (
        screening.settles
        and plain
        and not request.options["side_channels"]
        and "claim_curve" not in request.options
        and running.settings.detects is None
    )


def gate(
    running: RunningTest,
    options: RunOptions,
    request: AuditRequest,
    result: AuditResult,
    example: Example | None,
    *,
    searched: str = "",
) -> None:
    """Turn a verdict into an outcome of the test.

    Args:
        searched: what a search says about the configuration.

    Raises:
        PrivacyViolation, InconclusiveAudit: as :meth:`~pytest_snapaudit.auditor.PrivacyAuditor.check`.
    """
    reproduce = running.reproduce(options)
    if result.verdict is Verdict.VIOLATION:
        configuration = failure.configuration(result, request.neighbours)
        running.first_violation = running.first_violation or configuration
        message = failure.violation(
            result,
            confidence=running.confidence(options),
            example=example,
            first="" if running.first_violation == configuration else running.first_violation,
            searched=searched,
            reproduce=reproduce,
        )
        raise PrivacyViolation(message, result)
    if running.settings.detects is not None:
        weakness = failure.too_weak(result, running.settings.detects, reproduce=reproduce)
        if weakness:
            raise InconclusiveAudit(weakness)
    if result.verdict is Verdict.INCONCLUSIVE:
        message = failure.inconclusive(result, reproduce=reproduce)
        if options.strict:
            raise InconclusiveAudit(message)
        warnings.warn(SnapauditWarning(message), stacklevel=3)
