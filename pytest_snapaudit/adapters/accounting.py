"""Claims of dp_accounting: an event, such as 100 steps of a subsampled Gaussian, as the (ε, δ) it composes to.

The accountants return upper bounds, so that a claim taken from them is one that the mechanism must keep.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

from pytest_snapaudit.adapters.conversions import positive_delta
from pytest_snapaudit.engine.claim import PrivacyClaim, validate_epsilon

__tracebackhide__ = True  # frames of this module say nothing to the author of a test

RELATIONS = {
    "add-remove": "ADD_OR_REMOVE_ONE",
    "replace": "REPLACE_ONE",
    "replace-special": "REPLACE_SPECIAL",
}
"""Neighbouring relations, and what dp_accounting calls them."""


def claim_of_event(
    event: Any,
    *,
    delta: float | None = None,
    epsilon: float | None = None,
    relation: str = "add-remove",
    accountant: Callable[[], Any] | None = None,
) -> PrivacyClaim:
    """What a ``DpEvent`` promises, at a given delta or a given epsilon.

    Args:
        event: of ``dp_accounting``.
        delta: in (0, 1); the claim is the smallest epsilon the accountant gives.
        epsilon: finite and at least 0; the claim is the smallest delta the accountant gives.
        relation: ``"add-remove"``, ``"replace"`` or ``"replace-special"`` (a record becomes a null record).
        accountant: a function that returns a fresh accountant; ``relation`` is then its business. By default the
            accountant of privacy loss distributions if it supports the event, else the one of Rényi divergences.

    Raises:
        ImportError: dp_accounting is not installed.
        TypeError: ``event`` is not an event.
        ValueError: both or neither of ``delta`` and ``epsilon``; an event no accountant supports; no finite epsilon.
        InvalidClaim: a value out of range.

    Example::

        event = SelfComposedDpEvent(PoissonSampledDpEvent(0.1, GaussianDpEvent(1.0)), 10)
        privacy_auditor.check(training, neighbours, **vars(claim_of_event(event, delta=1e-5)))
    """
    if (delta is None) == (epsilon is None):
        msg = f"claim_of_event takes delta or epsilon, one of them, got delta={delta!r} and epsilon={epsilon!r}."
        raise ValueError(msg)
    if delta is None:
        at = validate_epsilon(epsilon)
        composed = _composed(event, relation, accountant)
        return PrivacyClaim(at, float(composed.get_delta(at)))
    at = positive_delta("claim_of_event", delta)
    found = float(_composed(event, relation, accountant).get_epsilon(at))
    if not math.isfinite(found):
        msg = (
            f"claim_of_event: no finite epsilon holds for {event!r} at delta={at:g}; give a larger delta if it has "
            "noise, and no claim if it has none."
        )
        raise ValueError(msg)
    return PrivacyClaim(found, at)


def curve_of_event(
    event: Any, *, relation: str = "add-remove", accountant: Callable[[], Any] | None = None
) -> Callable[[float], float]:
    """δ as a function of ε for a ``DpEvent``, to be a mechanism's ``claim_curve``; arguments as above."""
    composed = _composed(event, relation, accountant)
    return lambda epsilon: float(composed.get_delta(epsilon))


def as_mechanism(obj: object) -> None:
    """Refuse an event, which is a claim and not a mechanism.

    Raises:
        TypeError: always.
    """
    msg = (
        f"{type(obj).__name__} of dp_accounting says what a mechanism promises and draws nothing: give check the "
        "mechanism, and the claim as epsilon and delta of claim_of_event(event, delta=1e-5), after "
        "from pytest_snapaudit.adapters.accounting import claim_of_event."
    )
    raise TypeError(msg)


def _composed(event: Any, relation: str, accountant: Callable[[], Any] | None) -> Any:
    library = _library()
    if not isinstance(event, library.DpEvent):
        msg = f"event must be a dp_accounting DpEvent, got {event!r} of type {type(event).__name__}."
        raise TypeError(msg)
    if not isinstance(relation, str) or relation not in RELATIONS:
        msg = f"relation must be one of {', '.join(map(repr, RELATIONS))}, got {relation!r}."
        raise ValueError(msg)
    if accountant is not None and not callable(accountant):
        msg = (
            "accountant must be a function that returns a fresh accountant, such as the class "
            f"{type(accountant).__name__} itself, got {accountant!r}."
        )
        raise TypeError(msg)
    neighbouring = library.NeighboringRelation[RELATIONS[relation]]
    candidates: list[Callable[[], Any]] = (
        [accountant]
        if accountant is not None
        else [
            lambda: importlib.import_module("dp_accounting.pld").PLDAccountant(neighbouring),
            lambda: importlib.import_module("dp_accounting.rdp").RdpAccountant(
                neighboring_relation=neighbouring
            ),
        ]
    )
    for build in candidates:
        fresh = build()
        if not hasattr(fresh, "supports") or not hasattr(fresh, "compose"):
            msg = f"accountant must return an accountant of dp_accounting, got {fresh!r}."
            raise TypeError(msg)
        if fresh.supports(event):
            return fresh.compose(event)
    msg = f"no accountant supports {event!r} for the relation {relation!r}; give one: accountant=lambda: ..."
    raise ValueError(msg)


def _library() -> Any:
    try:
        return importlib.import_module("dp_accounting")
    except ImportError as error:
        msg = f"claims of accounting events need dp_accounting ({error}): pip install dp-accounting."
        raise ImportError(msg) from error
