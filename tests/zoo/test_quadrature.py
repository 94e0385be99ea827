"""True ε that has no closed form, by quadrature over densities written down independently of the samplers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import chi2, chisquare, laplace, norm

from .catalogue import BUGS, HAZARDS
from .data_dependent import SAMPLING_RATE, SGD_DIMENSION, SGD_SIGMA
from .entry import TwoStageMechanism

Floats = NDArray[np.float64]
BUG = {bug.id: bug for bug in BUGS}
HAZARD = {hazard.id: hazard for hazard in HAZARDS}


def noise_parameters(mechanism: TwoStageMechanism) -> dict[str, Any]:
    assert isinstance(mechanism.noise, partial)
    return mechanism.noise.keywords


# --- sparse vector ----------------------------------------------------------------------------------------


def transcript_law(
    answers: Sequence[float], *, threshold_scale: float, query_scale: float, cutoff: int
) -> Floats:
    """Probability of every transcript code, (2^m,), integrating over the noisy threshold."""
    thresholds = np.linspace(-40 * threshold_scale, 40 * threshold_scale, 40_001)
    density = laplace.pdf(thresholds, scale=threshold_scale)
    if query_scale:
        above = np.stack([laplace.sf(thresholds, answer, query_scale) for answer in answers])
    else:
        above = np.stack([(thresholds <= answer).astype(float) for answer in answers])
    law = np.zeros(2 ** len(answers))
    for bits in itertools.product((False, True), repeat=len(answers)):
        if sum(bits) > cutoff:
            continue
        asked = max(i for i, bit in enumerate(bits) if bit) + 1 if sum(bits) == cutoff else len(bits)
        chance = density.copy()
        for i in range(asked):
            chance *= above[i] if bits[i] else 1 - above[i]
        law[sum(bit << i for i, bit in enumerate(bits))] = np.trapezoid(chance, thresholds)
    return law


def transcript_epsilon(mechanism: TwoStageMechanism, neighbours: tuple[Any, Any]) -> float:
    reference, canary = (transcript_law(answers, **noise_parameters(mechanism)) for answers in neighbours)
    assert reference.sum() == pytest.approx(1.0, abs=1e-5)
    possible = reference > 0
    return float(np.abs(np.log(reference[possible] / canary[possible])).max())


@pytest.mark.parametrize("name", ["svt4-lee-clifton", "svt6-chen"])
def test_broken_sparse_vectors(name: str) -> None:
    bug = BUG[name]
    assert bug.true_epsilon == pytest.approx(transcript_epsilon(bug.broken, bug.neighbours), rel=1e-4)


@pytest.mark.parametrize("name", ["svt4-lee-clifton", "svt5-stoddard", "svt6-chen"])
def test_repaired_sparse_vectors(name: str) -> None:
    bug = BUG[name]
    assert transcript_epsilon(bug.fixed, bug.neighbours) < bug.epsilon


def test_correct_sparse_vector() -> None:
    hazard = HAZARD["h-svt-correct"]
    exact = transcript_epsilon(hazard.mechanism, hazard.neighbours)
    assert hazard.true_epsilon == pytest.approx(exact, rel=1e-4)


@pytest.mark.parametrize("name", ["svt4-lee-clifton", "svt5-stoddard", "svt6-chen"])
def test_transcripts_follow_their_law(name: str) -> None:
    bug = BUG[name]
    n = 100_000
    for dataset in bug.neighbours:
        law = transcript_law(dataset, **noise_parameters(bug.broken))
        codes = bug.broken.sample(dataset, n, np.random.default_rng(12)).astype(int)
        seen = np.bincount(codes, minlength=len(law))
        assert not seen[law == 0].any()
        frequent = law * n >= 10
        observed = np.append(seen[frequent], seen[~frequent].sum())
        expected = n * np.append(law[frequent], law[~frequent].sum())
        used = expected > 0
        expected = expected[used] * observed[used].sum() / expected[used].sum()
        assert chisquare(observed[used], expected).pvalue > 1e-3


# --- the share of one of two noisy counts -----------------------------------------------------------------


def share_densities(share: float, counts: Floats, scale: float) -> float:
    """Density of x / (x + y) at ``share`` for Laplace-noised counts x and y, where both are positive."""
    whole = np.linspace(0.0, 40 * (scale + 1), 20_001)
    joint = laplace.pdf(whole * share, counts[0], scale) * laplace.pdf(whole * (1 - share), counts[1], scale)
    return float(np.trapezoid(whole * joint, whole))


def share_epsilon(counts: tuple[Floats, Floats], scale: float, shares: Floats) -> float:
    """Largest log-ratio over ``shares`` and over the atoms at 0, ½ and 1."""

    def atoms(pair: Floats) -> Floats:
        negative = laplace.cdf(-pair, scale=scale)
        return np.array([negative[0] * (1 - negative[1]), negative.prod(), (1 - negative[0]) * negative[1]])

    laws = [
        np.append(atoms(pair), [share_densities(share, pair, scale) for share in shares]) for pair in counts
    ]
    return float(np.abs(np.log(laws[0] / laws[1])).max())


def test_share_of_noisy_counts() -> None:
    bug = BUG["datasynth-privbayes-counts"]
    counts = (bug.broken.clean(bug.neighbours[0]), bug.broken.clean(bug.neighbours[1]))
    shares = np.concatenate([np.linspace(0.01, 0.99, 50), np.linspace(0.33, 0.34, 21)])
    exact = share_epsilon(counts, noise_parameters(bug.broken)["scale"], shares)
    assert bug.true_epsilon == pytest.approx(exact, rel=1e-4)
    assert share_epsilon(counts, noise_parameters(bug.fixed)["scale"], shares) < bug.epsilon


# --- sampled Gaussian noise -------------------------------------------------------------------------------


def sampled_gaussian_epsilon(rate: float, sigma: float, delta: float) -> float:
    """ε of N(0, σ²) against the mixture that moves by 1 at ``rate``, the worse direction."""
    outputs = np.linspace(-14 * sigma, 1 + 14 * sigma, 200_001)
    absent = norm.pdf(outputs, scale=sigma)
    present = (1 - rate) * absent + rate * norm.pdf(outputs, 1.0, sigma)

    def excess(epsilon: float) -> float:
        factor = math.exp(epsilon)
        directions = ((present, absent), (absent, present))
        return max(float(np.trapezoid(np.maximum(p - factor * q, 0), outputs)) for p, q in directions)

    return float(brentq(lambda epsilon: excess(epsilon) - delta, 1e-9, 20.0))


def test_claims_of_sampled_gaussian_steps() -> None:
    participation, batch, skip = (
        BUG[name] for name in ("fl-q-overclaimed", "opacus-floor-batch", "opacus-empty-batch-skip")
    )
    assert participation.epsilon >= sampled_gaussian_epsilon(0.1, 1.0, participation.delta)
    assert batch.epsilon >= sampled_gaussian_epsilon(SAMPLING_RATE, SGD_SIGMA, batch.delta)
    assert skip.epsilon >= sampled_gaussian_epsilon(0.5, 8.0, skip.delta)
    assert participation.epsilon == pytest.approx(sampled_gaussian_epsilon(0.1, 1.0, 1e-5), rel=1e-3)


def test_batch_size_from_private_count() -> None:
    """Log-ratio of the two laws in x₁ and the χ² of the other coordinates; the wider law wins far out."""
    bug = BUG["opacus-floor-batch"]
    reference, canary = (bug.broken.clean(dataset) for dataset in bug.neighbours)
    wide, narrow = SGD_SIGMA / reference.batch_size, SGD_SIGMA / canary.batch_size
    shift = 1 / canary.batch_size
    first = np.linspace(-14 * wide, 14 * wide, 100_001)
    from_wide = norm.pdf(first, scale=wide)
    from_narrow = 0.5 * norm.pdf(first, scale=narrow) + 0.5 * norm.pdf(first, shift, narrow)
    mixture = np.log(0.5 + 0.5 * np.exp((shift * first - shift**2 / 2) / narrow**2))
    curvature = (narrow**-2 - wide**-2) / 2

    def excess(epsilon: float) -> float:
        radius = (epsilon + SGD_DIMENSION * math.log(wide / narrow) + mixture) / curvature - first**2
        beyond = [chi2.sf(np.maximum(radius, 0) / scale**2, SGD_DIMENSION - 1) for scale in (wide, narrow)]
        return float(
            np.trapezoid(from_wide * beyond[0], first)
            - math.exp(epsilon) * np.trapezoid(from_narrow * beyond[1], first)
        )

    exact = brentq(lambda epsilon: excess(epsilon) - bug.delta, 1.0, 100.0)
    assert bug.true_epsilon == pytest.approx(exact, rel=1e-4)
