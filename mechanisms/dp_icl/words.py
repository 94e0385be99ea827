"""Words of a text, and public vocabularies of them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def tokenise(text: str) -> list[str]:
    """The words of a text, in order and with repeats.

    A word is a run of letters and digits, with apostrophes inside it ("don't"); everything else separates words.
    Words are in lower case and in Unicode's composed form (NFC).

    Raises:
        TypeError: ``text`` is not a string.
    """
    if not isinstance(text, str):
        msg = f"text must be a string, got {text!r} of type {type(text).__name__}."
        raise TypeError(msg)
    return _WORD.findall(unicodedata.normalize("NFC", text.lower()))


def public_vocabulary(texts: Iterable[str]) -> tuple[str, ...]:
    """The different words of texts that are public, in alphabetical order.

    Args:
        texts: texts of which none is private: no exemplar, and no response to exemplars.

    Raises:
        TypeError: ``texts`` is a single string, or holds something else.
    """
    if isinstance(texts, str):
        msg = f"texts must be a collection of strings, got the string {texts!r}; put a single text in a list."
        raise TypeError(msg)
    return tuple(sorted({word for text in texts for word in tokenise(text)}))


def validate_vocabulary(value: object) -> tuple[str, ...]:
    """Return the tokens of a vocabulary as a tuple.

    Raises:
        TypeError: it is not a sequence of strings.
        ValueError: it is empty, holds a token twice, or one that :func:`tokenise` never yields.
    """
    accepted = "a sequence of different words as tokenise() yields them, such as ('no', 'yes')"
    if isinstance(value, str) or not isinstance(value, Sequence):
        msg = f"vocabulary must be {accepted}, got {value!r} of type {type(value).__name__}."
        raise TypeError(msg)
    if not value:
        msg = f"vocabulary must be {accepted}, got none."
        raise ValueError(msg)
    seen: set[str] = set()
    for token in value:
        if not isinstance(token, str):
            msg = f"vocabulary must be {accepted}, got {token!r} of type {type(token).__name__}."
            raise TypeError(msg)
        if tokenise(token) != [token]:
            msg = f"vocabulary must be {accepted}; {token!r} is read as {tokenise(token)!r}."
            raise ValueError(msg)
        if token in seen:
            msg = f"vocabulary must be {accepted}, got {token!r} twice."
            raise ValueError(msg)
        seen.add(token)
    return tuple(value)
