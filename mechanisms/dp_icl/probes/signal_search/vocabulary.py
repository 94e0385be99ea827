"""English words to search over, and the checks that a vocabulary is one of words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dp_icl.models.protocols import check_positive


def load_words() -> tuple[str, ...]:
    """11 293 English words of at least four letters, in alphabetical order.

    They are the lower-case words of Webster's Second International that all-MiniLM-L6-v2 reads as one token,
    without offensive ones. One word is one token, so a sentence of them is read the way it was searched.
    """
    return tuple(Path(__file__).with_name("words.txt").read_text(encoding="ascii").split())


def check_vocabulary(words: Sequence[str], owner: str) -> tuple[str, ...]:
    """Validate a vocabulary.

    Raises:
        TypeError: not a sequence of strings.
        ValueError: fewer than two words, a word twice, or one that is empty or holds white space.
    """
    if isinstance(words, str) or not isinstance(words, Sequence):
        msg = f"{owner}: vocabulary must be a sequence of words, got {words!r}."
        raise TypeError(msg)
    for index, word in enumerate(words):
        if not isinstance(word, str):
            msg = f"{owner}: vocabulary[{index}] must be a string, got {word!r}."
            raise TypeError(msg)
        if word.split() != [word]:
            msg = f"{owner}: vocabulary[{index}] must be one word without white space, got {word!r}."
            raise ValueError(msg)
    if len(words) < 2 or len(set(words)) < len(words):
        msg = f"{owner}: vocabulary must hold at least two words, each once; got {len(words)} words."
        raise ValueError(msg)
    return tuple(words)


def random_sentences(words: Sequence[str], count: int, length: int, seed: int) -> list[str]:
    """``count`` sentences of ``length`` words drawn without replacement; equal seeds, equal sentences.

    Raises:
        ValueError: a count is not positive, or there are fewer words than a sentence needs.
    """
    owner = "random_sentences"
    check_positive(count, owner, "count")
    check_positive(length, owner, "length")
    vocabulary = check_vocabulary(words, owner)
    if length > len(vocabulary):
        msg = f"{owner}: a sentence of {length} words needs as many different ones, got {len(vocabulary)}."
        raise ValueError(msg)
    rng = np.random.default_rng(seed)
    return [
        " ".join(vocabulary[i] for i in rng.choice(len(vocabulary), length, replace=False))
        for _ in range(count)
    ]
