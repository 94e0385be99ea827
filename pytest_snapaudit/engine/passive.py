"""The passive baseline: independent end-to-end runs, an attack on each, exact bounds on its two rates.

Every run evaluates the clean stage anew and draws noise once, so that each trial costs the calls of the model that
an outsider's query would cost. The trials of a side are independent, and one event is counted on them: the bounds
are Clopper and Pearson's, each with half of the error probability.

Source: the SnapAudit paper, section 2 and appendix C.1 (passive auditing).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from pytest_snapaudit.engine.attacks.scores import MISSING
from pytest_snapaudit.engine.attacks.selection import approximate_rate_bounds
from pytest_snapaudit.engine.bounds import pair_rate_bounds
from pytest_snapaudit.engine.clean_stage import SIDES
from pytest_snapaudit.engine.end_to_end import PassiveAttack, end_to_end, judge
from pytest_snapaudit.engine.estimators import epsilon_from_rates, max_detectable_epsilon
from pytest_snapaudit.engine.mechanism import BLACK_BOX, mechanism_name
from pytest_snapaudit.engine.result import RateBounds
from pytest_snapaudit.engine.seeding import as_entropy
from pytest_snapaudit.engine.settings import validate_choice, validate_confidence, validate_count

_MAX_THRESHOLDS = 400
_ESTIMATORS = ("dp", "gdp")


@dataclass(frozen=True)
class PassiveResult:
    """What a passive audit found.

    Attributes:
        name: the mechanism.
        attack: the event that was counted, in words, with the side on which it is supposed to be likelier.
        view: ``"black-box"`` or ``"white-box"``.
        epsilon_lower: lower bound on epsilon at ``delta``; exceeds the true one with probability at most
            ``1 - confidence``.
        rates: the event's counted rates, their bounds, and how many runs a side were counted.
        runs: end-to-end runs per side, those for tuning included.
        tuning_runs: runs per side on which the event was chosen; never counted.
        model_calls: evaluations of the clean stage, on both sides together. A mechanism with T partitions asks
            its model T times in each.
        max_detectable_epsilon: the bound if every counted run on one side showed the event and none on the other.
        delta, confidence, estimator, seed: as given.
        elapsed: wall-clock seconds; excluded from equality.
    """

    name: str
    attack: str
    view: str
    epsilon_lower: float
    rates: RateBounds
    runs: int
    tuning_runs: int
    model_calls: int
    max_detectable_epsilon: float
    delta: float
    confidence: float
    estimator: str
    seed: tuple[int, ...]
    elapsed: float = field(default=0.0, compare=False)


@dataclass(frozen=True)
class _Event:
    """A threshold on the attack's score; ``above`` counts what exceeds it."""

    threshold: float
    above: bool
    likelier_on: int

    def count(self, scores: NDArray[np.float64]) -> int:
        above = int(np.count_nonzero(scores > self.threshold))
        return above if self.above else len(scores) - above


def passive_audit(
    mechanism: Any,
    neighbours: Any,
    *,
    attack: PassiveAttack,
    runs: int = 2_000,
    tuning_runs: int = 0,
    confidence: float = 0.95,
    delta: float | None = None,
    estimator: str = "dp",
    view: str = BLACK_BOX,
    seed: Any = 0,
    name: str | None = None,
) -> PassiveResult:
    """Bound the privacy loss on one neighbouring pair from below, by end-to-end runs alone.

    Args:
        mechanism: a :class:`~pytest_snapaudit.engine.mechanism.Mechanism` or
            :class:`~pytest_snapaudit.engine.mechanism.Sampler`.
        neighbours: a (reference, canary) pair of datasets; the clean stage is evaluated once per run, also where
            it is declared deterministic. Or a :class:`~pytest_snapaudit.engine.snapshot.SnapshotPair`: each run
            takes a recorded clean output of its own, at random, and the recorded evaluations are the runs' cost.
        attack: given n outputs, says of each whether it looks like the canary's (booleans), or how much (numbers).
            Arrays of numbers arrive as (n, d) floats, as in ``attacks=`` of an audit, other outputs as they are.
        runs: end-to-end runs per side.
        tuning_runs: the first of them, set apart. An attack that returns numbers needs some: threshold and
            direction are chosen on them and counted on the others. One that returns booleans needs none.
        confidence: γ, in (0, 1), of the bound; half of 1 − γ goes to each of the two rates.
        delta: δ in [0, 1); that of ``mechanism.claim`` by default.
        estimator: ``"dp"``, or ``"gdp"``, which holds for mechanisms with a Gaussian trade-off only.
        view: what the attack sees: the released outputs, or (``"white-box"``) what ``release`` is given.
        seed: a non-negative integer or a sequence of them; equal inputs give equal results.
        name: printed in reports.

    Raises:
        TypeError, ValueError: an argument of the wrong type or out of range, fewer recorded outputs than runs, or
            an attack that needs tuning runs and has none.
        MechanismError: the mechanism raises, or returns a wrong number of outputs.
        VacuousAudit: equal neighbouring datasets.
    """
    started = time.perf_counter()
    label = name or mechanism_name(mechanism)
    runs = validate_count("runs", runs)
    tuning = _validate_tuning(tuning_runs, runs)
    alpha = (1.0 - validate_confidence(confidence)) / 2.0
    validate_choice("estimator", estimator, _ESTIMATORS)
    delta = _validate_delta(mechanism, delta, label)
    if estimator == "gdp" and delta == 0.0:
        msg = (
            "estimator='gdp' needs delta above 0: a Gaussian trade-off satisfies no pure claim, its epsilon at "
            "delta = 0 is infinite; give delta=..., or use estimator='dp'."
        )
        raise ValueError(msg)
    entropy = as_entropy(seed)
    if not callable(attack):
        msg = f"attack must be a callable from n outputs to n booleans or numbers, got {attack!r}."
        raise TypeError(msg)
    sides = end_to_end(mechanism, neighbours, label, runs, view, entropy)
    judged = [judge(attack, source, runs, entropy, side, label) for side, source in enumerate(sides)]
    kinds = {kind for _, kind in judged}
    scores = [values for values, _ in judged]
    if all((values == MISSING).all() for values in scores):
        msg = "attack returns NaN for every output of both sides; return a number that is larger for the canary's."
        raise ValueError(msg)
    event = _Event(0.5, above=True, likelier_on=1)
    if kinds != {"b"}:
        if tuning == 0:
            msg = (
                "attack returns numbers, and a threshold chosen on the runs that are counted proves nothing: give "
                "tuning_runs=..., or an attack that returns booleans."
            )
            raise ValueError(msg)
        event = _choose([values[:tuning] for values in scores], runs - tuning, alpha, delta, estimator)
    counts = [event.count(values[tuning:]) for values in scores]
    rates = _rates(counts[event.likelier_on], counts[1 - event.likelier_on], runs - tuning, alpha)
    return PassiveResult(
        name=label,
        attack=_describe(attack, event, fixed=kinds == {"b"}),
        view=view,
        epsilon_lower=epsilon_from_rates(rates.p_lower, rates.q_upper, delta, estimator),
        rates=rates,
        runs=runs,
        tuning_runs=tuning,
        model_calls=2 * runs,
        max_detectable_epsilon=_ceiling(runs - tuning, alpha, delta, estimator),
        delta=delta,
        confidence=float(confidence),
        estimator=estimator,
        seed=entropy,
        elapsed=time.perf_counter() - started,
    )


def _choose(
    tuning: list[NDArray[np.float64]], counted: int, alpha: float, delta: float, estimator: str
) -> _Event:
    """The threshold and direction whose bound is largest if the counted runs repeat the rates of the tuning runs."""
    n = len(tuning[0])
    thresholds = np.unique(np.concatenate(tuning))
    if len(thresholds) > _MAX_THRESHOLDS:
        thresholds = thresholds[np.linspace(0, len(thresholds) - 1, _MAX_THRESHOLDS).astype(int)]
    above = [1.0 - np.searchsorted(np.sort(side), thresholds, side="right") / n for side in tuning]
    best, largest = _Event(float(thresholds[0]), above=True, likelier_on=1), -np.inf
    for up in (True, False):
        rates = above if up else [1.0 - rate for rate in above]
        for side in (1, 0):
            values = _values(
                rates[side] * counted, rates[1 - side] * counted, counted, alpha, delta, estimator
            )
            top = int(np.argmax(values))
            if values[top] > largest:
                best, largest = _Event(float(thresholds[top]), above=up, likelier_on=side), values[top]
    return best


def _values(
    k_p: NDArray[np.float64],
    k_q: NDArray[np.float64],
    n: int,
    alpha: float,
    delta: float,
    estimator: str,
) -> NDArray[np.float64]:
    """A quantity that ranks events as their bounds would."""
    lower, upper = approximate_rate_bounds(k_p, k_q, n, alpha, alpha)
    with np.errstate(divide="ignore"):
        if estimator == "gdp":
            ranks = ndtri(np.minimum(lower, 1.0)) - ndtri(upper)
        else:
            ranks = np.log(np.maximum(lower - delta, 0.0)) - np.log(upper)
    return np.asarray(np.nan_to_num(ranks, nan=-np.inf, neginf=-np.inf, posinf=np.inf))


def _rates(k_p: int, k_q: int, n: int, alpha: float) -> RateBounds:
    lower, upper = pair_rate_bounds(k_p, k_q, n, alpha, alpha)
    return RateBounds(k_p / n, k_q / n, float(lower), float(upper), n)


def _ceiling(n: int, alpha: float, delta: float, estimator: str) -> float:
    if estimator == "dp":
        return max_detectable_epsilon(n, delta, alpha, alpha)
    lower, upper = pair_rate_bounds(n, 0, n, alpha, alpha)
    return epsilon_from_rates(float(lower), float(upper), delta, estimator)


def _describe(attack: PassiveAttack, event: _Event, *, fixed: bool) -> str:
    owner = getattr(attack, "__self__", attack)
    named = getattr(owner, "name", None) or getattr(attack, "__qualname__", type(attack).__name__)
    what = str(named).replace("<locals>.", "")
    if not fixed:
        what += f" {'above' if event.above else 'at most'} {event.threshold:.6g}"
    return f"{what}, likelier on the {SIDES[event.likelier_on]}"


def _validate_tuning(value: Any, runs: int) -> int:
    tuning = validate_count("tuning_runs", value, least=0)
    if runs - tuning < 1:
        msg = f"tuning_runs must leave some of the {runs} runs to be counted, got {value!r}."
        raise ValueError(msg)
    return tuning


def _validate_delta(mechanism: Any, delta: Any, label: str) -> float:
    if delta is None:
        claim = getattr(mechanism, "claim", None)
        if claim is None:
            msg = f"{label} makes no claim to take delta from; give delta=... (0 for pure differential privacy)."
            raise ValueError(msg)
        delta = claim.delta if hasattr(claim, "delta") else claim[1]
    if isinstance(delta, bool) or not isinstance(delta, int | float | np.number) or not 0.0 <= delta < 1.0:
        msg = f"delta must be a number in [0, 1), got {delta!r}."
        raise ValueError(msg)
    return float(delta)
