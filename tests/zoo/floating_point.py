"""The mathematics is right, the arithmetic or the clock tells more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.random import Generator

from .entry import Outputs, TwoStageMechanism, ZooEntry
from .laws import gaussian_mu
from .stages import add_gaussian, add_geometric, add_laplace, total, two_sided_geometric

DELTA = 1e-5
SIGMA = 1 / gaussian_mu(1.0, DELTA)
"""Noise for sensitivity 1 at (1, 1e-5)."""

GRID = 2.0**-10
PADDED_TIME = 9.0

VALUE_BOUND = 1.5
CROSSES_BINADE = [1.0] * 2048 + [1.5] + [-0.9] * 10
STAYS_IN_BINADE = [1.0] * 2048 + [0.0] + [-0.9] * 10


def half_precision_sum(values: Sequence[float]) -> float:
    """Left-to-right summation that rounds to half precision after every addition."""
    running = np.float16(0.0)
    for value in values:
        running = np.float16(running + np.float16(value))
    return float(running)


def inverse_cdf_laplace(state: float, n: int, rng: Generator) -> Outputs:
    """Textbook Laplace noise of scale 1: a random sign on −ln(u), u uniform on multiples of 2⁻⁵³."""
    uniform = rng.random(n)
    uniform[uniform == 0.0] = 0.5
    sign = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    return np.asarray(state + sign * -np.log(uniform), float)


def laplace_on_a_grid(state: float, n: int, rng: Generator) -> Outputs:
    """Discrete Laplace noise of scale 1 on multiples of 2⁻¹⁰."""
    return np.asarray(state + GRID * two_sided_geometric((n,), rng, epsilon=GRID), float)


def gaussian_on_a_grid(state: float, n: int, rng: Generator) -> Outputs:
    """Gaussian noise rounded, together with the value, to multiples of 2⁻¹⁰."""
    return np.asarray(np.rint(add_gaussian(state, n, rng, sigma=SIGMA) / GRID) * GRID, float)


def geometric_with_run_time(state: float, n: int, rng: Generator) -> Outputs:
    """Two-sided geometric noise in the first column, the sampler's number of loops in the second."""
    noise = two_sided_geometric((n,), rng, epsilon=1.0)
    return np.column_stack([state + noise, np.abs(noise)])


def geometric_in_constant_time(state: float, n: int, rng: Generator) -> Outputs:
    """The same with the run time padded to a constant."""
    return np.column_stack([add_geometric(state, n, rng, epsilon=1.0), np.full(n, PADDED_TIME)])


BUGS = (
    ZooEntry(
        id="casacuberta-float-sum",
        library="float sums in Google's library, diffprivlib, OpenDP and SmartNoise",
        link="https://arxiv.org/abs/2207.10635",
        see_also=("https://github.com/google/differential-privacy/issues/126",),
        summary=(
            "A floating-point sum rounds at every step. If one row decides on which side of a power of "
            "two the running sum lies, later rows are rounded away on one side and counted on the other, "
            "so that the sum moves by far more than the row."
        ),
        evidence="paper; construction chosen here, in half precision to keep the data short",
        epsilon=1.0,
        pair="one row changes from 1.5 to 0; bounds [−1.5, 1.5]",
        neighbours=(CROSSES_BINADE, STAYS_IN_BINADE),
        broken=TwoStageMechanism(half_precision_sum, partial(add_laplace, scale=2 * VALUE_BOUND)),
        fixed=TwoStageMechanism(math.fsum, partial(add_laplace, scale=2 * VALUE_BOUND)),
        true_epsilon=4.0,
        why="the rounded sum moves by 12 at scale 3",
    ),
    ZooEntry(
        id="mironov-laplace-double",
        library="textbook Laplace samplers (SmartNoise core, diffprivlib and others)",
        link="https://doi.org/10.1145/2382196.2382264",
        see_also=(
            "https://github.com/opendp/smartnoise-core/issues/242",
            "https://github.com/IBM/differential-privacy-library/issues/19",
            "https://github.com/world-federation-of-advertisers/cross-media-measurement/issues/1357",
        ),
        summary=(
            "Laplace noise by the inverse distribution function, in doubles, leaves gaps between the "
            "reachable outputs. Where the gaps lie depends on the true value, so that many outputs "
            "identify it."
        ),
        evidence="paper and issues",
        epsilon=1.0,
        pair="a count of 0 or 1",
        neighbours=([], [1.0]),
        broken=TwoStageMechanism(total, inverse_cdf_laplace),
        fixed=TwoStageMechanism(total, laplace_on_a_grid),
        true_epsilon=math.inf,
        why="some outputs are reachable from one value only; thresholds alone see ε = 1",
        side_channels=("low-bit",),
    ),
    ZooEntry(
        id="gauss-precision",
        library="float Gaussian samplers (diffprivlib, Opacus, OpenDP)",
        link="https://arxiv.org/abs/2207.13793",
        see_also=(
            "https://github.com/opendp/opendp/issues/414",
            "https://github.com/IBM/differential-privacy-library/issues/94",
            "https://github.com/prestodb/presto/issues/23002",
        ),
        summary=(
            "Adding noise to a value other than 0 loses the noise's lowest bits. A small output with bits "
            "below the value's precision can only come from the value 0."
        ),
        evidence="paper and issues; the twin only rounds",
        epsilon=1.0,
        delta=DELTA,
        pair="a count of 0 or 1",
        neighbours=([], [1.0]),
        broken=TwoStageMechanism(total, partial(add_gaussian, sigma=SIGMA)),
        fixed=TwoStageMechanism(total, gaussian_on_a_grid),
        true_epsilon=math.inf,
        why="outputs below ¼ that are no multiples of 2⁻⁵³ have probability 0.04 on one side, 0 on the other",
        side_channels=("low-bit",),
    ),
    ZooEntry(
        id="timing-geometric",
        library="discrete samplers",
        link="https://arxiv.org/abs/2112.05307",
        summary=(
            "The sampler loops as often as the noise is large, so that its run time, together with the "
            "output, gives the true value away."
        ),
        evidence="paper; time modelled as the number of loops",
        epsilon=1.0,
        pair="a count of 0 or 1; the second output is the run time",
        neighbours=([], [1.0]),
        broken=TwoStageMechanism(total, geometric_with_run_time),
        fixed=TwoStageMechanism(total, geometric_in_constant_time),
        true_epsilon=math.inf,
        why="output minus or plus run time is the true value",
        side_channels=("timing",),
    ),
)
