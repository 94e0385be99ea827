"""Every score on small arrays, against values worked out by hand, and every event in words."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pytest_snapaudit.engine.attacks.event import Event, comparable
from pytest_snapaudit.engine.attacks.fitting import (
    CLIPPED_DISCRIMINANT,
    DISCRIMINANT,
    candidate_scores,
    fit_log_ratio,
    refit,
)
from pytest_snapaudit.engine.attacks.scores import (
    HUGE,
    MISSING,
    Coordinate,
    Difference,
    Distance,
    LogRatio,
    LowestSetBit,
    MissingPattern,
    NaiveBayes,
    Projection,
    Reduction,
    RowKey,
    UserScore,
    finite,
)
from pytest_snapaudit.engine.attacks.selection import Goal, approximate_rate_bounds, best_event
from pytest_snapaudit.engine.bounds import pair_rate_bounds
from pytest_snapaudit.engine.leaves import label_code
from pytest_snapaudit.engine.outcomes import fit_layout

PLAIN = fit_layout([(np.zeros((2, 3)), 2)])
SINGLE = fit_layout([(np.zeros(2), 2)])
ROWS = np.array([[3.0, -4.0, 0.0], [1.0, 1.0, 1.0], [np.nan, np.inf, -np.inf], [0.0, 0.0, 12.0]])


def test_a_coordinate_is_a_column():
    np.testing.assert_array_equal(Coordinate(1, PLAIN)(ROWS), [-4, 1, np.inf, 0])
    assert Coordinate(0, PLAIN)(ROWS.astype("f4")).dtype == np.float64
    assert Coordinate(1, PLAIN).name == "coordinate 1"
    assert Coordinate(1, PLAIN).describe(">", 0.25) == "coordinate 1 above 0.25"
    assert Coordinate(1, PLAIN).describe("<=", -1e-9) == "coordinate 1 at most -1e-09"
    assert Coordinate(0, SINGLE).describe("==", 2.0) == "output equal to 2"
    assert Coordinate(0, SINGLE).describe("==", MISSING) == "output is NaN"
    assert Coordinate(0, SINGLE).describe("<=", MISSING) == "output is NaN"
    assert Coordinate(0, SINGLE).describe(">", MISSING) == "output is not NaN"
    assert Coordinate(0, SINGLE).describe("==", -math.inf) == "output equal to -inf"


def test_coordinates_of_labels_and_kinds_are_described_by_name():
    outputs = [
        {"vote": "yes"},
        {"vote": "no"},
        {"vote": None},
        {},
        KeyError(),
        {"vote": 1.0},
        {"vote": math.nan},
    ]
    layout = fit_layout([(outputs, len(outputs))])
    value, kind = (
        Coordinate(layout.columns.index(name), layout)
        for name in ("output['vote']", "type of output['vote']")
    )
    assert value.describe("==", label_code("yes")) == "output['vote'] is 'yes'"
    assert value.describe("==", 1.0) == "output['vote'] equal to 1"
    larger, smaller = sorted(("yes", "no"), key=label_code, reverse=True)
    assert value.describe(">", label_code(smaller)) == f"output['vote'] is {larger!r}"
    assert value.describe("<=", label_code(smaller)) == f"output['vote'] is {smaller!r}"
    assert (
        value.describe("<=", MISSING) == "output['vote'] is NaN or None or missing or an exception (KeyError)"
    )
    assert kind.describe("==", 3.0) == "output['vote'] is None"
    assert kind.describe("==", 4.0) == "output['vote'] is missing"
    assert kind.describe("<=", 1.0) == "output['vote'] is a number or NaN"
    assert kind.describe(">", 5.0) == "output['vote'] is an exception (KeyError)"


def test_a_projection_is_an_inner_product():
    direction = np.array([0.5, 2.0, -1.0])
    score = Projection(direction, "along it")
    np.testing.assert_allclose(score(ROWS), [-6.5, 1.5, 2 * HUGE + HUGE, -12.0])
    np.testing.assert_allclose(score(ROWS.astype("f4")), [-6.5, 1.5, 3 * HUGE, -12.0], rtol=1e-6)
    clipped = Projection(direction, "clipped", np.array([0.0, -1.0, 0.0]), np.array([2.0, 1.0, 5.0]))
    np.testing.assert_allclose(clipped(ROWS), [1 - 2 - 0, 1.5, 0 + 2 - 0, -5.0])
    assert score.describe(">", 1.0) == "along it above 1"


def test_a_distance_is_in_spreads():
    score = Distance(np.array([1.0, 0.0, 0.0]), np.array([2.0, 4.0, np.inf]))
    np.testing.assert_allclose(score(ROWS[[0, 1, 3]]), [math.sqrt(2), 0.25, 0.5])
    assert score.name == "distance of the output from its centre (1, 0, 0) (in spreads)"
    assert "(0, 0, 0, ...)" in Distance(np.zeros(5), np.ones(5)).name


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("sum", [-1, 3, 0, 12]),
        ("largest coordinate", [3, 1, HUGE, 12]),
        ("smallest coordinate", [-4, 1, -HUGE, 0]),
        ("norm", [5, math.sqrt(3), HUGE * math.sqrt(2), 12]),
    ],
)
def test_reductions(kind, expected):
    np.testing.assert_allclose(Reduction(kind)(ROWS), expected)
    assert Reduction(kind).name == f"{kind} of the output"


def test_a_difference_of_coordinates():
    score = Difference(0, 1, PLAIN)
    np.testing.assert_array_equal(score(ROWS), [7, 0, np.nan, 0])
    assert np.isnan(Difference(1, 1, PLAIN)(ROWS)[2])
    assert score.describe("<=", 0.0) == "coordinate 0 minus coordinate 1 at most 0"


def test_a_pattern_of_nan():
    rows = np.array([[np.nan, 0, np.nan], [0, 0, 0], [0, 0, np.nan]])
    score = MissingPattern((0, 2), PLAIN)
    assert score(rows).tolist() == [3.0, 0.0, 2.0]
    assert score.describe("==", 3.0) == "exactly these are NaN: coordinate 0, coordinate 2"
    assert score.describe("==", 2.0) == "exactly these are NaN: coordinate 2"
    assert score.describe("==", 0.0) == "no coordinate is NaN"
    assert score.describe(">", 1.0) == "pattern of NaN coordinates above 1"


def test_row_keys_are_equal_for_equal_rows_only():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(4000, 3))
    keys = RowKey()(rows)
    assert len(np.unique(keys)) == 4000
    np.testing.assert_array_equal(RowKey()(rows[::-1]), keys[::-1])
    special = np.array(
        [[0.0, np.nan], [-0.0, np.nan], [0.0, 0.0], [np.inf, 1.0], [-np.inf, 1.0], [1.0, 0.0], [0.0, 1.0]]
    )
    found = RowKey()(special)
    assert found[0] == found[1]
    assert len(set(found.tolist())) == 6
    assert RowKey().describe("==", 1.0) == "the whole output equals one particular value"
    assert "hashed values" in RowKey().describe(">", 1.0)
    assert RowKey()(special[2:].astype("f4")).tolist() == found[2:].tolist()


def test_the_lowest_set_bit_is_the_exponent_of_the_finest_part():
    values = np.array([1.0, 0.75, 3.0, 8.0, 1 + 2.0**-52, 0.0, np.nan, np.inf, -0.5, 1e-3 * 2**10])[:, None]
    found = LowestSetBit(0, SINGLE)(values)
    for value, position in zip(values[:, 0], found, strict=True):
        if not math.isfinite(value) or value == 0:
            assert position == 99
        else:
            assert value / 2.0**position == int(value / 2.0**position)
            assert int(value / 2.0**position) % 2 == 1
    near = LowestSetBit(0, SINGLE, within=0.8)(values)
    assert near.tolist()[:4] == [99, -2, 99, 99]
    assert LowestSetBit(0, SINGLE).describe("<=", -53.0) == (
        "side channel: exponent of the lowest set bit of output at most -53"
    )
    assert "below 0.25" in LowestSetBit(0, SINGLE, 0.25).name


def test_a_user_score_is_checked_and_named():
    score = UserScore(lambda rows: rows.sum(axis=1).tolist(), "total")
    assert score(np.ones((2, 3))).tolist() == [3.0, 3.0]
    assert score.describe(">", 2.0) == "attack 'total' above 2"
    with pytest.raises(
        ValueError, match=r"attack 'total' must return one score per output: expected shape \(2,\)"
    ):
        UserScore(lambda rows: rows, "total")(np.ones((2, 3)))


def test_finite_replaces_only_what_is_not_finite():
    assert finite(ROWS[:2]) is not None
    clean = np.ones((2, 2))
    assert finite(clean) is clean
    assert finite(ROWS)[2].tolist() == [0.0, HUGE, -HUGE]
    assert comparable(np.array([np.nan, -np.inf, 1.0])).tolist() == [MISSING, -np.inf, 1.0]


def test_log_ratio_cells_are_half_open_above():
    score = LogRatio(Coordinate(0, SINGLE), np.array([0.0, 1.0, 2.0]), np.array([-1.0, 0.5, 0.25, 2.0]))
    values = np.array([-5.0, 0.0, 1e-9, 1.0, 1.5, 2.0, 2.1, np.inf, np.nan])[:, None]
    assert score(values).tolist() == [-1, -1, 0.5, 0.5, 0.25, 0.25, 2, 2, -1]
    assert score.name == "log-likelihood ratio of output"
    assert score.describe(">", 0.3) == "output in (0, 1] or (2, inf]"
    assert score.describe("<=", -1.0) == "output in (-inf, 0]"
    assert score.describe("==", 0.25) == "output in (1, 2]"
    many = LogRatio(Coordinate(0, SINGLE), np.arange(9.0), np.array([1.0, 0.0] * 5))
    assert many.describe(">", 0.5) == "output in (-inf, 0] or (1, 2] or (3, 4] or 2 more intervals"
    atom = LogRatio(Coordinate(0, SINGLE), np.array([np.nextafter(0.5, 0), 0.5]), np.array([0.0, 1.0, 0.0]))
    assert atom.describe(">", 0.5) == "output in {0.5}"


def test_log_ratios_are_shrunken_log_ratios_of_counts():
    reference = np.repeat([0.0, 1.0, 2.0], [60, 30, 10])[:, None]
    canary = np.repeat([0.0, 1.0, 2.0], [30, 30, 40])[:, None]
    score = fit_log_ratio(Coordinate(0, SINGLE), reference, canary)
    prior = 1 + 0.02 * math.sqrt(200)
    expected = [math.log((b + prior) / (a + prior)) for a, b in [(60, 30), (30, 30), (10, 40), (0, 0)]]
    assert score is not None
    np.testing.assert_allclose(score.weights, expected)
    assert score.cuts.tolist() == [0.0, 1.0, 2.0]
    np.testing.assert_allclose(score(np.array([[0.0], [1.0], [2.0], [9.0]])), expected)
    capped = fit_log_ratio(Coordinate(0, SINGLE), reference, canary, cap=0.1)
    assert capped is not None
    assert np.abs(capped.weights).max() == 0.1
    assert fit_log_ratio(Coordinate(0, SINGLE), reference[:60], canary[:30]) is None


def test_heavy_atoms_among_many_values_get_cells_of_their_own():
    rng = np.random.default_rng(1)
    reference = np.where(rng.random(5000) < 0.3, 0.5, rng.random(5000))[:, None]
    canary = np.where(rng.random(5000) < 0.1, 0.5, rng.random(5000))[:, None]
    score = fit_log_ratio(Coordinate(0, SINGLE), reference, canary)
    assert score is not None
    (atom, below, above) = score(np.array([[0.5], [0.4999], [0.5001]]))
    assert atom == pytest.approx(math.log(500 / 1500), abs=0.15)
    assert max(abs(below), abs(above)) < 0.6
    assert 0.5 in score.cuts


def test_log_ratios_of_labels_name_them():
    reference, canary = (
        np.array(["a"] * 80 + ["b"] * 20 + ["c"] * 20),
        np.array(["a"] * 20 + ["b"] * 80 + ["c"] * 20),
    )
    layout = fit_layout([(reference, 120), (canary, 120)])
    encoded = layout.encode(reference, 120), layout.encode(canary, 120)
    score = fit_log_ratio(Coordinate(0, layout), *encoded)
    assert score is not None
    assert score.describe(">", 0.5) == "output is 'b'"
    assert score.describe("<=", -0.5) == "output is 'a'"
    rest = score.describe("<=", 0.5).removeprefix("output is ").split(" or ")
    assert sorted(rest) == ["'a'", "'c'", "something not seen in tuning"]


def test_naive_bayes_adds_log_ratios():
    ratios = tuple(
        LogRatio(Coordinate(j, PLAIN), np.array([0.0]), np.array([-j - 1.0, j + 1.0])) for j in range(3)
    )
    assert NaiveBayes(ratios)(ROWS[:2]).tolist() == [1 - 2 - 3, 6]
    assert NaiveBayes(ratios).name == "sum of the log-likelihood ratios of 3 columns"


def gaussian(shift, n=4000, seed=0):
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(n, 3)) * np.array([1.0, 10.0, 1.0])
    return noise + np.asarray(shift)


def test_the_linear_discriminant_weighs_coordinates_by_their_precision():
    scores = candidate_scores(gaussian(0, seed=1), gaussian([1.0, 1.0, 0.0], seed=2), PLAIN)
    found = {score.name: score for score in scores}
    assert {DISCRIMINANT, CLIPPED_DISCRIMINANT} <= set(found)
    weights = found[DISCRIMINANT].direction
    np.testing.assert_allclose(weights / weights[0], [1.0, 0.01, 0.0], atol=0.1)
    clipped = found[CLIPPED_DISCRIMINANT]
    assert clipped.lower[0] == pytest.approx(-3, abs=0.4)


@pytest.mark.parametrize(
    "name",
    [
        DISCRIMINANT,
        CLIPPED_DISCRIMINANT,
        "log-likelihood ratio of coordinate 0",
        "sum of the log-likelihood ratios of 3 columns",
    ],
)
def test_refitting_keeps_the_kind_of_score_and_uses_the_new_trials(name):
    first = gaussian(0, seed=1), gaussian([1.0, 1.0, 1.0], seed=2)
    second = gaussian(0, seed=3), gaussian([-1.0, 1.0, 1.0], seed=4)
    score = {score.name: score for score in candidate_scores(*first, PLAIN)}[name]
    again = refit(score, *second)
    assert (type(again), again.name) == (type(score), name)
    low, high = (again(np.array([[x, 0.0, 0.0]]))[0] for x in (-2.0, 2.0))
    assert low > high
    low, high = (score(np.array([[x, 0.0, 0.0]]))[0] for x in (-2.0, 2.0))
    assert low < high
    fixed = Coordinate(0, PLAIN)
    assert refit(fixed, *second) is fixed


def test_candidates_for_constant_outputs():
    constant = np.ones((10, 3))
    assert [score.name for score in candidate_scores(constant, constant, PLAIN)] == ["coordinate 0"]
    nan = np.full((10, 3), np.nan)
    assert [score.name for score in candidate_scores(nan, nan, PLAIN)] == ["coordinate 0"]
    along = candidate_scores(constant, constant, PLAIN, direction=np.array([1.0, 0, 0]))
    assert [score.name for score in along] == [
        "projection on the difference of the clean outputs",
        "coordinate 0",
    ]


def test_side_channels_are_tried_only_on_request():
    sides = gaussian(0), gaussian(1, seed=5)
    assert not any(isinstance(score, LowestSetBit) for score in candidate_scores(*sides, PLAIN))
    asked = candidate_scores(*sides, PLAIN, side_channels=("low-bit",))
    assert sum(isinstance(score, LowestSetBit) for score in asked) == 9


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("<=", [True, True, False, True]),
        (">", [False, False, True, False]),
        ("==", [False, True, False, False]),
    ],
)
def test_an_event_splits_every_output(op, expected):
    event = Event(Coordinate(0, SINGLE), op, 1.0, 1, 0.5, 0.1, 100)
    assert event.hits(np.array([[0.0], [1.0], [2.0], [np.nan]])).tolist() == expected
    assert event.describe().endswith("likelier on the canary")
    assert (
        Event(Coordinate(0, SINGLE), op, 1.0, 0, 0.5, 0.1, 100)
        .describe()
        .endswith("likelier on the reference")
    )


@pytest.mark.parametrize("n", [500.0, 25_000.0])
@pytest.mark.parametrize("alpha", [0.1, 1e-3])
def test_the_fast_bounds_rank_like_the_exact_ones(n, alpha):
    k = np.array([5, 20, 100, 250, 400])
    low, high = approximate_rate_bounds(k, k, n, alpha, alpha)
    exact_low, exact_high = pair_rate_bounds(k, k, n, alpha, alpha)
    np.testing.assert_allclose(low, exact_low, rtol=0.08)
    np.testing.assert_allclose(high, exact_high, rtol=0.08)
    zero = approximate_rate_bounds(np.zeros(1), np.zeros(1), n, alpha, alpha)
    assert zero[0][0] == 0.0
    assert zero[1][0] == pytest.approx(-math.log(alpha) / n, rel=0.2)


def test_no_event_is_better_than_one_that_shows_nothing():
    goal = Goal(1.0, 0.0, 1000, 5e-4)
    same = np.linspace(0, 1, 300)[:, None]
    assert best_event(Coordinate(0, SINGLE), same, same, goal) is None


def test_the_best_event_is_rated_by_its_own_counts():
    rng = np.random.default_rng(2)
    reference, canary = rng.normal(size=(2000, 1)), rng.normal(size=(2000, 1)) + 1.5
    rated = best_event(Coordinate(0, SINGLE), reference, canary, Goal(0.5, 0.0, 10_000, 1e-3))
    assert rated is not None
    event, sides = rated.event, (reference, canary)
    assert event.tuned_on == 2000
    assert event.p == event.hits(sides[event.likelier_on]).mean()
    assert event.q == event.hits(sides[1 - event.likelier_on]).mean()
