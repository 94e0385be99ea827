"""One request to an OpenAI-compatible server, with its failures sorted into those that may pass and the others."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from types import ModuleType
from typing import Any, TypeVar

from dp_icl.models.retry import RefusedError, Retries, TransientError

T = TypeVar("T")

_MAY_PASS = (408, 409, 425, 429)
_SHOWN = 200


class Requester:
    """Posts requests until an answer can be read.

    Args:
        library: the package ``openai``.
        client: an ``openai.OpenAI`` that makes no retries of its own.
        timeout: its seconds for one request, for messages.
        retries: how failures are retried.
        now: seconds since the epoch, for a ``Retry-After`` that names a date.
    """

    def __init__(
        self,
        library: ModuleType,
        client: Any,
        timeout: float,
        retries: Retries,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._library, self._client, self._timeout, self._retries = library, client, timeout, retries
        self._now = now

    def completions(self, request: dict[str, Any], read: Callable[[Any], T]) -> T:
        """Post to the completions endpoint; see :meth:`_run`."""
        return self._run(self._client.completions.with_raw_response.create, request, read)

    def chat(self, request: dict[str, Any], read: Callable[[Any], T]) -> T:
        """Post to the chat endpoint; see :meth:`_run`."""
        return self._run(self._client.chat.completions.with_raw_response.create, request, read)

    def _run(self, create: Callable[..., Any], request: dict[str, Any], read: Callable[[Any], T]) -> T:
        """What ``read`` makes of the decoded answer.

        Raises:
            RetriesExhaustedError: no attempt succeeded; ``read`` counts an attempt as failed by raising
                :class:`TransientError`.
            RefusedError: the server answered with a status such as 400, 401 or 404.
        """
        return self._retries.run(lambda: self._read(self._attempt(create, request), read))

    @staticmethod
    def _read(body: Any, read: Callable[[Any], T]) -> T:
        try:
            return read(body)
        except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
            msg = f"the answer is not of the expected form: {str(body)[:_SHOWN]!r}"
            raise TransientError(msg) from error

    def _attempt(self, create: Callable[..., Any], request: dict[str, Any]) -> Any:
        library = self._library
        try:
            text = create(**request).http_response.text
        except library.APITimeoutError as error:
            msg = f"no answer within {self._timeout:g} s"
            raise TransientError(msg) from error
        except library.APIConnectionError as error:
            msg = f"the connection failed: {error.__cause__ or error}"
            raise TransientError(msg) from error
        except library.APIStatusError as error:
            said = " ".join(error.response.text.split())[:_SHOWN]
            msg = f"status {error.status_code}: {said!r}"
            if error.status_code in _MAY_PASS or error.status_code >= 500:
                raise TransientError(
                    msg, self._retry_after(error.response.headers.get("retry-after"))
                ) from error
            raise RefusedError(msg) from error
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            msg = f"the answer is not JSON: {text[:_SHOWN]!r}"
            raise TransientError(msg) from error

    def _retry_after(self, header: str | None) -> float | None:
        """Seconds, from a header that holds seconds or a date; None if it holds neither."""
        if header is None:
            return None
        try:
            seconds = float(header)
        except ValueError:
            try:
                seconds = parsedate_to_datetime(header).timestamp() - self._now()
            except ValueError:
                return None
        return max(seconds, 0.0) if math.isfinite(seconds) else None
