"""A store is read to its end without a change, as `sully doctor` does it."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import apsw
import pytest

from storekeys import pod
from sully.store.base import Put
from sully.store.directory import DATABASE_FILE, DataDirectory, holder, is_locked
from sully.store.errors import InUseError, OpenError
from sully.store.sqlite.store import SqliteStore
from sully.store.verification import Content, verify_file

OLD_RELEASE = Path(__file__).parents[1] / "robust" / "releases" / "0.1.0.db.gz"


async def filled(folder: Path) -> Path:
    async with await SqliteStore.open(folder) as store:
        await store.commit([Put(pod("a"), b"1"), Put(pod("b"), b"2")])
        await store.commit([Put(pod("a"), b"3")])
    return folder / DATABASE_FILE


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


async def test_a_good_store(tmp_path: Path) -> None:
    await filled(tmp_path)
    before = contents(tmp_path)

    assert verify_file(tmp_path) == Content(revision=3, objects=2)
    assert contents(tmp_path) == before


async def test_a_store_whose_server_was_killed(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path / "running") as store:
        await store.commit([Put(pod("a"), b"1")])
        copy = tmp_path / "killed"
        copy.mkdir()
        for name, data in contents(tmp_path / "running").items():
            (copy / name).write_bytes(data)
    (copy / f"{DATABASE_FILE}-shm").unlink(missing_ok=True)
    before = contents(copy)

    assert verify_file(copy) == Content(revision=2, objects=1)
    assert contents(copy) == before


async def test_a_changed_byte_is_found(tmp_path: Path) -> None:
    path = await filled(tmp_path)
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE log SET value = ? WHERE name = 'b'", (b"x",))
    connection.close()

    with pytest.raises(OpenError, match="is damaged: pods/default/b at 2 is not as it was written"):
        verify_file(tmp_path)


async def test_what_is_not_a_database(tmp_path: Path) -> None:
    (tmp_path / DATABASE_FILE).write_bytes(b"something else" * 100)

    with pytest.raises(OpenError, match="cannot be opened"):
        verify_file(tmp_path)


async def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / DATABASE_FILE).touch()

    assert verify_file(tmp_path) == Content(revision=0, objects=0)


def test_a_store_of_an_earlier_release(tmp_path: Path) -> None:
    (tmp_path / DATABASE_FILE).write_bytes(gzip.decompress(OLD_RELEASE.read_bytes()))
    before = contents(tmp_path)

    assert verify_file(tmp_path).objects > 10
    assert contents(tmp_path) == before


async def test_a_directory_in_use(tmp_path: Path) -> None:
    await filled(tmp_path)
    assert not is_locked(tmp_path)
    directory = DataDirectory(tmp_path)

    assert is_locked(tmp_path)
    assert holder(tmp_path) == str(os.getpid())
    with pytest.raises(InUseError):
        verify_file(tmp_path)
    directory.release()
    assert not is_locked(tmp_path)
    assert not is_locked(tmp_path / "other")
