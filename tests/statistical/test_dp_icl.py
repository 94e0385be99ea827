"""The two flaws of the original designs are found on what real models said, and the repaired mechanisms pass.

The clean outputs are the committed recordings of ``examples/dp_icl``: three votes, and sixteen embeddings of
which the canary moves the first by 1.52. One audit of a correct mechanism errs with probability at most 0.001,
so all 241 of them here together raise a false alarm with probability at most 0.24; the seeds are fixed.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dp_icl import EmbeddingSpaceAggregation, PrivateVoting
from dp_icl.flawed import ClassicalPrivateVoting, UnitSensitivityEmbeddingSpaceAggregation
from pytest_snapaudit.engine.audit import audit
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.result import AuditResult
from pytest_snapaudit.engine.snapshot import Snapshot, SnapshotPair
from pytest_snapaudit.store import SnapshotStore
from statistical.mechanisms import seeds

STORE = SnapshotStore(Path(__file__).parents[2] / "examples" / "dp_icl" / "privacy_snapshots")
LABELS = ("World", "Sports", "Business", "Science")
BUDGETS = (1, 2, 4, 8, 16)
DELTA = 1e-5
SEEDS = seeds(20)


def recorded(name: str) -> SnapshotPair:
    (entry,) = (entry for entry in STORE.entries() if entry.name == name)
    return STORE.load(name, json.loads(entry.path.read_text(encoding="utf-8"))["inputs"])


@pytest.fixture(scope="module")
def votes() -> SnapshotPair:
    return recorded("private_voting")


@pytest.fixture(scope="module")
def embeddings() -> SnapshotPair:
    return recorded("embedding_space")


@pytest.fixture(scope="module")
def candidates() -> np.ndarray:
    pair = recorded("embedding_space_candidates")
    return np.concatenate([pair.reference.rows, pair.canary.rows])


def judged(
    mechanism: PrivateVoting | EmbeddingSpaceAggregation, said: SnapshotPair, seed: int
) -> AuditResult:
    """Audit the mechanism's own claim on the first T of the recorded answers."""
    pair = said.map(lambda rows: mechanism.aggregate(rows[: mechanism.partitions]))
    return audit(mechanism, pair, PrivacyClaim(*mechanism.claim), n_trials=10_000, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_sensitivity_1_is_found_at_one_partition(embeddings, candidates, seed):
    mechanism = UnitSensitivityEmbeddingSpaceAggregation(1, 1, DELTA, candidates)
    result = judged(mechanism, embeddings, seed)
    assert result.violated
    # at a distance of 1.5234, the smallest epsilon that the noise satisfies is 1.597
    assert 1.4 < result.epsilon_lower < 1.597
    assert dict(result.diagnostics)["sensitivity"] == (
        "clean outputs are 1.52343 apart (l2) but the declared sensitivity is 1"
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("partitions", [1, 4])
def test_sensitivity_2_over_t_is_never_refuted(embeddings, candidates, partitions, seed):
    epsilon = BUDGETS[seed % len(BUDGETS)]
    mechanism = EmbeddingSpaceAggregation(partitions, epsilon, DELTA, candidates)
    result = judged(mechanism, embeddings, seed)
    assert not result.violated
    assert result.max_detectable_epsilon > epsilon
    assert result.epsilon_lower > 0.6 * epsilon


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("epsilon", BUDGETS)
def test_sensitivity_2_over_t_is_never_refuted_on_opposite_embeddings(epsilon, seed):
    """The worst case, which no real pair of sentences attains: the claim is exactly tight."""
    partitions = 1 + seed % 4
    said = np.zeros((2, 1, partitions, 8))
    said[..., 0] = 1
    said[1, :, 0, 0] = -1
    pair = SnapshotPair(Snapshot.from_rows(said[0]), Snapshot.from_rows(said[1]))
    result = judged(EmbeddingSpaceAggregation(partitions, epsilon, DELTA), pair, seed)
    assert not result.violated
    assert result.epsilon_lower > 0.9 * epsilon


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("epsilon", BUDGETS)
def test_analytic_calibration_is_never_refuted(votes, epsilon, seed):
    """The recorded canary moves a vote from one label to another, so the claim is exactly tight."""
    result = judged(PrivateVoting(LABELS, 3, epsilon, DELTA), votes, seed)
    assert not result.violated
    assert {view.view for view in result.views} == {"black-box", "white-box"}
    assert result.epsilon_lower > 0.9 * epsilon


@pytest.mark.parametrize("seed", SEEDS)
def test_classical_calibration_is_found_at_16(votes, seed):
    result = judged(ClassicalPrivateVoting(LABELS, 3, 16, DELTA), votes, seed)
    assert result.violated
    assert 16 < result.epsilon_lower < 18.9


def test_an_aggregate_that_forgets_to_average_is_found_without_recording_again(embeddings, candidates):
    class Summing(EmbeddingSpaceAggregation):
        def aggregate(self, embeddings):
            return self.partitions * super().aggregate(embeddings)

    assert not judged(EmbeddingSpaceAggregation(4, 1, DELTA, candidates), embeddings, 0).violated
    assert judged(Summing(4, 1, DELTA, candidates), embeddings, 0).violated
