"""Which claim is tested: argument of ``check``, then markers, then the mechanism's own."""

from __future__ import annotations

from pytest_snapaudit.engine.claim import PrivacyClaim, validate_delta, validate_epsilon
from pytest_snapaudit.engine.errors import InvalidClaim
from pytest_snapaudit.markers import AuditSettings

__tracebackhide__ = True  # frames of this module say nothing to the author of a test


def resolve_claim(
    epsilon: object, delta: object, settings: AuditSettings, mechanism: object, name: str
) -> PrivacyClaim:
    """Resolve the claim keyword by keyword.

    Args:
        epsilon: argument of ``check``, or None.
        delta: argument of ``check``, or None.
        settings: what the markers ask for.
        mechanism: its ``claim``, if any, is the last resort.
        name: the mechanism's name, for messages.

    Raises:
        InvalidClaim: if nothing states an epsilon, or a value is out of range.
    """
    stated_epsilon = settings.epsilon if epsilon is None else validate_epsilon(epsilon)
    stated_delta = settings.delta if delta is None else validate_delta(delta)
    if stated_epsilon is None or stated_delta is None:
        own = _own_claim(mechanism, name)
        if own is not None:
            stated_epsilon = own[0] if stated_epsilon is None else stated_epsilon
            stated_delta = own[1] if stated_delta is None else stated_delta
    if stated_epsilon is None:
        msg = (
            f"no privacy claim to test for {name}: mark the test @privacy_audit(epsilon=1.0, delta=1e-5), "
            "pass check(..., epsilon=1.0, delta=1e-5), or give the mechanism claim = PrivacyClaim(1.0, 1e-5)."
        )
        raise InvalidClaim(msg)
    return PrivacyClaim(stated_epsilon, 0.0 if stated_delta is None else stated_delta)


def _own_claim(mechanism: object, name: str) -> tuple[float, float] | None:
    claim = getattr(mechanism, "claim", None)
    if claim is None:
        return None
    if hasattr(claim, "epsilon") and hasattr(claim, "delta"):
        pair = (claim.epsilon, claim.delta)
    elif isinstance(claim, tuple | list) and len(claim) == 2:
        pair = (claim[0], claim[1])
    else:
        msg = (
            f"{name}: claim must be a PrivacyClaim or an (epsilon, delta) pair, got {claim!r} "
            f"of type {type(claim).__name__}."
        )
        raise InvalidClaim(msg)
    return validate_epsilon(pair[0]), validate_delta(pair[1])
