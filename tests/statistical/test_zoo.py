"""The bug zoo under audit: default settings, no hint beyond the two that the entries name.

Every bug must be found on at least nine seeds of ten, no fixed twin and no hazard may be flagged. A quick run
takes one seed; ``SNAPAUDIT_ZOO_SEEDS=20`` takes ten for the bugs and twenty for the rest.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from zoo import BUGS, HAZARDS

from pytest_snapaudit.engine.audit import audit
from pytest_snapaudit.engine.mechanism import from_sampler
from pytest_snapaudit.engine.noise import GaussianNoise

SEEDS = int(os.environ.get("SNAPAUDIT_ZOO_SEEDS", "1"))
TRIALS = 1_000_000


@dataclass(frozen=True)
class DeclaredGaussian:
    """The noise stage of an entry whose state is a number, with its noise declared."""

    stages: Any
    noise: GaussianNoise = field(init=False)
    deterministic: bool = True

    def __post_init__(self):
        object.__setattr__(self, "noise", GaussianNoise(self.stages.declared_noise_sigma))

    def clean(self, dataset, rng):
        return float(self.stages.clean(dataset))

    def privatize(self, clean, rng):
        return clean + self.noise.sigma * rng.standard_normal(clean.shape)


def subject(stages):
    if stages.declared_noise_sigma is not None:
        return DeclaredGaussian(stages)
    return from_sampler(stages.sample)


def channels(entry):
    return tuple(channel for channel in entry.side_channels if channel == "low-bit")


def run(stages, entry, seed, side_channels=()):
    return audit(
        subject(stages),
        entry.neighbours,
        entry.claim,
        seed=(31, seed),
        n_trials=TRIALS,
        side_channels=side_channels,
    )


@pytest.mark.parametrize("entry", BUGS, ids=str)
def test_bug_is_found(entry):
    seeds = min(SEEDS, 10)
    results = [run(entry.broken, entry, seed, channels(entry)) for seed in range(seeds)]
    found = sum(result.violated for result in results)
    assert found >= np.ceil(0.9 * seeds)
    # one audit in a thousand may exceed the truth
    assert sum(result.epsilon_lower > entry.true_epsilon for result in results) <= 1


@pytest.mark.parametrize("entry", BUGS, ids=str)
def test_fixed_twin_is_not_flagged(entry):
    for seed in range(SEEDS):
        result = run(entry.fixed, entry, seed, channels(entry))
        assert not result.violated, (seed, result.epsilon_lower, result.attack)


@pytest.mark.parametrize("hazard", HAZARDS, ids=str)
def test_hazard_is_not_flagged(hazard):
    for seed in range(SEEDS):
        result = run(hazard.mechanism, hazard, seed)
        assert not result.violated, (seed, result.epsilon_lower, result.attack)
