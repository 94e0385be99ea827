"""Fixtures shared by all tests."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

# Loaded here, once: a run inside pytester forgets what it imported, and NumPy cannot be loaded twice.
import hypothesis
import numpy as np
import pytest
import scipy.stats

import pytest_snapaudit.auditor
from pytest_snapaudit.testing import AuditRun, run_audits

pytest_plugins = ["pytester"]

LOADED = (hypothesis, np, scipy.stats, pytest_snapaudit.auditor)

PRELUDE = """
from dataclasses import dataclass

import numpy as np
import pytest

from pytest_snapaudit import *
from pytest_snapaudit.testing import UNIT_NEIGHBOURS as PAIR, LaplaceSum
"""

Audits = Callable[..., AuditRun]


@pytest.fixture
def audits(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Audits:
    """``audits(source, *args, trials=2000, **files)``: run a test module under the plugin.

    The module starts with the usual imports, ``PAIR`` (unit neighbours) and ``LaplaceSum``. The order of tests
    is that of the file unless ``-p randomly`` is among the arguments; ``trials=None`` passes no number.
    """
    monkeypatch.delenv("CI", raising=False)

    def run(source: str | None, *args: str, trials: int | None = 2000) -> AuditRun:
        if source is not None:
            pytester.makepyfile(test_it=PRELUDE + textwrap.dedent(source))
        options = [] if trials is None else [f"--snapaudit-trials={trials}"]
        if "-p" not in args or "randomly" not in args:
            options += ["-p", "no:randomly"]
        return run_audits(pytester, *options, *args)

    return run
