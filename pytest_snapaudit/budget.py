"""The error probability of one test, shared between everything it checks.

The confidence of a test holds for the test as a whole: with alpha = 1 - confidence, a check outside
``@given`` gets alpha / max_checks, and the j-th check inside an example gets
``alpha / (max_checks * N) * 6 / (pi**2 * j**2)``, where N is the number of examples the test was declared
for. The shares sum to at most alpha whatever happens, and depend on declared numbers only.
"""

from __future__ import annotations

import math
import weakref

from pytest_snapaudit.engine.errors import BudgetExceeded
from pytest_snapaudit.examples import Example

__tracebackhide__ = True  # frames of this module say nothing to the author of a test

_BASEL = 6.0 / math.pi**2
_ROUNDING = 1e-9


class _Place:
    """The test outside ``@given``, or one example: where configurations are counted."""

    def __init__(self, context: object) -> None:
        self.context = None if context is None else weakref.ref(context)
        self.keys: list[object] = []
        self.charged = False

    def is_example(self, example: Example) -> bool:
        return self.context is not None and self.context() is example.context

    def position(self, key: object) -> int:
        if key not in self.keys:
            self.keys.append(key)
        return self.keys.index(key) + 1


class Budget:
    """Shares of the error probability of one test.

    Args:
        max_checks: different configurations the test, or one example, may check.

    Attributes:
        spent: the part of the error probability given away so far, in [0, 1].
        waived: whether an example has failed: what follows only shrinks it, and is not charged.
    """

    def __init__(self, max_checks: int) -> None:
        self.max_checks = max_checks
        self.start_run()

    def start_run(self) -> None:
        """Begin a run of the test body; a rerun starts anew."""
        self.spent = 0.0
        self.waived = False
        self._outside = self._place = _Place(None)
        self._examples: weakref.WeakKeyDictionary[object, int] = weakref.WeakKeyDictionary()

    def waive(self) -> None:
        """Stop charging: the guarantee is about the first failure."""
        self.waived = True

    def enter(self, example: Example | None) -> bool:
        """Note where the next check happens; True if this is the first one in its example."""
        if example is None:
            self._place = self._outside
            return False
        if self._place.is_example(example):
            return False
        self._place = _Place(example.context)
        return True

    def position(self, key: object) -> int:
        """The number of a configuration among those checked in the same place, from 1."""
        return self._place.position(key)

    def share(self, key: object, example: Example | None) -> float:
        """The part of the error probability that a check of this configuration takes; not charged yet.

        Args:
            key: identifies the configuration; the same key twice in one place counts once.
            example: where the check happens.

        Raises:
            BudgetExceeded: if the test, or this example, checks more configurations than declared.
        """
        position = self._place.position(key)
        if position > self.max_checks:
            where = "this test" if example is None else "one Hypothesis example"
            msg = (
                f"{where} checks {position} different configurations, but its error probability is shared "
                f"by max_checks={self.max_checks}. Declare them: @privacy_audit(max_checks={position}). "
                "Dataclasses, arrays and built-in types are compared by value; of anything else every "
                "check counts."
            )
            raise BudgetExceeded(msg)
        if example is None:
            return 1.0 / self.max_checks
        return _BASEL / position**2 / (self.max_checks * example.budget)

    def charge(self, share: float, example: Example | None) -> None:
        """Give ``share`` away.

        Raises:
            BudgetExceeded: if more examples run than declared, or the shares no longer fit.
        """
        if self.waived:
            return
        new_example = example is not None and not self._place.charged
        if example is not None and new_example and self._examples.get(example.test, 0) >= example.budget:
            msg = (
                f"more than {example.budget} Hypothesis examples check a new configuration, but the error "
                "probability is shared by N = 2 x max_examples + explicit examples = "
                f"2 x {example.max_examples} + {example.explicit}. Call assume() before check(), so that "
                "rejected examples cost nothing, or raise @settings(max_examples=...)."
            )
            raise BudgetExceeded(msg)
        if self.spent + share > 1.0 + _ROUNDING:
            msg = (
                f"the checks of this test need {self.spent + share:.3g} times its error probability: "
                f"max_checks={self.max_checks} must cover the checks outside @given and every @given test "
                "called inside. Declare the sum of both, @privacy_audit(max_checks=...), or split the test."
            )
            raise BudgetExceeded(msg)
        self.spent += share
        if example is not None and new_example:
            self._place.charged = True
            self._examples[example.test] = self._examples.get(example.test, 0) + 1

    def refund(self, key: object, share: float) -> None:
        """Take back a share whose audit ended without a verdict."""
        if not self.waived:
            self.spent = max(0.0, self.spent - share)
        self._place.keys.remove(key)
