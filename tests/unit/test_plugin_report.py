"""Numbers and texts of reports."""

import dataclasses
import math

import pytest

from pytest_snapaudit import AuditResult, PrivacyClaim, Verdict
from pytest_snapaudit.engine.result import RateBounds, ViewResult
from pytest_snapaudit.examples import Example
from pytest_snapaudit.report import failure
from pytest_snapaudit.report.junit import properties, replace_properties
from pytest_snapaudit.report.numbers import duration, factor, lower_bound, percent
from pytest_snapaudit.report.rows import AuditRow, worst_first
from pytest_snapaudit.report.terminal import layout

RESULT = AuditResult(
    name="EmbeddingSpaceAggregation(partitions=1)",
    claim=PrivacyClaim(8.0, 1e-5),
    confidence=0.999,
    verdict=Verdict.VIOLATION,
    epsilon_lower=12.2789,
    max_detectable_epsilon=math.inf,
    smallest_factor_caught=8 / 12.2789,
    view="white-box",
    estimator="Gaussian trade-off",
    correction="auto",
    scope="pipeline",
    attack="projection on the difference of the clean outputs",
    n_trials=400_000,
    n_snapshots=1,
    views=(
        ViewResult(
            "white-box",
            True,
            12.2789,
            "Gaussian trade-off",
            "projection",
            rates=RateBounds(0.9, 0.1, 0.89, 0.11, 1000),
            conditional_on="the declared GaussianNoise(sigma=0.6)",
        ),
    ),
    diagnostics=(
        ("clean distance", "clean outputs are 1.98 apart (l2) but the declared sensitivity is 1.0"),
    ),
)


@pytest.mark.parametrize(
    ("bound", "claimed", "text"),
    [
        (12.2789, 8, "12.27"),
        (0.86, 1, "0.86"),
        (1.00004, 1, "1.00004"),
        (1.0000000000000002, 1, "1.0000000000000002"),
        (0.99996, 1, "0.9999"),
        (123456.0, 1, "1.234e+05"),
        (0.0, 1, "0"),
        (math.inf, 1, "inf"),
    ],
)
def test_a_lower_bound_is_rounded_down_but_stays_above_the_claim(bound, claimed, text):
    assert lower_bound(bound, claimed) == text
    assert float(lower_bound(bound, claimed)) <= bound


def test_factors_are_rounded_up():
    assert [factor(value) for value in (1.04, 1.0401, 1.1627, 8.334, 25.0, math.inf)] == [
        "x1.04",
        "x1.05",
        "x1.17",
        "x8.34",
        "x25",
        "-",
    ]


def test_percentages_and_durations():
    assert [percent(value) for value in (0.999, 0.95, 0.9995, 1 - 1e-6)] == [
        "99.9%",
        "95%",
        "99.95%",
        "99.9999%",
    ]
    assert [duration(value) for value in (0.0314, 0.9994, 12.34)] == ["31 ms", "999 ms", "12.3 s"]


def test_the_text_of_a_violation():
    text = failure.violation(
        RESULT, confidence=0.999, example=None, first="", reproduce="pytest path::test --snapaudit-seed=0"
    )
    assert text.splitlines() == [
        "epsilon >= 12.27 > 8 claimed (delta=1e-05, 99.9% confidence)",
        "  EmbeddingSpaceAggregation(partitions=1), white-box, Gaussian trade-off, 400,000 trials per side",
        "  attack: projection on the difference of the clean outputs",
        "  its rate is 0.9 on one side and 0.1 on the other (at least 0.89, at most 0.11; 1,000 trials each)",
        "  conditional on the declared GaussianNoise(sigma=0.6)",
        "  clean distance: clean outputs are 1.98 apart (l2) but the declared sensitivity is 1.0",
        "  reproduce: pytest path::test --snapaudit-seed=0",
    ]


def test_the_first_failing_configuration_is_named_unless_it_is_this_one():
    example = Example(object(), object(), 100, 2)

    def text(first):
        return failure.violation(RESULT, confidence=0.999, example=example, first=first, reproduce="pytest")

    assert "first failing" not in text("")
    assert failure.configuration(RESULT, ([1], [2])).endswith("neighbours=([1], [2])")
    assert "  first failing configuration: Other: epsilon >= 9 > 8 claimed" in text(
        "Other: epsilon >= 9 > 8 claimed"
    )
    assert "at most 202 examples (max_examples=100, 2 explicit)" in text("")


def test_detects_is_met_or_the_weakness_has_a_name():
    weak_audit = dataclasses.replace(
        RESULT, max_detectable_epsilon=9.0, epsilon_lower=7.0, smallest_factor_caught=8 / 7
    )
    assert failure.too_weak(weak_audit, 1.2, reproduce="pytest").startswith(
        "audit too weak: detects=1.2 asks for epsilon 9.6, but 400,000 trials per side can certify at most 9\n"
    )
    weak_pair = dataclasses.replace(
        weak_audit, max_detectable_epsilon=10.9, epsilon_lower=4.0, smallest_factor_caught=2.0
    )
    assert failure.too_weak(weak_pair, 1.2, reproduce="pytest").startswith(
        "pair too weak: detects=1.2 is within reach"
    )
    assert "certifies nothing" in failure.too_weak(
        dataclasses.replace(weak_pair, epsilon_lower=0.0, smallest_factor_caught=math.inf),
        1.2,
        reproduce="pytest",
    )
    strong = dataclasses.replace(weak_pair, epsilon_lower=7.0, smallest_factor_caught=8 / 7)
    assert failure.too_weak(strong, 1.2, reproduce="pytest") == ""


def _row(verdict="CONSISTENT", epsilon_lower=0.5, epsilon=1.0, **changes):
    row = AuditRow.of("test_a.py::test", RESULT, gated=True, seconds=0.1)
    return dataclasses.replace(row, verdict=verdict, epsilon_lower=epsilon_lower, epsilon=epsilon, **changes)


def test_rows_are_sorted_by_verdict_then_by_closeness_to_the_claim():
    rows = [
        _row(epsilon_lower=0.9),
        _row("MEASURED", 9.0),
        _row("VIOLATION", 2.0, expected=True),
        _row(epsilon_lower=1.9, epsilon=2.0),
        _row("INCONCLUSIVE", 3.0, 20.0),
        _row("VIOLATION", 1.1),
    ]
    assert [row.epsilon_lower for row in worst_first(rows)] == [1.1, 2.0, 3.0, 1.9, 0.9, 9.0]
    assert worst_first(reversed(rows)) == worst_first(rows)


def test_a_row_survives_the_way_between_processes():
    row = _row("VIOLATION", 2.0, configurations=7)
    assert AuditRow.from_dict(row.to_dict()) == row
    assert {type(value) for value in row.to_dict().values()} <= {str, int, float, bool}


def test_columns_are_aligned():
    lines = layout([_row("VIOLATION", 2.0, configurations=7), _row("CONSISTENT", 0.25, epsilon=16.0)])
    assert len({line.index("test_a.py" if number else "test") for number, line in enumerate(lines)}) == 1
    assert "worst of 7 configurations: Emb" in lines[1]


def test_results_that_no_seed_repeats_are_marked():
    secure, seeded = layout([_row(reproducible=False), _row()])[1:]
    assert secure.startswith("CONSISTENT* ")
    assert seeded.startswith("CONSISTENT  ")


def test_properties_of_an_earlier_run_are_replaced_and_others_kept():
    existing = [
        ("mine", 1),
        ("snapaudit.verdict", "VIOLATION"),
        ("snapaudit[1].name", "x"),
        ("snapauditor", 2),
    ]
    replace_properties(existing, properties([_row()], seed=5))
    assert existing[:2] == [("mine", 1), ("snapauditor", 2)]
    assert existing[2:4] == [("snapaudit.seed", 5), ("snapaudit.verdict", "CONSISTENT")]
    assert properties([], seed=5) == []
