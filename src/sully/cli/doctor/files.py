"""Reads a data directory for the checks, and changes nothing in it."""

import os
import shutil
import stat
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from sully.cli.client.certificates import validity
from sully.cli.command import CommandError
from sully.domain.diagnosis.files import (
    STORE,
    check_certificate,
    check_lock,
    check_mode,
    check_space,
    check_store,
)
from sully.domain.diagnosis.findings import Finding, ok, warning
from sully.store.directory import DATABASE_FILE, holder, is_locked
from sully.store.errors import StoreError
from sully.store.verification import verify_file

_RENEWED = "restart the server, which renews it"
_AUTHORITY = (
    "stop the server, remove ca.crt and ca.key, and start it: then create all kubeconfigs again"
)


def check_directory(path: Path, now: datetime) -> Iterator[Finding]:
    """Yield the findings about a data directory."""
    if not path.is_dir():
        raise CommandError(f"{path}: no such directory (set --data-dir)")
    try:
        yield check_mode(str(path), stat.S_IMODE(path.stat().st_mode))
        usage = shutil.disk_usage(path)
        yield check_space(str(path), usage.free, usage.total)
        locked = is_locked(path)
        yield check_lock(holder(path) if locked else None)
        yield _store(path, locked=locked)
        yield from _certificates(path, now)
    except OSError as error:
        raise CommandError(f"{error.filename or path}: {error.strerror}") from error


def _store(path: Path, *, locked: bool) -> Finding:
    database = path / DATABASE_FILE
    if not database.exists():
        return ok(STORE, f"{database} does not exist: there is no local store")
    if locked:
        # The server may have another store: --store is recorded nowhere.
        return ok(
            STORE,
            f"{database} is not checked while a server uses the directory; a server with this"
            " store checks it when it starts",
        )
    if not os.access(database, os.R_OK):
        return warning(STORE, f"{database} is not readable", "run this as the owner of the file")
    try:
        content = verify_file(path)
    except StoreError as error:
        return check_store(str(error), 0, 0)
    return check_store("", content.objects, content.revision)


def _certificates(path: Path, now: datetime) -> Iterator[Finding]:
    for file in sorted(path.glob("*.crt")):
        remedy = _AUTHORITY if file.name == "ca.crt" else _RENEWED
        yield check_certificate(file.name, validity(file.read_bytes()), now, remedy)
