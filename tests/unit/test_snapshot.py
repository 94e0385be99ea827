from __future__ import annotations

import numpy as np
import pytest
from hypothesis.vendor.pretty import pretty

from pytest_snapaudit.engine.snapshot import Snapshot, SnapshotPair, merge_rows


def counted(rows, weights):
    """Reference implementation of merging: a dictionary keyed by nested tuples."""
    found: dict[object, int] = {}
    for row, weight in zip(rows.tolist(), weights, strict=True):
        key = repr(row)
        found[key] = found.get(key, 0) + int(weight)
    return list(found.values())


def test_from_rows_keeps_distinct_rows_in_order_of_first_appearance():
    snapshot = Snapshot.from_rows([[2, 0], [1, 5], [2, 0], [0, 0], [2, 0]])
    assert snapshot.rows.tolist() == [[2, 0], [1, 5], [0, 0]]
    assert snapshot.counts.tolist() == [3, 1, 1]
    assert snapshot.counts.dtype == np.int64
    assert snapshot.size == 5


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i8", "f2", "f4", "f8", "c8", "c16", "U4", "S3"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
def test_from_rows_agrees_with_a_dictionary_for_every_dtype_and_shape(dtype, shape):
    rows = np.random.default_rng(0).integers(0, 2, (60, *shape)).astype(dtype)
    snapshot = Snapshot.from_rows(rows)
    assert snapshot.rows.dtype == rows.dtype
    assert snapshot.counts.tolist() == counted(rows, np.ones(60))
    ordered = {repr(row) for row in rows.tolist()}
    assert {repr(row) for row in snapshot.rows.tolist()} == ordered


def test_expand_restores_the_multiset_of_evaluations():
    rows = np.random.default_rng(1).integers(0, 3, (100, 2))
    expanded = Snapshot.from_rows(rows).expand()
    assert sorted(expanded.tolist()) == sorted(rows.tolist())


def test_nan_equals_nan_and_zero_equals_minus_zero():
    rows = np.array([[np.nan, 0.0], [np.nan, -0.0], [-np.nan, 0.0], [1.0, np.inf], [1.0, np.inf]])
    snapshot = Snapshot.from_rows(rows)
    assert snapshot.counts.tolist() == [3, 2]
    assert Snapshot.from_rows(np.array([complex(np.nan, 0), complex(np.nan, -0.0), 1j])).counts.tolist() == [
        2,
        1,
    ]


def test_map_merges_equal_results_and_adds_their_counts():
    snapshot = Snapshot(np.array([[1, 2], [2, 1], [5, 5]]), np.array([3, 4, 2]), {"model": "m"})
    mapped = snapshot.map(np.sum)
    assert mapped.rows.tolist() == [3, 10]
    assert mapped.counts.tolist() == [7, 2]
    assert mapped.provenance == {"model": "m"}


def test_map_never_counts_a_nan_result_twice():
    snapshot = Snapshot(np.array([1.0, 2.0, 3.0]), np.array([5, 6, 7]))
    mapped = snapshot.map(lambda row: np.nan if row < 3 else row)
    assert mapped.counts.tolist() == [11, 7]
    assert mapped.size == snapshot.size


def test_map_calls_the_aggregation_once_per_distinct_row():
    calls = []

    def aggregate(row):
        calls.append(row.tolist())
        return row.mean()

    Snapshot(np.array([[1.0, 3.0], [2.0, 4.0]]), np.array([1000, 2000])).map(aggregate)
    assert calls == [[1.0, 3.0], [2.0, 4.0]]


def test_map_of_text_to_numbers():
    pair = SnapshotPair(Snapshot.from_rows([["a", "b"], ["a", "a"]]), Snapshot.from_rows([["b", "b"]]))
    votes = pair.map(lambda row: [np.count_nonzero(row == label) for label in ("a", "b")])
    assert votes.reference.rows.tolist() == [[1, 1], [2, 0]]
    assert votes.canary.rows.tolist() == [[0, 2]]


def test_rows_and_counts_are_read_only_copies():
    rows, counts = np.array([[1.0], [2.0]]), np.array([1, 2])
    snapshot = Snapshot(rows, counts)
    rows[0], counts[0] = 9, 9
    assert snapshot.rows[0, 0] == 1
    assert snapshot.counts[0] == 1
    for array in (snapshot.rows, snapshot.counts):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


def test_merge_rows_of_no_columns_is_one_row():
    rows, counts = merge_rows(np.zeros((4, 0)), np.array([1, 2, 3, 4]))
    assert rows.shape == (1, 0)
    assert counts.tolist() == [10]


@pytest.mark.parametrize(
    ("rows", "counts"),
    [
        ([[1.0]], [0]),
        ([[1.0]], [-1]),
        ([[1.0]], [1.0]),
        ([[1.0]], [1, 2]),
        ([[1.0]], [[1]]),
        ([[1.0]], [True]),
        ([[1.0]], np.array([2**63], dtype=np.uint64)),
        ([[1.0], [2.0]], [2**62, 2**62]),
    ],
)
def test_counts_that_are_not_positive_integers_are_refused(rows, counts):
    with pytest.raises(ValueError, match=r"counts must be .* positive integers, one per row"):
        Snapshot(np.array(rows), np.asarray(counts))


@pytest.mark.parametrize("rows", [3.0, np.zeros((0, 2)), []])
def test_no_rows_are_refused(rows):
    with pytest.raises(ValueError, match="at least one clean output"):
        Snapshot.from_rows(rows)


def test_object_rows_are_refused():
    with pytest.raises(TypeError, match="dtype object"):
        Snapshot.from_rows(np.array([{}, []], dtype=object))
    with pytest.raises(TypeError, match="dtype object"):
        Snapshot.from_rows([[1]]).map(lambda row: None)


def test_map_with_results_of_several_shapes_is_refused():
    with pytest.raises(ValueError, match=r"one shape for every row, got \(1,\) and \(2,\)"):
        Snapshot.from_rows([[1], [2]]).map(lambda row: np.zeros(row[0]))


def test_pair_refuses_other_types_and_shapes():
    side = Snapshot.from_rows([[1.0, 2.0]])
    with pytest.raises(TypeError, match="canary must be a Snapshot, got ndarray"):
        SnapshotPair(side, side.rows)
    with pytest.raises(ValueError, match=r"one shape, got \(2,\) and \(1,\)"):
        SnapshotPair(side, Snapshot.from_rows([[1.0]]))


def test_a_snapshot_prints_its_size_and_not_its_rows():
    side = Snapshot.from_rows(np.zeros((50, 16, 384), np.float32), {"model": "a"})
    assert repr(side) == "Snapshot(1 distinct of 50 rows of shape (16, 384), float32)"
    pair = SnapshotPair(side, side)
    assert repr(pair) == f"SnapshotPair(reference={side!r}, canary={side!r})"
    assert " ".join(pretty(pair).split()) == repr(pair)
