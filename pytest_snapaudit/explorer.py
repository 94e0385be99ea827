"""What the ``privacy_auditor`` fixture does outside ``@given`` with a whole strategy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Unpack

import pytest

from pytest_snapaudit import judging
from pytest_snapaudit.arguments import positive_integer
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.errors import MechanismError, SensitivityExceeded
from pytest_snapaudit.engine.sensitivity import SensitivityFinding, check_sensitivity
from pytest_snapaudit.examples import current_example
from pytest_snapaudit.names import DISABLED, ITEM, OPTIONS
from pytest_snapaudit.report import failure
from pytest_snapaudit.requests import AuditOptions, AuditRequest, resolve
from pytest_snapaudit.session import RunningTest, running_test

if TYPE_CHECKING:
    from pytest_snapaudit.search import SearchResult

__tracebackhide__ = True  # frames of this module say nothing to the author of a test


class Explorer:
    """Searches and deterministic passes on behalf of the test that is running.

    Args:
        config: the session's configuration.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._options = config.stash[OPTIONS]

    def search(
        self,
        strategy: Any,
        build: Callable[[Any], Any],
        *,
        examples: int = 100,
        **options: Unpack[AuditOptions],
    ) -> SearchResult:
        """Search a space of configurations for the worst one and check that one, without ``@given``.

        Every configuration met is screened on a few thousand trials, which steers the search towards more privacy
        loss above the claim; none is certified but the one whose screen says most, on fresh noise and with the error
        probability of one check (all of it, at ``max_checks=1``). Draws depend on run seed, test and ``name`` alone.

        Args:
            strategy: draws configurations: a Hypothesis strategy, or a preset from
                :func:`~pytest_snapaudit.strategies.adversarial` (its must-try configurations come first).
            build: ``build(configuration)`` returns (mechanism, neighbours), or (mechanism, neighbours,
                :class:`~pytest_snapaudit.engine.claim.PrivacyClaim`); it may call ``hypothesis.assume``.
            examples: number of draws.
            options: keywords of :meth:`~pytest_snapaudit.auditor.PrivacyAuditor.check`; ``epsilon`` and ``delta``
                count where ``build`` returns no claim.

        Returns:
            The worst configuration, its result and the trace of the search, unless the test fails.

        Raises:
            PrivacyViolation, InconclusiveAudit, BudgetExceeded, InvalidClaim: as :meth:`check`.
            VacuousAudit: on no configuration the two sides differ.
            RuntimeError: it was called inside ``@given``.
            TypeError, ValueError, MechanismError, DeclarationMismatch: see :meth:`check`.
        """
        running = self._running("search")
        if current_example(None) is not None:
            msg = (
                "privacy_auditor.search draws its own examples and was called inside @given: call it in a plain test, "
                "or check() inside @given."
            )
            raise RuntimeError(msg)
        if not callable(build):
            msg = f"search: build must be callable, got {build!r} of type {type(build).__name__}."
            raise TypeError(msg)
        from pytest_snapaudit import search as searching  # noqa: PLC0415 - loads Hypothesis

        def audited(mechanism: Any, neighbours: Any, claim: PrivacyClaim | None) -> AuditRequest:
            stated = options
            if claim is not None:
                stated = {**options, "epsilon": claim.epsilon, "delta": claim.delta}
            return resolve("search", running, self._options, mechanism, neighbours, stated, in_example=False)

        alpha = (1.0 - running.confidence(self._options)) / running.budget.max_checks
        search = searching.Search(audited, build, alpha)
        count = positive_integer("search", "examples", examples)
        searching.run(
            search,
            running,
            strategy,
            examples=count,
            run_seed=self._options.seed,
            name=options.get("name") or "",
        )
        worst = search.worst()
        result = judging.judge(running, self._options, worst.request, None)
        running.checks += 1
        words = (
            f"the worst of {len(search.candidates)} configurations searched: "
            f"{failure.shortened(worst.configuration) or type(worst.configuration).__name__}"
        )
        judging.gate(running, self._options, worst.request, result, None, searched=words)
        return searching.SearchResult(worst.configuration, result, search.trace(), len(search.vacuous))

    def check_sensitivity(
        self,
        mechanism: Any,
        neighbours: Any,
        *,
        sensitivity: float | None = None,
        norm: str | None = None,
        examples: int = 100,
        tolerance: float = 1e-9,
        coupled: bool = False,
    ) -> SensitivityFinding:
        """Fail the test if clean outputs of neighbours lie further apart than declared; it needs no trials.

        A cheap first pass. Pairs within the declared sensitivity prove nothing about pairs that were not tried, and
        nothing about the noise. It counts as an audit of the test.

        Args:
            mechanism: an object with ``clean(dataset, rng)``, or that function itself.
            neighbours: a (reference, canary) tuple, a list of such pairs, a strategy that draws pairs (or
                configurations with ``neighbours``), or a preset.
            sensitivity: declared, finite and above 0; by default ``mechanism.sensitivity``.
            norm: ``"l0"``, ``"l1"``, ``"l2"`` or ``"linf"``; by default ``mechanism.norm``, else ``"l2"``.
            examples: number of draws from a strategy, which run seed and test determine.
            tolerance: relative tolerance on the declared sensitivity.
            coupled: accept a random clean stage, and compare the two sides under one seed.

        Returns:
            The worst pair.

        Raises:
            SensitivityExceeded: a pair exceeds the declared sensitivity; of a strategy the simplest such pair.
            RuntimeError: it was called with a strategy inside ``@given``.
            TypeError, ValueError, MechanismError: see
                :func:`~pytest_snapaudit.engine.sensitivity.check_sensitivity`.
        """
        running = self._running("check_sensitivity")
        example = current_example(getattr(running.item, "obj", None))
        judging.enter(running, example)

        def compare(pairs: Any) -> SensitivityFinding:
            try:
                return check_sensitivity(
                    mechanism, pairs, sensitivity, norm, tolerance=tolerance, coupled=coupled
                )
            except MechanismError as error:
                raise error.with_traceback(None) from error.__cause__

        if _draws(neighbours):
            from pytest_snapaudit import sensitivity_checks  # noqa: PLC0415 - loads Hypothesis

            if example is not None:
                msg = (
                    "check_sensitivity draws its own examples from a strategy and was called inside @given: pass it "
                    "the pair that @given drew."
                )
                raise RuntimeError(msg)
            count = positive_integer("check_sensitivity", "examples", examples)
            finding = sensitivity_checks.over_strategy(
                compare, neighbours, examples=count, origin=(self._options.seed, running.nodeid)
            )
        else:
            finding = compare([neighbours] if isinstance(neighbours, tuple) else neighbours)
        running.checks += 1
        try:
            finding.require()
        except SensitivityExceeded as error:
            raise error.with_traceback(None) from None
        return finding

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


def _draws(value: object) -> bool:
    """Whether pairs are to be drawn, by a strategy or a preset."""
    return hasattr(value, "flatmap") or hasattr(value, "must_try")
