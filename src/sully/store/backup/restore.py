"""The way back from an archive: everything is unpacked and checked beside the data directory, then
takes its place in one step. Until that step nothing has changed; after it all has.

A restored store does not go on at the revision it was saved at, but far above it, with no history.
Clients may hold revisions that the archive never saw, and those would be given again to other
states: a watch that resumes there would miss changes without knowing. So it must find them gone.

`archive.py` has the format of archives.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import tarfile
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

import msgspec

from sully.runtime.files import create_private, scratch_name
from sully.store.backup.archive import (
    ARCHIVE_FORMAT,
    MANIFEST,
    BackupError,
    Manifest,
    check_database,
    copy_and_hash,
    flush_directory,
)
from sully.store.directory import DATABASE_FILE, LOCK_FILE, DataDirectory
from sully.store.errors import OpenError
from sully.store.sqlite.database import Database

REVISIONS_SKIPPED = 1_000_000_000
"""More than any server writes between a backup and the moment it is needed."""

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_MAX_MANIFEST = 1 << 20


class RestoreResult(msgspec.Struct, frozen=True):
    """What was restored."""

    manifest: Manifest
    replaced: Path | None
    """Where the former content of the directory is now."""


def restore(archive: Path, directory: Path, *, force: bool = False) -> RestoreResult:
    """Restore an archive into a directory; with `force` also into one that is not empty."""
    directory = directory.absolute()
    _check_target(directory, force=force)
    directory.parent.mkdir(parents=True, exist_ok=True)
    staging = scratch_name(directory)
    try:
        # It must not exist: an existing file is not ours.
        staging.mkdir(mode=0o700)
    except OSError as error:
        raise BackupError(f"cannot restore to {directory}: {error.strerror or error}") from error
    try:
        manifest = unpack(archive, staging)
        _skip_revisions(staging / DATABASE_FILE)
        flush_directory(staging)
        replaced = _replace_directory(staging, directory)
    except OSError as error:
        raise BackupError(f"cannot restore to {directory}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return RestoreResult(manifest, replaced)


def unpack(archive: Path, folder: Path) -> Manifest:
    """Unpack an archive into an empty directory and verify it."""
    try:
        with archive.open("rb") as file, tarfile.open(fileobj=file, mode="r:") as members:
            manifest = _read_manifest(archive, members)
            for member in members:
                if member.name != MANIFEST:
                    _extract(archive, members, member, manifest, folder)
    except tarfile.TarError as error:
        raise BackupError(f"{archive} is not a backup, or it is truncated: {error}") from error
    except OSError as error:
        raise BackupError(f"cannot read {archive}: {error.strerror or error}") from error
    missing = [name for name in manifest.files if not (folder / name).is_file()]
    if missing:
        raise BackupError(f"{archive} is damaged: it lacks {', '.join(missing)}")
    try:
        revision = check_database(folder / DATABASE_FILE)
    except OpenError as error:
        raise BackupError(f"{archive} is damaged: {error}") from error
    if revision != manifest.revision:
        raise BackupError(
            f"{archive} is damaged: its database is at revision {revision},"
            f" its manifest has {manifest.revision}"
        )
    return manifest


def _read_manifest(archive: Path, members: tarfile.TarFile) -> Manifest:
    first = members.next()
    is_manifest = first is not None and first.isfile() and first.name == MANIFEST
    content = members.extractfile(first) if first is not None and is_manifest else None
    if content is None or first is None or first.size > _MAX_MANIFEST:
        raise BackupError(f"{archive} is not a backup of `sully backup`")
    try:
        manifest = msgspec.json.decode(content.read(), type=Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BackupError(f"{archive} is damaged: {error}") from error
    if manifest.format > ARCHIVE_FORMAT:
        raise BackupError(
            f"{archive} has format {manifest.format}, this program knows formats up to"
            f" {ARCHIVE_FORMAT}: use the newer program that wrote it"
        )
    if DATABASE_FILE not in manifest.files:
        raise BackupError(f"{archive} is damaged: it lacks {DATABASE_FILE}")
    return manifest


def _extract(
    archive: Path,
    members: tarfile.TarFile,
    member: tarfile.TarInfo,
    manifest: Manifest,
    folder: Path,
) -> None:
    content = members.extractfile(member) if member.isfile() else None
    # A name with a path in it is in no manifest that we wrote.
    plain = Path(member.name).name == member.name and member.name != LOCK_FILE
    if content is None or not plain or member.name not in manifest.files:
        raise BackupError(f"{archive} is damaged: unexpected file {member.name!r}")
    with create_private(folder / member.name) as file:
        digest = _copied(content, file)
    if digest != manifest.files[member.name]:
        raise BackupError(f"{archive} is damaged: {member.name} is not as it was saved")


def _copied(content: object, file: BinaryIO) -> str:
    return copy_and_hash(content, file)  # type: ignore[arg-type]  # tarfile's own class of file


def _skip_revisions(path: Path) -> None:
    with closing(Database(path)) as database:
        state = database.load()
        database.trim(state.revision + REVISIONS_SKIPPED, [])


def _check_target(directory: Path, *, force: bool) -> None:
    if directory.exists() and not directory.is_dir():
        raise BackupError(f"{directory} is not a directory")
    if directory.is_dir() and any(directory.iterdir()) and not force:
        raise BackupError(
            f"{directory} is not empty; give another --data-dir,"
            " or --force to put its content aside"
        )


def _replace_directory(staging: Path, directory: Path) -> Path | None:
    """Replace a directory by another; return where the old one is now."""
    if not directory.exists() or not any(directory.iterdir()):
        staging.replace(directory)
        flush_directory(directory.parent)
        return None
    # Locked until it is renamed, so that no server starts on it.
    data_directory = DataDirectory(directory)
    try:
        replaced_path = _free_name(directory)
        _exchange(staging, directory)
        staging.rename(replaced_path)
        flush_directory(directory.parent)
    finally:
        data_directory.release()
    return replaced_path


def _free_name(directory: Path) -> Path:
    number = 1
    while (candidate := directory.with_name(f"{directory.name}.replaced-{number}")).exists():
        number += 1
    return candidate


def _exchange(first_path: Path, second_path: Path) -> None:
    """Swap two directories in one step, or in three where the system knows no better."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is not None:
        names = os.fsencode(first_path), os.fsencode(second_path)
        if rename(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0:
            return
        number = ctypes.get_errno()
        if number not in (errno.ENOSYS, errno.EINVAL):
            raise OSError(number, os.strerror(number), str(second_path))
    between = second_path.with_name(f"{first_path.name}-old")
    second_path.rename(between)
    try:
        first_path.rename(second_path)
    except BaseException:
        between.rename(second_path)
        raise
    between.rename(first_path)
