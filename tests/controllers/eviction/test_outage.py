"""Caches that are behind: no pod is evicted because of what the server may have changed since."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from controllers.broken_transport import BreakableTransport
from controllers.eviction.evicting import (
    RECORDS,
    Asked,
    Evicting,
    fate,
    for_seconds,
    holder,
    prepare,
    publish,
    rule,
    unrule,
)
from controllers.world import CALM, World, running
from sully.controllers.framework.manager import Manager

BOUND = 90.0


@asynccontextmanager
async def evicting(world: World, made: Evicting) -> AsyncIterator[BreakableTransport]:
    """Run the controller with caches that a test can leave behind."""
    line = BreakableTransport(world)
    manager = Manager(line, clock=world.clock)
    manager.add(made.make()(world, manager), backoff=CALM)
    async with running(manager):
        await world.settle()
        yield line


@dataclass(frozen=True)
class Case:
    how: str
    """What happens to the line: cut, hush or nothing."""
    deleted: bool
    """Whether the rule is deleted meanwhile."""
    tolerated: int
    """When the pod is due."""
    want: str
    """What became of the pod while the line was not mended."""
    after: str
    """And afterwards."""
    strict: bool = False


CASES = {
    "an outage, and the rule goes": Case("cut", True, 20, "stays", "stays"),
    "an outage, and nothing else": Case("cut", False, 20, "stays", "evicted"),
    "a dead line past the bound": Case("hush", True, 100, "stays", "stays"),
    "a dead line past the bound, and the rule stays": Case(
        "hush", False, 100, "evicted", "evicted"
    ),
    "a dead line within the bound": Case("hush", True, 60, "evicted", "evicted"),
    "no events because nothing happens": Case("", False, 1000, "evicted", "evicted"),
    "Kubernetes does not ask": Case("cut", True, 20, "evicted", "evicted", strict=True),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_what_is_not_confirmed_evicts_nobody(world: World, case: Case) -> None:
    made = Evicting(strict=case.strict)
    await prepare(world)
    await publish(world)
    await holder(world, "p", tolerations=(for_seconds(case.tolerated),))
    async with evicting(world, made) as line:
        await rule(world)
        await world.settle()
        if case.how:
            getattr(line, case.how)()
        if case.deleted:
            await unrule(world)
        await world.pass_time(case.tolerated + 1)
        during = await fate(world, "p")
        line.mend()
        await world.pass_time(70)

        assert (during, await fate(world, "p")) == (case.want, case.after)


async def test_a_mark_that_took_long_does_not_delete_on_what_was_true_before(world: World) -> None:
    transport = Asked(world)
    made = Evicting(transport=transport)
    await prepare(world)
    await publish(world)
    await holder(world, "p", tolerations=(for_seconds(20),))
    async with evicting(world, made) as line:
        await rule(world)
        await world.settle()

        async def hang() -> None:
            line.cut()
            await unrule(world)
            await world.settle()
            line.mend()

        transport.before["patch pods"] = hang
        await world.pass_time(100)

        assert made.calls("pods") == ["get", "patch"]
        assert await fate(world, "p") == "stays"
        assert (await world.admin.list(RECORDS)).items == []
