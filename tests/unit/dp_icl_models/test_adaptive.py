"""Snapshots of as many rows as the answer needs: when recording stops, what it costs, and that it stays valid."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from fake_models import CountingLanguage
from numpy.typing import NDArray
from scipy.stats import binom

from dp_icl.models import JournaledLanguageModel, record_adaptively
from dp_icl.models.adaptive import look_sizes

EXAMPLE = Path(__file__).parents[3] / "examples" / "dp_icl"
RUNS = 5 * int(os.environ.get("SNAPAUDIT_SEEDS", "6"))
ALPHA, DELTA = 0.05, 1e-5


@pytest.fixture(scope="module")
def adaptive() -> Iterator[ModuleType]:
    """The module ``adaptive`` of the example, imported apart from any module of the same name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXAMPLE)
        patch.delitem(sys.modules, "adaptive", raising=False)
        import adaptive

        yield adaptive
        sys.modules.pop("adaptive", None)


def numbers(dataset: str, first: int, count: int) -> NDArray[np.float64]:
    """Row i of a dataset is i, with the sign of its side."""
    return np.arange(first, first + count) * (1.0 if dataset == "canary" else -1.0)


class Bounds:
    """Says what it was told to say, look by look, and remembers the rows."""

    def __init__(self, *said: tuple[float, float]) -> None:
        self.said, self.seen = list(said), []  # type: ignore[var-annotated]

    def __call__(self, reference: NDArray[Any], canary: NDArray[Any]) -> tuple[float, float]:
        self.seen.append((len(reference), len(canary)))
        return self.said[len(self.seen) - 1]


BOTH = ("reference", "canary")


@pytest.mark.parametrize(
    ("said", "options", "reason", "rows"),
    [
        ([(0.0, 9.0), (1.1, 9.0)], {"claim": 1.0}, "claim refuted", 20),
        ([(0.0, 9.0), (0.0, 1.0)], {"claim": 1.0}, "claim not refutable", 20),
        ([(0.0, 9.0), (1.0, 9.0), (1.0, 8.0)], {"claim": 1.0}, "all rows", 40),
        ([(0.0, 9.0), (0.4, 0.6)], {"tolerance": 0.21}, "tolerance", 20),
        ([(0.5, 9.0), (0.1, 0.6)], {"tolerance": 0.11}, "tolerance", 20),
        ([(0.0, 9.0)] * 3, {"claim": 1.0, "tolerance": 0.1}, "all rows", 40),
        ([(2.0, math.inf)], {"claim": 1.0}, "claim refuted", 10),
    ],
)
def test_recording_stops_when_more_rows_could_not_matter(said, options, reason, rows) -> None:
    bound = Bounds(*said)
    found = record_adaptively(numbers, BOTH, bound, partitions=3, looks=(10, 20, 40), **options)
    assert (found.reason, found.rows) == (reason, rows)
    assert bound.seen == [(n, n) for n in (10, 20, 40) if n <= rows]
    np.testing.assert_array_equal(found.canary, np.arange(rows))
    np.testing.assert_array_equal(found.reference, -np.arange(rows, dtype=float))
    assert [look.rows for look in found.looks] == [n for n, _ in bound.seen]
    assert found.epsilon_lower == max(lower for lower, _ in said)
    assert found.calls == 2 * rows * 3
    assert found.fixed_calls == 2 * 40 * 3


def test_the_report_compares_with_the_fixed_size() -> None:
    found = record_adaptively(numbers, BOTH, lambda a, b: (1.25, 3.0), partitions=4, claim=1.0)
    assert str(found) == (
        "claim refuted after 125 of 2,000 rows per side: epsilon >= 1.25; "
        "1,000 model calls instead of 16,000 (6.2%)"
    )


def test_looks_double_up_to_the_fixed_size() -> None:
    assert look_sizes() == (125, 250, 500, 1000, 2000)
    assert look_sizes(300, first=200) == (200, 300)
    assert look_sizes(100, first=200) == (100,)
    with pytest.raises(ValueError, match="first must be a positive integer, got 0"):
        look_sizes(first=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give claim, tolerance or both"),
        ({"claim": -1.0}, "claim must be a finite number of at least 0, got -1.0"),
        ({"tolerance": math.inf}, "tolerance must be a finite number"),
        ({"claim": 1.0, "looks": ()}, "looks must be increasing numbers of rows"),
        ({"claim": 1.0, "looks": (10, 10)}, r"increasing numbers of rows, got \[10, 10\]"),
        ({"claim": 1.0, "looks": (0, 10)}, "looks must be a positive integer, got 0"),
        ({"claim": 1.0, "partitions": 0}, "partitions must be a positive integer, got 0"),
    ],
)
def test_arguments_are_checked_before_anything_is_recorded(options: dict[str, Any], message: str) -> None:
    def record(dataset: str, first: int, count: int) -> NDArray[np.float64]:
        raise AssertionError

    with pytest.raises(ValueError, match=message):
        record_adaptively(record, BOTH, Bounds(), **{"partitions": 1, **options})


def test_a_recorder_or_a_bound_that_breaks_its_contract_is_an_error() -> None:
    with pytest.raises(
        ValueError, match=r"first=0, count=5\) must return 5 rows, got an array of shape \(4,\)"
    ):
        record_adaptively(lambda d, i, n: np.zeros(n - 1), BOTH, Bounds(), partitions=1, claim=1, looks=(5,))
    for said in ((2.0, 1.0), (math.nan, 1.0)):
        with pytest.raises(ValueError, match=r"lower at most upper, got .* at 5 rows per side"):
            record_adaptively(numbers, BOTH, Bounds(said), partitions=1, claim=1, looks=(5,))


def test_an_interrupted_recording_resumes_from_the_journal(tmp_path: Path) -> None:
    def recording(inner: CountingLanguage, looks: tuple[int, ...]) -> tuple[Any, JournaledLanguageModel]:
        model = JournaledLanguageModel(inner, tmp_path / "calls.journal.sqlite", chunk=5)

        def rows(dataset: str, first: int, count: int) -> NDArray[np.str_]:
            seeds = list(range(first, first + count))
            return np.asarray(model.complete([dataset] * count, temperature=1.0, seed=seeds))

        found = record_adaptively(
            rows, BOTH, lambda a, b: (0.0, 9.0), partitions=1, tolerance=0.0, looks=looks
        )
        return found, model

    with pytest.raises(KeyboardInterrupt):
        recording(CountingLanguage(dies_at=5), (10, 20))
    found, model = recording(CountingLanguage(), (10, 20))
    assert (model.calls.made, model.calls.resumed) == (15, 25)
    assert len(set(found.canary.tolist())) == found.rows == 20
    bigger, model = recording(CountingLanguage(), (20, 25))
    assert model.calls.made == 10
    np.testing.assert_array_equal(bigger.canary[:20], found.canary)


def noisy_votes(rows: NDArray[Any], rng: np.random.Generator) -> NDArray[np.float64]:
    return rows + rng.normal(0.0, 1.0, rows.shape)


def sampled_votes(rates: dict[str, float], seed: int) -> Any:
    """A random clean stage: each row is 0 or 2, the latter with the side's probability."""

    def record(dataset: str, first: int, count: int) -> NDArray[np.float64]:
        rows = np.random.default_rng([seed, len(dataset)]).random(first + count)[first:]
        return 2.0 * (rows < rates[dataset])

    return record


def bound_of(adaptive: ModuleType, rates: dict[str, float], seed: int, planned: int, draws: int = 4) -> Any:
    tuning = tuple(sampled_votes(rates, 10_000 + seed)(side, 0, 50) for side in BOTH)
    return adaptive.RowwiseBettingBound(
        noisy_votes, lambda out: out > 1.0, tuning, planned, DELTA, ALPHA, draws=draws, seed=seed
    )


def event_rate(rate: float) -> float:
    """Probability of a noisy vote above 1."""
    above = 0.5 * (1.0 + math.erf(1.0 / math.sqrt(2.0)))
    return rate * above + (1.0 - rate) * (1.0 - above)


def test_equal_laws_are_refuted_no_more_often_than_alpha(adaptive: ModuleType) -> None:
    """Looks at every 25 rows from equal laws: at most the 99.9 % point of a binomial at alpha finds ε > 0."""
    same = {"reference": 0.5, "canary": 0.5}
    looks = tuple(range(25, 201, 25))
    found = [
        record_adaptively(
            sampled_votes(same, seed),
            BOTH,
            bound_of(adaptive, same, seed, 200),
            partitions=1,
            claim=0.0,
            looks=looks,
        )
        for seed in range(RUNS)
    ]
    wrong = sum(one.epsilon_lower > 0.0 for one in found)
    print(f"figures: {wrong} of {RUNS} null runs refuted, bound {binom.ppf(0.999, RUNS, ALPHA):.0f}")
    assert wrong <= binom.ppf(0.999, RUNS, ALPHA)


def test_the_bounds_enclose_the_truth_at_every_look_at_once(adaptive: ModuleType) -> None:
    """Both bounds of every look hold at once, but for the 99.9 % point of a binomial at alpha."""
    rates = {"reference": 0.1, "canary": 0.6}
    truth = math.log((event_rate(0.6) - DELTA) / event_rate(0.1))
    wrong = 0
    for seed in range(RUNS):
        found = record_adaptively(
            sampled_votes(rates, seed),
            BOTH,
            bound_of(adaptive, rates, seed, 200),
            partitions=1,
            tolerance=0.0,
            looks=tuple(range(25, 201, 25)),
        )
        assert found.rows == 200
        wrong += any(not look.epsilon_lower <= truth <= look.epsilon_upper for look in found.looks)
    print(f"figures: {wrong} of {RUNS} runs missed the truth, bound {binom.ppf(0.999, RUNS, ALPHA):.0f}")
    assert wrong <= binom.ppf(0.999, RUNS, ALPHA)


def test_looking_all_the_time_with_a_bound_for_one_look_would_not_be_valid() -> None:
    """Why the contract asks for it: a bound for a fixed number of rows, at full alpha at every look, fails."""

    def one_look(reference: NDArray[Any], canary: NDArray[Any]) -> tuple[float, float]:
        n = len(canary)
        spread = 1.6449 * math.sqrt(2 * 0.25 / n)
        return float(canary.mean() / 2 - reference.mean() / 2 > spread), 9.0

    same = {"reference": 0.5, "canary": 0.5}
    wrong = sum(
        record_adaptively(
            sampled_votes(same, seed),
            BOTH,
            one_look,
            partitions=1,
            claim=0.5,
            looks=tuple(range(10, 401, 10)),
        ).reason
        == "claim refuted"
        for seed in range(80)
    )
    assert wrong > binom.ppf(0.999, 80, ALPHA)


def test_a_gross_violation_and_an_idle_claim_are_settled_early(adaptive: ModuleType) -> None:
    rates = {"reference": 0.1, "canary": 0.9}
    truth = math.log(event_rate(0.9) / event_rate(0.1))
    rows = {}
    for claim, reason in ((0.4, "claim refuted"), (4.0, "claim not refutable")):
        found = record_adaptively(
            sampled_votes(rates, 1), BOTH, bound_of(adaptive, rates, 1, 2000), partitions=8, claim=claim
        )
        assert found.reason == reason
        assert found.epsilon_lower < truth < found.looks[-1].epsilon_upper
        rows[claim] = found.rows
        print("figures:", found)
    assert max(rows.values()) <= 500
    close = record_adaptively(
        sampled_votes(rates, 1), BOTH, bound_of(adaptive, rates, 1, 2000), partitions=8, claim=truth
    )
    assert close.reason == "all rows"
