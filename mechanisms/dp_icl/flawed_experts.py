"""Product of Experts with known flaws, one in each class; collected in :mod:`dp_icl.flawed`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from dp_icl.partition import Adjacency
from dp_icl.product_of_experts import ProductOfExperts


@dataclass(frozen=True, repr=False)
class HalfScaleProductOfExperts(ProductOfExperts):
    """Product of Experts with Gumbel noise of scale Γ/ε where replacing an exemplar needs 2Γ/ε.

    The scale is that of adding or removing an exemplar, which moves all utilities the same way. A replaced
    exemplar may raise one label's utility and lower another's.
    """

    adjacency: Adjacency = field(default="replace-one", init=False)

    def _scale(self) -> float:
        return self.clip / self.epsilon

    @property
    def true_epsilon(self) -> float:
        """2 · ``epsilon``: the least upper bound over any number of experts."""
        return 2.0 * self.epsilon

    def true_epsilon_of(self, experts: int) -> float:
        """The exact ε of J experts.

        It is 2ε + ln((K−1 + e^{−Jε}) / (K−1 + e^{−(J−2)ε})), attained by the one label that every expert
        excludes (−Γ there, 0 elsewhere), when one of them comes to exclude all others instead: with one expert
        and two labels still ε, with two experts and ε ≥ 1 more than 1.4 ε, and 2ε in the limit of many.

        Args:
            experts: number J ≥ 1 of exemplars.

        Raises:
            ValueError: ``experts`` is no integer of at least 1.
        """
        if isinstance(experts, bool) or not isinstance(experts, Integral) or experts < 1:
            msg = f"experts must be an integer of at least 1, got {experts!r}."
            raise ValueError(msg)
        others, step, count = math.log(len(self.labels) - 1.0), self.epsilon, float(experts)
        return 2.0 * step + float(
            np.logaddexp(others, -count * step) - np.logaddexp(others, -(count - 2.0) * step)
        )


class UnclippedProductOfExperts(ProductOfExperts):
    """Product of Experts that adds up the log-probabilities as they are; the noise is that for the clip Γ.

    A log-probability has no lower bound, so one exemplar moves a utility by any amount.
    """

    @property
    def true_epsilon(self) -> float:
        """Infinite: no ε bounds the ratio for all log-probabilities."""
        return math.inf

    def _clipped(self, said: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.minimum(np.where(np.isnan(said), -np.inf, said), 0.0)
