"""A journal of model calls that were paid for, so that an interrupted recording loses nothing.

One SQLite file in write-ahead mode, one row per answer, with the digests of prompt, model and parameters and
the number of the replicate as its key: another model, version or decoding parameter never finds foreign
answers. The answers of one call of the model, a chunk of prompts, are on disk (``synchronous=FULL``) before the
next call is made. A process that is killed at any moment has therefore lost at most the chunk in flight: the one
that was sent, answered or not, and whose answers were not yet written. Only its prompts are ever paid for again.

The journal is a cache: deleting it costs calls, never results. Name it ``*.journal.sqlite`` to keep it out of
version control, with the ``-wal`` and ``-shm`` files that SQLite keeps beside it. Processes may share one; each
answer then is written by the first that has it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from dp_icl.models.progress import Progress
from dp_icl.models.protocols import JSON

_APPLICATION_ID = 0x736E6A6C
_VERSION = 1
_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS answers (
    prompt TEXT NOT NULL, model TEXT NOT NULL, parameters TEXT NOT NULL, replicate INTEGER NOT NULL,
    answer TEXT NOT NULL,
    PRIMARY KEY (prompt, model, parameters, replicate)
) WITHOUT ROWID;
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {_VERSION};
COMMIT;
"""
_MARKS = (
    "SELECT application_id, user_version, (SELECT COUNT(*) FROM sqlite_master) "
    "FROM pragma_application_id, pragma_user_version"
)
"""One statement, so that all three are of one moment: another process may be making the file."""
_BUSY_SECONDS = 60.0


def digest(value: JSON) -> str:
    """SHA-256 of the canonical JSON text of ``value``, in hexadecimal."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=_plain)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    msg = f"journal: a key is made of JSON values, got {value!r} of type {type(value).__name__}."
    raise TypeError(msg)


class CallKey(NamedTuple):
    """What one answer of a model depends on.

    Attributes:
        prompt: digest of the text.
        model: digest of the model's provenance.
        parameters: digest of the kind of call and its other arguments.
        replicate: tells repeated calls apart: the seed of a draw, else how often the same was asked before.
    """

    prompt: str
    model: str
    parameters: str
    replicate: int = 0


@dataclass
class CallCounts:
    """How answers were come by.

    Attributes:
        made: answers that the model was asked for, and gave.
        resumed: answers that the journal held, from an earlier run or an earlier call.
        shared: answers to a prompt that the same call already held.
    """

    made: int = 0
    resumed: int = 0
    shared: int = 0

    @property
    def saved(self) -> int:
        """Answers that cost no call."""
        return self.resumed + self.shared

    def __str__(self) -> str:
        return (
            f"{self.made:,} model calls made, {self.saved:,} saved "
            f"({self.resumed:,} from the journal, {self.shared:,} identical in one batch)"
        )


class PartlyAnsweredError(RuntimeError):
    """A batch that failed after some of it was answered; a journal keeps what is there.

    Attributes:
        answered: answers to the first prompts of the batch, in their order.
    """

    def __init__(self, message: str, answered: Sequence[JSON] = ()) -> None:
        super().__init__(message)
        self.answered: list[JSON] = list(answered)


class Journal:
    """Mapping from calls to answers, kept in one SQLite file.

    Args:
        path: the file; it and its directory are made when the first answer is written.

    Raises:
        ValueError: the file is something else.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._connection: sqlite3.Connection | None = None
        if self.path.exists():
            self._open()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return sum(count for (count,) in self._rows("SELECT COUNT(*) FROM answers"))

    def __contains__(self, key: CallKey) -> bool:
        return bool(self._find(key))

    def __getitem__(self, key: CallKey) -> Any:
        found = self._find(key)
        if not found:
            raise KeyError(key)
        return json.loads(found[0][0])

    def close(self) -> None:
        """Close the file, after which no ``-wal`` file is left; the next use opens it again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def add(self, entries: Mapping[CallKey, JSON]) -> None:
        """Write answers, all of them or none; they are on disk on return. What is there already stays."""
        if not entries:
            return
        rows = [(*key, json.dumps(value)) for key, value in entries.items()]
        connection = self._connection or self._open()
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?)", rows)
            connection.execute("COMMIT")
        except BaseException:
            connection.rollback()
            raise

    def fetch(
        self,
        keys: Sequence[CallKey],
        items: Sequence[Any],
        call: Callable[[list[Any]], Sequence[JSON]],
        *,
        chunk: int,
        what: str,
        counts: CallCounts | None = None,
    ) -> list[Any]:
        """Answers to ``items``, from the journal where it has them and from ``call`` otherwise.

        Args:
            keys: n keys, one per item.
            items: n items, such as prompts.
            call: answers a list of items; items with equal keys are asked once. If it raises
                :class:`PartlyAnsweredError`, the answers it holds are written before the error goes on.
            chunk: how many items go into one call; what one interruption can cost.
            what: the name of the calls in the progress line.
            counts: where to count them.

        Returns:
            n answers, in the order of the items.

        Raises:
            ValueError: ``call`` gave more or fewer answers than it was given items.
        """
        wanted = dict(zip(keys, items, strict=True))
        answers = {key: json.loads(found[0][0]) for key in wanted if (found := self._find(key))}
        pending = [key for key in wanted if key not in answers]
        counts = CallCounts() if counts is None else counts
        counts.resumed += len(answers)
        counts.shared += len(keys) - len(wanted)
        with Progress(what, len(pending)) as progress:
            for start in range(0, len(pending), chunk):
                part = pending[start : start + chunk]
                answered = self._pay(part, [wanted[key] for key in part], call, counts)
                answers.update(zip(part, answered, strict=True))
                progress.advance(len(part))
        return [answers[key] for key in keys]

    def _pay(
        self,
        part: list[CallKey],
        items: list[Any],
        call: Callable[[list[Any]], Sequence[JSON]],
        counts: CallCounts,
    ) -> Sequence[JSON]:
        try:
            answered = call(items)
        except PartlyAnsweredError as error:
            kept = dict(zip(part, error.answered, strict=False))
            self.add(kept)
            counts.made += len(kept)
            raise
        if len(answered) != len(part):
            msg = f"journal: the model was given {len(part)} prompts and gave {len(answered)} answers."
            raise ValueError(msg)
        self.add(dict(zip(part, answered, strict=True)))
        counts.made += len(part)
        return answered

    def _find(self, key: CallKey) -> list[tuple[Any, ...]]:
        return self._rows(
            "SELECT answer FROM answers WHERE prompt = ? AND model = ? AND parameters = ? AND replicate = ?",
            key,
        )

    def _rows(self, query: str, values: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        if self._connection is None and not self.path.exists():
            return []
        return (self._connection or self._open()).execute(query, tuple(values)).fetchall()

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            self._prepare(connection)
        except sqlite3.DatabaseError as error:
            connection.close()
            if isinstance(error, sqlite3.OperationalError):
                raise
            raise self._foreign(str(error)) from error
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        mark, version, tables = connection.execute(_MARKS).fetchone()
        if (mark, version) != (_APPLICATION_ID, _VERSION) and (mark or version or tables):
            raise self._foreign(f"it is an SQLite file of application {mark}, version {version}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        if not tables:
            connection.executescript(_SCHEMA)

    def _foreign(self, why: str) -> ValueError:
        msg = (
            f"journal: {self.path} is not a journal of model calls ({why}). "
            "Delete the file, or name another; only the calls in it are repeated."
        )
        return ValueError(msg)
