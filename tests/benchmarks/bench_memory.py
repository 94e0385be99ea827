"""Peak memory of an audit does not grow with the number of trials."""

from __future__ import annotations

import pytest

from .costs import peak_bytes
from .mechanisms import GAUSSIAN_384_FLOAT32, LAPLACE, VOTING, WITHOUT_HINTS

BLOCK_ROWS = 8_192
MIB = 2**20
ABOVE_THE_BLOCK = 64  # MiB

SUBJECTS = {
    "laplace": (LAPLACE, 8, (400_000, 4_000_000)),
    "sampler": (WITHOUT_HINTS, 8, (400_000, 4_000_000)),
    "private voting": (VOTING, 16, (400_000, 4_000_000)),
    "384-d gaussian float32": (GAUSSIAN_384_FLOAT32, 384 * 4, (40_000, 400_000)),
}


@pytest.mark.benchmark(group="memory")
@pytest.mark.parametrize("name", SUBJECTS)
def test_memory_is_flat_in_the_number_of_trials(benchmark, record, name):
    subject, row_bytes, trials = SUBJECTS[name]
    few, many = (peak_bytes(*subject, n_trials) / MIB for n_trials in trials)
    block = BLOCK_ROWS * row_bytes / MIB
    figures = {f"MiB at {n:,}": round(peak, 1) for n, peak in zip(trials, (few, many), strict=True)}
    record({**figures, "MiB of one block": round(block, 2)})
    benchmark.pedantic(lambda: None)
    assert many <= block + ABOVE_THE_BLOCK
    assert many <= 1.1 * few + 1.0
