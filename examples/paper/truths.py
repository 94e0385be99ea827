"""True values of ε for one pair of clean outputs, where a closed form exists."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from clean_outputs import Clean
from scipy.special import ndtr

from dp_icl import gaussian_epsilon, selection_epsilon


def gaussian(mechanism: Any, clean: Clean) -> float:
    """Gaussian noise of ``mechanism.sigma`` between two clean outputs, at the claim's δ (Balle & Wang 2018)."""
    return gaussian_epsilon(mechanism.sigma, mechanism.delta, clean.distance) if clean.distance else 0.0


def selection(scale: float, clean: Clean) -> float:
    """The released argmax of utilities with Gumbel noise, at δ = 0."""
    return selection_epsilon(clean.reference, clean.canary, scale)


def two_label_vote(sigma: float, clean: Clean, delta: float, flips: float = 0.0) -> float:
    """The winner of two noisy counts, with clean outputs that come out as on the other side at rate ``flips``.

    A label is either released or not, so the two rates of one label say everything.
    """
    margins = [side[0] - side[1] for side in (clean.reference, clean.canary)]
    q, p = (float(ndtr(margin / (sigma * math.sqrt(2.0)))) for margin in margins)
    p, q = (1 - flips) * p + flips * q, (1 - flips) * q + flips * p
    pairs = [(p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p)]
    return max(0.0, *(math.log((a - delta) / b) for a, b in pairs if a > delta and b > 0))


def mean_and_error(values: Any) -> tuple[float, float]:
    """Mean and standard error (of the mean, from the sample standard deviation) of the pairs' values."""
    numbers = np.asarray(values, np.float64)
    if len(numbers) < 2 or not np.isfinite(numbers).all():
        return float(numbers.mean()), 0.0
    return float(numbers.mean()), float(numbers.std(ddof=1) / math.sqrt(len(numbers)))
