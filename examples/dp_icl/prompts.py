"""The prompts of the examples: the private exemplars of one partition, then the query."""

from __future__ import annotations

from collections.abc import Sequence

from texts import Exemplar

TOPIC_TEMPLATE = "News: {text}\nTopic:{answer}"
HEADLINE_TEMPLATE = "News: {text}\nHeadline:{answer}"
WORDS_TEMPLATE = "Words: {text}\nHeadline:{answer}"

PUBLIC_HEADLINES = (
    Exemplar("bridge, river", "Farmers cross the river on the new bridge"),
    Exemplar("goalkeeper, rain", "Goalkeeper saves two penalties in the rain"),
)
"""Shows how a headline is made of words; of no private record."""


def prompt(template: str, exemplars: Sequence[Exemplar], query: str) -> str:
    """Every exemplar with its answer, then the query with its answer left open."""
    shown = [template.format(text=exemplar.text, answer=" " + exemplar.answer) for exemplar in exemplars]
    return "\n\n".join([*shown, template.format(text=query, answer="")])
