"""Choosing one of several outcomes: sparse vectors, noisy maxima, best of several runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from .entry import Outputs, TwoStageMechanism, ZooEntry
from .stages import add_laplace, noisy_winner, sparse_vector, statistics, total


def best_of_runs(state: float, n: int, rng: Generator, *, runs: int, scale: float) -> Outputs:
    """The largest result of several runs on the same data."""
    return np.asarray(state + rng.laplace(0.0, scale, (n, runs)).max(axis=1), float)


def noisy_maximum(counts: ArrayLike, n: int, rng: Generator, *, scale: float) -> Outputs:
    """The largest noisy count itself."""
    return np.asarray(add_laplace(counts, n, rng, scale=scale).max(axis=1), float)


def release_one_coordinate(
    update: Sequence[float], n: int, rng: Generator, *, rest_in_clear: bool
) -> Outputs:
    """Noise one of two accepted coordinates, chosen at random; the other is 0, or itself if in clear."""
    chosen = rng.integers(0, 2, (n, 1)) == np.arange(2)
    noisy = add_laplace(update, n, rng, scale=1.0)
    return np.where(chosen, noisy, update if rest_in_clear else 0.0)


def sparse_vector_mechanism(threshold_scale: float, query_scale: float, cutoff: int) -> TwoStageMechanism:
    """Sparse vector on query answers that are given as the dataset."""
    noise = partial(sparse_vector, threshold_scale=threshold_scale, query_scale=query_scale, cutoff=cutoff)
    return TwoStageMechanism(statistics, noise)


LYU = "https://arxiv.org/abs/1603.01699"
LOW, HIGH = [0.0] * 4, [1.0] * 4

BUGS = (
    ZooEntry(
        id="best-of-k-runs",
        library="practice in private training",
        link="https://arxiv.org/abs/2110.03620",
        summary="A mechanism is run k times, the best result is published, and one run is charged.",
        evidence="practice described in a paper",
        epsilon=0.5,
        pair="one more row; k = 10",
        neighbours=([], [1.0]),
        broken=TwoStageMechanism(total, partial(best_of_runs, runs=10, scale=2.0)),
        fixed=TwoStageMechanism(total, partial(best_of_runs, runs=10, scale=20.0)),
        true_epsilon=5.0,
        why="far to the left all ten runs must be small together: ten times ½",
    ),
    ZooEntry(
        id="svt4-lee-clifton",
        library="sparse vector (Lee & Clifton 2014)",
        link=LYU,
        summary="The noise on the queries is not scaled with the number c of answers above the threshold.",
        evidence="paper (algorithm 4)",
        epsilon=1.0,
        pair="eight queries, four up and four down; c = 4",
        neighbours=(LOW + HIGH, HIGH + LOW),
        broken=sparse_vector_mechanism(4.0, 4 / 3, 4),
        fixed=sparse_vector_mechanism(2.0, 16.0, 4),
        true_epsilon=4.6130,
        why="quadrature over the threshold, transcript ⊥⊥⊥⊥⊤⊤⊤⊤; (1 + 6c)/4 = 6.25 in the worst case",
    ),
    ZooEntry(
        id="svt5-stoddard",
        library="sparse vector (Stoddard et al. 2014)",
        link=LYU,
        summary="Only the threshold gets noise; the queries are compared with it as they are.",
        evidence="paper (algorithm 5)",
        epsilon=1.0,
        pair="two queries exchange their answers",
        neighbours=([0.0, 1.0], [1.0, 0.0]),
        broken=sparse_vector_mechanism(2.0, 0.0, 2),
        fixed=sparse_vector_mechanism(2.0, 8.0, 2),
        true_epsilon=math.inf,
        why="the transcript ⊥⊤ is possible on one side only",
    ),
    ZooEntry(
        id="svt6-chen",
        library="sparse vector (Chen et al. 2015)",
        link=LYU,
        summary="The number of answers above the threshold is not limited, and no noise pays for them.",
        evidence="paper (algorithm 6)",
        epsilon=1.0,
        pair="eight queries, four down and four up",
        neighbours=(HIGH + LOW, LOW + HIGH),
        broken=sparse_vector_mechanism(2.0, 2.0, 8),
        fixed=sparse_vector_mechanism(2.0, 32.0, 8),
        true_epsilon=3.1846,
        why="quadrature over the threshold, transcripts ⊤⊤⊤⊤⊥⊥⊥⊥ and its mirror; grows with the queries",
    ),
    ZooEntry(
        id="nvflare-svt-passthrough",
        library="NVIDIA FLARE",
        link="https://github.com/NVIDIA/NVFlare/issues/343",
        summary=(
            "The sparse-vector filter noises the coordinates it selects for release, but accepted "
            "coordinates that were not selected keep their exact clipped value instead of becoming 0."
        ),
        evidence="confirmed by the maintainers",
        epsilon=1.0,
        pair="one coordinate of an update changes; one of two accepted coordinates is selected",
        neighbours=([0.8, 0.8], [0.8, 0.3]),
        broken=TwoStageMechanism(statistics, partial(release_one_coordinate, rest_in_clear=True)),
        fixed=TwoStageMechanism(statistics, partial(release_one_coordinate, rest_in_clear=False)),
        true_epsilon=math.inf,
        why="the exact value is released with probability ½",
    ),
    ZooEntry(
        id="noisymax-value",
        library="StatDP benchmark (report noisy max)",
        link="https://arxiv.org/abs/1805.10277",
        summary="Report noisy max returns the noisy maximum where only its position is paid for.",
        evidence="benchmark by design",
        epsilon=1.0,
        pair="all six counts move by 1",
        neighbours=([0.0] * 6, [1.0] * 6),
        broken=TwoStageMechanism(statistics, partial(noisy_maximum, scale=2.0)),
        fixed=TwoStageMechanism(statistics, partial(noisy_winner, scale=2.0)),
        true_epsilon=3.0,
        why="far to the left all six noisy counts must be small together: six times ½",
    ),
)
