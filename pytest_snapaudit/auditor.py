"""The ``privacy_auditor`` fixture: a test's markers and arguments in, a verdict out."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any

import pytest

from pytest_snapaudit.arguments import positive_integer
from pytest_snapaudit.engine.errors import (
    DeclarationMismatch,
    InconclusiveAudit,
    MechanismError,
    PrivacyViolation,
    VacuousAudit,
)
from pytest_snapaudit.engine.result import AuditResult, Verdict
from pytest_snapaudit.engine.snapshot import SnapshotPair
from pytest_snapaudit.examples import Example, current_example, on_failure
from pytest_snapaudit.names import DISABLED, ITEM, OPTIONS
from pytest_snapaudit.outcomes import SnapauditWarning
from pytest_snapaudit.recording import Record, SnapshotRecorder
from pytest_snapaudit.report import failure
from pytest_snapaudit.requests import DEFAULT_SNAPSHOTS, AuditRequest, resolve
from pytest_snapaudit.session import RunningTest, running_test
from pytest_snapaudit.store import JSON

__tracebackhide__ = True  # frames of this module say nothing to the author of a test


class PrivacyAuditor:
    """Audits mechanisms on behalf of the test that is running.

    One object serves the whole session, so that the fixture can be used together with Hypothesis; each call
    acts for the test that is running at that moment.

    Args:
        config: the session's configuration.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._options = config.stash[OPTIONS]
        self._recorder = SnapshotRecorder(self._options, config.rootpath)

    def __repr__(self) -> str:
        return "privacy_auditor"

    @property
    def recorder(self) -> SnapshotRecorder:
        """The session's snapshots."""
        return self._recorder

    def check(
        self,
        mechanism: Any,
        neighbours: Any,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        views: Any = None,
        scope: str | None = None,
        n_trials: int | None = None,
        n_snapshots: int | None = None,
        correction: str = "auto",
        estimator: str = "auto",
        name: str | None = None,
        attacks: Any = (),
        side_channels: Any = (),
        executor: Executor | None = None,
    ) -> AuditResult:
        """Audit a mechanism on one pair of neighbours and fail the test if its claim is refuted.

        The claim is resolved keyword by keyword: ``epsilon`` and ``delta`` here, then the closest
        ``privacy_audit`` marker, outer markers, and ``mechanism.claim``. The same configuration in one test
        has the same verdict, at no further cost.

        Args:
            mechanism: a :class:`~pytest_snapaudit.engine.mechanism.Mechanism`, a sampler (``from_sampler``,
                ``from_callable``), or an object that a ``pytest_snapaudit_as_mechanism`` hook recognises.
            neighbours: a (reference, canary) pair of datasets, or a
                :class:`~pytest_snapaudit.engine.snapshot.SnapshotPair` of recorded clean outputs.
            epsilon: claimed, finite and above 0.
            delta: claimed, in [0, 1).
            views: views to audit, a collection of ``"black-box"`` and ``"white-box"``.
            scope: ``"pipeline"`` or ``"noise"``.
            n_trials: trials per side that are counted; ``--snapaudit-trials`` wins.
            n_snapshots: clean outputs per side when the clean stage is random.
            correction: ``"auto"``, ``"clopper-pearson"``, ``"bernstein"`` or ``"betting"``.
            estimator: ``"auto"``, ``"dp"`` or ``"gdp"``.
            name: of the audit, printed in reports; also tells apart the random streams of two audits that are
                equal otherwise.
            attacks: further scores to try, a mapping of name to a function from (n, d) outputs to n numbers.
            side_channels: ``"low-bit"`` and ``"timing"``, opt-in.
            executor: runs blocks of trials; the result does not depend on it.

        Returns:
            The result, unless the test fails.

        Raises:
            PrivacyViolation: the claim is refuted.
            InconclusiveAudit: the audit could not have refuted the claim and ``--snapaudit-strict`` is on
                (else a :class:`~pytest_snapaudit.outcomes.SnapauditWarning`), or ``detects`` of the marker is
                not met.
            BudgetExceeded: more configurations or examples than the test declares.
            InvalidClaim: no claim, or one out of range.
            TypeError, ValueError, MechanismError, VacuousAudit, DeclarationMismatch: see
                :func:`~pytest_snapaudit.engine.audit.audit`.
        """
        running = self._running("check")
        request = resolve(
            running,
            self._options,
            mechanism,
            neighbours,
            epsilon=epsilon,
            delta=delta,
            views=views,
            scope=scope,
            n_trials=n_trials,
            n_snapshots=n_snapshots,
            correction=correction,
            estimator=estimator,
            name=name,
            attacks=attacks,
            side_channels=side_channels,
            executor=executor,
        )
        example = current_example(getattr(running.item, "obj", None))
        result = self._judge(running, request, example)
        running.checks += 1
        self._gate(running, result, example)
        return result

    def measure(
        self,
        mechanism: Any,
        neighbours: Any,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        views: Any = None,
        scope: str | None = None,
        n_trials: int | None = None,
        n_snapshots: int | None = None,
        correction: str = "auto",
        estimator: str = "auto",
        name: str | None = None,
        attacks: Any = (),
        side_channels: Any = (),
        executor: Executor | None = None,
    ) -> AuditResult:
        """Audit as :meth:`check` does, but never fail the test; alone this does not count as an audit.

        The bound holds at the test's confidence for this measurement taken by itself.

        Raises:
            InvalidClaim, TypeError, ValueError, MechanismError, VacuousAudit: as :meth:`check`.
        """
        running = self._running("measure")
        request = resolve(
            running,
            self._options,
            mechanism,
            neighbours,
            epsilon=epsilon,
            delta=delta,
            views=views,
            scope=scope,
            n_trials=n_trials,
            n_snapshots=n_snapshots,
            correction=correction,
            estimator=estimator,
            name=name,
            attacks=attacks,
            side_channels=side_channels,
            executor=executor,
        )
        example = current_example(getattr(running.item, "obj", None))
        key = ("measure", request.key())
        result = running.verdicts.get(key)
        if result is None:
            result = self._run(running, request, running.confidence(self._options))
            running.verdicts[key] = result
        running.show(key, result, gated=False, in_example=example is not None)
        return result

    def snapshot(
        self,
        name: str,
        record: Record,
        neighbours: tuple[Any, Any],
        *,
        inputs: Mapping[str, JSON],
        size: int | None = None,
        tolerance: float | None = None,
    ) -> SnapshotPair:
        """The recorded clean outputs of both sides; ``record`` is called only while recording.

        Record what the model said, one row per partition and call, not the aggregate: ``pair.map(aggregate)``
        then runs the aggregation under test live in every run.

        Args:
            name: of the entry.
            record: ``record(dataset, size, rng)`` returns ``size`` rows, an array of shape (size, *shape). An
                attribute ``record.provenance``, a mapping of JSON (model, versions), is stored beside them.
            neighbours: the (reference, canary) pair of datasets.
            inputs: everything the rows depend on (model, prompts, parameters), as JSON; an entry with other
                inputs is stale. Parameters of the noise stage stay out of it.
            size: evaluations per side; an entry with another number is stale. By default what is recorded, and
                while recording ``n_snapshots`` of the marker, or 2 000.
            tolerance: while recording, rows less than this apart become one.

        Raises:
            SnapshotMissing, SnapshotStale, SnapshotCorrupt: the entry cannot be used; the message ends with
                the command that repairs it.
            SnapshotError: recording was asked for under xdist or inside ``@given``.
            TypeError, ValueError: an argument, or what ``record`` returned, is not accepted.
        """
        running = self._running("snapshot")
        if not callable(record):
            msg = f"snapshot: record must be callable, got {record!r} of type {type(record).__name__}."
            raise TypeError(msg)
        if not isinstance(neighbours, tuple | list) or len(neighbours) != 2:
            msg = f"snapshot: neighbours must be a (reference, canary) pair of datasets, got {neighbours!r}."
            raise TypeError(msg)
        key = self._recorder.key(name, inputs)
        pair, written = self._recorder.load_or_record(
            name,
            record,
            (neighbours[0], neighbours[1]),
            inputs,
            size=None if size is None else positive_integer("snapshot", "size", size),
            default_size=running.settings.n_snapshots or DEFAULT_SNAPSHOTS,
            tolerance=tolerance,
            test_file=running.nodeid.split("::")[0],
            in_example=current_example(None) is not None,
        )
        running.snapshots.add(key)
        if written:
            running.recorded.append(written)
        return pair

    def _running(self, method: str) -> RunningTest:
        item = self._config.stash.get(ITEM, None)
        if item is None:
            msg = (
                f"privacy_auditor.{method} was called while no test is running: call it in a test, or in a "
                "fixture while a test that uses it is being set up."
            )
            raise RuntimeError(msg)
        if self._options.disabled:
            pytest.skip(DISABLED)
        return running_test(item)

    def _judge(self, running: RunningTest, request: AuditRequest, example: Example | None) -> AuditResult:
        """The verdict on a configuration: known, or found for a share of the error probability."""
        budget = running.budget
        if budget.enter(example):
            on_failure(budget.waive)
        key = request.key()
        share = budget.share(key, example)
        result = running.verdicts.get(key)
        if result is None:
            budget.charge(share, example)
            alpha = (1.0 - running.confidence(self._options)) * share
            try:
                result = self._run(running, request, 1.0 - alpha)
            except DeclarationMismatch:
                raise
            except Exception:
                budget.refund(key, share)
                raise
            running.verdicts[key] = result
        running.show(key, result, gated=True, in_example=example is not None)
        return result

    def _run(self, running: RunningTest, request: AuditRequest, confidence: float) -> AuditResult:
        try:
            result = request.run(confidence)
        except (MechanismError, VacuousAudit, DeclarationMismatch) as error:
            raise error.with_traceback(None) from error.__cause__
        running.item.ihook.pytest_snapaudit_result(item=running.item, result=result)
        return result

    def _gate(self, running: RunningTest, result: AuditResult, example: Example | None) -> None:
        """Turn a verdict into an outcome of the test."""
        reproduce = running.reproduce(self._options)
        if result.verdict is Verdict.VIOLATION:
            running.first_violation = running.first_violation or failure.configuration(result)
            message = failure.violation(
                result,
                confidence=running.confidence(self._options),
                example=example,
                first=running.first_violation,
                reproduce=reproduce,
            )
            raise PrivacyViolation(message, result)
        if running.settings.detects is not None:
            weakness = failure.too_weak(result, running.settings.detects, reproduce=reproduce)
            if weakness:
                raise InconclusiveAudit(weakness)
        if result.verdict is Verdict.INCONCLUSIVE:
            message = failure.inconclusive(result, reproduce=reproduce)
            if self._options.strict:
                raise InconclusiveAudit(message)
            warnings.warn(SnapauditWarning(message), stacklevel=3)
