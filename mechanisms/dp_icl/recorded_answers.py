"""Answers from keywords that a model once wrote, so that audits of them run without a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class RecordedAnswers:
    """A writer that looks up what a model once wrote for each set of keywords.

    Args:
        query: the query that was answered.
        answers: from words, in the order of the vocabulary, to the text written.
        otherwise: the text for all other words; without it they are an error.
    """

    query: str
    answers: Mapping[tuple[str, ...], str]
    otherwise: str | None = None

    def __call__(self, words: tuple[str, ...], query: str) -> str:
        """The recorded text.

        Raises:
            KeyError: nothing is recorded for this query, or for these words.
        """
        text = self.answers.get(words, self.otherwise) if query == self.query else None
        if text is None:
            msg = (
                f"no answer is recorded for the query {query!r} and the words {words!r}; there are {len(self.answers)} "
                f"for the query {self.query!r}: record it, or give otherwise=...."
            )
            raise KeyError(msg)
        return text
