"""What the installed plugin adds to a session that audits nothing."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROUNDS = 15
LIMIT = 0.020  # seconds
COMMAND = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider"]


def _seconds(arguments: list[str], directory: Path) -> tuple[float, float]:
    """CPU and wall-clock seconds of one subprocess."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([*COMMAND, *arguments], cwd=directory, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, time.perf_counter() - started


@pytest.mark.benchmark(group="start-up")
@pytest.mark.parametrize("others", ["other plugins loaded", "alone"])
def test_start_up_with_the_plugin_unused(benchmark, record, tmp_path, monkeypatch, others):
    (tmp_path / "test_empty.py").write_text("def test_empty():\n    pass\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    with_it, without_it = [], ["-p", "no:snapaudit"]
    if others == "alone":
        monkeypatch.setitem(os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        with_it, without_it = ["-p", "pytest_snapaudit.plugin"], []
    for arguments in (with_it, without_it):
        _seconds(arguments, tmp_path)
    # in turn, so that whatever else the machine does falls on both
    pairs = [(_seconds(with_it, tmp_path), _seconds(without_it, tmp_path)) for _ in range(ROUNDS)]
    cpu, wall = (statistics.median(a[i] - b[i] for a, b in pairs) for i in (0, 1))
    record(
        {
            "added CPU ms": round(1000 * cpu, 1),
            "added wall ms": round(1000 * wall, 1),
            "CPU ms without": round(1000 * statistics.median(b[0] for _, b in pairs)),
        }
    )
    benchmark.pedantic(_seconds, (with_it, tmp_path))
    assert cpu <= LIMIT


@pytest.mark.benchmark(group="start-up")
def test_importing_the_plugin(benchmark, record):
    """Self time of this package's modules, beyond pytest's own."""

    def own_microseconds() -> int:
        code = "import pytest, pytest_snapaudit.plugin"
        command = [sys.executable, "-X", "importtime", "-c", code]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stderr.splitlines()
        modules = [line.removeprefix("import time:").split("|") for line in lines if "|" in line]
        names = {name.strip() for _, _, name in modules}
        assert not names & {"numpy", "scipy", "hypothesis"}
        after_pytest = [name.strip() for _, _, name in modules].index("pytest") + 1
        return sum(int(own) for own, _, _ in modules[after_pytest:])

    spent = statistics.median(own_microseconds() for _ in range(ROUNDS))
    record({"import ms": round(spent / 1000, 1)})
    benchmark.pedantic(own_microseconds)
    assert spent <= 1e6 * LIMIT
