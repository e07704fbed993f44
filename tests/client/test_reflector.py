"""Reflectors: where a watch resumes, when everything is listed again, and how long to wait."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from client.scripted import (
    THINGS,
    ScriptedTransport,
    Step,
    Thing,
    added,
    bookmark,
    modified,
    page,
    thing,
)
from sully.client.informers.reflector import ObjectSelector, Reflector
from sully.client.transport import UnreachableError, UnreadableError, WatchEvent, WatchStalledError
from sully.machinery.errors import (
    Expired,
    Gone,
    InternalError,
    NotFound,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
)
from sully.runtime.backoff import Backoff
from sully.testing.clock import FakeClock

CALM = Backoff(base=1.0, cap=8.0, jitter=0.0, rng=random.Random(1))


@dataclass
class Seen:
    """Writes down what a reflector passes on."""

    lists: list[list[str]] = field(default_factory=list)
    events: list[str] = field(default_factory=list)

    def replace(self, items: Sequence[Thing]) -> None:
        self.lists.append([obj.metadata.name for obj in items])

    def change(self, event: WatchEvent[Thing]) -> None:
        assert event.object is not None
        self.events.append(f"{event.type} {event.object.metadata.name}")


class RecordingClock(FakeClock):
    """A clock that passes the time whenever a user waits, and records how long that was."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        if seconds > 0:
            self.waits.append(seconds)
            self.advance(seconds)
        await super().sleep(0)


async def follow(server: ScriptedTransport, **more: Any) -> tuple[Seen, list[float]]:
    """Run a reflector through the script; return what it saw and how long it waited each time."""
    clock, seen = RecordingClock(), Seen()
    reflector = Reflector(server, THINGS, seen, clock=clock, backoff=CALM, **more)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(reflector.run())
        await server.quiet.wait()
        task.cancel()
    return seen, clock.waits


@dataclass(frozen=True)
class Case:
    watches: list[list[Any]]
    resumed: list[str]
    """The version that each watch started from."""
    lists: int = 1
    waits: list[float] = field(default_factory=list)


CASES = {
    "a watch that ends is resumed at its last event": Case(
        [[added(thing("b", 7))]], resumed=["5", "7"]
    ),
    "a bookmark moves the place": Case([[bookmark(9)]], resumed=["5", "9"]),
    "a broken connection is resumed": Case(
        [[added(thing("b", 7)), UnreachableError("reset")]], resumed=["5", "7"], waits=[1.0]
    ),
    "an expired version is listed again immediately": Case(
        [[Expired("too old")]], resumed=["5", "5"], lists=2
    ),
    "also after an outage": Case(
        [[UnreachableError("x")], [UnreachableError("x")], [Expired("too old")]],
        resumed=["5"] * 4,
        lists=2,
        waits=[1.0, 2.0],
    ),
    "so is one that is gone": Case([[Gone("gone")]], resumed=["5", "5"], lists=2),
    "expired again and again is listed with pauses": Case(
        [[Expired("too old")]] * 3, resumed=["5"] * 4, lists=4, waits=[2.0, 4.0]
    ),
    "a busy server keeps the place": Case(
        [[ServiceUnavailable("no")], [InternalError("oops")]],
        resumed=["5"] * 3,
        waits=[1.0, 2.0],
    ),
    "a server that reports when is obeyed": Case(
        [[TooManyRequests("later", headers={"Retry-After": "5"})]],
        resumed=["5", "5"],
        waits=[5.0],
    ),
    "also in the details": Case(
        [[TooManyRequests("later", details={"retryAfterSeconds": 3})]],
        resumed=["5", "5"],
        waits=[3.0],
    ),
    "a version the server does not know yet is listed again": Case(
        [[Timeout("Too large resource version")]], resumed=["5", "5"], lists=2, waits=[1.0]
    ),
    "what cannot be read is listed again": Case(
        [[UnreadableError("bad")]], resumed=["5", "5"], lists=2, waits=[1.0]
    ),
    "watches that end immediately do not spin": Case([[], []], resumed=["5"] * 3, waits=[1.0, 2.0]),
    "an event forgives earlier failures": Case(
        [
            [UnreachableError("x")],
            [UnreachableError("x")],
            [modified(thing("a", 6)), UnreachableError("x")],
        ],
        resumed=["5", "5", "5", "6"],
        waits=[1.0, 2.0, 1.0],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_resuming(case: Case) -> None:
    server = ScriptedTransport([page(thing("a", 1), version=5)] * case.lists, case.watches)
    seen, waits = await follow(server)

    assert [options.resource_version for options in server.watched] == case.resumed
    assert len(seen.lists) == case.lists
    assert waits == case.waits
    assert server.closed == len(server.watched)


async def test_list_fails_until_it_works() -> None:
    server = ScriptedTransport(
        [UnreachableError("refused"), NotFound("no such kind"), page(thing("a", 1), version=5)]
    )
    seen, waits = await follow(server)

    assert seen.lists == [["a"]]
    assert waits == [1.0, 2.0]


async def test_waits_are_bounded() -> None:
    server = ScriptedTransport([UnreachableError("x")] * 6 + [page(version=1)])
    _, waits = await follow(server)

    assert waits == [1.0, 2.0, 4.0, 8.0, 8.0, 8.0]


async def test_pages_are_put_together() -> None:
    server = ScriptedTransport(
        [
            page(thing("a", 1), version=5, more="next"),
            page(thing("b", 2), version=5, more="last"),
            page(thing("c", 3), version=5),
        ]
    )
    seen, _ = await follow(server, selector=ObjectSelector(label_selector="x=y"))

    assert seen.lists == [["a", "b", "c"]]
    assert [options.continue_token for options in server.listed] == ["", "next", "last"]
    assert {options.limit for options in server.listed} == {500}
    assert {options.label_selector for options in server.listed} == {"x=y"}
    assert {options.label_selector for options in server.watched} == {"x=y"}


async def test_pages_that_expire_are_asked_for_immediately() -> None:
    server = ScriptedTransport(
        [
            page(thing("a", 1), version=5, more="next"),
            Expired("the continue token is too old"),
            page(thing("a", 1), thing("b", 2), version=9),
        ]
    )
    seen, waits = await follow(server)

    assert seen.lists == [["a", "b"]]
    assert [(options.limit, options.continue_token) for options in server.listed] == [
        (500, ""),
        (500, "next"),
        (0, ""),
    ]
    assert waits == []


async def test_watches_end_at_different_times() -> None:
    server = ScriptedTransport([page(version=5)], [[bookmark(v)] for v in range(6, 12)])
    await follow(server)

    asked = [options.timeout_seconds for options in server.watched]
    assert all(seconds is not None and 300 <= seconds <= 600 for seconds in asked)
    assert len(set(asked)) > 1


async def test_problem_is_shown_until_it_is_over() -> None:
    clock, refused = FakeClock(), UnreachableError("refused")
    server = ScriptedTransport([refused, page(version=5)])
    reflector = Reflector(server, THINGS, Seen(), clock=clock, backoff=CALM)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(reflector.run())
        await clock.sleepers()
        assert reflector.freshness.problem is refused
        clock.advance(1)
        await server.quiet.wait()
        assert reflector.freshness.problem is None
        task.cancel()


async def test_what_is_to_be_confirmed_is_listed_immediately() -> None:
    clock, seen = FakeClock(), Seen()
    server = ScriptedTransport([page(thing("a", 1), version=5), page(thing("b", 2), version=9)])
    reflector = Reflector(server, THINGS, seen, clock=clock, backoff=CALM)
    confirmed = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(reflector.run())
        await server.quiet.wait()
        clock.advance(100)
        assert not reflector.freshness.is_fresh(90)
        reflector.freshness.on_confirmed(confirmed.set)
        reflector.refresh()
        reflector.refresh()
        await confirmed.wait()
        assert reflector.freshness.is_fresh(0)
        task.cancel()

    assert seen.lists == [["a"], ["b"]]
    assert clock.sleeping == 0


async def test_who_waits_after_a_failure_is_not_hurried() -> None:
    clock, seen = FakeClock(), Seen()
    server = ScriptedTransport(
        [page(thing("a", 1), version=5), UnreachableError("x"), page(thing("b", 2), version=9)],
        [[UnreachableError("x")]],
    )
    reflector = Reflector(server, THINGS, seen, clock=clock, backoff=CALM)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(reflector.run())
        for pause in (1.0, 2.0):
            await clock.sleepers()
            listed = len(server.listed)
            for _ in range(100):
                reflector.refresh()
                await asyncio.sleep(0)
            assert len(server.listed) == listed
            clock.advance(pause)
            await asyncio.sleep(0)
        await server.quiet.wait()
        task.cancel()

    # The place was known, but a user wanted to be sure.
    assert seen.lists == [["a"], ["b"]]


async def test_a_lease_that_is_not_renewed_is_no_failure_if_the_server_then_answers() -> None:
    watches: list[list[Step]] = [
        [WatchStalledError("hush"), bookmark(6)],
        [WatchStalledError("hush")],
    ]
    server = ScriptedTransport([page(version=5)], watches)
    seen, waits = await follow(server)

    # The second came immediately: that is not a stall.
    assert waits == [1.0, 2.0]
    assert len(seen.lists) == 1


async def test_bugs_are_not_retried() -> None:
    class Broken(Seen):
        def change(self, event: WatchEvent[Thing]) -> None:
            raise KeyError("bug")

    server = ScriptedTransport([page(version=5)], [[added(thing("a", 6))]])
    with pytest.raises(KeyError):
        await Reflector(server, THINGS, Broken(), clock=FakeClock()).run()
