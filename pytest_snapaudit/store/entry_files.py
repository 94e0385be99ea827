"""The files of one entry: read only if intact, written data first, swept of what kills left behind."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from pytest_snapaudit.engine.snapshot import Snapshot, SnapshotPair
from pytest_snapaudit.store import archive, files
from pytest_snapaudit.store import manifest as manifests
from pytest_snapaudit.store.canonical import DIGEST_LENGTH, inputs_digest, is_digest
from pytest_snapaudit.store.failures import DamagedEntry, UnreadableEntry
from pytest_snapaudit.store.manifest import Manifest, SideSize

_LEFTOVER = re.compile(rf"\.[0-9a-f]{{{DIGEST_LENGTH}}}[^/]*\{files.TEMPORARY_SUFFIX}", re.ASCII)
_DATA = re.compile(rf"(?P<digest>[0-9a-f]{{{DIGEST_LENGTH}}})-[0-9a-f]{{{DIGEST_LENGTH}}}\.npz", re.ASCII)


def read_manifest(folder: Path, digest: str) -> Manifest | None:
    """The manifest of the entry with this inputs digest, None if there is none.

    Raises:
        UnreadableEntry: if what is there must not be used.
    """
    path = folder / f"{digest}.json"
    try:
        files.is_real_directory(folder)
        text = files.read_plain(path, manifests.MAX_MANIFEST_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return manifests.parse(text, name=folder.name, digest=digest)
    except UnreadableEntry as error:
        raise type(error)(f"{path} {error}") from error


def read_pair(folder: Path, manifest: Manifest) -> SnapshotPair:
    """The pair in the data file that ``manifest`` names.

    Raises:
        UnreadableEntry: if the file is missing, or not exactly what the manifest states.
    """
    path = folder / manifest.data_file
    try:
        data = files.read_plain(path, manifest.data_bytes)
    except FileNotFoundError as error:
        msg = f"{path}, the data file its manifest names, does not exist"
        raise DamagedEntry(msg) from error
    if len(data) != manifest.data_bytes:
        msg = f"{path} holds {len(data):,} bytes, not the {manifest.data_bytes:,} recorded"
        raise DamagedEntry(msg)
    if hashlib.sha256(data).hexdigest() != manifest.data_sha256:
        msg = f"{path} holds other bytes than recorded (SHA-256 differs)"
        raise DamagedEntry(msg)
    try:
        arrays = archive.decode(data, manifest.arrays)
        return SnapshotPair(*(_side(side, arrays, manifest) for side in ("reference", "canary")))
    except DamagedEntry as error:
        msg = f"{path} {error}"
        raise DamagedEntry(msg) from error
    except (TypeError, ValueError) as error:
        msg = f"{path} holds no valid pair: {error}"
        raise DamagedEntry(msg) from error


def _side(side: str, arrays: Mapping[str, NDArray[Any]], manifest: Manifest) -> Snapshot:
    snapshot = Snapshot(arrays[f"{side}_rows"], arrays[f"{side}_counts"], manifest.provenance)
    if snapshot.size != manifest.sides[side].evaluations:
        stated = manifest.sides[side].evaluations
        msg = f"counts {snapshot.size:,} evaluations of {side}; the manifest states {stated:,}"
        raise DamagedEntry(msg)
    return snapshot


def intact_pair(folder: Path, manifest: Manifest | None) -> SnapshotPair | None:
    """As :func:`read_pair`, None where that raises or there is no manifest."""
    if manifest is None:
        return None
    try:
        return read_pair(folder, manifest)
    except UnreadableEntry:
        return None


def manifest_of(
    name: str,
    inputs: Mapping[str, Any],
    pair: SnapshotPair,
    provenance: dict[str, Any],
    tolerance: float | None,
) -> tuple[Manifest, bytes]:
    """The manifest and the bytes of the data file of a recording made now.

    Raises:
        ValueError: if the manifest or the arrays are too large.
        TypeError: if an array is of a dtype no snapshot may hold.
    """
    sides = {"reference": pair.reference, "canary": pair.canary}
    arrays = {}
    for side, snapshot in sides.items():
        arrays[f"{side}_rows"] = archive.portable(snapshot.rows, "rows")
        arrays[f"{side}_counts"] = archive.portable(snapshot.counts, "counts")
    data = archive.encode(arrays)
    provenance = {"date": datetime.now(UTC).isoformat(timespec="seconds"), **provenance}
    manifest = Manifest(
        name=name,
        inputs=inputs,
        provenance=dict(sorted(provenance.items())),
        rounded_to=tolerance,
        sides={side: SideSize(len(snapshot.rows), snapshot.size) for side, snapshot in sides.items()},
        data_file=manifests.data_file_name(inputs_digest(inputs), data),
        data_bytes=len(data),
        data_sha256=hashlib.sha256(data).hexdigest(),
        arrays={member: archive.describe(array) for member, array in arrays.items()},
    )
    size = len(manifest.render().encode())
    if size > manifests.MAX_MANIFEST_BYTES:
        msg = (
            f"inputs and provenance must fit a manifest of {manifests.MAX_MANIFEST_BYTES:,} bytes, "
            f"got {size:,}; state digests instead of long texts."
        )
        raise ValueError(msg)
    return manifest, data


def write_entry(folder: Path, new: Manifest, data: bytes, intact: Manifest | None) -> None:
    """Write the data file, then the manifest that names it.

    Args:
        folder: of the entry.
        new: what to record.
        data: its data file.
        intact: the entry on disk if it can be used. Its data file is kept if it holds the same arrays, and
            nothing is written if it differs in nothing but the date.
    """
    if intact is not None and intact.arrays == new.arrays:
        new = replace(
            new, data_file=intact.data_file, data_bytes=intact.data_bytes, data_sha256=intact.data_sha256
        )
        undated = replace(new, provenance={**new.provenance, "date": intact.provenance.get("date")})
        if undated.render() == intact.render():
            return
    else:
        files.write_atomic(folder / new.data_file, data)
    files.write_atomic(folder / f"{new.digest}.json", new.render().encode())


def manifest_paths(folder: Path) -> list[Path]:
    """What lies at the place of a manifest in ``folder``, sorted."""
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".json" and is_digest(path.stem))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files, and data files that no manifest names; those of an unreadable manifest stay."""
    named: dict[str, str | None] = {}
    for path in list(folder.iterdir()):
        match = _DATA.fullmatch(path.name)
        if match and match["digest"] not in named:
            named[match["digest"]] = _named_by(folder, match["digest"])
        unnamed = match is not None and named[match["digest"]] not in (None, path.name)
        if unnamed or _LEFTOVER.fullmatch(path.name):
            with contextlib.suppress(OSError):
                path.unlink()


def _named_by(folder: Path, digest: str) -> str | None:
    """The data file the manifest names; empty if there is no manifest, None if it cannot be read."""
    try:
        manifest = read_manifest(folder, digest)
    except UnreadableEntry:
        return None
    return "" if manifest is None else manifest.data_file
