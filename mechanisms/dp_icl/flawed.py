"""Deliberately broken mechanisms, for auditors to find. Never deploy one.

Each specimen has one fault (:class:`PublishedEmbeddingSpaceAggregation` two) and is otherwise the correct mechanism,
with the same claim. ``true_epsilon`` is the smallest ε that it satisfies at the claimed δ: infinite where some event
is possible on one side only. The classical calibration and the sensitivity 1 are those the SnapAudit paper exposes in
the original designs (Tables 8 and 9).
"""

from __future__ import annotations

from dp_icl.flawed_embeddings import (
    PublishedEmbeddingSpaceAggregation,
    UnitSensitivityEmbeddingSpaceAggregation,
)
from dp_icl.flawed_experts import HalfScaleProductOfExperts, UnclippedProductOfExperts
from dp_icl.flawed_keywords import (
    RepeatCountingKeywordSpaceAggregation,
    ResponseDomainKeywordSpaceAggregation,
    UnitSensitivityKeywordSpaceAggregation,
)
from dp_icl.flawed_voting import (
    ClassicalPrivateVoting,
    LeakingTieBreakPrivateVoting,
    OneLabelNoisePrivateVoting,
    ReusedNoisePrivateVoting,
    UnitSensitivityPrivateVoting,
)

__all__ = [
    "ClassicalPrivateVoting",
    "HalfScaleProductOfExperts",
    "LeakingTieBreakPrivateVoting",
    "OneLabelNoisePrivateVoting",
    "PublishedEmbeddingSpaceAggregation",
    "RepeatCountingKeywordSpaceAggregation",
    "ResponseDomainKeywordSpaceAggregation",
    "ReusedNoisePrivateVoting",
    "UnclippedProductOfExperts",
    "UnitSensitivityEmbeddingSpaceAggregation",
    "UnitSensitivityKeywordSpaceAggregation",
    "UnitSensitivityPrivateVoting",
]
