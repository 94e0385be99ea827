"""Rows that are copies of each other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_icl import equal_rows
from dp_icl.equal_rows import groups_of_equal_rows


def groups(rows):
    return [(row.tolist(), np.arange(len(rows))[where].tolist()) for row, where in groups_of_equal_rows(rows)]


@settings(max_examples=25)
@given(st.lists(st.lists(st.integers(0, 1), min_size=2, max_size=2), max_size=12), st.integers(1, 5))
def test_every_row_is_in_the_group_of_its_value(rows, compared_at_once):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(equal_rows, "_COMPARED_AT_ONCE", compared_at_once)
        found = groups(np.array(rows, np.int64).reshape(-1, 2))
    assert [tuple(row) for row, _ in found] == list(dict.fromkeys(map(tuple, rows)))
    for row, where in found:
        assert where == [i for i, other in enumerate(rows) if other == row]


def test_broadcast_rows_are_not_compared(monkeypatch):
    monkeypatch.setattr(equal_rows, "_all_equal", None)
    assert groups(np.broadcast_to([1, 2, 3], (4, 3))) == [([1, 2, 3], [0, 1, 2, 3])]


def test_rows_that_are_views_of_other_layouts():
    wide = np.array([[1, 9, 2], [1, 8, 2], [3, 7, 4]])
    assert groups(wide[:, ::2]) == [([1, 2], [0, 1]), ([3, 4], [2])]
    assert groups(np.asfortranarray(wide[:2, ::2])) == [([1, 2], [0, 1])]


def test_no_rows_have_no_groups():
    assert groups(np.zeros((0, 3))) == []
