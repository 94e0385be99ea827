"""A random clean stage: no difference is found where there is none, real ones are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_snapaudit.engine.audit import audit
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.result import Verdict
from pytest_snapaudit.engine.snapshot import Snapshot, SnapshotPair
from statistical.mechanisms import DELTA, binomial_point, seeds


@dataclass(frozen=True)
class LittleNoise:
    """Almost no noise on 384-d clean outputs: any attack on the rows themselves would succeed."""

    def clean(self, dataset, rng):
        return rng.standard_normal(384) + dataset

    def privatize(self, clean, rng):
        return clean + 1e-3 * rng.standard_normal(clean.shape)


def snapshots(shift: float, size: int, seed: int) -> SnapshotPair:
    rng = np.random.default_rng(seed)
    sides = [rng.standard_normal((size, 384)).astype(np.float32) for _ in range(2)]
    return SnapshotPair(Snapshot.from_rows(sides[0]), Snapshot.from_rows(sides[1] + np.float32(shift)))


def test_identical_laws_of_recorded_rows_certify_nothing():
    """Up to 40 recordings of 500 rows per side; an attack chosen on the certifying rows certifies in all of them."""
    results = [
        audit(
            LittleNoise(),
            snapshots(0.0, 500, seed),
            PrivacyClaim(1.0, DELTA),
            confidence=0.95,
            n_trials=4_000,
            seed=seed,
        )
        for seed in seeds(40)
    ]
    assert sum(result.epsilon_lower > 0 for result in results) <= binomial_point(len(results), 0.05)


def test_a_real_difference_of_recorded_rows_is_found():
    for seed in range(5):
        pair = snapshots(0.3, 500, seed)
        result = audit(
            LittleNoise(), pair, PrivacyClaim(1.0, DELTA), confidence=0.95, n_trials=4_000, seed=seed
        )
        assert result.violated
        assert result.estimator == "row-wise betting"


@dataclass(frozen=True)
class Subsampled:
    """Poisson subsampling at rate 0.1 and σ = 1, evaluated one clean output at a time."""

    def clean(self, dataset, rng):
        return float(dataset * (rng.random() < 0.1))

    def privatize(self, clean, rng):
        return clean + rng.standard_normal(clean.shape)


def test_subsampling_evaluated_one_by_one_passes():
    for seed in range(10):
        result = audit(
            Subsampled(), (0.0, 1.0), PrivacyClaim(1.685, DELTA), confidence=0.95, seed=seed, n_trials=50_000
        )
        assert result.verdict is Verdict.CONSISTENT


def test_the_noise_scope_speaks_of_one_feasible_pair():
    """On the pair of clean outputs in which the record is present, σ = 1 leaks 4.38."""

    @dataclass(frozen=True)
    class AlwaysIn(Subsampled):
        def clean(self, dataset, rng):
            return float(dataset)

    result = audit(AlwaysIn(), (0.0, 1.0), PrivacyClaim(1.685, DELTA), scope="noise")
    assert result.violated
    assert result.scope == "noise"


def test_a_claim_beyond_the_rows_is_inconclusive_and_names_the_rows():
    result = audit(LittleNoise(), snapshots(0.0, 200, 1), PrivacyClaim(16.0, DELTA), n_trials=2_000)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "clean outputs" in result.reason
    assert 'scope="noise"' in result.reason
