"""Exploring a strategy outside ``@given``: drawn with Hypothesis, repeatable for a run seed, nothing stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings, target
from hypothesis.errors import UnsatisfiedAssumption
from hypothesis.strategies import SearchStrategy

from pytest_snapaudit.engine.errors import DeclarationMismatch, MechanismError
from pytest_snapaudit.engine.seeding import digest

__tracebackhide__ = True  # frames of this module say nothing to the author of a test

_SEARCHING = (Phase.generate, Phase.target)


def as_strategy(owner: str, name: str, value: object) -> tuple[SearchStrategy[Any], tuple[Any, ...]]:
    """A strategy and what must be tried before it, from a strategy or an adversarial preset.

    Raises:
        TypeError: if ``value`` is neither.
    """
    must_try = getattr(value, "must_try", ())
    strategy = getattr(value, "strategy", value) if must_try else value
    if isinstance(strategy, SearchStrategy):
        return strategy, tuple(must_try)
    msg = (
        f"{owner}: {name} must be a Hypothesis strategy, or a preset from adversarial(...), got {value!r} of type "
        f"{type(value).__name__}."
    )
    raise TypeError(msg)


def explore(
    strategy: SearchStrategy[Any],
    must_try: tuple[Any, ...],
    visit: Callable[[Any], float | None],
    *,
    examples: int,
    origin: tuple[object, ...],
    shrink: bool = False,
) -> None:
    """Call ``visit`` with what must be tried, then with ``examples`` draws, half of them steered by what it returns.

    A ``visit`` that rejects its argument (``hypothesis.assume``, ``reject``) is passed over.

    Args:
        strategy: draws arguments.
        must_try: arguments to begin with.
        visit: returns a finite number to be maximised, or None; an exception ends the exploration.
        examples: number of draws.
        origin: what the draws depend on; equal origins, equal draws.
        shrink: whether to repeat a visit that raised on simpler arguments; the exception of the simplest is raised.
    """
    for argument in must_try:
        try:
            visit(argument)
        except UnsatisfiedAssumption:
            continue

    @seed(digest(*origin).value % 2**64)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=False,
        phases=(*_SEARCHING, Phase.shrink) if shrink else _SEARCHING,
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )
    @given(argument=strategy)
    def exploration(argument: Any) -> None:
        score = visit(argument)
        if score is not None:
            target(score, label="to be maximised")

    try:
        exploration()
    except (MechanismError, DeclarationMismatch) as error:
        raise error.with_traceback(None) from error.__cause__
