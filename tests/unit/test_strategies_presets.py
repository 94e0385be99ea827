"""Presets draw configurations that hang together, and their must-try examples expose known flaws."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategy_draws import QUIET, draws, share

from dp_icl import EmbeddingSpaceAggregation, PrivateVoting
from pytest_snapaudit import PrivacyClaim
from pytest_snapaudit.engine.sensitivity import check_sensitivity
from pytest_snapaudit.strategies import adversarial, with_must_try

FAMILIES = ["additive-noise", "private-voting", "embedding-space", "selection", "histogram", "quantile"]


@pytest.mark.parametrize("family", FAMILIES)
def test_budgets_stay_within_the_limits(family):
    limits = {"min_epsilon": 0.5, "max_epsilon": 4.0, "min_delta": 1e-7, "max_delta": 1e-6}
    preset = adversarial(family, **limits)
    assert preset.family == family
    assert len(preset.must_try) >= 5
    for config in (*preset.must_try, *draws(preset.strategy, 100)):
        assert 0.5 <= config.epsilon <= 4.0
        assert 1e-7 <= config.delta <= 1e-6
        assert config.claim == PrivacyClaim(config.epsilon, config.delta)


@pytest.mark.parametrize("family", ["additive-noise", "histogram", "quantile"])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_data_presets_follow_the_adjacency(family, adjacency):
    preset = adversarial(family, adjacency=adjacency)
    for config in (*preset.must_try, *draws(preset.strategy, 100)):
        reference, canary = config.neighbours
        assert config.neighbours.adjacency == adjacency
        assert repr(reference) != repr(canary)
        assert len(canary) - len(reference) == (adjacency == "add-remove")


def test_private_voting_moves_one_vote_at_the_declared_sensitivity():
    preset = adversarial("private-voting")
    distances = []
    for config in (*preset.must_try, *draws(preset.strategy)):
        mechanism = PrivateVoting(config.labels, config.partitions, config.epsilon, config.delta)
        finding = check_sensitivity(mechanism, config.neighbours)
        assert not finding.exceeded
        distances.append(finding.distance)
        assert [mechanism.clean(side, None).tolist() for side in config.neighbours] == list(config.votes)
    assert min(distances) >= 1.0, "an answer changed without changing a vote"
    assert math.isclose(max(distances), math.sqrt(2.0))


def test_private_voting_always_tries_one_voter_and_votes_that_tie():
    drawn = draws(adversarial("private-voting").strategy)
    assert share(drawn, lambda c: c.partitions == 1) >= 0.05
    assert share(drawn, lambda c: len(set(c.votes.reference)) < len(c.labels) and c.partitions > 1) >= 0.1


def test_embedding_space_is_tight_at_two_over_t():
    preset = adversarial("embedding-space")
    configs = [*preset.must_try, *draws(preset.strategy)]
    ratios = []
    for config in configs:
        mechanism = EmbeddingSpaceAggregation(
            config.partitions, config.epsilon, config.delta, candidates=config.candidates
        )
        finding = check_sensitivity(mechanism, config.neighbours)
        assert not finding.exceeded
        assert all(len(row) == config.dimension for side in config.neighbours for row in side)
        ratios.append(finding.ratio)
    assert min(ratios) > 0.0, "neighbours with the same mean embedding"
    assert sum(ratio > 0.999 for ratio in ratios) / len(ratios) >= 0.2
    assert share(configs, lambda c: c.partitions == 1) >= 0.05


def test_embedding_space_exposes_sensitivity_one_at_one_partition():
    def unit_mean(rows, rng):
        unit = [[x / math.hypot(*row) for x in row] for row in rows]
        return [sum(column) / len(unit) for column in zip(*unit, strict=True)]

    exposed = [
        config
        for config in adversarial("embedding-space").must_try
        if check_sensitivity(unit_mean, config.neighbours, 1.0).exceeded
    ]
    assert {config.epsilon for config in exposed} == {1.0, 8.0, 16.0}
    assert {config.partitions for config in exposed} == {1}


def test_selection_moves_every_utility_by_at_most_the_sensitivity():
    preset = adversarial("selection", sensitivity=0.5, max_candidates=5)
    configs = [*preset.must_try, *draws(preset.strategy)]
    for config in configs:
        moves = [y - x for x, y in zip(*config.neighbours, strict=True)]
        assert 0.0 < max(map(abs, moves)) <= 0.5
        assert 1 <= config.k <= len(moves) <= 5
        assert config.delta == 0.0
    spreads = [
        max(m) - min(m) for m in ([y - x for x, y in zip(*c.neighbours, strict=True)] for c in configs)
    ]
    assert sum(spread == 1.0 for spread in spreads) / len(spreads) >= 0.1, "never one up and the others down"
    assert share(configs, lambda c: len(set(c.neighbours.reference)) == 1) >= 0.1


@pytest.mark.parametrize(
    ("clean", "flaw"),
    [
        (lambda rows, low, high: sum(min(row, high) for row in rows), "clips above only"),
        (lambda rows, low, high: sum(max(row, low) for row in rows), "clips below only"),
        (
            lambda rows, low, high: sum(row if math.isnan(row) else min(max(row, low), high) for row in rows),
            "NaN",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_must_try_sums_expose_missing_clipping(clean, flaw):
    def exceeded(config):
        low, high = config.bounds
        bound = max(abs(low), abs(high))
        return check_sensitivity(lambda rows, rng: clean(rows, low, high), config.neighbours, bound).exceeded

    def correct(config):
        low, high = config.bounds

        def clipped(rows, rng):
            return sum(min(max(0.0 if math.isnan(row) else row, low), high) for row in rows)

        return not check_sensitivity(
            clipped, config.neighbours, max(abs(low), abs(high), high - low)
        ).exceeded

    must_try = adversarial("additive-noise").must_try
    assert any(map(exceeded, must_try)), flaw
    assert all(map(correct, must_try))
    assert all(map(correct, adversarial("additive-noise", adjacency="replace-one").must_try))


def test_given_bounds_are_used_throughout():
    for family in ("additive-noise", "quantile"):
        preset = adversarial(family, bounds=(-4.0, 6.0), allow_nan=False, allow_infinity=False)
        configs = [*preset.must_try, *draws(preset.strategy, 200)]
        assert {config.bounds for config in configs} == {(-4.0, 6.0)}
        rows = [row for config in configs for side in config.neighbours for row in side]
        assert all(map(math.isfinite, rows))
        assert {-4.0, 6.0} <= set(rows)
        assert max(rows) > 6.0


def test_histogram_rows_leave_the_public_domain():
    preset = adversarial("histogram", domain=("x", "y"))
    configs = [*preset.must_try, *draws(preset.strategy, 200)]
    assert {config.domain for config in configs} == {("x", "y")}
    assert share(configs, lambda c: "unlisted" in c.neighbours.canary) >= 0.05
    assert share(configs, lambda c: not c.neighbours.reference) >= 0.02
    assert share(configs, lambda c: bool(set(c.neighbours.canary) - set(c.neighbours.reference))) >= 0.2


def test_quantiles_reach_both_extremes():
    configs = draws(adversarial("quantile").strategy)
    assert {0.0, 0.5, 1.0} <= {config.quantile for config in configs}
    assert all(0.0 <= config.quantile <= 1.0 for config in configs)


@pytest.mark.parametrize("above", [True, False], ids=["above given", "below given"])
@pytest.mark.parametrize("argument", [None, "config"])
def test_every_must_try_configuration_is_run(above, argument):
    preset = adversarial("private-voting")
    seen = []

    def body(config):
        seen.append(config)

    decorators = [settings(max_examples=1, **QUIET), given(config=preset.strategy)]
    add = with_must_try(preset, argument=argument)
    for decorate in [*decorators, add] if above else [add, *decorators]:
        body = decorate(body)
    body()
    assert seen[: len(preset.must_try)] == list(preset.must_try)


def test_must_try_configurations_fill_the_last_parameter():
    preset = adversarial("histogram")
    seen = []

    @with_must_try(preset)
    @settings(max_examples=1, **QUIET)
    @given(config=preset.strategy)
    def audit(fixture, config):
        seen.append((fixture, config))

    audit("the fixture")
    assert seen[: len(preset.must_try)] == [("the fixture", config) for config in preset.must_try]


def test_the_argument_has_to_be_a_name():
    with pytest.raises(TypeError, match="argument must be the name of a test parameter, got 'a b'"):
        with_must_try(adversarial("histogram"), argument="a b")


def test_presets_combine_with_other_strategies():
    pairs = st.tuples(adversarial("histogram").strategy, st.booleans())
    assert {flag for _, flag in draws(pairs, 50)} == {True, False}
