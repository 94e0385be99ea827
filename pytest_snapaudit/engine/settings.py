"""What the caller of an audit chose, checked at the door."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from pytest_snapaudit.engine.attacks.fitting import SIDE_CHANNELS
from pytest_snapaudit.engine.attacks.scores import Score, UserScore
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.claim_curve import ClaimCurve
from pytest_snapaudit.engine.mechanism import DEFAULT_TRIALS, Sampler
from pytest_snapaudit.engine.seeding import as_entropy

CORRECTIONS = ("auto", "clopper-pearson", "bernstein", "betting")
ESTIMATORS = ("auto", "dp", "gdp")
SCOPES = ("pipeline", "noise")


@dataclass(frozen=True)
class Settings:
    """What the caller chose; see :func:`~pytest_snapaudit.engine.audit.audit`."""

    claim: PrivacyClaim
    alpha: float
    n_trials: int
    n_snapshots: int
    correction: str
    estimator: str
    entropy: tuple[int, ...]
    executor: Executor | None
    attacks: tuple[Score, ...] = ()
    side_channels: tuple[str, ...] = ()
    curve: ClaimCurve | None = None
    stop_early: bool = False


def read_settings(
    mechanism: Any,
    claim: Any,
    confidence: Any,
    n_trials: Any,
    n_snapshots: Any,
    correction: str,
    estimator: str,
    seed: Any,
    attacks: Any,
    side_channels: Any,
    executor: Any,
    stop_early: Any,
) -> Settings:
    """The arguments of an audit, each checked.

    Raises:
        TypeError, ValueError: an argument of the wrong type or out of range.
    """
    if not isinstance(claim, PrivacyClaim):
        msg = f"claim must be a PrivacyClaim, got {claim!r} of type {type(claim).__name__}."
        raise TypeError(msg)
    if n_trials is None:
        n_trials = mechanism.default_trials if isinstance(mechanism, Sampler) else DEFAULT_TRIALS
    validate_choice("correction", correction, CORRECTIONS)
    validate_choice("estimator", estimator, ESTIMATORS)
    if executor is not None and not callable(getattr(executor, "map", None)):
        msg = f"executor must be a concurrent.futures executor, got {executor!r}."
        raise TypeError(msg)
    return Settings(
        claim=claim,
        alpha=min(1.0 - validate_confidence(confidence), math.nextafter(1.0, 0.0)),
        n_trials=validate_count("n_trials", n_trials),
        n_snapshots=validate_count("n_snapshots", n_snapshots),
        correction=correction,
        estimator=estimator,
        entropy=as_entropy(seed),
        executor=executor,
        attacks=validate_attacks(attacks),
        side_channels=_validate_side_channels(side_channels),
        stop_early=_validate_flag("stop_early", stop_early),
    )


def _validate_flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        msg = f"{name} must be True or False, got {value!r}."
        raise TypeError(msg)
    return value


def validate_confidence(value: Any) -> float:
    """Return ``value`` as a float if it lies in (0, 1)."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 < float(value) < 1.0:
        msg = f"confidence must be a number in (0, 1), got {value!r}."
        raise ValueError(msg)
    return float(value)


def validate_count(name: str, value: Any, least: int = 100) -> int:
    """Return ``value`` as an int if it is an integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        msg = f"{name} must be an integer of at least {least}, got {value!r}."
        raise ValueError(msg)
    return int(value)


def validate_choice(name: str, value: Any, accepted: tuple[str, ...]) -> None:
    """Refuse ``value`` unless it is one of ``accepted``."""
    if not isinstance(value, str) or value not in accepted:
        msg = f"{name} must be one of {', '.join(map(repr, accepted))}, got {value!r}."
        raise ValueError(msg)


def validate_attacks(attacks: Any) -> tuple[Score, ...]:
    """User-supplied scores as :class:`Score` objects."""
    if isinstance(attacks, Mapping):
        attacks = [UserScore(fn, str(label)) for label, fn in attacks.items()]
    if not isinstance(attacks, Sequence) or isinstance(attacks, str):
        msg = f"attacks must be a mapping of name to function, got {attacks!r}."
        raise TypeError(msg)
    for attack in attacks:
        if not isinstance(attack, Score) or (isinstance(attack, UserScore) and not callable(attack.fn)):
            msg = f"attacks must be a mapping of name to function, got {attack!r}."
            raise TypeError(msg)
    return tuple(attacks)


def _validate_side_channels(side_channels: Any) -> tuple[str, ...]:
    if isinstance(side_channels, str) or not isinstance(side_channels, Sequence | set | frozenset):
        msg = f"side_channels must be a collection of {SIDE_CHANNELS}, got {side_channels!r}."
        raise TypeError(msg)
    for channel in side_channels:
        validate_choice("side_channels", channel, SIDE_CHANNELS)
    return tuple(channel for channel in SIDE_CHANNELS if channel in side_channels)
