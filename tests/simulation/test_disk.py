"""The simulated disk: what was flushed survives, what was not may be lost or torn."""

from __future__ import annotations

import random
from pathlib import Path

import apsw
import pytest

from simulator.disk import SimulatedDisk

PATH = Path("/simulated/test.db")


def _open(disk: SimulatedDisk, synchronous: str = "full") -> apsw.Connection:
    disk.create(str(PATH))
    connection = apsw.Connection(str(PATH), flags=apsw.SQLITE_OPEN_READWRITE, vfs=disk.name)
    disk.users.append(connection)
    connection.pragma("locking_mode", "exclusive")
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", synchronous)
    connection.execute("CREATE TABLE IF NOT EXISTS numbers (number INTEGER)")
    return connection


def _count(connection: apsw.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM numbers").get)


def test_flushed_transactions_survive_every_crash() -> None:
    disk = SimulatedDisk(random.Random(1))
    written = 0
    for _ in range(20):
        connection = _open(disk)
        assert _count(connection) == written
        for _ in range(3):
            connection.execute("INSERT INTO numbers VALUES (1)")
            written += 1
        disk.crash()


def test_transactions_that_are_not_flushed_are_lost() -> None:
    lost = 0
    for seed in range(10):
        disk = SimulatedDisk(random.Random(seed))
        _open(disk)
        disk.crash()
        connection = _open(disk, "off")
        for _ in range(5):
            connection.execute("INSERT INTO numbers VALUES (1)")
        disk.crash()
        lost += _count(_open(disk)) < 5

    assert lost > 0


def test_a_power_cut_comes_after_so_many_writes() -> None:
    disk = SimulatedDisk(random.Random(1))
    connection = _open(disk)
    cuts: list[None] = []
    disk.on_power_cut = lambda: cuts.append(None)
    connection.execute("INSERT INTO numbers VALUES (1)")
    disk.fuse = 2

    with pytest.raises(apsw.IOError, match="lost power"):
        connection.execute("INSERT INTO numbers VALUES (2)")

    assert len(cuts) == 1
    assert _count(_open(disk)) in (1, 2)


def test_writes_fail_as_often_as_they_should() -> None:
    disk = SimulatedDisk(random.Random(1))
    connection = _open(disk)
    disk.failing = 1

    with pytest.raises(apsw.IOError, match="simulated"):
        connection.execute("INSERT INTO numbers VALUES (1)")
    connection.execute("INSERT INTO numbers VALUES (2)")

    assert _count(connection) == 1
