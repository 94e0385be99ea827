"""The privacy claim under test."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

from pytest_snapaudit.engine.errors import InvalidClaim


def _as_real(name: str, value: object, accepted: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        msg = f"{name} must be {accepted}, got {value!r} of type {type(value).__name__}."
        raise InvalidClaim(msg)
    try:
        return float(value)
    except OverflowError:
        return math.inf


def validate_epsilon(value: object) -> float:
    """Return ``value`` as a float if it is a finite number at least 0, else raise :class:`InvalidClaim`."""
    accepted = "a finite number above 0"
    epsilon = _as_real("epsilon", value, accepted)
    if not math.isfinite(epsilon) or epsilon < 0:
        msg = f"epsilon must be {accepted}, got {value!r}."
        raise InvalidClaim(msg)
    return epsilon


def validate_delta(value: object) -> float:
    """Return ``value`` as a float if it lies in [0, 1), else raise :class:`InvalidClaim`."""
    accepted = "a number in [0, 1)"
    delta = _as_real("delta", value, accepted)
    if not 0.0 <= delta < 1.0:
        msg = f"delta must be {accepted}, got {value!r}."
        raise InvalidClaim(msg)
    return delta


@dataclass(frozen=True)
class PrivacyClaim:
    """(ε, δ)-differential privacy for one pair of neighbouring datasets.

    Args:
        epsilon: finite and positive; 0 is accepted only together with a positive ``delta``
            (then the claim bounds the total variation distance by ``delta``).
        delta: in [0, 1).

    Raises:
        InvalidClaim: if either value is out of range or not a number.
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        epsilon = validate_epsilon(self.epsilon)
        delta = validate_delta(self.delta)
        if epsilon == 0.0 and delta == 0.0:
            msg = (
                "epsilon must be a finite number above 0, got 0 with delta=0: that claims an output "
                "independent of the data; give a positive epsilon, or a positive delta."
            )
            raise InvalidClaim(msg)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta)

    def __str__(self) -> str:
        """The claim as printed in reports, for example ``(1, 1e-05)``."""
        return f"({self.epsilon:g}, {self.delta:g})"
