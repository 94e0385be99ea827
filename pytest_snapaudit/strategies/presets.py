"""Adversarial presets: per family of mechanisms, a strategy of configurations and examples to always try."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from hypothesis import example
from hypothesis import strategies as st

from pytest_snapaudit.strategies._arguments import choice
from pytest_snapaudit.strategies.configurations import Configuration
from pytest_snapaudit.strategies.icl_families import embedding_space, private_voting
from pytest_snapaudit.strategies.neighbours import known_options
from pytest_snapaudit.strategies.scalar_families import additive_noise, histogram, quantile, selection

C = TypeVar("C", bound=Configuration)
T = TypeVar("T", bound=Callable[..., Any])

_FAMILIES: dict[str, Callable[..., tuple[st.SearchStrategy[Any], tuple[Any, ...]]]] = {
    "additive-noise": additive_noise,
    "private-voting": private_voting,
    "embedding-space": embedding_space,
    "selection": selection,
    "histogram": histogram,
    "quantile": quantile,
}


@dataclass(frozen=True)
class AdversarialPreset(Generic[C]):
    """What to throw at one family of mechanisms.

    Attributes:
        family: its name.
        strategy: draws configurations, shrinking to the plainest.
        must_try: configurations that have exposed real mechanisms; apply with :func:`with_must_try`.
    """

    family: str
    strategy: st.SearchStrategy[C]
    must_try: tuple[C, ...]


def adversarial(family: str, **options: Any) -> AdversarialPreset[Any]:
    """The preset of a family of mechanisms.

    Args:
        family: one of

            - ``"additive-noise"``: bounded sums and means; :class:`AdditiveNoiseConfiguration`;
            - ``"private-voting"``: noisy votes of partitions; :class:`PrivateVotingConfiguration`;
            - ``"embedding-space"``: noisy means of embeddings; :class:`EmbeddingSpaceConfiguration`;
            - ``"selection"``: noisy maximum, exponential mechanism; :class:`SelectionConfiguration`;
            - ``"histogram"``: counts per category; :class:`HistogramConfiguration`;
            - ``"quantile"``: medians and other quantiles; :class:`QuantileConfiguration`.
        options: every family takes ``min_epsilon``, ``max_epsilon``, ``min_delta`` and ``max_delta``; the
            others (``adjacency``, ``max_partitions``, ``bounds``, ``allow_nan``, ...) differ; an unknown
            one is answered with the list.

    Raises:
        TypeError, ValueError: if the family or an option is unknown, or an option is out of range.

    Example::

        preset = adversarial("embedding-space", max_partitions=8)

        @with_must_try(preset)
        @given(config=preset.strategy)
        @privacy_audit()
        def test_esa(privacy_auditor, config): ...
    """
    build = _FAMILIES[choice("adversarial", "family", family, tuple(_FAMILIES))]
    strategy, must_try = build(**known_options(f'adversarial("{family}")', build, options))
    return AdversarialPreset(family, strategy, must_try)


def with_must_try(preset: AdversarialPreset[C], *, argument: str | None = None) -> Callable[[T], T]:
    """Decorator that adds every must-try configuration as an ``@example``, above or below ``@given``.

    Args:
        preset: from :func:`adversarial`.
        argument: the test's parameter that receives the configuration; its last one when not given.

    Raises:
        TypeError: if ``preset`` is not an :class:`AdversarialPreset`, or ``argument`` not a name.
    """
    if not isinstance(preset, AdversarialPreset):
        msg = f'with_must_try: preset must come from adversarial("..."), got {preset!r}.'
        raise TypeError(msg)
    if argument is not None and not (isinstance(argument, str) and argument.isidentifier()):
        msg = f"with_must_try: argument must be the name of a test parameter, got {argument!r}."
        raise TypeError(msg)

    def decorate(test: T) -> T:
        for configuration in reversed(preset.must_try):
            add = example(configuration) if argument is None else example(**{argument: configuration})
            test = add(test)
        return test

    return decorate
