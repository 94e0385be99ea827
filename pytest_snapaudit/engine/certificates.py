"""Model-based certificates: bounds that rest on a declared and tested noise distribution.

The Gaussian location certificate bounds μ, the distance of the clean outputs over the noise scale, from
below, and converts it to epsilon by the Gaussian trade-off (PAPER, §1; STATISTICS, "Model-based
certificates"). It is conditional on the declaration: no sample can exclude a contamination rarer than it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, ndtri

from pytest_snapaudit.engine.estimators import gdp_epsilon
from pytest_snapaudit.engine.goodness_of_fit import (
    GaussianReference,
    ShapeTally,
    equal_scale_test,
    shape_test,
)
from pytest_snapaudit.engine.noise import GaussianNoise
from pytest_snapaudit.engine.outcomes import Rows
from pytest_snapaudit.engine.subject import Subject

SHAPE_LEVEL = 1e-3
"""Level of the tests whose rejection withdraws a certificate; a withdrawal costs power, never validity."""

MIN_DRAWS = 5_000
"""White-box draws per side below which the shape tests have too little power to rest a certificate on."""


@dataclass(frozen=True)
class GaussianCertificate:
    """A declared Gaussian noise stage on one fixed clean output per side, seen along their difference.

    Attributes:
        direction: (d,) unit vector from the reference's clean output to the canary's.
        distance: their Euclidean distance, in units of the clean output.
        references: where the shape tests expect the projected draws of each side.
    """

    direction: NDArray[np.float64]
    distance: float
    references: tuple[GaussianReference, GaussianReference]

    def tally(self, rows: tuple[Rows, Rows]) -> tuple[ShapeTally, ShapeTally]:
        """Sufficient statistics of one block of white-box draws, (n, d) per side."""
        a, b = (
            ShapeTally.from_values((side @ self.direction.astype(side.dtype)).astype(np.float64), reference)
            for side, reference in zip(rows, self.references, strict=True)
        )
        return a, b


@dataclass(frozen=True)
class CertificateBound:
    """What a certificate gives on all draws so far: a bound, or the conditions that failed."""

    epsilon_lower: float
    mu_lower: float
    refusals: tuple[str, ...]
    note: str = ""


def static_refusals(subject: Subject) -> tuple[str, ...]:
    """Conditions of the Gaussian certificate that can be decided without a draw; empty if all hold."""
    if not isinstance(subject.noise, GaussianNoise):
        return ("the mechanism declares no GaussianNoise(sigma)",)
    refusals = []
    if subject.clean != "fixed" or subject.clean_rows is None:
        refusals.append(
            "the clean stage is random or not declared deterministic (it needs one fixed clean output per side)"
        )
    elif subject.clean_direction is None:
        refusals.append("the clean outputs are not finite numbers")
    if not subject.noise_stage_covered:
        refusals.append("the claim does not cover the white-box view, or that view is not audited")
    return tuple(refusals)


def prepare(subject: Subject, pilot: tuple[Rows, Rows] | None) -> GaussianCertificate | tuple[str, ...]:
    """The certificate, set up on pilot draws of the white-box view, or why it does not apply."""
    refusals = static_refusals(subject)
    direction = subject.clean_direction
    if refusals or direction is None or pilot is None:
        return refusals or ("there are no white-box draws",)
    if pilot[0].shape[1] != len(direction):
        return (
            f"privatize returns {pilot[0].shape[1]} numbers for {len(direction)} clean ones, so the noise is not "
            "seen alone",
        )
    distance = float(np.linalg.norm(direction))
    unit = direction / distance
    projected = [(side @ unit.astype(side.dtype)).astype(np.float64) for side in pilot]
    if not all(np.isfinite(side).all() and side.std() > 0 for side in projected):
        return ("the white-box draws are constant or not finite along the difference of the clean outputs",)
    first, second = (GaussianReference(float(side.mean()), float(side.std(ddof=1))) for side in projected)
    return GaussianCertificate(unit, distance, (first, second))


def gaussian_bound(
    certificate: GaussianCertificate, tallies: tuple[ShapeTally, ShapeTally], alpha: float, delta: float
) -> CertificateBound:
    """Lower bound on epsilon from all draws so far, at error probability ``alpha``.

    ``mu_lower = distance / sigma_upper`` with a χ² bound on sigma, at nine tenths of ``alpha``; where the
    observed shift excludes the distance of the clean outputs, the shift is estimated too, at the last tenth.
    """
    refusals = failed_conditions(tallies)
    if refusals:
        return CertificateBound(0.0, 0.0, refusals)
    a, b = tallies
    freedom = a.n + b.n - 2
    spread = a.sum_of_squares + b.sum_of_squares
    shift = b.sample_mean - a.sample_mean
    standard_error = float(np.sqrt(spread / freedom * (1.0 / a.n + 1.0 / b.n)))
    if abs(shift - certificate.distance) <= -float(ndtri(SHAPE_LEVEL / 2)) * standard_error:
        sigma_upper = float(np.sqrt(spread / chdtri(freedom, 1.0 - 0.9 * alpha)))
        mu = certificate.distance / sigma_upper
        note = "known shift"
    else:
        sigma_upper = float(np.sqrt(spread / chdtri(freedom, 1.0 - alpha / 20)))
        error = -float(ndtri(alpha / 40)) * float(np.sqrt(1.0 / a.n + 1.0 / b.n))
        mu = max(abs(shift) / sigma_upper - error, 0.0)
        note = f"estimated shift {abs(shift):.6g} (clean outputs are {certificate.distance:.6g} apart)"
    return CertificateBound(gdp_epsilon(mu, delta), mu, (), note)


def failed_conditions(tallies: tuple[ShapeTally, ShapeTally]) -> tuple[str, ...]:
    """Which of the tested conditions fail on the draws so far."""
    a, b = tallies
    if min(a.n, b.n) < MIN_DRAWS:
        return (
            f"{min(a.n, b.n):,} white-box draws per side are too few to test the shape ({MIN_DRAWS:,} needed)",
        )
    refusals = []
    shape = shape_test(tallies, SHAPE_LEVEL)
    if not shape.passed:
        refusals.append(f"the noise is not Gaussian: {shape.reason} (p = {shape.p_value:.2g})")
    if not equal_scale_test(a, b, SHAPE_LEVEL).passed:
        refusals.append(
            f"the noise scale differs between the sides ({a.sample_variance**0.5:.6g} and {b.sample_variance**0.5:.6g})"
        )
    return tuple(refusals)
