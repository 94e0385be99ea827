"""Snapshots on disk: one manifest and one data file per entry; knows the engine, and nothing of pytest."""

from pytest_snapaudit.store.canonical import JSON, entry_key
from pytest_snapaudit.store.diagnostics import snapshot_diagnostics, unseen_mass_upper
from pytest_snapaudit.store.failures import SnapshotForeign
from pytest_snapaudit.store.rounding import round_rows
from pytest_snapaudit.store.snapshots import SnapshotStore, StoredEntry

__all__ = [
    "JSON",
    "SnapshotForeign",
    "SnapshotStore",
    "StoredEntry",
    "entry_key",
    "round_rows",
    "snapshot_diagnostics",
    "unseen_mass_upper",
]
