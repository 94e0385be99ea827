"""A recording killed at any moment leaves the old entry or the new one."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from pytest_snapaudit.engine.errors import SnapshotMissing
from pytest_snapaudit.engine.snapshot import Snapshot, SnapshotPair
from pytest_snapaudit.store import SnapshotStore

INPUTS = {"model": "tiny"}
KILLS = 50


@functools.cache
def make_pair(which: str) -> SnapshotPair:
    rng = np.random.default_rng(ord(which))
    rows = rng.normal(size=(2, {"A": 200, "B": 300}[which], 8))
    return SnapshotPair(Snapshot.from_rows(rows[0]), Snapshot.from_rows(rows[1]))


def which_is(pair: SnapshotPair) -> str:
    """``"A"`` or ``"B"`` if ``pair`` is one of them bit for bit, else empty."""
    for which in "AB":
        wanted = make_pair(which)
        if all(
            got.rows.tobytes() == want.rows.tobytes() and got.counts.tolist() == want.counts.tolist()
            for got, want in ((pair.reference, wanted.reference), (pair.canary, wanted.canary))
        ):
            return which
    return ""


def files_of(store: SnapshotStore) -> list[str]:
    return sorted(path.suffix for path in (store.directory / "entry").iterdir())


# Forks a recorder for every line read, so that each starts at once; a recorder ends by itself after 20 s.
RECORDERS = textwrap.dedent("""
    import os, sys, time
    from pathlib import Path
    sys.path.insert(0, sys.argv[1])
    from test_store_kill import INPUTS, make_pair
    from pytest_snapaudit.store import SnapshotStore

    pairs = [make_pair(which) for which in "AB"]
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            end = time.monotonic() + 20
            store = SnapshotStore(Path(sys.argv[2]))
            turn = int(line)
            while time.monotonic() < end:
                store.save("entry", INPUTS, pairs[turn % 2], provenance={})
                turn += 1
            os._exit(0)
        print(pid, flush=True)
        print(os.waitpid(pid, 0)[1], flush=True)
""")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the recorders are forked")
def test_kill_nine_at_fifty_random_moments(tmp_path):
    store = SnapshotStore(tmp_path / "snapshots")
    store.save("entry", INPUTS, make_pair("B"), provenance={})
    started = time.monotonic()
    store.save("entry", INPUTS, make_pair("A"), provenance={})
    duration = time.monotonic() - started
    rng = np.random.default_rng(9)
    seen = set()
    with subprocess.Popen(
        [sys.executable, "-c", RECORDERS, os.path.dirname(__file__), str(store.directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as recorders:
        assert recorders.stdin is not None
        assert recorders.stdout is not None
        for turn in range(
            10 * KILLS
        ):  # a busy machine lets few recorders finish: then later moments are tried
            if turn >= KILLS and seen == {"A", "B"}:
                break
            recorders.stdin.write(f"{turn}\n")
            recorders.stdin.flush()
            pid = int(recorders.stdout.readline())
            time.sleep(rng.uniform(0.0, 3 * min(duration, 0.1) * (1 + turn // KILLS)))
            os.kill(pid, signal.SIGKILL)
            assert os.WTERMSIG(int(recorders.stdout.readline())) == signal.SIGKILL
            which = which_is(store.load("entry", INPUTS))
            assert which, f"kill {turn} left a torn entry"
            seen.add(which)
        recorders.stdin.close()
        assert recorders.wait() == 0
    assert seen == {"A", "B"}
    store.save("entry", INPUTS, make_pair("B"), provenance={"recorded": "last"})
    assert which_is(store.load("entry", INPUTS)) == "B"
    assert files_of(store) == [".json", ".npz"]


class Killed(BaseException):
    pass


class Kill:
    """From the n-th change to the file system on, no change happens any more, as after a kill."""

    CHANGES = ("open", "fsync", "replace", "unlink", "mkdir", "rmdir")

    def __init__(self, monkeypatch: pytest.MonkeyPatch, survive: int) -> None:
        self.left = survive
        for name in self.CHANGES:
            monkeypatch.setattr(os, name, self.wrap(name, getattr(os, name)))

    def wrap(self, name, change):
        def changing(*args, **kwargs):
            reading = name == "open" and not args[1] & os.O_CREAT
            if not reading:
                if self.left == 0:
                    raise Killed(name)
                self.left -= 1
            return change(*args, **kwargs)

        return changing


@pytest.mark.parametrize("old", ["", "A"])
def test_a_kill_before_every_single_change_to_the_file_system(tmp_path, old):
    survived = 0
    for survive in range(100):
        store = SnapshotStore(tmp_path / str(survive))
        if old:
            store.save("entry", INPUTS, make_pair(old), provenance={})
        with pytest.MonkeyPatch.context() as patch:
            Kill(patch, survive)
            try:
                store.save("entry", INPUTS, make_pair("B"), provenance={})
                finished = True
            except Killed:
                finished = False
        try:
            found = which_is(store.load("entry", INPUTS))
            assert found
        except SnapshotMissing:
            found = ""
        assert found in ({"B"} if finished else {old, "B"}), f"killed before change {survive + 1}"
        if finished:
            break
        survived += 1
        store.save("entry", INPUTS, make_pair("A"), provenance={"recorded": "last"})
        assert which_is(store.load("entry", INPUTS)) == "A"
        assert files_of(store) == [".json", ".npz"]
    assert finished
    assert survived >= 8


def test_a_kill_while_removing_leaves_the_entry_or_nothing(tmp_path):
    for survive in range(20):
        store = SnapshotStore(tmp_path / str(survive))
        store.save("entry", INPUTS, make_pair("A"), provenance={})
        with pytest.MonkeyPatch.context() as patch:
            Kill(patch, survive)
            try:
                store.remove(store.entries()[0])
                finished = True
            except Killed:
                finished = False
        if store.entries():
            assert which_is(store.load("entry", INPUTS)) == "A"
        else:
            with pytest.raises(SnapshotMissing):
                store.load("entry", INPUTS)
        if finished:
            break
    assert finished
    assert not (store.directory / "entry").exists()


def test_a_full_disk_leaves_the_old_entry_and_no_temporary_file(tmp_path, monkeypatch):
    store = SnapshotStore(tmp_path)
    store.save("entry", INPUTS, make_pair("A"), provenance={})

    def full(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            store.save("entry", INPUTS, make_pair("B"), provenance={})
    assert which_is(store.load("entry", INPUTS)) == "A"
    assert files_of(store) == [".json", ".npz"]
