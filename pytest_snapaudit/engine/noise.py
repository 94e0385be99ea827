"""Declarations of the noise a mechanism adds; a tested declaration unlocks model-based certificates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real


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
        enforced: hold the mechanism to this declaration: an audit that rejects the declared shape or
            scale fails with :class:`~pytest_snapaudit.engine.errors.DeclarationMismatch`. By default a
            rejected declaration only withdraws the certificates that rest on it.
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


NoiseDeclaration = GaussianNoise | LaplaceNoise
