"""The location certificate: the exact loss of a declared law at its known shift and at a bound of its scale.

A true scale larger than declared is a safer mechanism. The certificate therefore never uses the declared scale: it
bounds the scale from the draws, and takes the loss at that bound (STATISTICS, "Model-based certificates").
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy.optimize import minimize_scalar

from pytest_snapaudit.engine.certificates import conditions
from pytest_snapaudit.engine.certificates.base import Certificate, CertificateBound, Tallies
from pytest_snapaudit.engine.certificates.residuals import ResidualFrame
from pytest_snapaudit.engine.outcomes import Rows

_SCALES_BETWEEN = 9


@dataclass(frozen=True)
class LocationCertificate(Certificate):
    """Declared noise on one coordinate, at any delta, or on several independent ones at delta = 0."""

    frame: ResidualFrame

    def tally(self, rows: tuple[Rows, Rows]) -> Tallies:
        """Residual tallies."""
        frame = self.frame
        tested = frame.tested(len(rows[0]))
        a, b = (frame.tally(frame.residuals(rows[side][:tested], side)) for side in (0, 1))
        return a, b

    def failed_conditions(self, tallies: Tallies) -> tuple[str, ...]:
        """Shape, equal scale, independence of coordinates."""
        return conditions.failed_conditions(cast("conditions.Pair", tallies))

    def bound(self, tallies: Tallies, alpha: float, delta: float) -> CertificateBound:
        """Exact epsilon at an upper bound of the scale.

        For a law of which it is not known that a larger scale is never less private: the least epsilon between
        a lower and an upper bound of the scale, ``alpha / 2`` each.
        """
        refusals = self.failed_conditions(tallies)
        if refusals:
            return CertificateBound(0.0, 0.0, refusals)
        pair = cast("conditions.Pair", tallies)
        if self.frame.law.monotone:
            highest = conditions.scale_upper(pair, alpha)
            lowest = highest
        else:
            lowest, highest = conditions.scale_lower(pair, alpha / 2), conditions.scale_upper(pair, alpha / 2)
        if not 0.0 < lowest <= highest < math.inf:
            return CertificateBound(0.0, 0.0, ("the draws do not bound the noise scale",))
        return CertificateBound(
            epsilon_lower=self.least_epsilon(lowest, highest, delta),
            mu_lower=0.0,
            refusals=(),
            note=f"known shift, noise scale at most {highest:.6g}",
            estimator=f"{self.frame.law.name} privacy loss",
            attack="what the noise adds to the known clean outputs",
        )

    def least_epsilon(self, lowest: float, highest: float, delta: float) -> float:
        """The least epsilon between two scales: on a grid, refined where it is not at the upper end."""
        if lowest == highest:
            return self.epsilon_at(highest, delta)
        scales = np.geomspace(lowest, highest, _SCALES_BETWEEN).tolist()
        found = [self.epsilon_at(scale, delta) for scale in scales]
        at = int(np.argmin(found))
        if at == len(scales) - 1 or not math.isfinite(found[at]):
            return found[at]
        between = (scales[max(at - 1, 0)], scales[at + 1])
        refined = minimize_scalar(
            self.epsilon_at,
            bounds=between,
            args=(delta,),
            method="bounded",
            options={"xatol": 1e-6 * highest},
        )
        return min(found[at], float(refined.fun))

    def epsilon_at(self, scale: float, delta: float) -> float:
        """Exact epsilon at ``delta`` if the noise has this scale; losses of independent coordinates add up."""
        law, shift = self.frame.law, self.frame.shift.tolist()
        if len(shift) == 1:
            return law.epsilon(shift[0], scale, delta)
        return sum(law.largest_loss(s, scale) for s in shift) if delta == 0.0 else 0.0
