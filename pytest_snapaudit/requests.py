"""One call of ``check`` or ``measure``: arguments, markers and options, resolved into one audit."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

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
from pytest_snapaudit.subjects import as_mechanism, cache_key, configuration_digest

__tracebackhide__ = True  # frames of this module say nothing to the author of a test

DEFAULT_SNAPSHOTS = 2_000


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
    running: RunningTest,
    session: RunOptions,
    obj: Any,
    neighbours: Any,
    *,
    epsilon: object,
    delta: object,
    views: Any,
    scope: str | None,
    n_trials: object,
    n_snapshots: object,
    correction: str,
    estimator: str,
    name: object,
    attacks: Any,
    side_channels: Any,
    executor: Executor | None,
    in_example: bool,
) -> AuditRequest:
    """Resolve the arguments of :meth:`~pytest_snapaudit.auditor.PrivacyAuditor.check`.

    Args:
        in_example: whether it was called in a Hypothesis example.

    Raises:
        InvalidClaim: if nothing states a claim, or one is out of range.
        TypeError, ValueError: if another argument is not accepted.
    """
    if name is not None and not isinstance(name, str):
        msg = f"check: name must be a string, got {name!r} of type {type(name).__name__}."
        raise TypeError(msg)
    mechanism = as_mechanism(obj, running.item.config)
    settings = running.settings
    claim = resolve_claim(epsilon, delta, settings, mechanism, name or mechanism_name(mechanism))
    asked_trials = None if n_trials is None else positive_integer("check", "n_trials", n_trials)
    asked_rows = None if n_snapshots is None else positive_integer("check", "n_snapshots", n_snapshots)
    of_profile = profile.TRIALS if in_example and profile.is_active() else None
    stated = session.cli_trials or asked_trials or settings.n_trials or session.ini_trials
    options: dict[str, Any] = {
        "n_trials": stated or of_profile,
        "n_snapshots": asked_rows or settings.n_snapshots or DEFAULT_SNAPSHOTS,
        "views": settings.views if views is None else views,
        "scope": "pipeline" if scope is None else scope,
        "correction": correction,
        "estimator": estimator,
        "name": name,
        "attacks": attacks,
        "side_channels": side_channels,
    }
    identity = configuration_digest(obj, mechanism, neighbours, claim, options)
    seed = (session.seed, digest(running.nodeid).value, digest(name or "").value, identity.value)
    return AuditRequest(mechanism, neighbours, claim, options, executor, identity, seed)
