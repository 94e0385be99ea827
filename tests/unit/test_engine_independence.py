"""Draws that are not independent, or not random, are refused before anything is counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from pytest_snapaudit.engine.audit import audit
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.errors import MechanismError
from pytest_snapaudit.engine.mechanism import from_callable, from_sampler
from pytest_snapaudit.engine.result import Verdict


@dataclass(frozen=True)
class Sum:
    """Adds whatever noise is given to the sum."""

    noise_of: Any
    column: bool = False
    deterministic: bool = True

    def clean(self, dataset, rng):
        total = float(np.sum(dataset))
        return np.array([total]) if self.column else total

    def privatize(self, clean, rng):
        return clean + self.noise_of(rng, clean)


PAIR = ([0.0], [1.0])


def run(mechanism, **options):
    return audit(mechanism, PAIR, PrivacyClaim(1.0), n_trials=2_000, **options)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(
    "mechanism",
    [
        Sum(lambda rng, clean: rng.laplace(0, 1)),
        Sum(lambda rng, clean: rng.laplace(0, 1, 1), column=True),
        from_sampler(lambda d, n, rng: np.full(n, d[0] + rng.laplace(0, 1))),
        from_sampler(lambda d, n, rng: np.zeros((n, 3)) + d[0] + rng.laplace(0, 1, 3)),
    ],
    ids=["number", "column", "sampler", "vector sampler"],
)
def test_one_draw_shared_by_all_rows(mechanism, seed):
    with pytest.raises(MechanismError, match=r"one draw is shared by all of them; draw noise for every row"):
        run(mechanism, seed=seed)


def test_noise_that_broadcasts_to_a_square():
    with pytest.raises(MechanismError, match=r"returns an \(n, n\) array, whatever n"):
        run(Sum(lambda rng, clean: rng.laplace(0, 1, len(clean)), column=True))


def test_a_generator_seeded_in_every_call():
    with pytest.raises(MechanismError, match=r"different seeds give the same random outputs"):
        run(from_sampler(lambda d, n, rng: d[0] + np.random.default_rng(0).laplace(0, 1, n)))


def test_a_forgotten_return():
    with pytest.raises(
        MechanismError, match=r"every output is NaN or None on both datasets; .*returns its result"
    ):
        run(from_callable(lambda dataset: None))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("rate", [0.5, 0.99, 1.0])
def test_few_distinct_outputs_are_no_reason_to_refuse(rate, seed):
    """Constant outputs, and outputs that are nearly always the same, are legitimate."""
    result = run(from_sampler(lambda d, n, rng: (rng.random(n) < rate).astype(float)), seed=seed)
    assert result.verdict is Verdict.CONSISTENT


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: from_callable(lambda dataset, rng: 0.0),
            r"from_callable calls fn\(dataset\), which .* does not accept",
        ),
        (
            lambda: from_sampler(lambda dataset: 0.0),
            r"from_sampler calls fn\(dataset, n, rng\), which .* use from_callable",
        ),
    ],
)
def test_a_function_of_the_wrong_arguments_is_refused_at_the_door(make, words):
    with pytest.raises(TypeError, match=words):
        make()


def test_a_sensitivity_that_is_no_number():
    mechanism = Sum(lambda rng, clean: rng.laplace(0, 1, np.shape(clean)))
    object.__setattr__(mechanism, "sensitivity", "0.5")
    with pytest.raises(TypeError, match=r"sensitivity must be a number above 0, got '0\.5'"):
        run(mechanism)
