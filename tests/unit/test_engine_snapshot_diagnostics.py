"""What an audit of recorded clean outputs says about the recording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from pytest_snapaudit.engine.audit import audit
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.snapshot import Snapshot, SnapshotPair
from pytest_snapaudit.engine.snapshot_diagnostics import in_words, unseen_mass_upper
from pytest_snapaudit.report import failure

CLAIM = PrivacyClaim(1.0)


@dataclass(frozen=True)
class Noisy:
    deterministic: bool = False
    norm: str = "l1"
    sensitivity: float = 20.0

    def clean(self, dataset: Any, rng: np.random.Generator) -> Any:
        raise AssertionError("a snapshot stands for the clean stage")

    def privatize(self, clean: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.asarray(clean + rng.laplace(0, self.sensitivity, clean.shape))


def pair(reference: Any, canary: Any) -> SnapshotPair:
    return SnapshotPair(Snapshot.from_rows(reference), Snapshot.from_rows(canary))


SEVERAL = pair(
    [[0.0, 0.0]] * 180 + [[3.0, 4.0]] * 20, [[1.0, 0.0]] * 120 + [[3.0, 4.0]] * 60 + [[0.0, -8.0]] * 20
)


def found(mechanism: Any, snapshots: SnapshotPair, **options: Any) -> dict[str, str]:
    return dict(audit(mechanism, snapshots, CLAIM, n_trials=200, **options).diagnostics)


def test_a_random_clean_stage_is_described_with_what_was_never_seen():
    diagnostics = found(Noisy(), SEVERAL)
    unseen = unseen_mass_upper([180, 20]), unseen_mass_upper([120, 60, 20])
    assert diagnostics["snapshot"] == (
        "200 and 200 evaluations recorded (reference, canary), 2 and 3 distinct clean outputs, 1 on both sides"
    )
    assert diagnostics["snapshot distance"] == (
        "recorded clean outputs of the two sides are up to 15 apart (l1), the most frequent ones 1"
    )
    assert diagnostics["unseen clean outputs"] == (
        f"have probability at most {unseen[0]:.3g} (reference) and {unseen[1]:.3g} (canary), "
        "each at 95% confidence"
    )
    assert "determinism" not in diagnostics


@pytest.mark.parametrize(("norm", "largest"), [("l2", 12.3693), ("linf", 12), ("l0", 12.3693)])
def test_distances_are_in_the_norm_of_the_declared_sensitivity(norm, largest):
    """The number of coordinates that differ bounds no distance; l2 stands in for it."""
    text = found(Noisy(norm=norm), SEVERAL)["snapshot distance"]
    assert f"up to {largest:.6g} apart ({'l2' if norm == 'l0' else norm})" in text


def test_a_deterministic_clean_stage_has_no_unseen_outputs():
    once = found(Noisy(deterministic=True), pair([[0.0]], [[1.0]]))
    assert once["determinism"] == "declared; one evaluation is recorded"
    assert once["snapshot"].startswith("1 and 1 evaluations recorded (reference, canary), 1 and 1 distinct")
    assert "unseen clean outputs" not in once
    assert "snapshot distance" not in once
    often = found(Noisy(deterministic=True), pair([[0.0]] * 3, [[1.0]] * 3))
    assert often["determinism"] == "declared; the recorded evaluations agree"


def test_equal_rows_without_a_declaration_recommend_one():
    diagnostics = found(Noisy(), pair([[0.0]] * 200, [[1.0]] * 200))
    assert diagnostics["determinism"].startswith("all clean outputs of a side are equal (200 evaluations)")
    assert diagnostics["unseen clean outputs"].startswith(
        f"have probability at most {1 - 0.025**0.01:.3g} (ref"
    )


def test_the_noise_stage_alone_is_described_too():
    diagnostics = found(Noisy(), SEVERAL, scope="noise")
    assert diagnostics["snapshot"].startswith("200 and 200 evaluations recorded")
    assert "unseen clean outputs" in diagnostics


def test_datasets_are_not_called_snapshots():
    @dataclass(frozen=True)
    class Sum(Noisy):
        deterministic: bool = True

        def clean(self, dataset: Any, rng: np.random.Generator) -> Any:
            return float(sum(dataset))

    diagnostics = dict(audit(Sum(), ([0.0], [1.0]), CLAIM, n_trials=200).diagnostics)
    assert diagnostics["determinism"] == "declared; a second evaluation of the clean stage agrees"
    assert not diagnostics.keys() & {"snapshot", "snapshot distance", "unseen clean outputs"}


def test_rows_of_text_have_no_distance():
    lines = dict(in_words(pair(["a", "b", "a"], ["a", "c", "c"]), "l2", deterministic=False))
    assert lines["snapshot"].endswith("2 and 2 distinct clean outputs, 1 on both sides")
    assert "snapshot distance" not in lines


def test_a_failure_shows_them():
    result = audit(Noisy(sensitivity=0.01), SEVERAL, CLAIM, n_trials=2_000)
    assert result.violated
    text = failure.violation(result, confidence=0.999, example=None, first="", reproduce="pytest")
    assert "\n  snapshot: 200 and 200 evaluations recorded" in text
    assert "\n  unseen clean outputs: have probability at most" in text
