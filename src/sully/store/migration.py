"""Copies everything from one store into an empty one, and checks every object of the copy.

Revisions are the new store's own, but none of them is one that the old store gave: an object that
a client read before and writes back afterwards must find a conflict, not an accident. So the new
store starts where the old one stopped. `cli/data/migrate.py` opens the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec

from sully.runtime.files import create_private
from sully.store.base import Put, Record, Store, StoreKey
from sully.store.directory import DATABASE_FILE, DataDirectory
from sully.store.errors import OpenError, StoreError
from sully.store.sqlite.database import Database

_MAX_OBJECTS = 100
_MAX_BYTES = 1 << 20
"""Per transaction: within the limits of every store."""


class MigrationError(StoreError):
    """The copy failed, or differs from its source."""


class MigrationResult(msgspec.Struct, frozen=True):
    """What was copied and compared."""

    objects: int
    resources: int
    source: int
    """The revision of the old store."""
    target: int
    """The revision of the new one."""


def begin_sqlite(directory: Path, revision: int) -> None:
    """Create an empty database that continues from a revision; fail if one exists."""
    data_directory = DataDirectory(directory)
    try:
        path = directory / DATABASE_FILE
        try:
            create_private(path).close()
        except FileExistsError:
            raise OpenError(
                f"{path} exists: the target must be empty; move it away first"
            ) from None
        with closing(Database(path)) as database:
            database.trim(revision, ())
    finally:
        data_directory.release()


async def everything(store: Store) -> dict[StoreKey, bytes]:
    """Return all values of a store, as they are now."""
    values: dict[StoreKey, bytes] = {}
    for resource in store.resources():
        for record in (await store.list(resource)).records:
            values[record.key] = record.value
    return values


async def check_empty(store: Store) -> None:
    """Fail if the target is not empty."""
    count = len(await everything(store))
    if count:
        raise MigrationError(f"the target has {count} objects: the target must be empty")


async def migrate(source: Store, target: Store) -> MigrationResult:
    """Copy all objects, then read both stores again and compare them one by one."""
    await source.catch_up()
    before = source.revision
    await check_empty(target)
    if target.revision < before:
        raise MigrationError(f"the target must begin at revision {before} or later")
    records = [
        record
        for resource in source.resources()
        for record in (await source.list(resource)).records
    ]
    for batch in _batches(records):
        await target.commit([Put(record.key, record.value, expect=0) for record in batch])
    await source.catch_up()
    if source.revision != before:
        raise MigrationError(
            "the source was written to meanwhile: stop what uses it and start again"
        )
    count = await compare(source, target)
    return MigrationResult(count, len(source.resources()), before, target.revision)


async def compare(source: Store, target: Store) -> int:
    """Return how many objects both stores hold; `MigrationError` names the first difference."""
    old, new = await everything(source), await everything(target)
    for key in sorted(old.keys() | new.keys()):
        if key not in new:
            raise MigrationError(f"{key} is missing in the target")
        if key not in old:
            raise MigrationError(f"{key} is in the target only")
        if old[key] != new[key]:
            raise MigrationError(f"{key} differs in the target")
    return len(old)


def _batches(records: list[Record]) -> Iterator[list[Record]]:
    batch: list[Record] = []
    size = 0
    for record in records:
        if batch and (len(batch) == _MAX_OBJECTS or size + len(record.value) > _MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += len(record.value)
    if batch:
        yield batch
