"""Events that nobody writes any more go; those of a former run by the time they carry."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest

from sully.machinery.formats.timestamps import format_time
from sully.server.storage.event_expiry import EventExpiry
from sully.store.base import Delete, Put, Store, StoreKey
from sully.store.errors import UnavailableError
from sully.store.memory import MemoryStore
from sully.testing.clock import FakeClock

HOUR = 3600
EVENT = b'{"metadata":{"name":"e","creationTimestamp":"2020-01-01T00:00:00Z"}}'


async def write_events(
    store: Store, *names: str, value: bytes = EVENT, resource: str = "events"
) -> None:
    for name in names:
        await store.commit([Put(StoreKey(resource, "a", name), value)])


async def listed_names(store: Store, resource: str = "events") -> list[str]:
    return [record.key.name for record in (await store.list(resource)).records]


async def test_what_was_not_written_for_an_hour_is_deleted() -> None:
    store, clock = MemoryStore(), FakeClock()
    expiry = EventExpiry(store, clock)
    await write_events(store, "early", "repeated")
    await write_events(store, "pod", resource="pods")
    left = []
    for minutes in (0, 30, 29, 1, 30):
        clock.advance(minutes * 60)
        await expiry.expire()
        if minutes == 30:
            await write_events(store, "late", "repeated")
        left.append(await listed_names(store))

    both = ["early", "late", "repeated"]
    assert left == [["early", "repeated"], both, both, ["late", "repeated"], ["late", "repeated"]]
    assert await listed_names(store, "pods") == ["pod"]


async def test_each_goes_by_a_change_of_its_own() -> None:
    store, clock = MemoryStore(), FakeClock()
    expiry = EventExpiry(store, clock)
    await write_events(store, *map(str, range(100)))
    await expiry.expire()
    watch = store.watch("events", after=store.revision)
    clock.advance(HOUR)

    await expiry.expire()

    gone = watch.take()
    assert [item.kind for item in gone] == ["DELETED"] * 100
    assert len({item.revision for item in gone}) == 100


def written(clock: FakeClock, created: int | None = None, *managed: int) -> bytes:
    """Return an event that was created, and then written, so many minutes ago."""

    def ago(minutes: int) -> str:
        return format_time(clock.now() - timedelta(minutes=minutes))

    metadata: dict[str, Any] = {"name": "e"}
    if created is not None:
        metadata["creationTimestamp"] = ago(created)
    metadata["managedFields"] = [{"manager": "m", "time": ago(item)} for item in managed]
    # The time that a client sends does not count.
    return json.dumps({"metadata": metadata, "lastTimestamp": "1999-01-01T00:00:00Z"}).encode()


INHERITED = {
    "an old one goes immediately": ((90,), 0),
    "a young one goes when its hour is over": ((40,), 20),
    "one that was repeated lives longer": ((90, 80, 10), 50),
    "one of the future goes an hour after the start": ((-500,), 60),
    "so does one that reports nothing": ((), 60),
}


@pytest.mark.parametrize(("ages", "minutes"), INHERITED.values(), ids=INHERITED.keys())
async def test_those_of_a_former_run(ages: tuple[int, ...], minutes: int) -> None:
    store, clock = MemoryStore(), FakeClock()
    await write_events(store, "e", value=written(clock, *ages))
    expiry = EventExpiry(store, clock)

    passed = 0
    await expiry.expire()
    while await listed_names(store):
        clock.advance(60)
        passed += 1
        await expiry.expire()

    assert passed == minutes


class Counted(MemoryStore):
    """A store that counts how often everything is read."""

    lists = 0

    async def list(self, resource: str, namespace: str | None = None, **how: Any) -> Any:
        self.lists += 1
        return await super().list(resource, namespace, **how)


FOLLOWED = {"all are read once": (False, 1), "and again after the history was lost": (True, 2)}


@pytest.mark.parametrize(("lost", "lists"), FOLLOWED.values(), ids=FOLLOWED.keys())
async def test_a_round_looks_at_what_changed(lost: bool, lists: int) -> None:
    store, clock = Counted(), FakeClock()
    await write_events(store, "inherited", "repeated", value=written(clock, 30))
    expiry = EventExpiry(store, clock)
    await expiry.expire()
    await write_events(store, "new", "deleted", "repeated")
    await store.commit([Delete(StoreKey("events", "a", "deleted"))])
    if lost:
        await store.compact(store.revision)
    left = []
    for _ in range(4):
        clock.advance(20 * 60)
        await expiry.expire()
        left.append(
            [record.key.name for record in (await MemoryStore.list(store, "events")).records]
        )

    young = ["new", "repeated"]
    assert left == [["inherited", *young], young, young, []]
    assert store.lists == lists


class Troubled(MemoryStore):
    """A store that cannot be read for a while."""

    failures = 0

    async def list(self, resource: str, namespace: str | None = None, **how: Any) -> Any:
        if self.failures:
            self.failures -= 1
            raise UnavailableError("no disk")
        return await super().list(resource, namespace, **how)


LIFETIMES = {"for an hour": (HOUR, []), "indefinitely": (0, ["e"])}


@pytest.mark.parametrize(("ttl", "left"), LIFETIMES.values(), ids=LIFETIMES.keys())
async def test_it_looks_again_and_again(ttl: int, left: list[str]) -> None:
    store, clock = Troubled(), FakeClock()
    expiry = EventExpiry(store, clock, timedelta(seconds=ttl))
    await write_events(store, "e")
    store.failures = 30
    running = asyncio.ensure_future(expiry.run())
    for _ in range(62):
        await asyncio.sleep(0)
        clock.advance(60)
    for _ in range(10):
        await asyncio.sleep(0)
    running.cancel()
    store.failures = 0

    assert await listed_names(store) == left
