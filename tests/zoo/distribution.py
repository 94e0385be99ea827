"""Noise from a distribution that is not the one that was analysed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.random import Generator

from .entry import Outputs, TwoStageMechanism, ZooEntry
from .stages import add_geometric, add_laplace, count

EPSILON = 0.5

STOP = -math.expm1(-EPSILON)
"""Stopping probability of the geometric law behind two-sided geometric noise."""

MISREAD_STOP = 2 * STOP % 1
"""The same probability with its binary expansion read from the second bit on."""

MISREAD_EPSILON = -math.log1p(-MISREAD_STOP)


def second_moment(rows: Sequence[float]) -> float:
    """Covariance matrix (up to the row count) of one-dimensional data."""
    return float(sum(x * x for x in rows))


def add_wishart(state: float, n: int, rng: Generator) -> Outputs:
    """Add a 1×1 Wishart matrix with two degrees of freedom: exponential, never negative."""
    return np.asarray(state + rng.exponential(1.0, n), float)


def add_truncated_geometric(state: float, n: int, rng: Generator, *, width: int) -> Outputs:
    """Two-sided geometric noise restricted to −width … width."""
    support = np.arange(-width, width + 1)
    weights = np.exp(-EPSILON * np.abs(support))
    return np.asarray(state + rng.choice(support.astype(float), n, p=weights / weights.sum()), float)


BUGS = (
    ZooEntry(
        id="dpl-wishart",
        library="diffprivlib",
        link="https://github.com/IBM/differential-privacy-library/issues/42",
        see_also=("https://github.com/IBM/differential-privacy-library/issues/23",),
        summary=(
            "A covariance matrix is released with Wishart noise added. The noise is positive "
            "semidefinite, so outputs below the true matrix are impossible."
        ),
        evidence="confirmed by the maintainers, who removed the mechanism",
        epsilon=1.0,
        pair="one more row of norm 1, in one dimension",
        neighbours=([], [1.0]),
        broken=TwoStageMechanism(second_moment, add_wishart),
        fixed=TwoStageMechanism(second_moment, partial(add_laplace, scale=1.0)),
        true_epsilon=math.inf,
        why="outputs below 1 are possible on one side only",
    ),
    ZooEntry(
        id="sncore-geometric-range",
        library="SmartNoise core",
        link="https://github.com/opendp/smartnoise-core/issues/319",
        see_also=("https://github.com/opendp/smartnoise-core/pull/318",),
        summary=(
            "Geometric noise is truncated to the width of the declared range of the count, while the count "
            "itself is not clamped to that range."
        ),
        evidence="fix merged",
        epsilon=EPSILON,
        pair="one more row; declared range of width 4",
        neighbours=(["row"] * 5, ["row"] * 6),
        broken=TwoStageMechanism(count, partial(add_truncated_geometric, width=4)),
        fixed=TwoStageMechanism(count, partial(add_geometric, epsilon=EPSILON)),
        true_epsilon=math.inf,
        why="1 … 9 against 2 … 10: the outermost values are possible on one side only",
    ),
    ZooEntry(
        id="sncore-bernoulli-bits",
        library="SmartNoise core",
        link="https://github.com/opendp/smartnoise-core/issues/278",
        summary=(
            "The exact Bernoulli sampler reads the wrong bits of the probability's mantissa, so that "
            "geometric noise stops too early."
        ),
        evidence="issue, fixed; modelled as reading the binary expansion one bit late",
        epsilon=EPSILON,
        pair="one more row",
        neighbours=(["row"] * 5, ["row"] * 6),
        broken=TwoStageMechanism(count, partial(add_geometric, epsilon=MISREAD_EPSILON)),
        fixed=TwoStageMechanism(count, partial(add_geometric, epsilon=EPSILON)),
        true_epsilon=MISREAD_EPSILON,
        why="the stopping probability 1 − e^(−ε) = 0.393 becomes 0.787",
    ),
)
