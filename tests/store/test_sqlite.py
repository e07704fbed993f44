"""What the store on disk promises beyond the contract: it records, and it is private."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import apsw
import pytest

from storekeys import pod
from sully.store.base import MAX_VALUE_BYTES, Delete, Event, Put, Store
from sully.store.directory import DATABASE_FILE, LOCK_FILE, DataDirectory
from sully.store.errors import OpenError
from sully.store.sqlite.store import SqliteStore
from sully.testing.patience import PATIENCE

A, B = pod("a"), pod("b")


def event_tuples(events: list[Event]) -> list[tuple[object, ...]]:
    return [
        (
            event.kind,
            event.revision,
            event.record.key,
            event.record.value,
            event.record.create_revision,
            event.record.revision,
            event.previous and event.previous.revision,
        )
        for event in events
    ]


async def write_some_history(store: Store) -> None:
    await store.commit([Put(A, b"1"), Put(B, b"1")])
    await store.commit([Put(A, b"2")])
    await store.commit([Delete(B), Put(A, b"3")])
    await store.commit([Put(B, b"\x00\xff")])


async def test_a_restart_changes_nothing_that_can_be_read(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path) as store:
        await write_some_history(store)
        before = event_tuples(store.watch("pods", after=1).take())
        revision = store.revision

    async with await SqliteStore.open(tmp_path) as store:
        assert store.revision == revision
        assert event_tuples(store.watch("pods", after=1).take()) == before
        record = await store.get(B)
        assert record is not None
        assert (record.value, record.create_revision) == (b"\x00\xff", revision)
        assert [r.value for r in (await store.list("pods", at=2)).records] == [b"1", b"1"]
        assert (await store.commit([Put(A, b"4")])).revision == revision + 1


async def test_a_compacted_history_stays_compacted(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path) as store:
        await write_some_history(store)
        await store.compact(3)
        after = event_tuples(store.watch("pods", after=3).take())

    async with await SqliteStore.open(tmp_path) as store:
        assert store.compacted == 3
        assert event_tuples(store.watch("pods", after=3).take()) == after


async def test_the_revision_survives_though_its_row_does_not(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path) as store:
        await store.commit([Put(A, b"1")])
        await store.commit([Delete(A)])
        revision = store.revision
        await store.compact(revision)

    assert rows(tmp_path) == []
    async with await SqliteStore.open(tmp_path) as store:
        assert store.revision == revision


def rows(directory: Path) -> list[tuple[int, str]]:
    connection = apsw.Connection(str(directory / DATABASE_FILE))
    result = list(connection.execute("SELECT id / 128, name FROM log ORDER BY id"))
    connection.close()
    return result


async def test_compaction_deletes_what_nobody_can_read(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path) as store:
        await write_some_history(store)
        await store.compact(4)

    assert rows(tmp_path) == [(4, "a"), (5, "b")]


async def test_a_large_compaction_happens_in_steps(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path) as store:
        for _ in range(25):
            await store.commit([Put(pod(str(n)), b"") for n in range(100)])
        await store.compact(store.revision)

    assert len(rows(tmp_path)) == 100


async def test_an_interrupted_compaction_is_finished_at_the_next_start(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path) as store:
        await write_some_history(store)
    connection = apsw.Connection(str(tmp_path / DATABASE_FILE))
    connection.execute("UPDATE meta SET value = 4")
    # The row that the deletion of B superseded is gone, that of the deletion itself is left.
    connection.execute("DELETE FROM log WHERE name = 'b' AND id / 128 = 2")
    connection.close()

    async with await SqliteStore.open(tmp_path) as store:
        assert (store.compacted, store.revision) == (4, 5)
        assert [r.value for r in (await store.list("pods")).records] == [b"3", b"\x00\xff"]

    assert rows(tmp_path) == [(4, "a"), (5, "b")]


async def test_many_writers_share_commits_and_all_are_kept(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path) as store:
        commits = await asyncio.gather(
            *(store.commit([Put(pod(f"{n}"), str(n).encode())]) for n in range(700))
        )
        assert [commit.revision for commit in commits] == list(range(2, 702))

    async with await SqliteStore.open(tmp_path) as store:
        values = {r.key.name: r.value for r in (await store.list("pods")).records}
    assert values == {f"{n}": str(n).encode() for n in range(700)}


async def test_readers_do_not_see_what_is_not_durable(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path) as store:
        watch = store.watch("pods", after=store.revision)
        writing = asyncio.ensure_future(store.commit([Put(A, b"1")]))
        await asyncio.sleep(0)

        # The event loop has not run since, so the writer cannot have reported yet.
        assert await store.get(A) is None
        assert watch.take() == []
        assert store.revision == 1
        newest = store.newest(A)
        assert newest is not None

        await writing
        assert await store.get(A) is newest
        assert [event.record for event in watch.take()] == [newest]


async def test_the_newest_state_is_the_last_one_accepted(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path) as store:
        before = asyncio.ensure_future(store.commit([Put(A, b"first")]))
        for n in range(200):
            writing = asyncio.ensure_future(store.commit([Put(A, str(n).encode())]))
            await asyncio.sleep(0)
            # That the one before is acknowledged must not uncover its state.
            await before
            newest = store.newest(A)
            assert newest is not None
            assert newest.value == str(n).encode()
            before = writing


async def test_a_pause_is_used_for_a_checkpoint(tmp_path: Path) -> None:
    file = tmp_path / DATABASE_FILE
    async with await SqliteStore.open(tmp_path) as store, asyncio.timeout(PATIENCE):
        await store.commit([Put(A, bytes(MAX_VALUE_BYTES))])
        while file.stat().st_size < MAX_VALUE_BYTES:
            await asyncio.to_thread(os.sched_yield)


async def test_the_files_are_private(tmp_path: Path) -> None:
    directory = tmp_path / "deep" / "data"
    old = os.umask(0)
    try:
        async with await SqliteStore.open(directory) as store:
            await store.commit([Put(A, b"1")])
            modes = {path.name: path.stat().st_mode & 0o777 for path in directory.iterdir()}
    finally:
        os.umask(old)

    assert directory.stat().st_mode & 0o777 == 0o700
    assert modes == {DATABASE_FILE: 0o600, DATABASE_FILE + "-wal": 0o600, LOCK_FILE: 0o600}


# mode of a directory that was there → mode afterwards, and whether a line in the log reports it
MODES = {
    "open to all": (0o777, 0o700, True),
    "readable by all": (0o755, 0o700, True),
    "of a group": (0o750, 0o700, True),
    "private": (0o700, 0o700, False),
}


@pytest.mark.parametrize(("before", "after", "reported"), MODES.values(), ids=MODES.keys())
async def test_an_existing_directory_is_closed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], before: int, after: int, reported: bool
) -> None:
    directory = tmp_path / "data"
    directory.mkdir()
    directory.chmod(before)
    (directory / DATABASE_FILE).touch()
    (directory / DATABASE_FILE).chmod(0o644)

    async with await SqliteStore.open(directory):
        assert (directory / DATABASE_FILE).stat().st_mode & 0o777 == 0o600

    assert directory.stat().st_mode & 0o777 == after
    assert ("restricted the data directory" in capsys.readouterr().out) is reported


def test_a_shared_directory_stays_open_and_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)

    with pytest.raises(OpenError, match=r"shared with other users \(mode 1777\)"):
        DataDirectory(tmp_path)

    assert tmp_path.stat().st_mode & 0o7777 == 0o1777


@pytest.mark.parametrize("name", [LOCK_FILE, DATABASE_FILE])
async def test_no_link_is_followed(tmp_path: Path, name: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"theirs")
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "data" / name).symlink_to(elsewhere)

    with pytest.raises(OpenError, match="symbolic links"):
        await SqliteStore.open(tmp_path / "data")

    assert elsewhere.read_bytes() == b"theirs"


async def test_closing_leaves_one_file_and_frees_the_directory(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path) as store:
        await store.commit([Put(A, b"1")])

    assert sorted(os.listdir(tmp_path)) == [LOCK_FILE, DATABASE_FILE]
    async with await SqliteStore.open(tmp_path) as store:
        assert await store.get(A) is not None


async def test_a_second_opener_is_shown_who_has_it(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path):
        with pytest.raises(OpenError, match=f"in use by process {os.getpid()}"):
            await SqliteStore.open(tmp_path)
