"""Reading the decoded answers of OpenAI-compatible servers; what is not as it should be counts as a failed attempt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from dp_icl.models.retry import RefusedError, TransientError


class Tokens(NamedTuple):
    """The tokens of a text, and the natural log-probability of each after those before it (None for the first)."""

    tokens: tuple[str, ...]
    log_probabilities: tuple[float | None, ...]


def texts(body: Any, size: int, chat: bool, allow_empty: bool) -> list[str]:
    """The texts of ``size`` choices, in the order of the prompts.

    Raises:
        TransientError: there are more or fewer choices, or one has no text.
    """
    found = []
    for choice in _choices(body, size):
        text = (choice.get("message") or {}).get("content") if chat else choice.get("text")
        if not isinstance(text, str):
            msg = f"a choice has no text: {str(choice)[:200]!r}"
            raise TransientError(msg)
        if not text.strip() and not allow_empty:
            msg = "a choice is empty; pass allow_empty=True if the model may answer nothing"
            raise TransientError(msg)
        found.append(text)
    return found


def echoed(body: Any, sent: Sequence[str]) -> list[Tokens]:
    """The tokens of every text that was sent with ``echo``, without the one that was generated after it.

    Raises:
        TransientError: a choice has no log-probabilities, or is not about the text that was sent.
    """
    found = []
    for choice, text in zip(_choices(body, len(sent)), sent, strict=True):
        of_choice = choice.get("logprobs") or {}
        tokens, scores = of_choice.get("tokens"), of_choice.get("token_logprobs")
        if not isinstance(tokens, list) or not isinstance(scores, list) or len(tokens) != len(scores):
            msg = "a choice has no logprobs; the server must support echo with logprobs"
            raise TransientError(msg)
        if not str(choice.get("text")).startswith(text) or not tokens:
            msg = "a choice does not begin with the text that was sent; the server must support echo"
            raise TransientError(msg)
        # nothing was generated after the text if all the tokens together spell it
        kept = len(tokens) - ("".join(map(str, tokens)) != text)
        found.append(Tokens(tuple(tokens[:kept]), tuple(scores[:kept])))
    return found


def tail_score(prompt: Tokens, whole: Tokens, text: str, end: str) -> float:
    """Log-probability of the tokens of ``text + end`` that come after those of ``text``.

    Raises:
        RefusedError: the tokens of ``text`` are not the first of ``text + end``, or none comes after them.
        TransientError: a token has no log-probability.
    """
    size = len(prompt.tokens)
    if whole.tokens[:size] != prompt.tokens or len(whole.tokens) == size:
        msg = (
            f"the continuation {end!r} shares a token with the end of its prompt, {text[-20:]!r}; begin it "
            "with a space or a line break, and end the prompt without one"
        )
        raise RefusedError(msg)
    scores = [score for score in whole.log_probabilities[size:] if score is not None and math.isfinite(score)]
    if len(scores) < len(whole.tokens) - size:
        msg = "a token has no log-probability"
        raise TransientError(msg)
    return math.fsum(scores)


def first_token_scores(body: Any, labels: Sequence[str]) -> list[float]:
    """Per label, the log-probability that the first token of a chat answer begins it and no other label.

    Raises:
        TransientError: there are no log-probabilities, or no label is among the likeliest first tokens.
    """
    (choice,) = _choices(body, 1)
    content = (choice.get("logprobs") or {}).get("content")
    likeliest = content[0].get("top_logprobs") if isinstance(content, list) and content else None
    if not isinstance(likeliest, list) or not likeliest:
        msg = "a choice has no logprobs; the server must support logprobs with top_logprobs"
        raise TransientError(msg)
    chances = [0.0] * len(labels)
    for entry in likeliest:
        token = str(entry["token"]).strip()
        begun = [k for k, label in enumerate(labels) if token and label.strip().startswith(token)]
        if len(begun) == 1:
            chances[begun[0]] += _probability(entry["logprob"])
    if not any(chances):
        shown = [entry["token"] for entry in likeliest[:5]]
        msg = f"no label begins with one of the likeliest first tokens, {shown}"
        raise TransientError(msg)
    return [math.log(chance) if chance else -math.inf for chance in chances]


def _probability(logprob: Any) -> float:
    number = float(logprob)
    if not number <= 0.0:
        msg = f"a log-probability must be at most 0, got {logprob!r}"
        raise TransientError(msg)
    return math.exp(number)


def _choices(body: Any, size: int) -> list[dict[str, Any]]:
    choices = body.get("choices") if isinstance(body, dict) else None
    if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
        msg = f"the answer has no choices: {str(body)[:200]!r}"
        raise TransientError(msg)
    by_index = {choice.get("index", 0): choice for choice in choices}
    if len(choices) != size or by_index.keys() != set(range(size)):
        msg = f"{size} choices were expected, got {len(choices)}"
        raise TransientError(msg)
    return [by_index[index] for index in range(size)]
