"""Arrays handed to a mechanism and taken from it: written in place, kept, returned again, never modified."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pytest_snapaudit.engine.audit import audit
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.mechanism import from_sampler
from pytest_snapaudit.engine.seeding import BLOCK
from pytest_snapaudit.engine.simulation import (
    FixedCleanSource,
    LiveCleanSource,
    block_tasks,
    draw_raw,
    noise_stage,
)
from pytest_snapaudit.engine.snapshot import Snapshot, SnapshotPair

CLAIM = PrivacyClaim(1.0)
BOTH = frozenset({"white-box", "black-box"})


class Plain:
    """The reference: nothing is written in place."""

    name = "mechanism"
    deterministic = True
    claimed_views = BOTH

    def clean(self, dataset, rng):
        return np.array([dataset, 0.0, 1.0])

    def privatize(self, clean, rng):
        return clean + 2.0 * rng.laplace(size=clean.shape)

    def release(self, noisy, rng):
        return np.clip(noisy, 0.0, 1.0)


class InPlace(Plain):
    def privatize(self, clean, rng):
        clean += 2.0 * rng.laplace(size=clean.shape)
        return clean


class InPlaceByIndex(Plain):
    def privatize(self, clean, rng):
        noise = 2.0 * rng.laplace(size=clean.shape)
        for j in range(clean.shape[1]):
            clean[:, j] += noise[:, j]
        return clean


class ReleaseInPlace(Plain):
    def release(self, noisy, rng):
        np.clip(noisy, 0.0, 1.0, out=noisy)
        return noisy


class OneBuffer(Plain):
    """Writes every batch to the same memory."""

    def __init__(self):
        self.buffer = np.zeros((8192, 3))

    def privatize(self, clean, rng):
        np.add(clean, 2.0 * rng.laplace(size=clean.shape), out=self.buffer[: len(clean)])
        return self.buffer[: len(clean)]


class OneReleaseBuffer(OneBuffer):
    def privatize(self, clean, rng):
        return Plain.privatize(self, clean, rng)

    def release(self, noisy, rng):
        np.clip(noisy, 0.0, 1.0, out=self.buffer[: len(noisy)])
        return self.buffer[: len(noisy)]


VARIANTS = [InPlace, InPlaceByIndex, ReleaseInPlace, OneBuffer, OneReleaseBuffer]


def run(mechanism: Any, neighbours: Any = (0.0, 1.0), **options: Any):
    return audit(mechanism, neighbours, CLAIM, **{"n_trials": 4000, "views": BOTH, "seed": 3, **options})


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("scope", ["pipeline", "noise"])
def test_writing_in_place_changes_nothing(variant, scope):
    assert run(variant(), scope=scope) == run(Plain(), scope=scope)


@pytest.mark.parametrize("variant", VARIANTS)
def test_writing_in_place_changes_nothing_for_recorded_rows(variant):
    rng = np.random.default_rng(0)
    sides = [Snapshot(rng.normal(size=(50, 3)) + shift, np.full(50, 4)) for shift in (0.0, 1.0)]
    kept = [side.rows.copy() for side in sides]
    found = []
    for mechanism in (variant(), Plain()):
        mechanism.deterministic = False
        found.append(run(mechanism, SnapshotPair(*sides)))
    assert found[0] == found[1]
    for side, rows in zip(sides, kept, strict=True):
        np.testing.assert_array_equal(side.rows, rows)


@pytest.mark.parametrize("variant", VARIANTS)
def test_writing_in_place_changes_nothing_for_a_live_clean_stage(variant):
    class Live:
        deterministic = False

        def clean_batch(self, dataset, size, rng):
            return rng.random((size, 3)) + dataset

    found = [run(type("Live", (Live, kind), {})()) for kind in (variant, Plain)]
    assert found[0] == found[1]
    assert found[0].n_snapshots == 0


@pytest.mark.parametrize("variant", [Plain, *VARIANTS])
def test_the_datasets_and_their_clean_outputs_are_never_modified(variant):
    class Stored(variant):
        """Returns the dataset itself as its clean output."""

        def clean(self, dataset, rng):
            return dataset

    pair = np.zeros(3), np.array([1.0, 0.0, 0.0])
    kept = [side.copy() for side in pair]
    run(Stored(), pair)
    for side, before in zip(pair, kept, strict=True):
        np.testing.assert_array_equal(side, before)


def test_clean_rows_are_handed_out_read_only_and_without_a_copy():
    seen = []

    class Spy(Plain):
        def privatize(self, clean, rng):
            seen.append((clean.shape, clean.strides[0], clean.flags.writeable))
            return super().privatize(clean, rng)

    run(Spy())
    assert all(stride == 0 and not writeable for _, stride, writeable in seen)
    assert {shape[1:] for shape, _, _ in seen} == {(3,)}


def test_scalar_clean_outputs_give_one_number_per_row():
    class Scalar(Plain):
        def clean(self, dataset, rng):
            return dataset

        def release(self, noisy, rng):
            assert noisy.ndim == 1
            return noisy

    assert run(Scalar()).attack.startswith(("output ", "projection "))


def test_a_mechanism_without_noise_does_not_leak_its_read_only_rows():
    class Identity(Plain):
        def privatize(self, clean, rng):
            return clean

        def release(self, noisy, rng):
            noisy += 1.0
            return noisy

    rows = np.broadcast_to(np.zeros(3), (5, 3))
    raw = noise_stage(Identity(), rows, np.random.default_rng(0))
    assert raw["white-box"].tolist() == np.zeros((5, 3)).tolist()
    assert raw["black-box"].tolist() == np.ones((5, 3)).tolist()
    assert run(Identity()).violated


def test_a_sampler_that_returns_one_buffer_is_not_mistaken_for_a_private_one():
    buffer = np.zeros(8192)

    def into_buffer(dataset, n, rng):
        buffer[:n] = dataset * 5 + rng.laplace(size=n)
        return buffer[:n]

    def in_a_dict(dataset, n, rng):
        return {"a": into_buffer(dataset, n, rng)}

    def in_a_tuple(dataset, n, rng):
        return (into_buffer(dataset, n, rng),)

    kept: list[float] = []

    def into_list(dataset, n, rng):
        kept[:] = into_buffer(dataset, n, rng).tolist()
        return kept

    for sampler in (into_buffer, in_a_dict, in_a_tuple, into_list):
        fresh = from_sampler(
            lambda dataset, n, rng, sampler=sampler: _copied(sampler(dataset, n, rng)), name="s"
        )
        found = audit(from_sampler(sampler, name="s"), (0.0, 1.0), CLAIM, n_trials=3000)
        assert found.violated
        assert found == audit(fresh, (0.0, 1.0), CLAIM, n_trials=3000)


def _copied(outputs: Any) -> Any:
    if isinstance(outputs, dict):
        return {key: part.copy() for key, part in outputs.items()}
    if isinstance(outputs, tuple):
        return tuple(part.copy() for part in outputs)
    return outputs.copy()


def test_a_failure_while_drawing_is_an_outcome_of_both_views():
    class Failing(Plain):
        def privatize(self, clean, rng):
            raise ValueError("no")

    source = FixedCleanSource(Failing(), np.zeros(3))
    raw = draw_raw(source, 5, np.random.default_rng(0))
    assert set(raw) == BOTH
    assert all(repr(outcome.exception) == "ValueError('no')" for outcome in raw.values())


def test_a_live_source_draws_its_clean_outputs_anew():
    class Counting(Plain):
        sizes: list[int] = []  # noqa: RUF012

        def clean_batch(self, dataset, size, rng):
            self.sizes.append(size)
            return rng.random((size, 3))

    source = LiveCleanSource(Counting(), 0.0)
    first, second = (draw_raw(source, 7, np.random.default_rng(seed))["white-box"] for seed in (1, 2))
    assert Counting.sizes == [7, 7]
    assert (first != second).all()


def test_blocks_are_drawn_alike_whatever_their_number():
    source = FixedCleanSource(Plain(), np.zeros(3))
    few, many = (block_tasks((source, source), (7,), 20, trials) for trials in (2 * BLOCK, 3 * BLOCK + 5))
    assert [task.trials for task in many] == [BLOCK, BLOCK, BLOCK, 5]
    for task, same in zip(few, many[:2], strict=True):
        for side, again in zip(task.raw(), same.raw(), strict=True):
            np.testing.assert_array_equal(side["white-box"], again["white-box"])
    first, second = few[0].raw()
    assert (first["white-box"] != second["white-box"]).all()
    assert (first["white-box"] != few[1].raw()[0]["white-box"]).all()
