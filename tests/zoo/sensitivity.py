"""The noise is right for a sensitivity that is too small."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .entry import Outputs, TwoStageMechanism, ZooEntry
from .laws import gaussian_epsilon, gaussian_mu
from .stages import add_gaussian, add_geometric, add_laplace, histogram, noisy_winner, release_exactly, total

DELTA = 1e-5
MU = gaussian_mu(1.0, DELTA)
SIGMA = 1 / MU
"""Noise for sensitivity 1 at (1, 1e-5)."""

INT32_MAX = 2**31 - 1


def sum_of_squares(rows: Sequence[float]) -> float:
    """The second-degree coefficient of a least-squares objective."""
    return sum(x * x for x in rows)


def folded_laplace(state: float, n: int, rng: Generator, *, scale: float) -> Outputs:
    """Laplace noise, reflected at zero because a sum of squares cannot be negative."""
    return np.abs(add_laplace(state, n, rng, scale=scale))


def log_bin_counts(users: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """How many values, over all users, fall into [1, 2), [2, 4), [4, 8) and [8, 16)."""
    return histogram([int(math.log2(value)) for user in users for value in user], bins=4)


def tree_of_leaves(leaves: Sequence[float]) -> NDArray[np.float64]:
    """A two-layer tree: the root's sum, then the leaves."""
    return np.array([sum(leaves), *leaves], float)


def wrapping_tree(leaves: Sequence[int]) -> NDArray[np.float64]:
    """The same tree over 32-bit integers, whose root wraps around at the type's limit."""
    root = (sum(leaves) + 2**31) % 2**32 - 2**31
    return np.array([root, *leaves], float)


def saturating_tree(leaves: Sequence[int]) -> NDArray[np.float64]:
    """The same tree over 32-bit integers, whose root stops at the type's limit."""
    return np.array([min(sum(leaves), INT32_MAX), *leaves], float)


def votes_of_own_teachers(partitions: Sequence[int]) -> NDArray[np.float64]:
    """Votes for classes 0 and 1 when each teacher repeats the label of its own partition."""
    return histogram(partitions, bins=2)


def votes_of_first_partition(partitions: Sequence[int]) -> NDArray[np.float64]:
    """Votes when every teacher was trained on the first partition."""
    return histogram([partitions[0]] * len(partitions), bins=2)


BUGS = (
    ZooEntry(
        id="dpl-linreg-diag",
        library="diffprivlib",
        link="https://github.com/IBM/differential-privacy-library/issues/105",
        see_also=(
            "https://github.com/IBM/differential-privacy-library/issues/104",
            "https://github.com/IBM/differential-privacy-library/pull/110",
        ),
        summary=(
            "Linear regression takes the sensitivity of a squared feature as the largest squared bound, but "
            "reads the lower bound twice and never the upper one: bounds [2, 3] are charged 4 instead of 9."
        ),
        evidence="observed in diffprivlib 0.6.6",
        epsilon=1.0,
        pair="one more row with x = 3; public bounds [2, 3]",
        neighbours=([2.0] * 10, [2.0] * 10 + [3.0]),
        broken=TwoStageMechanism(sum_of_squares, partial(folded_laplace, scale=4.0)),
        fixed=TwoStageMechanism(sum_of_squares, partial(folded_laplace, scale=9.0)),
        true_epsilon=9 / 4,
        why="a change of 9 under Laplace noise of scale 4; the fold keeps the ratio for outputs below 40",
    ),
    ZooEntry(
        id="synthcity-privbayes-K",
        library="synthcity (PrivBayes)",
        link="https://arxiv.org/abs/2602.17454",
        summary=(
            "The noise scale of a conditional table is proportional to the number of features minus the "
            "degree K of the network. With K equal to the number of features it is 0: the table is "
            "released exactly."
        ),
        evidence="paper (section 4.3.3); reduced to one statistic",
        epsilon=1.0,
        pair="one row fewer; K = number of features = 5",
        neighbours=([1.0, 1.0], [1.0]),
        broken=TwoStageMechanism(total, release_exactly),
        fixed=TwoStageMechanism(total, partial(add_laplace, scale=1.0)),
        true_epsilon=math.inf,
        why="no noise",
    ),
    ZooEntry(
        id="cpp-approxbounds-contrib",
        library="Google differential-privacy (C++)",
        link="https://github.com/google/differential-privacy/pull/87",
        summary=(
            "When no bounds are given they are found from a noisy histogram over powers of two. That "
            "histogram is noised for one contribution per user although a user may hold several."
        ),
        evidence="merged pull request; internals reconstructed",
        epsilon=1.0,
        pair="one more user, whose three permitted values share a bin",
        neighbours=([[5.0]] * 5, [[5.0]] * 5 + [[4.0, 5.0, 6.0]]),
        broken=TwoStageMechanism(log_bin_counts, partial(add_laplace, scale=1.0)),
        fixed=TwoStageMechanism(log_bin_counts, partial(add_laplace, scale=3.0)),
        true_epsilon=3.0,
        why="three contributions at scale 1",
    ),
    ZooEntry(
        id="odp-bary-l2",
        library="OpenDP",
        link="https://github.com/opendp/opendp/issues/2924",
        summary=(
            "The b-ary tree transformation claims that an L2 change of the leaves grows by the height of the "
            "tree. Sums of leaves that all move together amplify it further."
        ),
        evidence="observed in OpenDP 0.15.1 (here: claims 5.66, true distance 8.49)",
        epsilon=1.0,
        delta=DELTA,
        pair="eight leaves that each move by 1, L2 distance √8",
        neighbours=([0.0] * 8, [1.0] * 8),
        broken=TwoStageMechanism(tree_of_leaves, partial(add_gaussian, sigma=2 * math.sqrt(8) / MU)),
        fixed=TwoStageMechanism(tree_of_leaves, partial(add_gaussian, sigma=math.sqrt(72) / MU)),
        true_epsilon=gaussian_epsilon(1.5 * MU, DELTA),
        why="the tree moves by √(8² + 8) = √72, one and a half times the claimed 2·√8",
    ),
    ZooEntry(
        id="odp-bary-overflow",
        library="OpenDP",
        link="https://github.com/opendp/opendp/issues/2925",
        see_also=("https://arxiv.org/abs/2207.10635",),
        summary=(
            "The internal sums of the b-ary tree wrap around at the integer type's limit, so that one "
            "more unit in a leaf turns the root from the largest to the smallest integer."
        ),
        evidence="observed in OpenDP 0.15.1",
        epsilon=1.0,
        pair="one unit more, with the sum at the 32-bit limit",
        neighbours=([INT32_MAX, 0], [INT32_MAX, 1]),
        broken=TwoStageMechanism(wrapping_tree, partial(add_geometric, epsilon=0.5)),
        fixed=TwoStageMechanism(saturating_tree, partial(add_geometric, epsilon=0.5)),
        true_epsilon=2.0**31,
        why="(2³² − 1 for the root and 1 for the leaf) at ½ per unit",
    ),
    ZooEntry(
        id="pategan-same-partition",
        library="PATE-GAN (mlforhealthlabpub)",
        link="https://github.com/vanderschaarlab/mlforhealthlabpub/issues/29",
        summary=(
            "A slip in the indexing trains every teacher on the first data partition, so that one record "
            "moves all teachers' votes instead of one."
        ),
        evidence="open third-party issue",
        epsilon=1.0,
        pair="one record of the first of five partitions changes its label",
        neighbours=([0, 0, 0, 1, 1], [1, 0, 0, 1, 1]),
        broken=TwoStageMechanism(votes_of_first_partition, partial(noisy_winner, scale=2.0)),
        fixed=TwoStageMechanism(votes_of_own_teachers, partial(noisy_winner, scale=2.0)),
        true_epsilon=math.log((1 - 4.5 / 4 * math.exp(-2.5)) / (4.5 / 4 * math.exp(-2.5))),
        why=(
            "votes [5, 0] against [0, 5]: the loser wins with probability (2 + t) e^(−t)/4 at t = 5/2; "
            "the noisy votes themselves would give 5"
        ),
    ),
    ZooEntry(
        id="dpacct-replace-one",
        library="Google dp_accounting",
        link="https://github.com/google/differential-privacy/issues/378",
        see_also=("https://github.com/google/differential-privacy/pull/464",),
        summary=(
            "The noise multiplier is used as if a record clipped to norm C had sensitivity C under "
            "replace-one neighbours, where the old and the new record can lie 2C apart."
        ),
        evidence="open issue and open pull request",
        epsilon=1.0,
        delta=DELTA,
        pair="a record at +C replaced by one at −C, C = 1",
        neighbours=([1.0, 1.0, 1.0], [1.0, 1.0, -1.0]),
        broken=TwoStageMechanism(total, partial(add_gaussian, sigma=SIGMA)),
        fixed=TwoStageMechanism(total, partial(add_gaussian, sigma=2 * SIGMA)),
        true_epsilon=gaussian_epsilon(2 * MU, DELTA),
        why="twice the shift that the noise allows",
    ),
)
