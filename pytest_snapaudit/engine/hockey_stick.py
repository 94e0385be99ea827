"""Exact epsilon and delta of a pair of laws given by the probabilities of finitely many outcomes.

The hockey-stick divergence ``δ(ε) = Σ (p_i − e^ε q_i)₊`` is the smallest delta at which the pair is ε-close in one
direction. Merging or dropping outcomes of a pair only lowers it, so any partition of a continuous pair gives
lower bounds.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def delta_of_masses(p: FloatArray, q: FloatArray, epsilon: float) -> float:
    """``Σ (p − e^ε q)₊``, of (k,) probabilities of one law over the other, for ``epsilon`` >= 0."""
    scaled = np.exp(np.minimum(epsilon, 700.0)) * q
    return float(np.maximum(p - scaled, 0.0).sum())


def epsilon_of_masses(p: FloatArray, q: FloatArray, delta: float, rounding: float = 0.0) -> float:
    """The smallest ε >= 0 with ``delta_of_masses(p, q, ε) <= delta``, exactly.

    It is the largest ``ln((P(S) − δ) / Q(S))`` over events S, attained by an event of large ratios p/q.

    Args:
        p, q: (k,) probabilities.
        delta: in [0, 1].
        rounding: how far the probability of an event may be off; it is charged against the result.

    Returns:
        ``inf`` if outcomes that q rules out have more probability than ``delta`` under p.
    """
    some = p > 0.0
    p, q = p[some], q[some]
    with np.errstate(divide="ignore"):
        order = np.argsort(-(np.log(p) - np.log(q)), kind="stable")
    excess, other = np.cumsum(p[order]) - delta - rounding, np.cumsum(q[order]) + rounding
    useful = excess > 0.0
    if not useful.any():
        return 0.0
    excess, other = excess[useful], other[useful]
    if other[0] <= 0.0:
        return math.inf
    return max(0.0, float(np.max(np.log(excess) - np.log(other))))


def epsilon_both_ways(p: FloatArray, q: FloatArray, delta: float, rounding: float = 0.0) -> float:
    """The larger epsilon of the two directions."""
    return max(epsilon_of_masses(p, q, delta, rounding), epsilon_of_masses(q, p, delta, rounding))
