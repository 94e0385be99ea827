"""Does the noise have the declared shape? A test in flat memory, for any number of draws.

Draws are reduced to a :class:`ShapeTally` (moments, counts in fixed cells, extremes). Tallies of any blocks
merge in any order to the tally of all their draws, so blocks may be drawn by any worker. The cells are fixed
by a *reference*: a rough location and scale from earlier draws or from the declaration. Location and scale of
the law under test are then estimated from the tally itself; a passed shape test says nothing about them.

:func:`shape_test` applies the family's sub-tests to every side and combines their p-values. Noise of the
declared shape is rejected with probability at most ``alpha``, up to the large-sample approximations of the
sub-tests, which are chosen to err to the safe side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, fdtr, fdtrc, gammainc, gammaincc

from pytest_snapaudit.engine.shape_families import (
    FloatArray,
    GaussianReference,
    LaplaceReference,
    ShapeReference,
    SubTest,
    cell_edges,
)
from pytest_snapaudit.engine.shape_tally import ShapeTally

__all__ = [
    "GaussianReference",
    "LaplaceReference",
    "ShapeReference",
    "ShapeTally",
    "ShapeTest",
    "equal_scale_test",
    "shape_test",
]

LEAST_VALUES = 200
_LEAST_EXPECTED = 10.0


@dataclass(frozen=True)
class ShapeTest:
    """The outcome of a test of shape or scale.

    Attributes:
        passed: whether the p-value exceeds the level.
        p_value: bound on the probability of a worst sub-test this bad under the declared shape; 0 for values
            that no such law gives, and for too few values to tell.
        reason: the worst sub-test, with its own p-value, in words.
    """

    passed: bool
    p_value: float
    reason: str


def shape_test(tallies: ShapeTally | Sequence[ShapeTally], alpha: float) -> ShapeTest:
    """Test that each tally's values are independent draws of one law of its reference's family.

    Sub-tests: χ² over the cells (degrees of freedom as if nothing had been estimated), counts beyond fixed
    tail thresholds (Poisson), the largest deviation, and for Gaussian laws skewness and kurtosis, for Laplace
    laws the mean of exp(|x − median| / 4b). The p-values of one sub-test on independent sides are combined by
    Fisher's method, those of different sub-tests by Bonferroni's inequality.

    Args:
        tallies: one tally, or one per side, all of one family; their locations and scales may differ.
        alpha: probability of rejecting values of exactly the declared shape.

    Returns:
        The combined outcome. Fewer than 200 values on a side, non-finite values, or values without spread
        fail.

    Raises:
        ValueError: without tallies, for tallies of different families, or if alpha is outside (0, 1).
    """
    sides = [tallies] if isinstance(tallies, ShapeTally) else list(tallies)
    _check_alpha(alpha)
    if not sides:
        msg = "shape_test needs at least one tally, got none."
        raise ValueError(msg)
    family = _common_family(sides)
    failure = _first_unfit(sides)
    if failure:
        return ShapeTest(passed=False, p_value=0.0, reason=failure)
    combined = [
        SubTest(tests[0].name, _fisher_p([test.p_value for test in tests]))
        for tests in zip(*map(_sub_tests, sides), strict=True)
    ]
    worst = min(combined, key=lambda test: test.p_value)
    p_value = min(1.0, worst.p_value * len(combined))
    reason = f"{worst.name} of a {family} law, p = {worst.p_value:.2g} (worst of {len(combined)} sub-tests)"
    return ShapeTest(passed=p_value > alpha, p_value=p_value, reason=reason)


def equal_scale_test(tally0: ShapeTally, tally1: ShapeTally, alpha: float) -> ShapeTest:
    """Test that two sides, each of the declared shape, have the same scale (two-sided F test).

    Exact for Gaussian laws; for Laplace laws the estimates of b behave like those of exponential laws.

    Raises:
        ValueError: if the families differ, or alpha is outside (0, 1).
    """
    _check_alpha(alpha)
    family = _common_family([tally0, tally1])
    failure = _first_unfit([tally0, tally1])
    if failure:
        return ShapeTest(passed=False, p_value=0.0, reason=failure)
    spread0, freedom0 = tally0.reference.dispersion(tally0)
    spread1, freedom1 = tally1.reference.dispersion(tally1)
    ratio = spread0 / spread1
    tails = float(fdtr(freedom0, freedom1, ratio)), float(fdtrc(freedom0, freedom1, ratio))
    p_value = min(1.0, 2.0 * min(tails))
    reason = f"ratio of the sides' {_SPREAD[family]}s {ratio:.6g}, p = {p_value:.2g}"
    return ShapeTest(passed=p_value > alpha, p_value=p_value, reason=reason)


_SPREAD = {"Gaussian": "variance", "Laplace": "scale"}


def _check_alpha(alpha: float) -> None:
    if not 0.0 < alpha < 1.0:
        msg = f"alpha must lie strictly between 0 and 1, got {alpha!r}."
        raise ValueError(msg)


def _common_family(sides: Sequence[ShapeTally]) -> str:
    families = sorted({tally.reference.family for tally in sides})
    if len(families) > 1:
        msg = f"all sides must be tallied for one family, got {' and '.join(families)}."
        raise ValueError(msg)
    return families[0]


def _first_unfit(sides: Sequence[ShapeTally]) -> str:
    for index, tally in enumerate(sides):
        unfit = _unfit(tally)
        if unfit:
            return f"side {index}: {unfit}" if len(sides) > 1 else unfit
    return ""


def _unfit(tally: ShapeTally) -> str:
    """Why no test can be made of these values; empty if one can."""
    if tally.not_finite:
        return f"{tally.not_finite} values are not finite"
    if tally.n < LEAST_VALUES:
        return f"{tally.n} values are too few to test a shape, at least {LEAST_VALUES} are needed"
    if not (tally.m2 > 0.0 and math.isfinite(tally.m4) and np.isfinite(tally.sums).all()):
        return "the values have no spread" if tally.m2 == 0.0 else "the values are too extreme"
    return ""


def _sub_tests(tally: ShapeTally) -> list[SubTest]:
    reference = tally.reference
    location, scale = reference.fit(tally)
    edges, below = cell_edges(type(reference)), np.cumsum(tally.cells)
    tests = [SubTest("χ² over cells", _chi_square_p(tally, edges, location, scale))]
    for threshold in reference.tail_thresholds:
        left, right = np.searchsorted(edges, [-threshold, threshold])
        beyond = tally.n - int(below[right] - below[left])
        beyond_both = np.array([threshold - location, threshold + location]) / scale
        chance = reference.tail(beyond_both).sum()
        tests.append(
            SubTest(f"count beyond {threshold:g} scales", _poisson_p(beyond, tally.n * float(chance)))
        )
    farthest = max(tally.high - location, location - tally.low) / scale
    chance = 2.0 * float(reference.tail(np.array([farthest]))[0])
    tests.append(SubTest("largest deviation", min(1.0, tally.n * chance)))
    return tests + reference.moment_tests(tally, location, scale)


def _chi_square_p(tally: ShapeTally, edges: FloatArray, location: float, scale: float) -> float:
    """Pearson's test against the fitted law, cells joined outwards in until 10 are expected in each.

    The fit can only lower the statistic, so as many degrees of freedom as cells less one are conservative
    (Chernoff and Lehmann, Annals of Mathematical Statistics 25, 1954).
    """
    tail = tally.reference.tail((edges - location) / scale)
    expected = -np.diff(np.concatenate([[1.0], tail, [0.0]])) * tally.n
    expected_cells, observed_cells = [0.0], [0.0]
    for expect, observe in zip(expected.tolist(), tally.cells.tolist(), strict=True):
        if expected_cells[-1] >= _LEAST_EXPECTED:
            expected_cells.append(0.0)
            observed_cells.append(0.0)
        expected_cells[-1] += expect
        observed_cells[-1] += observe
    if len(expected_cells) > 1 and expected_cells[-1] < _LEAST_EXPECTED:
        last_expected, last_observed = expected_cells.pop(), observed_cells.pop()
        expected_cells[-1] += last_expected
        observed_cells[-1] += last_observed
    e, o = np.array(expected_cells), np.array(observed_cells)
    return float(chdtrc(len(e) - 1, ((o - e) ** 2 / e).sum())) if len(e) > 1 else 1.0


def _fisher_p(p_values: Sequence[float]) -> float:
    """The combination of independent p-values (Fisher 1932); at least as conservative as they are."""
    if min(p_values) <= 0.0:
        return 0.0
    return float(chdtrc(2.0 * len(p_values), -2.0 * sum(map(math.log, p_values))))


def _poisson_p(count: int, mean: float) -> float:
    at_most = float(gammaincc(count + 1.0, mean))
    at_least = float(gammainc(float(count), mean)) if count > 0 else 1.0
    return min(1.0, 2.0 * min(at_most, at_least))
