"""Fixtures of the integration tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import core, settings

from pytest_snapaudit.testing import AuditRun


@pytest.fixture
def hypothesis_state(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a run inside pytester changes for the whole process: the loaded profile, the forced seed."""
    active = settings.get_current_profile_name()
    monkeypatch.setattr(core, "global_force_seed", core.global_force_seed)
    yield
    settings.load_profile(active)


@pytest.fixture
def explored(audits, hypothesis_state):
    """``explored(source, *args, seed=0, trials=None)``: run a test module under the profile ``snapaudit``."""

    def run(source: str | None, *args: str, seed: int = 0, trials: int | None = None) -> AuditRun:
        chosen = ("--hypothesis-profile=snapaudit", f"--hypothesis-seed={seed}")
        return audits(source, *chosen, *args, trials=trials)

    return run
