"""Canaries: records drawn from the data, records made up, and identifiers of a format that anyone can draw from.

A natural identifier (a hash, a short URL, a key) is uniform over all strings of its format. One that occurs
in the data can therefore be compared with fresh ones: under the hypothesis that the output does not depend
on it, the identifier and n fresh ones are exchangeable, whatever score they are given, so its rank among them
is uniform. That makes :func:`rank_p_value` exact without any model of the scores.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from dp_icl.models.protocols import check_positive, check_texts

HEX = "0123456789abcdef"
BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase


@dataclass(frozen=True)
class IdentifierFormat:
    """Strings made of fixed parts and independent uniform characters.

    Args:
        name: for messages.
        pattern: one entry per part: a fixed text, or (alphabet, count) for ``count`` characters that are
            independent and uniform over the alphabet.

    Raises:
        ValueError: an alphabet has fewer than two characters or one twice, or nothing is random.
    """

    name: str
    pattern: tuple[str | tuple[str, int], ...]

    def __post_init__(self) -> None:
        parts = [part for part in self.pattern if not isinstance(part, str)]
        for alphabet, count in parts:
            check_positive(count, f"IdentifierFormat {self.name!r}", "count")
            if len(alphabet) < 2 or len(set(alphabet)) < len(alphabet):
                msg = f"IdentifierFormat {self.name!r}: alphabet needs two characters or more, each once."
                raise ValueError(msg)
        if not parts:
            msg = f"IdentifierFormat {self.name!r}: nothing in the pattern is random."
            raise ValueError(msg)

    @property
    def bits(self) -> float:
        """Entropy of an identifier, in bits."""
        return float(sum(n * np.log2(len(a)) for a, n in (p for p in self.pattern if not isinstance(p, str))))

    def draw(self, count: int, rng: Generator) -> list[str]:
        """``count`` independent identifiers, uniform over the format."""
        check_positive(count, f"IdentifierFormat {self.name!r}", "count")
        return ["".join(self._part(part, rng) for part in self.pattern) for _ in range(count)]

    @staticmethod
    def _part(part: str | tuple[str, int], rng: Generator) -> str:
        if isinstance(part, str):
            return part
        alphabet, count = part
        return "".join(alphabet[index] for index in rng.integers(len(alphabet), size=count))

    def matches(self, text: str) -> bool:
        """Whether ``text`` is one identifier of this format."""
        for part in self.pattern:
            if isinstance(part, str):
                if not text.startswith(part):
                    return False
                text = text[len(part) :]
            else:
                alphabet, count = part
                if len(text) < count or not set(text[:count]) <= set(alphabet):
                    return False
                text = text[count:]
        return not text


FORMATS = {
    entry.name: entry
    for entry in (
        IdentifierFormat("md5", ((HEX, 32),)),
        IdentifierFormat("sha1", ((HEX, 40),)),
        IdentifierFormat("sha256", ((HEX, 64),)),
        IdentifierFormat(
            "uuid4", ((HEX, 8), "-", (HEX, 4), "-4", (HEX, 3), "-", ("89ab", 1), (HEX, 3), "-", (HEX, 12))
        ),
        IdentifierFormat("short url", ("https://sho.rt/", (BASE62, 7))),
        IdentifierFormat("key", ("key-", (BASE62, 32))),
    )
}
"""Formats by name."""


def format_of(text: str, formats: Sequence[IdentifierFormat] = tuple(FORMATS.values())) -> IdentifierFormat:
    """The format of an identifier found in the data, from which fresh ones can be drawn.

    Raises:
        ValueError: it is of none of the formats.
    """
    for entry in formats:
        if entry.matches(text):
            return entry
    names = ", ".join(entry.name for entry in formats)
    msg = f"format_of: {text!r} is an identifier of none of the formats {names}; describe it by IdentifierFormat."
    raise ValueError(msg)


def fresh_identifiers(text: str, count: int, rng: Generator) -> list[str]:
    """``count`` identifiers that are exchangeable with ``text`` unless the output depends on it.

    Raises:
        ValueError: ``text`` is of no known format, or ``count`` is not positive.
    """
    return format_of(text).draw(count, rng)


def rank_p_value(canary: float, fresh: ArrayLike) -> float:
    """Exact p-value of "the scored output does not depend on the canary".

    Args:
        canary: its score; larger means more of it was seen.
        fresh: (n,) scores of n fresh identifiers.

    Returns:
        (1 + number of fresh scores at least as large) / (n + 1); at most α with probability at most α.

    Raises:
        ValueError: there are no fresh scores, or a score is not a number.
    """
    scores = np.asarray(fresh, np.float64)
    if scores.ndim != 1 or not len(scores) or np.isnan(scores).any() or np.isnan(canary):
        msg = f"rank_p_value: wants a number and (n,) numbers, n at least 1; got {canary!r} and {fresh!r}."
        raise ValueError(msg)
    return float((1 + np.count_nonzero(scores >= canary)) / (len(scores) + 1))


def sampled_canaries(corpus: Sequence[str], count: int, rng: Generator) -> list[str]:
    """``count`` different records of the corpus, each subset equally likely (the paper's canaries).

    Raises:
        TypeError, ValueError: the corpus is not a sequence of non-empty strings, or has too few different ones.
    """
    records = list(dict.fromkeys(check_texts(corpus, "sampled_canaries", "corpus")))
    check_positive(count, "sampled_canaries", "count")
    if count > len(records):
        msg = f"sampled_canaries: {count} canaries from {len(records)} different records; ask for fewer."
        raise ValueError(msg)
    return [records[index] for index in rng.choice(len(records), count, replace=False)]


def crafted_canaries(
    words: Sequence[str], count: int, rng: Generator, *, length: int = 8, absent_from: Sequence[str] = ()
) -> list[str]:
    """``count`` sentences of random words, capitalised and ended like sentences, that no record contains.

    Args:
        words: at least ``length`` words.
        count: how many.
        rng: source of randomness.
        length: words per canary.
        absent_from: records; a canary that is part of one is drawn again.

    Raises:
        TypeError: ``words`` or ``absent_from`` is not a sequence of strings.
        ValueError: a number is not positive, there are too few words, one is empty, or every draw was part of a
            record.
    """
    owner = "crafted_canaries"
    check_positive(count, owner, "count")
    check_positive(length, owner, "length")
    words = check_texts(words, owner, "words")
    absent_from = check_texts(absent_from, owner, "absent_from")
    if length > len(words):
        msg = f"{owner}: {length} words per canary, got {len(words)} words to draw from."
        raise ValueError(msg)
    canaries: list[str] = []
    for _ in range(100 * count):
        drawn = " ".join(words[index] for index in rng.choice(len(words), length, replace=False))
        sentence = drawn[0].upper() + drawn[1:] + "."
        if sentence not in canaries and not any(sentence in record for record in absent_from):
            canaries.append(sentence)
        if len(canaries) == count:
            return canaries
    msg = f"{owner}: found {len(canaries)} of {count} canaries outside the records; use more words or longer ones."
    raise ValueError(msg)
