"""Area under the ROC curve of a membership attack, with a confidence interval (SnapAudit, Tables 12 and 13)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import ndtri

METHODS = ("exact", "delong")


@dataclass(frozen=True)
class MembershipAUC:
    """AUC of an attack.

    Args:
        auc: probability that a context with the canary scores higher than one without, plus half the
            probability that they tie.
        lower: lower end of the confidence interval.
        upper: upper end.
        confidence: of the two-sided interval.
        method: ``"exact"`` or ``"delong"``.
        sizes: numbers of contexts with and without the canary.
    """

    auc: float
    lower: float
    upper: float
    confidence: float
    method: str
    sizes: tuple[int, int]

    @property
    def at_chance(self) -> bool:
        """Whether the interval holds 0.5: nothing is shown either way."""
        return self.lower <= 0.5 <= self.upper

    def __str__(self) -> str:
        return f"{self.auc:.2f} [{self.lower:.2f}, {self.upper:.2f}]"


def membership_auc(
    present: ArrayLike, absent: ArrayLike, *, confidence: float = 0.95, method: str = "exact"
) -> MembershipAUC:
    """AUC of scores, with a two-sided confidence interval.

    ``"exact"`` holds for every distribution of the scores and every number of contexts. The AUC is an average
    of averages over k = min(m, n) independent pairs (Hoeffding 1963, section 5b), so the Chernoff bound of k
    independent variables in [0, 1] applies: the interval holds all A with
    ``k · kl(auc, A) <= log(2 / (1 - confidence))``, kl the divergence of two coins. At an AUC of 1 it is the
    Clopper–Pearson interval of k successes. ``"delong"`` (DeLong et al. 1988) is narrower, and right for many
    contexts alone: at an AUC of 0 or 1 it has no width.

    Args:
        present: (m,) scores of contexts with the canary; larger means "present".
        absent: (n,) scores of contexts without it.
        confidence: of the two-sided interval, in (0, 1).
        method: ``"exact"`` or ``"delong"``.

    Raises:
        ValueError: scores are missing or not numbers, or confidence or method is not accepted; ``"delong"``
            needs two contexts a side.
    """
    ones, zeros = _scores("present", present), _scores("absent", absent)
    if not 0 < confidence < 1:
        msg = f"membership_auc: confidence must lie in (0, 1), got {confidence!r}."
        raise ValueError(msg)
    if method not in METHODS:
        msg = f"membership_auc: method must be one of {', '.join(METHODS)}; got {method!r}."
        raise ValueError(msg)
    wins = (ones[:, None] > zeros) + 0.5 * (ones[:, None] == zeros)
    auc = float(wins.mean())
    lower, upper = (_exact if method == "exact" else _delong)(wins, auc, 1 - confidence)
    return MembershipAUC(auc, lower, upper, float(confidence), method, (len(ones), len(zeros)))


def _scores(name: str, values: ArrayLike) -> NDArray[np.float64]:
    scores = np.asarray(values, np.float64)
    if scores.ndim != 1 or not len(scores) or np.isnan(scores).any():
        msg = f"membership_auc: {name} must be at least one score, shape (n,), none of them nan; got {values!r}."
        raise ValueError(msg)
    return scores


def _exact(wins: NDArray[np.float64], auc: float, alpha: float) -> tuple[float, float]:
    limit = math.log(2 / alpha) / int(min(wins.shape))

    def excess(value: float) -> float:
        return _divergence(auc, value) - limit

    return _root(excess, auc, 0.0), _root(excess, auc, 1.0)


def _root(excess: Callable[[float], float], inside: float, end: float) -> float:
    if inside == end or excess(abs(end - 1e-15)) <= 0:
        return end
    return float(brentq(excess, inside, abs(end - 1e-15), xtol=1e-12))


def _divergence(p: float, q: float) -> float:
    """Kullback–Leibler divergence of a coin with probability p from one with q, in nats."""
    heads = p * math.log(p / q) if p > 0 else 0.0
    tails = (1 - p) * math.log((1 - p) / (1 - q)) if p < 1 else 0.0
    return float(heads + tails)


def _delong(wins: NDArray[np.float64], auc: float, alpha: float) -> tuple[float, float]:
    if min(wins.shape) < 2:
        msg = f"membership_auc: delong needs two contexts a side, got {wins.shape}; use method='exact'."
        raise ValueError(msg)
    variance = sum(wins.mean(axis=1 - side).var(ddof=1) / wins.shape[side] for side in (0, 1))
    half = float(ndtri(1 - alpha / 2) * math.sqrt(variance))
    return max(0.0, auc - half), min(1.0, auc + half)


STATISTICS = ("voting", "product of experts", "keywords", "embedding")
"""Mechanisms whose clean outputs tell about the canary, in the order of the paper's Table 12."""


def clean_statistic(mechanism: str, scores: ArrayLike, *, clip: float = 5.0) -> NDArray[np.float64]:
    """What the clean output of a mechanism says about the canary, from one score per partition.

    - ``voting``: how many partitions vote Yes.
    - ``product of experts``: sum of the scores, each clipped to [-clip, clip].
    - ``keywords``: in which share of the answers the keyword Yes occurs.
    - ``embedding``: which of the two signal sentences the single partition (T = 1), the first, answers with.

    Args:
        mechanism: one of :data:`STATISTICS`.
        scores: (n, T) scores of n contexts; above 0 a partition answers Yes; the canary's is the first.
        clip: bound Γ on one expert.

    Returns:
        (n,) statistics; larger means "present".

    Raises:
        ValueError: an unknown mechanism, scores of another shape or NaN, or a clip that is not above 0.
    """
    values = np.asarray(scores, np.float64)
    if values.ndim != 2 or 0 in values.shape:
        msg = f"clean_statistic: scores must have shape (n, T), got {values.shape}."
        raise ValueError(msg)
    if np.isnan(values).any():
        msg = f"clean_statistic: scores must be numbers without NaN, got {scores!r}."
        raise ValueError(msg)
    if not clip > 0:
        msg = f"clean_statistic: clip must be above 0, got {clip!r}."
        raise ValueError(msg)
    if mechanism not in STATISTICS:
        msg = f"clean_statistic: mechanism must be one of {', '.join(STATISTICS)}; got {mechanism!r}."
        raise ValueError(msg)
    answers = (values > 0).astype(np.float64)
    if mechanism == "embedding":
        return answers[:, 0]
    if mechanism == "product of experts":
        return np.asarray(np.clip(values, -clip, clip).sum(axis=1))
    return np.asarray(answers.sum(axis=1) if mechanism == "voting" else answers.mean(axis=1))
