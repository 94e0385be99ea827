"""The marker's own validation."""

import numpy as np
import pytest

from pytest_snapaudit import InvalidClaim, privacy_audit


def test_it_returns_a_marker_that_holds_what_was_stated():
    mark = privacy_audit(epsilon=1, delta=1e-5, confidence=0.95, views={"black-box"}, n_trials=np.int64(500))
    assert isinstance(mark, pytest.MarkDecorator)
    assert mark.name == "privacy_audit"
    assert mark.kwargs == {
        "epsilon": 1.0,
        "delta": 1e-5,
        "confidence": 0.95,
        "views": ("black-box",),
        "n_trials": 500,
    }
    assert type(mark.kwargs["n_trials"]) is int


def test_what_is_not_stated_is_inherited():
    assert privacy_audit().kwargs == {}


def test_it_marks_functions_and_classes_without_wrapping_them():
    def test_function():
        pass

    class TestClass:
        pass

    assert privacy_audit(epsilon=1.0)(test_function) is test_function
    assert privacy_audit(epsilon=1.0)(TestClass) is TestClass
    assert [mark.kwargs for mark in test_function.pytestmark] == [{"epsilon": 1.0}]


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"epsilon": -1}, InvalidClaim, r"epsilon must be a finite number above 0, got -1\."),
        ({"epsilon": float("nan")}, InvalidClaim, r"epsilon must be a finite number above 0, got nan\."),
        ({"epsilon": "1"}, InvalidClaim, r"epsilon must be a finite number above 0, got '1' of type str\."),
        (
            {"epsilon": True},
            InvalidClaim,
            r"epsilon must be a finite number above 0, got True of type bool\.",
        ),
        ({"delta": 1.0}, InvalidClaim, r"delta must be a number in \[0, 1\), got 1\.0\."),
        ({"delta": [0]}, InvalidClaim, r"delta must be a number in \[0, 1\), got \[0\] of type list\."),
        ({"confidence": 1}, ValueError, r"confidence must be a number strictly between 0 and 1, got 1\."),
        (
            {"confidence": "95%"},
            TypeError,
            r"confidence must be a number strictly between 0 and 1, got '95%' of",
        ),
        ({"views": "black-box"}, TypeError, r"views must be a collection of .*, got 'black-box'\."),
        ({"views": ["grey-box"]}, ValueError, r"views must be a collection of .*, got \['grey-box'\]\."),
        ({"n_trials": 0}, ValueError, r"n_trials must be a positive integer, got 0\."),
        ({"n_trials": 1e5}, TypeError, r"n_trials must be a positive integer, got 100000\.0 of type float\."),
        (
            {"n_snapshots": True},
            TypeError,
            r"n_snapshots must be a positive integer, got True of type bool\.",
        ),
        ({"max_checks": -2}, ValueError, r"max_checks must be a positive integer, got -2\."),
        ({"detects": 1.0}, ValueError, r"detects must be a finite number above 1, got 1\.0\."),
        ({"detects": float("inf")}, ValueError, r"detects must be a finite number above 1, got inf\."),
        ({"detects": "2"}, TypeError, r"detects must be a finite number above 1, got '2' of type str\."),
    ],
    ids=str,
)
def test_values_that_are_not_accepted_are_named(keywords, error, message):
    with pytest.raises(error, match=message):
        privacy_audit(**keywords)


def test_without_parentheses_the_right_spelling_is_given():
    with pytest.raises(
        InvalidClaim,
        match=r"needs parentheses: write @privacy_audit\(epsilon=1\.0, delta=1e-5\) .* above test_it\.",
    ):

        @privacy_audit
        def test_it():
            pass


def test_positional_arguments_are_refused():
    with pytest.raises(
        TypeError, match=r"privacy_audit takes keywords only, got 1\.0: write @privacy_audit\("
    ):
        privacy_audit(1.0)
    with pytest.raises(TypeError, match=r"unknown keyword 'eps' with value 1\.0\. .*Did you mean 'epsilon'"):
        privacy_audit(eps=1.0)
