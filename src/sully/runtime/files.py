"""Private files: created under an unpredictable name, and atomically.

Nothing here follows a symbolic link in place of the file: in a folder that other
users can write to, they could redirect or read the file.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path
from typing import IO, BinaryIO

_PRIVATE = 0o600
_OURS = os.O_CLOEXEC | os.O_NOFOLLOW


def write_private(path: Path, data: bytes) -> None:
    """Write a file with mode 0600, atomically: readers see the old one or the new one."""
    write_new(path, data, _PRIVATE)


def write_new(path: Path, data: bytes, mode: int) -> None:
    """Write a file with a mode in place of what is there, atomically."""
    temporary = scratch_name(path)
    try:
        with create_private(temporary) as file:
            file.write(data)
            os.fchmod(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def scratch_name(path: Path) -> Path:
    """Return a name beside a file under which it can be prepared."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")


def create_private(path: Path) -> BinaryIO:
    """Create a file with mode 0600 that must not exist yet, not even as a link."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _OURS, _PRIVATE), "w+b")


def open_private(path: Path) -> IO[bytes]:
    """Open a file to append to it, or create it; other users who could read it no longer can."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | _OURS, _PRIVATE)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode) and mode & 0o077:
        # On a volume it may belong to another user.
        with contextlib.suppress(PermissionError):
            os.fchmod(descriptor, _PRIVATE)
    return os.fdopen(descriptor, "ab")
