"""Deliberately broken mechanisms, for auditors to find. Never deploy one.

Both flaws are those the SnapAudit paper exposes in the original designs (its Tables 8 and 9); apart from
the noise scale each specimen is the correct mechanism, and makes the same claim.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dp_icl.calibration import Calibration, classical_gaussian_sigma, gaussian_epsilon
from dp_icl.embedding_space import EmbeddingSpaceAggregation
from dp_icl.private_voting import PrivateVoting


@dataclass(frozen=True)
class ClassicalPrivateVoting(PrivateVoting):
    """Private Voting with the classical σ = √2 · sqrt(2 ln(1.25/δ)) / ε at every ε.

    The formula is proven for ε below 1. Broken where :attr:`true_epsilon` exceeds ``epsilon``: at δ = 1e-5,
    for ε above about 8.4.
    """

    calibration: Calibration = field(default="classical", init=False)

    def _sigma(self) -> float:
        return classical_gaussian_sigma(self.epsilon, self.delta, self.sensitivity)

    @property
    def true_epsilon(self) -> float:
        """The smallest ε the noisy counts satisfy at the claimed δ, attained when a vote changes label."""
        return gaussian_epsilon(self.sigma, self.delta, self.sensitivity)


class UnitSensitivityEmbeddingSpaceAggregation(EmbeddingSpaceAggregation):
    """Embedding Space Aggregation with noise calibrated to sensitivity 1, whatever the number of partitions.

    Broken at T = 1, where the mean embedding moves by up to 2; exact at T = 2, too noisy from T = 3 on.
    """

    @property
    def sensitivity(self) -> float:
        """The sensitivity as the flawed design declares it."""
        return 1.0

    @property
    def true_epsilon(self) -> float:
        """The smallest ε the noisy mean satisfies at the claimed δ, attained by opposite embeddings."""
        return gaussian_epsilon(self.sigma, self.delta, 2.0 / self.partitions)
