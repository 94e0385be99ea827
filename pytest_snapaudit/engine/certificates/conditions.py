"""Tests of a declared law on tallied residuals: shape, equal scale, independence; and bounds of the scale.

The tests' levels are asymptotic; a rejection withdraws a certificate and never fails a mechanism. The bounds of the
scale are exact: a pivot for Laplace and exponential noise, else the exact binomial bound of the probability of an
interval about 0, which decreases in the scale (STATISTICS, "Model-based certificates").
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import chdtrc, ndtri, pdtr, pdtrc

from pytest_snapaudit.engine.bounds import clopper_pearson_lower, clopper_pearson_upper
from pytest_snapaudit.engine.certificates.base import SHAPE_LEVEL, too_few
from pytest_snapaudit.engine.certificates.residuals import TAILS, ResidualTally, scale_at
from pytest_snapaudit.engine.families import ExponentialLaw, FloatArray, LaplaceLaw, gamma_scale_upper

_LEAST_EXPECTED = 10.0
_VALUES_A_ROW = 10
"""At most so many coordinates of one draw count towards the draws that the tests need."""
Pair = tuple[ResidualTally, ResidualTally]


def failed_conditions(tallies: Pair) -> tuple[str, ...]:
    """Which of shape, equal scale and independence fail on the residuals of both sides."""
    few = too_few(min(min(tally.values, tally.rows * _VALUES_A_ROW) for tally in tallies))
    if few:
        return few
    law, refusals = tallies[0].frame.law, []
    for tally, side in zip(tallies, ("reference", "canary"), strict=True):
        misfit = unfit(tally)
        if misfit:
            return (f"the noise on the {side} side is not {law.name}: {misfit}",)
    fits = [fitted_scale(tally) for tally in tallies]
    for tally, scale, side in zip(tallies, fits, ("reference", "canary"), strict=True):
        p_value, reason = shape_p_value(tally, scale)
        if p_value <= SHAPE_LEVEL / 2:
            refusals.append(f"the noise on the {side} side is not {law.name}: {reason} (p = {p_value:.2g})")
    errors = [scale_error(tally, scale) for tally, scale in zip(tallies, fits, strict=True)]
    distance = abs(math.log(fits[0]) - math.log(fits[1]))
    if not distance <= -float(ndtri(SHAPE_LEVEL / 2)) * math.hypot(*errors):
        refusals.append(f"the noise scale differs between the sides ({fits[0]:.6g} and {fits[1]:.6g})")
    if not all(independent(tally) for tally in tallies):
        refusals.append("the noise of different coordinates is not independent")
    return tuple(refusals)


def unfit(tally: ResidualTally) -> str:
    """Why residuals cannot have the declared law, whatever its scale; empty if they can."""
    law = tally.frame.law
    if tally.unfit:
        return f"{tally.unfit} draws are not finite"
    if tally.off_lattice:
        return f"{tally.off_lattice} values are not whole numbers"
    if tally.low < law.lowest:
        return f"a value of {tally.low:.6g} lies below its support"
    if int(np.count_nonzero(tally.cells)) < 2:
        return "the values have no spread"
    return ""


def fitted_scale(tally: ResidualTally) -> float:
    """The maximum likelihood estimate of the scale from the cells."""
    frame = tally.frame

    def loss(log_scale: float) -> float:
        chance = frame.law.between(frame.edges, math.exp(log_scale))
        return -float(tally.cells @ np.log(np.maximum(chance, 1e-300)))

    about = math.log(frame.scale)
    found = minimize_scalar(
        loss, bounds=(about - 0.5, about + 0.5), method="bounded", options={"xatol": 1e-7}
    )
    return math.exp(float(found.x))


def scale_error(tally: ResidualTally, scale: float) -> float:
    """Standard error of the log of the fitted scale, by the cells' Fisher information."""
    frame, step = tally.frame, 1e-4
    chance = frame.law.between(frame.edges, scale)
    rise = frame.law.between(frame.edges, scale * math.exp(step))
    fall = frame.law.between(frame.edges, scale * math.exp(-step))
    slope = (rise - fall) / (2.0 * step)
    used = chance > 1e-12
    information = tally.values * float((slope[used] ** 2 / chance[used]).sum())
    return 1.0 / math.sqrt(max(information, 1e-300))


def shape_p_value(tally: ResidualTally, scale: float) -> tuple[float, str]:
    """Bonferroni p-value of χ² over cells, counts in the tails and the extremes, at a fitted scale.

    Estimating the scale from the cells themselves can only lower the χ² statistic against cells − 1 degrees of
    freedom (Chernoff and Lehmann, Annals of Mathematical Statistics 25, 1954).
    """
    frame, law, n = tally.frame, tally.frame.law, tally.values
    expected = law.between(frame.edges, scale) * n
    tests = [(_chi_square_p(tally.cells.astype(np.float64), expected), "χ² over cells")]
    observed_below, expected_below = np.cumsum(tally.cells), np.cumsum(expected)
    for i in range(min(len(TAILS), (len(frame.edges) - 1) // 2)):
        upper_expected, upper = float(expected[-1 - i :].sum()), int(tally.cells[-1 - i :].sum())
        tests.append(
            (_poisson_p(int(observed_below[i]), float(expected_below[i])), f"count in lower tail {i}")
        )
        tests.append((_poisson_p(upper, upper_expected), f"count in upper tail {i}"))
    beyond = float(law.sf(np.array([tally.high - 0.5 * law.whole]), scale)[0])
    tests.append((min(1.0, n * beyond), "largest value"))
    if law.lowest == -math.inf:
        below = float(law.cdf(np.array([tally.low]), scale)[0])
        tests.append((min(1.0, n * below), "smallest value"))
    p_value, name = min(tests)
    return min(1.0, len(tests) * p_value), f"{name}, worst of {len(tests)} sub-tests"


def _chi_square_p(observed: FloatArray, expected: FloatArray) -> float:
    """Pearson's test, neighbouring cells joined until 10 are expected in each."""
    joined: list[list[float]] = [[0.0, 0.0]]
    for seen, expect in zip(observed.tolist(), expected.tolist(), strict=True):
        if joined[-1][1] >= _LEAST_EXPECTED:
            joined.append([0.0, 0.0])
        joined[-1][0] += seen
        joined[-1][1] += expect
    if len(joined) > 1 and joined[-1][1] < _LEAST_EXPECTED:
        last = joined.pop()
        joined[-1][0] += last[0]
        joined[-1][1] += last[1]
    o, e = np.array(joined).T
    return float(chdtrc(len(o) - 1, ((o - e) ** 2 / e).sum())) if len(o) > 1 else 1.0


def _poisson_p(count: int, mean: float) -> float:
    at_least = float(pdtrc(count - 1, mean)) if count > 0 else 1.0
    return min(1.0, 2.0 * min(float(pdtr(count, mean)), at_least))


def independent(tally: ResidualTally) -> bool:
    """Whether signs, and sizes, of different coordinates are uncorrelated: the worst pair, and all pairs together."""
    n, m = tally.rows, tally.signs.shape[1]
    if m < 2:
        return True
    mean = tally.signs / n
    covariance = tally.products / n - mean[:, :, None] * mean[:, None, :]
    spread = np.sqrt(np.maximum(1.0 - mean**2, 1e-12))
    upper = np.triu_indices(m, 1)
    scores = (covariance / spread[:, :, None] / spread[:, None, :])[:, upper[0], upper[1]] * math.sqrt(n)
    worst = -float(ndtri(SHAPE_LEVEL / 4 / scores.size))
    together = -float(ndtri(SHAPE_LEVEL / 8))
    sums = scores.sum(axis=1) / math.sqrt(scores.shape[1])
    return bool(np.abs(scores).max() <= worst and np.abs(sums).max() <= together)


def scale_upper(tallies: Pair, alpha: float) -> float:
    """Upper confidence bound of the common scale, exact for the declared law; ``inf`` if there is none."""
    a, b = tallies
    law, values = a.frame.law, a.values + b.values
    if isinstance(law, LaplaceLaw | ExponentialLaw):
        return gamma_scale_upper(a.sum_of_sizes + b.sum_of_sizes, float(values), alpha)
    share = float(clopper_pearson_lower(a.inside + b.inside, values, alpha))
    found = scale_at(law, a.frame.inside, share, a.frame.scale) if share > 0.0 else None
    return math.inf if found is None else found


def scale_lower(tallies: Pair, alpha: float) -> float:
    """Lower confidence bound of the common scale, from the interval about 0; 0 if there is none."""
    a, b = tallies
    share = float(clopper_pearson_upper(a.inside + b.inside, a.values + b.values, alpha))
    found = scale_at(a.frame.law, a.frame.inside, share, a.frame.scale) if share < 1.0 else None
    return 0.0 if found is None else found
