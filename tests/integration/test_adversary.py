"""Hypothesis as the adversary: broken mechanisms that a strategy over neighbouring datasets finds without hints."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from pytest_snapaudit.testing import AuditRun

ROWS = Path(__file__).resolve().parents[2] / "examples" / "dp_icl" / "privacy_snapshots" / "embedding_space"

MECHANISMS = """
from hypothesis import given, settings, strategies as st

from pytest_snapaudit.strategies import neighbours, partitions, privacy_budgets


def finite(rows):
    return np.nan_to_num(np.asarray(rows, dtype=float), nan=0.0)


@dataclass(frozen=True)
class Noisy:
    epsilon: float = 1.0
    sensitivity: float = 1.0
    deterministic = True

    def privatize(self, clean, rng):
        return clean + rng.laplace(0.0, self.sensitivity / self.epsilon, clean.shape)


@dataclass(frozen=True)
class Sum(Noisy):
    lower: float | None = 0.0
    nan_counts_as: float = 0.0

    def clean(self, rows, rng):
        rows = np.nan_to_num(np.asarray(rows, dtype=float), nan=self.nan_counts_as)
        return np.clip(rows, self.lower, 1.0).sum()


@dataclass(frozen=True)
class Mean(Noisy):
    size_is_public: bool = False

    def clean(self, rows, rng):
        return np.array([np.clip(finite(rows), 0.0, 1.0).sum(), len(rows)])

    def privatize(self, clean, rng):
        total, size = clean[:, 0], np.maximum(clean[:, 1], 1.0)
        if self.size_is_public:
            return (total + rng.laplace(0.0, 1.0, len(clean))) / size
        noisy_total = total + rng.laplace(0.0, 2.0, len(clean))
        return noisy_total / np.maximum(size + rng.laplace(0.0, 2.0, len(clean)), 1.0)


@dataclass(frozen=True)
class IntegerSum(Noisy):
    sensitivity: float = 2.0**31
    dtype: str = "int64"

    def clean(self, rows, rng):
        return np.float64(np.asarray(rows, dtype=self.dtype).sum(dtype=self.dtype))


def histogram(domain=None):
    def release(rows, n, rng):
        counted = sorted(set(rows)) if domain is None else domain
        return {"rows": np.zeros(n), **{key: rows.count(key) + rng.laplace(0.0, 1.0, n) for key in counted}}

    return from_sampler(release, name=f"histogram({domain})")


@dataclass(frozen=True)
class Visitors(Noisy):
    one_row_each: bool = False

    def clean(self, rows, rng):
        return float(len(rows) if self.one_row_each else len({user for user, _ in rows}))


@dataclass(frozen=True)
class Median(Noisy):
    assumes_a_row: bool = False

    def clean(self, rows, rng):
        rows, grid = np.sort(finite(rows)), np.linspace(0.0, 1.0, 5)[:, None]
        if self.assumes_a_row:
            rows[len(rows) // 2]
        return -np.abs((rows < grid).sum(axis=1) - (rows > grid).sum(axis=1)).astype(float)

    def privatize(self, clean, rng):
        return np.argmax(clean * self.epsilon / 2 + rng.gumbel(size=clean.shape), axis=1)
"""

CASES = {
    "clips one side only": ("Sum(lower=None)", "Sum()", "neighbours(bounds=(0, 1))"),
    "size leaks": ("Mean(size_is_public=True)", "Mean()", "neighbours(bounds=(0, 1))"),
    "integer overflow": ("IntegerSum(dtype='int32')", "IntegerSum()", "neighbours(dtype='int32')"),
    "domain read from the data": (
        "histogram()",
        "histogram(['a', 'b', 'c'])",
        "neighbours(elements=['a', 'b', 'c'])",
    ),
    "many rows of one user": ("Visitors(one_row_each=True)", "Visitors()", "neighbours('grouped')"),
    "NaN passes a clamp": ("Sum(nan_counts_as=np.nan)", "Sum()", "neighbours(bounds=(0, 1))"),
    "crash on some neighbours": ("Median(assumes_a_row=True)", "Median()", "neighbours(bounds=(0, 1))"),
}


def _suite(mechanism: str, strategy: str, examples: int = 100) -> str:
    return f"""{MECHANISMS}

@privacy_audit(epsilon=1.0)
@settings(database=None, max_examples={examples})
@given(pair={strategy})
def test_it(privacy_auditor, pair):
    privacy_auditor.check({mechanism}, pair)
"""


def _text(run: AuditRun) -> str:
    return run.result.stdout.str()


@pytest.mark.parametrize("case", CASES)
def test_broken_mechanisms_are_found_from_neighbouring_datasets_alone(explored, case):
    """At the profile's settings, 100 examples of 20,000 trials each."""
    broken, _, strategy = CASES[case]
    run = explored(_suite(broken, strategy))
    run.result.assert_outcomes(failed=1)
    assert run.rows[0].verdict == "VIOLATION"
    assert "pair=NeighbouringPair(" in _text(run)
    assert "Flaky" not in _text(run)


@pytest.mark.parametrize("case", [case for case in CASES if case != "NaN passes a clamp"])
def test_their_repaired_twins_pass(explored, case):
    """The repaired sum is the same for both of its bugs."""
    _, repaired, strategy = CASES[case]
    run = explored(_suite(repaired, strategy, examples=40), trials=1_000)
    run.result.assert_outcomes(passed=1)
    assert run.rows[0].verdict == "CONSISTENT"
    assert run.rows[0].configurations > 10


ESA = """
import glob
from dp_icl import EmbeddingSpaceAggregation
from dp_icl.flawed import UnitSensitivityEmbeddingSpaceAggregation

with np.load(glob.glob({rows!r})[0], allow_pickle=False) as recorded:
    REFERENCE, CANARY = recorded["reference_rows"][0], recorded["canary_rows"][0]  # (16, 384) each


@privacy_audit()
@settings(database=None, max_examples={examples})
@given(partitions=partitions(16), budget=privacy_budgets(min_delta=1e-12))
def test_it(privacy_auditor, partitions, budget):
    epsilon, delta = budget
    mechanism = {mechanism}(partitions, epsilon, delta)
    pair = REFERENCE[:partitions], CANARY[:partitions]
    privacy_auditor.check(mechanism, pair, epsilon=epsilon, delta=delta)
"""


def _embeddings(mechanism: str, examples: int = 100) -> str:
    return MECHANISMS + ESA.format(rows=str(ROWS / "*.npz"), mechanism=mechanism, examples=examples)


def test_embedding_space_with_sensitivity_1_is_shown_to_fail_at_one_partition(explored):
    run = explored(_embeddings("UnitSensitivityEmbeddingSpaceAggregation"))
    run.result.assert_outcomes(failed=1)
    assert "Flaky" not in _text(run)
    run.result.stdout.fnmatch_lines(
        [
            "E *PrivacyViolation: epsilon >= * claimed (delta=*, 99.9% confidence)",
            "E *UnitSensitivityEmbeddingSpaceAggregation(partitions=1, *",
            "E *sensitivity: clean outputs are 1.52343 apart (l2) but the declared sensitivity is 1",
            "E *partitions=1,*",
        ]
    )


def test_embedding_space_with_sensitivity_2_over_t_passes(explored):
    run = explored(_embeddings("EmbeddingSpaceAggregation", examples=20), trials=1_000)
    run.result.assert_outcomes(passed=1)
    assert math.isfinite(run.rows[0].epsilon_lower)
