"""Writes that fail, answers that get lost, others that are faster."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.recording_transport import broken
from controllers.scheduling.placing import (
    CLAIMS,
    REFUSED,
    Scheduling,
    claim,
    event_messages,
    held,
    pod,
    prepare,
    reserved,
    wanting,
    where,
)
from controllers.world import PODS, World
from sully.client.options import DeleteOptions
from sully.client.transport import Key

NOW = DeleteOptions(grace_period_seconds=0)
STEPS = ("update resourceclaims", "update resourceclaims/status", "create pods/binding")


@pytest.mark.parametrize("step", STEPS)
async def test_a_write_that_fails_is_tried_again(world: World, step: str) -> None:
    await prepare(world)
    async with Scheduling().running(world) as transport:
        transport.failures[step] = broken(2)
        await wanting(world, "p")
        await world.pass_time(10, step=1)

    assert await where(world, "p") == "node-1"
    assert (await held(world, "p"), await reserved(world, "p")) == (["node-1/gpu-0"], ["p"])
    assert not transport.failures[step]


@pytest.mark.parametrize("step", STEPS)
async def test_an_answer_that_gets_lost(world: World, step: str) -> None:
    await prepare(world)
    async with Scheduling().running(world) as transport:
        transport.losses[step] = broken()
        await wanting(world, "p")
        await world.pass_time(10, step=1)

    assert await where(world, "p") == "node-1"
    assert (await held(world, "p"), await reserved(world, "p")) == (["node-1/gpu-0"], ["p"])
    assert await event_messages(world, "FailedScheduling") == []


@pytest.mark.parametrize("step", STEPS[:2])
async def test_a_claim_that_a_user_labels_meanwhile(world: World, step: str) -> None:
    await prepare(world)

    async def label() -> None:
        patch = {"metadata": {"labels": {"some": "label"}}}
        await world.admin.patch(CLAIMS, Key("a", "p"), patch)

    async with Scheduling().running(world) as transport:
        transport.before[step] = label
        await wanting(world, "p")
        await world.settle()

    assert await where(world, "p") == "node-1"
    assert "get resourceclaims" in transport.calls


async def test_a_claim_that_is_deleted_meanwhile(world: World) -> None:
    await prepare(world)

    async def delete() -> None:
        await world.admin.delete(CLAIMS, Key("a", "p"))

    async with Scheduling().running(world) as transport:
        transport.before[STEPS[0]] = delete
        await wanting(world, "p")
        await world.settle()
        reported = await where(world, "p")
        await wanting(world, "q")
        await world.pass_time(5, step=1)
        await claim(world, "p")
        await world.settle()

    assert "got deleted in the meantime" in reported
    assert await where(world, "q") == "node-1", "the device is free again"
    assert await where(world, "p") == REFUSED


async def test_a_claim_that_a_user_allocates_meanwhile(world: World) -> None:
    await prepare(world, devices=2)
    result = {"request": "r", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-1"}
    patch: dict[str, Any] = {"status": {"allocation": {"devices": {"results": [result]}}}}

    async def allocate() -> None:
        await world.admin.patch(CLAIMS, Key("a", "p"), patch, subresource="status")

    async with Scheduling().running(world) as transport:
        transport.before[STEPS[1]] = allocate
        await wanting(world, "p")
        await world.pass_time(5, step=1)
        await wanting(world, "q")
        await world.settle()

    assert (await held(world, "p"), await held(world, "q")) == (["node-1/gpu-1"], ["node-1/gpu-0"])
    assert [await where(world, letter) for letter in "pq"] == ["node-1", "node-1"]


async def test_a_pod_that_is_deleted_before_it_is_bound(world: World) -> None:
    await prepare(world)

    async def delete() -> None:
        await world.admin.delete(PODS, Key("a", "p"), NOW)

    async with Scheduling().running(world) as transport:
        transport.before[STEPS[2]] = delete
        await wanting(world, "p")
        await world.pass_time(5, step=1)
        calls = list(transport.calls)
        await world.pass_time(600, step=60)

    assert await reserved(world, "p") == ["p"], "the claim controller takes it from there"
    assert transport.calls == calls


async def test_a_pod_that_took_the_name_of_another(world: World) -> None:
    await prepare(world, devices=0)

    async def replace() -> None:
        await world.admin.delete(PODS, Key("a", "p"), NOW)
        await pod(world, "p", cpu="1")

    async with Scheduling().running(world) as transport:
        transport.before[STEPS[2]] = replace
        await pod(world, "p", cpu="8")
        await world.pass_time(5, step=1)
        await pod(world, "q", cpu="7")
        await world.settle()

    assert [await where(world, letter) for letter in "pq"] == ["node-1", "node-1"]
    assert transport.calls.count(STEPS[2]) == 3


async def test_a_stop_in_the_middle(world: World) -> None:
    """What was written before is found and completed by the next one."""
    await prepare(world, devices=2)
    async with Scheduling().running(world) as transport:
        transport.failures[STEPS[2]] = broken(100)
        await wanting(world, "p")
        await world.settle()
    async with Scheduling().running(world):
        await wanting(world, "q")
        await world.settle()

    assert (await held(world, "p"), await held(world, "q")) == (["node-1/gpu-0"], ["node-1/gpu-1"])
    assert [await where(world, letter) for letter in "pq"] == ["node-1", "node-1"]
