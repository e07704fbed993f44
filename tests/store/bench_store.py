"""Measures durable writes per second: `python tests/store/bench_store.py [WRITERS ...]`.

Each writer commits one value of 2 KiB after another for a few seconds, in a temporary directory
below the current one, so that the disk is the one that matters. Then the store is opened again.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

import uvloop

from sully.store.base import Put, StoreKey
from sully.store.sqlite.store import SqliteStore

SECONDS = 3.0
VALUE = bytes(2048)


async def write(store: SqliteStore, writer: int, until: float) -> list[float]:
    """Write until the time is over and return how long each commit took."""
    took: list[float] = []
    while (begin := time.perf_counter()) < until:
        await store.commit([Put(StoreKey("pods", "bench", f"{writer}-{len(took) % 200}"), VALUE)])
        took.append(time.perf_counter() - begin)
    return took


async def measure(writers: int, directory: Path) -> str:
    store = await SqliteStore.open(directory)
    begin, cpu = time.perf_counter(), time.process_time()
    entry = await asyncio.gather(*(write(store, n, begin + SECONDS) for n in range(writers)))
    elapsed, cpu = time.perf_counter() - begin, time.process_time() - cpu
    took = sorted(second for part in entry for second in part)
    await store.close()
    begin = time.perf_counter()
    await (await SqliteStore.open(directory)).close()
    opened = time.perf_counter() - begin
    half, most = took[len(took) // 2], took[len(took) * 99 // 100]
    return (
        f"{writers:4} writers: {len(took) / elapsed:7,.0f} writes/s,"
        f" {cpu / len(took) * 1e6:.0f} us cpu each,"
        f" p50 {half * 1e3:.2f} ms, p99 {most * 1e3:.2f} ms, max {took[-1] * 1e3:.0f} ms;"
        f" {len(took):,} rows opened in {opened:.2f} s"
    )


def main() -> None:
    for writers in [int(word) for word in sys.argv[1:]] or [1, 16, 64]:
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as directory:
            sys.stdout.write(uvloop.run(measure(writers, Path(directory))) + "\n")


if __name__ == "__main__":
    main()
