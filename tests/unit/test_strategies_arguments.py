"""Wrong arguments are answered where the strategy is built, with the value and what is accepted."""

from __future__ import annotations

import math

import pytest
from hypothesis import strategies as st

from pytest_snapaudit import strategies as snap

CASES = [
    (
        snap.epsilons,
        {"min_epsilon": 0},
        ValueError,
        "epsilons: min_epsilon must be a finite number above 0, got 0.",
    ),
    (
        snap.epsilons,
        {"max_epsilon": math.inf},
        ValueError,
        "max_epsilon must be a finite number above 0, got inf.",
    ),
    (snap.epsilons, {"min_epsilon": "1"}, TypeError, "must be a finite number above 0, got '1' of type str."),
    (
        snap.epsilons,
        {"min_epsilon": 9, "max_epsilon": 8},
        ValueError,
        "must be at most max_epsilon, got 9 > 8.",
    ),
    (
        snap.deltas,
        {"max_delta": 1.0},
        ValueError,
        r"deltas: max_delta must be a number in \[0, 1\), got 1.0.",
    ),
    (snap.deltas, {"min_delta": math.nan}, ValueError, r"min_delta must be a number in \[0, 1\), got nan."),
    (snap.deltas, {"min_delta": 0.5}, ValueError, "must be at most max_delta, got 0.5 > 0.1."),
    (snap.deltas, {"n": 0}, ValueError, "deltas: n must be an integer of at least 1, got 0."),
    (snap.deltas, {"n": True}, TypeError, "n must be an integer of at least 1, got True of type bool."),
    (
        snap.privacy_budgets,
        {"n": 2.0},
        TypeError,
        "n must be an integer of at least 1, got 2.0 of type float.",
    ),
    (snap.claims, {"max_epsilon": -1}, ValueError, "max_epsilon must be a finite number above 0, got -1."),
    (
        snap.partitions,
        {"max_partitions": 0},
        ValueError,
        "max_partitions must be an integer of at least 1, got 0.",
    ),
    (snap.partitions, {"exemplars": -1}, ValueError, "exemplars must be an integer of at least 0, got -1."),
    (
        snap.expert_counts,
        {"max_experts": "8"},
        TypeError,
        "max_experts must be an integer of at least 1, got '8'",
    ),
    (
        snap.dimensions,
        {"max_dimension": 0},
        ValueError,
        "max_dimension must be an integer of at least 1, got 0.",
    ),
    (
        snap.clipping_bounds,
        {"magnitude": 0.0},
        ValueError,
        "magnitude must be a finite number above 0, got 0.0.",
    ),
    (snap.top_k, {"max_k": 0}, ValueError, "top_k: max_k must be an integer of at least 1, got 0."),
    (
        snap.neighbouring_rows,
        {"adjacency": "add"},
        ValueError,
        'must be one of "add-remove", "replace-one"; got',
    ),
    (
        snap.neighbouring_rows,
        {"bounds": (1, 0)},
        ValueError,
        r"bounds must be a \(lower, upper\) pair of finite",
    ),
    (snap.neighbouring_rows, {"bounds": (1, 1)}, ValueError, r"with lower < upper, got \(1, 1\)."),
    (snap.neighbouring_rows, {"bounds": 1.0}, TypeError, r"bounds must be a \(lower, upper\) pair"),
    (
        snap.neighbouring_rows,
        {"bounds": "01"},
        TypeError,
        "pair of finite numbers with lower < upper, got '01'.",
    ),
    (
        snap.neighbouring_rows,
        {"bounds": (0, math.nan)},
        ValueError,
        r"bounds\[1\] must be a finite number, got nan",
    ),
    (
        snap.neighbouring_rows,
        {"dtype": "complex128"},
        TypeError,
        "an integer or floating NumPy dtype such as 'int32'",
    ),
    (snap.neighbouring_rows, {"dtype": None}, TypeError, "got None."),
    (snap.neighbouring_rows, {"dtype": "number"}, TypeError, "got 'number'."),
    (
        snap.neighbouring_rows,
        {"dtype": "int8", "bounds": (500, 600)},
        ValueError,
        "hold at least one int8 value",
    ),
    (
        snap.neighbouring_rows,
        {"dtype": "int8", "bounds": (0.2, 0.8)},
        ValueError,
        "hold at least one int8 value",
    ),
    (
        snap.neighbouring_rows,
        {"dtype": "float16", "bounds": (0, 1e6)},
        ValueError,
        "within the range of float16",
    ),
    (snap.neighbouring_rows, {"allow_nan": 1}, TypeError, "allow_nan must be True or False, got 1."),
    (
        snap.neighbouring_rows,
        {"min_size": 3, "max_size": 2},
        ValueError,
        "max_size must be an integer of at least 3",
    ),
    (
        snap.neighbouring_rows,
        {"adjacency": "replace-one", "max_size": 0},
        ValueError,
        "max_size must be at least 1",
    ),
    (snap.neighbouring_rows, {"elements": ["a"]}, TypeError, "a sequence of at least 2 values, got"),
    (
        snap.neighbouring_rows,
        {"elements": 7},
        TypeError,
        "elements must be a Hypothesis strategy or a sequence",
    ),
    (
        snap.neighbouring_vectors,
        {"dimension": 0},
        ValueError,
        "dimension must be an integer of at least 1, got 0.",
    ),
    (
        snap.neighbouring_vectors,
        {"norm": "l3"},
        ValueError,
        'norm must be one of "l1", "l2", "linf"; got \'l3\'.',
    ),
    (snap.neighbouring_vectors, {"clip_norm": -1.0}, ValueError, "clip_norm must be a finite number above 0"),
    (snap.neighbouring_vectors, {"beyond_bounds": None}, TypeError, "beyond_bounds must be True or False"),
    (snap.neighbouring_histograms, {"bins": 0}, ValueError, "bins must be an integer of at least 1, got 0."),
    (
        snap.neighbouring_histograms,
        {"bins": 1, "adjacency": "replace-one"},
        ValueError,
        "bins must be an integer of at least 2, got 1.",
    ),
    (
        snap.neighbouring_histograms,
        {"total": 0, "adjacency": "replace-one"},
        ValueError,
        "total must be an integer of at least 1, got 0.",
    ),
    (
        snap.neighbouring_histograms,
        {"total": 3, "dtype": "int8"},
        ValueError,
        "give total or dtype, not both",
    ),
    (snap.neighbouring_histograms, {"dtype": "float64"}, TypeError, "dtype must be an integer NumPy dtype"),
    (
        snap.neighbouring_histograms,
        {"max_count": 0},
        ValueError,
        "max_count must be an integer of at least 1",
    ),
    (
        snap.neighbouring_texts,
        {"labels": "ab"},
        TypeError,
        "labels must be a sequence of at least one string",
    ),
    (snap.neighbouring_texts, {"labels": []}, TypeError, r"labels must be a sequence .* got \[\]."),
    (snap.neighbouring_texts, {"canary": 3}, TypeError, "canary must be a string, got 3 of type int."),
    (snap.neighbouring_grouped, {"max_users": -1}, ValueError, "max_users must be an integer of at least 0"),
    (
        snap.neighbouring_grouped,
        {"max_rows_per_user": 0},
        ValueError,
        "max_rows_per_user must be an integer of at",
    ),
    (snap.neighbouring_grouped, {"adjacency": None}, ValueError, "got None."),
    (
        snap.neighbours,
        {"content": "tables"},
        ValueError,
        '"rows", "vectors", "histograms", "texts", "grouped"',
    ),
    (
        snap.neighbours,
        {"adjacence": 1},
        TypeError,
        r'neighbours\("rows"\): unknown option \'adjacence\'; it takes adj',
    ),
    (
        snap.adversarial,
        {"family": "laplace"},
        ValueError,
        'family must be one of "additive-noise", "private-voting"',
    ),
    (
        snap.adversarial,
        {"family": "quantile", "labels": 2},
        TypeError,
        "unknown option 'labels'; it takes bounds",
    ),
    (snap.adversarial, {"family": "quantile", "bounds": (2, 1)}, ValueError, "bounds must be a"),
    (
        snap.adversarial,
        {"family": "additive-noise", "adjacency": "x"},
        ValueError,
        "adjacency must be one of",
    ),
    (
        snap.adversarial,
        {"family": "private-voting", "max_labels": 1},
        ValueError,
        "max_labels must be an integer",
    ),
    (
        snap.adversarial,
        {"family": "private-voting", "max_partitions": 0},
        ValueError,
        "max_partitions must be",
    ),
    (
        snap.adversarial,
        {"family": "embedding-space", "max_dimension": 0},
        ValueError,
        "max_dimension must be",
    ),
    (
        snap.adversarial,
        {"family": "selection", "sensitivity": 0},
        ValueError,
        "sensitivity must be a finite number",
    ),
    (
        snap.adversarial,
        {"family": "histogram", "domain": "abc"},
        TypeError,
        "domain must be a sequence of at least",
    ),
    (snap.adversarial, {"family": "histogram", "min_delta": 2}, ValueError, "min_delta must be a number in"),
    (snap.with_must_try, {"preset": st.integers()}, TypeError, r'preset must come from adversarial\("..."\)'),
]


@pytest.mark.parametrize(("build", "arguments", "error", "message"), CASES)
def test_wrong_arguments_are_refused_at_construction(build, arguments, error, message):
    with pytest.raises(error, match=message):
        build(**arguments)


@pytest.mark.parametrize(
    ("strategy", "text"),
    [
        (snap.neighbours(), "pairs_of(neighbouring_rows())"),
        (
            snap.neighbours("vectors", adjacency="replace-one", norm="l1"),
            "pairs_of(neighbouring_vectors(norm='l1', adjacency='replace-one'))",
        ),
        (
            snap.neighbouring_rows(elements=st.integers(), bounds=(0, 1)),
            "pairs_of(neighbouring_rows(elements=integers(), bounds=(0, 1)))",
        ),
    ],
)
def test_a_strategy_prints_what_was_asked_for(strategy, text):
    assert repr(strategy) == text
