"""The sensitivity is right, but the formula that turns it into a noise scale is not."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from .entry import Outputs, TwoStageMechanism, ZooEntry
from .laws import analytic_sigma, classical_sigma, gaussian_epsilon, gaussian_mu, laplace_vote_epsilon
from .stages import add_gaussian, add_laplace, count, histogram, noisy_winner, total

DELTA = 1e-5
MU = gaussian_mu(1.0, DELTA)
SIGMA = 1 / MU
"""Noise for sensitivity 1 at (1, 1e-5)."""

CLIP_NORM = 0.5
LAMBDA = 0.5


def noisy_share(counts: ArrayLike, n: int, rng: Generator, *, scale: float) -> Outputs:
    """Share of the first of two categories after noise; ½ where both noisy counts are negative."""
    noisy = np.maximum(add_laplace(counts, n, rng, scale=scale), 0.0)
    whole = noisy.sum(axis=1)
    return np.where(whole > 0, noisy[:, 0] / np.where(whole > 0, whole, 1.0), 0.5)


def clipped_gradient_sum(gradients: Sequence[float]) -> float:
    """Sum of scalar gradients, each clipped to the clipping norm."""
    return total([min(max(gradient, -CLIP_NORM), CLIP_NORM) for gradient in gradients])


def additive_gaussian(sigma: float, *, declared: bool = False) -> TwoStageMechanism:
    """A sum with Gaussian noise, telling an auditor the noise if ``declared``."""
    return TwoStageMechanism(total, partial(add_gaussian, sigma=sigma), sigma if declared else None)


BUGS = (
    ZooEntry(
        id="datasynth-privbayes-counts",
        library="DataSynthesizer",
        link="https://github.com/DataResponsibly/DataSynthesizer/issues/34",
        summary=(
            "PrivBayes states the noise for relative frequencies, 2/(n ε). The implementation adds it to raw "
            "counts, where n times as much is needed, and normalises afterwards."
        ),
        evidence="closed issue",
        epsilon=0.3,
        pair="one of n = 8 rows changes its category",
        neighbours=([0] * 4 + [1] * 4, [0] * 5 + [1] * 3),
        broken=TwoStageMechanism(partial(histogram, bins=2), partial(noisy_share, scale=2 / (8 * 0.3))),
        fixed=TwoStageMechanism(partial(histogram, bins=2), partial(noisy_share, scale=2 / 0.3)),
        true_epsilon=1.9452,
        why=(
            "quadrature: the density ratio of the released share is largest at 0.336; the noisy counts "
            "themselves would give n ε = 2.4"
        ),
    ),
    ZooEntry(
        id="sn-mwem-dims",
        library="SmartNoise SDK (MWEM)",
        link="https://github.com/opendp/smartnoise-sdk/issues/472",
        summary=(
            "The noise scale of a measured count is divided by the number of dimensions of the histogram."
        ),
        evidence="maintainers agree",
        epsilon=0.5,
        pair="one more row; four-dimensional histogram",
        neighbours=(["row"] * 10, ["row"] * 11),
        broken=TwoStageMechanism(count, partial(add_laplace, scale=2.0 / 4)),
        fixed=TwoStageMechanism(count, partial(add_laplace, scale=2.0)),
        true_epsilon=2.0,
        why="a change of 1 at scale ½",
    ),
    ZooEntry(
        id="pategan-lambda",
        library="PATE-GAN (mlforhealthlabpub)",
        link="https://github.com/vanderschaarlab/mlforhealthlabpub/issues/36",
        summary="The teachers' votes are noised with Laplace scale λ where the analysis needs 1/λ.",
        evidence="open third-party issue",
        epsilon=2 * LAMBDA,
        pair="one of five teachers changes its vote; λ = ½",
        neighbours=([0, 0, 0, 1, 1], [1, 0, 0, 1, 1]),
        broken=TwoStageMechanism(partial(histogram, bins=2), partial(noisy_winner, scale=LAMBDA)),
        fixed=TwoStageMechanism(partial(histogram, bins=2), partial(noisy_winner, scale=1 / LAMBDA)),
        true_epsilon=laplace_vote_epsilon(1.0, LAMBDA),
        why="a lead of one vote turns around; the noisy votes themselves would give 2/λ = 4",
    ),
    ZooEntry(
        id="noisyhist-inverted-scale",
        library="StatDP benchmark (NoisyHist2); attribution-reporting documentation",
        link="https://arxiv.org/abs/1805.10277",
        see_also=("https://github.com/WICG/attribution-reporting-api/issues/1329",),
        summary="The Laplace scale is written ε/Δ instead of Δ/ε: the stricter the claim, the less noise.",
        evidence="benchmark by design; slip in a specification's documentation",
        epsilon=0.5,
        pair="one more row",
        neighbours=([0, 1, 1, 1, 2, 2], [0, 0, 1, 1, 1, 2, 2]),
        broken=TwoStageMechanism(partial(histogram, bins=3), partial(add_laplace, scale=0.5)),
        fixed=TwoStageMechanism(partial(histogram, bins=3), partial(add_laplace, scale=2.0)),
        true_epsilon=2.0,
        why="1/ε instead of ε",
    ),
    ZooEntry(
        id="sprintgan-clip-squared",
        library="SPRINT GAN",
        link="https://github.com/greenelab/SPRINT_gan/issues/5",
        summary=(
            "The noise's standard deviation is the multiplier times the square of the clipping norm C: too "
            "little whenever C < 1."
        ),
        evidence="acknowledged issue",
        epsilon=1.0,
        delta=DELTA,
        pair="one more record, clipped to C = ½",
        neighbours=([], [3.0]),
        broken=TwoStageMechanism(clipped_gradient_sum, partial(add_gaussian, sigma=SIGMA * CLIP_NORM**2)),
        fixed=TwoStageMechanism(clipped_gradient_sum, partial(add_gaussian, sigma=SIGMA * CLIP_NORM)),
        true_epsilon=gaussian_epsilon(MU / CLIP_NORM, DELTA),
        why="the shift in units of the noise is 1/C times too large",
    ),
    ZooEntry(
        id="tramer-debugging-dp",
        library="code of a paper on backpropagation clipping",
        link="https://arxiv.org/abs/2202.12219",
        summary=(
            "The clipping norm is divided by the batch size although gradients are averaged already, so the "
            "noise is calibrated to a sensitivity that is too small by the batch size."
        ),
        evidence="paper: claimed 0.21, audited above 2.79",
        epsilon=0.21,
        delta=DELTA,
        pair="one more record, the canary; the scale is 12 times too small",
        neighbours=([], [1.0]),
        broken=additive_gaussian(analytic_sigma(0.21, DELTA) / 12),
        fixed=additive_gaussian(analytic_sigma(0.21, DELTA)),
        true_epsilon=gaussian_epsilon(12 * gaussian_mu(0.21, DELTA), DELTA),
        why="12 times the shift that the noise allows",
    ),
    ZooEntry(
        id="classic-gauss-8-0.1",
        library="SmartNoise SQL; Programming Differential Privacy; DP in-context learning",
        link="https://github.com/opendp/smartnoise-sdk/issues/462",
        see_also=(
            "https://github.com/uvm-plaid/programming-dp/issues/45",
            "https://arxiv.org/abs/2511.13502",
        ),
        summary=(
            "The noise √(2 ln(1.25/δ))/ε is used for ε above 1, where the theorem behind it does not hold."
        ),
        evidence="issues, fixed; paper",
        epsilon=8.0,
        delta=0.1,
        pair="one more row",
        neighbours=([], [1.0]),
        broken=additive_gaussian(classical_sigma(8.0, 0.1), declared=True),
        fixed=additive_gaussian(analytic_sigma(8.0, 0.1), declared=True),
        true_epsilon=gaussian_epsilon(1 / classical_sigma(8.0, 0.1), 0.1),
        why="exact Gaussian privacy at the noise that is really added: 10.05",
    ),
    ZooEntry(
        id="classic-gauss-10-1e-5",
        library="SmartNoise SQL; Programming Differential Privacy; DP in-context learning",
        link="https://github.com/opendp/smartnoise-sdk/issues/462",
        see_also=(
            "https://github.com/uvm-plaid/programming-dp/issues/45",
            "https://arxiv.org/abs/2511.13502",
        ),
        summary=(
            "The same formula at a realistic δ: the excess is small, and it shows at likelihood ratios of "
            "e¹⁰, beyond the reach of counting."
        ),
        evidence="issues, fixed; paper",
        epsilon=10.0,
        delta=1e-5,
        pair="one more row",
        neighbours=([], [1.0]),
        broken=additive_gaussian(classical_sigma(10.0, 1e-5), declared=True),
        fixed=additive_gaussian(analytic_sigma(10.0, 1e-5), declared=True),
        true_epsilon=gaussian_epsilon(1 / classical_sigma(10.0, 1e-5), 1e-5),
        why="exact Gaussian privacy at the noise that is really added: 10.39",
    ),
)
