"""What the installed plugin adds to a session that audits nothing."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROUNDS = 15
LIMIT = 0.020  # seconds
OTHERS = ("randomly", "benchmark", "hypothesispytest", "xdist", "xdist.looponfail", "rerunfailures")
COMMAND = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider"]
COMMAND += [part for name in OTHERS for part in ("-p", f"no:{name}")]


def _seconds(arguments: list[str], directory: Path) -> tuple[float, float]:
    """CPU and wall-clock seconds of one subprocess."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([*COMMAND, *arguments], cwd=directory, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, time.perf_counter() - started


@pytest.mark.benchmark(group="start-up")
def test_start_up_with_the_plugin_unused(benchmark, record, tmp_path):
    (tmp_path / "test_empty.py").write_text("def test_empty():\n    pass\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    without = ["-p", "no:snapaudit"]
    # in turn, and the least of each: whatever else the machine does only adds
    pairs = [(_seconds([], tmp_path), _seconds(without, tmp_path)) for _ in range(ROUNDS)]
    (cpu, wall), (cpu_without, wall_without) = (
        [min(pair[side][kind] for pair in pairs) for kind in (0, 1)] for side in (0, 1)
    )
    record(
        {
            "added CPU ms": round(1000 * (cpu - cpu_without), 1),
            "added wall ms": round(1000 * (wall - wall_without), 1),
            "CPU ms without": round(1000 * cpu_without),
        }
    )
    benchmark.pedantic(_seconds, ([], tmp_path))
    assert cpu - cpu_without <= LIMIT


@pytest.mark.benchmark(group="start-up")
def test_importing_the_plugin(benchmark, record):
    code = """
import time, pytest
started = time.process_time()
import pytest_snapaudit.plugin
print(time.process_time() - started)
"""

    def cpu_of_the_import() -> float:
        command = [sys.executable, "-X", "importtime", "-c", code]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        loaded = {line.rpartition("|")[2].strip() for line in run.stderr.splitlines()}
        assert "pytest_snapaudit.options" in loaded
        assert not loaded & {"numpy", "scipy", "hypothesis"}
        return float(run.stdout)

    spent = min(cpu_of_the_import() for _ in range(ROUNDS))
    record({"import CPU ms": round(1000 * spent, 1)})
    benchmark.pedantic(cpu_of_the_import)
    assert spent <= LIMIT
