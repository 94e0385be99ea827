"""Keyword Space Aggregation for one keyword by noise on the counts, whose noisy counts are outside the claim.

For K = 1 the joint exponential mechanism is the exponential mechanism, and its draw the argmax of counts with Gumbel
noise (:mod:`dp_icl.gumbel`). The released keyword is ε-differentially private, the noisy counts are not, at any ε: an
attacker who sees them finds far more than the claim. The SnapAudit paper's "White-KSA" column measures this view; it
may be measured, never gated. :class:`~dp_icl.keyword_space.KeywordSpaceAggregation` draws without such counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from dp_icl.gumbel import GumbelNoise
from dp_icl.keyword_space import KeywordSpaceAggregation


@dataclass(frozen=True, repr=False)
class GumbelKeywordSpaceAggregation(KeywordSpaceAggregation):
    """ε-differentially private keyword, with K fixed at 1 and the noisy counts laid open.

    Arguments as :class:`~dp_icl.keyword_space.KeywordSpaceAggregation`, without ``keywords``; ``epsilon`` must be
    above 0. The claim covers the black-box view alone.
    """

    keywords: int = field(default=1, init=False)
    noise: GumbelNoise = field(init=False, compare=False)

    claimed_views: ClassVar[frozenset[str]] = frozenset({"black-box"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epsilon == 0:
            msg = "epsilon must be above 0, got 0: no finite noise hides the counts entirely."
            raise ValueError(msg)
        object.__setattr__(self, "noise", GumbelNoise(1.0 / self.rate))

    def privatize(self, clean_rows: ArrayLike, rng: Generator) -> NDArray[np.float64]:  # type: ignore[override]
        """Add independent Gumbel noise of scale 2/ε to every count.

        Args:
            clean_rows: (n, V) counts; never modified.
            rng: source of the noise.

        Returns:
            (n, V) noisy counts: n times V numbers, unlike the n tokens of the other design.

        Raises:
            ValueError: the rows are not of length V.
        """
        rows = self._rows(clean_rows)
        noisy = rng.gumbel(scale=self.noise.scale, size=rows.shape)
        noisy += rows
        return noisy

    def release(self, drawn: ArrayLike, rng: Generator) -> NDArray[np.intp]:
        """The token with the largest noisy count: (n, V) noisy counts to (n, 1) token indices; ``rng`` is unused."""
        winners: NDArray[np.intp] = np.argmax(np.asarray(drawn), axis=1)
        return winners[:, None]
