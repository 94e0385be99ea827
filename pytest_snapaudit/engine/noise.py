"""Declarations of the noise a mechanism adds; a tested declaration unlocks model-based certificates.

Every declaration speaks of independent noise on each coordinate of the clean output, in its units. ``enforced``
holds the mechanism to the declaration: an audit that rejects the declared shape or scale fails with
:class:`~pytest_snapaudit.engine.errors.DeclarationMismatch`. By default a rejected declaration only withdraws
the certificates that rest on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

LogDensity = Callable[[NDArray[np.float64]], Any]
"""(n,) points to (n,) values."""


def _positive(owner: str, name: str, value: object) -> float:
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if 0.0 < number < math.inf:
            return number
    msg = f"{owner}: {name} must be a finite number above 0, got {value!r}."
    raise ValueError(msg)


@dataclass(frozen=True)
class GaussianNoise:
    """Independent N(0, sigma²) added to every coordinate of the clean output.

    Args:
        sigma: standard deviation, in units of the clean output.
        enforced: hold the mechanism to this declaration.
    """

    sigma: float
    enforced: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", _positive("GaussianNoise", "sigma", self.sigma))


@dataclass(frozen=True)
class LaplaceNoise:
    """Independent Laplace(0, scale) added to every coordinate of the clean output.

    Args:
        scale: the Laplace scale b (standard deviation √2·b), in units of the clean output.
        enforced: as in :class:`GaussianNoise`.
    """

    scale: float
    enforced: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _positive("LaplaceNoise", "scale", self.scale))


@dataclass(frozen=True)
class DiscreteGaussianNoise:
    """Whole numbers k with probability proportional to exp(−k² / (2 sigma²)), for whole clean outputs.

    Args:
        sigma: the parameter σ (close to the standard deviation unless small), in units of the clean output.
        enforced: as in :class:`GaussianNoise`.

    Source: Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020.
    """

    sigma: float
    enforced: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", _positive("DiscreteGaussianNoise", "sigma", self.sigma))


@dataclass(frozen=True)
class DiscreteLaplaceNoise:
    """Whole numbers k with probability proportional to exp(−|k| / scale): the two-sided geometric law.

    Args:
        scale: the parameter b, in units of the clean output; the difference of two geometric variables with
            success probability ``1 − exp(−1/b)``.
        enforced: as in :class:`GaussianNoise`.

    Source: Ghosh, Roughgarden and Sundararajan, "Universally utility-maximizing privacy mechanisms", STOC 2009.
    """

    scale: float
    enforced: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _positive("DiscreteLaplaceNoise", "scale", self.scale))


@dataclass(frozen=True)
class GumbelNoise:
    """Independent Gumbel noise, P[Z <= z] = exp(−exp(−z / scale)), not centred.

    Gumbel-noised scores are not pure ε-DP, whatever the scale; only their argmax is (the exponential mechanism).

    Args:
        scale: in units of the clean output.
        enforced: as in :class:`GaussianNoise`.
    """

    scale: float
    enforced: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _positive("GumbelNoise", "scale", self.scale))


@dataclass(frozen=True)
class ExponentialNoise:
    """Independent exponential noise, P[Z > z] = exp(−z / scale) for z >= 0.

    Outputs below a clean output rule that clean output out, so such noise alone never gives a finite epsilon
    at a small delta.

    Args:
        scale: the mean, in units of the clean output.
        enforced: as in :class:`GaussianNoise`.
    """

    scale: float
    enforced: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _positive("ExponentialNoise", "scale", self.scale))


@dataclass(frozen=True)
class StaircaseNoise:
    """The staircase law: density proportional to exp(−epsilon·k) on the k-th step away from 0.

    The density falls by the factor exp(−epsilon) at ±(gamma + k)·sensitivity, k = 0, 1, 2, …

    Args:
        epsilon: height of a step of the log density.
        sensitivity: width Δ of a step, in units of the clean output.
        gamma: where in [0, Δ] the first step lies, in (0, 1]; by default the value of least mean absolute
            error, 1 / (1 + exp(epsilon / 2)).
        enforced: as in :class:`GaussianNoise`.

    Source: Geng and Viswanath, "The optimal mechanism in differential privacy", ISIT 2014, section III.
    """

    epsilon: float
    sensitivity: float
    gamma: float | None = None
    enforced: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _positive("StaircaseNoise", "epsilon", self.epsilon))
        object.__setattr__(self, "sensitivity", _positive("StaircaseNoise", "sensitivity", self.sensitivity))
        gamma = self.gamma if self.gamma is not None else 1.0 / (1.0 + math.exp(min(self.epsilon, 1e3) / 2.0))
        gamma = _positive("StaircaseNoise", "gamma", gamma)
        if gamma > 1.0:
            msg = f"StaircaseNoise: gamma must lie in (0, 1], got {self.gamma!r}."
            raise ValueError(msg)
        object.__setattr__(self, "gamma", gamma)


@dataclass(frozen=True)
class DensityNoise:
    """Independent noise with a density of your own on every coordinate.

    Args:
        logpdf: natural logarithm of the density, an (n,) array of points to (n,) values; ``-inf`` outside the
            support. With a ``scale`` it is the density of noise / scale.
        cdf: P[Z <= z], likewise vectorised; integrated from ``logpdf`` if absent (give it for a density with
            jumps).
        scale: makes the scale a parameter that is estimated and bounded, as for :class:`LaplaceNoise`; without
            it the law is exactly ``logpdf`` in units of the clean output.
        name: the family, for reports.
        enforced: as in :class:`GaussianNoise`.
    """

    logpdf: LogDensity
    cdf: LogDensity | None = None
    scale: float | None = None
    name: str = "user density"
    enforced: bool = False

    def __post_init__(self) -> None:
        if not callable(self.logpdf):
            msg = f"DensityNoise: logpdf must be callable, got {self.logpdf!r} of type {type(self.logpdf).__name__}."
            raise TypeError(msg)
        if self.cdf is not None and not callable(self.cdf):
            msg = f"DensityNoise: cdf must be callable or None, got {self.cdf!r} of type {type(self.cdf).__name__}."
            raise TypeError(msg)
        if self.scale is not None:
            object.__setattr__(self, "scale", _positive("DensityNoise", "scale", self.scale))
        if not isinstance(self.name, str):
            msg = f"DensityNoise: name must be a string, got {self.name!r}."
            raise TypeError(msg)
        self._check("logpdf", self.logpdf)
        if self.cdf is not None:
            self._check("cdf", self.cdf)

    def _check(self, name: str, function: LogDensity) -> None:
        points = np.array([-1.0, -0.1, 0.1, 1.0])
        values = np.asarray(function(points))
        if values.shape != points.shape or values.dtype.kind not in "iuf" or np.isnan(values).any():
            msg = (
                f"DensityNoise: {name} must map an (n,) array of points to an (n,) array of numbers without NaN, "
                f"got {values!r} for {points!r}."
            )
            raise ValueError(msg)

    def __repr__(self) -> str:
        scale = "" if self.scale is None else f", scale={self.scale!r}"
        return f"DensityNoise({self.name!r}{scale})"


NoiseDeclaration = (
    GaussianNoise
    | LaplaceNoise
    | DiscreteGaussianNoise
    | DiscreteLaplaceNoise
    | GumbelNoise
    | ExponentialNoise
    | StaircaseNoise
    | DensityNoise
)

KINDS: dict[str, tuple[type[NoiseDeclaration], tuple[str, ...]]] = {
    "GaussianNoise": (GaussianNoise, ("sigma",)),
    "LaplaceNoise": (LaplaceNoise, ("scale",)),
    "DiscreteGaussianNoise": (DiscreteGaussianNoise, ("sigma",)),
    "DiscreteLaplaceNoise": (DiscreteLaplaceNoise, ("scale",)),
    "GumbelNoise": (GumbelNoise, ("scale",)),
    "ExponentialNoise": (ExponentialNoise, ("scale",)),
    "StaircaseNoise": (StaircaseNoise, ("epsilon", "sensitivity")),
    "DensityNoise": (DensityNoise, ("logpdf",)),
}
"""Declarations by name, with the parameters that a look-alike from another package must have."""


def read_declaration(noise: object) -> NoiseDeclaration | None:
    """``noise`` as a declaration, recognised by type or by name and parameters; None if it is not one.

    Raises:
        TypeError, ValueError: a look-alike with a parameter out of range.
    """
    if isinstance(noise, NoiseDeclaration):
        return noise
    kind, required = KINDS.get(type(noise).__name__, (None, ()))
    if kind is None or not all(hasattr(noise, name) for name in required):
        return None
    values = {field.name: getattr(noise, field.name) for field in fields(kind) if hasattr(noise, field.name)}
    values = {name: float(v) if hasattr(v, "__float__") else v for name, v in values.items()}
    values["enforced"] = bool(values.get("enforced", False))
    return kind(**values)
