"""The mean of declared privacy losses: never above the exact loss, close to it, and flat in memory."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from statistical.noisy_numbers import FAMILIES, FIXED_DENSITY

from pytest_snapaudit.engine.certificates.loss import (
    CELLS,
    LossCertificate,
    epsilon_from_losses,
    mean_exceeds,
    privacy_losses,
)
from pytest_snapaudit.engine.hockey_stick import delta_of_masses

LAPLACE = FAMILIES["Laplace, pure"]


def vector_laplace_epsilon(width, delta):
    """Of ``width`` coordinates of scale 2 and shift 1, from above and below."""
    found = [
        pld.from_laplace_mechanism(
            2.0,
            pessimistic_estimate=pessimistic,
            value_discretization_interval=1e-4,
            use_connect_dots=False,
        )
        .self_compose(width)
        .get_epsilon_for_delta(delta)
        for pessimistic in (False, True)
    ]
    return found[0], found[1]


@pytest.mark.parametrize("delta", [1e-3, 1e-2, 0.1])
def test_a_vector_of_laplace_noise_is_close_to_its_composition(delta):
    low, high = vector_laplace_epsilon(3, delta)
    assert high - low < 1e-3
    _, bound = LAPLACE.certify(1, 200_000, alpha=1e-3, width=3, delta=delta)
    assert bound.refusals == ()
    assert 0.97 * low <= bound.epsilon_lower <= high
    assert bound.estimator == "mean Laplace privacy loss"
    assert bound.note.startswith("losses at noise scale 2.0")


def test_half_the_scale_is_seen_although_losses_are_taken_near_the_pilot_s():
    low, _ = vector_laplace_epsilon(3, 1e-2)
    _, bound = LAPLACE.certify(1, 20_000, alpha=1e-3, times=0.5, width=3, delta=1e-2)
    assert bound.epsilon_lower > 1.6 * low


def test_a_density_of_one_s_own():
    exact = FIXED_DENSITY.epsilon
    certificate, bound = FIXED_DENSITY.certify(2, 400_000, alpha=1e-3)
    assert isinstance(certificate, LossCertificate)
    assert 0.97 * exact <= bound.epsilon_lower <= exact


def test_losses_are_log_ratios_of_the_declared_densities():
    certificate, _ = LAPLACE.certify(1, 6_000, alpha=0.1, width=2, delta=1e-2)
    z = np.array([[0.3, -5.0], [-1.0, 7.0], [0.75, 0.5]])
    expected = (np.abs(z - 1.0) - np.abs(z)).sum(axis=1) / 4.0
    assert privacy_losses(certificate.frame, z, 0, 4.0) == pytest.approx(expected)
    mirrored = (np.abs(z + 1.0) - np.abs(z)).sum(axis=1) / 4.0
    assert privacy_losses(certificate.frame, z, 1, 4.0) == pytest.approx(mirrored)


def test_tallies_merge_and_do_not_grow():
    rng = np.random.default_rng(3)
    certificate, _ = LAPLACE.certify(1, 6_000, alpha=0.1, width=2, delta=1e-2)
    rows = LAPLACE.rows(rng, 4_000, width=2)
    whole = certificate.tally(rows)
    parts = [certificate.tally(tuple(side[part] for side in rows)) for part in (slice(999), slice(999, None))]
    for side in (0, 1):
        merged = parts[0][side].merge(parts[1][side])
        assert merged.losses.shape == (CELLS + 1,)
        assert merged.losses.sum() == 4_000
        assert np.array_equal(merged.losses, whole[side].losses)
        assert np.array_equal(merged.residuals.cells, whole[side].residuals.cells)


def test_epsilon_from_losses_by_hand():
    edges = np.array([0.0, 1.0, 2.0])
    assert epsilon_from_losses(edges, np.array([100, 0, 0]), 1e-3, 0.05) == 0.0
    assert epsilon_from_losses(edges, np.array([100, 0, 1]), 0.0, 0.05) == 2.0
    assert epsilon_from_losses(edges, np.array([100, 0, 1]), 0.5, 0.05) == 0.0
    exact = 2.0 + math.log1p(-1e-2 / 0.5)
    found = epsilon_from_losses(edges, np.array([500_000, 0, 500_000]), 1e-2, 0.05)
    assert exact - 0.01 < found < exact
    p, q = np.array([0.5, 0.5]), np.array([1 - 0.5 * math.exp(-2.0), 0.5 * math.exp(-2.0)])
    assert delta_of_masses(p, q, exact) == pytest.approx(1e-2)


@pytest.mark.parametrize("mean", [1e-3, 0.05, 0.5])
def test_a_true_mean_is_refuted_as_rarely_as_stated(mean):
    """500 samples of 2 000 values in {0, 1/2, 1} at α = 0.1: at most 71 refutations, the 99.9 % point."""
    rng = np.random.default_rng(5)
    z = np.array([0.0, 0.5, 1.0])
    chance = np.array([1.0 - 1.5 * mean, mean, 0.5 * mean])
    refuted = sum(
        mean_exceeds(z, rng.multinomial(2_000, chance).astype(float), mean, 0.1) for _ in range(500)
    )
    assert refuted <= 71
    assert mean_exceeds(z, 2_000 * chance, 0.7 * mean, 0.1) == (mean > 1e-3)


def test_many_coordinates_are_tested_on_some_draws_and_their_losses_counted_on_all():
    rng = np.random.default_rng(3)
    rows = LAPLACE.rows(rng, 8_192, width=64)
    certificate, _ = LAPLACE.certify(1, 8_192, alpha=0.1, width=64, delta=1e-2)
    tally, _ = certificate.tally(rows)
    assert tally.residuals.values == 2**16
    assert tally.losses.sum() == 8_192
    losses = privacy_losses(certificate.frame, certificate.frame.residuals(rows[0], 0), 0, certificate.scale)
    assert tally.losses[1:].sum() == np.count_nonzero(losses * (CELLS / certificate.top) >= 1.0)


def test_four_hundred_coordinates_reach_their_pure_epsilon():
    """400 coordinates of scale 2, each shifted by 1: ε = 200, of which counting sees next to nothing."""
    _, bound = LAPLACE.certify(1, 16_384, alpha=1e-3, width=400, delta=0.0)
    assert bound.refusals == ()
    assert 195.0 < bound.epsilon_lower < 200.0
