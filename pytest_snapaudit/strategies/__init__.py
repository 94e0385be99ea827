"""Hypothesis strategies for privacy claims, pipeline parameters and neighbouring datasets.

The values at which proofs and code break are always likely, everything shrinks to the simplest violating
configuration, and whatever Hypothesis prints can be pasted as an ``@example``::

    from hypothesis import given
    from pytest_snapaudit import privacy_audit
    from pytest_snapaudit.strategies import claims, neighbours

    @given(claim=claims(max_delta=0), pair=neighbours(bounds=(0, 1)))
    @privacy_audit()
    def test_bounded_sum(privacy_auditor, claim, pair):
        mechanism = BoundedSum(epsilon=claim.epsilon, lower=0, upper=1)
        privacy_auditor.check(mechanism, neighbours=pair, epsilon=claim.epsilon)

Arguments are checked when a strategy is built, not when it first draws.
"""

from pytest_snapaudit.strategies.budgets import claims, deltas, epsilons, privacy_budgets
from pytest_snapaudit.strategies.configurations import (
    AdditiveNoiseConfiguration,
    Configuration,
    EmbeddingSpaceConfiguration,
    HistogramConfiguration,
    PrivateVotingConfiguration,
    QuantileConfiguration,
    SelectionConfiguration,
)
from pytest_snapaudit.strategies.counted import neighbouring_grouped, neighbouring_histograms
from pytest_snapaudit.strategies.neighbours import (
    neighbouring_rows,
    neighbouring_texts,
    neighbouring_vectors,
    neighbours,
)
from pytest_snapaudit.strategies.pairs import NeighbouringPair
from pytest_snapaudit.strategies.parameters import (
    clipping_bounds,
    dimensions,
    expert_counts,
    partitions,
    top_k,
)
from pytest_snapaudit.strategies.presets import AdversarialPreset, adversarial, with_must_try
from pytest_snapaudit.strategies.registered import register_types

__all__ = [
    "AdditiveNoiseConfiguration",
    "AdversarialPreset",
    "Configuration",
    "EmbeddingSpaceConfiguration",
    "HistogramConfiguration",
    "NeighbouringPair",
    "PrivateVotingConfiguration",
    "QuantileConfiguration",
    "SelectionConfiguration",
    "adversarial",
    "claims",
    "clipping_bounds",
    "deltas",
    "dimensions",
    "epsilons",
    "expert_counts",
    "neighbouring_grouped",
    "neighbouring_histograms",
    "neighbouring_rows",
    "neighbouring_texts",
    "neighbouring_vectors",
    "neighbours",
    "partitions",
    "privacy_budgets",
    "top_k",
    "with_must_try",
]

register_types()
