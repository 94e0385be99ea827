"""Progress on standard error, shown only to a person who is watching."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType, TracebackType
from typing import TextIO


class Progress:
    """Counts ``done/total`` on one line of a terminal, with the rate and the time that remains.

    Silent where the stream is no terminal, and in CI (a non-empty environment variable ``CI``). As a context
    manager it closes the line on the way out of an interrupted block as well.

    Args:
        what: name of the things counted.
        total: how many there are.
        least: nothing is shown for fewer things than this.
        stream: standard error by default.
        clock: seconds from any starting point.
    """

    def __init__(
        self,
        what: str,
        total: int,
        *,
        least: int = 1,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what, self._total, self._done = what, total, 0
        self._stream = sys.stderr if stream is None else stream
        self._shown = total >= least and self._stream.isatty() and not os.environ.get("CI")
        self._clock = clock
        self._start = clock()
        self._width = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def advance(self, count: int) -> None:
        """Report ``count`` more finished; the line is closed after the last one."""
        self._done += count
        if self._shown:
            line = f"{self._what}: {self._done}/{self._total}{self._timing()}"
            self._stream.write("\r" + line.ljust(self._width))
            self._width = len(line)
            self._stream.flush()
        if self._done >= self._total:
            self.close()

    def close(self) -> None:
        """End the line, if one was begun."""
        if self._width:
            self._stream.write("\n")
            self._stream.flush()
            self._width = 0

    def _timing(self) -> str:
        elapsed = self._clock() - self._start
        if elapsed <= 0 or self._done <= 0:
            return ""
        rate = self._done / elapsed
        speed = f"{rate:.1f}/s" if rate >= 1 else f"{1 / rate:.1f} s each"
        if self._done >= self._total:
            return f", {speed}, {_duration(elapsed)} in all"
        return f", {speed}, {_duration((self._total - self._done) / rate)} left"


def _duration(seconds: float) -> str:
    """Hours, minutes and seconds, without leading zeros: ``1:02:03``, ``2:03`` or ``3 s``."""
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    if hours:
        return f"{hours}:{minutes:02}:{left:02}"
    return f"{minutes}:{left:02}" if minutes else f"{left} s"


@contextmanager
def quiet_unless_watched(transformers: ModuleType) -> Iterator[None]:
    """Hide the loading bars of transformers for the time of a block, unless standard error is a terminal."""
    logging = transformers.utils.logging
    hidden = not sys.stderr.isatty() and logging.is_progress_bar_enabled()
    if hidden:
        logging.disable_progress_bar()
    try:
        yield
    finally:
        if hidden:
            logging.enable_progress_bar()
