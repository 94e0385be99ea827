"""Clean stages with the classic faults are caught from a strategy over neighbours alone, in 100 examples.

The oracle is the deterministic sensitivity pass, so what is measured is whether the pair is drawn. For every
fault 19 of 20 Hypothesis seeds must draw one; each correct twin must never be flagged.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter

import numpy as np
import pytest
from hypothesis import Phase, given, seed, settings
from strategy_draws import QUIET

from pytest_snapaudit.engine.errors import MechanismError
from pytest_snapaudit.engine.sensitivity import check_sensitivity
from pytest_snapaudit.strategies import neighbours

SEEDS, EXAMPLES = 20, 100


class Caught(Exception):
    pass


def clamp(value, low=0.0, high=1.0):
    return low if math.isnan(value) else min(max(value, low), high)


def one_sided_sum(rows, rng):
    return sum(min(row, 1.0) for row in rows)


def clipped_sum(rows, rng):
    return sum(map(clamp, rows))


def mean_over_private_n(rows, rng):
    return sum(map(clamp, rows)) / max(len(rows), 1)


def mean_over_public_n(rows, rng):
    return sum(map(clamp, rows)) / 10


def wrapping_sum(rows, rng):
    with np.errstate(over="ignore"):
        return int(np.sum(np.clip(np.array(rows, np.int32), 0, 2**30), dtype=np.int32))


def saturating_sum(rows, rng):
    return min(sum(min(max(row, 0), 2**30) for row in rows), 2**31 - 1)


def histogram_of_seen(rows, rng):
    return Counter(rows)


def histogram_of_domain(rows, rng):
    return [rows.count(name) for name in "abc"]


def rows_of_every_user(rows, rng):
    return sum(clamp(row) for _, row in rows)


def one_row_of_every_user(rows, rng):
    return sum({user: clamp(row) for user, row in rows}.values())


def nan_through_a_clamp(rows, rng):
    return float(np.sum(np.clip(np.array(rows, float), 0.0, 1.0)))


def crashing_median(rows, rng):
    return sorted(map(clamp, rows))[len(rows) // 2]


def guarded_median(rows, rng):
    return sorted([*map(clamp, rows), 0.5])[(len(rows) + 1) // 2]


CASES = {
    "a sum that clips one side": (one_sided_sum, clipped_sum, 1.0, neighbours(bounds=(0.0, 1.0))),
    "the same without stated bounds": (one_sided_sum, clipped_sum, 1.0, neighbours()),
    "the same under replace-one": (one_sided_sum, clipped_sum, 1.0, neighbours(adjacency="replace-one")),
    "a mean over a private n": (mean_over_private_n, mean_over_public_n, 0.1, neighbours()),
    "an integer sum that wraps around": (wrapping_sum, saturating_sum, 2.0**30, neighbours(dtype="int32")),
    "a domain read from the data": (
        histogram_of_seen,
        histogram_of_domain,
        1.0,
        neighbours(elements=["a", "b", "c"]),
    ),
    "a user with many rows": (rows_of_every_user, one_row_of_every_user, 1.0, neighbours("grouped")),
    "NaN through a clamp": (nan_through_a_clamp, clipped_sum, 1.0, neighbours()),
    "NaN through a clamp, replace-one": (
        nan_through_a_clamp,
        clipped_sum,
        1.0,
        neighbours(adjacency="replace-one", bounds=(0.0, 1.0)),
    ),
    "a quantile that crashes": (crashing_median, guarded_median, 1.0, neighbours(bounds=(0.0, 1.0))),
}


def caught(run, strategy, clean, sensitivity):
    @seed(run)
    @settings(max_examples=EXAMPLES, phases=[Phase.generate], **QUIET)
    @given(strategy)
    def search(pair):
        try:
            finding = check_sensitivity(clean, pair, sensitivity, "l1")
        except MechanismError:
            return
        if finding.exceeded:
            raise Caught

    try:
        search()
    except Caught:
        return True
    return False


@pytest.mark.parametrize("fault", CASES)
def test_the_fault_is_drawn(fault):
    faulty, _, sensitivity, strategy = CASES[fault]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        assert sum(caught(run, strategy, faulty, sensitivity) for run in range(SEEDS)) >= SEEDS - 1


@pytest.mark.parametrize("fault", CASES)
def test_the_correct_twin_is_not_flagged(fault):
    _, correct, sensitivity, strategy = CASES[fault]
    assert not any(caught(run, strategy, correct, sensitivity) for run in range(2))
