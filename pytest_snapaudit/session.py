"""What the plugin keeps during a session, and during one test."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pytest

from pytest_snapaudit import profile
from pytest_snapaudit.budget import Budget
from pytest_snapaudit.engine.errors import VacuousAudit
from pytest_snapaudit.examples import lift_deadline
from pytest_snapaudit.markers import DEFAULT_MAX_CHECKS, AuditSettings, settings_of
from pytest_snapaudit.names import RUNNING, node_id
from pytest_snapaudit.options import RunOptions

__tracebackhide__ = True  # frames of this module say nothing to the author of a test

if TYPE_CHECKING:
    from pytest_snapaudit.engine.result import AuditResult
    from pytest_snapaudit.engine.screen import Screening


@dataclass(frozen=True)
class Audited:
    """One result of a test.

    Attributes:
        result: what the audit found.
        gated: whether it came from ``check``; ``measure`` never gates.
        in_example: whether it was asked for inside a Hypothesis example.
    """

    result: AuditResult
    gated: bool
    in_example: bool


@dataclass
class RunningTest:
    """The test that is running.

    Attributes:
        item: the test.
        nodeid: its node id as the command line takes it, without what xdist appends.
        settings: what its markers ask for.
        marked: whether it is marked privacy_audit.
        budget: shares of its error probability.
        verdicts: results by configuration and share of the error probability.
        screenings: screens of configurations met in examples, by the same.
        steered: for which checks of an example Hypothesis has an observation.
        audited: results to report, by configuration.
        checks: number of ``check`` calls that reached a verdict in this run.
        vacuous: number of calls in Hypothesis examples on which nothing could be tested.
        vacuous_reason: of the first of them.
        first_violation: the first configuration refuted, in words.
        snapshots: keys of the stored entries it asked for.
        recorded: what it wrote into the store, in words.
    """

    item: pytest.Item
    nodeid: str
    settings: AuditSettings = field(default_factory=AuditSettings)
    marked: bool = False
    budget: Budget = field(default_factory=lambda: Budget(DEFAULT_MAX_CHECKS))
    verdicts: dict[object, AuditResult] = field(default_factory=dict)
    screenings: dict[object, Screening] = field(default_factory=dict)
    steered: WeakKeyDictionary[Any, set[int]] = field(default_factory=WeakKeyDictionary)
    audited: dict[object, Audited] = field(default_factory=dict)
    checks: int = 0
    vacuous: int = 0
    vacuous_reason: str = ""
    first_violation: str = ""
    snapshots: set[str] = field(default_factory=set)
    recorded: list[str] = field(default_factory=list)

    def start_run(self) -> str:
        """Begin a run of the test; verdicts survive a rerun, counts do not.

        Returns:
            Why its markers are not accepted, or "".
        """
        try:
            settings = settings_of(self.item)
        except (TypeError, ValueError) as error:
            return f"{type(error).__name__}: {error}"
        lift_deadline(getattr(self.item, "obj", None))
        self.marked = settings is not None
        self.settings = settings or AuditSettings()
        self.budget = Budget(self.settings.max_checks or DEFAULT_MAX_CHECKS)
        self.audited.clear()
        self.checks, self.first_violation = 0, ""
        self.vacuous, self.vacuous_reason = 0, ""
        return ""

    def note_vacuous(self, reason: str) -> None:
        """Count an example on which nothing could be tested."""
        self.vacuous += 1
        self.vacuous_reason = self.vacuous_reason or reason

    def require_a_check(self) -> None:
        """Fail a marked test that checked nothing, and a test of whose Hypothesis examples none tested anything.

        Raises:
            VacuousAudit: if it is one.
        """
        if self.vacuous and self.checks == 0:
            msg = (
                f"{self.nodeid} tested nothing: not one of its Hypothesis examples (audited {self.vacuous} times) can "
                f"tell the two sides apart, for example {self.vacuous_reason}"
            )
            raise VacuousAudit(msg)
        if self.marked and self.checks == 0:
            msg = (
                f"{self.nodeid} is marked privacy_audit but checked nothing: call privacy_auditor.check("
                "mechanism, neighbours) in it (measure alone gates nothing), or remove the marker."
            )
            raise VacuousAudit(msg)

    def show(self, key: object, result: AuditResult, *, gated: bool, in_example: bool) -> None:
        """Report ``result``, found now or known already."""
        self.audited.setdefault(key, Audited(result, gated, in_example))

    def confidence(self, options: RunOptions) -> float:
        """The confidence of this test: command line, markers, ini file, default."""
        return options.cli_confidence or self.settings.confidence or options.confidence

    def reproduce(self, options: RunOptions) -> str:
        """The command that repeats this test with the same verdict."""
        words = ["pytest", self.nodeid, f"--snapaudit-seed={options.seed}"]
        if profile.is_active():
            words.append(f"--hypothesis-profile={profile.PROFILE}")
        if options.cli_trials is not None:
            words.append(f"--snapaudit-trials={options.cli_trials}")
        if options.cli_confidence is not None:
            words.append(f"--snapaudit-confidence={options.cli_confidence}")
        return " ".join(shlex.quote(word) if " " in word or "[" in word else word for word in words)


def running_test(item: pytest.Item) -> RunningTest:
    """What is known about ``item`` while it runs."""
    if RUNNING not in item.stash:
        item.stash[RUNNING] = RunningTest(item, node_id(item))
    return item.stash[RUNNING]
