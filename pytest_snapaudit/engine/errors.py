"""Every error and outcome class the auditor raises."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_snapaudit.engine.result import AuditResult
    from pytest_snapaudit.engine.sensitivity import SensitivityFinding


class InvalidClaim(ValueError):
    """A privacy claim, or the lack of one, that cannot be put under test."""


class MechanismError(RuntimeError):
    """The mechanism under test is wired wrongly: wrong shapes, wrong row counts, or it always raises."""


class PrivacyViolation(AssertionError):
    """The lower confidence bound on epsilon exceeds the claim.

    Attributes:
        result: the :class:`~pytest_snapaudit.engine.result.AuditResult` that refutes the claim.
    """

    def __init__(self, message: str, result: AuditResult) -> None:
        super().__init__(message)
        self.result = result


class DeclarationMismatch(AssertionError):
    """A mechanism that asked to be held to its declaration does not meet it."""


class VacuousAudit(AssertionError):
    """Nothing was tested: equal neighbours, equal clean outputs, or a marked test without a check."""


class InconclusiveAudit(AssertionError):
    """The audit could not have refuted the claim, and the run was asked to be strict."""


class BudgetExceeded(RuntimeError):
    """More checks, or more examples, ran than the declared budget of the test allows."""


class SnapshotError(AssertionError):
    """Base of the failures to read a stored snapshot; each message ends with the command that repairs it."""


class SnapshotMissing(SnapshotError):
    """No entry is stored under this name."""


class SnapshotStale(SnapshotError):
    """An entry is stored under this name, but for other inputs."""


class SnapshotCorrupt(SnapshotError):
    """The stored entry is damaged, foreign, or unsafe to read."""


class SensitivityExceeded(AssertionError):
    """Clean outputs of neighbouring datasets lie further apart than the declared sensitivity.

    Attributes:
        finding: the :class:`~pytest_snapaudit.engine.sensitivity.SensitivityFinding` that refutes it.
    """

    def __init__(self, message: str, finding: SensitivityFinding) -> None:
        super().__init__(message)
        self.finding = finding
