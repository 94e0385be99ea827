"""Draws print as code that rebuilds them, and a neighbouring pair behaves like the tuple it is."""

from __future__ import annotations

import copy
import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategy_draws import QUIET, draws, simplest

import pytest_snapaudit
from pytest_snapaudit import strategies as snap
from pytest_snapaudit.strategies.pairs import NeighbouringPair, as_code, same

NAMES = {**vars(snap), "PrivacyClaim": pytest_snapaudit.PrivacyClaim}
FAMILIES = ["additive-noise", "private-voting", "embedding-space", "selection", "histogram", "quantile"]
STRATEGIES = {
    "claims": snap.claims(n=100),
    "budgets": snap.privacy_budgets(),
    "bounds": snap.clipping_bounds(),
    **{
        f"{content}, {adjacency}": snap.neighbours(content, adjacency=adjacency)
        for content in ("rows", "vectors", "histograms", "texts", "grouped")
        for adjacency in ("add-remove", "replace-one")
    },
    **{family: snap.adversarial(family).strategy for family in FAMILIES},
}


def evaluate(code):
    return eval(code, {"float": float}, NAMES)


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_repr_of_a_draw_evaluates_to_it(name):
    for value in draws(STRATEGIES[name], 200):
        code = repr(value)
        again = evaluate(code)
        assert type(again) is type(value)
        assert repr(again) == code
        if "nan" not in code:
            assert again == value


@pytest.mark.parametrize("family", FAMILIES)
def test_must_try_configurations_evaluate_too(family):
    for config in snap.adversarial(family).must_try:
        assert repr(evaluate(repr(config))) == repr(config)


@pytest.mark.parametrize("name", ["rows, replace-one", "grouped, add-remove", "additive-noise", "quantile"])
def test_the_failing_example_that_hypothesis_prints_can_be_pasted(name):
    @settings(max_examples=500, print_blob=False, **QUIET)
    @given(drawn=STRATEGIES[name])
    def audit(drawn):
        assert "nan" not in repr(drawn)

    with pytest.raises(AssertionError) as failure:
        audit()
    notes = "\n".join(failure.value.__notes__)
    call = notes[notes.index("audit(") :]
    call = call[: call.index("\n)") + 2]
    pasted = eval(call, {"audit": dict}, NAMES)
    assert "float('nan')" in repr(pasted["drawn"])


def test_claims_print_as_calls():
    assert repr(simplest(snap.claims())) == "PrivacyClaim(epsilon=1.0, delta=0.0)"


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (math.nan, "float('nan')"),
        (-math.inf, "float('-inf')"),
        ([1.0, math.inf], "[1.0, float('inf')]"),
        ((math.nan,), "(float('nan'),)"),
        ({"a": [math.nan]}, "{'a': [float('nan')]}"),
        ("nan", "'nan'"),
        (-0.0, "-0.0"),
        (NeighbouringPair([1], [2]), "NeighbouringPair([1], [2], 'replace-one')"),
        (
            NeighbouringPair([], [(0, 1.0)] * 2, "add-remove", distance=2),
            "NeighbouringPair([], [(0, 1.0), (0, 1.0)], 'add-remove', distance=2)",
        ),
    ],
)
def test_as_code(value, code):
    assert as_code(value) == code


def test_a_pair_is_a_tuple_of_its_two_sides():
    pair = NeighbouringPair([1.0], [2.0], "replace-one")
    reference, canary = pair
    assert (reference, canary) == pair == ([1.0], [2.0])
    assert isinstance(pair, tuple)
    assert len(pair) == 2
    assert (pair.reference, pair.canary) == (pair[0], pair[1])
    assert (pair.adjacency, pair.distance) == ("replace-one", 1)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copies_keep_adjacency_and_distance(copied):
    pair = copied(NeighbouringPair([], [(0, 1.0)] * 3, "add-remove", 3))
    assert repr(pair) == "NeighbouringPair([], [(0, 1.0), (0, 1.0), (0, 1.0)], 'add-remove', distance=3)"


def test_a_pair_is_immutable():
    with pytest.raises(AttributeError, match="immutable; build a new one instead of setting distance"):
        NeighbouringPair([1], [2]).distance = 2


def test_a_configuration_survives_asdict():
    config = snap.adversarial("histogram").must_try[0]
    assert dataclasses.asdict(config)["neighbours"] == config.neighbours


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([1], [2], "substitute"), ValueError, 'adjacency must be one of "add-remove", "replace-one"'),
        (([1], [2], "replace-one", 0), ValueError, "distance must be an integer of at least 1, got 0"),
        (([1], [2], "replace-one", 1.5), TypeError, "distance must be an integer of at least 1, got 1.5"),
    ],
)
def test_a_pair_checks_its_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        NeighbouringPair(*arguments)


@given(
    st.recursive(st.floats() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.tuples(inner))
)
def test_content_is_the_same_as_its_copy(value):
    assert same(value, copy.deepcopy(value))


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (math.nan, math.nan, True),
        (0.0, -0.0, True),
        ([0.0, math.nan], [-0.0, math.nan], True),
        (math.nan, 0.0, False),
        ([1.0], (1.0,), False),
        ([1.0], [1.0, 2.0], False),
        ("a", "b", False),
    ],
)
def test_same(a, b, equal):
    assert same(a, b) is equal


def test_arrays_of_the_callers_own_elements_can_be_compared():
    import numpy as np

    arrays = st.sampled_from([0.0, 1.0]).map(lambda value: np.full(2, value))
    pair = simplest(snap.neighbouring_rows(elements=arrays, adjacency="replace-one"))
    assert [side[0].tolist() for side in pair] == [[0.0, 0.0], [1.0, 1.0]]
