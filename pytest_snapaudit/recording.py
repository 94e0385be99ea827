"""Snapshots as a test session sees them: loaded by default, recorded when asked, never by accident."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from pytest_snapaudit.engine.errors import SnapshotError, SnapshotMissing, SnapshotStale
from pytest_snapaudit.engine.seeding import digest
from pytest_snapaudit.engine.snapshot import Snapshot, SnapshotPair
from pytest_snapaudit.options import RunOptions
from pytest_snapaudit.store import JSON, SnapshotStore, StoredEntry
from pytest_snapaudit.store.canonical import normalise_mapping
from pytest_snapaudit.store.failures import UnreadableEntry
from pytest_snapaudit.store.manifest import parse

__tracebackhide__ = True  # frames of this module say nothing to the author of a test

OWNER = "recorded_by"

Record = Callable[[Any, int, np.random.Generator], Any]


class SnapshotRecorder:
    """The store of one session.

    Args:
        options: the options of the session.
        rootdir: the directory that node ids are relative to.
    """

    def __init__(self, options: RunOptions, rootdir: Path) -> None:
        self._options = options
        self._rootdir = rootdir
        self._store = SnapshotStore(options.directory)
        self._pairs: dict[str, SnapshotPair] = {}

    def key(self, name: str, inputs: Mapping[str, JSON]) -> str:
        """What identifies an entry in reports: its name and the digest of its inputs."""
        return self._store.entry_key(name, inputs)

    def load_or_record(
        self,
        name: str,
        record: Record,
        neighbours: tuple[Any, Any],
        inputs: Mapping[str, JSON],
        *,
        size: int | None,
        default_size: int,
        tolerance: float | None,
        test_file: str,
        in_example: bool,
    ) -> tuple[SnapshotPair, str]:
        """The pair, and what was written in words ("" if nothing was).

        Args:
            size: evaluations per side; None takes what is recorded, and records ``default_size``.

        Raises:
            SnapshotMissing, SnapshotStale, SnapshotCorrupt: if the entry cannot be used, and not recorded.
            SnapshotError: if recording is asked for where it is refused.
        """
        key = self.key(name, inputs)
        if key in self._pairs:
            _check_size(name, self._pairs[key], size)
            return self._pairs[key], ""
        mode = self._options.update
        stored: SnapshotPair | None = None
        failure: SnapshotError | None = None
        try:
            stored = self._store.load(name, inputs)
            _check_size(name, stored, size)
        except SnapshotError as error:
            failure = error
        record_missing = mode == "new" and isinstance(failure, SnapshotMissing | SnapshotStale)
        if mode != "all" and not record_missing:
            if failure is not None:
                if in_example and isinstance(failure, SnapshotMissing | SnapshotStale):
                    failure = type(failure)(_outside_the_table(name, failure))
                raise failure.with_traceback(None) from None  # the message says it all
            assert stored is not None
            self._pairs[key] = stored
            return stored, ""
        self._refuse_if_unsafe(name, in_example)
        pair = self._record(name, record, neighbours, inputs, size or default_size)
        provenance = {
            **_origin(record),
            OWNER: self._owner(stored, test_file),
            "seed": self._options.seed,
            "pytest_snapaudit": metadata.version("pytest-snapaudit"),
            "numpy": np.__version__,
        }
        before = _contents(self._options.directory, key)
        path = self._store.save(name, inputs, pair, provenance=provenance, rounded_to=tolerance)
        pair = self._store.load(name, inputs)
        self._pairs[key] = pair
        if _contents(self._options.directory, key) == before:
            return pair, ""
        return pair, f"{'CREATE' if before is None else 'UPDATE'} {self._shown(path)}"

    def remove(self, entry: StoredEntry) -> str:
        """Remove an entry and say so."""
        self._store.remove(entry)
        return f"REMOVE {self._shown(entry.path)}"

    def unused(self, used: Collection[str], judged_files: Collection[str]) -> list[StoredEntry]:
        """Entries that no test asked for, though every test of the file that recorded them ran.

        Args:
            used: keys asked for in this session.
            judged_files: test files of which every test was selected and ran.
        """
        return [
            entry
            for entry in self._store.entries()
            if entry.key not in used and not entry.problem and _owner_of(entry) in judged_files
        ]

    def _refuse_if_unsafe(self, name: str, in_example: bool) -> None:
        flag = f"--snapaudit-update={self._options.update}"
        if in_example:
            msg = (
                f"snapshot {name!r}: recording is refused inside @given, where examples are repeated and "
                "shrunk. Record a declared table of neighbours in a fixture and let Hypothesis vary what "
                f"acts on it: pytest {flag}"
            )
            raise SnapshotError(msg)
        if self._options.is_worker:
            msg = (
                f"snapshot {name!r}: recording is refused under xdist, where several processes would write. "
                f"Run without it: pytest -n0 {flag}"
            )
            raise SnapshotError(msg)

    def _record(
        self,
        name: str,
        record: Record,
        neighbours: tuple[Any, Any],
        inputs: Mapping[str, JSON],
        size: int,
    ) -> SnapshotPair:
        identity = digest(name, dict(inputs)).value
        sides = []
        for side, dataset in enumerate(neighbours):
            seed = np.random.SeedSequence([self._options.seed, identity], spawn_key=(side,))
            rows = np.asarray(record(dataset, size, np.random.default_rng(seed)))
            if rows.dtype == object or rows.ndim < 1 or len(rows) != size:
                which = ("reference", "canary")[side]
                msg = (
                    f"snapshot {name!r}: record(dataset, size, rng) must return an array of {size} rows of "
                    f"numbers or text, got shape {rows.shape} of dtype {rows.dtype} for the {which} dataset."
                )
                raise ValueError(msg)
            sides.append(Snapshot.from_rows(rows))
        return SnapshotPair(*sides)

    def _owner(self, stored: SnapshotPair | None, test_file: str) -> str:
        """Keep the file that recorded the entry first: which test asks first depends on their order."""
        owner = None if stored is None else stored.reference.provenance.get(OWNER)
        if isinstance(owner, str) and (self._rootdir / owner).is_file():
            return owner
        return test_file

    def _shown(self, path: Path) -> str:
        return path.relative_to(self._rootdir).as_posix() if path.is_relative_to(self._rootdir) else str(path)


def _outside_the_table(name: str, failure: SnapshotError) -> str:
    return (
        f"snapshot {name!r}: a Hypothesis example asks for clean outputs that are not recorded, and none are recorded "
        "per example. Declare a table of neighbours, record all of it in a fixture (pytest --snapaudit-update=new), "
        "and draw from the table: st.sampled_from(table).\n" + textwrap.indent(str(failure), "  ")
    )


def _check_size(name: str, pair: SnapshotPair, size: int | None) -> None:
    recorded = [pair.reference.size, pair.canary.size]
    if size is not None and recorded != [size, size]:
        msg = (
            f"snapshot {name!r}: stale, recorded with other numbers of evaluations (recorded -> now)\n"
            f"  size: {recorded[0]} (reference) and {recorded[1]} (canary) -> {size}\n"
            "if the change is meant, record it again with: pytest --snapaudit-update=new"
        )
        raise SnapshotStale(msg)


def _origin(record: Record) -> dict[str, JSON]:
    """What ``record`` says about where its rows come from, known at the latest when it has been called."""
    return normalise_mapping(getattr(record, "provenance", {}), "record.provenance")


def _contents(directory: Path, key: str) -> bytes | None:
    manifest = directory / f"{key}.json"
    return manifest.read_bytes() if manifest.is_file() else None


def _owner_of(entry: StoredEntry) -> str | None:
    try:
        manifest = parse(entry.path.read_bytes(), name=entry.name, digest=entry.digest)
    except (OSError, UnreadableEntry):
        return None
    owner = manifest.provenance.get(OWNER)
    return owner if isinstance(owner, str) else None
