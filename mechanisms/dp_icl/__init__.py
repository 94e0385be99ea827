"""Reference mechanisms for differentially private in-context learning.

Each mechanism keeps four stages apart: what the model said (recorded), ``aggregate`` (live), ``privatize``
(the noise) and ``release`` (what the public sees). Neighbouring datasets differ in one exemplar, which is
replaced or, with ``adjacency="add-remove"``, added or removed. Specimens with known flaws are in
:mod:`dp_icl.flawed`; language and embedding models in ``dp_icl.models``.
"""

from __future__ import annotations

from dp_icl.calibration import (
    GaussianNoise,
    analytic_gaussian_sigma,
    classical_gaussian_sigma,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_sigma,
)
from dp_icl.embedding_space import EmbeddingSpaceAggregation
from dp_icl.gumbel import GumbelNoise, selection_epsilon
from dp_icl.gumbel_keywords import GumbelKeywordSpaceAggregation
from dp_icl.joint_exponential import JointExponential
from dp_icl.joint_exponential_privacy import loss_spread, privacy_loss
from dp_icl.keyword_space import KeywordSpaceAggregation
from dp_icl.partition import assign, assign_by_content, split
from dp_icl.private_voting import PrivateVoting
from dp_icl.product_of_experts import ProductOfExperts
from dp_icl.recorded_answers import RecordedAnswers
from dp_icl.words import public_vocabulary, tokenise

__all__ = [
    "EmbeddingSpaceAggregation",
    "GaussianNoise",
    "GumbelKeywordSpaceAggregation",
    "GumbelNoise",
    "JointExponential",
    "KeywordSpaceAggregation",
    "PrivateVoting",
    "ProductOfExperts",
    "RecordedAnswers",
    "analytic_gaussian_sigma",
    "assign",
    "assign_by_content",
    "classical_gaussian_sigma",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_sigma",
    "loss_spread",
    "privacy_loss",
    "public_vocabulary",
    "selection_epsilon",
    "split",
    "tokenise",
]
