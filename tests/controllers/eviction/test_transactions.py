"""Evictions in one transaction, where the server is in this process."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import pytest

from controllers.eviction.evicting import (
    Evicting,
    event_messages,
    fate,
    holder,
    holders,
    left,
    marked,
    prepare,
    publish,
    records,
    rule,
    status,
)
from controllers.recording_transport import broken
from controllers.world import NAMESPACES, PODS, World
from sully.client.options import DeleteOptions, WatchOptions
from sully.client.transport import Key, UnreachableError
from sully.machinery.errors import Timeout

POD = Key("a", "p")
SEPARATE = ["get", "patch", "delete"]


async def test_a_pod_is_recorded_marked_and_deleted_at_one_revision(world: World) -> None:
    evicting = Evicting(transactions=True)
    async with evicting.beside_a_holder(world) as transport:
        before = await world.admin.get(PODS, POD)
        await publish(world, marked())
        await world.pass_time(1)

    pod, (record,) = await world.admin.get(PODS, POD), await records(world)
    assert transport.calls == ["commit pods"]
    assert pod["metadata"]["deletionTimestamp"]
    assert [condition["reason"] for condition in pod["status"]["conditions"]] == [
        "DeletionByDeviceTaintManager"
    ]
    versions = {item["metadata"]["resourceVersion"] for item in (pod, record)}
    assert len(versions) == 1
    assert await event_messages(world) == ["p: Marking for deletion"]
    options = WatchOptions(resource_version=before["metadata"]["resourceVersion"])
    async with aclosing(world.admin.watch(PODS, "a", options)) as events:
        assert (await anext(events)).object == pod


async def test_rules_report_before(world: World) -> None:
    evicting = Evicting(transactions=True)
    async with evicting.beside_a_holder(world):
        await rule(world)
        await world.pass_time(2)

    assert evicting.calls("devicetaintrules")[0] == "apply"
    assert evicting.transport is not None
    calls = evicting.transport.calls
    assert calls.index("apply devicetaintrules") < calls.index("commit pods")
    assert (await status(world))[2] == "1 pod evicted since starting the controller."


async def test_many_pods(world: World) -> None:
    evicting = Evicting(transactions=True)
    await prepare(world)
    await publish(world, devices=8)
    await holders(world, 8)
    async with world.controlled(evicting.make()):
        await rule(world)
        await world.pass_time(2)

    assert len(await left(world)) == len(await records(world)) == 8
    assert evicting.calls() == ["commit"] * 8


async def test_a_pod_that_changed_a_moment_ago_is_read(world: World) -> None:
    evicting = Evicting(transactions=True)
    async with evicting.beside_a_holder(world) as transport:

        async def change() -> Any:
            return await world.admin.patch(PODS, POD, {"metadata": {"labels": {"l": "1"}}})

        transport.before["commit pods"] = change
        await publish(world, marked())
        await world.pass_time(1)

    assert evicting.calls() == ["commit", *SEPARATE]
    assert (await fate(world, "p"), len(await records(world))) == ("evicted", 1)


async def test_a_pod_that_a_user_deletes_meanwhile_is_not_recorded(world: World) -> None:
    evicting = Evicting(transactions=True)
    async with evicting.beside_a_holder(world) as transport:

        async def delete() -> Any:
            return await world.admin.delete(PODS, POD, DeleteOptions(grace_period_seconds=0))

        transport.before["commit pods"] = delete
        await publish(world, marked())
        await world.pass_time(1)

    assert (await fate(world, "p"), await records(world)) == ("gone", [])
    assert evicting.metric("pod_deletions_total") == 0


async def test_a_namespace_that_takes_no_records(world: World) -> None:
    evicting = Evicting(transactions=True)
    async with evicting.beside_a_holder(world):
        await world.admin.delete(NAMESPACES, Key("", "a"))
        await publish(world, marked())
        await world.pass_time(1)

    assert evicting.calls() == ["commit", *SEPARATE]
    assert (await fate(world, "p"), await records(world)) == ("evicted", [])


@pytest.mark.parametrize("error", [broken(), [Timeout("?")], [UnreachableError("away")]])
async def test_a_transaction_that_fails_is_tried_again(
    world: World, error: list[Exception]
) -> None:
    evicting = Evicting(transactions=True)
    async with evicting.beside_a_holder(world) as transport:
        transport.failures["commit pods"] = error
        await publish(world, marked())
        await world.pass_time(30)

    assert evicting.calls() == ["commit", "commit"]
    assert (await fate(world, "p"), len(await records(world))) == ("evicted", 1)
    assert evicting.metric("pod_deletions_total") == 1


async def test_a_lost_answer_is_counted_once(world: World) -> None:
    evicting = Evicting(transactions=True)
    async with evicting.beside_a_holder(world) as transport:
        transport.losses["commit pods"] = [Timeout("?")]
        await publish(world, marked())
        await world.pass_time(30)

    assert (await fate(world, "p"), len(await records(world))) == ("evicted", 1)
    assert evicting.metric("pod_deletions_total") == 1


async def test_kubernetes_has_separate_writes(world: World) -> None:
    evicting = Evicting(transactions=True, strict=True)
    await prepare(world)
    await holder(world, "p")
    async with world.controlled(evicting.make()):
        await publish(world, marked())
        await world.pass_time(1)

    assert evicting.calls() == SEPARATE
