"""Informers and queues through any history: nothing is lost, nothing comes twice."""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from client.chronicle import ENDINGS, Chronicle
from client.scripted import THINGS, ScriptedTransport, Thing, modified, thing
from property_examples import examples
from sully.client.informers.informer import Informer, own_key
from sully.client.transport import Key
from sully.runtime.backoff import Backoff
from sully.runtime.workqueue import WorkQueue
from sully.testing.clock import FakeClock

CALM = Backoff(base=0.5, cap=8.0, jitter=0.5, rng=random.Random(1))
Step = tuple[str, int]
"""What happens, and for how many turns of the loop nothing more does."""
STEPS = st.tuples(
    st.one_of(
        st.sampled_from(("a", "b", "c", "d", "e")),
        st.sampled_from(("bookmarks", "end", "drop", "stall")),
        st.sampled_from(("gone", "forget", "busy", "refresh")),
    ),
    st.sampled_from((0, 1, 12)),
)


@dataclass
class Reader:
    """A handler that checks every change, and a slow worker behind a queue."""

    informer: Informer[Thing]
    queue: WorkQueue[Key]
    slowness: int
    copy: dict[str, Thing] = field(default_factory=dict)
    seen: dict[str, Thing | None] = field(default_factory=dict)

    def handle(self, old: Thing | None, new: Thing | None) -> None:
        named = new or old
        assert named is not None
        # No change is reported twice and none is left out: the old state is the last reported one.
        assert self.copy.get(named.metadata.name) == old
        if old is not None and new is not None:
            assert old.metadata.uid == new.metadata.uid
        self.copy.pop(named.metadata.name, None)
        if new is not None:
            self.copy[new.metadata.name] = new

    async def work(self) -> None:
        while True:
            key = await self.queue.get()
            self.seen[key.name] = self.informer.get(key)
            for _ in range(self.slowness):
                await asyncio.sleep(0)
            self.queue.done(key)


class Story:
    """A server, an informer on it, and its readers."""

    def __init__(self, slowness: int) -> None:
        self.clock = FakeClock()
        self.server = Chronicle()
        self.informer: Informer[Thing] = Informer(
            self.server,
            THINGS,
            clock=self.clock,
            backoff=CALM,
        )
        queue: WorkQueue[Key] = WorkQueue(self.clock)
        self.reader = Reader(self.informer, queue, slowness)
        self.informer.on_change(self.reader.handle)
        self.informer.enqueue(queue.add, own_key)

    async def play(self, steps: list[Step]) -> None:
        async with asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(self.informer.run()),
                tasks.create_task(self.reader.work()),
            ]
            for what, turns in steps:
                self._step(what)
                for _ in range(turns):
                    await asyncio.sleep(0)
            await self._until(self._caught_up)
            for task in running:
                task.cancel()

    def _step(self, what: str) -> None:
        match what:
            case "forget":
                self.server.forget()
            case "bookmarks":
                self.server.mark(2)
            case "busy":
                self.server.busy += 1
            case "refresh":
                self.informer.refresh()
            case _ if what in ENDINGS:
                self.server.end(ENDINGS[what])
            case _:
                self.server.write(what)

    def _caught_up(self) -> bool:
        truth = self.server.state
        known = {obj.metadata.name: obj for obj in self.informer.values()}
        alive = {name: obj for name, obj in self.reader.seen.items() if obj is not None}
        return self.informer.synced and known == self.reader.copy == alive == truth

    async def _until(self, done: Callable[[], bool]) -> None:
        for _ in range(400):
            for _ in range(10):
                await asyncio.sleep(0)
            if done():
                return
            if self.clock.sleeping:
                self.clock.advance(10)
        raise AssertionError(f"{self.reader} does not come to {self.server.state}")


@given(steps=st.lists(STEPS, max_size=60), slowness=st.sampled_from((0, 1, 30)))
@example(
    # Pages that expire while they are read, with a deletion in between.
    steps=[*((name, 0) for name in "abcde"), ("refresh", 2), ("forget", 0), ("a", 0), ("a", 0)],
    slowness=1,
)
@example(
    # A place that is known from a bookmark alone.
    steps=[("a", 12), ("bookmarks", 12), ("end", 12), ("b", 12), ("c", 0)],
    slowness=0,
)
@example(
    # Two requests for a list, the second one while the watch is ending.
    steps=[("a", 12), ("refresh", 1), ("refresh", 0), ("b", 12)],
    slowness=0,
)
@settings(max_examples=examples(250))
def test_every_history_ends_in_the_state_of_the_server(steps: list[Step], slowness: int) -> None:
    async def run() -> None:
        await Story(slowness).play(steps)

    asyncio.run(run())


UPDATES = 100_000
FEW = 5


async def test_a_slow_worker_behind_many_updates_costs_little_and_sees_the_last() -> None:
    clock = FakeClock()
    queue: WorkQueue[Key] = WorkQueue(clock)
    informer: Informer[Thing] = Informer(ScriptedTransport(lists=[]), THINGS, clock=clock)
    informer.enqueue(queue.add, own_key)
    names = [f"n-{number}" for number in range(FEW)]
    informer.replace([thing(name, 1) for name in names])
    first = await queue.get()
    before = len(gc.get_objects())
    for version in range(2, UPDATES):
        name = names[version % FEW]
        informer.change(modified(thing(name, version, uid=f"uid-{name}")))
        # Each look sets a time for the next one, a little earlier than the last.
        queue.add_after(Key("default", name), 1000 - version / UPDATES)
    grown = len(gc.get_objects()) - before
    queue.done(first)

    assert grown < 1000
    assert len(queue) == FEW
    assert queue.delayed == FEW
    last = {}
    while len(queue):
        key = await queue.get()
        result = informer.get(key)
        assert result is not None
        last[key.name] = int(result.metadata.resource_version)
        queue.done(key)
    assert sorted(last.values()) == list(range(UPDATES - FEW, UPDATES))


@pytest.mark.parametrize("poison", [("a",), ("a", "b", "c")], ids=str)
async def test_keys_that_fail_indefinitely_do_not_starve_others(poison: tuple[str, ...]) -> None:
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue(clock, backoff=Backoff(base=1.0, cap=64.0, jitter=0.0))
    worked: list[str] = []
    for key in (*poison, "x", "y"):
        queue.add(key)
    for _ in range(100):
        while len(queue):
            key = await queue.get()
            worked.append(key)
            (queue.retry if key in poison else queue.forget)(key)
            queue.done(key)
        clock.advance(1)
        queue.add("x")

    assert worked.count("x") == 100
    # 1, 3, 7, 15, 31 and 63 seconds after the first time.
    assert worked.count("a") <= 8
