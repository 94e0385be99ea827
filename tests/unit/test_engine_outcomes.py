"""Outputs of any type as rows of numbers with named columns."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import math
import uuid
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

from pytest_snapaudit.engine import outcomes
from pytest_snapaudit.engine.audit import audit
from pytest_snapaudit.engine.batches import as_batch
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.errors import MechanismError
from pytest_snapaudit.engine.leaves import (
    KINDS,
    exception_kind,
    is_opaque,
    key_text,
    kind_text,
    label_code,
    leaves,
)
from pytest_snapaudit.engine.mechanism import from_callable, from_sampler
from pytest_snapaudit.engine.outcomes import FORM, Raised, fit_layout
from pytest_snapaudit.engine.uniform import uniform_numbers

NUMBER, NAN, INFINITY, NONE, MISSING, LABEL = (KINDS[name] for name in KINDS)


class Answer(enum.Enum):
    YES = 1
    NO = 2


class Grade(enum.IntEnum):
    LOW = 1


@dataclasses.dataclass
class Noisy:
    value: float
    label: str


Point = namedtuple("Point", "x y")


class FakeTensor:
    """A tensor as torch has them: no ``__float__`` that counts, values behind three calls."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def detach(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return self.values


class Series:
    """A column as pandas and jax have them: an array, and a ``__float__`` that fails."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)

    def __float__(self):
        msg = "only length-1 arrays can be converted"
        raise TypeError(msg)


class Opaque:
    pass


def one(output: Any) -> dict[str, tuple[float, float]]:
    return {path: (value, kind) for path, value, kind in leaves(output)}


@pytest.mark.parametrize(
    ("output", "value", "kind"),
    [
        (1.5, 1.5, NUMBER),
        (-3, -3.0, NUMBER),
        (True, 1.0, NUMBER),
        (np.float32(0.5), 0.5, NUMBER),
        (np.int8(-4), -4.0, NUMBER),
        (np.bool_(True), 1.0, NUMBER),
        (np.longdouble(0.5), 0.5, NUMBER),
        (np.array(2.5), 2.5, NUMBER),
        (fractions.Fraction(1, 4), 0.25, NUMBER),
        (decimal.Decimal("0.25"), 0.25, NUMBER),
        (FakeTensor(3.5), 3.5, NUMBER),
        (Grade.LOW, 1.0, NUMBER),
        (math.inf, math.inf, INFINITY),
        (-np.inf, -math.inf, INFINITY),
        (10**400, math.inf, INFINITY),
        (-(10**400), -math.inf, INFINITY),
        (fractions.Fraction(-(10**400)), -math.inf, INFINITY),
        ("yes", label_code("yes"), LABEL),
        (np.str_("yes"), label_code("yes"), LABEL),
        (b"\x01\xff", label_code("01ff"), LABEL),
        (bytearray(b"\x01\xff"), label_code("01ff"), LABEL),
        (Answer.YES, label_code("Answer.YES"), LABEL),
        (datetime.date(2020, 1, 2), datetime.date(2020, 1, 2).toordinal(), NUMBER),
        (np.datetime64("2020-01-02"), datetime.date(2020, 1, 2).toordinal(), NUMBER),
        (datetime.datetime(1970, 1, 2), 86_400.0, NUMBER),
        (datetime.datetime(1970, 1, 2, tzinfo=datetime.UTC), 86_400.0, NUMBER),
        (datetime.timedelta(minutes=-1), -60.0, NUMBER),
        (datetime.time(1, 2, 3, 500_000), 3723.5, NUMBER),
        (uuid.UUID(int=1), label_code(str(uuid.UUID(int=1))), LABEL),
        (Opaque(), label_code("Opaque"), LABEL),
        (decimal.Decimal("sNaN"), label_code("Decimal"), LABEL),
    ],
)
def test_a_simple_output_is_one_leaf(output, value, kind):
    assert one(output) == {"": (value, kind)}


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        (math.nan, NAN),
        (np.float32("nan"), NAN),
        (decimal.Decimal("nan"), NAN),
        (None, NONE),
        (np.array(None), NONE),
        (ValueError(), exception_kind(ValueError())),
        (KeyboardInterrupt(), exception_kind(KeyboardInterrupt())),
    ],
)
def test_a_simple_output_without_a_value_has_a_kind(output, kind):
    ((path, value, found),) = leaves(output)
    assert (path, found) == ("", kind)
    assert math.isnan(value)


def test_the_message_of_an_exception_is_a_label_of_its_own():
    raised = ValueError("row 17 of <Table at 0x7f00aa> is too large")
    message = "row 17 of <Table at 0x> is too large"
    assert one(raised) == {
        "": (pytest.approx(math.nan, nan_ok=True), exception_kind(raised)),
        ".message": (label_code(message), LABEL),
    }


def test_kinds_and_codes_are_told_apart():
    codes = [*KINDS.values(), *(exception_kind(e()) for e in (ValueError, KeyError, OSError))]
    assert len(set(codes)) == len(codes)
    assert exception_kind(KeyError(1)) == exception_kind(KeyError(2))
    words = [f"word {i}" for i in range(2000)]
    assert len({label_code(word) for word in words}) == 2000
    assert all(label_code(word) == int(label_code(word)) < 2**52 for word in words)
    assert label_code("\ud800") != label_code("?")


@pytest.mark.parametrize(
    ("output", "paths"),
    [
        ([1.0, 2.0], {"()": 2, "[0]": 1, "[1]": 2}),
        ((1, (2,)), {"()": 2, "[0]": 1, "[1]()": 1, "[1][0]": 2}),
        (Point(1, 2), {"()": 2, "[0]": 1, "[1]": 2}),
        (range(2), {"()": 2, "[0]": 0, "[1]": 1}),
        ([], {"()": 0}),
        (np.array([1.0, 2.0]), {"()": 2, "[0]": 1, "[1]": 2}),
        (np.array([[1], [2]]), {"()": 2, "[0]()": 1, "[0][0]": 1, "[1]()": 1, "[1][0]": 2}),
        (FakeTensor([1.0]), {"()": 1, "[0]": 1}),
        (Series([1.0]), {"()": 1, "[0]": 1}),
        ({"a": 1, "b": {"c": 2}}, {"{}": 2, "['a']": 1, "['b']{}": 1, "['b']['c']": 2}),
        ({}, {"{}": 0}),
        ({1: 5, "1": 6, (1, "x"): 7}, {"{}": 3, "[1]": 5, "['1']": 6, "[(1, 'x')]": 7}),
        ({3, 4}, {"{}": 2, "[3]": 1, "[4]": 1}),
        (frozenset({np.int64(3)}), {"{}": 1, "[3]": 1}),
        (Noisy(0.5, "a"), {".value": 0.5, ".label": label_code("a")}),
        (1 + 2j, {".real": 1, ".imag": 2}),
        (np.complex64(1 + 2j), {".real": 1, ".imag": 2}),
        (np.array([(1, 2.5)], dtype=[("a", int), ("b", float)])[0], {"{}": 2, "['a']": 1, "['b']": 2.5}),
    ],
)
def test_an_output_with_parts_has_a_leaf_per_part_and_one_per_size(output, paths):
    assert {path: value for path, (value, _) in one(output).items()} == paths


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("a", "'a'"),
        (np.str_("a"), "'a'"),
        (1, "1"),
        (np.int64(1), "1"),
        (0.5, "0.5"),
        (np.float64(0.5), "0.5"),
        (True, "True"),
        (np.bool_(True), "True"),
        (None, "None"),
        (b"x", "b'x'"),
        (1j, "1j"),
        (Answer.NO, "Answer.NO"),
        ((1, "a", np.int8(2)), "(1, 'a', 2)"),
        (frozenset({"b", "a"}), "{'a', 'b'}"),
        (datetime.date(2020, 1, 2), "2020-01-02"),
        (10**120, hex(10**120)),
        (Opaque(), "Opaque"),
    ],
)
def test_keys_have_texts_that_tell_them_apart_without_addresses(key, text):
    assert key_text(key) == text


def test_opaque_outputs_are_those_of_which_only_the_type_can_be_told():
    assert is_opaque(Opaque())
    assert is_opaque(Opaque)
    for known in (
        1,
        "a",
        b"a",
        None,
        Answer.YES,
        Noisy(1, "a"),
        [Opaque()],
        [],
        {},
        KeyError(),
        math.nan,
        decimal.Decimal(1),
    ):
        assert not is_opaque(known)


def encode(first: Any, n: int, *later: tuple[Any, int]):
    layout = fit_layout([(first, n)])
    return layout, *(layout.encode(raw, size) for raw, size in [(first, n), *later])


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (np.array([1, 2]), [[1.0], [2.0]]),
        (np.array([True, False]), [[1.0], [0.0]]),
        (np.array([[1.0, 2.0], [3.0, 4.0]]), [[1.0, 2.0], [3.0, 4.0]]),
        (np.arange(8).reshape(2, 2, 2), [[0, 1, 2, 3], [4, 5, 6, 7]]),
        (np.array(["a", "b"]), [[label_code("a")], [label_code("b")]]),
        (np.array([b"a", b"b"]), [[label_code("61")], [label_code("62")]]),
        (np.array([1 + 2j, 3j]), [[1.0, 2.0], [0.0, 3.0]]),
        (np.array(["1970-01-02", "1970-01-03"], "datetime64[D]"), [[1.0], [2.0]]),
        (np.array([np.inf, -np.inf]), [[np.inf], [-np.inf]]),
        (FakeTensor([[1.0], [2.0]]), [[1.0], [2.0]]),
        (Series([1.0, 2.0]), [[1.0], [2.0]]),
        ((np.array([1, 2]), np.array([[3, 4], [5, 6]])), [[1, 3, 4], [2, 5, 6]]),
        ({"b": np.array([1, 2]), "a": np.array(["x", "y"])}, [[label_code("x"), 1], [label_code("y"), 2]]),
    ],
)
def test_arrays_become_rows(raw, expected):
    layout, rows = encode(raw, 2)
    assert rows.tolist() == expected
    assert len(layout.columns) == rows.shape[1]
    assert not layout.structured


def test_arrays_of_single_and_double_precision_are_not_copied():
    for dtype in ("f4", "f8"):
        raw = np.zeros((5, 3), dtype)
        _, rows = encode(raw, 5)
        assert np.shares_memory(rows, raw)
    assert encode(np.zeros(5, "f2"), 5)[1].dtype == np.float64


@pytest.mark.parametrize(
    ("raw", "columns"),
    [
        (np.zeros(2), ("output",)),
        (np.zeros((2, 2)), ("coordinate 0", "coordinate 1")),
        ({"x": np.zeros(2), "y": np.zeros((2, 2))}, ("output['x']", "output['y'][0]", "output['y'][1]")),
        ((np.zeros(2), np.zeros(2)), ("output[0]", "output[1]")),
        ([1.5, "a"], ("output", "type of output", "number of unexpected parts")),
        (
            [{"a": [1]}] * 2,
            (
                *("output['a'][0]", "type of output['a'][0]"),
                *("length of output['a']", "type of length of output['a']"),
                *("length of output", "type of length of output"),
                "number of unexpected parts",
            ),
        ),
    ],
)
def test_columns_are_named_after_keys_and_positions(raw, columns):
    layout = fit_layout([(raw, 2)])
    assert set(layout.columns) == set(columns)
    assert len(layout.columns) == len(columns) == layout.encode(raw, 2).shape[1]


def cell(layout, rows, i: int, name: str) -> float:
    return float(rows[i, layout.columns.index(name)])


def test_dicts_with_varying_keys_have_missing_parts():
    layout, rows, later = encode([{"a": 1.0}, {"b": None, "a": math.nan}], 2, ([{"c": 1, "d": 2}, {}], 2))
    assert cell(layout, rows, 0, "type of output['b']") == MISSING
    assert cell(layout, rows, 1, "type of output['b']") == NONE
    assert cell(layout, rows, 1, "type of output['a']") == NAN
    assert [cell(layout, later, i, "number of unexpected parts") for i in (0, 1)] == [2, 0]
    assert [cell(layout, later, i, "type of output['a']") for i in (0, 1)] == [MISSING, MISSING]
    assert [cell(layout, later, i, "length of output") for i in (0, 1)] == [2, 0]


def test_mixed_outputs_are_encoded_by_kind():
    outputs = [1.0, "a", None, math.nan, -math.inf, KeyError(1), [2.0], 10**400]
    layout, rows = encode(outputs, len(outputs))
    kinds = [cell(layout, rows, i, "type of output") for i in range(len(outputs))]
    assert kinds == [NUMBER, LABEL, NONE, NAN, INFINITY, exception_kind(KeyError()), MISSING, INFINITY]


@pytest.mark.parametrize(
    "batch", [[1.0, 2], [1.0, math.nan], [math.inf, -math.inf], [10**400, 1.0], [True, 1.0]]
)
def test_lists_of_numbers_are_encoded_like_any_list(batch):
    layout = fit_layout([(batch, 2)])
    slow = [[value, kind, 0.0] for output in batch for _, value, kind in leaves(output)]
    np.testing.assert_array_equal(layout.encode(batch, 2), np.array(slow))


def test_an_array_is_encoded_like_a_list_where_the_other_side_is_one():
    layout = fit_layout([(np.array([1.5, 2.5]), 2), (["a", "b"], 2)])
    rows = layout.encode(np.array([1.5, 2.5]), 2)
    assert [cell(layout, rows, i, "output") for i in (0, 1)] == [1.5, 2.5]
    both = fit_layout([({"k": np.array([1.5, 2.5])}, 2), ([None, None], 2)])
    assert cell(both, both.encode({"k": np.array([1.5, 2.5])}, 2), 1, "output['k']") == 2.5
    pair = fit_layout([((np.array([1.5, 2.5]),), 2), ([None, None], 2)])
    assert cell(pair, pair.encode((np.array([1.5, 2.5]),), 2), 1, "output[0]") == 2.5


def test_widths_that_differ_between_sides_are_told_apart():
    layout = fit_layout([(np.zeros((3, 2)), 3), (np.ones((3, 4)), 3)])
    narrow, wide = layout.encode(np.zeros((3, 2)), 3), layout.encode(np.ones((3, 4)), 3)
    assert layout.columns[-1] == FORM
    assert narrow[0].tolist()[:2] == [0.0, 0.0]
    assert np.isnan(narrow[0, 2:4]).all()
    assert (narrow[0, -1], wide[0, -1]) == (2.0, 4.0)
    assert layout.names_of(4) == {2.0: "2 values", 4.0: "4 values"}
    later = layout.encode(np.ones((1, 7)), 1)
    assert later.tolist() == [[1.0] * 4 + [7.0]]


def test_a_batch_that_raised_is_told_apart_by_its_exception():
    layout = fit_layout([(np.zeros((3, 2)), 3), (Raised(KeyError("a")), 3)])
    raised = layout.encode(Raised(KeyError("b")), 3)
    assert np.isnan(raised[:, :2]).all()
    assert raised[:, 2].tolist() == [exception_kind(KeyError())] * 3
    assert layout.names_of(2) == {2.0: "2 values", exception_kind(KeyError()): "KeyError: 'a'"}
    assert layout.encode(Raised(OSError()), 3)[0, 2] not in (2.0, raised[0, 2])
    everywhere = fit_layout([(Raised(KeyError("a")), 3), (Raised(OSError()), 3)])
    assert everywhere.columns == (FORM,)
    assert everywhere.encode(Raised(OSError()), 3).tolist() == [[exception_kind(OSError())]] * 3


def test_components_with_other_keys_are_told_apart():
    layout = fit_layout([({"a": np.zeros(2)}, 2), ({"a": np.ones(2), "b": np.full((2, 2), 5.0)}, 2)])
    assert layout.columns == ("output['a']", "output['b'][0]", "output['b'][1]", FORM)
    short, long = (
        layout.encode({"a": np.zeros(2)}, 2),
        layout.encode({"b": np.full((2, 2), 5.0), "a": np.ones(2)}, 2),
    )
    assert long[0, :3].tolist() == [1.0, 5.0, 5.0]
    assert np.isnan(short[0, 1:3]).all()
    names = layout.names_of(3)
    assert names[short[0, 3]] == "keys 'a'"
    assert names[long[0, 3]] == "keys 'a', 'b' (2)"
    later = layout.encode({"b": np.zeros(2), "z": np.zeros(2)}, 2)
    assert later[0, 3] not in names
    assert math.isnan(later[0, 0])
    assert later[0, 1] == 0.0


def test_objects_where_the_first_trials_were_arrays_are_still_outputs():
    for first in (np.zeros((3, 2)), np.zeros(3)):
        layout = fit_layout([(first, 3)])
        width = len(layout.columns)
        later = layout.encode(np.array([[1.0, 2.0], None, "a"], dtype=object), 3)
        assert later.shape == (3, width)
        assert later[0].tolist() == [1.0, 2.0][:width]
        assert np.isnan(later[1:]).all()
        assert np.isnan(layout.encode(Raised(KeyError()), 3)).all()
        assert layout.encode([[1.0, 2.0], [3.0, 4.0]], 2).tolist() == [[1.0, 2.0][:width], [3.0, 4.0][:width]]
    layout = fit_layout([(np.zeros((3, 2)), 3), (np.zeros((3, 1)), 3)])
    kinds = layout.encode([[1.0, 2.0], None, "a", KeyError(), [1.0, None], 5.0], 6)[:, -1]
    assert kinds.tolist() == [2.0, -1 - NONE, -1 - LABEL, exception_kind(KeyError()), -1 - NONE, 1.0]


def test_labels_and_exceptions_that_come_later_are_outputs_too():
    layout, _, later = encode(["a", "b"], 2, (["z", ValueError()], 2))
    assert later[0].tolist() == [label_code("z"), LABEL, 0.0]
    assert later[1, 1] == exception_kind(ValueError())
    raised = layout.encode(Raised(ValueError()), 4)
    assert raised[:, 1].tolist() == [exception_kind(ValueError())] * 4


def test_columns_are_bounded_whatever_the_keys():
    rng = np.random.default_rng(0)
    outputs = [{"always": 1.0, f"key {rng.integers(10**9)}": 1.0} for _ in range(500)]
    layout, rows = encode(outputs, 500)
    assert rows.shape == (500, 401)
    assert cell(layout, rows, 0, "output['always']") == 1.0
    assert 250 < rows[:, -1].sum() < 500


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ([1, 2, 3], "2 outputs were asked for but 3 came back, in a list"),
        (np.zeros((3, 2)), r"2 outputs were asked for but 3 came back, in an array of shape \(3, 2\)"),
        (iter([1, 2]), "2 independent outputs were asked for but a single list_iterator came back"),
        (Opaque(), "a single Opaque came back"),
        ({"a": [1, 2]}, "a dict of outputs must hold arrays of length 2, .* {'a': 'list'}"),
    ],
)
def test_a_batch_must_hold_one_output_per_trial(raw, message):
    layout = fit_layout([(np.zeros(2), 2)])
    for read in (as_batch, layout.encode):
        with pytest.raises(MechanismError, match=message):
            read(raw, 2)


def random_label(dataset, rng):
    return "leak" if dataset and rng.random() < 0.3 else rng.choice(["yes", "no"])


GENERATOR = np.random.default_rng(3)

LEAKS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "a label": (from_callable(lambda d: str(random_label(d, GENERATOR))), ("leak", "yes", "no")),
    "a label in a dict": (from_callable(lambda d: {"vote": random_label(d, GENERATOR)}), ("vote",)),
    "a missing key": (
        from_callable(lambda d: {"n": 1.0} if d and GENERATOR.random() < 0.4 else {"n": 1.0, "rare": 2.0}),
        ("rare", "length of output"),
    ),
    "an unexpected list": (
        from_callable(lambda d: [1.0] * (3 if d else 2)),
        ("length of output", "output[2]"),
    ),
    "a member of a set": (from_callable(lambda d: {"a", "b"} if d else {"a"}), ("'b'", "length of output")),
    "None": (from_callable(lambda d: None if d and GENERATOR.random() < 0.4 else 1.0), ("None", "a number")),
    "an exception": (
        from_callable(lambda d: KeyError() if d and GENERATOR.random() < 0.4 else "fine"),
        ("KeyError", "'fine'", "a label"),
    ),
    "an enumeration": (from_callable(lambda d: Answer.YES if d else Answer.NO), ("Answer.YES", "Answer.NO")),
    "a field": (from_callable(lambda d: Noisy(float(d), "a")), ("output.value",)),
    "bytes": (from_callable(lambda d: b"\x01" if d else b"\x02"), ("x01", "x02")),
    "a huge integer": (from_callable(lambda d: 10**400 if d else 5), ("infinite", "a number", "output")),
    "an imaginary part": (from_callable(lambda d: complex(0, d)), ("imag",)),
    "a component": (
        from_sampler(lambda d, n, rng: {"noise": rng.normal(size=n), "flag": np.full(n, d)}),
        ("output['flag']",),
    ),
    "a label in a component": (
        from_sampler(lambda d, n, rng: {"word": np.array(["no", "yes"])[rng.integers(0, 1 + d, size=n)]}),
        ("'no'", "'yes'"),
    ),
    "an absent component": (
        from_sampler(
            lambda d, n, rng: {"a": rng.random(n)} if d else {"a": rng.random(n), "b": rng.random(n)}
        ),
        ("keys 'a'", "output['b'] is"),
    ),
    "a batch that raises": (
        from_sampler(lambda d, n, rng: rng.random(n) / (1 - np.int64(d)) if not d else 1 / 0),
        ("ZeroDivisionError", "1 values"),
    ),
    "a width": (
        from_sampler(lambda d, n, rng: rng.random((n, 2 + d))),
        ("2 values", "3 values", "coordinate 2 is"),
    ),
    "labels of an array": (
        from_sampler(lambda d, n, rng: rng.choice(["a", "b", "c"][: 2 + d], size=n)),
        ("'c'", "'a'", "'b'"),
    ),
    "a tensor": (from_callable(lambda d: FakeTensor([0.0, d])), ("output[1]",)),
    "a record": (
        from_sampler(lambda d, n, rng: np.array([(d, 1.0)] * n, dtype=[("k", int), ("v", float)])),
        ("'k'",),
    ),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_every_kind_of_leak_is_found_and_described_in_words(leak):
    mechanism, words = LEAKS[leak]
    result = audit(mechanism, (0, 1), PrivacyClaim(0.5), n_trials=1000)
    assert result.violated
    assert any(word in result.attack for word in words), result.attack


class Unreadable(Exception):
    def __str__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    ("atom", "text"),
    [
        (ValueError("row 3 has 2 numbers,\n  not 4"), "ValueError: row 3 has 2 numbers, not 4"),
        (ValueError("x " * 100), "ValueError: " + "x " * 48 + "x..."),
        (KeyError(), "KeyError"),
        (Unreadable(), "Unreadable"),
        (1.5, "float"),
        (None, "NoneType"),
    ],
)
def test_an_exception_is_named_with_the_beginning_of_its_message(atom, text):
    assert kind_text(atom) == text


def test_exceptions_of_one_side_are_reported_with_their_message():
    def ragged(data: list[float]) -> float:
        if len(data) > 1:
            raise ValueError(f"expected one row, got {len(data)}")
        return 0.0

    result = audit(from_callable(ragged), ([1.0], [1.0, 2.0]), PrivacyClaim(1.0), n_trials=1_000)
    assert result.violated
    assert dict(result.diagnostics)["exceptions"] == (
        "0 of the first 500 outputs on the reference; "
        "500 of the first 500 outputs on the canary, mostly ValueError: expected one row, got 2"
    )


FORMS = [
    [1.5, math.nan, -math.inf, 3, True, np.float64(2.5)],
    [[1.5, 2], (math.inf, False), [-0.0, math.nan]],
    [{"a": 1, (2, "b"): 0.5}, {"a": math.nan, (2, "b"): 3}],
    [np.array([[1.5, math.nan], [0.0, 2.0]], np.float32), np.ones((2, 2), np.float32)],
    [np.array(3), np.array(4)],
]


@pytest.mark.parametrize(
    "seen", [*FORMS, [[1.0], "no", None]], ids=["numbers", "lists", "dicts", "arrays", "scalars", "mixed"]
)
@pytest.mark.parametrize("outputs", FORMS, ids=["numbers", "lists", "dicts", "arrays", "scalars"])
def test_uniform_outputs_are_encoded_as_leaf_by_leaf(outputs, seen, monkeypatch):
    layout = fit_layout([(seen, len(seen)), (["other"], 1)])
    at_once = layout.encode(outputs, len(outputs))
    monkeypatch.setattr(outcomes, "uniform_numbers", lambda outputs: None)
    np.testing.assert_array_equal(at_once, layout.encode(outputs, len(outputs)))


@pytest.mark.parametrize(
    "outputs",
    [
        [],
        [[], []],
        [1.0, "a"],
        [[1.0], [1.0, 2.0]],
        [[1.0], 1.0],
        [[1.0, [2.0]], [1.0, [2.0]]],
        [{"a": 1}, {"b": 1}],
        [10**400],
        [np.float32(1)],
        [np.ones(2), np.ones(3)],
        [np.ones(2), np.ones(2, np.float32)],
        [np.array(["a"])],
        [np.zeros((2, 0))],
        [np.ones(1), [1.0]],
    ],
)
def test_outputs_of_other_forms_are_not_uniform(outputs):
    assert uniform_numbers(outputs) is None


def test_a_message_that_tells_of_the_data_is_found():
    def refusing(data: list[int]) -> float:
        if np.random.random() < 0.3:
            raise ValueError(f"row {data[0]} exceeds the bound")
        return float(np.random.normal())

    result = audit(from_callable(refusing), ([17], [42]), PrivacyClaim(1.0), n_trials=2_000)
    assert result.violated
    assert "message" in result.attack


def test_messages_that_tell_nothing_certify_nothing():
    def refusing(data: list[int]) -> float:
        if np.random.random() < 0.3:
            raise ValueError(f"draw {np.random.integers(100)} of {object()} is out of range")
        return float(np.random.normal())

    claim = PrivacyClaim(0.2)
    bounds = [
        audit(
            from_callable(refusing), ([17], [42]), claim, n_trials=1_000, confidence=0.95, seed=seed
        ).epsilon_lower
        for seed in range(8)
    ]
    assert (
        sum(bound > 0 for bound in bounds) <= 3
    )  # the 99.9 % point of 8 audits that err with probability 5 %


def test_masked_entries_are_missing():
    masked = np.ma.MaskedArray([1, 2, 3], mask=[False, True, False])
    for raw in (masked, {"a": masked}, (masked,)):
        layout = fit_layout([(raw, 3), (raw, 3)])
        np.testing.assert_array_equal(layout.encode(raw, 3)[:, 0], [1.0, math.nan, 3.0])


@pytest.mark.parametrize(
    "form", [list, tuple, lambda row: dict(enumerate(row))], ids=["list", "tuple", "dict"]
)
def test_more_numbers_than_leaves_are_read_as_an_array(form):
    rows = np.arange(6 * 300.0).reshape(6, 300)
    outputs = [form(row.tolist()) for row in rows]
    layout = fit_layout([(outputs, 6), (outputs, 6)])
    assert layout.columns[299] == "output[299]"
    np.testing.assert_array_equal(layout.encode(outputs, 6), rows)
    odd = layout.encode([*outputs[:5], ValueError("late")], 6)
    assert odd.shape == (6, 300)
    assert np.isnan(odd[5]).all()
