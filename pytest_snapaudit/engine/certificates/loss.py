"""The privacy-loss certificate: the mean of (1 − e^{ε−L})₊ over real draws, L the declared privacy loss.

``δ(ε) = E_P[(1 − e^{ε−L})₊]`` with ``L = ln(p/q)`` holds for any pair of densities (Balle and Wang, ICML 2018,
Theorem 5), so a lower bound of a mean of values in [0, 1] bounds δ(ε) from below. Losses are counted on a fixed grid,
rounded down, which rounds the values down for every ε at once and keeps memory flat.

A scale that is larger than declared makes a correct mechanism look worse than it is: the losses are too large for the
shift. Losses are therefore taken at a scale a little above the expected one, and the draws must show that the true
scale is not above that. For laws whose loss is a multiple of one function (Laplace, discrete Laplace) this is exact;
for others the scale must in addition agree with the expected one from below.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from pytest_snapaudit.engine.bounds import clopper_pearson_lower
from pytest_snapaudit.engine.certificates import conditions
from pytest_snapaudit.engine.certificates.base import SHAPE_LEVEL, Certificate, CertificateBound, Tallies
from pytest_snapaudit.engine.certificates.residuals import ResidualFrame, ResidualTally, scale_at, within
from pytest_snapaudit.engine.families import FloatArray
from pytest_snapaudit.engine.outcomes import Rows
from pytest_snapaudit.engine.seeding import BLOCK

CELLS = 4_096
SCALE_SHARE = 0.1
"""Share of the certificate's error probability that the bound of the scale gets."""

_BETS = np.concatenate([np.logspace(-3.5, -0.3, 10), [0.7, 0.9, 0.99]])
_BISECTIONS = 24
_CHUNK = 2**18
_NEAR, _MARGIN = 0.15, 3.3


@dataclass(frozen=True, eq=False)
class LossTally:
    """Residuals of one side, and how often the privacy loss fell into each cell."""

    residuals: ResidualTally
    losses: NDArray[np.int64]

    def merge(self, other: LossTally) -> LossTally:
        """The tally of both tallies' draws."""
        return replace(
            self, residuals=self.residuals.merge(other.residuals), losses=self.losses + other.losses
        )


@dataclass(frozen=True)
class LossCertificate(Certificate):
    """Declared independent noise on one or more coordinates, without a closed form.

    Attributes:
        frame: how draws become residuals.
        scale: at which losses are taken.
        top: lower edge of the last cell of losses.
    """

    frame: ResidualFrame
    scale: float
    top: float

    def tally(self, rows: tuple[Rows, Rows]) -> Tallies:
        """Residual tallies with counts of the losses."""
        frame, tallies = self.frame, []
        for side in (0, 1):
            tested = frame.tally(frame.residuals(rows[side][: frame.tested(len(rows[side]))], side))
            tallies.append(LossTally(tested, self._losses(rows[side], side)))
        return tallies[0], tallies[1]

    def _losses(self, rows: Rows, side: int) -> NDArray[np.int64]:
        counts = np.zeros(CELLS + 1, dtype=np.int64)
        step = max(_CHUNK // len(self.frame.columns), 1)
        for start in range(0, len(rows), step):
            residuals = self.frame.residuals(rows[start : start + step], side)
            losses = privacy_losses(self.frame, residuals, side, self.scale)
            with np.errstate(invalid="ignore"):
                cell = np.clip(np.nan_to_num(losses * (CELLS / self.top), posinf=CELLS), 0, CELLS)
            counts += np.bincount(cell.astype(np.intp), minlength=CELLS + 1)
        return counts

    def failed_conditions(self, tallies: Tallies) -> tuple[str, ...]:
        """Shape, equal scale, independence; and, where the loss is no multiple of one function, the scale."""
        pair = _residual_tallies(tallies)
        refusals = conditions.failed_conditions(pair)
        if refusals or self.frame.law.homogeneous:
            return refusals
        fits = [conditions.fitted_scale(tally) for tally in pair]
        margin = -float(ndtri(SHAPE_LEVEL / 2))
        for tally, fit in zip(pair, fits, strict=True):
            error = conditions.scale_error(tally, fit)
            tolerance = margin * error + math.log(self.scale / self.frame.scale)
            if abs(math.log(fit / self.frame.scale)) > tolerance:
                times = fit / self.frame.scale
                return (f"the noise scale is {times:.6g} times the declared one, beyond {tolerance:.2g}",)
        return ()

    def bound(self, tallies: Tallies, alpha: float, delta: float) -> CertificateBound:
        """The largest epsilon at which δ(ε) exceeds ``delta``, by betting, in either direction."""
        refusals = self.failed_conditions(tallies)
        if refusals:
            return CertificateBound(0.0, 0.0, refusals)
        highest = conditions.scale_upper(_residual_tallies(tallies), SCALE_SHARE * alpha)
        if highest > self.scale:
            reason = (
                f"the noise scale is only known to be at most {highest:.6g}, and the losses are taken at "
                f"{self.scale:.6g}"
            )
            return CertificateBound(0.0, 0.0, (reason,))
        each = (1.0 - SCALE_SHARE) * alpha / 2
        edges = np.asarray(np.arange(CELLS + 1) * (self.top / CELLS), dtype=np.float64)
        sides = [cast("LossTally", tally).losses for tally in tallies]
        return CertificateBound(
            epsilon_lower=max(epsilon_from_losses(edges, losses, delta, each) for losses in sides),
            mu_lower=0.0,
            refusals=(),
            note=f"losses at noise scale {self.scale:.6g}",
            estimator=f"mean {self.frame.law.name} privacy loss",
            attack="declared privacy loss of the noise added to the known clean outputs",
        )


def _residual_tallies(tallies: Tallies) -> conditions.Pair:
    a, b = (cast("LossTally", tally).residuals for tally in tallies)
    return a, b


def privacy_losses(frame: ResidualFrame, residuals: FloatArray, side: int, scale: float) -> FloatArray:
    """(n,) losses ln(p/q) of draws of one side, p the law of that side, q that of the other."""
    other = residuals + (frame.centres[side] - frame.centres[1 - side])
    law = frame.law
    with np.errstate(invalid="ignore", divide="ignore"):
        own, others = law.log_density(residuals, scale), law.log_density(other, scale)
        return np.asarray((own - others).sum(axis=1))


def epsilon_from_losses(edges: FloatArray, counts: NDArray[np.int64], delta: float, alpha: float) -> float:
    """Lower bound of ε at ``delta`` from counts of losses, each rounded down to its edge.

    Args:
        edges: (k,) increasing losses, the first one 0 (or less).
        counts: (k,) draws per edge.
        alpha: error probability.

    Returns:
        The largest ε (to a millionth of the last edge) at which the hypothesis δ(ε) <= delta is rejected; these
        hypotheses are nested, and each is tested at ``alpha`` with the same bets.
    """
    seen = counts > 0
    losses, weights = edges[seen], counts[seen].astype(np.float64)
    if len(losses) == 0 or losses[-1] <= 0.0:
        return 0.0
    if delta == 0.0:
        return float(losses[-1])
    low, high = 0.0, float(losses[-1])
    if not mean_exceeds(-np.expm1(np.minimum(-losses, 0.0)), weights, delta, alpha):
        return 0.0
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        z = -np.expm1(np.minimum(middle - losses, 0.0))
        low, high = (middle, high) if mean_exceeds(z, weights, delta, alpha) else (low, middle)
    return low


def mean_exceeds(z: FloatArray, weights: FloatArray, mean: float, alpha: float) -> bool:
    """Whether independent values in [0, 1] refute that their mean is at most ``mean``.

    The mixture ``Σ_j Π_i (1 + c_j (z_i / mean − 1)) / J`` over fixed fractions c_j in (0, 1) has expectation at most
    1 under the hypothesis, does not depend on the order of the values, and refutes it from 1/``alpha`` on (Markov's
    inequality; Waudby-Smith and Ramdas, JRSS B 86, 2024, section 4, with fixed bets).

    Args:
        z: (k,) distinct values.
        weights: (k,) how often each was seen.
        mean: above 0.
    """
    wealth = np.log1p(_BETS[:, None] * (z / mean - 1.0)) @ weights
    peak = float(wealth.max())
    return peak + math.log(float(np.exp(wealth - peak).mean())) >= -math.log(alpha)


def _reach(frame: ResidualFrame, values: float, alpha: float) -> float:
    """Where the upper bound of the scale from so many values almost surely lies if the scale is as declared."""
    law = frame.law
    share = within(law, frame.inside, law.scale)
    low = max(values * share - _MARGIN * math.sqrt(values * share * (1.0 - share)), 1.0)
    found = scale_at(law, frame.inside, float(clopper_pearson_lower(low, values, alpha)), law.scale)
    return law.scale * (1.0 + _NEAR) if found is None else found


def loss_certificate(
    frame: ResidualFrame, pilot: tuple[Rows, Rows], *, planned: int, alpha: float
) -> LossCertificate:
    """The certificate with a scale that the planned draws can show to be an upper bound.

    Args:
        frame: set up on the pilot.
        pilot: (h, d) draws per side.
        planned: draws per side that will be tallied in all.
        alpha: error probability of the certificate.
    """
    law = frame.law
    near = abs(math.log(frame.scale / law.scale)) <= _NEAR
    expected = law.scale if near or not law.scaled else frame.scale
    scale = frame.scale * (1.0 + _NEAR)
    if expected == law.scale:
        tested = 2.0 * planned * frame.tested(BLOCK) / BLOCK
        scale = _reach(frame, tested * len(frame.columns), SCALE_SHARE * alpha)
    largest = [law.largest_loss(s, scale) for s in frame.shift.tolist()] if law.homogeneous else [math.inf]
    top = sum(largest)
    if not math.isfinite(top):
        seen = np.concatenate(
            [privacy_losses(frame, frame.residuals(pilot[side], side), side, scale) for side in (0, 1)]
        )
        seen = seen[np.isfinite(seen)]
        top = 1.5 * max(float(seen.max(initial=0.0)), 1e-6)
    return LossCertificate(replace(frame, scale=expected), scale, top * (1.0 + 1e-12))
