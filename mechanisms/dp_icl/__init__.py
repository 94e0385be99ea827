"""Reference mechanisms for differentially private in-context learning.

Each mechanism keeps four stages apart: what the model said (recorded), ``aggregate`` (live), ``privatize``
(the noise) and ``release`` (what the public sees). Neighbouring datasets differ by the replacement of one
exemplar. Specimens with known flaws are in :mod:`dp_icl.flawed`; language and embedding models in
``dp_icl.models``.
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
from dp_icl.partition import assign, split
from dp_icl.private_voting import PrivateVoting

__all__ = [
    "EmbeddingSpaceAggregation",
    "GaussianNoise",
    "PrivateVoting",
    "analytic_gaussian_sigma",
    "assign",
    "classical_gaussian_sigma",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_sigma",
    "split",
]
