"""The checks of a data directory: permissions, space, who uses it, its store and certificates."""

from __future__ import annotations

from datetime import datetime, timedelta

from sully.domain.diagnosis.findings import Finding, failure, ok, warning
from sully.machinery.formats.plurals import number_of

DIRECTORY, SPACE, LOCK, STORE = "data directory", "free space", "lock", "store"
MIN_FREE = 256 << 20
"""Below this a store soon cannot be written."""
LOW_SHARE = 0.05
EXPIRES_SOON = timedelta(days=30)
"""When servers renew their certificates; whatever is not renewed then was not restarted."""
MIB = 1 << 20


def check_mode(path: str, mode: int) -> Finding:
    """Check the permissions of a data directory."""
    if mode & 0o077:
        return failure(
            DIRECTORY,
            f"{path} has mode {mode:04o}: other users can read its keys",
            f"chmod 700 {path}",
        )
    if mode & 0o700 != 0o700:
        return failure(
            DIRECTORY, f"{path} has mode {mode:04o}: its owner cannot use it", f"chmod 700 {path}"
        )
    return ok(DIRECTORY, f"{path} has mode {mode:04o}")


def check_space(path: str, free: int, total: int) -> Finding:
    """Check the free space of the disk of a data directory."""
    text = f"{free // MIB} MiB of {total // MIB} MiB are free"
    remedy = f"free space on the disk of {path}, or move the data directory to a larger one"
    if free < MIN_FREE:
        return failure(SPACE, f"{text}: writes fail soon", remedy)
    if free < LOW_SHARE * total:
        return warning(SPACE, text, remedy)
    return ok(SPACE, text)


def check_lock(holder: str | None) -> Finding:
    """Check who uses a data directory: the id of a process, empty if that is unknown, or None."""
    if holder is None:
        return ok(LOCK, "no process uses the data directory")
    return ok(LOCK, f"process {holder or '(unknown)'} uses the data directory")


def check_store(problem: str, objects: int, revision: int) -> Finding:
    """Check a store that was read."""
    if problem:
        return failure(
            STORE,
            problem,
            "restore a backup with 'sully restore'",
        )
    return ok(STORE, f"{number_of(objects, 'object')} at revision {revision}")


def check_certificate(
    name: str, valid: tuple[datetime, datetime] | None, now: datetime, remedy: str
) -> Finding:
    """Check when a certificate is valid; None: the file is not a certificate."""
    check = f"certificate {name}"
    if valid is None:
        return failure(check, "not a PEM certificate", remedy)
    begins, ends = valid
    if ends <= now:
        return failure(check, f"expired at {ends:%Y-%m-%dT%H:%M:%SZ}", remedy)
    if begins > now:
        return failure(
            check,
            f"not valid before {begins:%Y-%m-%dT%H:%M:%SZ}",
            "check the clock of this machine",
        )
    text = f"expires at {ends:%Y-%m-%dT%H:%M:%SZ}"
    return warning(check, text, remedy) if ends - now < EXPIRES_SOON else ok(check, text)
