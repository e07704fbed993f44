"""Compactions that fail: what was deleted stays deleted, also after the next start."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.disk import SimulatedDisk
from simulator.storage import PATH
from sully.store.base import Event, Record, StoreKey
from sully.store.directory import DataDirectory
from sully.store.errors import UnavailableError
from sully.store.sqlite.database import Database
from sully.store.sqlite.store import SqliteStore

KEY = StoreKey("pods", "default", "one")
OTHER = StoreKey("pods", "default", "other")


@pytest.fixture
def disk() -> Iterator[SimulatedDisk]:
    disk = SimulatedDisk(random.Random(1))
    disk.create(str(PATH))
    yield disk
    disk.close()


def put(revision: int, previous: Record | None = None, key: StoreKey = KEY) -> Event:
    record = Record(key, b"{}", previous.create_revision if previous else revision, revision)
    return Event("MODIFIED" if previous else "ADDED", record, previous, revision)


def reopened(disk: SimulatedDisk) -> Database:
    disk.crash()
    return opened(disk)


def opened(disk: SimulatedDisk) -> Database:
    database = Database(PATH, vfs=disk.name)
    disk.users.append(database)
    return database


def written(disk: SimulatedDisk) -> Database:
    """Return a database with two states of an object, its deletion, and another object."""
    database = opened(disk)
    database.load()
    first = put(2)
    second = put(3, first.record)
    deletion = Event("DELETED", second.record, second.record, 4)
    for event in (first, second, deletion, put(5, key=OTHER)):
        database.write([[event]])
    return database


def test_a_trim_repeats_what_an_earlier_one_could_not_do(disk: SimulatedDisk) -> None:
    database = written(disk)
    disk.failing = 1
    with pytest.raises(UnavailableError):
        database.trim(3, [(2, KEY)])

    database.trim(4, [(3, KEY), (4, KEY)])

    state = reopened(disk).load()
    assert state.get(KEY) is None
    assert state.get(OTHER) is not None


def test_a_start_that_cannot_trim_repeats_it_later(disk: SimulatedDisk) -> None:
    database = written(disk)
    # Interrupted after the revision was noted.
    database.trim(3, [])
    database = reopened(disk)
    disk.failing = 1
    database.load()

    database.trim(4, [(3, KEY), (4, KEY)])

    assert reopened(disk).load().get(KEY) is None


class Unreliable(Database):
    """Fails at its first trim."""

    failures = 1

    def trim(self, compacted: int, versions: object) -> None:
        if self.failures:
            self.failures -= 1
            # The statement cannot be executed, so this fails as a full disk does.
            self._connection.execute("PRAGMA query_only = true")
            try:
                super().trim(compacted, versions)  # type: ignore[arg-type]  # passed on
            finally:
                self._connection.execute("PRAGMA query_only = false")
        super().trim(compacted, versions)  # type: ignore[arg-type]  # passed on


async def test_a_failed_step_of_a_compaction_does_not_skip_the_others(tmp_path: Path) -> None:
    from sully.store.base import Delete, Put

    keys = [StoreKey("pods", "default", f"pod-{number:04}") for number in range(1200)]
    directory = DataDirectory(tmp_path)
    database = Unreliable(directory.database())
    async with SqliteStore(directory, database, database.load()) as store:
        for start in range(0, len(keys), 100):
            await store.commit([Put(key, b"{}") for key in keys[start : start + 100]])
        for start in range(0, len(keys), 100):
            await store.commit([Put(key, b"[]") for key in keys[start : start + 100]])
        with pytest.raises(UnavailableError):
            await store.compact(store.revision)
        for start in range(0, len(keys), 100):
            await store.commit([Delete(key) for key in keys[start : start + 100]])
        await store.compact(store.revision)

    async with await SqliteStore.open(tmp_path) as store:
        assert list(store.current("pods")) == []
