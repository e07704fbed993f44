"""What happens when the disk, or what is on it, is not as it should be."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from store.faults import LARGE, full_disk
from storekeys import pod
from sully.store.base import Delete, Put
from sully.store.directory import DATABASE_FILE, LOCK_FILE
from sully.store.errors import OpenError, StoreError, UnavailableError
from sully.store.sqlite.store import SqliteStore

A, B = pod("a"), pod("b")


async def contents(store: SqliteStore) -> dict[str, bytes]:
    return {record.key.name: record.value for record in (await store.list("pods")).records}


@pytest.mark.parametrize("count", [1, 2, 3])
async def test_a_full_disk_refuses_and_recovers(tmp_path: Path, count: int) -> None:
    async with await SqliteStore.open(tmp_path) as store:
        await store.commit([Put(A, b"before")])
        watch = store.watch("pods", after=store.revision)
        with full_disk():
            with pytest.raises(UnavailableError, match=r"cannot write .*store\.db"):
                await store.commit([Put(A, LARGE), Put(B, b""), Put(pod("c"), b"")][:count])
            assert await contents(store) == {"a": b"before"}
            assert store.newest(B) is None
            small = await store.commit([Put(B, b"small")])
        after = await store.commit([Put(A, LARGE)])

        assert after.revision > small.revision > 2
        assert [event.revision for event in watch.take()] == [small.revision, after.revision]

    async with await SqliteStore.open(tmp_path) as store:
        assert await contents(store) == {"a": LARGE, "b": b"small"}
        assert store.revision == after.revision


async def test_a_compaction_that_fails_is_made_up_for(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path) as store:
        for n in range(120):
            await store.commit([Put(pod(str(n)), bytes(3000))])
        for n in range(120):
            await store.commit([Delete(pod(str(n)))])
        with full_disk(), pytest.raises(UnavailableError):
            await store.compact(store.revision)
        revision = store.revision
        await store.commit([Put(A, b"")])
        await store.compact(store.revision)

    async with await SqliteStore.open(tmp_path) as store:
        assert store.compacted == revision + 1
        assert await contents(store) == {"a": b""}


async def test_what_builds_on_a_failed_write_fails_with_it(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path) as store:
        with full_disk():
            first = asyncio.ensure_future(store.commit([Put(A, LARGE)]))
            await asyncio.sleep(0)
            current = store.newest(A)
            assert current is not None
            built = asyncio.ensure_future(store.commit([Put(A, b"2", expect=current.revision)]))
            conflicting = asyncio.ensure_future(store.commit([Put(A, b"3", expect=0)]))
            outcomes = await asyncio.gather(first, built, conflicting, return_exceptions=True)

        assert [type(outcome) for outcome in outcomes] == [UnavailableError] * 3
        assert store.newest(A) is None
        assert (await store.commit([Put(A, b"4", expect=0)])).revision > current.revision


async def test_a_failed_revision_is_not_given_to_another_write(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path) as store:
        with full_disk():
            failing = asyncio.ensure_future(store.commit([Put(A, LARGE)]))
            await asyncio.sleep(0)
            held = store.newest(A)
            assert held is not None
            await asyncio.gather(failing, return_exceptions=True)
        await store.commit([Put(A, b"other")])

        with pytest.raises(StoreError, match="expected revision"):
            await store.commit([Delete(A, expect=held.revision)])


async def test_a_name_that_cannot_be_written_harms_nobody(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path) as store:
        with pytest.raises(UnavailableError, match="surrogates"):
            await store.commit([Put(pod("\ud800"), b"")])
        await store.commit([Put(A, b"")])

        assert await contents(store) == {"a": b""}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_defect_in_the_writer_leaves_nobody_waiting(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path) as store:
        await store.commit([Put(A, b"")])
        no_bytes: Any = [1]
        broken = Put(A, no_bytes)
        outcomes = await asyncio.gather(
            store.commit([broken]), store.commit([Put(B, b"")]), return_exceptions=True
        )

        assert [str(outcome) for outcome in outcomes] == ["the store's writer has stopped"] * 2
        with pytest.raises(UnavailableError, match="has stopped"):
            await store.commit([Put(B, b"")])
        with pytest.raises(UnavailableError, match="has stopped"):
            await store.compact(store.revision)


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    """Return the directory of a store that was closed."""
    async with await SqliteStore.open(tmp_path) as store:
        for n in range(50):
            await store.commit([Put(pod(str(n)), bytes(3000))])
    return tmp_path


def overwrite(at: int, content: bytes) -> Callable[[Path], None]:
    def change(directory: Path) -> None:
        with (directory / DATABASE_FILE).open("r+b") as file:
            file.seek(at)
            file.write(content)

    return change


def execute(statement: str) -> Callable[[Path], None]:
    def change(directory: Path) -> None:
        connection = apsw.Connection(str(directory / DATABASE_FILE))
        for _ in connection.execute(statement):
            pass
        connection.close()

    return change


def truncate(directory: Path) -> None:
    os.truncate(directory / DATABASE_FILE, 4096 * 20)


def snapshot(directory: Path) -> bytes | None:
    file = directory / DATABASE_FILE
    return file.read_bytes() if file.is_file() else None


def replace_with_directory(directory: Path) -> None:
    (directory / DATABASE_FILE).unlink()
    (directory / DATABASE_FILE).mkdir()


DAMAGE = {
    "not a database": (overwrite(0, b"hello, world" * 10), "file is not a database"),
    "a damaged page": (overwrite(4096 * 2, b"\xff" * 4096), "damaged|malformed"),
    "a page lost in the middle": (overwrite(4096 * 9, bytes(4096 * 4)), "damaged"),
    "cut short": (truncate, "malformed"),
    "another program's database": (execute("PRAGMA application_id = 7"), "not a store of Sully"),
    "a newer format": (execute("PRAGMA user_version = 3"), "has format 3, .* up to 2"),
    "a changed byte in a value": (
        execute("UPDATE log SET value = CAST(x'01' || zeroblob(2999) AS BLOB) WHERE id = 256"),
        "damaged: pods/default/0 at 2 is not as it was written",
    ),
    "a deletion of nothing": (
        execute("INSERT INTO log VALUES (99999, 'pods', '', 'x', 1, NULL, NULL)"),
        "damaged: pods/x was deleted at 781 but did not exist",
    ),
    "no compacted revision": (execute("DELETE FROM meta"), "damaged: no answer"),
    "no table": (execute("DROP VIEW current; DROP TABLE log"), "damaged: no such table: log"),
    "no file but a directory": (replace_with_directory, "Is a directory"),
}


@pytest.mark.parametrize(("damage", "text"), DAMAGE.values(), ids=DAMAGE.keys())
async def test_damage_is_reported(data: Path, damage: Callable[[Path], None], text: str) -> None:
    damage(data)
    before = snapshot(data)

    for _ in range(2):
        # Twice: a failed attempt leaves neither a lock nor a change behind.
        with pytest.raises(OpenError, match=text) as caught:
            await SqliteStore.open(data)
        assert str(data) in str(caught.value)
    assert snapshot(data) == before


@contextmanager
def without_privileges() -> Iterator[None]:
    """Become nobody: permissions do not bind the superuser, as whom tests may run."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def reachable() -> Iterator[Path]:
    """Return a directory that anyone may enter; pytest's own are the user's alone."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    path.chmod(0o755)
    shutil.rmtree(path)


@pytest.fixture
def read_only(reachable: Path) -> Path:
    reachable.chmod(0o555)
    return reachable


async def test_a_directory_that_cannot_be_written_is_reported(read_only: Path) -> None:
    with without_privileges():
        with pytest.raises(OpenError, match=r"cannot use the data directory .*: Permission denied"):
            await SqliteStore.open(read_only)
        with pytest.raises(OpenError, match="Permission denied"):
            await SqliteStore.open(read_only / "new")


@pytest.fixture
def read_only_database(reachable: Path) -> Path:
    reachable.chmod(0o777)
    for name, mode in ((LOCK_FILE, 0o666), (DATABASE_FILE, 0o444)):
        (reachable / name).touch()
        (reachable / name).chmod(mode)
    return reachable


async def test_a_database_that_cannot_be_written_is_reported(read_only_database: Path) -> None:
    with without_privileges(), pytest.raises(OpenError, match=r"cannot write .*store\.db"):
        await SqliteStore.open(read_only_database)


async def test_a_file_is_not_a_directory(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")

    with pytest.raises(OpenError, match="Not a directory"):
        await SqliteStore.open(file)
