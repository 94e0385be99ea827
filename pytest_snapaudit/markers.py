"""The ``privacy_audit`` marker: what it accepts, and what the markers of one test add up to."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Never

import pytest

from pytest_snapaudit.arguments import factor_above_one, open_unit, positive_integer
from pytest_snapaudit.engine.claim import validate_delta, validate_epsilon
from pytest_snapaudit.engine.errors import InvalidClaim
from pytest_snapaudit.names import MARKER

DEFAULT_MAX_CHECKS = 1
_SPELLING = "@privacy_audit(epsilon=1.0, delta=1e-5)"


@dataclass(frozen=True)
class AuditSettings:
    """What the markers of a test ask for; None where no marker says anything."""

    epsilon: float | None = None
    delta: float | None = None
    confidence: float | None = None
    views: tuple[str, ...] | None = None
    n_trials: int | None = None
    n_snapshots: int | None = None
    max_checks: int | None = None
    detects: float | None = None


_KEYWORDS = tuple(field.name for field in fields(AuditSettings))


def privacy_audit(
    *misplaced: object,
    epsilon: float | None = None,
    delta: float | None = None,
    confidence: float | None = None,
    views: Collection[str] | None = None,
    n_trials: int | None = None,
    n_snapshots: int | None = None,
    max_checks: int | None = None,
    detects: float | None = None,
    **unknown: Never,
) -> pytest.MarkDecorator:
    """Mark a test, class or module as a privacy audit; the test must call ``privacy_auditor.check``.

    Works above or below ``@given``, on classes, in ``pytest.param(..., marks=...)`` and as ``pytestmark``.
    Each keyword left at None is inherited: from the next outer marker, then from the mechanism's own claim
    (``epsilon`` and ``delta``) or the session's options and defaults.

    Args:
        epsilon: the claim; finite, above 0.
        delta: the claim; in [0, 1), 0 if nothing states it.
        confidence: of this test as a whole, in (0, 1); ``--snapaudit-confidence`` wins.
        views: views to audit, a collection of ``"black-box"`` and ``"white-box"``.
        n_trials: trials per side that are counted; ``--snapaudit-trials`` wins.
        n_snapshots: clean outputs per side when the clean stage is random.
        max_checks: how many different configurations the test (inside ``@given``: one example) checks;
            they share its error probability. 1 unless stated.
        detects: fail unless the audit would have caught a mechanism whose epsilon is this many times worse.

    Raises:
        InvalidClaim: for a claim out of range, and for a bare ``@privacy_audit``.
        TypeError: for a value of the wrong type or a positional argument.
        ValueError: for any other value out of range.
    """
    if misplaced:
        if callable(misplaced[0]):
            name = getattr(misplaced[0], "__name__", "the test")
            msg = f"@privacy_audit needs parentheses: write {_SPELLING} (or @privacy_audit()) above {name}."
            raise InvalidClaim(msg)
        msg = f"privacy_audit takes keywords only, got {misplaced[0]!r}: write {_SPELLING}."
        raise TypeError(msg)
    given = {
        "epsilon": epsilon,
        "delta": delta,
        "confidence": confidence,
        "views": views,
        "n_trials": n_trials,
        "n_snapshots": n_snapshots,
        "max_checks": max_checks,
        "detects": detects,
        **unknown,
    }
    settings = _validated(given)
    stated = {name: getattr(settings, name) for name in _KEYWORDS if getattr(settings, name) is not None}
    marker: pytest.MarkDecorator = pytest.mark.privacy_audit(**stated)
    return marker


def settings_of(item: pytest.Item) -> AuditSettings | None:
    """What the markers of ``item`` ask for, keyword by keyword, the closest first; None without a marker.

    Raises:
        InvalidClaim, TypeError, ValueError: as :func:`privacy_audit`, for markers written by hand.
    """
    marks = _closest_first(item)
    if not marks:
        return None
    merged: dict[str, Any] = {}
    for mark in marks:
        if mark.args:
            msg = f"pytest.mark.privacy_audit takes keywords only, got {mark.args[0]!r}: write {_SPELLING}."
            raise TypeError(msg)
        for name, value in mark.kwargs.items():
            if value is not None or name not in _KEYWORDS:
                merged.setdefault(name, value)
    return _validated(merged)


def _closest_first(item: pytest.Item) -> list[pytest.Mark]:
    marks = list(item.iter_markers(MARKER))
    callspec = getattr(item, "callspec", None)
    of_parameters = [mark for mark in getattr(callspec, "marks", ()) if mark.name == MARKER]
    rest = [mark for mark in marks if not any(mark is other for other in of_parameters)]
    return [*of_parameters, *rest]


def _validated(given: Mapping[str, Any]) -> AuditSettings:
    owner = MARKER
    unknown = sorted(set(given) - set(_KEYWORDS))
    if unknown:
        close = difflib.get_close_matches(unknown[0], _KEYWORDS, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        msg = (
            f"{owner}: unknown keyword {unknown[0]!r} with value {given[unknown[0]]!r}. "
            f"Accepted: {', '.join(_KEYWORDS)}.{hint}"
        )
        raise TypeError(msg)

    def checked(name: str, validate: Any) -> Any:
        value = given.get(name)
        return None if value is None else validate(value)

    return AuditSettings(
        epsilon=checked("epsilon", validate_epsilon),
        delta=checked("delta", validate_delta),
        confidence=checked("confidence", lambda v: open_unit(owner, "confidence", v)),
        views=checked("views", _views),
        n_trials=checked("n_trials", lambda v: positive_integer(owner, "n_trials", v)),
        n_snapshots=checked("n_snapshots", lambda v: positive_integer(owner, "n_snapshots", v)),
        max_checks=checked("max_checks", lambda v: positive_integer(owner, "max_checks", v)),
        detects=checked("detects", lambda v: factor_above_one(owner, "detects", v)),
    )


def _views(value: Iterable[str]) -> tuple[str, ...]:
    from pytest_snapaudit.engine.mechanism import validate_views  # noqa: PLC0415 - NumPy, only when needed

    return validate_views(f"{MARKER}: views", value)
