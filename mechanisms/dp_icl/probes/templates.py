"""Prompt templates with named fields, into which private texts go quoted, so that none can pose as the prompt.

A template is filled in one pass: what is put in is never searched for fields. A plain string is put in as one
quoted line in the manner of JSON: quotation marks, backslashes, line breaks of every kind, control characters
and the brackets that open a model's control tokens (``<``, ``[``) become escapes, and so do characters that
compatibility normalisation (NFKC) turns into one of these. So a text can neither close its quotation marks, nor begin
a line of its own, nor open a control token. What another template has filled
is a :class:`Rendered` and goes in as it is.
"""

from __future__ import annotations

import json
import re
import unicodedata
from string import Formatter

MARKERS = "<["
"""Characters that open control tokens of chat formats, as in ``<|im_start|>``, ``</s>`` or ``[INST]``."""


_SPECIAL = frozenset(MARKERS + '"\\')
_SUSPECT = re.compile(rf"[{re.escape(MARKERS)}]|[^\x20-\x7e]")


class Rendered(str):
    """Text that is part of a prompt already: made by a template or a constant of the program, never by data."""

    __slots__ = ()


def quoted(text: str) -> Rendered:
    """A text on one line between quotation marks; :func:`unquoted` undoes it (but joins two lone surrogates).

    Args:
        text: any string.

    Raises:
        TypeError: not a string.
    """
    return Rendered(f'"{escaped(text)}"')


def escaped(text: str) -> Rendered:
    """What :func:`quoted` puts between its quotation marks; ``escaped(a + b) == escaped(a) + escaped(b)``."""
    if not isinstance(text, str):
        msg = f"templates: only strings can be quoted, got {text!r} of type {type(text).__name__}."
        raise TypeError(msg)
    return Rendered(_SUSPECT.sub(_spelt, json.dumps(text, ensure_ascii=False)[1:-1]))


def unquoted(line: str) -> str:
    """The text that :func:`quoted` was given.

    Raises:
        ValueError: the line is not a quoted text.
    """
    value = json.loads(line)
    if not isinstance(value, str):
        msg = f"templates: {line!r} is not a quoted text."
        raise ValueError(msg)
    return value


def _spelt(match: re.Match[str]) -> str:
    character = match.group()
    meant = unicodedata.normalize("NFKC", character)  # what a tokenizer that normalises would read
    if character.isprintable() and not set(meant) & _SPECIAL:
        return character
    data = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[i : i + 2].hex()}" for i in range(0, len(data), 2))


class PromptTemplate:
    """A prompt with named fields in braces; ``{{`` and ``}}`` stand for braces.

    Args:
        text: the template.

    Raises:
        ValueError: a field has no name, or more than a name.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._pieces: list[tuple[str, str | None]] = []
        try:
            parsed = list(Formatter().parse(text))
        except ValueError as error:
            msg = f"PromptTemplate: {text!r} is no template: {error}."
            raise ValueError(msg) from error
        for literal, name, specification, conversion in parsed:
            if name is not None and (not re.fullmatch(r"[a-z_]+", name) or specification or conversion):
                msg = f"PromptTemplate: a field is a name of lower-case letters in braces, got {{{name}}}."
                raise ValueError(msg)
            self._pieces.append((literal, name))

    @property
    def fields(self) -> frozenset[str]:
        """Names of the fields."""
        return frozenset(name for _, name in self._pieces if name is not None)

    def fill(self, **values: str) -> Rendered:
        """Put values in: strings quoted, :class:`Rendered` as they are.

        Args:
            values: one string per field.

        Raises:
            TypeError: a value is not a string.
            ValueError: a field has no value, or a value no field.
        """
        if values.keys() != self.fields:
            msg = f"PromptTemplate: takes the fields {sorted(self.fields)}, got {sorted(values)}."
            raise ValueError(msg)
        inserted = {
            name: value if isinstance(value, Rendered) else quoted(value) for name, value in values.items()
        }
        return Rendered(
            "".join(literal + ("" if name is None else inserted[name]) for literal, name in self._pieces)
        )
