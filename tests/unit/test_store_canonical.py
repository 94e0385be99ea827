from __future__ import annotations

import hashlib
import json
from enum import StrEnum

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_snapaudit.store.canonical import entry_key, inputs_digest, normalise, parse_strict
from pytest_snapaudit.store.differences import differing_fields

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
DOCUMENTS = st.dictionaries(
    TEXT,
    st.recursive(
        SCALARS | TEXT, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3)
    ),
    max_size=4,
)


@settings(deadline=None)
@given(DOCUMENTS)
def test_digest_is_that_of_sorted_compact_json(document):
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert inputs_digest(document) == hashlib.sha256(text.encode()).hexdigest()[:32]
    assert inputs_digest(dict(reversed(document.items()))) == inputs_digest(document)
    assert entry_key("a", document) == f"a/{inputs_digest(document)}"


@settings(deadline=None)
@given(DOCUMENTS)
def test_normal_form_survives_json(document):
    normal = normalise(document, "inputs")
    assert repr(parse_strict(json.dumps(normal))) == repr(normal)
    assert differing_fields(normal, normal) == []


@settings(deadline=None)
@given(DOCUMENTS, DOCUMENTS)
def test_documents_differ_exactly_if_their_digests_do(old, new):
    old, new = normalise(old, "inputs"), normalise(new, "inputs")
    assert (differing_fields(old, new) == []) == (inputs_digest(old) == inputs_digest(new))


def test_digest_of_a_known_document():
    expected = hashlib.sha256('{"a":[1,1.0,true,null],"ż":"λ"}'.encode()).hexdigest()
    assert inputs_digest({"ż": "λ", "a": (1, 1.0, True, None)}) == expected[:32]


def test_subclasses_count_as_what_they_are():
    class Label(StrEnum):
        A = "a"

    assert inputs_digest({"x": np.float64(0.5), "y": Label.A}) == inputs_digest({"x": 0.5, "y": "a"})


def nested(depth):
    value: object = 0
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "error", "match"),
    [
        ({1: 2}, TypeError, r"must have string keys, got 1 of type int"),
        ({"x": {"y": b""}}, TypeError, r"inputs\['x'\]\['y'\] must be JSON .* got b'' of type bytes"),
        ({"x": [0, {1, 2}]}, TypeError, r"inputs\['x'\]\[1\] must be JSON .* of type set"),
        ({"x": np.int64(3)}, TypeError, r"of type int64"),
        ({"x": float("nan")}, ValueError, r"inputs\['x'\] must be finite, got nan"),
        ({"x": float("-inf")}, ValueError, r"must be finite, got -inf"),
        ({"x": "\ud800"}, ValueError, "must be text that UTF-8 can encode"),
        ({"\udfff": 1}, ValueError, "a key of inputs must be text that UTF-8 can encode"),
        ({"x": 1 << 5000}, ValueError, "at most 4096 bits, got 5001"),
        ({"x": nested(60)}, ValueError, "^inputs is nested more than 50 levels deep"),
    ],
)
def test_what_json_cannot_hold_is_refused(value, error, match):
    with pytest.raises(error, match=match):
        inputs_digest(value)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ('{"a": 1, "a": 1}', "holds the key 'a' twice"),
        ('{"a": {"b": 1, "b": 2}}', "holds the key 'b' twice"),
        ("[NaN]", "holds NaN"),
        ("[-Infinity]", "holds -Infinity"),
        ("[1e400]", "1e400, which is out of range"),
        ("[" * 100_000, "nested too deeply"),
        ("", "Expecting value"),
        ("{} {}", "Extra data"),
    ],
)
def test_strict_parser_refuses(text, match):
    with pytest.raises(ValueError, match=match):
        parse_strict(text)


def test_differences_name_path_old_and_new():
    old = {"a": {"b": [1, {"c": 2}], "gone": None}, "same": 1, "t": [1, 2]}
    new = {"a": {"b": [1, {"c": 3}]}, "same": 1, "t": [1, 2, 3], "z": {"new": True}}
    assert differing_fields(old, new) == [
        "a.b[1].c: 2 -> 3",
        "a.gone: null -> (absent)",
        "t: [1, 2] -> [1, 2, 3]",
        'z: (absent) -> {"new": true}',
    ]


def test_long_values_are_shown_around_the_difference():
    [line] = differing_fields({"p": "x" * 300 + "A" + "y" * 300}, {"p": "x" * 300 + "B"})
    old, new = line.split(" -> ")
    assert "xxxAyyy" in old
    assert new.endswith('xxxB"')
    assert len(line) < 250
