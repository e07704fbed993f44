"""Archives of a data directory: their content, and how they are created.

An archive is a tar file: `manifest.json` first, then the database, then the certificates and keys
of the directory. The keys are in it because without them no kubeconfig that was handed out would
work again; so an archive is as secret as the directory, and both are readable by their owner only.
The admin's kubeconfig is not in it: each start writes it again.

`copying.py` makes the copy of a database in use; `restore.py` is the way back.
"""

from __future__ import annotations

import hashlib
import os
import tarfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import apsw
import msgspec

from sully.runtime.files import create_private, scratch_name
from sully.store.directory import COPY_FILE, DATABASE_FILE, LOCK_FILE, DataDirectory
from sully.store.errors import StoreError
from sully.store.sqlite.database import Database

ARCHIVE_FORMAT = 1
MANIFEST = "manifest.json"
KEPT_SUFFIXES = (".crt", ".key", ".pub", ".pem")
"""Which files beside the database belong to a directory's identity."""

_CHUNK = 1 << 20


class BackupError(StoreError):
    """A backup cannot be created, or an archive is invalid."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The manifest of an archive."""

    format: int
    revision: int
    created: datetime
    program: str
    files: dict[str, str]
    """SHA-256 of every other file in the archive, by its name."""


class BackupResult(msgspec.Struct, frozen=True):
    """An archive that was written."""

    path: Path
    revision: int
    size: int


@contextmanager
def back_up_stopped(directory: Path) -> Iterator[BinaryIO]:
    """Copy the database of a directory that no server uses; the block gets the copy.

    Raises `InUseError` if one does: then that server has to make the copy.
    """
    if not (directory / DATABASE_FILE).is_file():
        raise BackupError(f"{directory} has no {DATABASE_FILE}: there is nothing to back up")
    data_directory = DataDirectory(directory)
    try:
        with closing(Database(data_directory.database())) as database:
            # Read all of it: a backup of a damaged file would be found out too late.
            database.load()
            path = data_directory.copy()
            try:
                copying = database.copy(path)
                while not database.copy_more(copying, path):
                    pass
                with path.open("rb") as copy:
                    yield copy
            finally:
                path.unlink(missing_ok=True)
    finally:
        data_directory.release()


def write_archive(
    target: Path, database: BinaryIO, directory: Path, *, now: datetime, program: str
) -> BackupResult:
    """Write an archive of a database and of the keys in a directory, whole or not at all."""
    contents = {path.name: path.read_bytes() for path in _identity(directory)}
    temporary, scratch = scratch_name(target), scratch_name(target)
    try:
        revision, digest = _save(database, scratch)
        files = {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}
        manifest = Manifest(
            format=ARCHIVE_FORMAT,
            revision=revision,
            created=now,
            program=program,
            files={DATABASE_FILE: digest, **files},
        )
        _pack(temporary, manifest, scratch, contents)
        temporary.replace(target)
        flush_directory(target.parent)
    except OSError as error:
        raise BackupError(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)
        scratch.unlink(missing_ok=True)
    return BackupResult(target, manifest.revision, target.stat().st_size)


def check_database(path: Path) -> int:
    """Read a whole database as a start would; return its revision, or raise `OpenError`."""
    with closing(Database(path)) as database:
        database.verify()
        return database.load().revision


def flush_directory(path: Path) -> None:
    """Make the names in a directory as durable as the files behind them."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def copy_and_hash(source: BinaryIO, target: BinaryIO) -> str:
    """Copy a file to its end, flush it, and return the SHA-256 of what was copied."""
    digest = hashlib.sha256()
    while chunk := source.read(_CHUNK):
        digest.update(chunk)
        target.write(chunk)
    target.flush()
    os.fsync(target.fileno())
    return digest.hexdigest()


def _identity(directory: Path) -> list[Path]:
    known = {DATABASE_FILE, LOCK_FILE, COPY_FILE}
    return sorted(
        path
        for path in directory.iterdir()
        if path.suffix in KEPT_SUFFIXES and path.name not in known and path.is_file()
    )


def _save(database: BinaryIO, scratch: Path) -> tuple[int, str]:
    """Keep a copy as a file that passes for a store; return its revision and SHA-256."""
    with create_private(scratch) as file:
        copy_and_hash(database, file)
    revision = check_database(scratch)
    # A checkpointed file of its own: an archive must not need a log beside it.
    connection = apsw.Connection(str(scratch))
    connection.pragma("journal_mode", "delete")
    connection.close()
    with scratch.open("rb") as file:
        return revision, hashlib.file_digest(file, "sha256").hexdigest()


def _pack(path: Path, manifest: Manifest, database: Path, contents: dict[str, bytes]) -> None:
    with create_private(path) as file:
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
            _add(archive, MANIFEST, msgspec.json.encode(manifest))
            with database.open("rb") as data:
                _add(archive, DATABASE_FILE, data)
            for name, content in contents.items():
                _add(archive, name, content)
        file.flush()
        os.fsync(file.fileno())


def _add(archive: tarfile.TarFile, name: str, content: bytes | BinaryIO) -> None:
    member = tarfile.TarInfo(name)
    member.mode = 0o600
    if isinstance(content, bytes):
        member.size = len(content)
        archive.addfile(member, BytesIO(content))
    else:
        member.size = os.fstat(content.fileno()).st_size
        archive.addfile(member, content)
