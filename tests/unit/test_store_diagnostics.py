from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.stats import binom

from pytest_snapaudit.engine.snapshot import Snapshot, SnapshotPair
from pytest_snapaudit.store import snapshot_diagnostics, unseen_mass_upper

LAWS = {
    "one likely, one rare": np.array([0.99, 0.01]),
    "rare tail": np.concatenate([[0.9], np.full(100, 0.001)]),
    "uniform 30": np.full(30, 1 / 30),
    "uniform 1000": np.full(1000, 1e-3),
    "geometric": 0.5 ** np.arange(1, 40),
    "Zipf": 1 / np.arange(1, 2001),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n", [20, 200])
def test_the_bound_misses_no_more_often_than_stated(law, n):
    """At 80 % confidence and 400 runs, a valid bound misses more than 109 times with probability 1e-4."""
    probabilities = LAWS[law] / LAWS[law].sum()
    rng = np.random.default_rng(1)
    runs, misses = 400, 0
    for _ in range(runs):
        counts = rng.multinomial(n, probabilities)
        unseen = probabilities[counts == 0].sum()
        misses += unseen > unseen_mass_upper(counts[counts > 0], confidence=0.8)
    assert misses <= binom.isf(1e-4, runs, 0.2)


def test_one_row_seen_always_is_clopper_pearson_on_the_held_out_half():
    assert unseen_mass_upper([2000]) == pytest.approx(1 - 0.025 ** (1 / 1000), rel=1e-12)
    assert unseen_mass_upper([2000], confidence=0.999) == pytest.approx(1 - 0.0005 ** (1 / 1000), rel=1e-12)


def test_many_rows_seen_twice_are_good_turing():
    n = 100_000
    slack = (1 + math.sqrt(2)) * math.sqrt(math.log(2 / 0.025) / n)
    assert unseen_mass_upper([2] * (n // 2)) == pytest.approx(slack, rel=1e-12)
    assert unseen_mass_upper([2] * (n // 2 - 500) + [1] * 1000) == pytest.approx(0.01 + slack, rel=1e-12)


@pytest.mark.parametrize("counts", [[1], [1, 1, 1, 1]])
def test_nothing_is_known_from_rows_all_seen_once(counts):
    assert unseen_mass_upper(counts) == 1.0


def test_more_evaluations_of_the_same_tighten_the_bound():
    bounds = [unseen_mass_upper([n, n]) for n in (5, 50, 500, 5000)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] < 1e-3


@pytest.mark.parametrize("counts", [[], [0], [-1, 2], [[1]], [1.5], 3])
def test_counts_that_are_none_are_refused(counts):
    with pytest.raises(ValueError, match="counts must be positive integers"):
        unseen_mass_upper(counts)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, 2.0, math.nan])
def test_confidence_out_of_range_is_refused(confidence):
    pair = SnapshotPair(Snapshot.from_rows([1.0]), Snapshot.from_rows([2.0]))
    with pytest.raises(ValueError, match=r"confidence must be a number in \(0, 1\)"):
        snapshot_diagnostics(pair, confidence=confidence)
    with pytest.raises(ValueError, match=r"confidence must be a number in \(0, 1\)"):
        unseen_mass_upper([1], confidence=confidence)


def test_a_pair_is_described_in_built_in_types():
    reference = Snapshot(np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([9, 1]))
    canary = Snapshot(np.array([[1.0, 0.0], [3.0, 4.0], [0.0, -8.0]]), np.array([6, 3, 1]))
    found = snapshot_diagnostics(SnapshotPair(reference, canary), confidence=0.9)
    assert found == {
        "confidence": 0.9,
        "reference": {
            "evaluations": 10,
            "distinct_rows": 2,
            "most_frequent_share": 0.9,
            "unseen_mass_upper": unseen_mass_upper([9, 1], confidence=0.9),
        },
        "canary": {
            "evaluations": 10,
            "distinct_rows": 3,
            "most_frequent_share": 0.6,
            "unseen_mass_upper": unseen_mass_upper([6, 3, 1], confidence=0.9),
        },
        "shared_rows": 1,
        "rows_compared": [2, 3],
        "distance_max": {"l1": 15.0, "l2": math.hypot(3, 12), "linf": 12.0},
        "distance_most_frequent": {"l1": 1.0, "l2": 1.0, "linf": 1.0},
    }
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def built_in(value):
    if isinstance(value, dict):
        return all(type(key) is str and built_in(item) for key, item in value.items())
    if isinstance(value, list):
        return all(built_in(item) for item in value)
    return type(value) in (int, float, str, bool, type(None))


@pytest.mark.parametrize("dtype", ["?", "u1", "i8", "f2", "f4", "f8", "c16", "U3"])
def test_every_dtype_gives_built_in_types(dtype):
    rows = np.random.default_rng(0).integers(0, 2, (30, 2, 2)).astype(dtype)
    found = snapshot_diagnostics(
        SnapshotPair(Snapshot.from_rows(rows), Snapshot.from_rows(~rows.astype(bool)))
    )
    assert built_in(found)
    assert (found["distance_max"]["l2"] is None) == (dtype == "U3")


def test_distances_across_blocks_agree_with_broadcasting():
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(700, 5, 8)), rng.normal(size=(650, 5, 8))
    found = snapshot_diagnostics(SnapshotPair(Snapshot.from_rows(left), Snapshot.from_rows(right)))
    gap = np.abs(left.reshape(700, 1, -1) - right.reshape(1, 650, -1))
    assert found["distance_max"]["l1"] == pytest.approx(gap.sum(axis=2).max(), rel=1e-12)
    assert found["distance_max"]["l2"] == pytest.approx(np.linalg.norm(gap, axis=2).max(), rel=1e-12)
    assert found["distance_max"]["linf"] == pytest.approx(gap.max(), rel=1e-12)


def test_complex_distances_across_blocks_agree_with_real_ones():
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(200, 8)), rng.normal(size=(800, 8))
    real = snapshot_diagnostics(SnapshotPair(Snapshot.from_rows(left), Snapshot.from_rows(right)))
    turned = snapshot_diagnostics(SnapshotPair(Snapshot.from_rows(left * 1j), Snapshot.from_rows(right * 1j)))
    assert turned["distance_max"] == pytest.approx(real["distance_max"], rel=1e-12)


def test_complex_distances_use_the_modulus():
    pair = SnapshotPair(Snapshot.from_rows([[0j, 0j]]), Snapshot.from_rows([[3 + 4j, 12j]]))
    assert snapshot_diagnostics(pair)["distance_max"] == {"l1": 17.0, "l2": 13.0, "linf": 12.0}


def test_unsigned_integers_do_not_wrap():
    pair = SnapshotPair(*(Snapshot.from_rows(np.array([[value]], dtype=np.uint8)) for value in (0, 255)))
    assert snapshot_diagnostics(pair)["distance_max"]["l1"] == 255.0


def test_entries_that_are_not_finite():
    same = Snapshot.from_rows([[np.nan, np.inf, 1.0]])
    assert snapshot_diagnostics(SnapshotPair(same, same))["distance_max"]["l2"] == 0.0
    other = Snapshot.from_rows([[0.0, np.inf, 1.0]])
    assert snapshot_diagnostics(SnapshotPair(same, other))["distance_max"] == dict.fromkeys(
        ("l1", "l2", "linf")
    )


def test_only_the_most_frequent_rows_are_compared():
    reference = Snapshot(np.array([[0.0], [100.0], [1.0]]), np.array([5, 1, 3]))
    canary = Snapshot(np.array([[2.0], [-100.0]]), np.array([4, 1]))
    found = snapshot_diagnostics(SnapshotPair(reference, canary), max_rows=1)
    assert found["rows_compared"] == [1, 1]
    assert found["distance_max"]["l1"] == 2.0
    for wrong in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="max_rows must be an integer of at least 1"):
            snapshot_diagnostics(SnapshotPair(reference, canary), max_rows=wrong)


def test_rows_without_coordinates_are_at_distance_zero():
    side = Snapshot(np.zeros((1, 0)), np.array([3]))
    assert snapshot_diagnostics(SnapshotPair(side, side))["distance_max"]["linf"] == 0.0
