"""Mechanisms whose own draws are cheap, so that what an audit adds shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

import dp_icl
from pytest_snapaudit import GaussianNoise, PrivacyClaim, from_sampler
from pytest_snapaudit.testing import UNIT_NEIGHBOURS, LaplaceSum

GAUSSIAN_CLAIM = PrivacyClaim(4.0, 1e-5)


@dataclass(frozen=True)
class GaussianVector:
    """A vector of unit sensitivity with Gaussian noise calibrated to ``GAUSSIAN_CLAIM``.

    Args:
        dimensions: of the vector.
        dtype: of the noise.
        declared: whether the noise is declared.
    """

    dimensions: int
    dtype: Literal["float32", "float64"]
    declared: bool = True
    deterministic = True
    sensitivity = 1.0
    claimed_views = frozenset({"black-box", "white-box"})

    @property
    def sigma(self) -> float:
        return dp_icl.analytic_gaussian_sigma(GAUSSIAN_CLAIM.epsilon, GAUSSIAN_CLAIM.delta, 1.0)

    @property
    def noise(self) -> GaussianNoise | None:
        return GaussianNoise(self.sigma) if self.declared else None

    def clean(self, dataset: float, rng: np.random.Generator) -> Any:
        return np.full(self.dimensions, dataset / np.sqrt(self.dimensions), self.dtype)

    def privatize(self, clean: Any, rng: np.random.Generator) -> Any:
        noisy: Any = rng.standard_normal(clean.shape, dtype=self.dtype)
        noisy *= self.sigma
        noisy += clean
        return noisy


LAPLACE = (LaplaceSum(1.0), UNIT_NEIGHBOURS, PrivacyClaim(1.0))
VOTING = (
    dp_icl.PrivateVoting(labels=("a", "b"), partitions=3, epsilon=4.0, delta=1e-5),
    (["a", "b", "b"], ["b", "b", "b"]),
    GAUSSIAN_CLAIM,
)
GAUSSIAN_384 = (GaussianVector(384, "float64"), (0.0, 1.0), GAUSSIAN_CLAIM)
GAUSSIAN_384_FLOAT32 = (GaussianVector(384, "float32"), (0.0, 1.0), GAUSSIAN_CLAIM)
WITHOUT_HINTS: tuple[Any, ...] = (
    from_sampler(lambda dataset, n, rng: sum(dataset) + rng.laplace(0.0, 1.0, n), name="Laplace"),
    UNIT_NEIGHBOURS,
    PrivacyClaim(1.0),
)
