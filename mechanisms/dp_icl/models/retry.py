"""Bounded retries of calls that may succeed when they are made again."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


class TransientError(Exception):
    """A failure that another attempt may not meet.

    Args:
        message: what happened.
        retry_after: seconds that the server asked to wait, if it did.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class RefusedError(Exception):
    """A failure that asking again does not change."""


class RetriesExhaustedError(Exception):
    """Every attempt failed; the text says how often and how the last one did."""


@dataclass(frozen=True)
class Retries:
    """Exponential backoff with jitter: attempt k is followed by a pause of up to ``first_pause * 2**k`` seconds.

    The pause is drawn uniformly between half of that and all of it, and is not shorter than what the server
    asked for. If the server asks for more than ``longest_pause``, the call fails at once: waiting is then
    for its user to decide.

    Args:
        attempts: calls made before giving up, at least 1.
        first_pause: seconds, above 0.
        longest_pause: seconds, at least ``first_pause``.
        sleep: waits that many seconds.
        uniform: a number in [0, 1), for the jitter.

    Raises:
        ValueError: an argument is out of range.
    """

    attempts: int = 6
    first_pause: float = 0.5
    longest_pause: float = 60.0
    sleep: Callable[[float], None] = time.sleep
    uniform: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        if isinstance(self.attempts, bool) or not isinstance(self.attempts, int) or self.attempts < 1:
            msg = f"Retries: attempts must be a positive integer, got {self.attempts!r}."
            raise ValueError(msg)
        if not 0 < self.first_pause <= self.longest_pause < math.inf:
            msg = (
                "Retries: pauses must be positive seconds, the first not above the longest, "
                f"got {self.first_pause!r} and {self.longest_pause!r}."
            )
            raise ValueError(msg)

    def run(self, call: Callable[[], T]) -> T:
        """Make the call until it succeeds.

        Raises:
            RetriesExhaustedError: every attempt raised :class:`TransientError`, or the server asked for too
                long a pause. Other errors of ``call`` pass through.
        """
        for attempt in range(1, self.attempts + 1):
            try:
                return call()
            except TransientError as error:
                last = error
            if last.retry_after is not None and last.retry_after > self.longest_pause:
                msg = f"{last} (it asks to wait {last.retry_after:g} s; at most {self.longest_pause:g} s are waited)"
                raise RetriesExhaustedError(msg) from last
            if attempt < self.attempts:
                self.sleep(self.pause(attempt - 1, last.retry_after))
        msg = f"{last} ({self.attempts} {'attempt' if self.attempts == 1 else 'attempts'})"
        raise RetriesExhaustedError(msg) from last

    def pause(self, failures: int, retry_after: float | None) -> float:
        """Seconds to wait after the failure with this number, counted from 0."""
        longest = min(self.first_pause * 2.0 ** min(failures, 60), self.longest_pause)
        return max(longest * (0.5 + 0.5 * self.uniform()), retry_after or 0.0)
