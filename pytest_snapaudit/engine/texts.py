"""Texts as numbers: what tells two kinds of text apart when hardly any text occurs twice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MANY_LABELS = 64
"""With more different strings than this in the first trials, a string is read as a text."""

_MAX_WORDS, _FREQUENT_WORDS = 32, 8
_MAX_CHARACTERS = 16
_WORD, _NUMBER = re.compile(r"\w+"), re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


@dataclass(frozen=True)
class TextReader:
    """Numbers read off a text: its length, its first number, how often it holds each word, its characters.

    Attributes:
        words: counted one by one.
        characters: how many leading characters have a column each; 0 where texts are long.
    """

    words: tuple[str, ...]
    characters: int

    @property
    def width(self) -> int:
        """Numbers per text."""
        return 2 + len(self.words) + self.characters

    def columns(self, text: str) -> tuple[str, ...]:
        """Names of the numbers; ``text`` names the text."""
        return (
            f"length of {text}",
            f"first number in {text}",
            *(f"number of times {text} says {word!r}" for word in self.words),
            *(f"code of character {i} of {text}" for i in range(self.characters)),
        )

    def read(self, text: str) -> NDArray[np.float64]:
        """(width,) numbers."""
        values = np.full(self.width, np.nan)
        values[0] = len(text)
        number = _NUMBER.search(text)
        if number is not None:
            values[1] = float(number.group())
        if self.words:
            said = Counter(_WORD.findall(text))
            values[2 : 2 + len(self.words)] = [said[word] for word in self.words]
        head = text[: self.characters]
        start = 2 + len(self.words)
        values[start : start + len(head)] = [ord(character) for character in head]
        return values


def fit_reader(sides: Sequence[Iterable[str]]) -> TextReader:
    """The reader for texts like these: the words that differ most in how many texts say them, and common ones.

    Args:
        sides: texts of either side.
    """
    said: list[Counter[str]] = []
    totals, longest = [], 0
    for side in sides:
        count: Counter[str] = Counter()
        total = 0
        for text in side:
            count.update(set(_WORD.findall(text)))
            total += 1
            longest = max(longest, len(text))
        said.append(count)
        totals.append(max(total, 1))
    shares = {
        word: [count[word] / n for count, n in zip(said, totals, strict=True)] for word in set().union(*said)
    }
    difference = {word: max(share) - min(share) for word, share in shares.items()}
    telling = sorted(shares, key=lambda word: (-difference[word] / (sum(shares[word]) + 0.01) ** 0.5, word))
    frequent = sorted(shares, key=lambda word: (-sum(shares[word]), word))[:_FREQUENT_WORDS]
    repeated = [word for word in telling if sum(count[word] for count in said) > 3]
    words = dict.fromkeys(
        [*repeated[: _MAX_WORDS - _FREQUENT_WORDS], *(w for w in frequent if w in repeated)]
    )
    return TextReader(tuple(words), longest if longest <= _MAX_CHARACTERS else 0)
