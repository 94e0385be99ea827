"""Bounds against closed forms, against their defining equations, and at their edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_snapaudit.engine.bounds import (
    clopper_pearson_lower,
    clopper_pearson_upper,
    empirical_bernstein_radius,
    hoeffding_radius,
    pair_rate_bounds,
    rowwise_betting_lower,
    rowwise_betting_upper,
    snapshot_radius,
)

ROWS = 2_000


class TestClopperPearson:
    @pytest.mark.parametrize("n", [1, 7, 400_000, 10**9])
    @pytest.mark.parametrize("alpha", [0.4, 0.001, 1e-9])
    def test_closed_forms_at_both_ends(self, n: int, alpha: float) -> None:
        assert clopper_pearson_lower(0, n, alpha) == 0.0
        assert clopper_pearson_upper(n, n, alpha) == 1.0
        assert clopper_pearson_lower(n, n, alpha) == pytest.approx(alpha ** (1 / n), rel=1e-12)
        assert clopper_pearson_upper(0, n, alpha) == pytest.approx(
            -math.expm1(math.log(alpha) / n), rel=1e-10
        )

    @pytest.mark.parametrize(
        ("k", "n"), [(1, 10), (9, 10), (3, 400_000), (200_123, 400_000), (399_900, 400_000)]
    )
    @pytest.mark.parametrize("alpha", [0.05, 5e-4, 1e-8])
    def test_the_bound_puts_exactly_alpha_beyond_the_count(self, k: int, n: int, alpha: float) -> None:
        lower, upper = clopper_pearson_lower(k, n, alpha), clopper_pearson_upper(k, n, alpha)
        assert stats.binom.sf(k - 1, n, lower) == pytest.approx(alpha, rel=1e-6)
        assert stats.binom.cdf(k, n, upper) == pytest.approx(alpha, rel=1e-6)
        assert lower < k / n < upper

    def test_arguments_broadcast(self) -> None:
        k, alpha = np.arange(5)[:, None], np.array([0.1, 0.01])
        lower = clopper_pearson_lower(k, 10, alpha)
        assert lower.shape == (5, 2)
        assert lower[3, 1] == clopper_pearson_lower(3, 10, 0.01)

    def test_fractional_counts_lie_between_whole_ones(self) -> None:
        for bound in (clopper_pearson_lower, clopper_pearson_upper):
            values = bound([2.0, 2.5, 3.0], 100, 0.01)
            assert values[0] < values[1] < values[2]

    @given(st.integers(1, 10_000), st.data(), st.floats(1e-6, 0.5))
    def test_lower_and_upper_are_mirror_images(self, n: int, data: st.DataObject, alpha: float) -> None:
        k = data.draw(st.integers(0, n))
        mirrored = 1.0 - clopper_pearson_lower(n - k, n, alpha)
        assert clopper_pearson_upper(k, n, alpha) == pytest.approx(mirrored, rel=1e-9, abs=1e-12)

    def test_the_pair_is_the_two_single_bounds(self) -> None:
        p_lower, q_upper = pair_rate_bounds([90, 95], [3, 5], 100, 0.01, 0.02)
        assert np.array_equal(p_lower, clopper_pearson_lower([90, 95], 100, 0.01))
        assert np.array_equal(q_upper, clopper_pearson_upper([3, 5], 100, 0.02))

    @pytest.mark.parametrize("bound", [clopper_pearson_lower, clopper_pearson_upper])
    @pytest.mark.parametrize(
        ("k", "n"), [(-1, 10), (11, 10), (0, 0), (math.nan, 10), (1, math.inf), ([1, 12], 10)]
    )
    def test_impossible_counts_are_refused(self, bound, k, n) -> None:
        with pytest.raises(ValueError, match=r"event counts need 0 <= k <= n and n > 0, got k="):
            bound(k, n, 0.05)

    @pytest.mark.parametrize("bound", [clopper_pearson_lower, clopper_pearson_upper])
    @pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, math.nan, [0.1, 1.5]])
    def test_impossible_error_probabilities_are_refused(self, bound, alpha) -> None:
        with pytest.raises(ValueError, match="alpha must lie strictly between 0 and 1, got"):
            bound(1, 10, alpha)


class TestRadii:
    def test_hoeffding(self) -> None:
        assert hoeffding_radius(200, math.exp(-4)) == pytest.approx(0.1)

    def test_empirical_bernstein(self) -> None:
        # L = ln(2/alpha) = 3: sqrt(2 · 0.24 · 3 / 100) + 7 · 3 / (3 · 99)
        assert empirical_bernstein_radius(0.24, 100, 2 * math.exp(-3)) == pytest.approx(0.12 + 7 / 99)

    @pytest.mark.parametrize(
        ("variance", "n_trials", "expected"),
        [(0.0, 400_000, 0.0084), (0.001, 400_000, 0.0107), (0.0, 10**6, 0.0075)],
    )
    def test_worked_values_of_algorithm_1(self, variance: float, n_trials: int, expected: float) -> None:
        assert snapshot_radius(variance, ROWS, n_trials, 0.05) == pytest.approx(expected, abs=5e-5)

    def test_algorithm_1_as_printed(self) -> None:
        log_term = math.log(8 / 0.05)
        printed = (
            math.sqrt(2 * 0.02 * log_term / 50) + 7 * log_term / (3 * 49) + math.sqrt(log_term / (2 * 1000))
        )
        assert snapshot_radius(0.02, 50, 1000, 0.05) == pytest.approx(printed, rel=1e-12)

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda: hoeffding_radius(0, 0.1), "n must be a finite number of at least 1, got 0"),
            (lambda: hoeffding_radius(math.inf, 0.1), "n must be a finite number of at least 1, got inf"),
            (lambda: hoeffding_radius(10, 0.0), "alpha must lie strictly between 0 and 1, got 0.0"),
            (
                lambda: empirical_bernstein_radius(-1, 10, 0.1),
                "variance must be a finite number of at least 0, got -1",
            ),
            (
                lambda: empirical_bernstein_radius(0.1, 1, 0.1),
                "n must be a finite number of at least 2, got 1",
            ),
            (
                lambda: snapshot_radius(0.1, 1, 9, 0.1),
                "n_snapshots must be a finite number of at least 2, got 1",
            ),
            (
                lambda: snapshot_radius(math.nan, 5, 9, 0.1),
                "variance must be a finite number of at least 0, got nan",
            ),
        ],
    )
    def test_bad_arguments_are_named(self, call, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            call()


def betting_wealth(z: np.ndarray, t: float, alpha: float, variance: float) -> float:
    """The left side of the rejection rule, factor by factor as it is written down."""
    scale = math.sqrt(2 * math.log(1 / alpha) / (len(z) * variance)) if variance > 0 else math.inf
    bets = [min(c * scale, 0.95 / t) for c in (0.5, 1.0, 2.0)] + [0.999 / t]
    return sum(
        w * math.prod(1 + bet * (v - t) for v in z) for w, bet in zip((0.2, 0.5, 0.2, 0.1), bets, strict=True)
    )


class TestRowwiseBetting:
    @pytest.mark.parametrize("variance", [0.0, 0.002, 0.25])
    @pytest.mark.parametrize("law", ["beta", "binary", "rare"])
    def test_the_bound_is_where_the_wealth_reaches_one_over_alpha(self, law: str, variance: float) -> None:
        rng = np.random.default_rng(11)
        z = {
            "beta": lambda: rng.beta(2, 5, 60),
            "binary": lambda: (rng.random(60) < 0.3).astype(float),
            "rare": lambda: np.where(rng.random(60) < 0.1, 0.02, 0.0),
        }[law]()
        lower = rowwise_betting_lower(z, 0.01, variance)
        upper = rowwise_betting_upper(z, 0.01, variance)
        assert 0.0 < lower < z.mean() < upper < 1.0
        for values, bound in ((z, lower), (1 - z, 1 - upper)):
            assert betting_wealth(values, bound * (1 - 1e-7), 0.01, variance) >= 100
            assert betting_wealth(values, bound * (1 + 1e-7), 0.01, variance) < 100

    @pytest.mark.parametrize("variance", [0.0, 1e-4, 5e-4])
    def test_radius_of_an_event_that_never_happens(self, variance: float) -> None:
        never = np.zeros(ROWS)
        assert rowwise_betting_lower(never, 0.01, variance) == 0.0
        assert rowwise_betting_upper(never, 0.01, variance) == pytest.approx(0.0024, abs=5e-5)
        assert rowwise_betting_upper(never, 0.025, variance) == pytest.approx(0.0019, abs=5e-5)

    def test_an_event_that_always_happens(self) -> None:
        always = np.ones(ROWS)
        assert rowwise_betting_upper(always, 0.01, 0.0) == 1.0
        assert rowwise_betting_lower(always, 0.01, 0.0) == pytest.approx(1 - 0.0024, abs=5e-5)

    def test_weights_are_multiplicities(self) -> None:
        z, weights = np.array([0.0, 0.25, 0.25, 0.7]), np.array([30, 4, 6, 10])
        for bound in (rowwise_betting_lower, rowwise_betting_upper):
            weighted = bound(z, 0.01, 0.05, weights)
            assert weighted == pytest.approx(bound(np.repeat(z, weights), 0.01, 0.05), rel=1e-12)
            assert weighted == pytest.approx(bound(z[::-1], 0.01, 0.05, weights[::-1]), rel=1e-12)

    def test_rows_of_weight_zero_do_not_count(self) -> None:
        with_absent = rowwise_betting_lower([0.2, 0.9], 0.01, 0.05, [50, 0])
        assert with_absent == rowwise_betting_lower([0.2], 0.01, 0.05, [50])

    @given(
        st.lists(st.sampled_from([0.0, 1e-300, 1e-9, 0.1, 0.5, 1 - 1e-12, 1.0]), min_size=1, max_size=30),
        st.sampled_from([0.3, 0.01, 1e-8]),
        st.sampled_from([0.0, 1e-12, 0.01, 0.25, 100.0]),
    )
    def test_the_interval_holds_the_mean_and_tightens_with_alpha(
        self, z, alpha: float, variance: float
    ) -> None:
        lower, upper = rowwise_betting_lower(z, alpha, variance), rowwise_betting_upper(z, alpha, variance)
        assert 0.0 <= lower <= np.mean(z) + 1e-12
        assert np.mean(z) - 1e-12 <= upper <= 1.0
        assert rowwise_betting_lower(z, alpha / 10, variance) <= lower

    def test_hundreds_of_thousands_of_distinct_rows(self) -> None:
        z = np.random.default_rng(3).random(400_000)
        lower = rowwise_betting_lower(z, 0.01, 1 / 12)
        gaussian = z.mean() - math.sqrt(2 * math.log(100) / 12 / len(z))
        assert lower == pytest.approx(gaussian, abs=3e-4)

    @pytest.mark.parametrize("bound", [rowwise_betting_lower, rowwise_betting_upper])
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (([], 0.1, 0.1), r"z must be a one-dimensional array of at least one value, got shape \(0,\)"),
            (([[0.1]], 0.1, 0.1), r"z must be a one-dimensional array .* got shape \(1, 1\)"),
            (([0.2, 1.5], 0.1, 0.1), r"z must lie in \[0, 1\], got values from .*0.2.* to .*1.5"),
            (([0.2, math.nan], 0.1, 0.1), r"z must lie in \[0, 1\]"),
            (([0.2], 1.0, 0.1), "alpha must lie strictly between 0 and 1"),
            (([0.2], 0.1, -0.1), "tuning_variance must be a finite number of at least 0, got -0.1"),
            (([0.2], 0.1, math.nan), "tuning_variance must be a finite number of at least 0, got nan"),
            (([0.2], 0.1, 0.1, [1, 2]), r"weights must have the shape of z, \(1,\), got \(2,\)"),
            (([0.2, 0.3], 0.1, 0.1, [3, -1]), "weights must be at least 0 and not all 0"),
            (([0.2], 0.1, 0.1, [0]), "weights must be at least 0 and not all 0, got a sum of 0.0"),
        ],
    )
    def test_bad_arguments_are_named(self, bound, arguments, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            bound(*arguments)
