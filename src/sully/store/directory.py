"""The data directory of a durable store: its permissions and its lock.

`sqlite/store.py` opens the directory, then `database.py` the file in it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from pathlib import Path

from sully.runtime.files import create_private, open_private
from sully.runtime.log import get_logger
from sully.store.errors import InUseError, OpenError

_log = get_logger("store")
_OURS = os.O_CLOEXEC | os.O_NOFOLLOW
DATABASE_FILE = "store.db"
LOCK_FILE = "lock"
COPY_FILE = "store.db.copy"
"""The copy for a backup; it has a name only until it is complete."""


class DataDirectory:
    """An existing directory that no other process uses as long as this object holds it."""

    def __init__(self, path: Path) -> None:
        """Create the directory if need be, and lock it."""
        self.path = path
        try:
            make_private(path)
            self._lock = os.open(path / LOCK_FILE, os.O_RDWR | os.O_CREAT | _OURS, 0o600)
        except OSError as error:
            raise OpenError(f"cannot use the data directory {path}: {error.strerror}") from error
        self._take_lock()

    def database(self) -> Path:
        """Return the path of the database file, which only its owner may read."""
        path = self.path / DATABASE_FILE
        self._check_emptied(path)
        try:
            # SQLite would create the file with the permissions of the umask, and gives its log
            # the permissions of the file.
            open_private(path).close()
        except OSError as error:
            raise OpenError(
                f"cannot write {path}: {error.strerror}; the user who runs this must own it"
            ) from error
        return path

    def _check_emptied(self, path: Path) -> None:
        """Reject a file that was emptied: SQLite would discard its log."""
        log = path.with_name(f"{path.name}-wal")
        # Keys are created after the store, so there was one.
        has_keys = path.is_file() and any(self.path.glob("*.key"))
        if _size(path) == 0 and (_size(log) or has_keys):
            raise OpenError(
                f"{path} is empty, but has been used before. Nothing was changed. Restore"
                f" a backup with 'sully restore', or remove {path.name} and {log.name} to"
                " start with an empty store"
            )

    def copy(self) -> Path:
        """Return the path of an empty private file to copy the database into."""
        path = self.path / COPY_FILE
        # An existing one is left over from a crash; its mode cannot be trusted.
        path.unlink(missing_ok=True)
        create_private(path).close()
        return path

    def release(self) -> None:
        """Release the lock."""
        # The file stays: another process may already wait with it open, and would then hold a
        # lock on an unlinked file.
        os.ftruncate(self._lock, 0)
        os.close(self._lock)

    def _take_lock(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._lock, 32, 0).decode("ascii", "replace").strip()
            os.close(self._lock)
            raise InUseError(
                f"the data directory {self.path} is in use by process {holder or '(unknown)'}"
            ) from error
        os.ftruncate(self._lock, 0)
        # The pid only helps people; the lock does not need it, so a full disk does not matter.
        with contextlib.suppress(OSError):
            os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)


def is_locked(path: Path) -> bool:
    """Report whether a process uses a data directory."""
    try:
        lock = os.open(path / LOCK_FILE, os.O_RDONLY | _OURS)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False


def holder(path: Path) -> str:
    """Return the id of the process that uses a data directory, or last did; empty if unknown."""
    return (path / LOCK_FILE).read_text("ascii", "replace").strip()


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def make_private(path: Path) -> None:
    """Create a directory that only its owner can enter, or make an existing one so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        _restrict(path)
        return
    # SQLite sees to its files, but they are lost if a power cut takes the directory.
    parent = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)


def _restrict(path: Path) -> None:
    mode = path.stat().st_mode
    if not stat.S_ISDIR(mode) or not mode & 0o077:
        return
    mode = stat.S_IMODE(mode)
    if mode & stat.S_ISVTX:
        # A folder such as /tmp: restricting it would lock out all other users.
        raise OpenError(
            f"the data directory {path} is shared with other users (mode {mode:04o});"
            " use a directory of its own"
        )
    try:
        path.chmod(mode & ~0o077)
    except PermissionError:
        # A mounted volume may belong to another user. The files in it are private anyway.
        if os.access(path, os.W_OK | os.X_OK):  # else opening it fails later
            _log.warning(
                "data directory is accessible to other users", path=str(path), mode=f"{mode:04o}"
            )
    else:
        _log.warning(
            "restricted the data directory to its owner", path=str(path), mode_before=f"{mode:04o}"
        )
