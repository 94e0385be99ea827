"""What should be public (a scale, a domain, whether there is an answer) is read from the data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .entry import Outputs, TwoStageMechanism, ZooEntry
from .stages import add_laplace, release_exactly, total

DELTA = 1e-5

SGD_DIMENSION = 8
SGD_SIGMA = 1.5
SAMPLING_RATE = 0.5

CATEGORIES = ("A", "B")
OUTLIER_BOUND = 10.0
UPPER_BOUND = 3.0


# --- means ------------------------------------------------------------------------------------------------


def mean_and_its_sensitivity(values: Sequence[float]) -> tuple[float, float]:
    """The mean of values in [0, 1] and 1/n, which takes the private n for public."""
    return float(np.mean(values)), 1 / len(values)


def add_laplace_of_own_scale(state: tuple[float, float], n: int, rng: Generator) -> Outputs:
    """Laplace noise whose scale is part of the state."""
    value, scale = state
    return add_laplace(value, n, rng, scale=scale)


def sum_and_count(values: Sequence[float]) -> tuple[float, float]:
    """The two parts of a mean."""
    return total(values), float(len(values))


def ratio_of_noisy_parts(state: tuple[float, float], n: int, rng: Generator) -> Outputs:
    """Noisy sum over noisy count, the count kept at least 1; ε = ½ for each part."""
    noisy = add_laplace(state, n, rng, scale=2.0)
    return np.asarray(noisy[:, 0] / np.maximum(noisy[:, 1], 1.0), float)


def sum_and_public_count(values: Sequence[float], *, public_count: int) -> tuple[float, float]:
    """The sum of values, with a count that does not depend on them."""
    return total(values), float(public_count)


def noisy_sum_over_count(state: tuple[float, float], n: int, rng: Generator) -> Outputs:
    """Noisy sum over the count as it is."""
    value_sum, divisor = state
    return add_laplace(value_sum, n, rng, scale=2.0) / divisor


# --- one step of private gradient descent -----------------------------------------------------------------


@dataclass(frozen=True)
class GradientStep:
    """Per-record gradients along the first axis, and the batch size that the noisy sum is divided by."""

    gradients: tuple[float, ...]
    batch_size: int


def step_with_private_batch_size(gradients: Sequence[float]) -> GradientStep:
    """Expected batch size from the exact number of records, rounded down."""
    return GradientStep(tuple(gradients), max(math.floor(SAMPLING_RATE * len(gradients)), 1))


def step_with_public_batch_size(gradients: Sequence[float]) -> GradientStep:
    """A batch size fixed in advance."""
    return GradientStep(tuple(gradients), 2)


def noisy_sampled_gradient(state: GradientStep, n: int, rng: Generator) -> Outputs:
    """Gradient of a Poisson sample plus Gaussian noise, over the batch size."""
    sampled = rng.random((n, len(state.gradients))) < SAMPLING_RATE
    step = SGD_SIGMA * rng.standard_normal((n, SGD_DIMENSION))
    step[:, 0] += sampled @ np.asarray(state.gradients)
    return step / state.batch_size


# --- domains, bounds, missing values ----------------------------------------------------------------------


def counts_of_public_categories(rows: Sequence[str]) -> NDArray[np.float64]:
    """One count for every category, seen or not."""
    return np.array([rows.count(category) for category in CATEGORIES], float)


def counts_of_seen_categories(rows: Sequence[str]) -> NDArray[np.float64]:
    """One count for every category in the data; NaN marks a key that the output lacks."""
    return np.array([rows.count(category) or math.nan for category in CATEGORIES], float)


def sum_and_largest(values: Sequence[float]) -> tuple[float, float]:
    """The sum, and the largest value taken for the sensitivity."""
    return total(values), max(values)


def clamped_sum(values: Sequence[float]) -> float:
    """Sum after clamping, which a NaN passes."""
    return float(np.sum(np.clip(values, 0.0, UPPER_BOUND)))


def clamped_sum_of_numbers(values: Sequence[float]) -> float:
    """Sum after dropping NaN and clamping."""
    return float(np.nansum(np.clip(values, 0.0, UPPER_BOUND)))


def sum_clipped_at_one(values: Sequence[float]) -> float:
    """Sum of values in [0, 1]."""
    return total([min(value, 1.0) for value in values])


# --- median by the exponential mechanism ------------------------------------------------------------------


@dataclass(frozen=True)
class IntervalWeights:
    """Cut points of [0, 1], (m + 1,), and the weight of each interval between them, (m,)."""

    edges: NDArray[np.float64]
    weights: NDArray[np.float64]


def intervals_and_utilities(values: Sequence[float]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Cut points at the sorted data, and minus the rank distance of each interval from the median."""
    edges = np.concatenate([[0.0], np.sort(np.clip(values, 0.0, 1.0)), [1.0]])
    utilities = -np.abs(np.arange(len(edges) - 1) - len(values) / 2)
    return edges, utilities


def median_weights(values: Sequence[float]) -> IntervalWeights:
    """Length times exponentiated utility, which underflows to 0 far from the median."""
    edges, utilities = intervals_and_utilities(values)
    return IntervalWeights(edges, np.diff(edges) * np.exp(utilities))


def stable_median_weights(values: Sequence[float]) -> IntervalWeights:
    """The same in logarithms, the largest scaled to 1, at half the exponent: utilities move both ways."""
    edges, utilities = intervals_and_utilities(values)
    with np.errstate(divide="ignore"):
        log_weights = np.log(np.diff(edges)) + 0.5 * utilities
    return IntervalWeights(edges, np.exp(log_weights - log_weights.max()))


def uniform_in_drawn_interval(state: IntervalWeights, n: int, rng: Generator) -> Outputs:
    """A uniform point of an interval drawn by weight; NaN, for a crash, if no interval has any."""
    whole = state.weights.sum()
    if whole == 0.0:
        return np.full(n, math.nan)
    drawn = rng.choice(len(state.weights), n, p=state.weights / whole)
    return np.asarray(state.edges[drawn] + np.diff(state.edges)[drawn] * rng.random(n), float)


BUGS = (
    ZooEntry(
        id="sncore-mean-private-n",
        library="SmartNoise core",
        link="https://github.com/opendp/smartnoise-core/issues/356",
        see_also=("https://github.com/opendp/smartnoise-core/issues/355",),
        summary=(
            "Under add/remove neighbours, the sensitivity of a mean is taken as (upper − lower)/n with "
            "the actual n, so that the scale of the noise tells how many rows there are."
        ),
        evidence="issue, closed",
        epsilon=1.0,
        pair="one more row, bounds [0, 1]",
        neighbours=([0.0], [0.0, 1.0]),
        broken=TwoStageMechanism(mean_and_its_sensitivity, add_laplace_of_own_scale),
        fixed=TwoStageMechanism(sum_and_count, ratio_of_noisy_parts),
        true_epsilon=math.inf,
        why="Laplace tails of scale 1 and ½: the ratio grows without bound",
    ),
    ZooEntry(
        id="synthcity-public-n",
        library="synthcity",
        link="https://arxiv.org/abs/2602.17454",
        summary="A noisy sum is divided by the exact number of rows, which is private.",
        evidence="paper; reduced to one statistic",
        epsilon=0.5,
        pair="one more row with value 0",
        neighbours=([0.0] * 2, [0.0] * 3),
        broken=TwoStageMechanism(sum_and_count, noisy_sum_over_count),
        fixed=TwoStageMechanism(partial(sum_and_public_count, public_count=3), noisy_sum_over_count),
        true_epsilon=math.inf,
        why="Laplace tails of scale 1 and ⅔, both centred at 0: the ratio grows without bound, but slowly",
    ),
    ZooEntry(
        id="opacus-floor-batch",
        library="Opacus",
        link="https://github.com/meta-pytorch/opacus/issues/571",
        see_also=("https://github.com/meta-pytorch/opacus/issues/819",),
        summary=(
            "The noisy gradient sum is divided by the expected batch size, rounded down, that is computed "
            "from the exact number of records. On tiny datasets one record changes the scale of the "
            "noise, in every dimension at once."
        ),
        evidence="open issues, acknowledged by a maintainer",
        epsilon=2.02,
        delta=DELTA,
        pair="one more record, three to four; sampling rate ½, noise multiplier 1.5, eight dimensions",
        neighbours=([0.0] * 3, [0.0] * 3 + [1.0]),
        broken=TwoStageMechanism(step_with_private_batch_size, noisy_sampled_gradient),
        fixed=TwoStageMechanism(step_with_public_batch_size, noisy_sampled_gradient),
        true_epsilon=49.251,
        why="quadrature: standard deviations 1.5 and 0.75 in eight dimensions; infinite at δ = 0",
    ),
    ZooEntry(
        id="domain-from-data",
        library="reprosyn; dpmm; synthcity; diffprivlib",
        link="https://github.com/alan-turing-institute/reprosyn/issues/38",
        see_also=(
            "https://github.com/sassoftware/dpmm/issues/18",
            "https://github.com/sassoftware/dpmm/issues/24",
            "https://github.com/vanderschaarlab/synthcity/issues/278",
        ),
        summary=(
            "The domain of a categorical column is read from the private rows, so that the keys of the "
            "output show whether a rare category occurs."
        ),
        evidence="several issues and fixes",
        epsilon=1.0,
        pair="the only row of category B is added",
        neighbours=(["A"] * 5, ["A"] * 5 + ["B"]),
        broken=TwoStageMechanism(counts_of_seen_categories, partial(add_laplace, scale=1.0)),
        fixed=TwoStageMechanism(counts_of_public_categories, partial(add_laplace, scale=1.0)),
        true_epsilon=math.inf,
        why="key B is missing on one side only",
    ),
    ZooEntry(
        id="bounds-from-data",
        library="PATE-GAN; PrivBayes; diffprivlib defaults",
        link="https://arxiv.org/abs/2405.10994",
        see_also=(
            "https://github.com/vanderschaarlab/synthcity/issues/278",
            "https://github.com/vanderschaarlab/mlforhealthlabpub/issues/31",
            "https://github.com/hazy/dpart/pull/6",
        ),
        summary=(
            "The clamping bounds, and with them the noise scale, are the smallest and largest private values."
        ),
        evidence="several issues; paper",
        epsilon=1.0,
        pair="an outlier is added; public domain [0, 10]",
        neighbours=([0.0, 0.5, 1.0], [0.0, 0.5, 1.0, 10.0]),
        broken=TwoStageMechanism(sum_and_largest, add_laplace_of_own_scale),
        fixed=TwoStageMechanism(total, partial(add_laplace, scale=OUTLIER_BOUND)),
        true_epsilon=math.inf,
        why="Laplace tails of scale 1 and 10: the ratio grows without bound",
    ),
    ZooEntry(
        id="nan-propagates",
        library="diffprivlib; SmartNoise; OpenDP",
        link="https://github.com/IBM/differential-privacy-library/issues/80",
        see_also=(
            "https://github.com/opendp/smartnoise-sdk/issues/574",
            "https://github.com/opendp/smartnoise-sdk/pull/580",
            "https://github.com/opendp/opendp/issues/2929",
        ),
        summary="A row that is NaN passes the clamp and makes the whole output NaN, or the query fail.",
        evidence="observed in diffprivlib 0.6.6 (mean)",
        epsilon=1.0,
        pair="a NaN row is added; bounds [0, 3]",
        neighbours=([1.0, 2.0], [1.0, 2.0, math.nan]),
        broken=TwoStageMechanism(clamped_sum, partial(add_laplace, scale=UPPER_BOUND)),
        fixed=TwoStageMechanism(clamped_sum_of_numbers, partial(add_laplace, scale=UPPER_BOUND)),
        true_epsilon=math.inf,
        why="a number on one side, NaN on the other",
    ),
    ZooEntry(
        id="quantile-underflow-crash",
        library="SmartNoise SDK; diffprivlib",
        link="https://github.com/opendp/smartnoise-sdk/issues/572",
        see_also=("https://github.com/IBM/differential-privacy-library/issues/107",),
        summary=(
            "The exponential mechanism for a quantile exponentiates utilities directly. Where every "
            "interval of positive length lies far from the quantile all weights underflow to 0 and the "
            "call fails: one row decides between an answer and an exception."
        ),
        evidence=(
            "observed in diffprivlib 0.6.6 (answers with 1492 zeros and a one, fails with 1493, at ε = 2)"
        ),
        epsilon=1.0,
        pair="one more zero, beside 1491 zeros and a one",
        neighbours=([0.0] * 1491 + [1.0], [0.0] * 1492 + [1.0]),
        broken=TwoStageMechanism(median_weights, uniform_in_drawn_interval),
        fixed=TwoStageMechanism(stable_median_weights, uniform_in_drawn_interval),
        true_epsilon=math.inf,
        why=(
            "always an answer on one side, always a failure on the other: e^(−745) is the last positive "
            "double"
        ),
    ),
    ZooEntry(
        id="snsql-none-sensitivity",
        library="SmartNoise SQL",
        link="https://github.com/opendp/smartnoise-sdk/issues/317",
        see_also=("https://github.com/opendp/smartnoise-sdk/pull/318",),
        summary=(
            "A column without bounds in its metadata has no sensitivity, and its sum is released "
            "without noise."
        ),
        evidence="issue, fixed",
        epsilon=1.0,
        pair="one more row",
        neighbours=([3.0, 4.0], [3.0, 4.0, 1.0]),
        broken=TwoStageMechanism(total, release_exactly),
        fixed=TwoStageMechanism(sum_clipped_at_one, partial(add_laplace, scale=1.0)),
        true_epsilon=math.inf,
        why="no noise",
    ),
)
