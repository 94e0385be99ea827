"""Embedding Space Aggregation with known flaws; collected in :mod:`dp_icl.flawed`."""

from __future__ import annotations

from dp_icl.calibration import classical_gaussian_sigma, gaussian_epsilon
from dp_icl.embedding_space import EmbeddingSpaceAggregation


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


class PublishedEmbeddingSpaceAggregation(UnitSensitivityEmbeddingSpaceAggregation):
    """Embedding Space Aggregation as first published: the classical σ, and for sensitivity 1.

    Two faults at once, for the SnapAudit paper's Table 9, whose bounds they explain (mean embeddings 1.30 apart).
    """

    def _sigma(self) -> float:
        return classical_gaussian_sigma(self.epsilon, self.delta, self.sensitivity)
