"""Costs that the shape of the data structures promises, counted rather than timed."""

from __future__ import annotations

import asyncio

from sully.store.base import Put, StoreKey
from sully.store.memory import MemoryStore


async def test_a_batch_wakes_a_waiting_watcher_once() -> None:
    store = MemoryStore()
    watch = store.watch("pods", after=store.revision)
    wakes = 0

    async def follow() -> None:
        nonlocal wakes
        seen = 0
        while seen < 100:
            await watch.wait()
            wakes += 1
            seen += len(watch.take())

    following = asyncio.ensure_future(follow())
    await asyncio.sleep(0)
    for n in range(100):
        await store.commit([Put(StoreKey("pods", "", str(n)), b"")])
    await following

    # Commits to memory do not yield, so everything happened before the watcher ran.
    assert wakes == 1


async def test_reading_a_resource_that_does_not_exist_is_harmless() -> None:
    store = MemoryStore()

    assert (await store.list("nothing", "nowhere")).records == []
    assert await store.get(StoreKey("nothing", "", "x")) is None
