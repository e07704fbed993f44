"""Claims that are allocated for nobody, on devices from which pods are evicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from controllers.eviction.evicting import (
    CLAIMS,
    Evicting,
    allocate,
    claim,
    event_messages,
    for_seconds,
    holder,
    marked,
    pause,
    prepare,
    publish,
    rule,
)
from controllers.scheduling import placing
from controllers.world import Obj, World, orders, play
from sully.client.transport import Key


async def is_allocated(world: World, name: str = "c") -> bool:
    stored = await world.admin.get(CLAIMS, Key("a", name))
    return "allocation" in (stored.get("status") or {})


async def unused(world: World, *tolerations: Obj) -> None:
    await claim(world, "c")
    await allocate(world, "c", pods=(), tolerations=tolerations)


@dataclass(frozen=True)
class Case:
    effect: str = "NoExecute"
    tolerations: tuple[Obj, ...] = ()
    after: int = 0
    paused: str = ""
    reference: bool = False
    want: bool = False
    """Whether the claim stays allocated."""


CASES = {
    "a rule evicts": Case(),
    "a rule only prevents scheduling": Case(effect="NoSchedule", want=True),
    "the claim tolerates the rule": Case(tolerations=(for_seconds(),), want=True),
    "the toleration has not expired": Case(tolerations=(for_seconds(60),), after=59, want=True),
    "the toleration has expired": Case(tolerations=(for_seconds(60),), after=60),
    "the rule is paused": Case(paused="later", want=True),
    "as in Kubernetes": Case(reference=True, want=True),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_an_unused_claim_is_deallocated(world: World, case: Case) -> None:
    await prepare(world)
    await unused(world, *case.tolerations)

    async with world.controlled(Evicting(strict=case.reference).make()):
        await rule(world, case.effect, paused=case.paused)
        await world.settle()
        world.clock.advance(case.after)
        await world.settle()

        assert await is_allocated(world) is case.want


async def test_a_claim_in_use_is_not_deallocated(world: World) -> None:
    await prepare(world)
    await holder(world, "p")

    async with world.controlled(Evicting().make()):
        await rule(world)
        await world.settle()

        assert await is_allocated(world, "p")


async def test_an_event_names_the_device_and_the_taint(world: World) -> None:
    await prepare(world)
    await unused(world)

    async with world.controlled(Evicting().make()):
        await rule(world)
        await world.settle()

    assert await event_messages(world) == [
        "c: Deallocated: device gpu.example.com/pool-1/gpu-0 has taint example.com/broken:NoExecute"
    ]


async def make_claim(world: World) -> None:
    await unused(world)


async def make_rule(world: World) -> None:
    await rule(world, paused="later")


async def resume(world: World) -> None:
    await pause(world, None)


@pytest.mark.parametrize("start", range(3))
@pytest.mark.parametrize("steps", orders(make_claim, make_rule))
async def test_in_every_order(world: World, steps: tuple[Any, ...], start: int) -> None:
    await prepare(world)

    await play(world, (*steps, resume), Evicting().make(), start=start, pauses=True)

    assert not await is_allocated(world)


async def test_a_taint_of_the_driver_counts_as_well(world: World) -> None:
    await prepare(world)
    await unused(world)

    async with world.controlled(Evicting().make()):
        await publish(world, marked())
        await world.settle()

        assert not await is_allocated(world)


async def test_its_next_pod_runs_elsewhere(world: World) -> None:
    scheduling = placing.Scheduling()
    await placing.prepare(world, "node-1", "node-2")
    await placing.claim(world, "c")
    await allocate(world, "c", pods=(), pool="node-1")
    await rule(world, pool="node-1")
    await placing.pod(world, "p", "c")

    async with scheduling.running(world), world.controlled(Evicting().make()):
        await world.pass_time(20)

        assert await placing.where(world, "p") == "node-2"
