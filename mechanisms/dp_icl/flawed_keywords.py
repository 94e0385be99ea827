"""Deliberately broken Keyword Space Aggregation, for auditors to find. Never deploy one.

Each specimen has one fault, and makes the claim of the correct mechanism. ``true_epsilon`` is the smallest ε that
holds whatever the vocabulary and the counts; a single pair of histograms gives
:func:`~dp_icl.joint_exponential_privacy.privacy_loss`, which nears it as the vocabulary grows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dp_icl.joint_exponential import JointExponential
from dp_icl.joint_exponential_privacy import loss_spread
from dp_icl.keyword_space import KeywordSpaceAggregation


class UnitSensitivityKeywordSpaceAggregation(KeywordSpaceAggregation):
    """The rate ε/2 of the papers for every K.

    Gillenwater et al. derive it for adding or removing a response. A response that is replaced moves counts in both
    directions, and different positions of a sequence by up to 2 in opposite ones. Broken for K ≥ 2 with at least two
    partitions and three tokens: the true ε is 2ε with three partitions or more, 1.5ε with two. Right for K = 1.
    """

    @property
    def rate(self) -> float:
        """η = ε/2."""
        return self.epsilon / 2.0

    @property
    def true_epsilon(self) -> float:
        """The smallest ε that the keywords satisfy for all vocabularies of this size or larger."""
        return self.rate * loss_spread(self.keywords, len(self.vocabulary), self.partitions)


@dataclass(frozen=True, repr=False)
class RepeatCountingKeywordSpaceAggregation(KeywordSpaceAggregation):
    """Counts how often a token occurs instead of in how many texts, up to ``max_repeats`` per text.

    One text can move a count by ``max_repeats``, for which the rate is not made. Broken from 2 repeats on; if nothing
    bounds them, no ε holds.
    """

    max_repeats: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        repeats = self.max_repeats
        if isinstance(repeats, bool) or not isinstance(repeats, Integral) or repeats < 1:
            msg = f"max_repeats must be an integer of at least 1, got {repeats!r}."
            raise ValueError(msg)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, max_repeats={self.max_repeats})"

    @property
    def true_epsilon(self) -> float:
        """``max_repeats`` times the claim: counts, and with them losses, are stretched by that factor."""
        return self.max_repeats * self.epsilon

    @property
    def _most(self) -> int:
        return self.partitions * self.max_repeats

    def _contribution(self, tokens: Iterable[int]) -> dict[int, int]:
        return {token: min(times, self.max_repeats) for token, times in Counter(tokens).items()}


class ResponseDomainKeywordSpaceAggregation(KeywordSpaceAggregation):
    """Draws only from tokens that occur in some text, as if the texts were the vocabulary.

    A token that only the exemplar's own partition says can be drawn with it and never without it. Where fewer than K
    tokens occur, the others are -1.
    """

    @property
    def true_epsilon(self) -> float:
        """Infinite: there are keywords of which one neighbour is certain."""
        return math.inf

    def _draw(self, counts: NDArray[Any], size: int, rng: Generator) -> NDArray[np.intp]:
        occurring = np.flatnonzero(self._validated(counts))
        drawn = np.full((size, self.keywords), -1, np.intp)
        k = min(self.keywords, len(occurring))
        if k:
            drawn[:, :k] = occurring[JointExponential(counts[occurring], k, self.rate).sample(size, rng)]
        return drawn
