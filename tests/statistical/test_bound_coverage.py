"""Do the bounds hold as often as they say, and are they worth having?

Coverage: the number of misses in repeated experiments stays at or below the 99.9 % point of the binomial with
the allowed miss probability (for Clopper–Pearson the miss probability is computed exactly). Power: how wide
the bounds are, against each other and against fixed figures.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.random import Generator
from scipy import stats

from pytest_snapaudit.engine.bounds import (
    clopper_pearson_lower,
    clopper_pearson_upper,
    empirical_bernstein_radius,
    hoeffding_radius,
    rowwise_betting_lower,
    rowwise_betting_upper,
    snapshot_radius,
)

ALPHA = 0.025
DRAWS_PER_ROW = 200
TUNING_ROWS = 100

# The probability h of the event given one row, for eight kinds of clean stages, with the mean of h.
Law = tuple[Callable[[Generator, tuple[int, ...]], np.ndarray], float]
LAWS: dict[str, Law] = {
    "the same rare event on every row": (lambda rng, size: np.full(size, 0.001), 0.001),
    "the same common event on every row": (lambda rng, size: np.full(size, 0.3), 0.3),
    "rows decide: 5 % always": (lambda rng, size: (rng.random(size) < 0.05).astype(float), 0.05),
    "rows decide: 0.3 % always": (lambda rng, size: (rng.random(size) < 0.003).astype(float), 0.003),
    "10 % of rows, rarely": (lambda rng, size: 0.02 * (rng.random(size) < 0.1), 0.002),
    "mostly extreme rows": (lambda rng, size: rng.beta(0.5, 0.5, size), 0.5),
    "skewed rows": (lambda rng, size: rng.beta(1.0, 49.0, size), 0.02),
    "nearly always": (lambda rng, size: 1.0 - rng.beta(0.1, 9.9, size), 0.99),
}
EVERY_LAW = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
BOTH_SIZES = pytest.mark.parametrize("rows", [200, 2_000])


def event_shares(law: Law, rows: int, rng: Generator, repeats: int = 1) -> np.ndarray:
    """(repeats, rows) shares Z = k/m of the noise draws of each row in which the event happened."""
    return rng.binomial(DRAWS_PER_ROW, law[0](rng, (repeats, rows))) / DRAWS_PER_ROW


def tuned_variance(law: Law, rng: Generator) -> float:
    """From rows of their own, never below what that many rows could have overlooked."""
    return max(float(event_shares(law, TUNING_ROWS, rng).var()), 0.25 / TUNING_ROWS)


def most_misses(repeats: int, alpha: float) -> int:
    return int(stats.binom.ppf(0.999, repeats, alpha))


class TestRowwiseBetting:
    @EVERY_LAW
    @BOTH_SIZES
    def test_coverage(self, law: Law, rows: int) -> None:
        rng, repeats, theta = np.random.default_rng([rows, 1]), 250, law[1]
        above = below = 0
        for z in event_shares(law, rows, rng, repeats):
            variance = tuned_variance(law, rng)
            above += rowwise_betting_lower(z, ALPHA, variance) > theta
            below += rowwise_betting_upper(z, ALPHA, variance) < theta
        assert above <= most_misses(repeats, ALPHA)
        assert below <= most_misses(repeats, ALPHA)

    @EVERY_LAW
    def test_narrower_than_empirical_bernstein(self, law: Law) -> None:
        rng, rows = np.random.default_rng(2), 2_000
        betting, bernstein = [], []
        for z in event_shares(law, rows, rng, 10):
            variance = tuned_variance(law, rng)
            betting.append(
                rowwise_betting_upper(z, ALPHA, variance) - rowwise_betting_lower(z, ALPHA, variance)
            )
            radius = empirical_bernstein_radius(float(z.var(ddof=1)), rows, ALPHA)
            bernstein.append(min(1.0, z.mean() + radius) - max(0.0, z.mean() - radius))
        assert np.mean(betting) < 0.9 * np.mean(bernstein)

    def test_close_to_the_gaussian_limit_at_the_variance_it_was_tuned_for(self) -> None:
        z = event_shares(LAWS["mostly extreme rows"], 2_000, np.random.default_rng(3))[0]
        limit = math.sqrt(2 * math.log(1 / ALPHA) * z.var() / len(z))
        assert z.mean() - rowwise_betting_lower(z, ALPHA, float(z.var())) < 1.15 * limit

    def test_counting_pooled_trials_instead_would_miss_often(self) -> None:
        """The mistake that this bound avoids: 2 000 × 200 trials of 2 000 rows are not 400 000 trials."""
        law = LAWS["rows decide: 5 % always"]
        z = event_shares(law, 2_000, np.random.default_rng(4), 400)
        trials = z.shape[1] * DRAWS_PER_ROW
        lower = clopper_pearson_lower(np.rint(z.sum(axis=1) * DRAWS_PER_ROW), trials, ALPHA)
        assert (lower > law[1]).mean() > 0.3


class TestClopperPearson:
    @pytest.mark.parametrize("n", [5, 60, 3_000])
    @pytest.mark.parametrize("alpha", [0.2, 0.025, 1e-4])
    def test_exact_miss_probability(self, n: int, alpha: float) -> None:
        k = np.arange(n + 1)
        lower, upper = clopper_pearson_lower(k, n, alpha), clopper_pearson_upper(k, n, alpha)
        for rate in np.concatenate([[1e-6, 1 - 1e-6], np.linspace(0.001, 0.999, 150)]):
            chance = stats.binom.pmf(k, n, rate)
            assert chance[lower > rate].sum() <= alpha * (1 + 1e-9)
            assert chance[upper < rate].sum() <= alpha * (1 + 1e-9)

    @pytest.mark.parametrize("n", [60, 3_000])
    def test_the_miss_probability_is_attained(self, n: int) -> None:
        """Just below a bound's value the miss probability is alpha itself: no valid bound is tighter there."""
        k = np.arange(n + 1)
        lower = clopper_pearson_lower(k, n, ALPHA)
        for rate in lower[[1, n // 3, n]] * (1 - 1e-9):
            assert stats.binom.pmf(k, n, rate)[lower > rate].sum() == pytest.approx(ALPHA, rel=1e-4)

    def test_never_wider_than_hoeffding_and_far_narrower_for_rare_events(self) -> None:
        n = 3_000
        k = np.arange(n + 1)
        radius = hoeffding_radius(n, ALPHA)
        assert np.all(clopper_pearson_lower(k, n, ALPHA) >= k / n - radius)
        assert np.all(clopper_pearson_upper(k, n, ALPHA) <= k / n + radius)
        assert clopper_pearson_upper(0, n, ALPHA) < radius / 20


class TestBernstein:
    @EVERY_LAW
    @BOTH_SIZES
    def test_coverage(self, law: Law, rows: int) -> None:
        repeats, theta = 1_000, law[1]
        z = event_shares(law, rows, np.random.default_rng([rows, 5]), repeats)
        radius = np.array([empirical_bernstein_radius(v, rows, ALPHA) for v in z.var(axis=1, ddof=1)])
        assert (z.mean(axis=1) - radius > theta).sum() <= most_misses(repeats, ALPHA)
        assert (z.mean(axis=1) + radius < theta).sum() <= most_misses(repeats, ALPHA)

    @EVERY_LAW
    def test_coverage_of_the_snapshot_correction(self, law: Law) -> None:
        """Algorithm 1: rows shared by all trials, the event's variance over rows, both errors in one radius."""
        repeats, rows, theta = 1_000, 200, law[1]
        rng = np.random.default_rng(6)
        h = law[0](rng, (repeats, rows))
        rate = (rng.binomial(DRAWS_PER_ROW, h) / DRAWS_PER_ROW).mean(axis=1)
        radius = np.array(
            [snapshot_radius(v, rows, rows * DRAWS_PER_ROW, 0.05) for v in h.var(axis=1, ddof=1)]
        )
        assert (np.abs(rate - theta) > radius).sum() <= most_misses(repeats, 0.05)

    def test_narrower_than_hoeffding_where_rows_agree(self) -> None:
        assert empirical_bernstein_radius(1e-4, 2_000, ALPHA) < hoeffding_radius(2_000, ALPHA) / 4

    def test_the_betting_radius_is_a_third_of_algorithm_1_for_an_event_that_never_happens(self) -> None:
        betting = rowwise_betting_upper(np.zeros(2_000), 0.01, 0.0)
        assert betting == pytest.approx(0.0024, abs=5e-5)
        assert snapshot_radius(0.0, 2_000, 10**6, 0.05) == pytest.approx(0.0075, abs=5e-5)
