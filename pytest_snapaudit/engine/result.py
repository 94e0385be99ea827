"""What an audit found: frozen, self-contained, made of built-in types."""

from __future__ import annotations

import enum
import math
from dataclasses import asdict, dataclass, field
from typing import Any

from pytest_snapaudit.engine.claim import PrivacyClaim


class Verdict(enum.StrEnum):
    """The outcome of one audit."""

    VIOLATION = "VIOLATION"
    CONSISTENT = "CONSISTENT"
    INCONCLUSIVE = "INCONCLUSIVE"


@dataclass(frozen=True)
class RateBounds:
    """The certified event's rates on the two sides: event counts, trials, and one-sided bounds.

    ``p`` is the rate on the side where the event is likelier, ``q`` the rate on the other side.
    """

    p: float
    q: float
    p_lower: float
    q_upper: float
    trials: int


@dataclass(frozen=True)
class ViewResult:
    """The bound reached on one view of the mechanism.

    Attributes:
        view: ``"black-box"`` (the released output) or ``"white-box"`` (before ``release``).
        gated: whether the claim covers this view; an uncovered view is measured, never gated.
        epsilon_lower: lower confidence bound on epsilon at the claim's delta.
        estimator: what reached that bound, in words ("event counts", "betting", "Gaussian trade-off", ...).
        attack: the distinguishing event in words.
        rates: rates behind the event-count bound of the best look, if any.
        conditional_on: what a model-based certificate rests on; empty for distribution-free bounds.
        refusals: why a model-based certificate that was declared does not apply.
    """

    view: str
    gated: bool
    epsilon_lower: float
    estimator: str
    attack: str
    rates: RateBounds | None = None
    conditional_on: str = ""
    refusals: tuple[str, ...] = ()


@dataclass(frozen=True)
class AuditResult:
    """Everything one audit learned; built-in types only, so it can cross a process boundary.

    Attributes:
        name: the mechanism's name, with the fields that identify its configuration.
        claim: what was judged: the claim under test, or the point of the mechanism's claim curve that was refuted
            where the claim itself was not.
        epsilon_lower: the largest bound over the views the claim covers (over all views if it covers none).
        max_detectable_epsilon: the largest epsilon this audit could have certified.
        n_trials: trials per side that were counted; tuning trials come on top.
        n_snapshots: clean outputs per side the bound rests on; 1 for a fixed clean output.
        smallest_factor_caught: how many times worse than measured the mechanism would have had to be
            to fail, ``claim.epsilon / epsilon_lower``; 1 if it failed, ``inf`` if no mechanism would have.
        reason: why the verdict is INCONCLUSIVE, and what would decide it; empty otherwise.
        alpha_spent: share of the error probability given to each gate, by name.
        diagnostics: observations that explain the verdict; they never gate.
        seed: the integers that, with the same inputs, reproduce this audit.
        reproducible: whether two draws from one seed were equal; False for noise from the operating system, whose
            borderline verdicts may change from run to run. None if nobody looked.
        elapsed: wall-clock seconds; excluded from equality.
    """

    name: str
    claim: PrivacyClaim
    confidence: float
    verdict: Verdict
    epsilon_lower: float
    max_detectable_epsilon: float
    smallest_factor_caught: float
    view: str
    estimator: str
    correction: str
    scope: str
    attack: str
    n_trials: int
    n_snapshots: int
    views: tuple[ViewResult, ...] = ()
    reason: str = ""
    alpha_spent: tuple[tuple[str, float], ...] = ()
    diagnostics: tuple[tuple[str, str], ...] = ()
    seed: tuple[int, ...] = ()
    reproducible: bool | None = None
    elapsed: float = field(default=0.0, compare=False)

    @property
    def violated(self) -> bool:
        """Whether the claim is refuted."""
        return self.verdict is Verdict.VIOLATION

    def to_dict(self) -> dict[str, Any]:
        """The result as nested built-in types, ready for JSON; infinite numbers become None."""
        plain: dict[str, Any] = _finite(asdict(self))
        plain["verdict"] = str(self.verdict)
        plain["alpha_spent"] = dict(self.alpha_spent)
        plain["diagnostics"] = dict(self.diagnostics)
        return plain


def _finite(plain: Any) -> Any:
    if isinstance(plain, dict):
        return {key: _finite(value) for key, value in plain.items()}
    if isinstance(plain, list | tuple):
        return type(plain)(_finite(value) for value in plain)
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain
