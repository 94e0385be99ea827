"""Every part is private, but the sum of their costs is not what was claimed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.stats import binom

from .entry import Outputs, TwoStageMechanism, ZooEntry
from .laws import discrete_epsilon, gaussian_epsilon, gaussian_mu, zcdp_epsilon
from .stages import add_gaussian, add_laplace, column_sums

DELTA = 1e-5
MU = gaussian_mu(1.0, DELTA)
SIGMA = 1 / MU
"""Noise for sensitivity 1 at (1, 1e-5)."""

SELECTIONS = 32
SELECTION_EPSILON = 0.5
SELECTION_DELTA = 0.01

BIT_SIGMA = 3.0
"""Noise on a count bit of ±½ that leaves most of the budget to the update."""


def sum_and_count(values: Sequence[float]) -> NDArray[np.float64]:
    """Both parts of an average."""
    return np.array([sum(values), len(values)], float)


def regression_statistics(rows: Sequence[tuple[float, float]]) -> NDArray[np.float64]:
    """Σx, Σy and Σxy of a regression on one feature, all of sensitivity 1."""
    return column_sums([(x, y, x * y) for x, y in rows], width=3)


def exponential_mechanism_chance(scores: Sequence[float]) -> float:
    """Probability that the exponential mechanism picks the second of two candidates."""
    return 1 / (1 + math.exp(SELECTION_EPSILON / 2 * (scores[0] - scores[1])))


def permute_and_flip_chance(scores: Sequence[float]) -> float:
    """Probability that permute-and-flip picks the second of two candidates, the first being no worse.

    The second wins only if it is tried first, with probability ½, and its coin accepts.
    """
    return 0.5 * math.exp(-SELECTION_EPSILON / 2 * (scores[0] - scores[1]))


def times_chosen(chance: float, n: int, rng: Generator) -> Outputs:
    """How often, in all selections together, the second candidate was picked."""
    return rng.binomial(SELECTIONS, chance, n).astype(float)


def times_chosen_law(chance: float) -> NDArray[np.float64]:
    """The law of :func:`times_chosen`."""
    return np.asarray(binom.pmf(np.arange(SELECTIONS + 1), SELECTIONS, chance), float)


TIED, APART = [0.0, 0.0], [1.0, -1.0]

BUGS = (
    ZooEntry(
        id="snsql-avg-double-spend",
        library="SmartNoise SQL",
        link="https://github.com/opendp/smartnoise-sdk/issues/202",
        see_also=("https://github.com/opendp/smartnoise-sdk/issues/200",),
        summary="An average is a noisy sum over a noisy count, and each of the two is given the whole ε.",
        evidence="issue, fixed",
        epsilon=1.0,
        pair="one more row with value 1, bounds [0, 1]",
        neighbours=([0.0, 0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]),
        broken=TwoStageMechanism(sum_and_count, partial(add_laplace, scale=1.0)),
        fixed=TwoStageMechanism(sum_and_count, partial(add_laplace, scale=2.0)),
        true_epsilon=2.0,
        why="two releases at ε = 1, both moved by the same row",
    ),
    ZooEntry(
        id="dpl-linreg-intercept-slice",
        library="diffprivlib",
        link="https://github.com/IBM/differential-privacy-library/issues/104",
        summary=(
            "With an intercept, linear regression sets one slice 1/(d + 1) of the budget aside for "
            "centring and spends it twice, once on the features and once on the target."
        ),
        evidence="open issue (its second item), unconfirmed",
        epsilon=1.0,
        pair="one more row (1, 1); one feature, so that the slice is ½",
        neighbours=([], [(1.0, 1.0)]),
        broken=TwoStageMechanism(regression_statistics, partial(add_laplace, scale=2.0)),
        fixed=TwoStageMechanism(regression_statistics, partial(add_laplace, scale=(4.0, 4.0, 2.0))),
        true_epsilon=1.5,
        why="three statistics at ε = ½ each",
    ),
    ZooEntry(
        id="pipelinedp-vector-eps",
        library="PipelineDP",
        link="https://github.com/OpenMined/PipelineDP/pull/67",
        summary=(
            "A vector sum is clipped in every coordinate, and every coordinate is then noised with the "
            "whole ε."
        ),
        evidence="review comment; may not have shipped",
        epsilon=1.0,
        pair="one more row (1, 1, 1)",
        neighbours=([], [(1.0, 1.0, 1.0)]),
        broken=TwoStageMechanism(partial(column_sums, width=3), partial(add_laplace, scale=1.0)),
        fixed=TwoStageMechanism(partial(column_sums, width=3), partial(add_laplace, scale=3.0)),
        true_epsilon=3.0,
        why="three coordinates at ε = 1 each",
    ),
    ZooEntry(
        id="pf-as-em-zcdp",
        library="accounting of permute-and-flip (reported against OpenDP)",
        link="https://github.com/opendp/opendp/issues/2911",
        summary=(
            "Permute-and-flip is charged ρ = ε²/8 of zero-concentrated privacy. That holds for the "
            "exponential mechanism, whose privacy loss has range ε; permute-and-flip's has range 2ε."
        ),
        evidence=(
            "reported and closed; not seen in OpenDP 0.14.1 to 0.15.1, which sample the exponential mechanism"
        ),
        epsilon=zcdp_epsilon(SELECTIONS * SELECTION_EPSILON**2 / 8, SELECTION_DELTA),
        delta=SELECTION_DELTA,
        pair="scores at L∞ distance 1; 32 selections at ε = ½",
        neighbours=(TIED, APART),
        broken=TwoStageMechanism(permute_and_flip_chance, times_chosen),
        fixed=TwoStageMechanism(exponential_mechanism_chance, times_chosen),
        true_epsilon=discrete_epsilon(
            SELECTION_DELTA,
            times_chosen_law(permute_and_flip_chance(TIED)),
            times_chosen_law(permute_and_flip_chance(APART)),
        ),
        why="Binomial(32, ½) against Binomial(32, ½·e^(−½)), summed exactly: 7.48",
    ),
    ZooEntry(
        id="tff-adaclip-unaccounted",
        library="TensorFlow Federated",
        link="https://github.com/google-parfait/tensorflow-federated/pull/1080",
        see_also=("https://github.com/meta-pytorch/opacus/issues/757",),
        summary=(
            "Adaptive clipping also releases a noisy count of the clients below the clipping norm; the "
            "noise on the update was not raised to pay for it."
        ),
        evidence="fix merged",
        epsilon=1.0,
        delta=DELTA,
        pair="one more client, with update 1 and count bit ½",
        neighbours=([], [(1.0, 0.5)]),
        broken=TwoStageMechanism(partial(column_sums, width=2), partial(add_gaussian, sigma=(SIGMA, 0.5))),
        fixed=TwoStageMechanism(
            partial(column_sums, width=2),
            partial(add_gaussian, sigma=((MU**2 - (0.5 / BIT_SIGMA) ** 2) ** -0.5, BIT_SIGMA)),
        ),
        true_epsilon=gaussian_epsilon(math.hypot(MU, 1.0), DELTA),
        why="shifts of μ and 1 in units of the noise add up to √(μ² + 1)",
    ),
)
