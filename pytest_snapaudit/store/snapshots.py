"""The store: entries by name and inputs, loaded only if intact, saved so that a kill leaves old or new."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from pytest_snapaudit.engine.errors import SnapshotCorrupt, SnapshotMissing, SnapshotStale
from pytest_snapaudit.engine.snapshot import SnapshotPair
from pytest_snapaudit.store import archive, files
from pytest_snapaudit.store import manifest as manifests
from pytest_snapaudit.store.canonical import (
    DIGEST_LENGTH,
    JSON,
    entry_key,
    inputs_digest,
    is_digest,
    normalise_mapping,
    validate_name,
)
from pytest_snapaudit.store.differences import differing_fields
from pytest_snapaudit.store.entry_files import (
    intact_pair,
    manifest_of,
    manifest_paths,
    read_manifest,
    read_pair,
    remove_leftovers,
    write_entry,
)
from pytest_snapaudit.store.failures import ForeignEntry, SnapshotForeign, UnreadableEntry
from pytest_snapaudit.store.manifest import Manifest
from pytest_snapaudit.store.rounding import round_pair, rounds, validate_tolerance

_MAX_FIELDS = 10


@dataclass(frozen=True)
class StoredEntry:
    """One entry as found on disk.

    Attributes:
        name: name of the entry.
        digest: digest of its inputs.
        path: its manifest.
        size: bytes on disk, manifest and data file.
        date: when it was recorded (ISO 8601, UTC), or None if unknown.
        problem: why it cannot be used, as far as is known without reading the data file; else empty.
        provenance: where its rows come from, as given when it was recorded; empty if unknown.
    """

    name: str
    digest: str
    path: Path
    size: int
    date: str | None = None
    problem: str = ""
    provenance: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def key(self) -> str:
        """``<name>/<digest>``, what :meth:`SnapshotStore.entry_key` gives for its name and inputs."""
        return f"{self.name}/{self.digest}"


class SnapshotStore:
    """Recorded snapshot pairs under one directory.

    The entry ``name`` for the inputs with digest ``d`` is the manifest ``<directory>/<name>/<d>.json`` and
    the data file ``<d>-<digest of the content>.npz`` beside it. A data file is written before the manifest
    that names it and removed after the manifest that named it is gone, so a kill at any moment leaves the old
    entry or the new one; what else it leaves is ignored by reading and removed by the next :meth:`save`.
    Processes that share a directory take turns through an advisory lock where the system has one.

    Args:
        directory: where the entries are; need not exist before the first :meth:`save`.
        tolerance: round every recording to this tolerance, as
            :func:`~pytest_snapaudit.store.rounding.round_rows` does, unless :meth:`save` is told otherwise;
            None records rows as they are.
        repair_command: ends the message about a damaged entry; what is missing or stale is recorded by the
            same command with ``--snapaudit-update=new``, which leaves other entries alone.

    Raises:
        ValueError: if ``tolerance`` is not a finite number above 0.
    """

    def __init__(
        self,
        directory: Path,
        *,
        tolerance: float | None = None,
        repair_command: str = "pytest --snapaudit-update=all",
    ) -> None:
        self.directory = Path(directory)
        self.tolerance = None if tolerance is None else validate_tolerance(tolerance, "tolerance")
        self.repair_command = repair_command
        self.record_command = repair_command.replace("--snapaudit-update=all", "--snapaudit-update=new")
        self._swept = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.directory)!r})"

    def load(self, name: str, inputs: Mapping[str, JSON]) -> SnapshotPair:
        """Return the pair recorded under ``name`` for exactly these ``inputs``.

        Both sides carry the provenance of the recording. Nothing is unpickled, no link is followed, and
        nothing is written.

        Raises:
            SnapshotMissing: if nothing is recorded under this name.
            SnapshotStale: if only entries with other inputs are; the message lists the fields that differ.
            SnapshotForeign: if something else lies at the entry's place (a SnapshotCorrupt).
            SnapshotCorrupt: if the entry is damaged or unsafe to read.
            TypeError, ValueError: if the name or the inputs are invalid.
        """
        wanted = normalise_mapping(inputs, "inputs")
        digest = inputs_digest(wanted)
        folder = self._folder(name)
        try:
            with files.locked(self.directory, exclusive=False):
                manifest = read_manifest(folder, digest)
                if manifest is None:
                    self._raise_absent(name, folder, wanted)
                return read_pair(folder, manifest)
        except UnreadableEntry as error:
            raise self._failure(name, error) from error

    def save(
        self,
        name: str,
        inputs: Mapping[str, JSON],
        pair: SnapshotPair,
        *,
        provenance: Mapping[str, JSON],
        rounded_to: float | None = None,
    ) -> Path:
        """Record ``pair`` under ``name`` for ``inputs`` and return the path of its manifest.

        Writes nothing if the entry on disk is intact and differs in nothing but the date: the date is that of
        the first recording with this content. An entry of the same name and inputs is replaced, damaged or
        not; entries with other inputs are left alone.

        Args:
            name: name of the entry, see :func:`~pytest_snapaudit.store.canonical.validate_name`.
            inputs: everything the recording depends on; they decide whether an entry is stale.
            pair: rows of bool, integers, floats, complex numbers or text.
            provenance: model, prompt digests, parameters, versions; ``date`` is added if absent. The
                provenance the two sides carry is not stored.
            rounded_to: round rows to this tolerance and say so in the manifest; None for the store's own.
                Rows of the entry that is replaced come first, so a recording that drifted by less comes out
                identical. Only floats and complex numbers are rounded.

        Raises:
            SnapshotForeign: if something that is no entry is in the way.
            TypeError, ValueError: if an argument is invalid, rows have another dtype, or there are too many.
            OSError: if the file system refuses to write.
        """
        wanted = normalise_mapping(inputs, "inputs")
        digest = inputs_digest(wanted)
        folder = self._folder(name)
        origin = normalise_mapping(provenance, "provenance")
        if not isinstance(pair, SnapshotPair):
            msg = f"pair must be a SnapshotPair, got {type(pair).__name__}."
            raise TypeError(msg)
        tolerance = self.tolerance if rounded_to is None else validate_tolerance(rounded_to, "rounded_to")
        if not rounds(pair):
            tolerance = None
        for side in (pair.reference, pair.canary):
            archive.portable(side.rows, "rows")
            if side.size > manifests.MAX_EVALUATIONS:
                msg = (
                    f"a side must have at most {manifests.MAX_EVALUATIONS:,} evaluations, got {side.size:,}."
                )
                raise ValueError(msg)
        files.make_directory(self.directory)
        with files.locked(self.directory, exclusive=True):
            try:
                old = self._prepare(folder, digest)
                previous = intact_pair(folder, old)
                if tolerance is not None:
                    pair = round_pair(pair, tolerance, previous)
                new, data = manifest_of(name, wanted, pair, origin, tolerance)
                write_entry(folder, new, data, old if previous is not None else None)
            except ForeignEntry as error:
                raise self._failure(name, error) from error
            self._sweep(folder)
        return folder / f"{digest}.json"

    def entries(self) -> list[StoredEntry]:
        """Every entry on disk, sorted by name and digest; leftovers and files of other kinds are ignored."""
        with files.locked(self.directory, exclusive=False):
            return [_entry(folder, path) for folder in self._folders() for path in manifest_paths(folder)]

    def remove(self, entry: StoredEntry) -> None:
        """Remove the manifest and the data files of ``entry``; without effect if they are gone.

        Raises:
            SnapshotForeign: if the entry's folder is not a directory of this store.
            ValueError: if the entry's name or digest cannot be those of an entry.
        """
        folder = self._folder(entry.name)
        if not is_digest(entry.digest):
            msg = f"entry.digest must be {DIGEST_LENGTH} hexadecimal digits, got {entry.digest!r}."
            raise ValueError(msg)
        with files.locked(self.directory, exclusive=True):
            try:
                files.is_real_directory(folder)
            except FileNotFoundError:
                return
            except ForeignEntry as error:
                raise self._failure(entry.name, error) from error
            (folder / f"{entry.digest}.json").unlink(missing_ok=True)
            files.fsync_directory(folder)
            remove_leftovers(folder)
            with contextlib.suppress(OSError):
                folder.rmdir()
                files.fsync_directory(self.directory)

    def entry_key(self, name: str, inputs: Mapping[str, JSON]) -> str:
        """The :attr:`StoredEntry.key` of the entry ``name`` for ``inputs``, stored or not."""
        return entry_key(name, inputs)

    def _folder(self, name: str) -> Path:
        return self.directory / validate_name(name)

    def _folders(self) -> Iterator[Path]:
        if not self.directory.is_dir():
            return
        for path in sorted(self.directory.iterdir()):
            with contextlib.suppress(ForeignEntry, FileNotFoundError, ValueError):
                if files.is_real_directory(path) and validate_name(path.name):
                    yield path

    def _prepare(self, folder: Path, digest: str) -> Manifest | None:
        """Make the folder of an entry and return the manifest it holds, None if there is none to use."""
        try:
            files.is_real_directory(folder)
        except FileNotFoundError:
            files.make_directory(folder)
        try:
            return read_manifest(folder, digest)
        except UnreadableEntry:
            return None

    def _sweep(self, folder: Path) -> None:
        """Remove what kills left behind: in every folder at the first recording, then in the one written."""
        for path in [folder] if self._swept else list(self._folders()):
            remove_leftovers(path)
        self._swept = True

    def _raise_absent(self, name: str, folder: Path, wanted: Mapping[str, Any]) -> NoReturn:
        others = []
        for path in manifest_paths(folder):
            with contextlib.suppress(UnreadableEntry):
                other = read_manifest(folder, path.stem)
                if other is not None:
                    others.append((differing_fields(other.inputs, wanted), other))
        if not others:
            msg = (
                f"snapshot {name!r}: nothing is recorded under this name in {self.directory}; "
                f"record it with: {self.record_command}"
            )
            raise SnapshotMissing(msg)
        fields, nearest = min(others, key=lambda item: (len(item[0]), item[1].digest))
        more = [f"... and {len(fields) - _MAX_FIELDS} more"] if len(fields) > _MAX_FIELDS else []
        lines = [
            f"snapshot {name!r}: stale, recorded for other inputs on {nearest.date} "
            f"({len(others)} recorded, the nearest differs in {len(fields)}; recorded -> now)",
            *(f"  {line}" for line in fields[:_MAX_FIELDS] + more),
            f"if the change is meant, record it again with: {self.record_command}",
        ]
        raise SnapshotStale("\n".join(lines))

    def _failure(self, name: str, error: UnreadableEntry) -> SnapshotCorrupt:
        foreign = isinstance(error, ForeignEntry)
        kind, word = (SnapshotForeign, "foreign") if foreign else (SnapshotCorrupt, "corrupt")
        reason = str(error).rstrip(".")
        return kind(f"snapshot {name!r}: {word}, {reason}; {error.advice}: {self.repair_command}")


def _entry(folder: Path, path: Path) -> StoredEntry:
    date, problem, size = None, "", path.lstat().st_size
    provenance: Mapping[str, Any] = {}
    try:
        manifest = read_manifest(folder, path.stem)
        if manifest is not None:
            date, provenance = manifest.date, manifest.provenance
            size += (folder / manifest.data_file).lstat().st_size
    except UnreadableEntry as error:
        problem = str(error)
    except FileNotFoundError:
        problem = "its data file does not exist"
    return StoredEntry(folder.name, path.stem, path, size, date, problem, provenance)
