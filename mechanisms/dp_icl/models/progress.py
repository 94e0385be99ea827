"""Progress on standard error, shown only to a person who is watching."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TextIO


class Progress:
    """Counts ``done/total`` on one line of a terminal; silent where the stream is no terminal.

    Args:
        what: name of the things counted.
        total: how many there are.
        least: nothing is shown for fewer things than this.
        stream: standard error by default.
    """

    def __init__(self, what: str, total: int, *, least: int = 1, stream: TextIO | None = None) -> None:
        self._what, self._total, self._done = what, total, 0
        self._stream = sys.stderr if stream is None else stream
        self._shown = total >= least and self._stream.isatty()

    def advance(self, count: int) -> None:
        """Report ``count`` more finished; the line is closed after the last one."""
        self._done += count
        if self._shown:
            end = "\n" if self._done >= self._total else ""
            self._stream.write(f"\r{self._what}: {self._done}/{self._total}{end}")
            self._stream.flush()


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
