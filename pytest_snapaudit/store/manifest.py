"""The manifest of one entry: JSON that is refused unless it is, to the byte, what the store writes."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_snapaudit.store.archive import MEMBERS, ArraySpec
from pytest_snapaudit.store.canonical import (
    DIGEST_LENGTH,
    inputs_sha256,
    normalise_mapping,
    parse_strict,
    validate_name,
)
from pytest_snapaudit.store.failures import DamagedEntry, ForeignEntry

FORMAT = "pytest-snapaudit snapshot"
VERSION = 1
MAX_MANIFEST_BYTES = 16 * 2**20
MAX_EVALUATIONS = 10**8

_KEYS = (
    "format",
    "version",
    "name",
    "inputs",
    "inputs_sha256",
    "provenance",
    "rounded_to",
    "sides",
    "data",
    "arrays",
)
_CHECKSUM = "manifest_sha256"
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True)
class SideSize:
    """Distinct rows and evaluations recorded of one side."""

    rows: int
    evaluations: int


@dataclass(frozen=True)
class Manifest:
    """What the store states about one entry.

    Attributes:
        name: name of the entry.
        inputs: what the recording depends on, normalised JSON.
        provenance: where the rows come from, normalised JSON; ``date`` is the time of recording, UTC.
        rounded_to: rows less than this apart were recorded as one; None if rows are as recorded.
        sides: sizes of ``reference`` and ``canary``.
        data_file: name of the data file, in the folder of the manifest.
        data_bytes: its size in bytes.
        data_sha256: its SHA-256.
        arrays: dtype, shape and SHA-256 of the four arrays.
    """

    name: str
    inputs: Mapping[str, Any]
    provenance: Mapping[str, Any]
    rounded_to: float | None
    sides: Mapping[str, SideSize]
    data_file: str
    data_bytes: int
    data_sha256: str
    arrays: Mapping[str, ArraySpec]

    @property
    def digest(self) -> str:
        """The inputs digest that names the files of the entry."""
        return inputs_sha256(self.inputs)[:DIGEST_LENGTH]

    @property
    def date(self) -> str | None:
        """When the entry was recorded, if the provenance says so in text."""
        date = self.provenance.get("date")
        return date if isinstance(date, str) else None

    def render(self) -> str:
        """The text of the manifest, one value per line, ending with a checksum over all the rest."""
        body = {
            "format": FORMAT,
            "version": VERSION,
            "name": self.name,
            "inputs": self.inputs,
            "inputs_sha256": inputs_sha256(self.inputs),
            "provenance": self.provenance,
            "rounded_to": self.rounded_to,
            "sides": {
                side: {"rows": size.rows, "evaluations": size.evaluations}
                for side, size in self.sides.items()
            },
            "data": {"file": self.data_file, "bytes": self.data_bytes, "sha256": self.data_sha256},
            "arrays": {
                name: {"dtype": spec.dtype, "shape": list(spec.shape), "sha256": spec.sha256}
                for name, spec in self.arrays.items()
            },
        }
        return _render(body, _checksum(body))


def _checksum(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(_dump(body).encode()).hexdigest()


def _render(body: Mapping[str, Any], checksum: str) -> str:
    return _dump({**body, _CHECKSUM: checksum}) + "\n"


def _dump(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)


def data_file_name(digest: str, data: bytes) -> str:
    """Name of a data file by its content, so that no new data file overwrites another."""
    return f"{digest}-{hashlib.sha256(data).hexdigest()[:DIGEST_LENGTH]}.npz"


def is_data_file_name(file: str, digest: str) -> bool:
    """Whether ``file`` is the name of a data file of the entry with this inputs digest."""
    return re.fullmatch(rf"{digest}-[0-9a-f]{{{DIGEST_LENGTH}}}\.npz", file, re.ASCII) is not None


def parse(data: bytes, *, name: str, digest: str) -> Manifest:
    """Read the manifest found at ``<name>/<digest>.json``.

    Line endings may be CRLF (version control converts them); any other difference from what the store
    writes is refused.

    Raises:
        ForeignEntry: if it is of another format, version, name or inputs.
        DamagedEntry: if anything in it is malformed, inconsistent or unsafe.
    """
    try:
        text = data.decode().replace("\r\n", "\n")
        document = parse_strict(text)
    except ValueError as error:
        msg = f"is not valid JSON ({error})"
        raise DamagedEntry(msg) from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        msg = f"is not a snapshot manifest: it has no {FORMAT!r} mark"
        raise ForeignEntry(msg)
    if document.get("version") != VERSION or isinstance(document["version"], bool):
        msg = f"is of format version {document.get('version')!r}; this release reads version {VERSION}"
        raise ForeignEntry(msg)
    checksum = document.pop(_CHECKSUM, None)
    if tuple(document) != _KEYS or checksum != _checksum(document) or _render(document, checksum) != text:
        msg = "is not as it was written: edited, reformatted or damaged (its checksum does not match)"
        raise DamagedEntry(msg)
    manifest = _build(document)
    if manifest.name != name or manifest.digest != digest:
        msg = f"belongs to the entry {manifest.name}/{manifest.digest}, not to {name}/{digest}"
        raise ForeignEntry(msg)
    return manifest


def _build(document: Mapping[str, Any]) -> Manifest:
    try:
        name = validate_name(document["name"])
        inputs = normalise_mapping(document["inputs"], "inputs")
        provenance = normalise_mapping(document["provenance"], "provenance")
    except (TypeError, ValueError) as error:
        raise DamagedEntry(f"is invalid: {error}") from error
    sha256 = inputs_sha256(inputs)
    if document["inputs_sha256"] != sha256:
        msg = f"states the inputs digest {document['inputs_sha256']!r}; its inputs have {sha256!r}"
        raise DamagedEntry(msg)
    data = _fields(document["data"], "data", ("file", "bytes", "sha256"))
    file = _of_type(data["file"], "data.file", str)
    if not is_data_file_name(file, sha256[:DIGEST_LENGTH]):
        msg = (
            f"names the data file {file!r}; only {sha256[:DIGEST_LENGTH]}-<digest>.npz beside it is accepted"
        )
        raise DamagedEntry(msg)
    rounded_to = document["rounded_to"]
    if rounded_to is not None:
        rounded_to = _of_type(rounded_to, "rounded_to", float)
        if not (math.isfinite(rounded_to) and rounded_to > 0):
            msg = f"states rounded_to={rounded_to!r}; a finite number above 0, or null, is accepted"
            raise DamagedEntry(msg)
    sides = _fields(document["sides"], "sides", ("reference", "canary"))
    arrays = _fields(document["arrays"], "arrays", MEMBERS)
    manifest = Manifest(
        name=name,
        inputs=inputs,
        provenance=provenance,
        rounded_to=rounded_to,
        sides={side: _side(value, f"sides.{side}") for side, value in sides.items()},
        data_file=file,
        data_bytes=_natural(data["bytes"], "data.bytes"),
        data_sha256=_sha256(data["sha256"], "data.sha256"),
        arrays={member: _spec(value, f"arrays.{member}") for member, value in arrays.items()},
    )
    _check_shapes(manifest)
    return manifest


def _check_shapes(manifest: Manifest) -> None:
    for side, size in manifest.sides.items():
        rows, counts = manifest.arrays[f"{side}_rows"], manifest.arrays[f"{side}_counts"]
        if (
            not rows.shape
            or rows.shape[0] != size.rows
            or (counts.dtype, counts.shape) != ("<i8", (size.rows,))
        ):
            msg = (
                f"states {size.rows} rows of {side}, in arrays of shape {rows.shape} and "
                f"{counts.shape} ({counts.dtype}), which do not fit"
            )
            raise DamagedEntry(msg)
        if not 0 < size.rows <= size.evaluations <= MAX_EVALUATIONS:
            msg = (
                f"states {size.rows:,} rows and {size.evaluations:,} evaluations of {side}; accepted are "
                f"1 <= rows <= evaluations <= {MAX_EVALUATIONS:,}"
            )
            raise DamagedEntry(msg)


def _fields(value: object, where: str, keys: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, dict) or tuple(value) != keys:
        msg = f"has {where} that is not an object with the keys {', '.join(keys)}"
        raise DamagedEntry(msg)
    return value


def _of_type(value: object, where: str, kind: type[Any]) -> Any:
    if type(value) is not kind:
        msg = f"has {where} of type {type(value).__name__}; {kind.__name__} is accepted"
        raise DamagedEntry(msg)
    return value


def _natural(value: object, where: str) -> int:
    number: int = _of_type(value, where, int)
    if number < 0:
        msg = f"has {where}={number}; an integer of at least 0 is accepted"
        raise DamagedEntry(msg)
    return number


def _sha256(value: object, where: str) -> str:
    text: str = _of_type(value, where, str)
    if not _SHA256.fullmatch(text):
        msg = f"has {where}={text!r}; 64 hexadecimal digits are accepted"
        raise DamagedEntry(msg)
    return text


def _side(value: object, where: str) -> SideSize:
    fields = _fields(value, where, ("rows", "evaluations"))
    return SideSize(*(_natural(fields[key], f"{where}.{key}") for key in fields))


def _spec(value: object, where: str) -> ArraySpec:
    fields = _fields(value, where, ("dtype", "shape", "sha256"))
    shape: list[Any] = _of_type(fields["shape"], f"{where}.shape", list)
    return ArraySpec(
        dtype=_of_type(fields["dtype"], f"{where}.dtype", str),
        shape=tuple(_natural(length, f"{where}.shape") for length in shape),
        sha256=_sha256(fields["sha256"], f"{where}.sha256"),
    )
