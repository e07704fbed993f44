"""Writes to a store until it is killed, and prints each round once it is acknowledged.

Run by `test_sqlite_crash.py` as `python crash_writer.py DIRECTORY`. A round is one transaction
that writes the same number to three keys and replaces the marker of the round before.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from sully.store.base import Delete, Op, Put, StoreKey
from sully.store.sqlite.store import SqliteStore

WRITERS = 8


async def write(store: SqliteStore, writer: int) -> None:
    keys = [StoreKey("pods", f"w{writer}", name) for name in ("a", "b", "c")]
    current = await store.get(keys[0])
    number = int(current.value) if current else 0
    while True:
        old, number = number, number + 1
        ops: list[Op] = [Put(key, str(number).encode()) for key in keys]
        ops.append(Put(StoreKey("markers", f"w{writer}", str(number)), b"x" * 3000))
        if old:
            ops.append(Delete(StoreKey("markers", f"w{writer}", str(old))))
        commit = await store.commit(ops)
        sys.stdout.write(f"{writer} {number} {commit.revision}\n")
        sys.stdout.flush()


async def main(directory: Path) -> None:
    store = await SqliteStore.open(directory)
    async with asyncio.TaskGroup() as group:
        for writer in range(WRITERS):
            group.create_task(write(store, writer))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
