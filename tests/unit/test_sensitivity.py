"""Distances between clean outputs, and the deterministic pass over neighbouring pairs."""

from __future__ import annotations

import dataclasses
import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pytest_snapaudit.engine.distance import observed_distance
from pytest_snapaudit.engine.errors import MechanismError, SensitivityExceeded
from pytest_snapaudit.engine.mechanism import from_callable
from pytest_snapaudit.engine.sensitivity import check_sensitivity

NAN, INF = math.nan, math.inf
NORMS = ["l0", "l1", "l2", "linf"]
ORDERS = {"l0": 0, "l1": 1, "l2": 2, "linf": np.inf}


class TestObservedDistance:
    @pytest.mark.parametrize(("norm", "expected"), [("l0", 2), ("l1", 7), ("l2", 5), ("linf", 4)])
    def test_closed_forms(self, norm, expected):
        assert observed_distance([1.0, 2.0, 3.0], [1.0, 5.0, -1.0], norm) == expected

    @pytest.mark.parametrize("norm", NORMS)
    @given(
        pair=hnp.array_shapes(max_dims=3, max_side=4).flatmap(
            lambda shape: st.tuples(*[hnp.arrays(float, shape, elements=st.floats(-1e6, 1e6))] * 2)
        )
    )
    def test_agrees_with_numpy_and_is_symmetric(self, norm, pair):
        a, b = pair
        distance = observed_distance(a, b, norm)
        assert distance == pytest.approx(np.linalg.norm((a - b).ravel(), ORDERS[norm]), rel=1e-12)
        assert distance == observed_distance(b, a, norm)
        assert observed_distance(a, a, norm) == 0.0

    @pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
    @pytest.mark.parametrize(
        ("a", "b", "expected"),
        [
            ([NAN], [NAN], 0.0),
            ([NAN, 1.0], [NAN, 3.0], 2.0),
            ([NAN], [1.0], INF),
            ([1.0], [NAN], INF),
            ([NAN], [INF], INF),
            ([INF], [INF], 0.0),
            ([-INF], [-INF], 0.0),
            ([INF], [-INF], INF),
            ([INF], [1e30], INF),
            ([INF, 0.0], [INF, 2.0], 2.0),
            (NAN, NAN, 0.0),
        ],
    )
    def test_nan_and_infinities_are_values(self, a, b, expected, norm):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert observed_distance(a, b, norm) == expected
            assert observed_distance(np.float32(a), np.float32(b), norm) == expected

    def test_l0_counts_coordinates_that_differ_in_any_way(self):
        assert observed_distance([NAN, INF, 1.0, 0.0, NAN], [NAN, -INF, 1.0, -0.0, 1.0], "l0") == 2.0

    @pytest.mark.parametrize("norm", NORMS)
    def test_different_shapes_are_infinitely_far_apart(self, norm):
        assert observed_distance([1.0], [1.0, 2.0], norm) == INF
        assert observed_distance(1.0, [1.0], norm) == INF
        assert observed_distance(np.zeros((2, 3)), np.zeros((3, 2)), norm) == INF
        assert observed_distance([], [], norm) == 0.0

    @pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
    @pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
    def test_integers_do_not_wrap_around(self, dtype, norm):
        limits = np.iinfo(dtype)
        ends = np.array([limits.min], dtype), np.array([limits.max], dtype)
        assert observed_distance(*ends, norm) == float(int(limits.max) - int(limits.min))
        assert observed_distance(ends[1], ends[0], norm) == float(int(limits.max) - int(limits.min))
        near = np.array([limits.max - 1], dtype)
        assert observed_distance(ends[1], near, norm) == 1.0

    def test_signed_and_unsigned_are_compared_by_value(self):
        assert observed_distance(np.array([-1]), np.array([2**64 - 1], np.uint64), "linf") == 2.0**64

    def test_booleans_and_complex_numbers(self):
        assert observed_distance([True, False], [False, False], "l1") == 1.0
        assert observed_distance([3 + 4j], [0], "l2") == 5.0
        assert observed_distance([complex(NAN, 1)], [1j], "l2") == INF

    @pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
    def test_the_norm_neither_overflows_nor_underflows(self, scale):
        assert observed_distance([3 * scale, 0.0], [0.0, 4 * scale], "l2") == pytest.approx(5 * scale)

    def test_the_inputs_are_left_alone(self):
        a, b = np.array([[1.0, NAN]]), np.array([[2.0, 3.0]])
        observed_distance(a, b, "l1")
        assert np.array_equal(a, [[1.0, NAN]], equal_nan=True)
        assert np.array_equal(b, [[2.0, 3.0]])

    @pytest.mark.parametrize("norm", ["L2", "l3", None, 2])
    def test_unknown_norms(self, norm):
        with pytest.raises(ValueError, match=r'norm must be one of "l0", "l1", "l2", "linf", got'):
            observed_distance([1.0], [2.0], norm)

    @pytest.mark.parametrize("output", ["yes", ["a"], [[1], [1, 2]], object(), {"a": 1}])
    def test_outputs_that_are_not_numbers(self, output):
        with pytest.raises(TypeError, match="a clean output must be an array of numbers, got"):
            observed_distance(output, [1.0])


@dataclasses.dataclass(frozen=True)
class Sum:
    """A sum of rows clipped to [0, clip]."""

    clip: float = 1.0
    sensitivity: float = 1.0
    norm: str = "l1"

    def clean(self, dataset, rng):
        return np.clip(np.asarray(dataset, float), 0.0, self.clip).sum()

    def privatize(self, clean, rng):
        return clean + rng.laplace(size=len(clean))


def _takes_no_rng(rows):
    return sum(rows)


def add(*rows):
    return ([0.5, 0.25], [0.5, 0.25, *rows])


class TestCheckSensitivity:
    def test_the_worst_pair_is_reported(self):
        finding = check_sensitivity(Sum(clip=3.0), [add(1.0), add(2.5), add(9.0), add(4.0)])
        assert finding.distance == 3.0
        assert finding.sensitivity == 1.0
        assert finding.ratio == 3.0
        assert finding.norm == "l1"
        assert finding.exceeded
        assert (finding.index, finding.n_pairs) == (2, 4)
        assert finding.pair == add(9.0)
        assert finding.name == "Sum(clip=3.0, sensitivity=1.0, norm='l1')"

    def test_a_correct_mechanism_is_within_its_sensitivity(self):
        finding = check_sensitivity(Sum(), [add(1.0), add(-7.0), add(math.inf)])
        assert not finding.exceeded
        assert finding.distance == 1.0
        finding.require()

    def test_the_failure_leads_with_numbers_and_ends_with_the_repair(self):
        finding = check_sensitivity(Sum(clip=3.0), [add(1.0), add(9.0)])
        with pytest.raises(SensitivityExceeded) as failure:
            finding.require()
        assert failure.value.finding is finding
        assert str(failure.value).splitlines() == [
            "sensitivity 3 > 1 declared (l1, ratio 3)",
            "  Sum(clip=3.0, sensitivity=1.0, norm='l1'): clean outputs are 3 apart, pair 2 of 2",
            "  neighbours=([0.5, 0.25], [0.5, 0.25, 9.0])",
            "  declare a sensitivity of at least 3 and calibrate the noise to it, "
            "or bound what one record contributes.",
        ]

    def test_an_infinite_distance_asks_for_another_repair(self):
        finding = check_sensitivity(Sum(), [add(NAN)])
        with pytest.raises(
            SensitivityExceeded, match=r"coordinate 0 is 0\.75 against nan, pair 1 of 1"
        ) as failure:
            finding.require()
        assert "make the clean stage answer every dataset with finite numbers" in str(failure.value)

    def test_long_datasets_are_shortened_in_the_message(self):
        finding = check_sensitivity(Sum(clip=9.0), [([0.0] * 1000, [0.0] * 1000 + [9.0])])
        assert "… (10009 characters)" in str(finding)
        assert len(str(finding)) < 700

    def test_a_function_with_explicit_sensitivity_and_norm(self):
        finding = check_sensitivity(lambda rows, rng: np.array([3.0, 4.0]) * len(rows), [([], [1])], 5.0)
        assert (finding.distance, finding.norm, finding.exceeded) == (5.0, "l2", False)
        finding = check_sensitivity(
            lambda rows, rng: np.array([3.0, 4.0]) * len(rows), [([], [1])], 5.0, "l1"
        )
        assert (finding.distance, finding.exceeded) == (7.0, True)

    def test_arguments_take_precedence_over_the_mechanism(self):
        assert check_sensitivity(Sum(), [add(1.0)], 0.5, "linf").exceeded

    def test_a_pair_as_the_strategies_draw_it(self):
        from pytest_snapaudit.strategies import NeighbouringPair

        pair = NeighbouringPair([0.0], [math.inf, 0.0], "add-remove")
        finding = check_sensitivity(Sum(clip=2.0), pair)
        assert finding.distance == 2.0
        assert "neighbours=NeighbouringPair([0.0], [float('inf'), 0.0], 'add-remove')" in str(finding)
        assert check_sensitivity(Sum(), [pair, pair]).n_pairs == 2

    def test_pairs_may_be_a_generator(self):
        assert check_sensitivity(Sum(), (add(float(i)) for i in range(5))).n_pairs == 5

    def test_the_first_of_equally_bad_pairs_is_kept(self):
        assert check_sensitivity(Sum(), [add(0.5), add(1.0), add(2.0)]).index == 1


class TestOutcomes:
    """An exception, None, or another shape or set of keys is an output like any other."""

    def check(self, clean, *pairs):
        return check_sensitivity(clean, list(pairs) or [([], [1.0])], 1.0, "l1")

    def test_an_exception_on_one_side_only(self):
        finding = self.check(lambda rows, rng: sorted(rows)[len(rows) // 2])
        assert finding.distance == INF
        assert finding.exceeded
        assert finding.observation == "clean raised IndexError on the reference, answered on the canary"

    def test_the_same_exception_on_both_sides_hides_nothing(self):
        def clean(rows, rng):
            if -1.0 in rows:
                raise ValueError(rows)
            return sum(rows)

        finding = self.check(clean, ([1.0], [1.0, 0.5]), ([-1.0], [-1.0, 5.0]))
        assert (finding.distance, finding.index, finding.n_pairs) == (0.5, 0, 2)
        finding = self.check(clean, ([1.0], [1.0]), ([-1.0], [-1.0, 5.0]))
        assert finding.distance == 0.0

    def test_different_exceptions_tell_the_sides_apart(self):
        def clean(rows, rng):
            raise ValueError if rows else IndexError

        finding = self.check(clean, ([1.0], []), ([], []))
        assert (
            finding.observation == "clean raised ValueError on the reference, raised IndexError on the canary"
        )
        assert finding.exceeded

    def test_an_exception_everywhere_is_a_wiring_mistake(self):
        with pytest.raises(
            MechanismError, match="clean raised TypeError on both sides of all 2 pairs"
        ) as failure:
            self.check(_takes_no_rng, ([], [1.0]), ([], [2.0]))
        assert isinstance(failure.value.__cause__, TypeError)

    def test_none(self):
        assert self.check(lambda rows, rng: sum(rows) if rows else None).distance == INF
        assert self.check(lambda rows, rng: None).distance == 0.0
        finding = self.check(lambda rows, rng: rows[0] if rows else None)
        assert finding.observation == "clean returned None on the reference, answered on the canary"

    def test_shapes_that_depend_on_the_data(self):
        finding = self.check(lambda rows, rng: np.array(rows))
        assert finding.observation == "clean outputs have shapes (0,) and (1,)"
        assert finding.distance == INF

    def test_keys_that_depend_on_the_data(self):
        finding = self.check(lambda rows, rng: {row: rows.count(row) for row in rows}, (["a"], ["a", "b"]))
        assert finding.observation == "key 'b' occurs on the canary only"
        assert finding.distance == INF

    def test_public_keys_are_compared_key_by_key(self):
        def clean(rows, rng):
            return {name: rows.count(name) for name in (sorted("ab", key=rows.count))}

        finding = self.check(clean, (["a"], ["a", "b"]), (["a", "b"], ["b", "b"]))
        assert (finding.distance, finding.index) == (2.0, 1)
        assert self.check(lambda rows, rng: {}).distance == 0.0

    def test_values_that_change_shape_under_one_key(self):
        finding = self.check(lambda rows, rng: {"rows": rows})
        assert finding.observation == "values under one key differ in shape"

    def test_outputs_that_are_no_numbers_are_refused(self):
        with pytest.raises(TypeError, match="a clean output must be an array of numbers, got 'x'"):
            self.check(lambda rows, rng: "x")

    @pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
    def test_interrupts_pass_through(self, interrupt):
        def clean(rows, rng):
            raise interrupt

        with pytest.raises(interrupt):
            self.check(clean)


class TestTolerance:
    def test_a_relative_excess_below_the_tolerance_is_rounding(self):
        def clean(rows, rng):
            return len(rows) * (1.0 + 5e-10)

        assert not check_sensitivity(clean, [([], [1])], 1.0).exceeded
        assert check_sensitivity(clean, [([], [1])], 1.0, tolerance=1e-10).exceeded

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_rounding_of_large_outputs_is_allowed_for_in_their_dtype(self, dtype):
        offset = np.asarray(2.0, dtype) ** 20

        def clean(rows, rng):
            return np.array([offset + np.asarray(0.1 * len(rows), dtype)], dtype)

        finding = check_sensitivity(clean, [([], [1])], 0.1, "linf")
        assert finding.slack == 4 * np.finfo(dtype).eps * float(offset + np.asarray(0.1, dtype))
        assert not finding.exceeded
        assert check_sensitivity(clean, [([], [1] * 20)], 0.1, "linf").exceeded

    @pytest.mark.parametrize(("norm", "factor"), [("l0", 0.0), ("l1", 9.0), ("l2", 3.0), ("linf", 1.0)])
    def test_the_slack_grows_with_the_norm_of_as_many_coordinates(self, norm, factor):
        finding = check_sensitivity(lambda rows, rng: np.ones((3, 3)), [(0, 1)], 1.0, norm)
        assert finding.slack == pytest.approx(factor * 4 * np.finfo(float).eps)

    def test_integers_have_no_slack(self):
        finding = check_sensitivity(lambda rows, rng: 2**60 + len(rows), [([], [1, 1])], 1.0, "l1")
        assert (finding.slack, finding.distance, finding.exceeded) == (0.0, 2.0, True)

    @pytest.mark.parametrize("row", [1.7976931348623157e308, -1.7976931348623157e308])
    def test_the_largest_floats_do_not_drown_in_their_own_rounding(self, row):
        finding = check_sensitivity(lambda rows, rng: sum(rows), [([0.0], [0.0, row])], 1.0)
        assert math.isfinite(finding.slack)
        assert finding.exceeded


class TestRandomCleanStages:
    def clean(self, rows, rng):
        kept = rng.random(100)[: len(rows)] < 0.5
        return np.asarray(rows, float)[kept].sum()

    def test_are_refused_unless_coupled(self):
        with pytest.raises(MechanismError, match=r"two evaluations of clean on one dataset are .* apart"):
            check_sensitivity(lambda rows, rng: rng.normal(), [([], [1.0])], 1.0)
        with pytest.raises(MechanismError, match="or pass coupled=True to compare both sides under one seed"):
            check_sensitivity(self.clean, [([1.0] * 50, [1.0] * 51)], 1.0)

    def test_coupled_sides_share_their_randomness(self):
        pairs = [([1.0] * 50, [1.0] * 51), ([1.0] * 50, [1.0] * 49 + [0.0])]
        for seed in range(20):
            finding = check_sensitivity(self.clean, pairs, 1.0, coupled=True, seed=seed)
            assert not finding.exceeded
            assert finding == check_sensitivity(self.clean, pairs, 1.0, coupled=True, seed=seed)


class TestBadInput:
    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"pairs": []}, ValueError, "pairs must hold at least one .* pair, got none"),
            ({"pairs": None}, TypeError, "pairs must be an iterable of .* pairs, got None of type NoneType"),
            ({"pairs": "ab"}, TypeError, "pairs must be an iterable of .* pairs, got 'ab'"),
            ({"pairs": {1: 2}}, TypeError, "pairs must be an iterable"),
            (
                {"pairs": ([0.0], [1.0])},
                TypeError,
                r"pair 0 must be a .* tuple, got \[0.0\]; put a single pair in",
            ),
            ({"pairs": [add(1.0), 3]}, TypeError, r"pair 1 must be a \(reference, canary\) tuple, got 3"),
            ({"sensitivity": 0}, ValueError, "sensitivity must be a finite number above 0, got 0."),
            ({"sensitivity": math.inf}, ValueError, "sensitivity must be a finite number above 0, got inf."),
            ({"sensitivity": NAN}, ValueError, "sensitivity must be a finite number above 0, got nan."),
            ({"sensitivity": "1"}, TypeError, "sensitivity must be a finite number above 0, got '1'."),
            ({"norm": "max"}, ValueError, 'check_sensitivity: norm must be one of "l0", "l1", "l2", "linf"'),
            ({"norm": ["l1"]}, ValueError, "got \\['l1'\\]"),
            (
                {"tolerance": -1e-9},
                ValueError,
                "tolerance must be a finite number of at least 0, got -1e-09.",
            ),
            ({"tolerance": None}, TypeError, "tolerance must be a finite number of at least 0, got None."),
            ({"seed": -1}, ValueError, "seed must be a non-negative integer, got -1."),
            ({"seed": 1.0}, ValueError, "seed must be a non-negative integer, got 1.0."),
            ({"mechanism": Sum}, TypeError, "pass an instance of Sum, not the class."),
            ({"mechanism": 3}, TypeError, r"must have a clean\(dataset, rng\) method, or be such a function"),
            ({"mechanism": from_callable(sum)}, TypeError, "whole noisy outputs have no sensitivity"),
            (
                {"mechanism": lambda rows, rng: 0.0},
                ValueError,
                "no sensitivity is declared; pass sensitivity=...",
            ),
        ],
    )
    def test_wrong_arguments(self, arguments, error, message):
        with pytest.raises(error, match=message):
            check_sensitivity(**{"mechanism": Sum(), "pairs": [add(1.0)], **arguments})

    def test_the_declaration_of_the_mechanism_is_checked_too(self):
        with pytest.raises(ValueError, match="sensitivity must be a finite number above 0, got -1"):
            check_sensitivity(Sum(sensitivity=-1.0), [add(1.0)])
        with pytest.raises(ValueError, match=r'norm must be one of .* got "l7"|got \'l7\''):
            check_sensitivity(Sum(norm="l7"), [add(1.0)])


def test_reference_mechanisms_meet_their_declaration_and_the_flawed_one_does_not():
    from dp_icl import EmbeddingSpaceAggregation
    from dp_icl.flawed import UnitSensitivityEmbeddingSpaceAggregation

    opposite = ([[1.0, 0.0]], [[-1.0, 0.0]])
    assert check_sensitivity(EmbeddingSpaceAggregation(1, 1.0, 1e-5), [opposite]).ratio == 1.0
    assert check_sensitivity(UnitSensitivityEmbeddingSpaceAggregation(1, 1.0, 1e-5), [opposite]).ratio == 2.0
