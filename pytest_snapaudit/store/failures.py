"""What can be wrong with a stored entry, before it is known which snapshot was asked for."""

from __future__ import annotations

from pytest_snapaudit.engine.errors import SnapshotCorrupt


class SnapshotForeign(SnapshotCorrupt):
    """What lies at the entry's place was not written by this store for this entry, or is not a plain file."""


class UnreadableEntry(Exception):
    """A stored file that must not be used; the message says what is wrong with it, without the repair."""

    advice = "restore it from version control, or record it again with"


class DamagedEntry(UnreadableEntry):
    """Written by this store, but no longer what was written."""


class ForeignEntry(UnreadableEntry):
    """Not written by this store for this entry: another format, version, name, inputs, or kind of file."""


class Obstacle(ForeignEntry):
    """What recording cannot replace: a directory in place of a file, anything else in place of a folder."""

    advice = "remove it, then record again with"
