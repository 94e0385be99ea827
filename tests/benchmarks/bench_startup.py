"""What the installed plugin adds to a session that audits nothing.

Whole processes are compared as users see them, but on a busy machine they differ by more than the plugin costs;
so its two parts, the import and the hooks of one session, are measured by themselves and held to the limit.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

ROUNDS = 15
LIMIT = 0.020  # CPU seconds
OTHERS = ("randomly", "benchmark", "hypothesispytest", "xdist", "xdist.looponfail", "rerunfailures")
ARGUMENTS = ["-q", "--collect-only", "-p", "no:cacheprovider"]
ARGUMENTS += [part for name in OTHERS for part in ("-p", f"no:{name}")]
WITHOUT = ["-p", "no:snapaudit"]

IMPORT = """
import time, pytest
started = time.process_time()
import pytest_snapaudit.plugin
print(time.process_time() - started)
"""

SESSIONS = """
import sys, time, pytest
arguments, without, rounds = {arguments!r}, {without!r}, {rounds}
spent = {{True: [], False: []}}
for _ in range(rounds):
    for unused, extra in ((False, without), (True, [])):
        started = time.process_time()
        assert pytest.main([*arguments, *extra]) == 0
        spent[unused].append(time.process_time() - started)
print(min(spent[True]) - min(spent[False]))
"""


def _python(*arguments: str, directory: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=directory, check=True, capture_output=True, text=True)


def _cpu_of_a_session(directory: Path, *extra: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _python("-m", "pytest", *ARGUMENTS, *extra, directory=directory)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _cpu_of_the_import(directory: Path) -> float:
    run = _python("-X", "importtime", "-c", IMPORT, directory=directory)
    loaded = {line.rpartition("|")[2].strip() for line in run.stderr.splitlines()}
    assert "pytest_snapaudit.options" in loaded
    assert not loaded & {"numpy", "scipy", "hypothesis"}
    return float(run.stdout)


@pytest.mark.benchmark(group="start-up")
def test_start_up_with_the_plugin_unused(benchmark, record, tmp_path):
    (tmp_path / "test_empty.py").write_text("def test_empty():\n    pass\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    imported = min(_cpu_of_the_import(tmp_path) for _ in range(ROUNDS))
    code = SESSIONS.format(arguments=ARGUMENTS, without=WITHOUT, rounds=ROUNDS)
    hooks = float(_python("-c", code, directory=tmp_path).stdout.splitlines()[-1])
    pairs = [(_cpu_of_a_session(tmp_path), _cpu_of_a_session(tmp_path, *WITHOUT)) for _ in range(ROUNDS)]
    record(
        {
            "import CPU ms": round(1000 * imported, 1),
            "hooks CPU ms": round(1000 * hooks, 1),
            "whole process, added CPU ms (median)": round(
                1000 * statistics.median(a - b for a, b in pairs), 1
            ),
            "whole process without, CPU ms": round(1000 * statistics.median(b for _, b in pairs)),
        }
    )
    benchmark.pedantic(_cpu_of_a_session, (tmp_path,))
    assert imported + hooks <= LIMIT
