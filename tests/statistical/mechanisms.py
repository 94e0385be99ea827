"""Mechanisms whose privacy loss is known exactly, for error-rate and power tests."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from pytest_snapaudit.engine.estimators import analytic_gaussian_sigma
from pytest_snapaudit.engine.mechanism import Sampler, from_sampler
from pytest_snapaudit.engine.noise import DiscreteLaplaceNoise, GaussianNoise, LaplaceNoise

DELTA = 1e-5


def seeds(asked: int) -> range:
    """As many seeds as a claim is stated for; a quick run takes no more than ``SNAPAUDIT_SEEDS``, 6 unless set."""
    return range(min(asked, int(os.environ.get("SNAPAUDIT_SEEDS", "6"))))


def audits(asked: int) -> int:
    """As many audits as a rate is stated for; a quick run takes no more than ``SNAPAUDIT_AUDITS``, 160 unless set."""
    return min(asked, int(os.environ.get("SNAPAUDIT_AUDITS", "160")))


def binomial_point(trials: int, probability: float) -> int:
    """The 99.9 % point of the number of failures when each has this probability."""
    return int(binom.ppf(0.999, trials, probability))


def laplace(epsilon: float, name: str = "Laplace") -> Sampler[float]:
    """Exactly ``epsilon`` apart on neighbours 0 and 1."""
    return from_sampler(lambda d, n, rng: d + rng.laplace(0.0, 1.0 / epsilon, n), name=name)


def randomised_response(epsilon: float) -> Sampler[int]:
    """Exactly ``epsilon`` apart on neighbours 0 and 1."""
    truth = 1.0 / (1.0 + np.exp(-epsilon))
    return from_sampler(
        lambda d, n, rng: np.where(rng.random(n) < truth, d, 1 - d), name="randomised response"
    )


def two_sided_geometric(epsilon: float) -> Sampler[int]:
    """Exactly ``epsilon`` apart on neighbours 0 and 1."""
    stop = -np.expm1(-epsilon)
    return from_sampler(
        lambda d, n, rng: d + rng.geometric(stop, n) - rng.geometric(stop, n), name="two-sided geometric"
    )


@dataclass(frozen=True)
class Gaussian:
    """Declared Gaussian noise on a number; neighbours are the clean outputs themselves."""

    sigma: float
    dtype: str = "float64"
    deterministic: bool = True

    @property
    def noise(self) -> GaussianNoise:
        return GaussianNoise(self.sigma)

    def clean(self, dataset, rng):
        return np.asarray(dataset, dtype=self.dtype)

    def privatize(self, clean, rng):
        return clean + clean.dtype.type(self.sigma) * rng.standard_normal(clean.shape, dtype=self.dtype)


def tight_gaussian(epsilon: float, delta: float = DELTA) -> Gaussian:
    """Exactly (epsilon, delta) apart on neighbours 0 and 1."""
    return Gaussian(analytic_gaussian_sigma(epsilon, delta))


@dataclass(frozen=True)
class DeclaredLaplace:
    """Declared Laplace noise on a number, exactly ``epsilon`` apart on neighbours 0 and 1."""

    epsilon: float
    deterministic: bool = True

    @property
    def noise(self) -> LaplaceNoise:
        return LaplaceNoise(1.0 / self.epsilon)

    def clean(self, dataset, rng):
        return float(dataset)

    def privatize(self, clean, rng):
        return clean + rng.laplace(0.0, 1.0 / self.epsilon, clean.shape)


@dataclass(frozen=True)
class DeclaredGeometric:
    """Declared two-sided geometric noise on a count, exactly ``epsilon`` apart on neighbours 0 and 1."""

    epsilon: float
    deterministic: bool = True

    @property
    def noise(self) -> DiscreteLaplaceNoise:
        return DiscreteLaplaceNoise(1.0 / self.epsilon)

    def clean(self, dataset, rng):
        return int(dataset)

    def privatize(self, clean, rng):
        stop = -np.expm1(-self.epsilon)
        return clean + rng.geometric(stop, clean.shape) - rng.geometric(stop, clean.shape)


def classical_sigma(epsilon: float, delta: float = DELTA) -> float:
    """Standard deviation of the classical calibration at sensitivity 1."""
    return float(np.sqrt(2.0 * np.log(1.25 / delta)) / epsilon)
