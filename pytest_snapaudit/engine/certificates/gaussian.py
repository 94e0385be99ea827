"""The Gaussian location certificate: known distance over an upper bound of sigma.

It bounds μ, the distance of the clean outputs over the noise scale, from below, and converts it to epsilon by the
Gaussian trade-off (PAPER, §1; STATISTICS, "Model-based certificates"). It is conditional on the declaration: no
sample can exclude a contamination rarer than it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, ndtri

from pytest_snapaudit.engine.certificates.base import (
    SHAPE_LEVEL,
    Certificate,
    CertificateBound,
    Tallies,
    too_few,
)
from pytest_snapaudit.engine.estimators import gdp_epsilon
from pytest_snapaudit.engine.goodness_of_fit import (
    GaussianReference,
    ShapeTally,
    equal_scale_test,
    shape_test,
)
from pytest_snapaudit.engine.outcomes import Rows


@dataclass(frozen=True)
class GaussianCertificate(Certificate):
    """A declared Gaussian noise stage on one fixed clean output per side, seen along their difference.

    Attributes:
        direction: (d,) unit vector from the reference's clean output to the canary's.
        distance: their Euclidean distance, in units of the clean output.
        references: where the shape tests expect the projected draws of each side.
    """

    direction: NDArray[np.float64]
    distance: float
    references: tuple[GaussianReference, GaussianReference]

    def tally(self, rows: tuple[Rows, Rows]) -> Tallies:
        """Shape tallies of the projections."""
        a, b = (
            ShapeTally.from_values((side @ self.direction.astype(side.dtype)).astype(np.float64), reference)
            for side, reference in zip(rows, self.references, strict=True)
        )
        return a, b

    def failed_conditions(self, tallies: Tallies) -> tuple[str, ...]:
        """Shape, and equal scale on both sides."""
        a, b = cast("tuple[ShapeTally, ShapeTally]", tallies)
        few = too_few(min(a.n, b.n))
        if few:
            return few
        refusals = []
        shape = shape_test((a, b), SHAPE_LEVEL)
        if not shape.passed:
            refusals.append(f"the noise is not Gaussian: {shape.reason} (p = {shape.p_value:.2g})")
        if not equal_scale_test(a, b, SHAPE_LEVEL).passed:
            first, second = a.sample_variance**0.5, b.sample_variance**0.5
            refusals.append(f"the noise scale differs between the sides ({first:.6g} and {second:.6g})")
        return tuple(refusals)

    def bound(self, tallies: Tallies, alpha: float, delta: float) -> CertificateBound:
        """``mu_lower = distance / sigma_upper`` with a χ² bound on sigma, at nine tenths of ``alpha``.

        Where the observed shift excludes the distance of the clean outputs, the shift is estimated too, at the
        last tenth.
        """
        refusals = self.failed_conditions(tallies)
        if refusals:
            return CertificateBound(0.0, 0.0, refusals)
        a, b = cast("tuple[ShapeTally, ShapeTally]", tallies)
        freedom = a.n + b.n - 2
        spread = a.sum_of_squares + b.sum_of_squares
        shift = b.sample_mean - a.sample_mean
        standard_error = float(np.sqrt(spread / freedom * (1.0 / a.n + 1.0 / b.n)))
        if abs(shift - self.distance) <= -float(ndtri(SHAPE_LEVEL / 2)) * standard_error:
            sigma_upper = float(np.sqrt(spread / chdtri(freedom, 1.0 - 0.9 * alpha)))
            mu = self.distance / sigma_upper
            note = "known shift"
        else:
            sigma_upper = float(np.sqrt(spread / chdtri(freedom, 1.0 - alpha / 20)))
            error = -float(ndtri(alpha / 40)) * float(np.sqrt(1.0 / a.n + 1.0 / b.n))
            mu = max(abs(shift) / sigma_upper - error, 0.0)
            note = f"estimated shift {abs(shift):.6g} (clean outputs are {self.distance:.6g} apart)"
        return CertificateBound(gdp_epsilon(mu, delta), mu, (), note)


def gaussian_certificate(
    direction: NDArray[np.float64], pilot: tuple[Rows, Rows]
) -> GaussianCertificate | tuple[str, ...]:
    """The certificate set up on pilot draws, (h, d) per side, or why it does not apply.

    Args:
        direction: (d,) difference of the clean outputs.
        pilot: white-box draws that are not tallied later.
    """
    distance = float(np.linalg.norm(direction))
    unit = direction / distance
    projected = [(side @ unit.astype(side.dtype)).astype(np.float64) for side in pilot]
    if not all(np.isfinite(side).all() and side.std() > 0 for side in projected):
        return ("the white-box draws are constant or not finite along the difference of the clean outputs",)
    first, second = (GaussianReference(float(side.mean()), float(side.std(ddof=1))) for side in projected)
    return GaussianCertificate(unit, distance, (first, second))
