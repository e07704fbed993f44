"""What is written down about evictions, and what a new process makes of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from controllers.eviction.evicting import (
    DRIVER,
    KEY,
    RECORDS,
    Asked,
    Evicting,
    conditions,
    fate,
    for_seconds,
    holder,
    holders,
    left,
    marked,
    pause,
    prepare,
    publish,
    records,
    rule,
    set_effect,
    status,
)
from controllers.recording_transport import broken
from controllers.world import NAMESPACES, PODS, Obj, World
from sully.client.options import DeleteOptions
from sully.client.transport import Key, UnreachableError
from sully.domain.eviction.status import EVICTED
from sully.machinery.errors import Invalid, Timeout

POD = Key("a", "p")
NOW = DeleteOptions(grace_period_seconds=0)


async def count(world: World) -> str:
    return str((await conditions(world)).get(EVICTED, {}).get("message", ""))


async def test_a_record_reports_which_pod_was_evicted_from_where_and_why(world: World) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u"}
    await prepare(world)
    pod = await holder(world, "p", ownerReferences=[owner | {"controller": True}])
    slice_ = await publish(world, marked(value="hot"))
    made = await rule(world)
    async with world.controlled(Evicting().make()):
        await world.pass_time(2)

    (result,) = await records(world)
    uid = pod["metadata"]["uid"]
    assert result["metadata"]["name"] == uid
    assert result["metadata"]["labels"] == {"sully.dev/rule": "r", "sully.dev/node": "node-1"}
    spec = result["spec"]
    assert spec["pod"] == {
        "namespace": "a",
        "name": "p",
        "uid": uid,
        "node": "node-1",
        "owner": {"kind": "ReplicaSet", "name": "web"},
    }
    assert (spec["claims"], spec["devices"]) == (["p"], [f"{DRIVER}/pool-1/gpu-0"])
    assert spec["causes"] == [
        {
            "kind": "DeviceTaintRule",
            "name": "r",
            "uid": made["metadata"]["uid"],
            "key": KEY,
            "effect": "NoExecute",
            "device": f"{DRIVER}/pool-1/gpu-0",
        },
        {
            "kind": "ResourceSlice",
            "name": "s",
            "uid": slice_["metadata"]["uid"],
            "key": KEY,
            "value": "hot",
            "effect": "NoExecute",
            "device": f"{DRIVER}/pool-1/gpu-0",
        },
    ]
    assert spec["evictedTime"].startswith("2030-01-01T12:00:00")


async def test_the_record_comes_before_the_deletion(world: World) -> None:
    async with Evicting().beside_a_holder(world) as transport:
        await rule(world)
        await world.settle()

    assert [call for call in transport.calls if "rules" not in call] == [
        "get pods",
        "create evictionrecords",
        "patch pods",
        "delete pods",
    ]


async def test_kubernetes_writes_none(world: World) -> None:
    evicting = Evicting(strict=True)
    await prepare(world)
    await holder(world, "p")
    async with world.controlled(evicting.make()):
        await rule(world)
        await world.pass_time(20)

    assert await fate(world, "p") == "evicted"
    assert evicting.calls("evictionrecords") == []


async def test_a_retry_writes_the_record_once(world: World) -> None:
    evicting = Evicting()
    async with evicting.beside_a_holder(world) as transport:
        transport.failures["delete pods"] = broken(3)
        await rule(world)
        await world.pass_time(5, step=0.5)

        assert len(await records(world)) == 1
        assert await count(world) == "1 pod evicted."
    assert evicting.calls("evictionrecords") == ["create"]


async def test_a_record_that_cannot_be_written_now_delays_the_eviction(world: World) -> None:
    async with Evicting().beside_a_holder(world) as transport:
        transport.failures["create evictionrecords"] = broken()
        await rule(world)
        await world.settle()
        assert await fate(world, "p") == "stays"
        await world.pass_time(1)

    assert await fate(world, "p") == "evicted"
    assert len(await records(world)) == 1


async def test_a_record_of_which_nobody_knows_whether_it_is_there_delays_it_too(
    world: World,
) -> None:
    async with Evicting().beside_a_holder(world) as transport:
        transport.refusals["create evictionrecords"] = Timeout("look before you repeat it")
        await rule(world)
        await world.settle()
        assert await fate(world, "p") == "stays"
        del transport.refusals["create evictionrecords"]
        await world.pass_time(1)

    assert await fate(world, "p") == "evicted"
    assert len(await records(world)) == 1


async def test_a_namespace_that_is_deleted_does_not_keep_its_pods(world: World) -> None:
    await prepare(world)
    await holder(world, "p")
    await world.admin.delete(NAMESPACES, Key("", "a"))
    async with world.controlled(Evicting().make()):
        await rule(world)
        await world.pass_time(3)

        assert await fate(world, "p") == "evicted"
        assert await records(world) == []
        assert await count(world) == "1 pod evicted."


async def test_a_record_that_is_refused_does_not_keep_the_pod(world: World) -> None:
    async with Evicting().beside_a_holder(world) as transport:
        transport.refusals["create evictionrecords"] = Invalid("no")
        await rule(world)
        await world.settle()

    assert await fate(world, "p") == "evicted"


async def test_a_pod_that_is_spared_leaves_no_record(world: World) -> None:
    async def weaken() -> None:
        await set_effect(world, "None")
        await world.settle()

    evicting = Evicting()
    await rule(world, "None")
    async with evicting.beside_a_holder(world) as transport:
        transport.before["create evictionrecords"] = weaken
        await set_effect(world, "NoExecute")
        await world.pass_time(10)

        assert await fate(world, "p") == "stays"
        assert await records(world) == []
        assert await count(world) == ""
    assert evicting.calls() == ["get"]


async def test_a_pod_that_another_user_removes_meanwhile_leaves_no_record(world: World) -> None:
    async def remove() -> None:
        await world.admin.delete(PODS, POD, NOW)

    async with Evicting().beside_a_holder(world) as transport:
        transport.before["patch pods"] = remove
        await rule(world)
        await world.pass_time(3)

        assert await records(world) == []
        assert await count(world) == ""


async def test_a_rule_that_is_deleted_after_a_failed_deletion_takes_the_record_back(
    world: World,
) -> None:
    async with Evicting().beside_a_holder(world) as transport:
        # Twice, because the mark that it made on the pod wakes it immediately.
        transport.failures["delete pods"] = broken(2)
        await rule(world)
        await world.settle()
        assert len(await records(world)) == 1
        await set_effect(world, "None")
        await world.pass_time(3)

    assert await fate(world, "p") == "stays"
    assert await records(world) == []


@pytest.mark.parametrize("change", [set_effect, pause], ids=["weakened", "paused"])
async def test_a_record_whose_answer_is_lost_is_taken_back_with_the_rule(
    world: World, change: Callable[[World, str], Awaitable[None]]
) -> None:
    async with Evicting().beside_a_holder(world) as transport:
        transport.losses["create evictionrecords"] = broken()
        await rule(world)
        await world.settle()
        assert len(await records(world)) == 1
        await change(world, "None")
        await world.pass_time(3)

    assert await fate(world, "p") == "stays"
    assert await records(world) == []


async def test_a_deletion_that_arrives_after_the_rule_is_gone_keeps_its_record(
    world: World,
) -> None:
    async def arrive() -> None:
        await world.admin.delete(PODS, POD)

    async with Evicting().beside_a_holder(world) as transport:
        transport.failures["delete pods"] = broken(2)
        await rule(world)
        await world.settle()
        transport.before["get pods"] = arrive
        await set_effect(world, "None")
        await world.pass_time(3)

        assert await fate(world, "p") == "evicted"
        assert len(await records(world)) == 1
        assert await count(world) == "1 pod evicted."


class Deaf(Asked):
    """A transport that does not hear the answer to its first deletion."""

    deaf = True

    async def delete(self, *args: Any, **more: Any) -> None:
        await super().delete(*args, **more)
        if self.deaf:
            self.deaf = False
            raise UnreachableError("the line is dead")


async def test_a_deletion_whose_answer_is_lost_counts_once(world: World) -> None:
    async with Evicting(transport=Deaf(world)).beside_a_holder(world):
        await rule(world)
        await world.pass_time(3)

        assert len(await records(world)) == 1
        assert await count(world) == "1 pod evicted."
        assert (await status(world))[2] == "1 pod evicted since starting the controller."


async def make_record(world: World, pod: Obj, rule_: Obj) -> None:
    """Write the record that a process left behind when it died."""
    metadata, made = pod["metadata"], rule_["metadata"]
    cause = {
        "kind": "DeviceTaintRule",
        "name": made["name"],
        "uid": made["uid"],
        "key": KEY,
        "effect": "NoExecute",
        "device": f"{DRIVER}/pool-1/gpu-0",
    }
    spec = {
        "pod": {"namespace": "a", "name": metadata["name"], "uid": metadata["uid"]},
        "causes": [cause],
        "devices": [cause["device"]],
        "evictedTime": "2030-01-01T11:59:59.000000Z",
    }
    await world.create(RECORDS, "a", metadata["uid"], spec=spec)


ENDS = ["here", "terminating", "gone"]


@pytest.mark.parametrize("end", ENDS)
async def test_a_process_that_died_between_record_and_status(world: World, end: str) -> None:
    await prepare(world)
    pod = await holder(world, "p")
    await make_record(world, pod, await rule(world))
    if end != "here":
        await world.admin.delete(PODS, POD, NOW if end == "gone" else DeleteOptions())
    async with world.controlled(Evicting().make()):
        await world.pass_time(3)

        assert await fate(world, "p") == ("gone" if end == "gone" else "evicted")
        assert await count(world) == "1 pod evicted."
        assert len(await records(world)) == 1


async def test_a_process_that_died_and_a_rule_that_changed_its_mind(world: World) -> None:
    await prepare(world)
    pod = await holder(world, "p")
    await make_record(world, pod, await rule(world, "None"))
    async with world.controlled(Evicting().make()):
        await world.pass_time(3)

        assert await fate(world, "p") == "stays"
        assert await records(world) == []
        assert await count(world) == ""


async def test_a_pod_with_an_old_record_that_is_not_due_is_not_evicted_by_who_deletes_it(
    world: World,
) -> None:
    await prepare(world)
    pod = await holder(world, "p", tolerations=(for_seconds(600),))
    await make_record(world, pod, await rule(world))
    async with world.controlled(Evicting().make()):
        await world.pass_time(3)
        assert await records(world) == []
        await world.admin.delete(PODS, POD, NOW)
        await world.pass_time(3)

        assert await count(world) == ""


@pytest.mark.parametrize("after", [1, 5, 11, 40, 90])
async def test_a_new_process_in_mid_eviction_counts_every_pod_once(
    world: World, after: int
) -> None:
    """The first process is cut off after so many calls, wherever it was."""
    await prepare(world)
    await holders(world, 30)
    first = Evicting(transport=Dying(world, after))
    async with world.controlled(first.make()):
        await world.settle()
        await rule(world)
        await world.settle()
    async with world.controlled(Evicting().make()):
        await world.pass_time(5)

        assert len(await left(world)) == 30
        assert await count(world) == "30 pods evicted."
    assert len(await records(world)) == 30


class Dying(Asked):
    """A transport that ends after so many calls, as that of a process that is killed."""

    def __init__(self, world: World, calls: int) -> None:
        super().__init__(world)
        self._left = calls

    async def _call(self, call: Any) -> Any:
        if self._left <= 0:
            raise UnreachableError("killed")
        self._left -= 1
        return await super()._call(call)
