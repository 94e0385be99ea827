"""Names the plugin is known by to pytest, and the keys under which it keeps what it knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_snapaudit.collector import ResultCollector
    from pytest_snapaudit.options import RunOptions
    from pytest_snapaudit.session import RunningTest

MARKER = "privacy_audit"
FIXTURE = "privacy_auditor"
MARKER_LINE = (
    "privacy_audit(*, epsilon=None, delta=None, confidence=None, views=None, n_trials=None, "
    "n_snapshots=None, max_checks=None, detects=None): audit a differential-privacy claim with the "
    "privacy_auditor fixture; see pytest_snapaudit.privacy_audit"
)
DISABLED = "privacy audits are disabled by --snapaudit-disable or its ini twin"

OPTIONS: pytest.StashKey[RunOptions] = pytest.StashKey()
COLLECTOR: pytest.StashKey[ResultCollector] = pytest.StashKey()
ITEM: pytest.StashKey[pytest.Item | None] = pytest.StashKey()
"""In the session's stash: the test that is running."""
RUNNING: pytest.StashKey[RunningTest] = pytest.StashKey()
"""In a test's stash, while it runs: what it audited."""


def node_id(item: pytest.Item) -> str:
    """The node id without the ``@group`` that xdist appends under ``--dist=loadgroup``."""
    parent: Any = item.parent
    plain = item.name if parent is None else f"{parent.nodeid}::{item.name}"
    return plain if item.nodeid.startswith(f"{plain}@") else item.nodeid
