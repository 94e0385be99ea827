"""The law that each declaration of noise stands for."""

from __future__ import annotations

from pytest_snapaudit.engine.continuous_families import (
    ExponentialLaw,
    FloatArray,
    GumbelLaw,
    LaplaceLaw,
    NoiseLaw,
    StaircaseLaw,
    gamma_scale_upper,
)
from pytest_snapaudit.engine.density_law import DensityLaw, density_law
from pytest_snapaudit.engine.discrete_families import DiscreteGaussianLaw, DiscreteLaplaceLaw
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

__all__ = [
    "DensityLaw",
    "DiscreteGaussianLaw",
    "DiscreteLaplaceLaw",
    "ExponentialLaw",
    "FloatArray",
    "GumbelLaw",
    "LaplaceLaw",
    "NoiseLaw",
    "StaircaseLaw",
    "gamma_scale_upper",
    "law_of",
]


def law_of(noise: NoiseDeclaration) -> NoiseLaw | None:
    """The law that a declaration stands for; None for Gaussian noise, which has a certificate of its own.

    Raises:
        ValueError: for a :class:`DensityNoise` whose density is no density.
    """
    law: NoiseLaw | None = None
    match noise:
        case LaplaceNoise():
            law = LaplaceLaw(noise.scale)
        case DiscreteGaussianNoise():
            law = DiscreteGaussianLaw(noise.sigma)
        case DiscreteLaplaceNoise():
            law = DiscreteLaplaceLaw(noise.scale)
        case GumbelNoise():
            law = GumbelLaw(noise.scale)
        case ExponentialNoise():
            law = ExponentialLaw(noise.scale)
        case StaircaseNoise():
            law = StaircaseLaw(noise.sensitivity, noise.epsilon, noise.gamma or 0.0)
        case DensityNoise():
            law = density_law(noise)
    return law
