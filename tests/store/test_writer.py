from __future__ import annotations

import asyncio
from pathlib import Path

from store.faults import LARGE, full_disk
from sully.store.base import MAX_VALUE_BYTES, Commit, Put, StoreKey
from sully.store.directory import DataDirectory
from sully.store.errors import StoreError
from sully.store.sqlite.database import Database
from sully.store.sqlite.writer import Pending, WriterThread, settle
from sully.store.transactions import plan


def pending(revision: int, value: bytes, *, epoch: int) -> Pending:
    key = StoreKey("pods", "", f"at-{revision}")
    transaction = plan([Put(key, value)], lambda _: None, revision=revision)
    return Pending(transaction, asyncio.get_running_loop().create_future(), epoch)


def report(batch: list[Pending], error: StoreError | None) -> None:
    for job in batch:
        settle(job.future, Commit(job.transaction.revision, ()), error)


async def test_what_was_accepted_before_a_failure_was_known_is_not_written(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)
    database = Database(directory.database())
    database.load()
    writer = WriterThread(database, report)
    writer.start()
    with full_disk():
        fails = pending(2, LARGE, epoch=0)
        writer.submit(fails)
        await asyncio.wait([fails.future])

    # There is room again, but this may build on what is not there.
    late, again = pending(3, b"late", epoch=0), pending(4, b"again", epoch=1)
    writer.submit(late)
    writer.submit(again)
    await asyncio.wait([late.future, again.future])
    await writer.stop()

    failure = str(fails.future.exception())
    assert "cannot write" in failure
    assert str(late.future.exception()) == f"a write before this one failed: {failure}"
    assert again.future.result().revision == 4
    database = Database(directory.database())
    assert [r.value for r in database.load().table("pods").records.values()] == [b"again"]
    database.close()
    directory.release()


async def test_a_burst_does_not_grow_the_log_without_bound(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)
    file = directory.database()
    database = Database(file)
    database.load()
    # On a busy machine a burst has pauses, too, and each of them is used for a checkpoint.
    writer = WriterThread(database, report, pause=3600)
    writer.start()
    sizes = []
    for revision in range(2, 14):
        job = pending(revision, bytes(MAX_VALUE_BYTES), epoch=0)
        writer.submit(job)
        await job.future
        sizes.append(file.stat().st_size)
    await writer.stop()
    directory.release()

    # Ten wait in the log. The twelfth was accepted after the checkpoint that the eleventh forced.
    assert sizes[9] < MAX_VALUE_BYTES
    assert sizes[11] > 10 * MAX_VALUE_BYTES
