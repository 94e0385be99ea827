"""What a mechanism needs of a language model and of an embedding model.

Both protocols are deterministic: equal prompts give equal answers, up to the drift of floating-point
arithmetic with the composition of a batch (about 1e-5 in log-probabilities). Whatever changes the answers is
in ``provenance``, so recorded answers can be told apart and a journal can be keyed by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"


@runtime_checkable
class LanguageModel(Protocol):
    """A language model decoded greedily (temperature 0)."""

    @property
    def provenance(self) -> Mapping[str, JSON]:
        """Model name, library versions, decoding parameters and dtype; JSON-able."""

    def complete(self, prompts: Sequence[str]) -> list[str]:
        """Continue every prompt greedily.

        Args:
            prompts: n texts.

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
