"""Kubernetes evicts, too, where only Sully is expected to: who wrote the status of rules."""

from __future__ import annotations

from typing import Any

from controllers.eviction.evicting import RULES, Evicting, condition, now, pause, prepare, rule
from controllers.world import World
from sully.client.events import EVENTS
from sully.client.options import WriteOptions
from sully.client.transport import Key
from sully.domain.capabilities.evictors import OF_KUBERNETES, OF_SULLY, kubernetes_evicts

REPORT = {
    "type": "EvictionInProgress",
    "status": "False",
    "observedGeneration": 1,
    "reason": "NotStarted",
    "message": "",
}


async def kubernetes_reports(world: World) -> None:
    """Write the status of the rule as the eviction controller of Kubernetes does."""
    conditions = [{**REPORT, "lastTransitionTime": now(world)}]
    body = {"metadata": {"name": "r"}, "status": {"conditions": conditions}}
    options = WriteOptions(field_manager=OF_KUBERNETES, force=True)
    await world.admin.apply(RULES, body, options, "status")


async def owners(world: World) -> set[str]:
    """Return who owns fields of the status."""
    stored = await world.admin.get(RULES, Key("", "r"))
    entries = stored["metadata"]["managedFields"]
    return {entry["manager"] for entry in entries if entry.get("subresource") == "status"}


async def evidence(world: World) -> str:
    return kubernetes_evicts((await world.admin.list(RULES)).items)


async def warnings(world: World) -> list[Any]:
    events = (await world.admin.list(EVENTS)).items
    return [event for event in events if event["reason"] == "AnotherEvictor"]


async def test_a_name_of_its_own(world: World) -> None:
    async with world.controlled(Evicting(alone=False).make()):
        await rule(world)
        await world.settle()

        assert await owners(world) == {OF_SULLY}
        assert not await evidence(world)


async def test_what_was_written_before_the_start_is_no_evidence(world: World) -> None:
    await rule(world)
    await kubernetes_reports(world)
    await world.pass_time(60)
    async with world.controlled(Evicting(alone=False).make()):
        await world.settle()

        assert await owners(world) == {OF_SULLY}
        assert (await condition(world))["reason"] == "NotStarted"
        assert not await evidence(world)
        assert not await warnings(world)


async def test_what_is_written_later_is_evidence(world: World) -> None:
    async with world.controlled(Evicting(alone=False).make()):
        await rule(world)
        await world.settle()
        await world.pass_time(60)
        await kubernetes_reports(world)
        await world.settle()

        assert await owners(world) == {OF_KUBERNETES, OF_SULLY}
        assert await evidence(world) == (
            f'it wrote the status of devicetaintrule "r" at {now(world)}'
        )


async def test_a_warning_once_it_is_noticed(world: World) -> None:
    await prepare(world, "default")
    async with world.controlled(Evicting(alone=False).make()):
        await rule(world)
        await world.pass_time(60)
        await kubernetes_reports(world)
        await pause(world, "lunch")
        await world.pass_time(2)

        assert [event["type"] for event in await warnings(world)] == ["Warning"]


async def test_a_server_of_sully_has_no_other(world: World) -> None:
    async with world.controlled(Evicting().make()):
        await rule(world)
        await world.settle()

        assert await owners(world) == {OF_KUBERNETES}
        assert not await evidence(world)
