"""A language model behind any OpenAI-compatible server; needs the extra ``openai``.

The completions endpoint scores given texts as well (``echo`` with ``logprobs``, which vLLM serves and OpenAI
no longer does). The chat endpoint writes, and scores labels by the first token of its answer. Requests that
fail in a way that may pass are made again, a bounded number of times; then there is one error, and what was
answered before it is in the journal of a :class:`~dp_icl.models.JournaledLanguageModel`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from dp_icl.models import openai_answers as answers
from dp_icl.models.extras import require
from dp_icl.models.journal import PartlyAnsweredError
from dp_icl.models.openai_request import Requester
from dp_icl.models.protocols import (
    JSON,
    check_pairs,
    check_positive,
    check_sampling,
    check_stop,
    check_texts,
    draw_seed,
)
from dp_icl.models.retry import RefusedError, Retries, RetriesExhaustedError

T = TypeVar("T")


class ModelServerError(PartlyAnsweredError):
    """A server did not give a usable answer, for as often as it was asked."""


class OpenAILanguageModel:
    """A model that a server answers for; a :class:`~dp_icl.models.protocols.LanguageModel`.

    Args:
        model: name under which the server knows the model.
        base_url: where the server's API begins, such as ``"http://127.0.0.1:8000/v1"``; OpenAI's by default.
        api_key: the key, for servers that want one. For OpenAI's own server the client reads it from the
            environment. It is never part of the provenance or of a message.
        server: what serves the model, such as ``"vLLM 0.32.0, float32"``, for provenance and journal; host
            and port of ``base_url`` by default.
        chat: ask the chat endpoint, each prompt being one message of the user.
        max_new_tokens: longest completion.
        stop: completions end before the first occurrence of this text.
        batch_size: prompts per request, where the endpoint takes several.
        timeout: seconds for one request.
        retries: how failures are retried.
        allow_empty: take a completion without any text for an answer, not for a failure.

    Raises:
        ImportError: the package ``openai`` is not installed.
        ValueError: a number is not positive, or ``model``, ``server`` or ``stop`` is empty.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        server: str | None = None,
        chat: bool = False,
        max_new_tokens: int = 32,
        stop: str | None = None,
        batch_size: int = 8,
        timeout: float = 120.0,
        retries: Retries | None = None,
        allow_empty: bool = False,
    ) -> None:
        owner = "OpenAILanguageModel"
        for argument, text in (("model", model), ("server", server)):
            if text == "" or not isinstance(text, str | None):
                msg = f"{owner}: {argument} must be a text of at least one character, got {text!r}."
                raise ValueError(msg)
        self._max_new_tokens = check_positive(max_new_tokens, owner, "max_new_tokens")
        self._batch_size = check_positive(batch_size, owner, "batch_size")
        self._stop = check_stop(stop, owner)
        if not timeout > 0:
            msg = f"{owner}: timeout must be a positive number of seconds, got {timeout!r}."
            raise ValueError(msg)
        self._chat, self._allow_empty = chat, allow_empty
        library = require("openai", extra="openai", owner=owner)
        client = library.OpenAI(
            base_url=base_url,
            api_key=api_key or ("none" if base_url else None),
            timeout=timeout,
            max_retries=0,
        )
        self._server = _host(str(client.base_url)) if server is None else server
        self._requester = Requester(library, client, timeout, Retries() if retries is None else retries)
        self._model = model
        self._provenance: dict[str, JSON] = {
            "model": model,
            "server": self._server,
            "endpoint": "chat" if chat else "completions",
            "max_new_tokens": self._max_new_tokens,
            "stop": stop,
        }

    @property
    def provenance(self) -> Mapping[str, JSON]:
        """Names of model and server, endpoint and decoding parameters."""
        return self._provenance

    def complete(
        self, prompts: Sequence[str], *, temperature: float = 0.0, seed: int | Sequence[int] | None = None
    ) -> list[str]:
        """Continue every prompt; see :meth:`LanguageModel.complete`.

        Draws depend on the server's honouring ``seed``.

        Returns:
            n texts of at most ``max_new_tokens`` tokens, cut before ``stop``, without surrounding space.

        Raises:
            TypeError, ValueError: ``prompts`` is not a sequence of non-empty strings, or ``temperature`` and
                ``seed`` do not fit.
            ModelServerError: the server gave no usable answer.
        """
        owner = "OpenAILanguageModel.complete"
        texts = check_texts(prompts, owner, "prompts")
        seeds = check_sampling(temperature, seed, len(texts), owner)
        size = self._batch_size if seeds is None and not self._chat else 1

        def ask(start: int) -> list[str]:
            part = texts[start : start + size]
            request: dict[str, Any] = {
                "temperature": temperature,
                "top_p": 1,
                "max_tokens": self._max_new_tokens,
            }
            if seeds is not None:
                request["seed"] = draw_seed(seeds[start], part[0])
            if self._stop is not None:
                request["stop"] = [self._stop]
            said = self._post(
                part, request, lambda body: answers.texts(body, len(part), self._chat, self._allow_empty)
            )
            return [(text if self._stop is None else text.split(self._stop)[0]).strip() for text in said]

        return self._gather(range(0, len(texts), size), ask)

    def label_log_probabilities(
        self, prompts: Sequence[str], continuations: Sequence[str]
    ) -> NDArray[np.float64]:
        """Score every continuation after every prompt; see :meth:`LanguageModel.label_log_probabilities`.

        On the completions endpoint a continuation must not share a token with the end of its prompt; one
        that begins with a space or a line break does not. On the chat endpoint the score is the
        log-probability that the answer's first token begins this label and no other, -inf where no such
        token is among the 20 likeliest.

        Raises:
            TypeError, ValueError: ``prompts`` or ``continuations`` is not a sequence of non-empty strings.
            ModelServerError: the server gave no usable answer, or a prompt and a continuation share a token.
        """
        owner = "OpenAILanguageModel.label_log_probabilities"
        texts = check_texts(prompts, owner, "prompts")
        labels = check_texts(continuations, owner, "continuations")

        def ask(row: int) -> list[list[float]]:
            if self._chat:
                request = {"temperature": 0, "max_tokens": 1, "logprobs": True, "top_logprobs": 20}
                return [
                    self._post([texts[row]], request, lambda body: answers.first_token_scores(body, labels))
                ]
            return [self._echo([(texts[row], label) for label in labels])]

        scores = self._gather(range(len(texts) if labels else 0), ask)
        return np.asarray(scores, np.float64).reshape(len(texts), len(labels))

    def continuation_log_probabilities(
        self, prompts: Sequence[str], continuations: Sequence[str]
    ) -> NDArray[np.float64]:
        """Score one continuation per prompt; see :meth:`LanguageModel.continuation_log_probabilities`.

        Raises:
            TypeError, ValueError: ``prompts`` and ``continuations`` are not as many non-empty strings, or the
                model answers by chat, which cannot score a given text.
            ModelServerError: the server gave no usable answer, or a prompt and a continuation share a token.
        """
        owner = "OpenAILanguageModel.continuation_log_probabilities"
        pairs = list(zip(*check_pairs(prompts, continuations, owner), strict=True))
        if self._chat:
            msg = f"{owner}: the chat endpoint cannot score a given text; use a model with chat=False."
            raise ValueError(msg)
        size = self._batch_size
        scores = self._gather(
            range(0, len(pairs), size), lambda start: self._echo(pairs[start : start + size])
        )
        return np.asarray(scores, np.float64)

    def _echo(self, pairs: list[tuple[str, str]]) -> list[float]:
        """Log-probability of each end after its prompt, from the tokens that the server echoes for both."""
        prompts = list(dict.fromkeys(prompt for prompt, _ in pairs))
        texts = [*prompts, *(prompt + end for prompt, end in pairs)]
        request = {"temperature": 0, "max_tokens": 1, "echo": True, "logprobs": 1}

        def read(body: Any) -> list[float]:
            tokens = dict(zip(texts, answers.echoed(body, texts), strict=True))
            return [
                answers.tail_score(tokens[prompt], tokens[prompt + end], prompt, end) for prompt, end in pairs
            ]

        return self._post(texts, request, read)

    def _post(self, texts: list[str], request: dict[str, Any], read: Callable[[Any], T]) -> T:
        if self._chat:
            messages = [{"role": "user", "content": texts[0]}]
            return self._requester.chat({"model": self._model, "messages": messages, **request}, read)
        return self._requester.completions({"model": self._model, "prompt": texts, **request}, read)

    def _gather(self, starts: range, ask: Callable[[int], list[T]]) -> list[T]:
        answered: list[Any] = []
        for start in starts:
            try:
                answered += ask(start)
            except (RetriesExhaustedError, RefusedError) as error:
                msg = (
                    f"OpenAILanguageModel: {self._model} at {self._server}: {error}. "
                    f"{len(answered)} answers of this call came before it; behind a journal they are kept, and "
                    "running again continues after them."
                )
                raise ModelServerError(msg, answered) from error
        return answered


def _host(url: str) -> str:
    """Host and port, without the user and password that a URL may hold."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
