"""The shape test: exact tallies, level under the declared law, power against the laws it must refuse.

Sample sizes of the level and power tests are the ones an audit uses, 400 000 values per side at level 0.001,
unless the test says otherwise.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable

import numpy as np
import pytest
from numpy.random import Generator
from scipy import stats

from pytest_snapaudit.engine.goodness_of_fit import (
    GaussianReference,
    LaplaceReference,
    ShapeReference,
    ShapeTally,
    equal_scale_test,
    shape_test,
)
from pytest_snapaudit.engine.shape_families import cell_edges

PER_SIDE = 400_000
LEVEL = 0.001
Law = Callable[[Generator, int], np.ndarray]


def gaussian(rng: Generator, n: int) -> np.ndarray:
    return rng.standard_normal(n)


def laplace(rng: Generator, n: int) -> np.ndarray:
    return rng.laplace(size=n)


def box_muller(rng: Generator, n: int) -> np.ndarray:
    radius, angle = np.sqrt(-2 * np.log1p(-rng.random(n // 2))), 2 * np.pi * rng.random(n // 2)
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])


def inverse_laplace(rng: Generator, n: int) -> np.ndarray:
    u = rng.random(n) - 0.5
    return -np.sign(u) * np.log1p(-2 * np.abs(u))


def as_dtype(law: Law, dtype: type) -> Law:
    return lambda rng, n: law(rng, n).astype(dtype)


def rounded(law: Law, step: float) -> Law:
    return lambda rng, n: np.round(law(rng, n) / step) * step


def truncated(law: Law, bound: float) -> Law:
    def draw(rng: Generator, n: int) -> np.ndarray:
        x = law(rng, n + n // 20)
        return x[np.abs(x) <= bound][:n]

    return draw


def contaminated(law: Law, share: float, factor: float) -> Law:
    return lambda rng, n: law(rng, n) * np.where(rng.random(n) < share, factor, 1.0)


def tallies(law: Law, family: type[ShapeReference], seed: int, n: int = PER_SIDE) -> list[ShapeTally]:
    """Two sides of different location and scale, each with a reference fitted to 5 000 earlier draws."""
    rng = np.random.default_rng([seed, n])
    sides = []
    for location, scale in ((0.0, 1.0), (-7.0, 2.5)):
        earlier, values = (law(rng, size).astype(float) * scale + location for size in (5_000, n))
        sides.append(ShapeTally.from_values(values, family.fitted(earlier)))
    return sides


def most_rejections(n_tests: int, level: float) -> int:
    """The 99.9 % point of the number of rejections that a test of this level makes by chance."""
    return int(stats.binom.ppf(0.999, n_tests, level))


class TestReference:
    def test_fitted_references(self) -> None:
        earlier = [1.0, 2.0, 3.0, 10.0]
        assert GaussianReference.fitted(earlier) == GaussianReference(4.0, math.sqrt(12.5))
        assert LaplaceReference.fitted(earlier) == LaplaceReference(2.5, 2.5)

    @pytest.mark.parametrize("family", [GaussianReference, LaplaceReference])
    @pytest.mark.parametrize(
        ("location", "scale", "message"),
        [
            (math.nan, 1.0, "location must be a finite number, got nan"),
            (0.0, 0.0, "scale must be a finite number above 0, got 0.0"),
            (0.0, math.inf, "scale must be a finite number above 0, got inf"),
        ],
    )
    def test_bad_references_are_refused(self, family, location: float, scale: float, message: str) -> None:
        with pytest.raises(ValueError, match=f"{family.__name__}: {message}"):
            family(location, scale)

    @pytest.mark.parametrize(
        ("family", "law"), [(GaussianReference, stats.norm), (LaplaceReference, stats.laplace)]
    )
    def test_a_hundred_equiprobable_cells_and_their_tails(self, family, law) -> None:
        edges = cell_edges(family)
        assert len(edges) == 99 + 2 * len(family.tail_thresholds)
        n_tails = len(family.tail_thresholds)
        assert law.cdf(edges[n_tails:-n_tails]) == pytest.approx(np.arange(1, 100) / 100, abs=1e-12)
        assert tuple(edges[-n_tails:]) == family.tail_thresholds
        assert np.array_equal(edges, -edges[::-1])
        assert family.tail(edges) == pytest.approx(law.sf(edges), rel=1e-12)


class TestTally:
    @pytest.mark.parametrize("family", [GaussianReference, LaplaceReference])
    def test_holds_the_moments_and_counts_of_its_values(self, family) -> None:
        x = np.random.default_rng(1).normal(5.0, 2.0, 50_000)
        tally = ShapeTally.from_values(x, family(4.9, 2.1))
        u = (x - 4.9) / 2.1
        deviation = u - u.mean()
        assert (tally.n, tally.not_finite, tally.low, tally.high) == (50_000, 0, u.min(), u.max())
        assert tally.mean == pytest.approx(u.mean(), rel=1e-12)
        assert tally.m2 == pytest.approx((deviation**2).sum(), rel=1e-12)
        assert tally.m3 == pytest.approx((deviation**3).sum(), rel=1e-9)
        assert tally.m4 == pytest.approx((deviation**4).sum(), rel=1e-12)
        expected = np.bincount(
            np.searchsorted(cell_edges(family), u, side="right"), minlength=len(tally.cells)
        )
        assert np.array_equal(tally.cells, expected)
        assert tally.sample_mean == pytest.approx(x.mean(), rel=1e-12)
        assert tally.sample_variance == pytest.approx(x.var(ddof=1), rel=1e-12)
        assert tally.sum_of_squares == pytest.approx(((x - x.mean()) ** 2).sum(), rel=1e-12)

    def test_family_sums_of_laplace(self) -> None:
        x = np.random.default_rng(2).laplace(1.0, 3.0, 20_000)
        tally = ShapeTally.from_values(x, LaplaceReference(1.0, 3.0))
        size = np.abs(x - 1.0) / 3.0
        assert tally.sums == pytest.approx([size.sum(), np.exp(size / 4).sum()], rel=1e-12)

    @pytest.mark.parametrize("family", [GaussianReference, LaplaceReference])
    def test_any_partition_and_order_merges_to_the_same_tally(self, family) -> None:
        rng = np.random.default_rng(3)
        x, reference = rng.gumbel(size=30_000), family(0.5, 1.2)
        whole = ShapeTally.from_values(x, reference)
        parts = [ShapeTally.from_values(part, reference) for part in np.split(x, [1, 5, 5, 9_000, 29_000])]
        backwards = parts[5] + (parts[4] + parts[3]) + (parts[2] + (parts[1] + parts[0]))
        for name in ("n", "mean", "m2", "m3", "m4", "low", "high"):
            assert getattr(backwards, name) == pytest.approx(getattr(whole, name), rel=1e-11)
        assert np.array_equal(backwards.cells, whole.cells)
        assert backwards.sums == pytest.approx(whole.sums, rel=1e-12)

    def test_moments_survive_a_large_offset(self) -> None:
        x = 1e9 + np.random.default_rng(4).standard_normal(100_000)
        tally = ShapeTally.from_values(x, GaussianReference(1e9, 1.0))
        assert tally.sample_variance == pytest.approx(np.var(x - 1e9, ddof=1), rel=1e-9)

    def test_size_does_not_grow_with_the_values(self) -> None:
        reference = LaplaceReference(0.0, 1.0)
        small, large = (ShapeTally.from_values(np.zeros(n), reference) for n in (10, 100_000))
        assert len(pickle.dumps(large)) <= len(pickle.dumps(small)) + 64

    def test_values_of_any_shape_and_dtype(self) -> None:
        x = np.random.default_rng(5).integers(-3, 4, (40, 50))
        reference = GaussianReference(0.0, 1.0)
        for values in (x, x.astype(np.float16), x.tolist(), np.asfortranarray(x)):
            assert ShapeTally.from_values(values, reference).m4 == pytest.approx(
                ShapeTally.from_values(x.reshape(-1), reference).m4
            )

    def test_values_that_are_not_finite_are_counted_apart(self) -> None:
        reference = GaussianReference(0.0, 1.0)
        tally = ShapeTally.from_values([1.0, math.nan, math.inf, 2.0], reference)
        assert (tally.n, tally.not_finite, tally.high) == (2, 2, 2.0)
        only_nan = ShapeTally.from_values([math.nan], reference)
        assert ((only_nan + tally).n, (tally + only_nan).not_finite) == (2, 3)

    def test_of_nothing(self) -> None:
        empty = ShapeTally.empty(GaussianReference(0.0, 1.0))
        assert (empty.n, empty.cells.sum()) == (0, 0)
        assert math.isnan(empty.sample_variance)

    def test_different_references_do_not_merge(self) -> None:
        tally = ShapeTally.empty(GaussianReference(0.0, 1.0))
        for other in (GaussianReference(0.1, 1.0), LaplaceReference(0.0, 1.0)):
            with pytest.raises(ValueError, match="tallies merge only with equal references, got"):
                tally.merge(ShapeTally.empty(other))


class TestSubTests:
    def test_skewness_and_kurtosis_follow_the_published_transformations(self) -> None:
        x = np.random.default_rng(6).standard_normal(5_000)
        tally = ShapeTally.from_values(x, GaussianReference(0.2, 1.1))
        location, scale = tally.reference.fit(tally)
        skewness, kurtosis = tally.reference.moment_tests(tally, location, scale)
        assert skewness.p_value == pytest.approx(stats.skewtest(x).pvalue, rel=1e-9)
        assert kurtosis.p_value == pytest.approx(stats.kurtosistest(x).pvalue, rel=1e-9)

    def test_the_laplace_fit_undoes_an_offset_reference(self) -> None:
        x = np.random.default_rng(7).laplace(2.0, 3.0, 200_000)
        tally = ShapeTally.from_values(x, LaplaceReference(1.0, 3.0))
        location, scale = tally.reference.fit(tally)
        assert 1.0 + 3.0 * location == pytest.approx(np.median(x), abs=2e-3)
        assert 3.0 * scale == pytest.approx(np.abs(x - np.median(x)).mean(), rel=2e-3)

    def test_one_wild_value_is_enough(self) -> None:
        x = np.random.default_rng(8).standard_normal(20_000)
        reference = GaussianReference(0.0, 1.0)
        assert shape_test(ShapeTally.from_values(x, reference), LEVEL).passed
        x[17] = 7.0
        outcome = shape_test(ShapeTally.from_values(x, reference), LEVEL)
        assert not outcome.passed
        assert outcome.reason.startswith("largest deviation of a Gaussian law, p = ")


GAUSSIANS = {
    "float64": gaussian,
    "float32": as_dtype(gaussian, np.float32),
    "float16": as_dtype(gaussian, np.float16),
    "Box-Muller": box_muller,
}
NOT_GAUSSIANS = {
    "Student 5": lambda rng, n: rng.standard_t(5, n),
    "Student 30": lambda rng, n: rng.standard_t(30, n),
    "Student 100": lambda rng, n: rng.standard_t(100, n),
    "sum of 12 uniforms": lambda rng, n: sum(rng.random(n) for _ in range(12)) - 6.0,
    "rounded to sigma/100": rounded(gaussian, 0.01),
    "truncated at 3 sigma": truncated(gaussian, 3.0),
    "truncated at 4 sigma": truncated(gaussian, 4.0),
    "0.1 % at three times the scale": contaminated(gaussian, 0.001, 3.0),
    "Laplace": laplace,
}
LAPLACES = {
    "float64": laplace,
    "float32": as_dtype(laplace, np.float32),
    "float16": as_dtype(laplace, np.float16),
    "inverse transform": inverse_laplace,
}
NOT_LAPLACES = {
    "rounded to b/50": rounded(laplace, 0.02),
    "truncated at 5 b": truncated(laplace, 5.0),
    "truncated at 8 b": truncated(laplace, 8.0),
    "0.2 % at three times the scale": contaminated(laplace, 0.002, 3.0),
    "0.1 % at five times the scale": contaminated(laplace, 0.001, 5.0),
    "two-sided geometric": lambda rng, n: (rng.geometric(0.05, n) - rng.geometric(0.05, n)) * 0.05,
    "other scales to left and right": lambda rng, n: rng.exponential(size=n) * rng.choice([-1.0, 1.04], n),
    "logistic": lambda rng, n: rng.logistic(size=n),
    "Gaussian": gaussian,
}


class TestFullSize:
    """A level-0.001 test rejects more than once in 20 seeds with probability below 0.001 (binomial)."""

    @pytest.mark.parametrize("law", GAUSSIANS.values(), ids=GAUSSIANS)
    def test_gaussian_draws_pass(self, law: Law) -> None:
        rejected = sum(
            not shape_test(tallies(law, GaussianReference, seed), LEVEL).passed for seed in range(20)
        )
        assert rejected <= most_rejections(20, LEVEL)

    @pytest.mark.parametrize("law", LAPLACES.values(), ids=LAPLACES)
    def test_laplace_draws_pass(self, law: Law) -> None:
        rejected = sum(
            not shape_test(tallies(law, LaplaceReference, seed), LEVEL).passed for seed in range(10)
        )
        assert rejected <= most_rejections(10, LEVEL)

    @pytest.mark.parametrize("law", NOT_GAUSSIANS.values(), ids=NOT_GAUSSIANS)
    def test_other_laws_are_not_gaussian(self, law: Law) -> None:
        for seed in range(2):
            outcome = shape_test(tallies(law, GaussianReference, seed), LEVEL)
            assert not outcome.passed, outcome

    @pytest.mark.parametrize("law", NOT_LAPLACES.values(), ids=NOT_LAPLACES)
    def test_other_laws_are_not_laplace(self, law: Law) -> None:
        for seed in range(2):
            outcome = shape_test(tallies(law, LaplaceReference, seed), LEVEL)
            assert not outcome.passed, outcome

    def test_a_slight_laplace_contamination_is_usually_seen(self) -> None:
        """0.1 % at three times the scale: near the limit of what 400 000 draws can show, power about 0.95."""
        law = contaminated(laplace, 0.001, 3.0)
        rejected = sum(
            not shape_test(tallies(law, LaplaceReference, seed), LEVEL).passed for seed in range(10)
        )
        assert rejected >= 7


class TestLevel:
    """Many small samples under the declared law; rejections at most the 99.9 % point of the binomial."""

    @pytest.mark.parametrize(
        ("law", "family"),
        [(gaussian, GaussianReference), (laplace, LaplaceReference)],
        ids=["Gaussian", "Laplace"],
    )
    @pytest.mark.parametrize("n", [500, 4_000])
    def test_rejections_under_the_declared_law(self, law: Law, family, n: int) -> None:
        repeats = 300
        p_values = np.array(
            [shape_test(tallies(law, family, seed, n), 0.5).p_value for seed in range(repeats)]
        )
        for level in (0.001, 0.01, 0.05):
            assert (p_values <= level).sum() <= most_rejections(repeats, level)

    @pytest.mark.parametrize(
        ("law", "family"),
        [(gaussian, GaussianReference), (laplace, LaplaceReference)],
        ids=["Gaussian", "Laplace"],
    )
    def test_equal_scales(self, law: Law, family) -> None:
        repeats, rng = 500, np.random.default_rng(9)
        p_values = []
        for _ in range(repeats):
            a, b = (ShapeTally.from_values(law(rng, 500), family(0.02, 1.03)) for _ in range(2))
            p_values.append(equal_scale_test(a, b, 0.5).p_value)
        for level in (0.001, 0.01, 0.05):
            assert (np.array(p_values) <= level).sum() <= most_rejections(repeats, level)
        assert stats.kstest(p_values, "uniform").pvalue > 1e-4


class TestEqualScale:
    @pytest.mark.parametrize(
        ("law", "family"),
        [(gaussian, GaussianReference), (laplace, LaplaceReference)],
        ids=["Gaussian", "Laplace"],
    )
    def test_a_percent_is_seen_in_400_000_draws(self, law: Law, family) -> None:
        rng = np.random.default_rng(10)
        a = ShapeTally.from_values(law(rng, PER_SIDE), family(0.0, 1.0))
        b = ShapeTally.from_values(4.0 + 1.01 * law(rng, PER_SIDE), family(4.01, 1.02))
        outcome = equal_scale_test(a, b, LEVEL)
        assert not outcome.passed
        assert outcome.p_value == pytest.approx(equal_scale_test(b, a, LEVEL).p_value, rel=1e-9)
        assert outcome.reason.startswith("ratio of the sides' ")

    def test_is_the_f_test(self) -> None:
        rng = np.random.default_rng(11)
        x, y = rng.normal(0, 1, 300), rng.normal(5, 1.1, 400)
        outcome = equal_scale_test(
            ShapeTally.from_values(x, GaussianReference(0.0, 1.0)),
            ShapeTally.from_values(y, GaussianReference(5.0, 1.0)),
            0.05,
        )
        ratio = x.var(ddof=1) / y.var(ddof=1)
        expected = 2 * min(stats.f.cdf(ratio, 299, 399), stats.f.sf(ratio, 299, 399))
        assert outcome.p_value == pytest.approx(expected, rel=1e-9)


class TestValuesThatCannotBeTested:
    GOOD = ShapeTally.from_values(
        np.random.default_rng(12).standard_normal(1_000), GaussianReference(0.0, 1.0)
    )

    @pytest.mark.parametrize(
        ("values", "reason"),
        [
            (np.ones(199), "199 values are too few to test a shape, at least 200 are needed"),
            (np.zeros(1_000), "the values have no spread"),
            (np.append(np.zeros(1_000), math.nan), "1 values are not finite"),
            (np.append(np.zeros(1_000), 1e200), "the values are too extreme"),
        ],
    )
    def test_they_fail_with_the_reason(self, values: np.ndarray, reason: str) -> None:
        bad = ShapeTally.from_values(values, GaussianReference(0.0, 1.0))
        for outcome in (shape_test([self.GOOD, bad], LEVEL), equal_scale_test(self.GOOD, bad, LEVEL)):
            assert (outcome.passed, outcome.p_value, outcome.reason) == (False, 0.0, f"side 1: {reason}")
        assert shape_test(bad, LEVEL).reason == reason

    @pytest.mark.parametrize("family", [GaussianReference, LaplaceReference])
    @pytest.mark.parametrize("reference", [(1e3, 1.0), (0.0, 1e-3), (0.0, 1e3), (-1e3, 1e-2)])
    def test_a_reference_far_off_gives_an_answer(self, family, reference: tuple[float, float]) -> None:
        law = gaussian if family is GaussianReference else laplace
        x = law(np.random.default_rng(13), 5_000)
        outcome = shape_test(ShapeTally.from_values(x, family(*reference)), LEVEL)
        assert 0.0 <= outcome.p_value <= 1.0

    @pytest.mark.parametrize("alpha", [0.0, 1.0, math.nan])
    def test_bad_levels(self, alpha: float) -> None:
        for call in (
            lambda: shape_test(self.GOOD, alpha),
            lambda: equal_scale_test(self.GOOD, self.GOOD, alpha),
        ):
            with pytest.raises(ValueError, match="alpha must lie strictly between 0 and 1, got"):
                call()

    def test_no_tallies(self) -> None:
        with pytest.raises(ValueError, match="shape_test needs at least one tally, got none"):
            shape_test([], LEVEL)

    def test_mixed_families(self) -> None:
        other = ShapeTally.empty(LaplaceReference(0.0, 1.0))
        for call in (
            lambda: shape_test([self.GOOD, other], LEVEL),
            lambda: equal_scale_test(self.GOOD, other, LEVEL),
        ):
            with pytest.raises(ValueError, match="one family, got Gaussian and Laplace"):
                call()
