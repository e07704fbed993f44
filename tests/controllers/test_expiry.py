"""Rules and patches that end by themselves."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from controllers.world import Make, Obj, World
from embedded import embedded
from sully.api.resource.annotations import EXPIRES_AT
from sully.client.direct import DirectTransport
from sully.client.events import EVENTS
from sully.client.transport import Key, Kind
from sully.controllers.expiry import NAME, ExpiryController
from sully.controllers.framework.controller import Controller
from sully.controllers.framework.manager import Manager
from sully.machinery.formats.timestamps import format_time
from sully.machinery.gates import Gates
from sully.server.inprocess import InProcess
from sully.server.requests import User
from sully.views import kinds

TAINT = {"key": "example.com/hot", "effect": "NoSchedule"}
SPECS: dict[str, tuple[Kind[Any], Obj]] = {
    "rule": (kinds.RULES, {"deviceSelector": {}, "taint": TAINT}),
    "patch": (kinds.PATCHES, {"devices": {"taints": [TAINT]}}),
}


class Ending:
    """One kind of object that ends."""

    def __init__(self, world: World, kind: Kind[Any], spec: Obj) -> None:
        self.world = world
        self.kind: Kind[Obj] = kind.read_as(dict)
        self.typed = kind
        self.spec = spec

    def make(self) -> Make:
        def made(world: World, manager: Manager) -> Controller:
            env = manager.env(world.transport(NAME), NAME)
            return ExpiryController(manager.informer(self.typed), env=env)

        return made

    async def create(self, seconds: float | None = None, **metadata: Any) -> None:
        annotations = {} if seconds is None else {EXPIRES_AT: self.text(seconds)}
        body = {"metadata": {"name": "x", "annotations": annotations, **metadata}}
        await self.world.admin.create(self.kind, body | {"spec": self.spec})

    def text(self, seconds: float) -> str:
        return format_time(self.world.clock.now() + timedelta(seconds=seconds))

    async def move(self, seconds: float | None) -> None:
        text = None if seconds is None else self.text(seconds)
        body = {"metadata": {"annotations": {EXPIRES_AT: text}}}
        await self.world.admin.patch(self.kind, Key("", "x"), body)

    async def there_after(self, seconds: float) -> bool:
        await self.world.settle()
        self.world.clock.advance(seconds)
        await self.world.settle()
        return bool(await self.world.names(self.kind))


@pytest.fixture(params=SPECS.values(), ids=list(SPECS))
def ending(world: World, request: pytest.FixtureRequest) -> Ending:
    return Ending(world, *request.param)


async def test_ends_exactly_at_its_time_and_reports_it(world: World, ending: Ending) -> None:
    await world.namespace("default")
    when = ending.text(3600)
    await ending.create(3600)

    async with world.controlled(ending.make()):
        assert await ending.there_after(3599)
        assert not await ending.there_after(1)
        (event,) = (await world.admin.list(EVENTS)).items

    assert (event["type"], event["reason"]) == ("Normal", "Expired")
    assert event["message"] == f"Deleted because it expired at {when}"
    assert event["involvedObject"]["kind"] == ending.kind.kind


async def test_without_a_time_it_stays(world: World, ending: Ending) -> None:
    await ending.create()

    async with world.controlled(ending.make()) as manager:
        assert await ending.there_after(10**6)
        assert manager.delayed == 0


async def test_a_time_that_passed_while_nobody_looked_ends_it_immediately(
    world: World, ending: Ending
) -> None:
    await ending.create(60)
    world.clock.advance(61)

    async with world.controlled(ending.make()):
        assert not await ending.there_after(0)


MOVES: dict[str, tuple[float | None, list[tuple[float, bool]]]] = {
    "later": (600, [(60, True), (539, True), (1, False)]),
    "sooner": (10, [(9, True), (1, False)]),
    "into the past": (-1, [(0, False)]),
    "away": (None, [(10**6, True)]),
}


@pytest.mark.parametrize(("to", "want"), MOVES.values(), ids=MOVES.keys())
async def test_a_time_can_be_moved(
    world: World, ending: Ending, to: float | None, want: list[tuple[float, bool]]
) -> None:
    await ending.create(60)
    async with world.controlled(ending.make()):
        await world.settle()

        await ending.move(to)

        assert [(after, await ending.there_after(after)) for after, _ in want] == want


async def test_a_text_that_is_no_time_ends_nothing(world: World, ending: Ending) -> None:
    # Such a text gets in while the gate is off.
    unguarded = Gates({"SullyEvictionGuards": False})
    api = embedded(world.store, world.clock, gates=unguarded)
    body = {"metadata": {"name": "x", "annotations": {EXPIRES_AT: "soon"}}, "spec": ending.spec}
    admin = User("admin", ("system:masters",))
    await DirectTransport(InProcess(api, admin)).create(ending.kind, body)

    async with world.controlled(ending.make()):
        assert await ending.there_after(10**6)


async def test_what_was_replaced_in_the_last_moment_stays(world: World, ending: Ending) -> None:
    await ending.create(60)
    async with world.controlled(ending.make()):
        await world.settle()
        await world.admin.delete(ending.kind, Key("", "x"))
        await ending.create(3600)

        assert await ending.there_after(60)
