"""Hostile and damaged store files: a clear error each, nothing executed, nothing written."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import re
import shutil
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from pytest_snapaudit.engine.errors import SnapshotCorrupt, SnapshotError
from pytest_snapaudit.engine.snapshot import Snapshot, SnapshotPair
from pytest_snapaudit.store import SnapshotForeign, SnapshotStore

REPAIR = "pytest --snapaudit-update=all"
INPUTS = {"model": "tiny", "partitions": 2}
PROVENANCE = {"model": "tiny", "library": "λ 1.0", "temperature": 1e-05, "date": "2024-01-01"}
MEMBERS = ("reference_rows", "reference_counts", "canary_rows", "canary_counts")


def make_pair(seed: int) -> SnapshotPair:
    rng = np.random.default_rng(seed)
    return SnapshotPair(
        *(Snapshot(rng.normal(size=(12, 4)), rng.integers(1, 5, 12)) for _ in ("reference", "canary"))
    )


class Payload:
    """Creates a file when unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


@dataclass
class Place:
    """A store with two entries, and what an attacker who can write its files may do."""

    store: SnapshotStore
    root: Path
    marker: Path
    outside: Path

    @property
    def manifest(self) -> Path:
        return self.store.directory / f"{self.store.entry_key('victim', INPUTS)}.json"

    @property
    def data(self) -> Path:
        return self.manifest.parent / json.loads(self.manifest.read_text("utf-8"))["data"]["file"]

    def pickled(self) -> bytes:
        return pickle.dumps(Payload(self.marker))

    def arrays(self) -> dict[str, np.ndarray]:
        with np.load(self.data, allow_pickle=False) as archive:
            return {name: archive[name] for name in MEMBERS}

    def sign(self, change: Callable[[dict], None] = lambda document: None, data: bytes | None = None) -> None:
        """Apply ``change`` to the manifest and replace the data file, with every checksum made to fit."""
        document = json.loads(self.manifest.read_text("utf-8"))
        del document["manifest_sha256"]
        if data is not None:
            digest = hashlib.sha256(data).hexdigest()
            document["data"] = {
                "file": f"{self.manifest.stem}-{digest[:32]}.npz",
                "bytes": len(data),
                "sha256": digest,
            }
            self.data.unlink()
            (self.manifest.parent / document["data"]["file"]).write_bytes(data)
        change(document)
        body = json.dumps(document, indent=2, ensure_ascii=False)
        document["manifest_sha256"] = hashlib.sha256(body.encode()).hexdigest()
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        self.manifest.write_bytes(text.encode())

    def forge(self, arrays: dict[str, np.ndarray], restate: bool = True, **raw: bytes) -> None:
        """Replace the data file by ``arrays`` and raw members, the manifest restated to fit them."""
        members = {name: npy(array) for name, array in arrays.items()} | raw
        self.sign(restated(arrays) if restate else lambda document: None, zipped(members))


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def zipped(members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name if "." in name else f"{name}.npy", content)
    return buffer.getvalue()


def restated(arrays: dict[str, np.ndarray]) -> Callable[[dict], None]:
    def change(document):
        for name, array in arrays.items():
            document["arrays"][name] = {
                "dtype": array.dtype.str,
                "shape": list(array.shape),
                "sha256": hashlib.sha256(array.tobytes()).hexdigest(),
            }
        for side in ("reference", "canary"):
            counts = arrays[f"{side}_counts"]
            document["sides"][side] = {"rows": len(counts), "evaluations": int(counts.sum())}

    return change


# Damage, without repairing any checksum ------------------------------------------------------------------


def victim_file(place, rng):
    return (place.manifest, place.data)[rng.integers(2)]


def truncate(place, rng):
    file = victim_file(place, rng)
    file.write_bytes(file.read_bytes()[: rng.integers(file.stat().st_size)])


def flip_bit(place, rng):
    file = victim_file(place, rng)
    content = bytearray(file.read_bytes())
    content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
    file.write_bytes(content)


def insert_bytes(place, rng):
    file = victim_file(place, rng)
    content, at = file.read_bytes(), int(rng.integers(file.stat().st_size + 1))
    file.write_bytes(content[:at] + rng.bytes(int(rng.integers(1, 9))) + content[at:])


def delete_byte(place, rng):
    file = victim_file(place, rng)
    content, at = file.read_bytes(), int(rng.integers(file.stat().st_size))
    file.write_bytes(content[:at] + content[at + 1 :])


def random_content(place, rng):
    victim_file(place, rng).write_bytes(rng.bytes(500))


def swap_arrays(place, rng):
    arrays = place.arrays()
    arrays["reference_rows"], arrays["canary_rows"] = arrays["canary_rows"], arrays["reference_rows"]
    place.data.write_bytes(zipped({name: npy(array) for name, array in arrays.items()}))


def swap_data_files(place, rng):
    [other] = (place.store.directory / "other").glob("*.npz")
    shutil.copyfile(other, place.data)


def delete_data_file(place, rng):
    place.data.unlink()


def other_dtype(place, rng):
    arrays = place.arrays()
    arrays["canary_rows"] = arrays["canary_rows"].astype("f4")
    place.data.write_bytes(zipped({name: npy(array) for name, array in arrays.items()}))


def edit_a_number(place, rng):
    text = place.manifest.read_text("utf-8")
    numbers = list(re.finditer(r"(?<=: )\d+", text))
    hit = numbers[rng.integers(len(numbers))]
    place.manifest.write_text(f"{text[: hit.start()]}{int(hit[0]) + 1}{text[hit.end() :]}", "utf-8")


def conflict_markers(place, rng):
    text = place.manifest.read_text("utf-8")
    place.manifest.write_text(f"<<<<<<< HEAD\n{text}=======\n{text}>>>>>>> topic\n", "utf-8")


DAMAGE = [
    truncate,
    flip_bit,
    insert_bytes,
    delete_byte,
    random_content,
    swap_arrays,
    swap_data_files,
    delete_data_file,
    other_dtype,
    edit_a_number,
    conflict_markers,
]

# Forgeries, with every checksum made to fit --------------------------------------------------------------


def object_array(place, rng):
    arrays = place.arrays()
    hostile = np.empty(arrays["canary_rows"].shape, dtype=object)
    hostile[:] = Payload(place.marker)
    place.forge(arrays, canary_rows=npy(hostile))


def object_array_of_the_stated_size(place, rng):
    arrays = place.arrays()
    shape = arrays["canary_rows"].shape
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|O", "fortran_order": False, "shape": shape})
    content = place.pickled()
    place.forge(arrays, canary_rows=header.getvalue() + content.ljust(arrays["canary_rows"].nbytes, b"."))


def object_dtype_in_manifest(place, rng):
    def change(document):
        document["arrays"]["canary_rows"]["dtype"] = "|O"

    place.sign(change)


def pickle_in_the_zip(place, rng):
    place.forge(place.arrays(), **{"payload.pkl": place.pickled()})


def pickle_as_a_member(place, rng):
    arrays = place.arrays()
    content = place.pickled()
    place.forge(arrays, canary_rows=content.ljust(arrays["canary_rows"].nbytes + 128, b"."))


def pickle_as_the_file(place, rng):
    place.sign(data=place.pickled())


def npy_as_the_file(place, rng):
    place.sign(data=npy(place.arrays()["canary_rows"]))


def traversing_member(place, rng):
    members = {f"{name}.npy": npy(array) for name, array in place.arrays().items()}
    members["../../outside/evil.npy"] = members.pop("canary_rows.npy")
    place.sign(data=zipped(members))


def missing_member(place, rng):
    arrays = place.arrays()
    del arrays[MEMBERS[rng.integers(4)]]
    place.sign(data=zipped({name: npy(array) for name, array in arrays.items()}))


def repeated_member(place, rng):
    buffer = io.BytesIO(zipped({name: npy(array) for name, array in place.arrays().items()}))
    with zipfile.ZipFile(buffer, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("canary_rows.npy", npy(np.zeros((12, 4))))
    place.sign(data=buffer.getvalue())


def swapped_arrays_signed(place, rng):
    arrays = place.arrays()
    arrays["reference_rows"], arrays["canary_rows"] = arrays["canary_rows"], arrays["reference_rows"]
    place.forge(arrays, restate=False)


def dtype_unlike_manifest(place, rng):
    arrays = place.arrays()
    place.forge(arrays, canary_rows=npy(arrays["canary_rows"].view("<i8")))


def shape_unlike_manifest(place, rng):
    arrays = place.arrays()
    place.forge(arrays, canary_rows=npy(arrays["canary_rows"].reshape(4, 12)))


def fortran_order(place, rng):
    arrays = place.arrays()
    place.forge(arrays, canary_rows=npy(np.asfortranarray(arrays["canary_rows"])))


def absurd_shape_in_header(place, rng):
    arrays = place.arrays()
    content = npy(arrays["canary_rows"]).replace(b"(12, 4), }         ", b"(1200000000, 4), } ")
    place.forge(arrays, canary_rows=content)


def absurd_shape_in_manifest(place, rng):
    def change(document):
        document["arrays"]["canary_rows"]["shape"] = [12, 10**15]

    place.sign(change)


def negative_shape_in_manifest(place, rng):
    def change(document):
        document["arrays"]["canary_rows"]["shape"] = [12, -4]

    place.sign(change)


def bomb(place, rng):
    arrays = place.arrays()
    place.forge(arrays, canary_rows=npy(arrays["canary_rows"]) + bytes(5_000_000))


def bomb_with_a_forged_size(place, rng):
    arrays = place.arrays()
    good = npy(arrays["canary_rows"])
    members = {name: npy(array) for name, array in arrays.items()}
    members["canary_rows"] = good + bytes(5_000_000)
    stated, forged = struct.pack("<L", len(members["canary_rows"])), struct.pack("<L", len(good))
    place.sign(data=zipped(members).replace(stated, forged))


def bomb_stated_in_manifest(place, rng):
    arrays = place.arrays()

    def change(document):
        restated(arrays)(document)
        document["arrays"]["canary_rows"]["shape"] = [12, 2**28]

    place.sign(change, zipped({name: npy(array) for name, array in arrays.items()}))


def other_compression(place, rng):
    members = {name: npy(array) for name, array in place.arrays().items()}
    place.sign(data=zipped(members, (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)[rng.integers(2)]))


def encrypted(place, rng):
    data = bytearray(zipped({name: npy(array) for name, array in place.arrays().items()}))
    for signature, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        for hit in re.finditer(re.escape(signature), bytes(data)):
            data[hit.start() + offset] |= 1
    place.sign(data=bytes(data))


def later_npy_version(place, rng):
    arrays = place.arrays()
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, arrays["canary_rows"], version=(2, 0), allow_pickle=False)
    place.forge(arrays, canary_rows=buffer.getvalue())


def code_in_the_header(place, rng):
    arrays = place.arrays()
    content = npy(arrays["canary_rows"])
    call = f"__import__('os').mkdir({str(place.marker)!r})\n".encode()
    header = call.ljust(118 + 128, b" ")
    content = content[:8] + struct.pack("<H", len(header)) + header + content[128:]
    place.forge(arrays, canary_rows=content)


def code_points_outside_unicode(place, rng):
    arrays = place.arrays()
    arrays["canary_rows"] = np.full(12, 0xFFFFFFFF, dtype="<u4").view("<U1").reshape(12)
    arrays["reference_rows"] = np.zeros(12, dtype="<U1")
    place.forge(arrays)


def booleans_of_two(place, rng):
    arrays = place.arrays()
    arrays["canary_rows"] = np.full((12, 4), 2, dtype=np.uint8).view(bool)
    place.forge(arrays)


def counts_of_zero(place, rng):
    arrays = place.arrays()
    arrays["canary_counts"] = np.array([0, 24] + [1] * 10)
    place.forge(arrays)


def counts_that_overflow(place, rng):
    arrays = place.arrays()
    arrays["canary_counts"] = np.array([2**62, 2**62, 2**62, 2**62] + [3] * 8)
    place.forge(arrays)


def evaluations_beyond_reason(place, rng):
    arrays = place.arrays()
    arrays["canary_counts"] = np.full(12, 10**9)
    place.forge(arrays)


def evaluations_unlike_counts(place, rng):
    def change(document):
        document["sides"]["canary"]["evaluations"] += 1

    place.sign(change)


def float_counts(place, rng):
    arrays = place.arrays()
    arrays["canary_counts"] = arrays["canary_counts"].astype(float)
    place.forge(arrays)


def sides_of_other_shapes(place, rng):
    arrays = place.arrays()
    arrays["canary_rows"] = np.zeros((12, 5))
    place.forge(arrays)


def traversing_data_file(place, rng):
    target = (
        "../../../outside/secret.npz",
        str(place.outside / "secret.npz"),
        "..\\secret.npz",
        "x/../y.npz",
    )

    def change(document):
        document["data"]["file"] = target[rng.integers(len(target))]

    place.sign(change)


def data_file_of_another_entry(place, rng):
    [other] = (place.store.directory / "other").glob("*.npz")
    shutil.copyfile(other, place.manifest.parent / other.name)

    def change(document):
        document["data"] = {**document["data"], "file": other.name.replace(other.name[:4], "0000")}

    place.sign(change)


def traversing_name(place, rng):
    def change(document):
        document["name"] = "../outside"

    place.sign(change)


def linked_data_file(place, rng):
    data = place.data
    shutil.copyfile(data, place.outside / "copy.npz")
    data.unlink()
    data.symlink_to(place.outside / "copy.npz")


def linked_manifest(place, rng):
    manifest = place.manifest
    shutil.copyfile(manifest, place.outside / "copy.json")
    manifest.unlink()
    manifest.symlink_to(place.outside / "copy.json")


def linked_folder(place, rng):
    folder = place.manifest.parent
    shutil.move(folder, place.outside / "folder")
    folder.symlink_to(place.outside / "folder")


def pipe_as_data_file(place, rng):
    data = place.data
    data.unlink()
    os.mkfifo(data)


def directory_as_data_file(place, rng):
    data = place.data
    data.unlink()
    data.mkdir()


def not_a_number(place, rng):
    def change(document):
        document["provenance"]["temperature"] = (float("nan"), float("inf"))[rng.integers(2)]

    place.sign(change)


def number_out_of_range(place, rng):
    text = place.manifest.read_text("utf-8")
    place.manifest.write_text(text.replace("1e-05", "1e999"), "utf-8")


def repeated_key(place, rng):
    text = place.manifest.read_text("utf-8")
    place.manifest.write_text(text.replace('"version": 1,', '"version": 1,\n  "version": 1,'), "utf-8")


def nested_too_deeply(place, rng):
    place.manifest.write_text('{"format":' + "[" * 100_000 + "]" * 100_000 + "}", "utf-8")


def nested_beyond_what_is_written(place, rng):
    def change(document):
        for _ in range(60):
            document["provenance"] = {"inner": document["provenance"]}

    place.sign(change)


def huge_integer(place, rng):
    text = place.manifest.read_text("utf-8")
    place.manifest.write_text(text.replace('"version": 1', '"version": ' + "9" * 10_000), "utf-8")


def huge_manifest(place, rng):
    with place.manifest.open("r+b") as file:
        file.truncate(17 * 2**20)


def unknown_key(place, rng):
    def change(document):
        document["execute"] = "rm"

    place.sign(change)


def wrong_types(place, rng):
    changes = (
        ("data", "bytes", "12"),
        ("data", "bytes", True),
        ("data", "bytes", -1),
        ("data", "file", 3),
        ("data", "sha256", "x"),
        ("sides", "canary", [12, 12]),
        ("arrays", "canary_rows", None),
        ("arrays", "canary_counts", {"dtype": "<i8", "shape": "12", "sha256": "0" * 64}),
    )
    section, field, value = changes[rng.integers(len(changes))]

    def change(document):
        document[section][field] = value

    place.sign(change)


def wrong_rounding(place, rng):
    def change(document):
        document["rounded_to"] = (0.0, -1.0, "1", 1, True)[rng.integers(5)]

    place.sign(change)


def other_inputs_digest(place, rng):
    def change(document):
        document["inputs_sha256"] = "0" * 64

    place.sign(change)


def other_inputs(place, rng):
    def change(document):
        document["inputs"]["partitions"] = 3
        canonical = json.dumps(document["inputs"], separators=(",", ":"))
        document["inputs_sha256"] = hashlib.sha256(canonical.encode()).hexdigest()
        file = document["data"]["file"]
        document["data"]["file"] = document["inputs_sha256"][:32] + file[32:]

    place.sign(change)


def other_name(place, rng):
    [other] = (place.store.directory / "other").glob("*.json")
    shutil.copyfile(other, place.manifest)


def other_version(place, rng):
    def change(document):
        document["version"] = (2, 0, "1", True, None)[rng.integers(5)]

    place.sign(change)


def other_format(place, rng):
    texts = ("[]", "3", '"text"', "{}", '{"format": "syrupy"}', "null")
    place.manifest.write_text(texts[rng.integers(len(texts))])


FORGERIES: dict[Callable[..., None], tuple[type[SnapshotCorrupt], str]] = {
    object_array: (SnapshotCorrupt, "canary_rows.*(object array|the manifest states)"),
    object_array_of_the_stated_size: (SnapshotCorrupt, "object arrays are pickles and are never read"),
    object_dtype_in_manifest: (SnapshotCorrupt, r"states dtype '\|O'; accepted are bool"),
    pickle_in_the_zip: (SnapshotCorrupt, r"holds the members .*'payload\.pkl'.* exactly"),
    pickle_as_a_member: (SnapshotCorrupt, r"not a readable \.npz archive .*magic"),
    pickle_as_the_file: (SnapshotCorrupt, r"not a readable \.npz archive .*BadZipFile"),
    npy_as_the_file: (SnapshotCorrupt, r"not a readable \.npz archive .*BadZipFile"),
    traversing_member: (SnapshotCorrupt, r"holds the members \['\.\./\.\./outside/evil\.npy'"),
    missing_member: (SnapshotCorrupt, "holds the members .* exactly"),
    repeated_member: (SnapshotCorrupt, "holds the members .* exactly"),
    swapped_arrays_signed: (SnapshotCorrupt, "holds reference_rows with other bytes than recorded"),
    dtype_unlike_manifest: (SnapshotCorrupt, "with dtype <i8 and shape .* the manifest states <f8"),
    shape_unlike_manifest: (SnapshotCorrupt, r"shape \(4, 12\); the manifest states <f8 and \(12, 4\)"),
    fortran_order: (SnapshotCorrupt, "holds canary_rows with dtype"),
    absurd_shape_in_header: (SnapshotCorrupt, r"shape \(1200000000, 4\); the manifest states"),
    absurd_shape_in_manifest: (SnapshotCorrupt, "would unpack to 96,000,000,000,000,.* bytes, more than"),
    negative_shape_in_manifest: (SnapshotCorrupt, r"arrays\.canary_rows\.shape=-4"),
    bomb: (SnapshotCorrupt, r"holds canary_rows\.npy of 5,000,512 bytes; the manifest states 384"),
    bomb_with_a_forged_size: (SnapshotCorrupt, r"not a readable \.npz archive .*CRC"),
    bomb_stated_in_manifest: (
        SnapshotCorrupt,
        "would unpack to 25,769,.* bytes, more than the 1,073,741,824",
    ),
    other_compression: (SnapshotCorrupt, "encrypted, or compressed by other means than deflate"),
    encrypted: (SnapshotCorrupt, "encrypted, or compressed by other means than deflate"),
    later_npy_version: (SnapshotCorrupt, r"in version \(2, 0\) of the \.npy format"),
    code_in_the_header: (SnapshotCorrupt, r"not a readable \.npz archive .*ValueError"),
    code_points_outside_unicode: (SnapshotCorrupt, "code points outside Unicode"),
    booleans_of_two: (SnapshotCorrupt, "booleans that are neither 0 nor 1"),
    counts_of_zero: (SnapshotCorrupt, "holds no valid pair: Snapshot: counts must be 12 positive integers"),
    counts_that_overflow: (SnapshotCorrupt, "evaluations of canary; accepted are|counts must be 12"),
    evaluations_beyond_reason: (SnapshotCorrupt, "12,000,000,000 evaluations of canary; accepted are"),
    evaluations_unlike_counts: (SnapshotCorrupt, r"counts \d+ evaluations of canary; the manifest states"),
    float_counts: (SnapshotCorrupt, r"\(<f8\), which do not fit"),
    sides_of_other_shapes: (SnapshotCorrupt, "both sides must hold clean outputs of one shape"),
    traversing_data_file: (SnapshotCorrupt, "names the data file '.*'; only .* beside it is accepted"),
    data_file_of_another_entry: (SnapshotCorrupt, "names the data file '0000.*'; only .* is accepted"),
    traversing_name: (SnapshotCorrupt, r"snapshot name must be .* got '\.\./outside'"),
    linked_data_file: (SnapshotForeign, "is a symbolic link, not a plain file"),
    linked_manifest: (SnapshotForeign, "is a symbolic link, not a plain file"),
    linked_folder: (SnapshotForeign, "is a symbolic link, not a directory of the store"),
    pipe_as_data_file: (SnapshotForeign, "is a device, pipe or socket, not a plain file"),
    directory_as_data_file: (SnapshotForeign, "is a directory, not a plain file"),
    not_a_number: (SnapshotCorrupt, "holds (NaN|Infinity), which is not JSON"),
    number_out_of_range: (SnapshotCorrupt, "holds the number 1e999, which is out of range"),
    repeated_key: (SnapshotCorrupt, "holds the key 'version' twice"),
    nested_too_deeply: (SnapshotCorrupt, "is nested too deeply"),
    nested_beyond_what_is_written: (
        SnapshotCorrupt,
        "is invalid: provenance is nested more than 50 levels deep",
    ),
    huge_integer: (SnapshotCorrupt, "is not valid JSON"),
    huge_manifest: (SnapshotCorrupt, "holds 17,825,792 bytes, more than the 16,777,216 accepted"),
    unknown_key: (SnapshotCorrupt, "is not as it was written"),
    wrong_types: (SnapshotCorrupt, "has (data|sides|arrays)"),
    wrong_rounding: (SnapshotCorrupt, "rounded_to"),
    other_inputs_digest: (SnapshotCorrupt, "states the inputs digest '0000"),
    other_inputs: (SnapshotForeign, "belongs to the entry victim/[0-9a-f]{32}, not to victim/"),
    other_name: (SnapshotForeign, "belongs to the entry other/"),
    other_version: (SnapshotForeign, "is of format version .* this release reads version 1"),
    other_format: (SnapshotForeign, "is not a snapshot manifest"),
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    directory = tmp_path_factory.mktemp("recorded")
    store = SnapshotStore(directory)
    store.save("victim", INPUTS, make_pair(0), provenance=PROVENANCE)
    store.save("other", INPUTS, make_pair(1), provenance=PROVENANCE)
    return directory


@pytest.fixture
def place(tmp_path, recorded):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.npz").write_bytes(b"not yours")
    store = SnapshotStore(tmp_path / "root" / "snapshots")
    shutil.copytree(recorded, store.directory)
    return Place(store, tmp_path, tmp_path / "executed", outside)


def listing(root: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else None
        found[str(path)] = (status.st_mode, status.st_ino, status.st_mtime_ns, content)
    return found


def assert_refused(place: Place, kind: type[SnapshotError], match: str | None) -> None:
    before = listing(place.root)
    with pytest.raises(kind, match=match) as caught:
        place.store.load("victim", INPUTS)
    assert str(caught.value).startswith("snapshot 'victim': ")
    assert str(caught.value).endswith(REPAIR)
    place.store.entries()
    assert listing(place.root) == before
    assert not place.marker.exists()
    loaded = place.store.load("other", INPUTS)
    assert loaded.canary.rows.tobytes() == make_pair(1).canary.rows.tobytes()


def assert_repairable(place: Place) -> None:
    """Recording again repairs the entry, or says what is in the way; nothing outside the store changes."""
    outside = listing(place.outside)
    folder = place.manifest.parent
    if folder.is_symlink() or any(path.is_dir() for path in folder.iterdir()):
        with pytest.raises(SnapshotForeign, match=f"; remove it, then record again with: {REPAIR}$"):
            place.store.save("victim", INPUTS, make_pair(0), provenance=PROVENANCE)
        assert listing(place.outside) == outside
        return
    place.store.save("victim", INPUTS, make_pair(0), provenance=PROVENANCE)
    loaded = place.store.load("victim", INPUTS)
    assert loaded.canary.rows.tobytes() == make_pair(0).canary.rows.tobytes()
    assert listing(place.outside) == outside
    assert not place.marker.exists()


@pytest.mark.parametrize("mutate", FORGERIES, ids=lambda mutate: mutate.__name__)
def test_a_forgery_with_fitting_checksums_is_refused_for_its_own_reason(place, mutate):
    mutate(place, np.random.default_rng(0))
    assert_refused(place, *FORGERIES[mutate])
    assert_repairable(place)


@pytest.mark.parametrize("seed", range(100))
def test_random_mutations_are_refused(place, seed):
    rng = np.random.default_rng(seed)
    mutations = [*DAMAGE, *DAMAGE, *FORGERIES]
    mutate = mutations[rng.integers(len(mutations))]
    mutate(place, rng)
    assert_refused(place, *FORGERIES.get(mutate, (SnapshotCorrupt, None)))
    assert_repairable(place)


def test_every_single_bit_of_the_manifest_counts(place):
    intact = place.manifest.read_bytes()
    rng = np.random.default_rng(0)
    for position in rng.permutation(8 * len(intact))[:400]:
        damaged = bytearray(intact)
        damaged[position // 8] ^= 1 << int(position % 8)
        place.manifest.write_bytes(damaged)
        with pytest.raises(SnapshotCorrupt, match=f"{REPAIR}$"):
            place.store.load("victim", INPUTS)


def test_every_truncation_is_refused(place):
    for file in (place.manifest, place.data):
        intact = file.read_bytes()
        for length in [*range(0, len(intact), 29), len(intact) - 1]:
            file.write_bytes(intact[:length])
            with pytest.raises(SnapshotCorrupt, match=f"{REPAIR}$"):
                place.store.load("victim", INPUTS)
        file.write_bytes(intact)
    assert place.store.load("victim", INPUTS).reference.size == make_pair(0).reference.size


def test_the_payload_of_these_tests_does_execute_when_unpickled(place):
    pickle.loads(place.pickled())
    assert place.marker.is_dir()
