"""Informers: the cache, its handlers and indexes, through every kind of interruption."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import permutations, product
from typing import Any

import msgspec
import pytest

from client.scripted import (
    THINGS,
    LoggedServer,
    ScriptedTransport,
    Thing,
    added,
    deleted,
    modified,
    page,
    thing,
)
from sully.client.informers.informer import Informer, own_key
from sully.client.objects import strip_managed_fields
from sully.client.transport import Key, WatchEvent
from sully.machinery.errors import Expired
from sully.machinery.meta import TrackedMeta, Wire
from sully.runtime.backoff import Backoff
from sully.runtime.workqueue import WorkQueue
from sully.testing.clock import FakeClock

CALM = Backoff(base=0.5, cap=8.0, jitter=0.0, rng=random.Random(1))


@dataclass
class Mirror:
    """A handler that keeps its own copy and holds every change against it."""

    copy: dict[str, Thing] = field(default_factory=dict)
    changes: list[tuple[str | None, str | None]] = field(default_factory=list)

    def __call__(self, old: Thing | None, new: Thing | None) -> None:
        named = new or old
        assert named is not None
        name = named.metadata.name
        # What is called old must be what we were reported last.
        assert self.copy.get(name) == old
        if new is None:
            del self.copy[name]
        else:
            self.copy[name] = new
        self.changes.append((_brief(old), _brief(new)))


def _brief(obj: Thing | None) -> str | None:
    return f"{obj.metadata.name}@{obj.metadata.resource_version}" if obj else None


@asynccontextmanager
async def following(
    transport: Any, clock: FakeClock, **more: Any
) -> AsyncIterator[Informer[Thing]]:
    informer = Informer(transport, THINGS, clock=clock, backoff=CALM, **more)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(informer.run())
        yield informer
        task.cancel()


async def until_quiet(server: Any, clock: FakeClock) -> None:
    """Let the informer run, and time pass whenever it waits, until the script is done."""
    while not server.quiet.is_set():
        await asyncio.sleep(0)
        if clock.sleeping:
            clock.advance(10)


async def test_list_then_watch() -> None:
    clock, mirror = FakeClock(), Mirror()
    server = ScriptedTransport(
        lists=[page(thing("a", 1), thing("b", 2), version=2)],
        watches=[[modified(thing("a", 3)), deleted(thing("b", 4)), added(thing("c", 5))]],
    )
    async with following(server, clock) as informer:
        informer.on_change(mirror)
        assert not informer.synced
        await informer.wait_synced()
        await until_quiet(server, clock)

        assert mirror.changes == [
            (None, "a@1"),
            (None, "b@2"),
            ("a@1", "a@3"),
            ("b@2", None),
            (None, "c@5"),
        ]
        assert sorted(informer.keys()) == [Key("default", "a"), Key("default", "c")]
        assert informer.get(Key("default", "a")) == thing("a", 3)
        assert informer.get(Key("default", "b")) is None
        assert len(informer) == 2


async def test_a_transform_sees_each_object_before_it_is_cached() -> None:
    clock = FakeClock()
    server = ScriptedTransport(
        lists=[page(thing("a", 1), version=1)],
        watches=[[added(thing("b", 2)), deleted(thing("a", 3))]],
    )
    seen: list[str | None] = []

    def transform(obj: Thing) -> Thing:
        seen.append(_brief(obj))
        return thing(obj.metadata.name, int(obj.metadata.resource_version), uid="transformed")

    async with following(server, clock) as informer:
        informer.set_transform(transform)
        await informer.wait_synced()
        await until_quiet(server, clock)
        assert seen == ["a@1", "b@2", "a@3"]
        assert list(informer.values()) == [thing("b", 2, uid="transformed")]


class _Rule(Wire, frozen=True, kw_only=True):
    metadata: TrackedMeta = TrackedMeta()


MANAGED = {"name": "a", "labels": {"x": "y"}, "managedFields": [{"manager": "kubectl"}]}
PLAIN = {"name": "a", "labels": {"x": "y"}}


@pytest.mark.parametrize("metadata", [MANAGED, PLAIN])
def test_managed_fields_are_stripped_from_dicts_and_structs(metadata: dict[str, Any]) -> None:
    obj = {"metadata": metadata, "spec": {}}
    assert strip_managed_fields(obj) == {"metadata": PLAIN, "spec": {}}
    typed = msgspec.convert(obj, _Rule)
    assert strip_managed_fields(typed) == msgspec.convert({"metadata": PLAIN}, _Rule)


def test_objects_without_managed_fields_are_not_copied() -> None:
    plain, typed, untracked = {"metadata": PLAIN}, _Rule(), thing("a", 1)
    assert strip_managed_fields(plain) is plain
    assert strip_managed_fields(typed) is typed
    assert strip_managed_fields(untracked) is untracked


RELISTS = {
    "object deleted unseen": ([thing("a", 1)], [], [("a@1", None)]),
    "object changed unseen": ([thing("a", 1)], [thing("a", 7)], [("a@1", "a@7")]),
    "nothing changed": ([thing("a", 1)], [thing("a", 1)], []),
    "object added unseen": ([], [thing("a", 7)], [(None, "a@7")]),
    "name taken by another object": (
        [thing("a", 1)],
        [thing("a", 7, uid="new")],
        [("a@1", None), (None, "a@7")],
    ),
    "removals come first": (
        [thing("a", 1), thing("b", 2)],
        [thing("c", 7), thing("b", 8)],
        [("a@1", None), (None, "c@7"), ("b@2", "b@8")],
    ),
}


@pytest.mark.parametrize(("before", "after", "want"), RELISTS.values(), ids=RELISTS.keys())
async def test_relist_shows_every_difference(
    before: list[Thing], after: list[Thing], want: list[tuple[str | None, str | None]]
) -> None:
    clock, mirror = FakeClock(), Mirror()
    server = ScriptedTransport(
        lists=[page(*before, version=5), page(*after, version=9)], watches=[[Expired("old")]]
    )
    async with following(server, clock) as informer:
        await informer.wait_synced()
        informer.on_change(mirror)
        first = len(mirror.changes)
        await until_quiet(server, clock)

        assert mirror.changes[first:] == want
        assert sorted(mirror.copy) == sorted(obj.metadata.name for obj in after)


async def test_handlers_see_the_whole_list_together() -> None:
    clock = FakeClock()
    sizes: list[int] = []
    server = ScriptedTransport(lists=[page(thing("a", 1), thing("b", 2), version=2)])
    async with following(server, clock) as informer:
        informer.on_change(lambda old, new: sizes.append(len(informer)))
        await informer.wait_synced()

        assert sizes == [2, 2]


async def test_late_handler_gets_what_is_there_and_can_stop() -> None:
    clock, mirror = FakeClock(), Mirror()
    informer = Informer(ScriptedTransport(lists=[]), THINGS, clock=clock)
    informer.replace([thing("a", 1)])

    stop = informer.on_change(mirror)
    informer.change(modified(thing("a", 2)))
    stop()
    informer.change(modified(thing("a", 3)))

    assert mirror.changes == [(None, "a@1"), ("a@1", "a@2")]


def history_of(order: tuple[str, ...]) -> list[WatchEvent[Thing]]:
    """Write out the lives of objects: the n-th time a name occurs is the n-th turn of its life."""
    turns: dict[str, int] = {}
    events = []
    for version, name in enumerate(order, start=1):
        turn = turns.get(name, 0)
        turns[name] = turn + 1
        kind = (added, modified, deleted)[turn % 3]
        events.append(kind(thing(name, version, color=f"{turn}", uid=f"{name}-{turn // 3}")))
    return events


ORDERS = sorted(set(permutations(("a", "a", "a", "b", "b", "c"))))
INTERRUPTIONS = list(product((0, 1, 2), ("end", "break", "gone", "bookmark")))


@pytest.mark.parametrize("plan", list(product(INTERRUPTIONS, INTERRUPTIONS)), ids=str)
async def test_every_order_with_every_interruption(
    plan: tuple[tuple[int, str], tuple[int, str]],
) -> None:
    for order in ORDERS:
        clock, mirror = FakeClock(), Mirror()
        server = LoggedServer(history_of(order), plan)
        async with following(server, clock) as informer:
            informer.on_change(mirror)
            await until_quiet(server, clock)

            truth = server.state(server.version)
            assert {obj.metadata.name: obj for obj in informer.values()} == truth
            assert mirror.copy == truth


async def test_index_follows_changes() -> None:
    informer = Informer(
        ScriptedTransport(lists=[]),
        THINGS,
        clock=FakeClock(),
        indexes={"color": lambda obj: [obj.color] if obj.color else []},
    )
    informer.replace([thing("b", 1, "red"), thing("a", 2, "red"), thing("c", 3)])
    assert informer.by_index("color", "red") == [thing("a", 2, "red"), thing("b", 1, "red")]

    informer.change(modified(thing("a", 4, "blue")))
    informer.change(deleted(thing("b", 5, "red")))

    assert informer.by_index("color", "red") == []
    assert informer.by_index("color", "blue") == [thing("a", 4, "blue")]
    assert sorted(informer.index_values("color")) == ["blue"]

    informer.add_index("name", lambda obj: [obj.metadata.name])
    assert informer.by_index("name", "c") == [thing("c", 3)]


async def test_keys_of_old_and_new_state_reach_the_queue_once() -> None:
    """A controller that takes keys needs no more than an informer and a work queue."""
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue(clock)
    informer = Informer(ScriptedTransport(lists=[]), THINGS, clock=clock)
    informer.replace([thing("a", 1, "red")])
    informer.enqueue(queue.add, lambda obj: [obj.color])
    assert await queue.get() == "red"
    queue.done("red")

    for version in range(2, 50):
        informer.change(modified(thing("a", version, "red" if version % 2 else "blue")))

    assert {await queue.get(), await queue.get()} == {"red", "blue"}
    assert len(queue) == 0


async def test_the_newest_state_alone_reports_what_a_change_touches() -> None:
    informer = Informer(ScriptedTransport(lists=[]), THINGS, clock=FakeClock())
    asked: list[str] = []
    results: list[Key] = []

    def touched(obj: Thing) -> list[Key]:
        asked.append(obj.color)
        return list(own_key(obj))

    informer.change(added(thing("a", 1, "red")))
    stop = informer.newest.enqueue(results.append, touched)
    informer.change(modified(thing("a", 2, "blue")))
    informer.change(deleted(thing("a", 3, "green")))
    stop()
    informer.change(added(thing("a", 4, "white")))

    assert asked == ["red", "blue", "blue"]
    assert results == [Key("default", "a")] * 3


def test_own_key() -> None:
    assert own_key(thing("a", 1)) == (Key("default", "a"),)
    assert own_key({"metadata": {"name": "node-1"}}) == (Key("", "node-1"),)
