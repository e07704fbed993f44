"""Conditions of ours on rules: beside what Kubernetes reports, never in its text."""

from __future__ import annotations

import pytest

from controllers.eviction.evicting import (
    DRIVER,
    RECORDS,
    RULES,
    Evicting,
    conditions,
    for_seconds,
    holder,
    holders,
    now,
    pause,
    prepare,
    publish,
    records,
    rule,
    set_effect,
    status,
    taint_record,
)
from controllers.world import PODS, Obj, World
from sully.client.options import DeleteOptions
from sully.client.transport import Key
from sully.domain.eviction.status import EVICTED, EVICTION_IN_PROGRESS, OURS, PAUSED, PREVIEW

NOW = DeleteOptions(grace_period_seconds=0)


async def preview(world: World) -> str:
    return str((await conditions(world))[PREVIEW]["message"])


async def test_a_preview_follows_the_world(world: World) -> None:
    await prepare(world, "a", "b")
    await publish(world, devices=3)
    async with world.controlled(Evicting().make()):
        await rule(world, "None")
        await world.settle()
        assert await preview(world) == (
            "0 pods would be evicted. 3 devices published, 0 allocated."
        )
        assert (await conditions(world))[PREVIEW]["status"] == "False"
        await holder(world, "p")
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u"}
        owners = [owner | {"controller": True}]
        tolerations = (for_seconds(60),)
        await holder(
            world, "q", "gpu-1", namespace="b", tolerations=tolerations, ownerReferences=owners
        )
        await world.pass_time(2)
        assert await preview(world) == (
            "2 pods would be evicted: 1 immediately, 1 after 60s. 3 devices published, 2 allocated."
            " By namespace: a 1, b 1. By owner: a/Pod/p 1, b/ReplicaSet/web 1."
        )
        assert (await conditions(world))[PREVIEW]["status"] == "True"
        await world.admin.delete(PODS, Key("a", "p"), NOW)
        await world.pass_time(2)

        assert (await preview(world)).startswith(
            "1 pod would be evicted: 0 immediately, 1 after 60s."
        )


async def test_a_preview_leaves_the_text_of_kubernetes_alone(world: World) -> None:
    await prepare(world)
    async with world.controlled(Evicting().make()):
        await rule(world, "None")
        await world.settle()
        before = (await conditions(world))[EVICTION_IN_PROGRESS]
        await holder(world, "p")
        await world.pass_time(5)

        after = await conditions(world)
        assert after[PREVIEW]["lastTransitionTime"] > before["lastTransitionTime"]
        assert after[EVICTION_IN_PROGRESS] == before


async def test_a_preview_is_removed_when_the_rule_acts_and_comes_back(world: World) -> None:
    await prepare(world)
    await holder(world, "p", tolerations=(for_seconds(600),))
    async with world.controlled(Evicting().make()):
        await rule(world, "None")
        await world.pass_time(2)
        assert PREVIEW in await conditions(world)
        await set_effect(world, "NoExecute")
        await world.pass_time(2)
        assert PREVIEW not in await conditions(world)
        await set_effect(world, "None")
        await world.pass_time(2)

        assert (await preview(world)).startswith(
            "1 pod would be evicted: 0 immediately, 1 after 600s."
        )


async def test_previews_are_written_at_most_once_a_second(world: World) -> None:
    evicting = Evicting()
    await prepare(world)
    async with world.controlled(evicting.make()):
        await rule(world, "None")
        await world.settle()
        for index in range(20):
            await holder(world, f"p-{index}", f"gpu-{index}")
            await world.pass_time(0.25)

        assert len(evicting.calls("devicetaintrules")) <= 6
        await world.pass_time(2)
        assert (await preview(world)).startswith("20 pods would be evicted: 20 immediately.")


async def test_finished_pods_and_pods_that_go_are_in_no_preview(world: World) -> None:
    await prepare(world)
    await holders(world, 3)
    await world.admin.delete(PODS, Key("a", "p-0"))
    done = {"status": {"phase": "Succeeded"}}
    await world.admin.patch(PODS, Key("a", "p-1"), done, subresource="status")
    async with world.controlled(Evicting().make()):
        await rule(world, "None")
        await world.settle()

        assert (await preview(world)).startswith("1 pod would be evicted: 1 immediately.")


async def test_the_count_lasts_while_the_other_restarts(world: World) -> None:
    await prepare(world)
    await holders(world, 3)
    async with world.controlled(Evicting().make()):
        await rule(world)
        await world.pass_time(3)
        assert (await conditions(world))[EVICTED]["message"] == "3 pods evicted."
    await holder(world, "late", "gpu-9")
    async with world.controlled(Evicting().make()):
        await world.pass_time(3)

        reported = (await conditions(world))[EVICTED]
        assert (reported["status"], reported["reason"]) == ("True", "PodsEvicted")
        assert reported["message"] == "4 pods evicted."
        assert (await status(world))[2] == "1 pod evicted since starting the controller."


async def test_without_records_of_evictions_the_taint_record_has_the_count(world: World) -> None:
    await prepare(world)
    await holders(world, 3)
    async with world.controlled(Evicting().make()):
        made = await rule(world)
        await world.pass_time(3)
    for record in await records(world):
        await world.admin.delete(RECORDS, Key("a", record["metadata"]["name"]))
    await taint_record(world, made, evicted=3)
    async with world.controlled(Evicting().make()):
        await holder(world, "late", "gpu-9")
        await world.pass_time(3)

        assert (await conditions(world))[EVICTED]["message"] == "4 pods evicted."


async def test_what_a_condition_reports_is_never_counted(world: World) -> None:
    await prepare(world)
    await rule(world)
    result = await world.admin.get(RULES, Key("", "r"))
    reported = {
        "type": EVICTED,
        "status": "True",
        "reason": "PodsEvicted",
        "message": "7 pods evicted.",
        "lastTransitionTime": now(world),
    }
    result["status"] = {"conditions": [reported]}
    await world.admin.update(RULES, result, "status")
    async with world.controlled(Evicting().make()):
        await holder(world, "p")
        await world.pass_time(3)

        assert (await conditions(world))[EVICTED]["message"] == "1 pod evicted."


@pytest.mark.parametrize("number", [7, 8])
async def test_where_others_have_all_conditions_only_progress_is_reported(
    world: World, number: int
) -> None:
    await prepare(world)
    await holder(world, "p")
    await rule(world, paused="true")
    foreign = [
        {
            "type": f"example.com/C{index}",
            "status": "True",
            "reason": "X",
            "message": "",
            "lastTransitionTime": now(world),
        }
        for index in range(number)
    ]
    result = await world.admin.get(RULES, Key("", "r"))
    result["status"] = {"conditions": foreign}
    await world.admin.update(RULES, result, "status")
    async with world.controlled(Evicting().make()):
        await world.pass_time(3)

        there = await conditions(world)
        assert len(there) == 8
        assert "example.com/C6" in there
        assert there[EVICTION_IN_PROGRESS]["reason"] == "PodsPendingEviction"
        assert not there.keys() & set(OURS)


async def test_what_did_not_change_keeps_its_time(world: World) -> None:
    await prepare(world)
    await holder(world, "p", tolerations=(for_seconds(600),))
    async with world.controlled(Evicting().make()):
        await rule(world)
        await world.pass_time(30)
        before = (await conditions(world))[EVICTION_IN_PROGRESS]
        await pause(world, "true")
        await world.pass_time(30)

        there = await conditions(world)
        assert there[PAUSED]["lastTransitionTime"] > before["lastTransitionTime"]
        assert there[EVICTION_IN_PROGRESS] == before


async def test_kubernetes_has_none_of_them(world: World) -> None:
    await prepare(world)
    await holders(world, 2)
    async with world.controlled(Evicting().make()):
        await rule(world, paused="true")
        await rule(world, "None", "quiet")
        await world.pass_time(3)
        assert len(await conditions(world)) == 2
        assert len(await conditions(world, "quiet")) == 2
    async with world.controlled(Evicting(strict=True).make()):
        await world.pass_time(30)

        assert list(await conditions(world)) == [EVICTION_IN_PROGRESS]
        assert list(await conditions(world, "quiet")) == [EVICTION_IN_PROGRESS]


SELECTORS = {
    "a driver": ({"driver": DRIVER}, 3),
    "one device": ({"device": "gpu-1"}, 1),
    "another driver": ({"driver": "other.example.com"}, 0),
}


@pytest.mark.parametrize(("selector", "want"), SELECTORS.values(), ids=SELECTORS.keys())
async def test_a_preview_is_of_what_the_rule_selects(
    world: World, selector: Obj, want: int
) -> None:
    await prepare(world)
    await holders(world, 3)
    async with world.controlled(Evicting().make()):
        await rule(world, "None", **selector)
        await world.settle()

        assert int((await preview(world)).split()[0]) == want
