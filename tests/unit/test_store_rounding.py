from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pytest_snapaudit.engine.snapshot import Snapshot, SnapshotPair
from pytest_snapaudit.store import round_rows
from pytest_snapaudit.store.rounding import round_pair

TOLERANCE = 1e-3


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_drift_below_the_tolerance_disappears(dtype):
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(5, 64)).astype(dtype)
    which = rng.permutation(np.repeat(np.arange(5), 40))
    drifted = centres[which] + rng.uniform(-0.4 * TOLERANCE, 0.4 * TOLERANCE, (200, 64)).astype(dtype)
    rounded = round_rows(drifted, TOLERANCE)
    assert rounded.dtype == dtype
    assert len(np.unique(rounded, axis=0)) == 5
    for centre in range(5):
        first = np.flatnonzero(which == centre)[0]
        assert (rounded[which == centre] == drifted[first]).all()


@settings(deadline=None)
@given(
    arrays(
        np.float64,
        (12, 2),
        elements=st.integers(-6, 6).map(lambda k: k * 0.3) | st.sampled_from([np.nan, np.inf]),
    ),
    st.sampled_from([0.1, 0.5, 1.0]),
)
def test_rounding_moves_little_and_twice_changes_nothing(rows, tolerance):
    rounded = round_rows(rows, tolerance)
    moved = ~((rounded == rows) | (np.isnan(rounded) & np.isnan(rows)))
    assert (np.abs(rounded[moved] - rows[moved]) < tolerance).all()
    assert round_rows(rounded, tolerance).tobytes() == rounded.tobytes()
    originals = {row.tobytes() for row in rows}
    assert all(row.tobytes() in originals for row in rounded)


@given(
    arrays(
        np.float64, (25, 3), elements=st.floats(-1e308, 1e308) | st.sampled_from([np.nan, np.inf, 1e-300])
    ),
    st.sampled_from([1e-300, 1e-3, 1.0, 1e300]),
)
@settings(deadline=None)
def test_rounding_is_what_comparing_every_pair_gives(rows, tolerance):
    leaders: list[np.ndarray] = []
    for row, rounded in zip(rows, round_rows(rows, tolerance), strict=True):
        with np.errstate(all="ignore"):
            near = [
                leader
                for leader in leaders
                if (
                    (np.abs(leader - row) < tolerance) | (leader == row) | (np.isnan(leader) & np.isnan(row))
                ).all()
            ]
        if not near:
            leaders.append(row)
        assert rounded.tobytes() == (near or [row])[0].tobytes()


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_the_shortcut_for_distant_rows_never_separates_near_ones(scale):
    """Drift of almost the tolerance in every coordinate, in 500 dimensions, at three magnitudes."""
    rng = np.random.default_rng(0)
    row = scale * rng.normal(size=500)
    tolerance = 1e-3 * scale
    drifted = row + 0.999 * tolerance * rng.choice([-1.0, 1.0], size=(200, 500))
    aligned = row + 0.999 * tolerance * np.array([[1.0], [-1.0]])
    rounded = round_rows(np.concatenate([row[None], drifted, aligned]), tolerance)
    assert (rounded == row).all()


def test_exactly_the_tolerance_apart_stays_apart():
    assert round_rows([[0.0], [0.5], [0.499]], 0.5).tolist() == [[0.0], [0.5], [0.0]]


def test_every_coordinate_must_be_near():
    rows = np.zeros((3, 6))
    rows[1, 5] = 1.0
    rows[2, 0] = 0.01
    assert round_rows(rows, 0.1).tolist() == [rows[0].tolist(), rows[1].tolist(), rows[0].tolist()]


def test_tolerance_is_not_rounded_to_half_precision():
    rows = np.array([[1.0], [1.0]], dtype="f2") + np.array([[0.0], [2**-10]], dtype="f2")
    assert len(np.unique(round_rows(rows, 2**-10 * (1 + 1e-6)))) == 1
    assert len(np.unique(round_rows(rows, 2**-10))) == 2
    assert len(np.unique(round_rows(rows, 1e9))) == 1


def test_anchors_come_first():
    anchors = np.array([[1.0], [2.0]])
    assert round_rows([[1.0001], [3.0], [2.0001]], 0.01, anchors=anchors).tolist() == [[1.0], [3.0], [2.0]]


@pytest.mark.parametrize("rows", [np.array([[1, 2]]), np.array(["a"]), np.array([True]), np.zeros((3, 0))])
def test_other_dtypes_and_empty_rows_are_returned_as_they_are(rows):
    rounded = round_rows(rows, 10.0)
    assert rounded.dtype == rows.dtype
    assert rounded.tolist() == rows.tolist()
    assert rounded is not rows


@pytest.mark.parametrize("tolerance", [0.0, -1.0, np.nan, np.inf, "1", None, True])
def test_tolerances_out_of_range_are_refused(tolerance):
    with pytest.raises(ValueError, match="round_rows: tolerance must be a finite number above 0"):
        round_rows([[1.0]], tolerance)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"rows must have shape \(n, \*shape\)"):
        round_rows(1.0, 0.1)
    with pytest.raises(ValueError, match=r"anchors must hold rows of shape \(1,\), got \(2,\)"):
        round_rows([[1.0]], 0.1, anchors=np.zeros((1, 2)))


def test_both_sides_round_to_common_rows_and_counts_are_kept():
    reference = Snapshot(np.array([[1.0], [1.001], [5.0]]), np.array([2, 3, 4]))
    canary = Snapshot(np.array([[1.002], [7.0]]), np.array([5, 1]))
    rounded = round_pair(SnapshotPair(reference, canary), 0.01)
    assert rounded.reference.rows.tolist() == [[1.0], [5.0]]
    assert rounded.reference.counts.tolist() == [5, 4]
    assert rounded.canary.rows.tolist() == [[1.0], [7.0]]
    assert rounded.canary.counts.tolist() == [5, 1]


def test_sides_of_other_dtypes_are_rounded_apart():
    integers = Snapshot.from_rows(np.array([1, 2]))
    floats = Snapshot.from_rows(np.array([0.9, 0.95, 2.0]))
    rounded = round_pair(SnapshotPair(integers, floats), 0.5)
    assert rounded.reference.rows.tolist() == [1, 2]
    assert rounded.reference.rows.dtype == integers.rows.dtype
    assert rounded.canary.rows.tolist() == [0.9, 2.0]


def test_a_previous_recording_of_another_shape_is_no_anchor():
    pair = SnapshotPair(*(Snapshot.from_rows(np.array([[1.0, 2.0]])) for _ in range(2)))
    previous = SnapshotPair(*(Snapshot.from_rows(np.array([[1.0001]])) for _ in range(2)))
    assert round_pair(pair, 0.1, previous).reference.rows.tolist() == [[1.0, 2.0]]
