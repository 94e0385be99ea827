"""Synthetic data and in-context learning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .entry import Outputs, TwoStageMechanism, ZooEntry
from .laws import gaussian_epsilon, gaussian_mu
from .stages import add_gaussian, add_laplace, mean_row

DELTA = 1e-5
MU = gaussian_mu(1.0, DELTA)
SIGMA = 1 / MU
"""Noise for sensitivity 1 at (1, 1e-5)."""

SYNTHETIC_ROWS = 60
COMMON, RARE = "common", "rare"


def category_counts(rows: Sequence[str]) -> NDArray[np.float64]:
    """How many rows are common and how many rare."""
    return np.array([rows.count(COMMON), rows.count(RARE)], float)


def rare_rows_from_exact_frequencies(counts: NDArray[np.float64], n: int, rng: Generator) -> Outputs:
    """How many of the synthetic rows are rare, drawn at the frequency in the private rows."""
    return rng.binomial(SYNTHETIC_ROWS, counts[1] / counts.sum(), n).astype(float)


def rare_rows_from_noisy_frequencies(counts: NDArray[np.float64], n: int, rng: Generator) -> Outputs:
    """The same, with frequencies from noisy counts that are kept above ½."""
    noisy = np.maximum(add_laplace(counts, n, rng, scale=1.0), 0.5)
    return np.asarray(rng.binomial(SYNTHETIC_ROWS, noisy[:, 1] / noisy.sum(axis=1)), float)


BUGS = (
    ZooEntry(
        id="esa-T1",
        library="embedding space aggregation for private in-context learning",
        link="https://arxiv.org/abs/2511.13502",
        summary=(
            "The mean of T unit embeddings, one per partition, is noised for sensitivity 1. Replacing a "
            "demonstration moves it by up to 2/T, which is 2 when there is a single partition."
        ),
        evidence="paper (second flaw)",
        epsilon=1.0,
        delta=DELTA,
        pair="the only embedding is replaced by its opposite",
        neighbours=([(1.0, 0.0)], [(-1.0, 0.0)]),
        broken=TwoStageMechanism(mean_row, partial(add_gaussian, sigma=SIGMA)),
        fixed=TwoStageMechanism(mean_row, partial(add_gaussian, sigma=2 * SIGMA)),
        true_epsilon=gaussian_epsilon(2 * MU, DELTA),
        why="twice the shift that the noise allows",
    ),
    ZooEntry(
        id="ctgan-exact-frequencies",
        library="PATE-CTGAN and relatives",
        link="https://github.com/opendp/smartnoise-sdk/issues/301",
        see_also=(
            "https://github.com/opendp/smartnoise-sdk/issues/484",
            "https://github.com/Team-TUD/CTAB-GAN-Plus/issues/2",
        ),
        summary=(
            "The sampler that conditions the generator draws categories with their exact frequencies in the "
            "private rows, so that enough synthetic rows reveal them."
        ),
        evidence="reported; disputed by the maintainers for PATE-CTGAN, noised since in DP-CTGAN",
        epsilon=1.0,
        pair="one more row of the rare category; 60 synthetic rows",
        neighbours=([COMMON] * 9 + [RARE], [COMMON] * 9 + [RARE] * 2),
        broken=TwoStageMechanism(category_counts, rare_rows_from_exact_frequencies),
        fixed=TwoStageMechanism(category_counts, rare_rows_from_noisy_frequencies),
        true_epsilon=SYNTHETIC_ROWS * math.log((2 / 11) / (1 / 10)),
        why=(
            "frequencies 1/10 and 2/11, all rows rare; grows with the rows released, 5.7 already for "
            "none rare"
        ),
    ),
)
