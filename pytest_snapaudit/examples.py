"""What Hypothesis says about the example that is running; Hypothesis itself is never imported first."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from pytest_snapaudit.engine.errors import BudgetExceeded


@dataclass(frozen=True)
class Example:
    """One call of the body of a Hypothesis test.

    Attributes:
        context: an object that is this call's own.
        test: the test function this call belongs to.
        max_examples: the active setting; the verdict depends on it.
        explicit: number of ``@example`` decorators.
    """

    context: object
    test: object
    max_examples: int
    explicit: int

    @property
    def budget(self) -> int:
        """How many examples share the error probability of the test.

        Twice ``max_examples``, since Hypothesis also spends calls on examples that turn out invalid.
        """
        return 2 * self.max_examples + self.explicit


def current_example(test: object) -> Example | None:
    """The example that is running, or None outside ``@given``.

    Args:
        test: the collected test function, for versions of Hypothesis that do not say which one is running.
    """
    hypothesis = sys.modules.get("hypothesis")
    if hypothesis is None or not hypothesis.currently_in_test_context():
        return None
    from hypothesis import settings  # noqa: PLC0415 - only once the test itself has loaded Hypothesis
    from hypothesis.control import current_build_context  # noqa: PLC0415

    context = current_build_context()
    running = getattr(context, "wrapped_test", test)
    explicit = len(getattr(running, "hypothesis_explicit_examples", ()))
    return Example(context, running, settings().max_examples, explicit)


def on_failure(callback: Callable[[], None]) -> None:
    """Call ``callback`` if the running example fails.

    Rejected assumptions and skips are no failures; nor is an exceeded budget, which stays exceeded.
    """
    from hypothesis.control import cleanup  # noqa: PLC0415
    from hypothesis.errors import UnsatisfiedAssumption  # noqa: PLC0415

    def finished() -> None:
        error = sys.exc_info()[1]
        failed = isinstance(error, Exception | pytest.fail.Exception)
        if failed and not isinstance(error, UnsatisfiedAssumption | BudgetExceeded):
            callback()

    cleanup(finished)


def lift_deadline(test: object) -> None:
    """Take Hypothesis' deadline off an audited test.

    An audit is slow the first time and free when its verdict is known, which Hypothesis would report as
    unreliable timing; the default deadline of 200 ms is meant for ordinary code.

    Args:
        test: the collected test function; left alone unless it is a Hypothesis test.
    """
    function = getattr(test, "__func__", test)
    if "hypothesis" not in sys.modules or not getattr(function, "is_hypothesis_test", False):
        return
    from hypothesis import settings  # noqa: PLC0415

    active = getattr(function, _SETTINGS, None) or settings()
    if active.deadline is not None:
        setattr(function, _SETTINGS, settings(active, deadline=None))


_SETTINGS = "_hypothesis_internal_use_settings"
