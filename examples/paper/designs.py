"""The mechanisms of the tables as the paper sets them, the two flawed designs, and the white-box decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from printed import DELTA

from dp_icl import (
    EmbeddingSpaceAggregation,
    GaussianNoise,
    GumbelKeywordSpaceAggregation,
    KeywordSpaceAggregation,
    PrivateVoting,
    ProductOfExperts,
    classical_gaussian_sigma,
)
from dp_icl.attacks import Attack
from dp_icl.flawed import ClassicalPrivateVoting

CLIP = 6.0
"""Γ of the Product of Experts in nats. The paper prints none; with its utilities 6 fits its Table 3 at ε = 1."""
KEYWORDS = ("yes", "no")
VOTERS, EXPERTS, KEYWORD_PARTITIONS = 3, 8, 8


class ClassicalUnitEmbeddingSpaceAggregation(EmbeddingSpaceAggregation):
    """Embedding Space Aggregation with the classical σ for sensitivity 1: the design that the paper's Table 9 fits."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(
            self, "noise", GaussianNoise(classical_gaussian_sigma(self.epsilon, self.delta, self.sensitivity))
        )

    @property
    def sensitivity(self) -> float:
        return 1.0


def private_voting(epsilon: float, labels: Sequence[str], partitions: int = VOTERS) -> PrivateVoting:
    return PrivateVoting(tuple(labels), partitions, epsilon, DELTA)


def classical_voting(epsilon: float, labels: Sequence[str]) -> PrivateVoting:
    return ClassicalPrivateVoting(tuple(labels), VOTERS, epsilon, DELTA)


def product_of_experts(epsilon: float, labels: Sequence[str]) -> ProductOfExperts:
    return ProductOfExperts(tuple(labels), epsilon, CLIP)


def embedding_space(epsilon: float, candidates: ArrayLike, partitions: int = 1) -> EmbeddingSpaceAggregation:
    return EmbeddingSpaceAggregation(partitions, epsilon, DELTA, candidates=np.asarray(candidates))


def unit_embedding_space(epsilon: float, candidates: ArrayLike) -> EmbeddingSpaceAggregation:
    return ClassicalUnitEmbeddingSpaceAggregation(1, epsilon, DELTA, candidates=np.asarray(candidates))


def keyword_space(epsilon: float) -> KeywordSpaceAggregation:
    return KeywordSpaceAggregation(KEYWORDS, KEYWORD_PARTITIONS, 1, epsilon)


def noisy_keyword_counts(epsilon: float) -> GumbelKeywordSpaceAggregation:
    """One keyword by noise on the counts, whose noisy counts a white-box attacker sees."""
    return GumbelKeywordSpaceAggregation(KEYWORDS, KEYWORD_PARTITIONS, epsilon)


@dataclass(frozen=True)
class Decided:
    """A mechanism with Gaussian noise whose release is what a white-box attacker decides: canary present or not.

    The Gaussian trade-off is steepest to estimate in the middle, where the likelihood ratio is 1, while an event
    chosen for the distribution-free bound lies in the tail. Releasing the decision itself fixes the paper's event.
    """

    mechanism: Any
    attack: Attack

    deterministic = True
    norm = "l2"
    claimed_views = frozenset({"black-box", "white-box"})

    @property
    def noise(self) -> GaussianNoise:
        noise: GaussianNoise = self.mechanism.noise
        return noise

    @property
    def sensitivity(self) -> float:
        return float(self.mechanism.sensitivity)

    @property
    def claim(self) -> tuple[float, float]:
        epsilon, delta = self.mechanism.claim
        return epsilon, delta

    def clean(self, dataset: Any, rng: np.random.Generator) -> Any:
        return self.mechanism.clean(dataset, rng)

    def privatize(self, clean_rows: ArrayLike, rng: np.random.Generator) -> Any:
        return self.mechanism.privatize(clean_rows, rng)

    def release(self, noisy: ArrayLike, rng: np.random.Generator) -> NDArray[np.int64]:
        decided: NDArray[np.int64] = np.asarray(self.attack.decide(noisy), np.int64)
        return decided


@dataclass(frozen=True)
class Flipping:
    """A mechanism whose clean output is, at a given rate, that of the neighbouring dataset.

    Args:
        mechanism: adds noise and releases.
        outputs: its clean outputs, without and with the canary.
        rate: in [0, 1], of evaluations that come out as on the other side.

    Datasets are 0 (without the canary) and 1 (with it).
    """

    mechanism: Any
    outputs: tuple[NDArray[Any], NDArray[Any]]
    rate: float

    claimed_views = frozenset({"black-box"})

    @property
    def claim(self) -> tuple[float, float]:
        epsilon, delta = self.mechanism.claim
        return epsilon, delta

    def clean_batch(self, dataset: int, size: int, rng: np.random.Generator) -> NDArray[Any]:
        flipped = rng.random(size) < self.rate
        return np.where(flipped[:, None], self.outputs[1 - dataset], self.outputs[dataset])

    def clean(self, dataset: int, rng: np.random.Generator) -> NDArray[Any]:
        return self.clean_batch(dataset, 1, rng)[0]

    def privatize(self, clean_rows: ArrayLike, rng: np.random.Generator) -> Any:
        return self.mechanism.privatize(clean_rows, rng)

    def release(self, noisy: ArrayLike, rng: np.random.Generator) -> Any:
        return self.mechanism.release(noisy, rng)
