"""Scores of structure, the columns, pairs and values they are tried on, and sums over counted trials."""

import math

import numpy as np
import pytest

from pytest_snapaudit.engine.attacks.choice import CountedScore, choose_event
from pytest_snapaudit.engine.attacks.moments import ColumnMoments
from pytest_snapaudit.engine.attacks.ranking import (
    related_pairs,
    standard_scores,
    telling_columns,
    telling_values,
)
from pytest_snapaudit.engine.attacks.scores import Coordinate, Reduction
from pytest_snapaudit.engine.attacks.structure import (
    COARSEST,
    FINEST,
    FromMedian,
    Granularity,
    HowOften,
    Ratio,
)
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.outcomes import fit_layout

ROWS = np.array([[1.0, 2.0, 4.0], [3.0, -1.5, 3.0], [0.0, 0.0, np.nan]])
LAYOUT = fit_layout([(ROWS, 3), (ROWS, 3)])


def test_granularity_is_the_largest_power_of_two_that_divides():
    values = np.array([1.0, 2.0, 12.0, -0.5, 0.0625, 0.1, 0.0, 2.0**25, 1e300, np.nan, np.inf])
    column = values[:, None]
    layout = fit_layout([(column, len(column))] * 2)
    score = Granularity(0, layout)
    none = FINEST - 1
    expected = [0, 1, 2, -1, FINEST, none, COARSEST, COARSEST, none, none, none]
    assert score(column).tolist() == expected
    assert score.name == "exponent of the largest power of two that divides output"


def test_noise_has_no_granularity():
    noise = np.random.default_rng(0).laplace(1e6, 1.0, (100_000, 1))
    assert set(Granularity(0, fit_layout([(noise, len(noise))] * 2))(noise)) == {FINEST - 1}


def test_a_ratio_of_coordinates():
    np.testing.assert_allclose(Ratio(1, 0, LAYOUT)(ROWS), [2.0, -0.5, np.nan])
    assert Ratio(1, 0, LAYOUT).name == "coordinate 1 over coordinate 0"


def test_distance_of_a_coordinate_from_the_median_of_the_output():
    assert FromMedian(2, LAYOUT)(ROWS).tolist() == [2.0, 0.0, 0.0]
    assert FromMedian(2, LAYOUT).name == "coordinate 2 minus the median of the output"


def test_how_often_a_value_occurs_anywhere():
    assert HowOften(3.0)(ROWS).tolist() == [0, 2, 0]
    assert HowOften(3.0).describe(">", 0.0) == "number of coordinates equal to 3 above 0"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("number of non-zero coordinates", [3, 3, 0]),
        ("number of positive coordinates", [3, 2, 0]),
        ("number of repeated values", [0, 1, 2]),
    ],
)
def test_counts_of_coordinates(kind, expected):
    assert Reduction(kind)(ROWS).tolist() == expected


def test_standard_scores_are_differences_of_means_in_standard_errors():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(10_000, 2)), rng.normal([0.0, 0.5], 1.0, (10_000, 2))
    scores = standard_scores(a, b)
    assert scores[0] < 4
    assert scores[1] == pytest.approx(0.5 / math.sqrt(2 / 10_000), rel=0.1)


def test_columns_that_differ_in_spread_or_in_zeros_alone_are_found():
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(4_000, 50)), rng.normal(size=(4_000, 50))
    b[:, 30] *= 1.5
    b[:, 40] *= rng.random(4_000) < 0.8
    varying = np.arange(50)
    assert {30, 40} <= set(telling_columns(a, b, varying, 3))
    assert len(telling_columns(a, a, varying, 3)) == 0


def test_pairs_that_move_together_on_one_side_or_on_both_are_found():
    rng = np.random.default_rng(3)
    a, b = rng.standard_cauchy((4_000, 20)), rng.standard_cauchy((4_000, 20))
    b[:, 7] = b[:, 3] + 0.1 * b[:, 7]
    for side in (a, b):
        side[:, 12] = side[:, 11]
    varying = np.arange(20)
    assert set(related_pairs(a, b, varying, 2)) == {(7, 3), (12, 11)}
    assert related_pairs(a[:, :10], a[:, 10:], np.arange(2), 2) == []


def test_values_that_one_side_repeats_are_found():
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(3_000, 10)), rng.normal(size=(3_000, 10))
    assert telling_values(a, b, 3) == []
    b[rng.random(3_000) < 0.02, 5] = 0.25
    assert telling_values(a, b, 3) == [0.25]


def test_moments_add_up_to_those_of_all_trials():
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(600, 20)), rng.normal(size=(600, 20)) + 0.3
    whole = ColumnMoments.of(a, b)
    parts = ColumnMoments.of(a[:100], b[:100]) + ColumnMoments.of(a[100:], b[100:])
    np.testing.assert_allclose(parts.sums, whole.sums)
    np.testing.assert_allclose(parts.squares, whole.squares)
    assert (parts.n, whole.n) == (600, 600)
    projection = whole.discriminant()
    assert projection is not None
    expected = (b.mean(axis=0) - a.mean(axis=0)) / (a.var(axis=0) + b.var(axis=0))
    np.testing.assert_allclose(projection.direction, expected, rtol=1e-6)


@pytest.mark.parametrize("rows", [np.full((10, 3), 1e300), np.full((10, 3), 2.0)])
def test_moments_that_overflow_or_agree_give_no_direction(rows):
    assert ColumnMoments.of(rows, rows).discriminant() is None


def test_a_counted_score_gives_the_threshold_that_few_tuning_trials_cannot():
    """A tail of mass 0.002 against 0: a thousand tuning trials hold two of it, the counted ones hundreds."""
    rng = np.random.default_rng(6)
    few = rng.uniform(size=(1_000, 1)), rng.uniform(size=(1_000, 1))
    counted = rng.uniform(size=100_000), rng.uniform(size=100_000) + 2.0 * (rng.random(100_000) < 0.002)
    layout = fit_layout([(side, len(side)) for side in few])
    options = {"claim": PrivacyClaim(1.0, 1e-4), "n_certify": 100_000, "alpha": 1e-3}
    score = Coordinate(0, layout)
    event = choose_event(*few, layout, counted=CountedScore(score, *counted), **options)
    assert (event.score, event.op, event.likelier_on, event.tuned_on) == (score, ">", 1, 100_000)
    assert 0.999 < event.threshold < 2.2
    assert event.q == 0.0
    assert choose_event(*few, layout, **options).tuned_on == 1_000
