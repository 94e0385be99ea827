"""What a mechanism needs of a language model and of an embedding model: batch in, batch out.

Both protocols are deterministic: equal calls give equal answers, up to the drift of floating-point
arithmetic with the composition of a batch (about 1e-5 in log-probabilities). What a sampled text depends on
is its prompt, the temperature and its seed, never the rest of the batch. Whatever else changes the answers is
in ``provenance``, so recorded answers can be told apart and a journal can be keyed by it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"


@runtime_checkable
class LanguageModel(Protocol):
    """A language model: it continues prompts, greedily by default, and scores given continuations."""

    @property
    def provenance(self) -> Mapping[str, JSON]:
        """Model name, library versions, decoding parameters and dtype; JSON-able."""

    def complete(
        self, prompts: Sequence[str], *, temperature: float = 0.0, seed: int | Sequence[int] | None = None
    ) -> list[str]:
        """Continue every prompt.

        Args:
            prompts: n texts.
            temperature: 0 decodes greedily; above 0 tokens are drawn from the distribution whose logits are
                divided by it.
            seed: wanted above temperature 0, refused at 0: one for all prompts, or n of them. Different
                prompts, and different seeds of one prompt, are drawn independently; equal ones are equal.

        Returns:
            n texts, without their prompts, in the order of the prompts.
        """

    def label_log_probabilities(
        self, prompts: Sequence[str], continuations: Sequence[str]
    ) -> NDArray[np.float64]:
        """Score every continuation after every prompt.

        Args:
            prompts: n texts.
            continuations: K texts, tokenised on their own, so a leading space counts.

        Returns:
            (n, K) natural log-probabilities, each the sum over the tokens of the continuation.
        """

    def continuation_log_probabilities(
        self, prompts: Sequence[str], continuations: Sequence[str]
    ) -> NDArray[np.float64]:
        """Score one given continuation after each prompt.

        Args:
            prompts: n texts.
            continuations: n texts, one per prompt, tokenised on their own.

        Returns:
            (n,) natural log-probabilities, each the sum over the tokens of the continuation.
        """


@runtime_checkable
class EmbeddingModel(Protocol):
    """A sentence embedding onto the unit sphere."""

    @property
    def provenance(self) -> Mapping[str, JSON]:
        """Model name, library versions, parameters and dtype; JSON-able."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed every text.

        Args:
            texts: n texts.

        Returns:
            (n, d) rows of Euclidean length 1.
        """


def check_texts(texts: Sequence[str], owner: str, argument: str) -> list[str]:
    """Validate a batch of texts and return it as a list.

    Args:
        texts: any number of strings; a bare string is refused, since it would be read letter by letter.
        owner: the method that was called, for the message.
        argument: the name of the argument, for the message.

    Raises:
        TypeError: ``texts`` is a bare string, is no sequence, or holds something that is not a string.
        ValueError: a text is empty.
    """
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        msg = (
            f"{owner}: {argument} must be a sequence of strings, got {texts!r}; put a single text in a list."
        )
        raise TypeError(msg)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            msg = (
                f"{owner}: {argument}[{index}] must be a string, got {text!r} of type {type(text).__name__}."
            )
            raise TypeError(msg)
        if not text:
            msg = f"{owner}: {argument}[{index}] is empty; every text needs at least one character."
            raise ValueError(msg)
    return list(texts)


def check_positive(value: int, owner: str, argument: str) -> int:
    """Validate a count.

    Raises:
        ValueError: ``value`` is not an integer of at least 1.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        msg = f"{owner}: {argument} must be a positive integer, got {value!r}."
        raise ValueError(msg)
    return value


def check_pairs(
    prompts: Sequence[str], continuations: Sequence[str], owner: str
) -> tuple[list[str], list[str]]:
    """Validate prompts with one continuation each.

    Raises:
        TypeError, ValueError: as :func:`check_texts`, and if there are more of one than of the other.
    """
    texts = check_texts(prompts, owner, "prompts")
    ends = check_texts(continuations, owner, "continuations")
    if len(texts) != len(ends):
        msg = (
            f"{owner}: every prompt needs one continuation, got {len(texts)} prompts and "
            f"{len(ends)} continuations."
        )
        raise ValueError(msg)
    return texts, ends


def check_sampling(
    temperature: float, seed: int | Sequence[int] | None, size: int, owner: str
) -> list[int] | None:
    """Validate how tokens are chosen.

    Args:
        temperature: a finite number of at least 0.
        seed: an integer from 0 to 2**63 - 1, or ``size`` of them; None exactly if the temperature is 0.
        size: number of prompts.
        owner: the method that was called, for the message.

    Returns:
        one seed per prompt, or None for greedy decoding.

    Raises:
        ValueError: an argument is out of range, or a seed is missing or superfluous.
    """
    number = isinstance(temperature, int | float) and not isinstance(temperature, bool)
    if not number or not (math.isfinite(temperature) and temperature >= 0):
        msg = f"{owner}: temperature must be a finite number of at least 0, got {temperature!r}."
        raise ValueError(msg)
    if temperature == 0:
        if seed is not None:
            msg = f"{owner}: temperature 0 decodes greedily and takes no seed, got seed={seed!r}."
            raise ValueError(msg)
        return None
    if seed is None:
        msg = f"{owner}: temperature {temperature!r} draws tokens and needs seed=, an integer or one per prompt."
        raise ValueError(msg)
    seeds = list(seed) if isinstance(seed, Sequence) else [seed] * size
    if len(seeds) != size:
        msg = (
            f"{owner}: seed must be an integer or one per prompt, got {len(seeds)} seeds for {size} prompts."
        )
        raise ValueError(msg)
    for one in seeds:
        if isinstance(one, bool) or not isinstance(one, int) or not 0 <= one < 2**63:
            msg = f"{owner}: seeds must be integers from 0 to 2**63 - 1, got {one!r}."
            raise ValueError(msg)
    return seeds


def draw_seed(seed: int, prompt: str) -> int:
    """The seed, below 2**48, with which the tokens after ``prompt`` are drawn: streams of prompts are apart."""
    content = hashlib.sha256(f"{seed}:{prompt}".encode()).digest()
    return int.from_bytes(content[:6], "big")


def check_stop(stop: str | None, owner: str) -> str | None:
    """Validate the text before which completions end.

    Raises:
        ValueError: ``stop`` is neither None nor a text of at least one character.
    """
    if stop is not None and (not isinstance(stop, str) or not stop):
        msg = f"{owner}: stop must be None or a text of at least one character, got {stop!r}."
        raise ValueError(msg)
    return stop
