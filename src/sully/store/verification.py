"""Reads all of a store that no server uses, and changes nothing: `sully doctor` does that.

`Database` prepares a file for writes when it opens it; this opens it for reading only.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
import msgspec

from sully.store.directory import DATABASE_FILE, LOCK_FILE
from sully.store.errors import InUseError
from sully.store.sqlite.database import format_of, read_state, unusable


class Content(msgspec.Struct, frozen=True):
    """What is in a store."""

    revision: int
    objects: int


def verify_file(directory: Path) -> Content:
    """Read the store of a directory, every row of it; raise `OpenError` if it is damaged."""
    path = directory / DATABASE_FILE
    with _locked(directory), _without_traces(path):
        try:
            with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
                if format_of(connection, path) is None:
                    return Content(revision=0, objects=0)
                state, _ = read_state(connection, path)
        except apsw.Error as error:
            raise unusable(path, "cannot be opened", error) from error
    objects = sum(len(state.table(resource).records) for resource in state.resources())
    return Content(state.revision, objects)


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Keep servers from starting meanwhile; a directory without a lock file had none yet."""
    try:
        lock = os.open(directory / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        yield
        return
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InUseError(f"the data directory {directory} is in use") from error
        yield
    finally:
        os.close(lock)


@contextmanager
def _without_traces(path: Path) -> Iterator[None]:
    """Remove the files that SQLite creates beside the database to read it."""
    beside = [path.with_name(f"{path.name}{suffix}") for suffix in ("-shm", "-wal")]
    created = [file for file in beside if not file.exists()]
    try:
        yield
    finally:
        for file in created:
            file.unlink(missing_ok=True)
