"""CPU time of an audit beside that of the draws it makes, measured in one run."""

from __future__ import annotations

import time

import pytest

from pytest_snapaudit import audit

from .costs import cost_of
from .mechanisms import GAUSSIAN_384, GAUSSIAN_384_FLOAT32, LAPLACE, VOTING, WITHOUT_HINTS

TRIALS = 400_000
FACTOR, CONSTANT = 1.25, 0.05  # of the draws; CPU seconds
SEARCH = 0.5  # CPU seconds for finding an event

SUBJECTS = {
    "laplace": LAPLACE,
    "private voting": VOTING,
    "384-d gaussian": GAUSSIAN_384,
    "384-d gaussian float32": GAUSSIAN_384_FLOAT32,
    "sampler without hints": WITHOUT_HINTS,
}


@pytest.mark.benchmark(group="audit", timer=time.process_time)
@pytest.mark.parametrize("name", SUBJECTS)
def test_what_an_audit_adds_to_its_draws(benchmark, record, name):
    mechanism, neighbours, claim = SUBJECTS[name]
    cost = cost_of(mechanism, neighbours, claim, TRIALS, rounds=2 if "384" in name else 5)
    record(cost.figures())
    benchmark.pedantic(audit, (mechanism, neighbours, claim), {"n_trials": TRIALS}, rounds=1)
    assert cost.audit <= FACTOR * cost.draws + CONSTANT + SEARCH
