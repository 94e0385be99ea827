"""Gumbel noise, and the exponential mechanism that its argmax is.

Of utilities u with independent Gumbel noise of scale s on each, label y is the largest with probability
exp(u_y / s) / Σ_z exp(u_z / s): the exponential mechanism (McSherry & Talwar, "Mechanism Design via
Differential Privacy", FOCS 2007). What is private is the argmax. The noisy utilities themselves satisfy no
pure claim, whatever the scale: the Gumbel density falls doubly exponentially to the left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from dp_icl.calibration import validate_positive


@dataclass(frozen=True)
class GumbelNoise:
    """Declaration of independent Gumbel noise, P[Z ≤ z] = exp(−exp(−z / scale)), on every clean coordinate.

    Args:
        scale: in units of the clean output; finite and above 0.

    Raises:
        TypeError: ``scale`` is not a real number.
        ValueError: ``scale`` is not finite or not above 0.
    """

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", validate_positive("scale", self.scale))


def log_selection_probabilities(utilities: ArrayLike, scale: float) -> NDArray[np.float64]:
    """Natural logarithms of the probabilities with which each label is the noisy argmax.

    Args:
        utilities: (..., K) finite utilities.
        scale: of the Gumbel noise, in their units; finite and above 0.

    Returns:
        (..., K) log-probabilities.

    Raises:
        TypeError: ``scale`` is not a real number.
        ValueError: ``scale`` is out of range, or a utility is not finite.
    """
    scale = validate_positive("scale", scale)
    scores = np.asarray(utilities, dtype=np.float64)
    if not np.isfinite(scores).all():
        msg = f"utilities must be finite, got {utilities!r}."
        raise ValueError(msg)
    scores = (scores - scores.max(axis=-1, keepdims=True)) / scale
    shares: NDArray[np.float64] = scores - logsumexp(scores, axis=-1, keepdims=True)
    return shares


def selection_epsilon(first: ArrayLike, second: ArrayLike, scale: float) -> float:
    """The exact ε that separates the noisy argmax of two utility vectors.

    Outputs are single labels, so the largest ratio of the probabilities of any event is that of a label.

    Args:
        first, second: (K,) utilities on two neighbouring datasets.
        scale: of the Gumbel noise, in their units; finite and above 0.

    Returns:
        max over labels of |ln P[y | first] − ln P[y | second]|, at least 0.

    Raises:
        TypeError, ValueError: as :func:`log_selection_probabilities`.
    """
    difference = log_selection_probabilities(first, scale) - log_selection_probabilities(second, scale)
    return float(np.abs(difference).max())
