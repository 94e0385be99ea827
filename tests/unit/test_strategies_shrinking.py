"""What is reported is the simplest configuration that still fails."""

from __future__ import annotations

import math

import pytest
from strategy_draws import is_nan, simplest

from pytest_snapaudit import PrivacyClaim
from pytest_snapaudit import strategies as snap


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (snap.epsilons(), 1.0),
        (snap.epsilons(min_epsilon=3.0), 4.0),
        (snap.deltas(), 0.0),
        (snap.deltas(min_delta=1e-12), 1e-5),
        (snap.privacy_budgets(), (1.0, 0.0)),
        (snap.claims(), PrivacyClaim(1.0, 0.0)),
        (snap.partitions(), 1),
        (snap.partitions(exemplars=4), 1),
        (snap.expert_counts(), 1),
        (snap.dimensions(), 1),
        (snap.top_k(candidates=5), 1),
        (snap.clipping_bounds(), (0.0, 1.0)),
        (snap.neighbouring_rows(), ([], [0.0])),
        (snap.neighbouring_rows(adjacency="replace-one"), ([0.0], [1.0])),
        (snap.neighbouring_rows(bounds=(2.0, 3.0)), ([], [2.0])),
        (snap.neighbouring_rows(dtype="int32"), ([], [0])),
        (snap.neighbouring_rows(elements=["a", "b"]), ([], ["a"])),
        (snap.neighbouring_vectors(), ([], [[0.0]])),
        (snap.neighbouring_vectors(adjacency="replace-one"), ([[0.0]], [[1.0]])),
        (snap.neighbouring_histograms(), ([0, 0, 0], [1, 0, 0])),
        (snap.neighbouring_histograms(adjacency="replace-one"), ([1, 0, 0], [0, 1, 0])),
        (snap.neighbouring_histograms(total=3, adjacency="replace-one"), ([3, 0, 0], [2, 1, 0])),
        (snap.neighbouring_texts(), (["a"], ["b"])),
        (snap.neighbouring_texts(canary="Yes", adjacency="add-remove"), (["a"], ["a", "Yes"])),
        (snap.neighbouring_grouped(), ([], [(0, 0.0)])),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_the_simplest_draw(strategy, expected):
    assert simplest(strategy) == expected


@pytest.mark.parametrize(
    ("strategy", "fails", "expected"),
    [
        (snap.epsilons(), lambda e: e >= 8.4, 16.0),
        (snap.partitions(exemplars=4), lambda t: t > 4, 5),
        (snap.partitions(), lambda t: t >= 2, 2),
        (
            snap.neighbouring_rows(bounds=(0.0, 1.0)),
            lambda p: sum(p.canary) - sum(p.reference) < -1.0,
            ([], [-2.0]),
        ),
        (
            snap.neighbouring_rows(adjacency="replace-one", bounds=(0.0, 1.0)),
            lambda p: abs(sum(p.canary) - sum(p.reference)) >= 1.0,
            ([0.0], [1.0]),
        ),
        (
            snap.neighbouring_rows(dtype="int32"),
            lambda p: sum(p.reference) < 2**31 <= sum(p.canary),
            ([2**31 - 1], [2**31 - 1, 1]),
        ),
        (
            snap.neighbouring_histograms(bins=2, adjacency="replace-one"),
            lambda p: p.reference[0] == p.reference[1],
            ([1, 1], [0, 2]),
        ),
        (
            snap.neighbouring_texts(),
            lambda p: any(text == "" for text in p.canary),
            (["a"], [""]),
        ),
        (
            snap.neighbouring_grouped(bounds=(0.0, 1.0), allow_nan=False),
            lambda p: sum(min(max(row, 0.0), 1.0) for _, row in p.canary) > 1.0 and not p.reference,
            ([], [(0, 1.0), (0, 1.0)]),
        ),
    ],
    ids=[
        "a large epsilon",
        "more partitions than exemplars",
        "two partitions",
        "a row below the bounds",
        "the whole width",
        "an overflow",
        "a tie",
        "an empty text",
        "two rows of one user",
    ],
)
def test_the_simplest_violation(strategy, fails, expected):
    assert simplest(strategy, fails) == expected


def test_nan_shrinks_to_a_lone_row():
    poisons = simplest(snap.neighbouring_rows(), lambda p: is_nan(sum(p.canary)) > is_nan(sum(p.reference)))
    reference, canary = poisons
    assert reference == []
    assert len(canary) == 1
    assert math.isnan(canary[0])


def test_esa_shrinks_to_one_partition_and_opposite_scalars():
    preset = snap.adversarial("embedding-space")

    def mean_moves_more_than_one(config):
        sides = [
            [sum(column) / config.partitions for column in zip(*rows, strict=True)]
            for rows in config.neighbours
        ]
        return math.dist(*sides) > 1.0

    config = simplest(preset.strategy, mean_moves_more_than_one)
    assert config == snap.EmbeddingSpaceConfiguration(
        epsilon=1.0,
        delta=1e-5,
        neighbours=snap.NeighbouringPair([[1.0]], [[-1.0]]),
        partitions=1,
        dimension=1,
    )


@pytest.mark.parametrize(
    "family", ["additive-noise", "private-voting", "embedding-space", "selection", "histogram", "quantile"]
)
def test_presets_shrink_to_unit_budgets_and_the_fewest_rows(family):
    config = simplest(snap.adversarial(family).strategy)
    assert config.epsilon == 1.0
    assert config.delta in (0.0, 1e-5)
    assert len(config.neighbours.canary) <= 2
    assert getattr(config, "partitions", 1) == 1
