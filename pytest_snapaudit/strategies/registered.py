"""What ``st.from_type`` draws for the plugin's own types and for the reference mechanisms of ``dp_icl``."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from functools import cache
from typing import Any

from hypothesis import strategies as st

from pytest_snapaudit import _hypothesis_entry
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.noise import GaussianNoise, LaplaceNoise
from pytest_snapaudit.strategies.budgets import claims, deltas, edges_first, epsilons
from pytest_snapaudit.strategies.configurations import (
    AdditiveNoiseConfiguration,
    EmbeddingSpaceConfiguration,
    HistogramConfiguration,
    PrivateVotingConfiguration,
    QuantileConfiguration,
    SelectionConfiguration,
)
from pytest_snapaudit.strategies.neighbours import neighbours
from pytest_snapaudit.strategies.pairs import NeighbouringPair
from pytest_snapaudit.strategies.parameters import dimensions, partitions
from pytest_snapaudit.strategies.presets import adversarial

_LABELS = ("A", "B", "C", "D")


def _gaussian_budget() -> dict[str, st.SearchStrategy[Any]]:
    return {"epsilon": epsilons(), "delta": deltas(min_delta=1e-12)}


def _private_voting(mechanism: type) -> st.SearchStrategy[Any]:
    labels = st.integers(2, len(_LABELS)).map(lambda count: _LABELS[:count])
    return st.builds(mechanism, labels=labels, partitions=partitions(), **_gaussian_budget())


def _embedding_space(mechanism: type) -> st.SearchStrategy[Any]:
    def opposite(dimension: int) -> list[list[float]]:
        rest = [0.0] * (dimension - 1)
        return [[1.0, *rest], [-1.0, *rest]]

    candidates = st.one_of(st.none(), dimensions(8).map(opposite))
    return st.builds(mechanism, partitions=partitions(), candidates=candidates, **_gaussian_budget())


_RECIPES: dict[str, Callable[[type], st.SearchStrategy[Any]]] = {
    "dp_icl.private_voting.PrivateVoting": _private_voting,
    "dp_icl.embedding_space.EmbeddingSpaceAggregation": _embedding_space,
}

_PRESETS: dict[type, str] = {
    AdditiveNoiseConfiguration: "additive-noise",
    PrivateVotingConfiguration: "private-voting",
    EmbeddingSpaceConfiguration: "embedding-space",
    SelectionConfiguration: "selection",
    HistogramConfiguration: "histogram",
    QuantileConfiguration: "quantile",
}


@cache
def own_strategies() -> dict[type, st.SearchStrategy[Any]]:
    """The strategy of each of the plugin's types that tests draw."""
    scales = edges_first((1.0, 1e-3, 1e3), st.floats(1e-3, 1e3))
    return {
        PrivacyClaim: claims(),
        NeighbouringPair: neighbours(),
        GaussianNoise: st.builds(GaussianNoise, sigma=scales),
        LaplaceNoise: st.builds(LaplaceNoise, scale=scales),
        **{drawn: adversarial(family).strategy for drawn, family in _PRESETS.items()},
    }


def reference_configurations(mechanism: type) -> st.SearchStrategy[Any] | None:
    """Configurations of a ``dp_icl`` mechanism, or of a variant that ``dp_icl`` derives from one.

    Mechanisms come without a model, so that their datasets are recorded answers or embeddings, one per
    partition.

    Returns:
        The strategy, or None for a class that is none of the reference mechanisms.
    """
    for ancestor in mechanism.__mro__:
        recipe = _RECIPES.get(f"{ancestor.__module__}.{ancestor.__qualname__}")
        if recipe is not None:
            return recipe(mechanism)
    return None


def register_types() -> None:
    """Make the types resolvable even where the entry point was not run, or could not be lazy."""
    if _hypothesis_entry.resolver_table() is not None:
        _hypothesis_entry.register()
        return
    for own, strategy in own_strategies().items():
        st.register_type_strategy(own, strategy)
    if importlib.util.find_spec(_hypothesis_entry.REFERENCE) is None:
        return
    for path, recipe in _RECIPES.items():
        module, _, name = path.rpartition(".")
        mechanism = getattr(importlib.import_module(module), name)
        st.register_type_strategy(mechanism, recipe(mechanism))
