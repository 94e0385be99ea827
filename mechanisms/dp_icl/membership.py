"""The SnapAudit paper's membership attacks, made for a mechanism and the clean outputs of a neighbouring pair.

| mechanism | black-box | white-box |
|---|---|---|
| Private Voting | the label that the canary gives votes to wins | likelihood ratio of the noisy counts |
| Product of Experts | the label that the canary favours most wins | likelihood ratio of the noisy utilities |
| Embedding Space Aggregation | the candidate on the canary's side is chosen | projection of the noisy mean |
| Keyword Space Aggregation | the keyword that the canary adds is drawn | likelihood ratio of what was drawn |

White-box attackers see a noisy intermediate (section 2, "Output Access") and know both clean outputs, the strongest
they could be: their likelihood ratio is the most powerful test (Neyman & Pearson). The noisy scores of the exponential
mechanism (Product of Experts, and Keyword Space Aggregation by Gumbel noise) are outside the claim of those mechanisms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_icl.attacks import (
    Attack,
    GaussianLikelihoodRatio,
    GumbelLikelihoodRatio,
    KeywordLikelihoodRatio,
    KeywordReleased,
    LabelReleased,
    Projection,
)
from dp_icl.embedding_space import EmbeddingSpaceAggregation, unit_vectors
from dp_icl.gumbel import GumbelNoise
from dp_icl.joint_exponential import JointExponential
from dp_icl.keyword_space import KeywordSpaceAggregation
from dp_icl.private_voting import PrivateVoting
from dp_icl.product_of_experts import ProductOfExperts


def membership_attacks(mechanism: object, reference: ArrayLike, canary: ArrayLike) -> dict[str, Attack]:
    """The paper's attacks on one of the four mechanisms.

    Args:
        mechanism: Private Voting, Product of Experts, Embedding Space Aggregation or Keyword Space Aggregation.
        reference, canary: (d,) clean outputs without and with the canary: counts, utilities or mean embeddings.

    Returns:
        Attacks by name, black-box first; without candidates, Embedding Space Aggregation has a white-box attack
        only.

    Raises:
        TypeError: the mechanism is none of the four.
        ValueError: the clean outputs are equal, not finite, or not of the mechanism's length.
    """
    first, second = (np.asarray(each, dtype=np.float64) for each in (reference, canary))
    _check(mechanism, first, second)
    attacks = [*_black_box(mechanism, second - first), _white_box(mechanism, first, second)]
    return {attack.name: attack for attack in attacks}


def _check(mechanism: object, first: NDArray[np.float64], second: NDArray[np.float64]) -> None:
    if isinstance(mechanism, PrivateVoting | ProductOfExperts):
        shapes: tuple[tuple[int, ...], ...] = ((len(mechanism.labels),),)
    elif isinstance(mechanism, KeywordSpaceAggregation):
        shapes = ((len(mechanism.vocabulary),),)
    elif isinstance(mechanism, EmbeddingSpaceAggregation):
        shapes = ((first.size,),) if mechanism.candidates is None else ((mechanism.candidates.shape[1],),)
    else:
        msg = (
            "mechanism must be PrivateVoting, ProductOfExperts, EmbeddingSpaceAggregation or "
            f"KeywordSpaceAggregation, got {type(mechanism).__name__}."
        )
        raise TypeError(msg)
    for name, clean in (("reference", first), ("canary", second)):
        if clean.shape not in shapes or not np.isfinite(clean).all():
            msg = f"{name} must be a clean output of {type(mechanism).__name__}: finite, of shape {shapes[0]}, got "
            raise ValueError(msg + f"shape {clean.shape}.")
    if (first == second).all():
        msg = "reference and canary are the same clean output, which no attack can tell apart."
        raise ValueError(msg)


def _black_box(mechanism: Any, gain: NDArray[np.float64]) -> list[Attack]:
    if isinstance(mechanism, KeywordSpaceAggregation):
        token = int(np.argmax(gain))
        name = f"keyword {mechanism.vocabulary[token]!r} released"
        return [KeywordReleased(token, mechanism.keywords, name)]
    if isinstance(mechanism, EmbeddingSpaceAggregation):
        if mechanism.candidates is None:
            return []
        candidate = int(np.argmax(unit_vectors(mechanism.candidates) @ gain))
        return [LabelReleased(candidate, f"candidate {candidate} released")]
    label = int(np.argmax(gain))
    return [LabelReleased(label, f"label {mechanism.labels[label]!r} released")]


def _white_box(mechanism: Any, first: NDArray[np.float64], second: NDArray[np.float64]) -> Attack:
    if isinstance(mechanism, EmbeddingSpaceAggregation):
        return Projection(first, second, "projection on the difference of the mean embeddings")
    noise = getattr(mechanism, "noise", None)
    if isinstance(noise, GumbelNoise):
        return GumbelLikelihoodRatio(first, second, noise.scale)
    if isinstance(mechanism, KeywordSpaceAggregation):
        k, rate = mechanism.keywords, mechanism.rate
        return KeywordLikelihoodRatio(JointExponential(first, k, rate), JointExponential(second, k, rate))
    return GaussianLikelihoodRatio(first, second, mechanism.sigma)
