"""A recording killed with SIGKILL at 50 random moments: no paid call lost, none repeated but the one in flight.

The model logs every call when it is paid for, before the answer is handed on. A kill may fall between the two,
so the prompts of the chunk in flight, and only these, may be in the log once more per kill.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from dp_icl.models import digest

KILLS = 25  # for each size of a chunk
CALLS = 150

STARTER = """
import os, sys, time
import numpy as np
from dp_icl.models import JournaledLanguageModel

class Model:
    provenance = {"model": "upper"}

    def __init__(self, log):
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def complete(self, prompts):
        time.sleep(0.001)
        os.write(self.log, "".join(prompt + "\\n" for prompt in prompts).encode())
        return [prompt.upper() for prompt in prompts]

def record(directory, chunk, size):
    model = JournaledLanguageModel(Model(directory + "/paid"), directory + "/calls.journal.sqlite", chunk=chunk)
    rows = np.asarray(model.complete([f"prompt {i}" for i in range(size)]))
    np.save(directory + "/rows.npy", rows)

for line in sys.stdin:
    directory, chunk, size = line.split()
    child = os.fork()
    if child == 0:
        try:
            record(directory, int(chunk), int(size))
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Recorder:
    """Starts recordings in processes of their own, from one that has loaded what they need."""

    def __init__(self, starter: subprocess.Popen[str]) -> None:
        assert starter.stdin is not None
        assert starter.stdout is not None
        self._requests, self._answers = starter.stdin, starter.stdout

    def run(self, directory: Path, chunk: int, moments: random.Random | None = None) -> int:
        """Exit status of one recording; it is killed at a random moment after its first call, if asked."""
        before = len(paid(directory))
        self._requests.write(f"{directory} {chunk} {CALLS * chunk}\n")
        self._requests.flush()
        child = int(self._answers.readline())
        if moments is not None:
            with suppress(ProcessLookupError):
                while len(paid(directory)) == before:
                    os.kill(child, 0)  # is it still there?
                    time.sleep(0.0005)
                time.sleep(moments.uniform(0.0, 0.01))
                os.kill(child, signal.SIGKILL)
        return int(self._answers.readline())


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    with subprocess.Popen(
        [sys.executable, "-c", STARTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as starter:
        yield Recorder(starter)
        starter.kill()


def paid(directory: Path) -> list[str]:
    log = directory / "paid"
    return log.read_text().splitlines() if log.exists() else []


def journaled(directory: Path) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(directory / "calls.journal.sqlite")
    try:
        return connection.execute("SELECT * FROM answers ORDER BY 1, 2, 3, 4").fetchall()
    except sqlite3.OperationalError:  # killed before there was a table
        return []
    finally:
        connection.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="recordings are started with os.fork")
@pytest.mark.parametrize("chunk", [1, 8])
def test_no_paid_call_is_lost_and_only_the_one_in_flight_repeated(
    recorder: Recorder, tmp_path: Path, chunk: int
) -> None:
    disturbed, undisturbed = tmp_path / "disturbed", tmp_path / "undisturbed"
    disturbed.mkdir()
    undisturbed.mkdir()
    moments = random.Random(chunk)
    unanswered = kills = 0
    while kills < KILLS and recorder.run(disturbed, chunk, moments) == -signal.SIGKILL:
        kills += 1
        held = {row[0] for row in journaled(disturbed)}
        said = paid(disturbed)
        lost = [prompt for prompt in dict.fromkeys(said) if digest(prompt) not in held]
        assert len(lost) <= chunk
        assert lost == said[len(said) - len(lost) :], "only the last call before a kill may be unanswered"
        unanswered += len(lost)
    assert kills >= 5, "the recording was over too soon to be killed"
    if len(set(paid(disturbed))) < CALLS * chunk or not (disturbed / "rows.npy").exists():
        assert recorder.run(disturbed, chunk) == 0

    times = Counter(paid(disturbed))
    assert times.keys() == {f"prompt {i}" for i in range(CALLS * chunk)}
    assert times.total() - len(times) == unanswered <= kills * chunk

    assert recorder.run(undisturbed, chunk) == 0
    assert (disturbed / "rows.npy").read_bytes() == (undisturbed / "rows.npy").read_bytes()
    assert journaled(disturbed) == journaled(undisturbed)
