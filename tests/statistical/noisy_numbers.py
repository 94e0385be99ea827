"""Noise of every declared family, drawn at a multiple of its declared scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import logistic
from scipy.stats import t as student

from pytest_snapaudit.engine.certificates import Certificate, CertificateBound, certificate_for
from pytest_snapaudit.engine.families import NoiseLaw, law_of
from pytest_snapaudit.engine.noise import (
    DensityNoise,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    ExponentialNoise,
    GumbelNoise,
    LaplaceNoise,
    NoiseDeclaration,
    StaircaseNoise,
)


def _two_sided_geometric(rng, scale, size):
    stop = -np.expm1(-1.0 / scale)
    return (rng.geometric(stop, size) - rng.geometric(stop, size)).astype(float)


def _discrete_gaussian(rng, sigma, size):
    k = np.arange(-int(12 * sigma) - 2, int(12 * sigma) + 3)
    below = np.cumsum(np.exp(-0.5 * (k / sigma) ** 2))
    return k[np.searchsorted(below, rng.random(size) * below[-1])].astype(float)


def staircase(rng, epsilon, width, gamma, size):
    """Geng and Viswanath 2014, Algorithm 1."""
    rest = np.exp(-epsilon)
    sign = np.where(rng.random(size) < 0.5, -1.0, 1.0)
    step, within = rng.geometric(1.0 - rest, size) - 1.0, rng.random(size)
    inner = rng.random(size) < gamma / (gamma + (1.0 - gamma) * rest)
    return sign * width * (step + np.where(inner, gamma * within, gamma + (1.0 - gamma) * within))


STAIRS = StaircaseNoise(1.0, 1.0)


@dataclass(frozen=True)
class Family:
    """A declaration, how to draw from it, and a pair at which its loss is known exactly.

    ``draw(rng, times, shape)`` draws noise of ``times`` the declared scale.
    """

    noise: NoiseDeclaration
    draw: Callable[..., np.ndarray]
    shift: float
    delta: float

    @property
    def law(self) -> NoiseLaw:
        law = law_of(self.noise)
        assert law is not None
        return law

    @property
    def epsilon(self) -> float:
        """Exact, at the declared scale."""
        return self.law.epsilon(self.shift, self.law.scale, self.delta)

    def rows(self, rng, n, times=1.0, width=1):
        """(n, width) outputs per side on clean outputs 0 and ``shift``."""
        noise = [self.draw(rng, times, (n, width)) for _ in (0, 1)]
        return noise[0], noise[1] + self.shift

    def certify(
        self, seed, n, *, alpha, times=1.0, width=1, delta=None
    ) -> tuple[Certificate, CertificateBound]:
        """The certificate and its bound, from a pilot of 500 and ``n`` draws per side."""
        rng = np.random.default_rng(seed)
        delta = self.delta if delta is None else delta
        clean = np.stack([np.zeros(width), np.full(width, self.shift)])
        certificate = certificate_for(
            self.law, clean, self.rows(rng, 500, times, width), delta=delta, planned=n, alpha=alpha
        )
        assert isinstance(certificate, Certificate), certificate
        return certificate, certificate.bound(
            certificate.tally(self.rows(rng, n, times, width)), alpha, delta
        )


STUDENT = student(5)
FAMILIES = {
    "Laplace, pure": Family(LaplaceNoise(2.0), lambda r, m, n: r.laplace(0, 2.0 * m, n), 1.0, 0.0),
    "Laplace, large": Family(LaplaceNoise(0.1), lambda r, m, n: r.laplace(0, 0.1 * m, n), 1.0, 1e-3),
    "discrete Laplace": Family(
        DiscreteLaplaceNoise(1.5), lambda r, m, n: _two_sided_geometric(r, 1.5 * m, n), 2.0, 1e-5
    ),
    "discrete Gaussian": Family(
        DiscreteGaussianNoise(3.0), lambda r, m, n: _discrete_gaussian(r, 3.0 * m, n), 4.0, 1e-5
    ),
    "Gumbel": Family(GumbelNoise(1.5), lambda r, m, n: r.gumbel(0, 1.5 * m, n), 1.0, 1e-3),
    "staircase": Family(STAIRS, lambda r, m, n: staircase(r, 1.0, m, STAIRS.gamma, n), 1.0, 1e-5),
    "logistic density": Family(
        DensityNoise(logistic.logpdf, scale=2.0, name="logistic"),
        lambda r, m, n: r.logistic(0, 2.0 * m, n),
        1.0,
        1e-5,
    ),
    "Student density": Family(
        DensityNoise(STUDENT.logpdf, STUDENT.cdf, scale=2.0, name="Student"),
        lambda r, m, n: 2.0 * m * r.standard_t(5, n),
        1.0,
        1e-3,
    ),
}
EXPONENTIAL = Family(
    ExponentialNoise(1.5), lambda r, m, n: r.exponential(1.5 * m, n), 0.3, float(-np.expm1(-0.2))
)
FIXED_DENSITY = Family(
    DensityNoise(logistic.logpdf, name="logistic"), lambda r, m, n: r.logistic(0, m, n), 1.0, 1e-2
)
