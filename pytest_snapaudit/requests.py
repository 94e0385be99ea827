"""One call of ``check`` or ``measure``: arguments, markers and options, resolved into one audit."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, TypedDict

from pytest_snapaudit import profile
from pytest_snapaudit.arguments import positive_integer
from pytest_snapaudit.claims import resolve_claim
from pytest_snapaudit.engine.audit import audit
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.mechanism import DEFAULT_TRIALS, Sampler, mechanism_name
from pytest_snapaudit.engine.result import AuditResult
from pytest_snapaudit.engine.screen import Screening, can_settle, screen
from pytest_snapaudit.engine.seeding import Digest, digest
from pytest_snapaudit.options import RunOptions
from pytest_snapaudit.session import RunningTest
from pytest_snapaudit.subjects import as_mechanism, attacks_on, cache_key, configuration_digest

__tracebackhide__ = True  # frames of this module say nothing to the author of a test

DEFAULT_SNAPSHOTS = 2_000


class AuditOptions(TypedDict, total=False):
    """Keywords of :meth:`~pytest_snapaudit.auditor.PrivacyAuditor.check`, explained there."""

    epsilon: float | None
    delta: float | None
    views: Any
    scope: str | None
    n_trials: int | None
    n_snapshots: int | None
    correction: str
    estimator: str
    name: str | None
    attacks: Any
    side_channels: Any
    claim_curve: Any
    stop_early: bool
    executor: Executor | None


@dataclass(frozen=True)
class AuditRequest:
    """One audit, but for the confidence it is to hold at.

    Attributes:
        mechanism, neighbours, claim: what is audited.
        options: further arguments of :func:`~pytest_snapaudit.engine.audit.audit`.
        executor: runs blocks of trials; no part of the identity.
        identity: digest of everything above that the verdict depends on.
        seed: run seed, and digests of the test, the audit's name and the identity.
    """

    mechanism: Any
    neighbours: Any
    claim: PrivacyClaim
    options: dict[str, Any]
    executor: Executor | None
    identity: Digest
    seed: tuple[int, ...]

    @property
    def label(self) -> str:
        """The name of the audit in reports."""
        return self.options["name"] or mechanism_name(self.mechanism)

    @property
    def n_trials(self) -> int:
        """Trials per side that certification counts."""
        of_kind = self.mechanism.default_trials if isinstance(self.mechanism, Sampler) else DEFAULT_TRIALS
        return int(self.options["n_trials"] or of_kind)

    def key(self) -> object:
        """What the verdict is remembered under."""
        return cache_key(self.identity, self.mechanism)

    def run(self, confidence: float) -> AuditResult:
        """Run the audit; the result depends on the request and ``confidence`` alone."""
        return audit(
            self.mechanism,
            self.neighbours,
            self.claim,
            confidence=confidence,
            seed=self.seed,
            executor=self.executor,
            **self.options,
        )

    def screen(self, alpha: float) -> Screening:
        """Look at the configuration cheaply, on a random stream of its own.

        Args:
            alpha: error probability that certification would have.
        """
        shared = ("n_snapshots", "views", "scope", "name", "attacks", "side_channels")
        return screen(
            self.mechanism,
            self.neighbours,
            self.claim,
            n_certify=self.n_trials,
            alpha=alpha,
            seed=self.seed,
            **{key: self.options[key] for key in shared},
        )

    def can_settle(self, alpha: float) -> bool:
        """Whether a screen could settle the audit."""
        return can_settle(self.claim, self.n_trials, alpha)

    def settled_by(self, screening: Screening, confidence: float) -> AuditResult:
        """The result of an audit that ends with its screen."""
        return screening.as_result(confidence=confidence, n_certify=self.n_trials, seed=self.seed)


def resolve(
    method: str,
    running: RunningTest,
    session: RunOptions,
    obj: Any,
    neighbours: Any,
    options: AuditOptions,
    *,
    in_example: bool,
) -> AuditRequest:
    """Resolve the arguments of :meth:`~pytest_snapaudit.auditor.PrivacyAuditor.check`.

    Args:
        method: its name, for messages.
        running: the test that asks; its markers and hooks are heard.
        session: options of the command line and the ini file.
        obj, neighbours, options: the arguments.
        in_example: whether it was called in a Hypothesis example.

    Raises:
        InvalidClaim: if nothing states a claim, or one is out of range.
        TypeError, ValueError: if another argument is not accepted.
    """
    refuse_unknown(method, options)
    name = options.get("name")
    if name is not None and not isinstance(name, str):
        msg = f"{method}: name must be a string, got {name!r} of type {type(name).__name__}."
        raise TypeError(msg)
    mechanism = as_mechanism(obj, running.item.config)
    settings = running.settings
    claim = resolve_claim(
        options.get("epsilon"), options.get("delta"), settings, mechanism, name or mechanism_name(mechanism)
    )
    asked_trials = _count(method, "n_trials", options.get("n_trials"))
    asked_rows = _count(method, "n_snapshots", options.get("n_snapshots"))
    of_profile = profile.TRIALS if in_example and profile.is_active() else None
    stated = session.cli_trials or asked_trials or settings.n_trials or session.ini_trials
    views = options.get("views")
    resolved: dict[str, Any] = {
        "n_trials": stated or of_profile,
        "n_snapshots": asked_rows or settings.n_snapshots or DEFAULT_SNAPSHOTS,
        "views": settings.views if views is None else views,
        "scope": options.get("scope") or "pipeline",
        "correction": options.get("correction", "auto"),
        "estimator": options.get("estimator", "auto"),
        "name": name,
        "attacks": attacks_on(mechanism, options.get("attacks", ()), running.item),
        "side_channels": options.get("side_channels", ()),
    }
    for optional in ("claim_curve", "stop_early"):
        if options.get(optional):
            resolved[optional] = options[optional]
    identity = configuration_digest(obj, mechanism, neighbours, claim, resolved)
    seed = (session.seed, digest(running.nodeid).value, digest(name or "").value, identity.value)
    return AuditRequest(mechanism, neighbours, claim, resolved, options.get("executor"), identity, seed)


_ELSEWHERE = {
    "claim": "; the claim is given as epsilon= and delta=, or as the mechanism's own claim.",
    "confidence": "; it belongs to the whole test: @privacy_audit(confidence=...).",
    "max_checks": "; it belongs to the whole test: @privacy_audit(max_checks=...).",
    "detects": "; it belongs to the whole test: @privacy_audit(detects=...).",
    "seed": "; seeds come from the run: pytest --snapaudit-seed=...",
    "trials": "; did you mean n_trials?",
}


def refuse_unknown(method: str, options: Mapping[str, Any]) -> None:
    """TypeError for an option that no audit takes, with the closest one that it does."""
    accepted = AuditOptions.__annotations__
    for keyword in options:
        if keyword not in accepted:
            near = difflib.get_close_matches(keyword, accepted, n=1)
            meant = _ELSEWHERE.get(keyword) or (f"; did you mean {near[0]}?" if near else ".")
            msg = f"{method} got an unknown argument {keyword}{meant} It takes {', '.join(accepted)}."
            raise TypeError(msg)


def _count(method: str, name: str, value: object) -> int | None:
    return None if value is None else positive_integer(method, name, value)
