"""Amplification by sampling is claimed for a sampling that does not take place as described."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.random import Generator

from .entry import Outputs, TwoStageMechanism, ZooEntry
from .laws import gaussian_epsilon
from .stages import add_gaussian, statistics, total

DELTA = 1e-5
HALF_RATE_SIGMA = 8.0


def sampled_sum(values: Sequence[float], n: int, rng: Generator, *, rate: float, sigma: float) -> Outputs:
    """Sum over a Poisson sample of the records, plus Gaussian noise."""
    sampled = rng.random((n, len(values))) < rate
    return np.asarray(sampled @ np.asarray(values, float) + sigma * rng.standard_normal(n), float)


def sampled_sum_skipping_empty(values: Sequence[float], n: int, rng: Generator) -> Outputs:
    """The same at rate ½, but an empty sample makes no step: exactly 0, without noise."""
    sampled = rng.random((n, len(values))) < 0.5
    step = sampled @ np.asarray(values, float) + HALF_RATE_SIGMA * rng.standard_normal(n)
    return np.where(sampled.any(axis=1), step, 0.0)


BUGS = (
    ZooEntry(
        id="fl-q-overclaimed",
        library="DynamicPFL",
        link="https://github.com/xiyuanyang45/DynamicPFL/issues/4",
        summary=(
            "The accountant is told a sampling rate of 0.1, while every record takes part in every round."
        ),
        evidence="the author agrees",
        epsilon=1.685,
        delta=DELTA,
        pair="one more record, noise multiplier 1",
        neighbours=([], [1.0]),
        broken=TwoStageMechanism(total, partial(add_gaussian, sigma=1.0)),
        fixed=TwoStageMechanism(statistics, partial(sampled_sum, rate=0.1, sigma=1.0)),
        true_epsilon=gaussian_epsilon(1.0, DELTA),
        why="the Gaussian mechanism at noise multiplier 1 without amplification: 4.38",
    ),
    ZooEntry(
        id="opacus-empty-batch-skip",
        library="Opacus before 0.14, and hand-written loops",
        link="https://github.com/meta-pytorch/opacus/issues/161",
        see_also=("https://github.com/meta-pytorch/opacus/pull/164",),
        summary=(
            "When the Poisson sample is empty the optimiser step is skipped. No noise is added, and an exact "
            "standstill shows that nobody was sampled."
        ),
        evidence="issue; the skipped step is derived from it",
        epsilon=0.227,
        delta=DELTA,
        pair="one more record, with zero gradient, beside one; sampling rate ½, noise multiplier 8",
        neighbours=([0.0], [0.0, 0.0]),
        broken=TwoStageMechanism(statistics, sampled_sum_skipping_empty),
        fixed=TwoStageMechanism(statistics, partial(sampled_sum, rate=0.5, sigma=HALF_RATE_SIGMA)),
        true_epsilon=math.log((0.5 - DELTA) / 0.25),
        why="standstill with probability ½ against ¼; infinite from the empty dataset",
    ),
)
