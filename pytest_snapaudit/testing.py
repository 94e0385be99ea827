"""Helpers for testing your own use of the plugin: a mechanism with a known epsilon, and a harness for pytester.

Enable pytester in your conftest.py (``pytest_plugins = ["pytester"]``) and write::

    from pytest_snapaudit.testing import run_audits

    def test_the_suite_notices_missing_noise(pytester):
        pytester.makepyfile(test_sum='''
            from pytest_snapaudit import privacy_audit
            from pytest_snapaudit.testing import UNIT_NEIGHBOURS, LaplaceSum

            @privacy_audit(epsilon=1.0)
            def test_half_the_noise(privacy_auditor):
                privacy_auditor.check(LaplaceSum(epsilon=1.0, understated=2.0), UNIT_NEIGHBOURS)
        ''')
        run = run_audits(pytester, "--snapaudit-trials=5000")
        run.result.assert_outcomes(failed=1)
        assert run.verdicts() == {"test_sum.py::test_half_the_noise": "VIOLATION"}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from pytest_snapaudit.report.rows import AuditRow, worst_first

UNIT_NEIGHBOURS = ((0.0, 0.0, 0.0), (0.0, 0.0, 1.0))
"""Two datasets whose sums are 1 apart."""


@dataclass(frozen=True)
class LaplaceSum:
    """The sum of a dataset plus Laplace noise, exactly ``epsilon * understated``-DP on sums 1 apart.

    Args:
        epsilon: what the noise is calibrated for, at sensitivity 1.
        understated: by how much the noise is too small; 1 is correct.
    """

    epsilon: float
    understated: float = 1.0
    deterministic = True

    @property
    def scale(self) -> float:
        """The Laplace scale."""
        return 1.0 / (self.epsilon * self.understated)

    def clean(self, dataset: Sequence[float], rng: Generator) -> ArrayLike:
        """The exact sum."""
        del rng
        return np.asarray(float(sum(dataset)))

    def privatize(self, clean: NDArray[Any], rng: Generator) -> NDArray[np.float64]:
        """One noisy sum per row: (n,) in, (n,) out."""
        return np.asarray(clean + rng.laplace(0.0, self.scale, clean.shape))


@dataclass(frozen=True)
class AuditRun:
    """What a pytest run under pytester audited.

    Attributes:
        result: of pytester; ``result.assert_outcomes(...)``, ``result.stdout`` and so on.
        rows: every result, the worst first.
    """

    result: pytest.RunResult
    rows: Sequence[AuditRow] = field(default_factory=tuple)

    def verdicts(self) -> dict[str, str]:
        """The worst verdict of every audited test, by node id."""
        found: dict[str, str] = {}
        for row in self.rows:
            found.setdefault(row.nodeid, row.verdict)
        return found


class _RowTaker:
    def __init__(self) -> None:
        self.rows: dict[str, list[AuditRow]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        carried = getattr(report, "snapaudit", None) or {}
        if "rows" in carried:
            self.rows[report.nodeid] = [AuditRow.from_dict(plain) for plain in carried["rows"]]


def run_audits(pytester: pytest.Pytester, *args: str) -> AuditRun:
    """Run pytest in pytester's directory and collect what it audited, also from xdist workers.

    Args:
        pytester: pytest's own fixture.
        args: command-line arguments.
    """
    taker = _RowTaker()
    result = pytester.runpytest_inprocess(*args, plugins=[taker])
    return AuditRun(result, tuple(worst_first(row for rows in taker.rows.values() for row in rows)))
