"""Signal sentences that a language model writes when it is asked for two that are far apart (the paper's *LLM*)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dp_icl.models.protocols import EmbeddingModel, LanguageModel, check_texts
from dp_icl.probes.signal_search.pairs import SignalPair, furthest, measured_pair

METHOD = "model-written"

REQUESTS = (
    "Write two sentences that have nothing in common, as far apart in meaning and style as you can.\n"
    "Sentence 1:",
    "Here are two completely unrelated sentences, the first about tax law, the second about the song of whales.\n"
    "Sentence 1:",
    "Here are two completely unrelated sentences, the first a mathematical theorem, the second a cry of joy.\n"
    "Sentence 1:",
    "The two most different sentences in the English language are the following.\nSentence 1:",
)
"""Prompts that end where the first sentence begins."""

_SECOND = re.compile(r"\bsentence\s*2\s*[:.]\s*", re.IGNORECASE)
_FIRST = re.compile(r"^\s*sentence\s*1\s*[:.]\s*", re.IGNORECASE)


@dataclass(frozen=True)
class WrittenAnswer:
    """What a model wrote for one request.

    Args:
        request: the prompt.
        text: the answer as it came.
        pair: the two sentences with their distance, or None.
        problem: why there is no pair; empty otherwise.
    """

    request: str
    text: str
    pair: SignalPair | None
    problem: str


@dataclass(frozen=True)
class WrittenResult:
    """All answers, and the pair furthest apart; None if no answer held two sentences."""

    best: SignalPair | None
    answers: tuple[WrittenAnswer, ...]


def model_written_pairs(
    language: LanguageModel, embedding: EmbeddingModel, *, requests: Sequence[str] = REQUESTS
) -> WrittenResult:
    """Ask for two sentences as far apart as possible, and measure what comes back.

    Small models repeat themselves or the request, stop early or write one sentence; such answers are reported,
    not mended.

    Args:
        language: writes the sentences; its completions must be allowed several lines.
        embedding: measures them.
        requests: prompts that end with ``Sentence 1:``.

    Raises:
        TypeError, ValueError: ``requests`` is not a sequence of non-empty strings.
    """
    prompts = check_texts(requests, "model_written_pairs", "requests")
    answers = [
        _judged(embedding, request, text, index)
        for index, (request, text) in enumerate(zip(prompts, language.complete(prompts), strict=True))
    ]
    pairs = [answer.pair for answer in answers if answer.pair is not None]
    return WrittenResult(furthest(pairs) if pairs else None, tuple(answers))


def two_sentences(answer: str) -> tuple[str, str]:
    """The sentences of an answer to a prompt that ends with ``Sentence 1:``.

    The first is what comes before ``Sentence 2:``, the second the rest of that line; white space is joined.

    Raises:
        ValueError: there are no two different sentences; the message says what there is instead.
    """
    parts = _SECOND.split(_FIRST.sub("", answer), maxsplit=1)
    if len(parts) < 2:
        msg = "no second sentence"
        raise ValueError(msg)
    lines = parts[1].strip().splitlines()
    first, second = " ".join(parts[0].split()), " ".join(lines[0].split()) if lines else ""
    if not first or not second:
        msg = "an empty sentence"
        raise ValueError(msg)
    if first.casefold() == second.casefold():
        msg = "the same sentence twice"
        raise ValueError(msg)
    return first, second


def _judged(embedding: EmbeddingModel, request: str, text: str, index: int) -> WrittenAnswer:
    try:
        sentences = two_sentences(text)
    except ValueError as error:
        return WrittenAnswer(request, text, None, str(error))
    if any(sentence in request for sentence in sentences):
        return WrittenAnswer(request, text, None, "a sentence of the request")
    return WrittenAnswer(request, text, measured_pair(embedding, sentences, METHOD, {"request": index}), "")
