"""Correct mechanisms that look broken to careless statistics; an auditor must pass all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.random import Generator

from .entry import Hazard, Outputs, TwoStageMechanism
from .laws import analytic_sigma, laplace_delta_epsilon
from .stages import (
    add_gaussian,
    add_geometric,
    add_laplace,
    column_sums,
    count,
    encode_bits,
    sparse_vector,
    statistics,
    total,
)

KEY_DELTA = 0.01
KEY_THRESHOLD = 1 - math.log(2 * KEY_DELTA)
"""A count of 1 under Laplace(1) noise exceeds this with probability exactly ``KEY_DELTA``."""

CAUCHY_SCALE = 2.0
ONE_HOT_BITS = 12

ONE_ROW: tuple[list[float], list[float]] = ([], [1.0])


def key_if_frequent(rows: float, n: int, rng: Generator) -> Outputs:
    """The noisy count of a key if it exceeds the threshold; NaN if not, or if the key does not occur."""
    noisy = add_laplace(rows, n, rng, scale=1.0)
    return np.where((noisy > KEY_THRESHOLD) & (rows > 0), noisy, math.nan)


def clamped_laplace(state: float, n: int, rng: Generator) -> Outputs:
    """Laplace noise, clamped afterwards to [0, 1]."""
    return np.clip(add_laplace(state, n, rng, scale=1.0), 0.0, 1.0)


def add_cauchy(state: float, n: int, rng: Generator) -> Outputs:
    """Cauchy noise."""
    return np.asarray(state + CAUCHY_SCALE * rng.standard_cauchy(n), float)


def respond_one_hot(position: Sequence[int], n: int, rng: Generator) -> Outputs:
    """One bit per position, fair except at the respondent's own, which shows 1 with probability σ(½)."""
    chance = np.full(ONE_HOT_BITS, 0.5)
    chance[position[0]] = 1 / (1 + math.exp(-0.5))
    return encode_bits(rng.random((n, ONE_HOT_BITS)) < chance)


def laplace_rounded_to_zero(state: float, n: int, rng: Generator) -> Outputs:
    """Laplace noise, then rounding towards 0."""
    return np.trunc(add_laplace(state, n, rng, scale=1.0))


def rarely_included(values: Sequence[float], n: int, rng: Generator, *, rate: float) -> Outputs:
    """Sum over a Poisson sample at a tiny rate, plus standard Gaussian noise."""
    sampled = rng.random((n, len(values))) < rate
    return np.asarray(sampled @ np.asarray(values, float) + rng.standard_normal(n), float)


LAPLACE_SUM = TwoStageMechanism(total, partial(add_laplace, scale=1.0))

HAZARDS = (
    Hazard(
        id="h-gauss-delta",
        trap="δ ignored",
        epsilon=1.0,
        delta=0.01,
        neighbours=ONE_ROW,
        mechanism=TwoStageMechanism(total, partial(add_gaussian, sigma=analytic_sigma(1.0, 0.01))),
        true_epsilon=1.0,
        why="exactly sufficient Gaussian noise; in the tail the bare ratio of probabilities exceeds e",
    ),
    Hazard(
        id="h-threshold-key",
        trap="counts of zero on one side",
        epsilon=1.0,
        delta=KEY_DELTA,
        neighbours=([], ["row"]),
        mechanism=TwoStageMechanism(count, key_if_frequent),
        true_epsilon=0.0,
        why="a key held by one person is published with probability δ, and never without that person",
    ),
    Hazard(
        id="h-geometric-ties",
        trap="the largest of many ratios that are all exactly e^ε",
        epsilon=1.0,
        neighbours=ONE_ROW,
        mechanism=TwoStageMechanism(total, partial(add_geometric, epsilon=1.0)),
        true_epsilon=1.0,
        why="every atom's ratio is e or 1/e; their largest estimate lies above",
    ),
    Hazard(
        id="h-clamped-laplace",
        trap="point masses at the edges of a clamp",
        epsilon=1.0,
        neighbours=ONE_ROW,
        mechanism=TwoStageMechanism(total, clamped_laplace),
        true_epsilon=1.0,
        why="clamping is post-processing; two atoms beside a density upset histograms and kernel estimates",
    ),
    Hazard(
        id="h-cauchy",
        trap="heavy tails",
        epsilon=math.log((9 + math.sqrt(17)) / 8),
        neighbours=ONE_ROW,
        mechanism=TwoStageMechanism(total, add_cauchy),
        true_epsilon=math.log((9 + math.sqrt(17)) / 8),
        why="the density ratio is bounded, but no moment exists: fits of a mean or of equal bins go astray",
    ),
    Hazard(
        id="h-vector-laplace",
        trap="a learned score judged on its own training data",
        epsilon=1.0,
        neighbours=([], [[1.0] * 8]),
        mechanism=TwoStageMechanism(partial(column_sums, width=8), partial(add_laplace, scale=8.0)),
        true_epsilon=1.0,
        why="eight coordinates at L1 sensitivity 8; a classifier in eight dimensions overfits",
    ),
    Hazard(
        id="h-rare-atoms",
        trap="thousands of outcomes with a few counts each",
        epsilon=1.0,
        neighbours=([0], [1]),
        mechanism=TwoStageMechanism(statistics, respond_one_hot),
        true_epsilon=0.5,
        why="two informative bits spread over 2¹² outcomes by ten fair ones; single ratios are noise",
    ),
    Hazard(
        id="h-svt-correct",
        trap="repeated audits of rare transcripts",
        epsilon=1.0,
        neighbours=([0.0] * 4, [1.0] * 4),
        mechanism=TwoStageMechanism(
            statistics, partial(sparse_vector, threshold_scale=2.0, query_scale=4.0, cutoff=1)
        ),
        true_epsilon=0.43846,
        why="the correct sparse vector (Lyu et al. 2017, algorithm 1), loose on this pair: quadrature",
        see_also=("https://arxiv.org/abs/1603.01699",),
    ),
    Hazard(
        id="h-distance-2-pair",
        trap="a pair at distance 2 judged by the claim for distance 1",
        epsilon=2.0,
        neighbours=([(1.0, 0.0)], [(0.0, 1.0)]),
        mechanism=TwoStageMechanism(partial(column_sums, width=2), partial(add_laplace, scale=1.0)),
        true_epsilon=2.0,
        why="a replaced row moves two counts of a histogram that is 1-private per row added or removed",
    ),
    Hazard(
        id="h-peeking",
        trap="auditing again until it fails",
        epsilon=1.0,
        neighbours=ONE_ROW,
        mechanism=LAPLACE_SUM,
        true_epsilon=1.0,
        why="exactly tight; the worst of many weak audits lies above",
    ),
    Hazard(
        id="h-round-to-zero",
        trap="twice the mass at 0",
        epsilon=1.0,
        neighbours=ONE_ROW,
        mechanism=TwoStageMechanism(total, laplace_rounded_to_zero),
        true_epsilon=1.0,
        why="rounding towards 0 is post-processing, odd as the histogram looks",
        see_also=("https://github.com/google/differential-privacy/issues/10",),
    ),
    Hazard(
        id="h-laplace-eps-delta",
        trap="a scale that looks too small",
        epsilon=1.0,
        delta=0.2,
        neighbours=ONE_ROW,
        mechanism=TwoStageMechanism(total, partial(add_laplace, scale=1 / (1 - math.log(0.8)))),
        true_epsilon=laplace_delta_epsilon(1.0, 1 / (1 - math.log(0.8)), 0.2),
        why="ratios reach e^1.22, but Laplace noise of scale Δ/(ε − ln(1 − δ)) is (ε, δ)-private",
    ),
    Hazard(
        id="h-tfp-eps-zero",
        trap="ε = 0 looks absurd",
        epsilon=0.0,
        delta=1e-3,
        neighbours=ONE_ROW,
        mechanism=TwoStageMechanism(statistics, partial(rarely_included, rate=0.00105)),
        true_epsilon=0.0,
        why="the total variation distance is 0.00105 · (2Φ(½) − 1) = 0.0004, below δ",
        see_also=("https://github.com/tensorflow/privacy/issues/166",),
    ),
    Hazard(
        id="h-laplace-many-thresholds",
        trap="the largest of many thresholds on the samples that chose it",
        epsilon=1.0,
        neighbours=ONE_ROW,
        mechanism=LAPLACE_SUM,
        true_epsilon=1.0,
        why="tight on two half-lines at once; the largest estimate over a thousand thresholds lies above",
    ),
)
