from __future__ import annotations

import json
import os
import re
import threading
from pathlib import Path

import numpy as np
import pytest

from pytest_snapaudit.engine.errors import SnapshotCorrupt, SnapshotMissing, SnapshotStale
from pytest_snapaudit.engine.snapshot import Snapshot, SnapshotPair
from pytest_snapaudit.store import SnapshotForeign, SnapshotStore, entry_key

REPAIR = "pytest --snapaudit-update=all"
RECORD = "pytest --snapaudit-update=new"
INPUTS = {"model": {"name": "tiny", "revision": "3f2a"}, "partitions": 4, "prompts": ["a", "b"]}
PROVENANCE = {"model": "tiny", "versions": {"numpy": "2.0"}, "temperature": 0.0}


def make_pair(seed: int = 0, size: int = 20) -> SnapshotPair:
    rng = np.random.default_rng(seed)
    return SnapshotPair(
        Snapshot.from_rows(rng.normal(size=(size, 3))), Snapshot.from_rows(rng.normal(size=(size, 3)))
    )


def assert_same(left: SnapshotPair, right: SnapshotPair) -> None:
    for a, b in ((left.reference, right.reference), (left.canary, right.canary)):
        assert a.rows.dtype == b.rows.dtype
        assert a.rows.shape == b.rows.shape
        assert a.rows.tobytes() == b.rows.tobytes()
        assert a.counts.tolist() == b.counts.tolist()


def tree(directory: Path) -> dict[str, bytes]:
    return {str(p.relative_to(directory)): p.read_bytes() for p in directory.rglob("*") if p.is_file()}


@pytest.fixture
def store(tmp_path):
    return SnapshotStore(tmp_path / "snapshots")


DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", "U7"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)])
def test_every_dtype_comes_back_bit_for_bit(store, dtype, shape):
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 2, (9, *shape)).astype(dtype)
    pair = SnapshotPair(
        Snapshot(rows, rng.integers(1, 9, 9)),
        Snapshot(np.ascontiguousarray(rows[::-1]), rng.integers(1, 9, 9)),
    )
    store.save("entry", INPUTS, pair, provenance=PROVENANCE)
    assert_same(store.load("entry", INPUTS), pair)


def test_special_values_come_back(store):
    numbers = np.array([[np.nan, np.inf], [-np.inf, -0.0], [5e-324, 1.7976931348623157e308]])
    text = np.array([["", "żółć"], ["\U0001f512", "a\nb\0c"], ["ﬀ", " "]])
    for name, rows in (("numbers", numbers), ("text", text)):
        pair = SnapshotPair(Snapshot(rows, np.array([1, 2, 3])), Snapshot(rows, np.array([1, 1, 1])))
        store.save(name, {}, pair, provenance={})
        assert_same(store.load(name, {}), pair)


def test_sides_may_differ_in_dtype_and_empty_text_is_text(store):
    pair = SnapshotPair(Snapshot.from_rows(["abc", "d"]), Snapshot.from_rows(np.zeros(2, dtype="U0")))
    store.save("entry", {}, pair, provenance={})
    loaded = store.load("entry", {})
    assert loaded.reference.rows.tolist() == ["abc", "d"]
    assert loaded.canary.rows.tolist() == [""]
    assert loaded.canary.counts.tolist() == [2]


def test_big_endian_and_fortran_arrays_come_back_equal(store):
    rows = np.asfortranarray(np.arange(12.0).reshape(4, 3).astype(">f8"))
    pair = SnapshotPair(Snapshot(rows, np.ones(4, int)), Snapshot(rows * 2, np.ones(4, int)))
    store.save("entry", {}, pair, provenance={})
    loaded = store.load("entry", {})
    assert loaded.reference.rows.tolist() == rows.tolist()
    assert loaded.reference.rows.dtype == np.dtype("f8")


@pytest.mark.parametrize("dtype", ["S3", "M8[s]", "m8[s]", "V4", [("a", "f8")]])
def test_other_dtypes_are_refused_before_anything_is_written(store, dtype):
    side = Snapshot(np.zeros(2, dtype=dtype), np.array([1, 1]))
    with pytest.raises(TypeError, match=r"rows must be an array of bool, integers, .* got dtype"):
        store.save("entry", {}, SnapshotPair(side, side), provenance={})
    assert not store.directory.exists()


def test_layout_is_one_manifest_and_one_data_file_beside_it(store):
    path = store.save("esa", INPUTS, make_pair(), provenance=PROVENANCE)
    assert path == store.directory / f"{entry_key('esa', INPUTS)}.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    assert sorted(p.name for p in path.parent.iterdir()) == sorted([path.name, manifest["data"]["file"]])
    assert manifest["format"] == "pytest-snapaudit snapshot"
    assert manifest["version"] == 1
    assert manifest["inputs"] == INPUTS
    assert manifest["inputs_sha256"].startswith(path.stem)
    assert manifest["provenance"].items() >= PROVENANCE.items()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", manifest["provenance"]["date"])
    assert manifest["sides"] == {side: {"rows": 20, "evaluations": 20} for side in ("reference", "canary")}
    assert manifest["arrays"]["canary_rows"]["dtype"] == "<f8"
    assert manifest["arrays"]["canary_rows"]["shape"] == [20, 3]
    with np.load(path.parent / manifest["data"]["file"], allow_pickle=False) as archive:
        assert sorted(archive.files) == sorted(manifest["arrays"])


def test_loading_carries_the_provenance_and_writes_nothing(store):
    store.save("esa", INPUTS, make_pair(), provenance=PROVENANCE)
    before = tree(store.directory)
    loaded = store.load("esa", INPUTS)
    assert loaded.reference.provenance.items() >= PROVENANCE.items()
    assert loaded.canary.provenance == loaded.reference.provenance
    assert tree(store.directory) == before


def test_bytes_are_the_same_in_another_directory(tmp_path):
    trees = []
    for name in ("a", "b"):
        store = SnapshotStore(tmp_path / name)
        store.save("esa", INPUTS, make_pair(), provenance={**PROVENANCE, "date": "2024-01-01"})
        trees.append(tree(store.directory))
    assert trees[0] == trees[1]


def test_recording_the_same_again_changes_no_byte_and_keeps_the_date(store):
    store.save("esa", INPUTS, make_pair(), provenance={**PROVENANCE, "date": "2024-01-01"})
    before = tree(store.directory)
    store.save("esa", dict(reversed(INPUTS.items())), make_pair(), provenance=PROVENANCE)
    assert tree(store.directory) == before
    assert store.entries()[0].date == "2024-01-01"


def test_new_provenance_gets_a_new_date_and_keeps_the_data_file(store):
    store.save("esa", INPUTS, make_pair(), provenance={"temperature": 0, "date": "2024-01-01"})
    [data] = store.directory.rglob("*.npz")
    identity = data.stat().st_ino, data.stat().st_mtime_ns
    store.save("esa", INPUTS, make_pair(), provenance={"temperature": 0.0, "date": "2025-01-01"})
    assert store.load("esa", INPUTS).reference.provenance == {"temperature": 0.0, "date": "2025-01-01"}
    assert (data.stat().st_ino, data.stat().st_mtime_ns) == identity


def test_new_content_replaces_the_old_and_leaves_other_entries_alone(store):
    store.save("esa", {"T": 1}, make_pair(1), provenance={})
    store.save("esa", {"T": 2}, make_pair(2), provenance={})
    store.save("esa", {"T": 1}, make_pair(3), provenance={})
    assert_same(store.load("esa", {"T": 1}), make_pair(3))
    assert_same(store.load("esa", {"T": 2}), make_pair(2))
    assert len(list(store.directory.rglob("*.*"))) == 4


def test_missing_names_the_snapshot_and_the_command(store):
    for _ in range(2):
        with pytest.raises(SnapshotMissing, match="snapshot 'esa': nothing is recorded") as caught:
            store.load("esa", INPUTS)
        assert str(caught.value).endswith(RECORD)
        store.save("other", INPUTS, make_pair(), provenance={})


def test_stale_lists_the_fields_that_differ(store):
    store.save("esa", INPUTS, make_pair(), provenance={"date": "2024-01-01"})
    now = {"model": {"name": "tiny", "size": 1}, "partitions": 8, "prompts": ["a", "c"]}
    with pytest.raises(SnapshotStale) as caught:
        store.load("esa", now)
    assert str(caught.value).splitlines() == [
        "snapshot 'esa': stale, recorded for other inputs on 2024-01-01 "
        "(1 recorded, the nearest differs in 4; recorded -> now)",
        '  model.revision: "3f2a" -> (absent)',
        "  model.size: (absent) -> 1",
        "  partitions: 4 -> 8",
        '  prompts[1]: "b" -> "c"',
        f"if the change is meant, record it again with: {RECORD}",
    ]


def test_stale_compares_with_the_nearest_entry_and_abbreviates(store):
    store.save("esa", {"a": 1, "b": 2}, make_pair(), provenance={})
    store.save("esa", {"a": 9, "b": 9}, make_pair(), provenance={})
    with pytest.raises(SnapshotStale, match=r"2 recorded, the nearest differs in 1.*\n  b: 2 -> 3\n"):
        store.load("esa", {"a": 1, "b": 3})
    store.save("many", {str(i): 0 for i in range(25)}, make_pair(), provenance={})
    with pytest.raises(SnapshotStale, match=r"\n  \.\.\. and 15 more\n"):
        store.load("many", {str(i): 1 for i in range(25)})
    prefix = "x" * 500
    store.save("long", {"prompt": prefix + "old" + prefix}, make_pair(), provenance={})
    with pytest.raises(SnapshotStale, match=r"prompt: \.\.\.x{10,}oldx+\.\.\. -> \.\.\.x{10,}newx+\.\.\.\n"):
        store.load("long", {"prompt": prefix + "new" + prefix})


def test_one_and_one_point_zero_are_different_inputs(store):
    store.save("esa", {"t": 1}, make_pair(), provenance={})
    with pytest.raises(SnapshotStale, match=r"t: 1 -> 1\.0"):
        store.load("esa", {"t": 1.0})


def test_repair_command_is_the_one_given(tmp_path):
    store = SnapshotStore(tmp_path, repair_command="pytest tests/x.py::t --snapaudit-update=all")
    with pytest.raises(SnapshotMissing, match=r"pytest tests/x\.py::t --snapaudit-update=new$"):
        store.load("esa", {})


def test_entries_are_listed_and_removed(store):
    assert store.entries() == []
    for name, inputs in (("b", {"T": 1}), ("a", {"T": 1}), ("a", {"T": 2})):
        store.save(name, inputs, make_pair(), provenance={"date": "2024-01-01"})
    (store.directory / "notes.txt").write_text("kept")
    (store.directory / "a" / "notes.txt").write_text("kept")
    entries = store.entries()
    wanted = {entry_key("a", {"T": 1}), entry_key("a", {"T": 2}), entry_key("b", {"T": 1})}
    assert {entry.key for entry in entries} == wanted
    assert [entry.key for entry in entries] == sorted(wanted)
    assert store.entry_key("b", {"T": 1}) == entries[-1].key
    for entry in entries:
        data = json.loads(entry.path.read_text())["data"]["file"]
        assert entry.size == entry.path.stat().st_size + (entry.path.parent / data).stat().st_size
        assert (entry.date, entry.problem) == ("2024-01-01", "")
        assert entry.provenance == {"date": "2024-01-01"}
        assert len({entry, entry}) == 1
        store.remove(entry)
        store.remove(entry)
    assert store.entries() == []
    assert store.directory.is_dir()
    assert set(tree(store.directory)) == {"notes.txt", os.path.join("a", "notes.txt")}
    assert not (store.directory / "b").exists()


def test_a_damaged_entry_is_listed_with_its_problem_and_can_be_removed(store):
    path = store.save("a", {}, make_pair(), provenance={})
    path.write_text("{}")
    [entry] = store.entries()
    assert "is not a snapshot manifest" in entry.problem
    assert entry.date is None
    store.remove(entry)
    assert not (store.directory / "a").exists()
    path = store.save("a", {}, make_pair(), provenance={})
    next(path.parent.glob("*.npz")).unlink()
    assert store.entries()[0].problem == "its data file does not exist"


def test_remove_refuses_what_is_no_entry(store, tmp_path):
    store.save("a", {}, make_pair(), provenance={})
    [entry] = store.entries()
    for change, match in (
        ({"digest": "../../x"}, "32 hexadecimal digits"),
        ({"name": "../x"}, "snapshot name"),
    ):
        with pytest.raises(ValueError, match=match):
            store.remove(type(entry)(**{**vars(entry), **change}))
    assert store.load("a", {}).reference.size == 20


def test_damage_is_repaired_by_recording_again(store):
    path = store.save("a", {}, make_pair(), provenance={})
    [data] = path.parent.glob("*.npz")
    for victim in (path, data):
        intact = victim.read_bytes()
        victim.write_bytes(intact[:100])
        with pytest.raises(SnapshotCorrupt):
            store.load("a", {})
        store.save("a", {}, make_pair(), provenance={})
        assert_same(store.load("a", {}), make_pair())
        assert len(list(path.parent.iterdir())) == 2


def test_carriage_returns_of_a_checkout_are_accepted_in_the_manifest(store):
    path = store.save("a", INPUTS, make_pair(), provenance={})
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert_same(store.load("a", INPUTS), make_pair())


def test_leftovers_of_other_entries_are_removed_by_the_first_recording(store):
    path = store.save("a", {}, make_pair(), provenance={})
    digest = path.stem
    leftovers = [
        path.parent / f".{path.name}.0123456789abcdef.tmp",
        path.parent / f"{digest}-{'0' * 32}.npz",
        path.parent / f"{'1' * 32}-{'0' * 32}.npz",
    ]
    foreign = path.parent / "mine.npz"
    for file in [*leftovers, foreign]:
        file.write_bytes(b"half")
    assert_same(store.load("a", {}), make_pair())
    assert len(store.entries()) == 1
    SnapshotStore(store.directory).save("b", {}, make_pair(), provenance={})
    assert not any(file.exists() for file in leftovers)
    assert foreign.read_bytes() == b"half"
    assert_same(store.load("a", {}), make_pair())


@pytest.mark.parametrize("kind", ["file", "link", "dangling link"])
def test_something_else_in_place_of_the_folder_is_foreign(store, tmp_path, kind):
    outside = tmp_path / "outside"
    outside.mkdir()
    store.directory.mkdir()
    folder = store.directory / "a"
    if kind == "file":
        folder.write_text("mine")
    else:
        folder.symlink_to(outside if kind == "link" else tmp_path / "nowhere")
    with pytest.raises(SnapshotForeign, match=rf"'a': .*{REPAIR}$"):
        store.load("a", {})
    with pytest.raises(SnapshotForeign, match=rf"not a directory of the store; remove it.*{REPAIR}$"):
        store.save("a", {}, make_pair(), provenance={})
    assert store.entries() == []
    assert list(outside.iterdir()) == []


def test_a_directory_in_place_of_the_manifest_is_foreign(store):
    path = store.directory / f"{entry_key('a', {})}.json"
    path.mkdir(parents=True)
    with pytest.raises(SnapshotForeign, match=f"is a directory, not a plain file; remove it.*{REPAIR}$"):
        store.load("a", {})
    with pytest.raises(SnapshotForeign, match="is a directory, not a plain file; remove it"):
        store.save("a", {}, make_pair(), provenance={})


def test_a_file_the_system_refuses_to_open_is_corrupt(store, monkeypatch):
    path = store.save("a", {}, make_pair(), provenance={})
    system_open = os.open

    def refuse(target, *args, **kwargs):
        if Path(target) == path:
            raise PermissionError(13, "Permission denied")
        return system_open(target, *args, **kwargs)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(SnapshotCorrupt, match=f"cannot be opened: Permission denied; .*{REPAIR}$"):
        store.load("a", {})


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "a/b",
        "a\\b",
        "../a",
        "a..b",
        ".hidden",
        "-x",
        "a.",
        "é",
        "a b",
        "a\n",
        "CON",
        "nul.x",
        "x" * 101,
    ],
)
def test_names_that_are_no_plain_names_are_refused(store, name):
    for call in (lambda: store.load(name, {}), lambda: store.save(name, {}, make_pair(), provenance={})):
        with pytest.raises(ValueError, match="snapshot name must be"):
            call()
    with pytest.raises(ValueError, match="snapshot name must be"):
        entry_key(name, {})
    assert not store.directory.exists()


@pytest.mark.parametrize("name", ["a", "ESA.T-4_x", "0", "_", "x" * 100])
def test_plain_names_are_accepted(store, name):
    store.save(name, {}, make_pair(), provenance={})
    assert_same(store.load(name, {}), make_pair())


def test_arguments_of_other_types_are_refused(store):
    with pytest.raises(TypeError, match="snapshot name must be a string, got 3"):
        store.load(3, {})
    with pytest.raises(TypeError, match="inputs must be a mapping"):
        store.load("a", [1])
    with pytest.raises(TypeError, match="pair must be a SnapshotPair, got tuple"):
        store.save("a", {}, (1, 2), provenance={})
    with pytest.raises(TypeError, match=r"provenance\['x'\] must be JSON"):
        store.save("a", {}, make_pair(), provenance={"x": np.zeros(3)})
    side = Snapshot(np.zeros((1, 3)), np.array([10**8 + 1]))
    with pytest.raises(ValueError, match="at most 100,000,000 evaluations, got 100,000,001"):
        store.save("a", {}, SnapshotPair(side, side), provenance={})
    for tolerance in (0, -1, np.nan, np.inf, "x", True):
        with pytest.raises(ValueError, match="tolerance must be a finite number above 0"):
            SnapshotStore(store.directory, tolerance=tolerance)
        with pytest.raises(ValueError, match="rounded_to must be a finite number above 0"):
            store.save("a", {}, make_pair(), provenance={}, rounded_to=tolerance)
    assert not store.directory.exists()


def test_too_large_a_pair_or_manifest_is_refused(store, monkeypatch):
    monkeypatch.setattr("pytest_snapaudit.store.archive.MAX_BYTES", 1000)
    with pytest.raises(ValueError, match="holds 1,280 bytes, more than the 1,000"):
        store.save("a", {}, make_pair(), provenance={})
    monkeypatch.setattr("pytest_snapaudit.store.archive.MAX_BYTES", 10_000)
    monkeypatch.setattr("pytest_snapaudit.store.manifest.MAX_MANIFEST_BYTES", 2_000)
    with pytest.raises(ValueError, match="must fit a manifest of 2,000 bytes"):
        store.save("a", {}, make_pair(), provenance={"prompt": "x" * 2_000})
    assert tree(store.directory) == {}


def test_rounding_is_stated_and_makes_a_drifted_recording_identical(tmp_path):
    store = SnapshotStore(tmp_path, tolerance=1e-5)
    rng = np.random.default_rng(0)
    rows = np.repeat(rng.normal(size=(1, 384)), 6, axis=0)

    def record():
        drifted = rows + rng.uniform(-1e-7, 1e-7, rows.shape)
        return SnapshotPair(Snapshot.from_rows(drifted[:3]), Snapshot.from_rows(drifted[3:]))

    path = store.save("esa", {}, record(), provenance={})
    assert json.loads(path.read_text())["rounded_to"] == 1e-5
    loaded = store.load("esa", {})
    assert loaded.reference.counts.tolist() == [3]
    assert loaded.canary.rows.tolist() == loaded.reference.rows.tolist()
    before = tree(tmp_path)
    store.save("esa", {}, record(), provenance={})
    assert tree(tmp_path) == before
    store.save("esa", {}, record(), provenance={}, rounded_to=1e-9)
    assert json.loads(path.read_text())["rounded_to"] == 1e-9
    assert store.load("esa", {}).reference.counts.tolist() == [1, 1, 1]


def test_rounding_does_not_touch_text_and_says_so(tmp_path):
    store = SnapshotStore(tmp_path, tolerance=0.1)
    pair = SnapshotPair(Snapshot.from_rows(["a", "b"]), Snapshot.from_rows(["a"]))
    path = store.save("esa", {}, pair, provenance={})
    assert json.loads(path.read_text())["rounded_to"] is None
    assert_same(store.load("esa", {}), pair)


def test_writers_and_readers_of_one_entry_take_turns(store):
    pairs = [make_pair(1), make_pair(2, size=30)]
    store.save("a", {}, pairs[0], provenance={})
    failures: list[BaseException] = []

    def write(first: int) -> None:
        own = SnapshotStore(store.directory)
        for i in range(12):
            own.save("a", {}, pairs[(first + i) % 2], provenance={})

    def read() -> None:
        for _ in range(60):
            size = store.load("a", {}).reference.size
            assert size in (20, 30)

    def guarded(work, *args):
        try:
            work(*args)
        except BaseException as error:
            failures.append(error)

    threads = [
        threading.Thread(target=guarded, args=args) for args in ((write, 0), (write, 1), (read,), (read,))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(list((store.directory / "a").iterdir())) == 2


def test_repr_is_free_of_addresses(tmp_path):
    assert repr(SnapshotStore(Path("x"))) == "SnapshotStore('x')"


def test_extended_precision_is_refused_where_it_exists(store):
    extended = np.zeros(2, dtype=np.longdouble)
    side = Snapshot(extended, np.array([1, 1]))
    if extended.dtype.itemsize == 8:
        store.save("entry", {}, SnapshotPair(side, side), provenance={})
        assert store.load("entry", {}).reference.rows.tolist() == [0.0, 0.0]
    else:
        with pytest.raises(TypeError, match=r"got dtype (float128|float96)"):
            store.save("entry", {}, SnapshotPair(side, side), provenance={})
