"""The edges are really drawn: shares of 1,000 draws (rows) or 400 at a fixed seed, against lower bounds.

The bounds are meant to be far above what strategies without edges would give, with room below the shares seen:
a seed does not fix the draws alone, they differ a little with what else was imported.
"""

from __future__ import annotations

import math
import sys
from collections import Counter

import pytest
from hypothesis import strategies as st
from strategy_draws import draws, is_nan, share

from pytest_snapaudit import strategies as snap
from pytest_snapaudit.strategies.pairs import as_code, same

LARGEST = sys.float_info.max
ADJACENCIES = ["add-remove", "replace-one"]


def changed(pair):
    """The rows of the canary side that the reference side lacks."""
    ours, theirs = (Counter(map(as_code, side)) for side in pair)
    new = theirs - ours
    return [row for row in pair.canary if as_code(row) in new]


def has_duplicates(rows):
    return len({as_code(row) for row in rows}) < len(rows)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_rows_hold_every_kind_of_edge(adjacency):
    drawn = draws(snap.neighbouring_rows(adjacency=adjacency, bounds=(0.0, 1.0)), 1000)
    floor = {
        "a single row": (0.05, lambda p: len(p.reference) == 1),
        "duplicates": (0.15, lambda p: has_duplicates(p.canary)),
        "NaN": (0.05, lambda p: any(map(is_nan, p.canary))),
        "an infinity": (0.05, lambda p: any(row in (math.inf, -math.inf) for row in p.canary)),
        "the lower bound": (0.10, lambda p: 0.0 in p.canary),
        "the upper bound": (0.10, lambda p: 1.0 in p.canary),
        "a new row below": (0.05, lambda p: any(row < 0.0 for row in changed(p))),
        "a new row above": (0.05, lambda p: any(row > 1.0 for row in changed(p))),
        "a new row further out than the width": (0.05, lambda p: any(row < -1.0 for row in changed(p))),
        "next above": (0.01, lambda p: math.nextafter(1.0, 2.0) in p.canary),
        "the dtype's extremes": (0.02, lambda p: LARGEST in p.canary or -LARGEST in p.canary),
        "a subnormal": (0.01, lambda p: 5e-324 in p.canary),
    }
    shares = {what: share(drawn, predicate) for what, (_, predicate) in floor.items()}
    assert {what: value for what, value in shares.items() if value < floor[what][0]} == {}


def test_empty_and_nearly_empty_references():
    drawn = draws(snap.neighbouring_rows())
    assert share(drawn, lambda p: not p.reference) >= 0.03
    assert share(drawn, lambda p: len(p.reference) == 1) >= 0.05


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint16"])
def test_integer_sums_overflow_on_one_side_only(adjacency, dtype):
    import numpy as np

    limits = np.iinfo(dtype)
    drawn = draws(snap.neighbouring_rows(adjacency=adjacency, dtype=dtype))
    assert all(limits.min <= row <= limits.max for pair in drawn for side in pair for row in side)

    def wraps(rows):
        return not limits.min <= sum(rows) <= limits.max

    assert share(drawn, lambda p: wraps(p.reference) != wraps(p.canary)) >= 0.05


def test_integer_rows_reach_beyond_given_bounds_and_stay_within_the_dtype():
    drawn = draws(snap.neighbouring_rows(dtype="int16", bounds=(0, 100)))
    rows = {row for pair in drawn for row in pair.canary}
    assert {0, 100, 101, -1, 32767, -32768} <= rows
    within = draws(snap.neighbouring_rows(dtype="int16", bounds=(0, 100), beyond_bounds=False))
    assert all(0 <= row <= 100 for pair in within for side in pair for row in side)


def test_the_flags_keep_rows_out():
    tame = snap.neighbouring_rows(bounds=(-1.0, 3.0), beyond_bounds=False)
    assert all(-1.0 <= row <= 3.0 for pair in draws(tame) for side in pair for row in side)
    no_nan = draws(snap.neighbouring_rows(allow_nan=False))
    assert not any(is_nan(row) for pair in no_nan for row in pair.canary)
    assert any(math.inf in pair.canary for pair in no_nan)
    finite = draws(snap.neighbouring_rows(allow_nan=False, allow_infinity=False))
    assert all(math.isfinite(row) for pair in finite for side in pair for row in side)


def test_float32_rows_are_exact_in_float32():
    import numpy as np

    drawn = draws(snap.neighbouring_rows(dtype="float32", bounds=(0.1, 0.7), allow_nan=False))
    assert all(float(np.float32(row)) == row for pair in drawn for side in pair for row in side)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_vectors(adjacency):
    drawn = draws(snap.neighbouring_vectors(adjacency=adjacency, clip_norm=2.0), 1000)

    def norms(pair):
        return [math.hypot(*row) for row in pair.canary if not any(map(is_nan, row))]

    assert share(drawn, lambda p: any(any(map(is_nan, row)) for row in p.canary)) >= 0.05
    assert share(drawn, lambda p: any(norm > 3.0 for norm in norms(p))) >= 0.1
    assert share(drawn, lambda p: any(math.isclose(norm, 2.0) for norm in norms(p))) >= 0.1
    assert share(drawn, lambda p: any(not any(row) for row in p.canary)) >= 0.1
    assert {len(row) for pair in drawn for row in pair.canary} == set(range(1, 9))
    assert all(len({len(row) for side in pair for row in side}) == 1 for pair in drawn)


def test_replaced_vectors_are_often_opposite():
    drawn = draws(snap.neighbouring_vectors(adjacency="replace-one", dimension=3, allow_nan=False))

    def opposite(pair):
        (old, new), *_ = [
            (old, new) for old, new in zip(pair.reference, pair.canary, strict=True) if not same(old, new)
        ]
        return any(old) and all(x == -y for x, y in zip(old, new, strict=True))

    assert share(drawn, opposite) >= 0.1


@pytest.mark.parametrize(
    ("norm", "length"),
    [
        ("l1", lambda row: sum(map(abs, row))),
        ("l2", lambda row: math.hypot(*row)),
        ("linf", lambda row: max(map(abs, row))),
    ],
)
def test_vectors_within_the_ball_of_the_norm_touch_its_sphere(norm, length):
    strategy = snap.neighbouring_vectors(dimension=4, norm=norm, clip_norm=3.0, beyond_bounds=False)
    lengths = [length(row) for pair in draws(strategy) for side in pair for row in side]
    assert max(lengths) <= 3.0 * (1 + 1e-12)
    assert sum(math.isclose(value, 3.0) for value in lengths) / len(lengths) >= 0.1


def test_high_dimensional_vectors_are_cheap_to_draw():
    drawn = draws(snap.neighbouring_vectors(dimension=384), 100)
    assert all(len(row) == 384 for pair in drawn for row in pair.canary)
    assert share(drawn, lambda p: any(0.9 < math.hypot(*row) < 1.1 for row in p.canary)) >= 0.2


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_histograms(adjacency):
    drawn = draws(snap.neighbouring_histograms(adjacency=adjacency, bins=4))
    assert share(drawn, lambda p: len(set(p.reference)) == 1) >= 0.02
    assert share(drawn, lambda p: sum(map(bool, p.reference)) == 1) >= 0.05
    steps = {tuple(sorted(y - x for x, y in zip(*pair, strict=True))) for pair in drawn}
    assert steps == {(0, 0, 0, 1)} if adjacency == "add-remove" else {(-1, 0, 0, 1)}
    assert any(sum(pair.reference) == 0 for pair in drawn) == (adjacency == "add-remove")


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_histograms_overflow_in_sum_and_never_in_one_count(adjacency):
    drawn = draws(snap.neighbouring_histograms(adjacency=adjacency, dtype="int32"))
    assert all(0 <= count <= 2**31 - 1 for pair in drawn for side in pair for count in side)
    assert share(drawn, lambda p: sum(p.canary) > 2**31 - 1) >= 0.1


@pytest.mark.parametrize("total", [1, 3, 16])
def test_votes_of_a_fixed_number_of_partitions(total):
    drawn = draws(snap.neighbouring_histograms(bins=3, total=total, adjacency="replace-one"))
    assert all(sum(side) == total for pair in drawn for side in pair)
    assert any(max(pair.reference) == total for pair in drawn)
    assert total == 1 or any(sorted(pair.reference)[-1] == sorted(pair.reference)[-2] for pair in drawn)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_texts(adjacency):
    drawn = draws(snap.neighbouring_texts(adjacency=adjacency))
    assert share(drawn, lambda p: "" in p.canary) >= 0.03
    assert share(drawn, lambda p: has_duplicates(p.canary)) >= 0.1
    assert share(drawn, lambda p: any(len(text) >= 2000 for text in p.canary)) >= 0.03
    assert share(drawn, lambda p: "\u00e9" in p.canary or "e\u0301" in p.canary) >= 0.03
    assert share(drawn, lambda p: any("\n" in text for text in p.canary)) >= 0.03


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_given_canary_text_is_on_its_side_alone(adjacency):
    strategy = snap.neighbouring_texts(canary="Yes", labels=["sport", "news"], adjacency=adjacency)
    for pair in draws(strategy, 300):
        assert [text for text, _ in pair.canary].count("Yes") == 1
        assert "Yes" not in [text for text, _ in pair.reference]
        assert {label for _, label in pair.canary} <= {"sport", "news"}


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_one_user_owns_many_rows(adjacency):
    drawn = draws(snap.neighbouring_grouped(adjacency=adjacency, max_rows_per_user=6, bounds=(0.0, 1.0)))

    def owned(side):
        return [row for user, row in side if user == 0]

    for pair in drawn:
        others = [[entry for entry in side if entry[0] != 0] for side in pair]
        assert same(*others), "rows of other users changed"
        assert pair.distance == max(len(owned(side)) for side in pair)
        assert adjacency == "replace-one" or not owned(pair.reference)
    assert share(drawn, lambda p: p.distance == 6) >= 0.1
    assert share(drawn, lambda p: p.distance == 1) >= 0.01
    assert share(drawn, lambda p: all(user == 0 for user, _ in p.canary)) >= 0.03
    assert share(drawn, lambda p: has_duplicates([row for _, row in p.canary])) >= 0.1
    scattered = [p for p in drawn if p.distance > 1 and p.canary[0][0] == 0 and p.canary[-1][0] != 0]
    assert len(scattered) >= 20


@pytest.mark.parametrize("content", ["rows", "vectors", "histograms", "texts", "grouped"])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_neighbours_differ_by_one_row_at_most_and_never_by_nothing(content, adjacency):
    for pair in draws(snap.neighbours(content, adjacency=adjacency), 300):
        reference, canary = pair
        assert pair.adjacency == adjacency
        assert not same(reference, canary)
        if content in ("rows", "vectors", "texts"):
            grown = len(canary) - len(reference)
            assert grown == (adjacency == "add-remove")
            ours, theirs = (Counter(map(as_code, side)) for side in pair)
            assert (theirs - ours).total() == 1
            assert (ours - theirs).total() == (adjacency == "replace-one")


def test_rows_of_the_callers_own_kind():
    categories = draws(snap.neighbouring_rows(elements=["a", "b"], adjacency="replace-one"), 100)
    assert {row for pair in categories for row in pair.canary} == {"a", "b"}
    records = st.fixed_dictionaries({"age": st.integers(0, 120)})
    drawn = draws(snap.neighbouring_rows(elements=records), 50)
    assert all(0 <= row["age"] <= 120 for pair in drawn for row in pair.canary)


def test_epsilons():
    drawn = draws(st.lists(snap.epsilons(), min_size=10, max_size=10), 100)
    values = [value for ten in drawn for value in ten]
    assert all(1e-3 <= value <= 50.0 for value in values)
    assert {1e-3, 0.1, 1.0, 8.0, 16.0, 50.0} <= set(values)
    assert share(values, lambda e: e < 0.1) >= 0.05
    assert share(values, lambda e: e >= 16.0) >= 0.1
    assert set(draws(snap.epsilons(min_epsilon=2.0, max_epsilon=2.0))) == {2.0}


def test_deltas():
    near = {0.01, math.nextafter(0.01, 0.0), math.nextafter(0.01, 1.0), 0.005, 0.0001}
    drawn = draws(st.lists(snap.deltas(n=100), min_size=10, max_size=10), 100)
    values = [value for ten in drawn for value in ten]
    assert near | {0.0, 1e-12, 1e-5, 0.1} <= set(values)
    assert all(0.0 <= value <= 0.1 for value in values)
    assert share(values, lambda d: d in near) >= 0.1
    assert set(draws(snap.deltas(max_delta=0.0))) == {0.0}
    assert min(draws(snap.deltas(min_delta=1e-12))) == 1e-12


def test_budgets_and_claims_respect_their_limits():
    for epsilon, delta in draws(snap.privacy_budgets(min_epsilon=0.5, max_epsilon=2.0, min_delta=1e-6), 200):
        assert 0.5 <= epsilon <= 2.0
        assert 1e-6 <= delta <= 0.1
    for claim in draws(snap.claims(max_epsilon=4.0, max_delta=0.0), 200):
        assert claim.epsilon <= 4.0
        assert claim.delta == 0.0


def test_one_partition_and_more_partitions_than_exemplars_are_always_likely():
    drawn = draws(st.lists(snap.partitions(exemplars=40), min_size=10, max_size=10), 100)
    values = [value for ten in drawn for value in ten]
    assert share(values, lambda t: t == 1) >= 0.05
    assert share(values, lambda t: t == 40) >= 0.05
    assert share(values, lambda t: t > 40) >= 0.2
    assert max(values) == 80
    assert max(draws(snap.partitions(8, exemplars=40))) == 8


def test_counts_stay_within_their_limits_and_reach_them():
    assert set(draws(snap.expert_counts(5))) == {1, 2, 3, 4, 5}
    assert {1, 2, 3, 384, 768, 1024} <= set(draws(snap.dimensions()))
    assert max(draws(snap.dimensions(8))) == 8
    assert set(draws(snap.top_k(candidates=3))) == {1, 2, 3, 4}
    assert set(draws(snap.top_k(2, candidates=3))) == {1, 2}


def test_clipping_bounds():
    drawn = draws(snap.clipping_bounds(magnitude=100.0))
    assert {(0.0, 1.0), (-1.0, 1.0), (2.0, 3.0), (-1.0, 3.0), (-3.0, -2.0), (-100.0, 100.0)} <= set(drawn)
    assert all(-100.0 <= low < high <= 100.0 for low, high in drawn)
    assert all(-0.5 <= low < high <= 0.5 for low, high in draws(snap.clipping_bounds(magnitude=0.5), 200))
