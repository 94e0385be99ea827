"""The ``privacy_auditor`` fixture: a test's markers and arguments in, a verdict out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any, Never, Unpack

import pytest

from pytest_snapaudit import judging, steering
from pytest_snapaudit.arguments import positive_integer
from pytest_snapaudit.engine.errors import VacuousAudit
from pytest_snapaudit.engine.result import AuditResult
from pytest_snapaudit.engine.snapshot import SnapshotPair
from pytest_snapaudit.examples import current_example
from pytest_snapaudit.explorer import Explorer
from pytest_snapaudit.recording import Record, SnapshotRecorder
from pytest_snapaudit.requests import DEFAULT_SNAPSHOTS, AuditOptions, refuse_unknown, resolve
from pytest_snapaudit.store import JSON

__tracebackhide__ = True  # frames of this module say nothing to the author of a test


class PrivacyAuditor(Explorer):
    """Audits mechanisms on behalf of the test that is running.

    One object serves the whole session, so that the fixture can be used together with Hypothesis; each call
    acts for the test that is running at that moment.

    Args:
        config: the session's configuration.
    """

    def __init__(self, config: pytest.Config) -> None:
        super().__init__(config)
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
        claim_curve: Callable[[float], float] | None = None,
        stop_early: bool = False,
        executor: Executor | None = None,
        **unknown: Never,
    ) -> AuditResult:
        """Audit a mechanism on one pair of neighbours and fail the test if its claim is refuted.

        The claim is resolved keyword by keyword: ``epsilon`` and ``delta`` here, then the closest
        ``privacy_audit`` marker, outer markers, and ``mechanism.claim``. The same configuration in one test
        has the same verdict, at no further cost.

        Inside ``@given`` the configuration is first screened on a random stream of its own
        (:mod:`pytest_snapaudit.engine.screen`), which steers Hypothesis towards more privacy loss. It is then
        certified on fresh noise, unless the screen's upper bound lies below the claim. An example whose two sides
        have equal datasets or equal clean outputs tests nothing: its result is INCONCLUSIVE with no trials, it is
        counted in Hypothesis' statistics, and the test fails as vacuous only if all of its examples are of this kind.

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
            attacks: further scores to try, a mapping of name to a function from (n, d) outputs to n numbers; what
                ``pytest_snapaudit_attacks`` hooks return is tried beside them.
            side_channels: ``"low-bit"`` and ``"timing"``, opt-in.
            claim_curve: a function of epsilon that returns the delta claimed at the same noise, for mechanisms that
                have no ``claim_curve`` of their own.
            stop_early: end a passing audit once a violation has become unlikely; the result says so, and its ceiling
                is that of the trials counted. It costs power, never validity.
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
        refuse_unknown("check", unknown)
        running = self._running("check")
        example = current_example(getattr(running.item, "obj", None))
        request = resolve(
            "check",
            running,
            self._options,
            mechanism,
            neighbours,
            AuditOptions(
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
                claim_curve=claim_curve,
                stop_early=stop_early,
                executor=executor,
            ),
            in_example=example is not None,
        )
        try:
            result = judging.judge(running, self._options, request, example)
        except VacuousAudit as error:
            if example is None:
                raise
            return steering.vacuous(running, request, error, running.confidence(self._options))
        running.checks += 1
        judging.gate(running, self._options, request, result, example)
        return result

    def measure(
        self,
        mechanism: Any,
        neighbours: Any,
        **options: Unpack[AuditOptions],
    ) -> AuditResult:
        """Audit as :meth:`check` does, but never fail the test; alone this does not count as an audit.

        The bound holds at the test's confidence for this measurement taken by itself.

        Args:
            mechanism, neighbours, options: as :meth:`check`.

        Raises:
            InvalidClaim, TypeError, ValueError, MechanismError, VacuousAudit: as :meth:`check`.
        """
        running = self._running("measure")
        example = current_example(getattr(running.item, "obj", None))
        request = resolve(
            "measure",
            running,
            self._options,
            mechanism,
            neighbours,
            options,
            in_example=example is not None,
        )
        key = ("measure", request.key())
        result = running.verdicts.get(key)
        if result is None:
            confidence = running.confidence(self._options)
            try:
                result = judging.certify(running, request, confidence)
            except VacuousAudit as error:
                if example is None:
                    raise
                return steering.vacuous(running, request, error, confidence)
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
