"""Plain files: read without following links, written so that a kill at any moment leaves old or new."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from pytest_snapaudit.store.failures import DamagedEntry, ForeignEntry, Obstacle

try:
    import fcntl
except ImportError:  # Windows: recordings are not serialised between processes there
    fcntl = None  # type: ignore[assignment]

TEMPORARY_SUFFIX = ".tmp"

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_NON_BLOCKING = getattr(os, "O_NONBLOCK", 0)
_DIRECTORY = getattr(os, "O_DIRECTORY", 0)


def is_real_directory(path: Path) -> bool:
    """Whether ``path`` is a directory itself, not a link to one.

    Raises:
        Obstacle: if something else lies there.
        DamagedEntry: if the system does not let it be looked at.
        FileNotFoundError, NotADirectoryError: if nothing lies there.
    """
    mode = _mode(path)
    if not stat.S_ISDIR(mode):
        msg = f"{path} is {_kind(mode)}, not a directory of the store"
        raise Obstacle(msg)
    return True


def _mode(path: Path) -> int:
    try:
        return path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}"
        raise DamagedEntry(msg) from error


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "a symbolic link"
    if stat.S_ISDIR(mode):
        return "a directory"
    return "a regular file" if stat.S_ISREG(mode) else "a device, pipe or socket"


def read_plain(path: Path, limit: int) -> bytes:
    """Return the bytes of the regular file at ``path``.

    Raises:
        FileNotFoundError: if nothing lies there.
        ForeignEntry: if it is a link, a directory or a device.
        DamagedEntry: if it holds more than ``limit`` bytes, or the system cannot read it.
    """
    mode = _mode(path)
    if not stat.S_ISREG(mode):
        msg = f"{path} is {_kind(mode)}, not a plain file"
        raise Obstacle(msg) if stat.S_ISDIR(mode) else ForeignEntry(msg)
    try:
        descriptor = os.open(path, os.O_RDONLY | _NO_FOLLOW | _BINARY | _NON_BLOCKING)
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno == errno.ELOOP:
            msg = f"{path} is a symbolic link, not a plain file"
            raise ForeignEntry(msg) from error
        msg = f"{path} cannot be opened: {error.strerror}"
        raise DamagedEntry(msg) from error
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            msg = f"{path} is {_kind(status.st_mode)}, not a plain file"
            raise ForeignEntry(msg)
        if status.st_size > limit:
            msg = f"{path} holds {status.st_size:,} bytes, more than the {limit:,} accepted"
            raise DamagedEntry(msg)
        try:
            return file.read(limit + 1)
        except OSError as error:
            msg = f"{path} cannot be read: {error.strerror}"
            raise DamagedEntry(msg) from error


def write_atomic(path: Path, data: bytes) -> None:
    """Write ``data`` to a temporary file beside ``path``, fsync, rename it to ``path``, fsync the directory.

    A link at ``path`` is replaced, never followed. A kill leaves at most a ``.*.tmp`` file behind.

    Raises:
        Obstacle: if a directory lies at ``path``.
        OSError: if the system refuses to write.
    """
    if path.is_dir() and not path.is_symlink():
        msg = f"{path} is a directory, not a plain file"
        raise Obstacle(msg)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}{TEMPORARY_SUFFIX}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW | _BINARY, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    fsync_directory(path.parent)


def fsync_directory(path: Path) -> None:
    """Make renames and removals in ``path`` durable, where the system allows a directory to be opened."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | _DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def make_directory(path: Path) -> None:
    """Create ``path`` and its parents, durably."""
    if not path.is_dir():
        make_directory(path.parent)
        path.mkdir(exist_ok=True)
        fsync_directory(path.parent)


@contextlib.contextmanager
def locked(directory: Path, *, exclusive: bool) -> Iterator[None]:
    """Hold an advisory lock on ``directory``: many readers or one writer; the system frees it after a kill.

    Without effect where the directory does not exist or the file system has no locks.
    """
    descriptor = -1
    if fcntl is not None:
        with contextlib.suppress(OSError):
            descriptor = os.open(directory, os.O_RDONLY | _DIRECTORY)
            fcntl.flock(descriptor, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
    try:
        yield
    finally:
        if descriptor >= 0:
            os.close(descriptor)
