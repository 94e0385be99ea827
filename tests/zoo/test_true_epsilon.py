"""The stated true ε follows from the entry's own clean outputs and noise, in closed form."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import dp_accounting
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom, cauchy, ks_2samp, laplace, norm

from . import composition, stages
from .catalogue import BUGS, HAZARDS
from .entry import Hazard, TwoStageMechanism, ZooEntry
from .generative import SYNTHETIC_ROWS
from .hazards import CAUCHY_SCALE, KEY_THRESHOLD
from .laws import (
    discrete_delta,
    discrete_epsilon,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    laplace_delta_epsilon,
    laplace_vote_epsilon,
    zcdp_epsilon,
)

BUG = {bug.id: bug for bug in BUGS}
HAZARD = {hazard.id: hazard for hazard in HAZARDS}


def noise_parameters(mechanism: TwoStageMechanism) -> dict[str, Any]:
    """Keyword arguments that the entry fixed for its noise stage."""
    return mechanism.noise.keywords if isinstance(mechanism.noise, partial) else {}


def epsilon_of_additive_noise(
    mechanism: TwoStageMechanism, neighbours: tuple[Any, Any], delta: float
) -> float | None:
    """Exact ε of clean outputs plus Laplace, geometric or Gaussian noise; ``None`` for other mechanisms."""
    kind = getattr(mechanism.noise, "func", None)
    if kind not in (stages.add_laplace, stages.add_geometric, stages.add_gaussian):
        return None
    reference, canary = (np.asarray(mechanism.clean(dataset), float) for dataset in neighbours)
    if np.isnan(reference).any() or np.isnan(canary).any():
        return math.inf
    shift = np.abs(canary - reference)
    parameters = noise_parameters(mechanism)
    if kind is stages.add_gaussian:
        mu = float(np.linalg.norm(shift / parameters["sigma"]))
        return gaussian_epsilon(mu, delta)
    if kind is stages.add_geometric:
        return float(np.sum(shift * parameters["epsilon"]))
    pure = float(np.sum(shift / parameters["scale"]))
    return laplace_delta_epsilon(pure, 1.0, delta) if delta else pure


def additive(mechanism: TwoStageMechanism, neighbours: tuple[Any, Any]) -> bool:
    return epsilon_of_additive_noise(mechanism, neighbours, 1e-5) is not None


ADDITIVE_BUGS = [
    bug for bug in BUGS if additive(bug.broken, bug.neighbours) and "low-bit" not in bug.side_channels
]
ADDITIVE_TWINS = [bug for bug in BUGS if additive(bug.fixed, bug.neighbours)]
ADDITIVE_HAZARDS = [hazard for hazard in HAZARDS if additive(hazard.mechanism, hazard.neighbours)]


def test_most_entries_are_additive() -> None:
    assert (len(ADDITIVE_BUGS), len(ADDITIVE_TWINS), len(ADDITIVE_HAZARDS)) == (25, 29, 7)


@pytest.mark.parametrize("bug", ADDITIVE_BUGS, ids=str)
def test_additive_bug(bug: ZooEntry) -> None:
    exact = epsilon_of_additive_noise(bug.broken, bug.neighbours, bug.delta)
    assert bug.true_epsilon == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("bug", ADDITIVE_TWINS, ids=str)
def test_additive_twin_meets_the_claim(bug: ZooEntry) -> None:
    exact = epsilon_of_additive_noise(bug.fixed, bug.neighbours, bug.delta)
    assert exact is not None
    assert exact <= bug.epsilon * (1 + 1e-9)


@pytest.mark.parametrize("hazard", ADDITIVE_HAZARDS, ids=str)
def test_additive_hazard(hazard: Hazard) -> None:
    exact = epsilon_of_additive_noise(hazard.mechanism, hazard.neighbours, hazard.delta)
    assert hazard.true_epsilon == pytest.approx(exact, rel=1e-9)


# --- the laws themselves ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("sigma", "delta"), [(3.73, 1e-5), (0.4845, 1e-5), (0.36, 0.1), (1.0, 1e-9)])
def test_gaussian_epsilon_agrees_with_dp_accounting(sigma: float, delta: float) -> None:
    expected = dp_accounting.get_epsilon_gaussian(sigma, delta)
    assert gaussian_epsilon(1 / sigma, delta) == pytest.approx(expected, rel=1e-6)
    assert gaussian_mu(expected, delta) == pytest.approx(1 / sigma, rel=1e-6)
    assert gaussian_delta(expected, 1 / sigma) == pytest.approx(delta, rel=1e-6)


def test_zcdp_conversion_beats_the_simple_one_and_covers_the_gaussian() -> None:
    mu = 0.7
    converted = zcdp_epsilon(mu**2 / 2, 1e-6)
    assert gaussian_epsilon(mu, 1e-6) < converted < mu**2 / 2 + mu * math.sqrt(2 * math.log(1e6))


@pytest.mark.parametrize(("gap", "scale"), [(1.0, 0.5), (5.0, 2.0), (1.0, 2.0)])
def test_laplace_vote_epsilon_against_quadrature(gap: float, scale: float) -> None:
    upset, _ = quad(
        lambda x: laplace.pdf(x, scale=scale) * laplace.sf(x + gap, scale=scale), -60, 60, points=[-gap, 0.0]
    )
    assert laplace_vote_epsilon(gap, scale) == pytest.approx(math.log((1 - upset) / upset), rel=1e-7)


def test_laplace_delta_epsilon_against_quadrature() -> None:
    scale, delta = 0.8, 0.2
    epsilon = laplace_delta_epsilon(1.0, scale, delta)
    excess, _ = quad(
        lambda x: max(laplace.pdf(x, scale=scale) - math.exp(epsilon) * laplace.pdf(x, 1.0, scale), 0.0),
        -40,
        40,
        points=[0.0, 0.5, 1.0],
        limit=200,
    )
    assert excess == pytest.approx(delta, rel=1e-5)


# --- mechanisms that are not additive ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pategan-same-partition", "pategan-lambda"])
def test_winner_of_noisy_votes(name: str) -> None:
    bug = BUG[name]
    for mechanism in (bug.broken, bug.fixed):
        leads = [votes[0] - votes[1] for votes in map(mechanism.clean, bug.neighbours)]
        assert leads[0] == -leads[1]
        exact = laplace_vote_epsilon(abs(leads[0]), noise_parameters(mechanism)["scale"])
        if mechanism is bug.broken:
            assert bug.true_epsilon == pytest.approx(exact, rel=1e-12)
        else:
            assert exact <= bug.epsilon


def test_folded_laplace() -> None:
    bug = BUG["dpl-linreg-diag"]
    outputs = np.linspace(0, 120, 24_001)

    def log_density(centre: float, scale: float) -> Any:
        shape = partial(laplace.logpdf, loc=centre, scale=scale)
        return np.logaddexp(shape(outputs), shape(-outputs))

    for mechanism, expected in ((bug.broken, bug.true_epsilon), (bug.fixed, bug.epsilon)):
        scale = noise_parameters(mechanism)["scale"]
        reference, canary = (log_density(mechanism.clean(rows), scale) for rows in bug.neighbours)
        assert np.abs(reference - canary).max() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("name", "draws"), [("best-of-k-runs", 10), ("noisymax-value", 6)])
def test_maximum_of_noisy_values(name: str, draws: int) -> None:
    bug = BUG[name]
    scale = noise_parameters(bug.broken)["scale"]
    outputs = np.linspace(-60, 60, 12_001)

    def log_density(shift: float) -> Any:
        below = laplace.logcdf(outputs, shift, scale)
        return (draws - 1) * below + laplace.logpdf(outputs, shift, scale)

    assert np.abs(log_density(0.0) - log_density(1.0)).max() == pytest.approx(bug.true_epsilon, rel=1e-9)


def test_best_of_runs_pays_for_every_run() -> None:
    bug = BUG["best-of-k-runs"]
    parameters = noise_parameters(bug.fixed)
    assert parameters["runs"] / parameters["scale"] == pytest.approx(bug.epsilon)


@pytest.mark.parametrize(
    ("name", "scale"),
    [
        ("sncore-mean-private-n", 2.0),
        ("ctgan-exact-frequencies", 1.0),
        ("nvflare-svt-passthrough", 1.0),
        ("mironov-laplace-double", 1.0),
        ("timing-geometric", 1.0),
    ],
)
def test_twins_that_only_process_noisy_statistics(name: str, scale: float) -> None:
    bug = BUG[name]
    reference, canary = (np.asarray(bug.fixed.clean(dataset), float) for dataset in bug.neighbours)
    assert np.abs(canary - reference).sum() / scale <= bug.epsilon


@pytest.mark.parametrize(
    "name", ["noisymax-value", "synthcity-public-n", "quantile-underflow-crash", "opacus-empty-batch-skip"]
)
def test_twins_that_do_not_react_to_this_pair(name: str) -> None:
    bug = BUG[name]
    first, second = (
        bug.fixed.sample(dataset, 50_000, np.random.default_rng(side))
        for side, dataset in enumerate(bug.neighbours)
    )
    assert float(ks_2samp(first, second).pvalue) > 1e-3


def test_repeated_selection() -> None:
    bug = BUG["pf-as-em-zcdp"]
    trials = np.arange(composition.SELECTIONS + 1)
    for mechanism in (bug.broken, bug.fixed):
        chances = [mechanism.clean(scores) for scores in bug.neighbours]
        reference, canary = (binom.pmf(trials, composition.SELECTIONS, chance) for chance in chances)
        exact = discrete_epsilon(bug.delta, reference, canary)
        assert discrete_delta(exact, reference, canary) == pytest.approx(bug.delta, rel=1e-6)
        assert (exact > bug.epsilon) == (mechanism is bug.broken)
    assert bug.true_epsilon == pytest.approx(7.48, abs=0.01)
    assert bug.epsilon == pytest.approx(4.34, abs=0.01)


def test_exact_frequencies() -> None:
    bug = BUG["ctgan-exact-frequencies"]
    shares = [counts[1] / counts.sum() for counts in map(bug.broken.clean, bug.neighbours)]
    reference, canary = (
        binom.logpmf(np.arange(SYNTHETIC_ROWS + 1), SYNTHETIC_ROWS, share) for share in shares
    )
    assert np.abs(reference - canary).max() == pytest.approx(bug.true_epsilon, rel=1e-9)


def test_skipped_step() -> None:
    bug = BUG["opacus-empty-batch-skip"]
    exact = discrete_epsilon(bug.delta, np.array([0.5, 0.5]), np.array([0.25, 0.75]))
    assert bug.true_epsilon == pytest.approx(exact, rel=1e-9)


def test_randomised_response() -> None:
    bug = BUG["odp-rr-bool"]
    n = 200_000
    for mechanism, epsilon in ((bug.broken, bug.true_epsilon), (bug.fixed, bug.epsilon)):
        truth = math.exp(epsilon) / (1 + math.exp(epsilon))
        for bit, dataset in enumerate(bug.neighbours):
            told = np.count_nonzero(mechanism.sample(dataset, n, np.random.default_rng(5)) == bit)
            assert abs(told - n * truth) < 4 * math.sqrt(n * truth * (1 - truth))


# --- hazards ----------------------------------------------------------------------------------------------


def test_key_threshold_spends_exactly_delta() -> None:
    hazard = HAZARD["h-threshold-key"]
    published = float(laplace.sf(KEY_THRESHOLD, loc=1.0))
    assert published == pytest.approx(hazard.delta, rel=1e-12)
    assert np.isnan(hazard.mechanism.sample(hazard.neighbours[0], 10_000, np.random.default_rng(0))).all()


@pytest.mark.parametrize("name", ["h-clamped-laplace", "h-round-to-zero"])
def test_post_processed_laplace_keeps_an_exactly_tight_atom(name: str) -> None:
    hazard = HAZARD[name]
    atom = 0.0 if name == "h-clamped-laplace" else -1.0
    reference, canary = (
        laplace.cdf(atom, loc) - (laplace.cdf(atom - 1, loc) if atom else 0.0) for loc in (0.0, 1.0)
    )
    assert math.log(reference / canary) == pytest.approx(hazard.true_epsilon, rel=1e-9)
    n = 100_000
    seen = np.count_nonzero(hazard.mechanism.sample([], n, np.random.default_rng(1)) == atom)
    assert abs(seen - n * reference) < 4 * math.sqrt(n * reference * (1 - reference))


def test_cauchy_ratio_is_bounded() -> None:
    hazard = HAZARD["h-cauchy"]
    outputs = np.linspace(-20, 20, 400_001)
    ratio = cauchy.logpdf(outputs, 0.0, CAUCHY_SCALE) - cauchy.logpdf(outputs, 1.0, CAUCHY_SCALE)
    assert np.abs(ratio).max() == pytest.approx(hazard.true_epsilon, rel=1e-7)


def test_one_hot_response() -> None:
    hazard = HAZARD["h-rare-atoms"]
    own = 1 / (1 + math.exp(-0.5))
    informative = np.array([own, 1 - own])
    fair = np.array([0.5, 0.5])
    reference, canary = np.outer(informative, fair).ravel(), np.outer(fair, informative).ravel()
    assert discrete_epsilon(0.0, reference, canary) == pytest.approx(hazard.true_epsilon, rel=1e-9)
    n = 100_000
    first_bit = hazard.mechanism.sample(hazard.neighbours[0], n, np.random.default_rng(2)) % 2
    assert abs(first_bit.sum() - n * own) < 4 * math.sqrt(n * own * (1 - own))


def test_rare_inclusion_stays_below_delta() -> None:
    hazard = HAZARD["h-tfp-eps-zero"]
    rate = noise_parameters(hazard.mechanism)["rate"]
    assert rate * float(2 * norm.cdf(0.5) - 1) < hazard.delta
    assert rate > hazard.delta
