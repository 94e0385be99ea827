"""Preset families of counting and selecting mechanisms: sums, selection, histograms, quantiles.

Each function returns (strategy, must-try configurations). Budgets outside the given limits are moved to the
nearest limit in the must-try configurations, so that these stay within what the mechanism accepts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from hypothesis import strategies as st

from pytest_snapaudit.strategies._arguments import ADD_REMOVE, integer, interval, positive
from pytest_snapaudit.strategies._presets_common import Budgets, one_apart
from pytest_snapaudit.strategies.configurations import (
    AdditiveNoiseConfiguration,
    HistogramConfiguration,
    QuantileConfiguration,
    SelectionConfiguration,
)
from pytest_snapaudit.strategies.neighbours import neighbouring_rows
from pytest_snapaudit.strategies.pairs import NeighbouringPair
from pytest_snapaudit.strategies.parameters import clipping_bounds, top_k

OUTSIDE_DOMAIN = "unlisted"


def additive_noise(
    *,
    bounds: Sequence[float] | None = None,
    adjacency: str = ADD_REMOVE,
    allow_nan: bool = True,
    allow_infinity: bool = True,
    max_size: int = 10,
    min_epsilon: float = 1e-3,
    max_epsilon: float = 50.0,
    min_delta: float = 0.0,
    max_delta: float = 0.1,
) -> tuple[st.SearchStrategy[AdditiveNoiseConfiguration], tuple[AdditiveNoiseConfiguration, ...]]:
    """Bounded sums and means; the bounds are drawn by ``clipping_bounds()`` when not given."""
    budgets = Budgets(min_epsilon, max_epsilon, min_delta, max_delta)
    limits = None if bounds is None else interval("additive_noise", "bounds", bounds)
    rows: dict[str, Any] = {
        "adjacency": adjacency,
        "allow_nan": allow_nan,
        "allow_infinity": allow_infinity,
        "max_size": max_size,
    }

    @lru_cache(maxsize=64)
    def pairs(drawn: tuple[float, float]) -> st.SearchStrategy[NeighbouringPair[list[float]]]:
        return neighbouring_rows(bounds=drawn, **rows)

    pairs((0.0, 1.0))  # checks the arguments now, not at the first draw

    @st.composite
    def configurations(draw: st.DrawFn) -> AdditiveNoiseConfiguration:
        epsilon, delta = draw(budgets.strategy)
        drawn = limits or draw(clipping_bounds())
        pair = draw(pairs(drawn))
        return AdditiveNoiseConfiguration(epsilon=epsilon, delta=delta, neighbours=pair, bounds=drawn)

    def case(
        default: tuple[float, float], place: str, *, rest: int = 1, epsilon: float = 1.0, delta: float = 0.0
    ) -> AdditiveNoiseConfiguration:
        low, high = limits or default
        below, above = low - (high - low), high + (high - low)
        places = {"high": high, "below": below, "above": above, "nan": math.nan, "inf": math.inf}
        other = high if place == "below" else low
        return AdditiveNoiseConfiguration(
            **budgets.at(epsilon, delta),
            neighbours=one_apart(adjacency, [low] * rest, other, places[place]),
            bounds=(low, high),
        )

    must_try = [
        case((0.0, 1.0), "high", rest=0),
        case((0.0, 1.0), "above"),
        case((-1.0, 1.0), "below"),
        case((2.0, 3.0), "high", rest=2),
        case((0.0, 1.0), "high", epsilon=16.0, delta=1e-5),
        *([case((0.0, 1.0), "nan")] if allow_nan else []),
        *([case((0.0, 1.0), "inf")] if allow_infinity else []),
    ]
    return configurations(), tuple(must_try)


def selection(
    *,
    sensitivity: float = 1.0,
    max_candidates: int = 8,
    min_epsilon: float = 1e-3,
    max_epsilon: float = 50.0,
    min_delta: float = 0.0,
    max_delta: float = 0.0,
) -> tuple[st.SearchStrategy[SelectionConfiguration], tuple[SelectionConfiguration, ...]]:
    """Selection by utility: ties, all utilities moving one way (monotone) and moving against one another."""
    budgets = Budgets(min_epsilon, max_epsilon, min_delta, max_delta)
    step = positive("selection", "sensitivity", sensitivity)
    most = integer("selection", "max_candidates", max_candidates, 1)

    @st.composite
    def configurations(draw: st.DrawFn) -> SelectionConfiguration:
        epsilon, delta = draw(budgets.strategy)
        size = draw(st.integers(min(2, most), most))
        multiples = st.one_of(st.sampled_from([0, 1, -1, 1000, -1000]), st.integers(-1000, 1000))
        tied = multiples.map(lambda multiple: [multiple] * size)
        base = draw(st.one_of(tied, st.lists(multiples, min_size=size, max_size=size)))
        against = st.integers(0, size - 1).map(lambda best: [1 if i == best else -1 for i in range(size)])
        any_move = st.lists(st.sampled_from([0, 1, -1]), min_size=size, max_size=size).filter(any)
        moves = draw(st.one_of(st.just([1] * size), against, any_move))
        reference = [step * level for level in base]
        canary = [step * (level + move) for level, move in zip(base, moves, strict=True)]
        return SelectionConfiguration(
            epsilon=epsilon,
            delta=delta,
            neighbours=NeighbouringPair(reference, canary, ADD_REMOVE),
            sensitivity=step,
            k=draw(top_k(candidates=size, max_k=size)),
        )

    def case(reference: list[float], canary: list[float], k: int = 1) -> SelectionConfiguration:
        scaled = [[step * utility for utility in side] for side in (reference, canary)]
        return SelectionConfiguration(
            **budgets.at(1.0, 0.0),
            neighbours=NeighbouringPair(scaled[0], scaled[1], ADD_REMOVE),
            sensitivity=step,
            k=k,
        )

    fixed = (
        case([0.0, 0.0], [1.0, -1.0]),
        case([1.0, 0.0], [0.0, 1.0]),
        case([0.0, 0.0], [1.0, 1.0]),
        case([0.0, 0.0, 0.0], [1.0, -1.0, -1.0]),
        case([0.0, 0.0, 0.0], [1.0, -1.0, -1.0], k=2),
        case([1000.0, 1000.0], [1001.0, 999.0]),
    )
    return configurations(), tuple(entry for entry in fixed if len(entry.neighbours.reference) <= most)


def histogram(
    *,
    domain: Sequence[str] = ("a", "b", "c"),
    adjacency: str = ADD_REMOVE,
    max_size: int = 10,
    min_epsilon: float = 1e-3,
    max_epsilon: float = 50.0,
    min_delta: float = 0.0,
    max_delta: float = 0.1,
) -> tuple[st.SearchStrategy[HistogramConfiguration], tuple[HistogramConfiguration, ...]]:
    """Counts per category: empty data, a category only the canary has, and rows outside the public domain."""
    budgets = Budgets(min_epsilon, max_epsilon, min_delta, max_delta)
    if isinstance(domain, str) or not domain or not all(isinstance(name, str) for name in domain):
        msg = f"histogram: domain must be a sequence of at least one string, got {domain!r}."
        raise TypeError(msg)
    categories = tuple(domain)
    rows = (*categories, OUTSIDE_DOMAIN)
    pairs = neighbouring_rows(adjacency=adjacency, elements=rows, max_size=max_size)

    def build(budget: tuple[float, float], pair: NeighbouringPair[list[str]]) -> HistogramConfiguration:
        return HistogramConfiguration(epsilon=budget[0], delta=budget[1], neighbours=pair, domain=categories)

    def case(epsilon: float, rest: list[str], row: str, delta: float = 0.0) -> HistogramConfiguration:
        other = next(name for name in rows if name != row)
        return HistogramConfiguration(
            **budgets.at(epsilon, delta),
            neighbours=one_apart(adjacency, rest, other, row),
            domain=categories,
        )

    first, last = categories[0], categories[-1]
    fixed = (
        case(1.0, [], first),
        case(1.0, [first], last),
        case(1.0, [first] * 3, first),
        case(1.0, [first], OUTSIDE_DOMAIN),
        case(1.0, [], last, delta=1e-5),
        case(16.0, [first], last, delta=1e-5),
    )
    return st.tuples(budgets.strategy, pairs).map(lambda drawn: build(*drawn)), fixed


def quantile(
    *,
    bounds: Sequence[float] | None = None,
    adjacency: str = ADD_REMOVE,
    allow_nan: bool = True,
    allow_infinity: bool = True,
    max_size: int = 10,
    min_epsilon: float = 1e-3,
    max_epsilon: float = 50.0,
    min_delta: float = 0.0,
    max_delta: float = 0.0,
) -> tuple[st.SearchStrategy[QuantileConfiguration], tuple[QuantileConfiguration, ...]]:
    """Quantiles: empty data, ties (zero-width intervals), everything outside the bounds, the two extremes."""
    budgets = Budgets(min_epsilon, max_epsilon, min_delta, max_delta)
    limits = (0.0, 1.0) if bounds is None else interval("quantile", "bounds", bounds)
    pairs = neighbouring_rows(
        adjacency=adjacency,
        bounds=limits,
        allow_nan=allow_nan,
        allow_infinity=allow_infinity,
        max_size=max_size,
    )
    levels = st.one_of(st.sampled_from([0.5, 0.0, 1.0, 0.25, 0.99]), st.floats(0.0, 1.0))

    def build(
        budget: tuple[float, float], level: float, pair: NeighbouringPair[list[float]]
    ) -> QuantileConfiguration:
        return QuantileConfiguration(
            epsilon=budget[0], delta=budget[1], neighbours=pair, quantile=level, bounds=limits
        )

    def case(level: float, rest: list[float], row: float) -> QuantileConfiguration:
        other = low if row != low else high
        return QuantileConfiguration(
            **budgets.at(1.0, 0.0),
            neighbours=one_apart(adjacency, rest, other, row),
            quantile=level,
            bounds=limits,
        )

    low, high = limits
    beyond = high + (high - low)
    fixed = [
        case(0.5, [], high),
        case(0.5, [low], high),
        case(0.5, [low, low, high], high),
        case(0.5, [high, high], high),
        case(0.5, [beyond], beyond),
        case(0.0, [low], high),
        case(1.0, [low], high),
    ]
    if allow_nan:
        fixed.append(case(0.5, [low], math.nan))
    return st.tuples(budgets.strategy, levels, pairs).map(lambda drawn: build(*drawn)), tuple(fixed)
