"""Which pods are evicted, when, and what is done to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from controllers.eviction.evicting import (
    CLAIMS,
    KEY,
    NAME,
    PATCHES,
    RULES,
    SLICES,
    Evicting,
    allocate,
    bound_pod,
    claim,
    event_messages,
    fate,
    for_seconds,
    holder,
    marked,
    prepare,
    publish,
    retaint,
    rule,
    status,
    unrule,
)
from controllers.world import PODS, Obj, World, orders, play
from manifests import claim_spec
from sully.client.events import EVENTS
from sully.client.options import DeleteOptions
from sully.client.transport import Key
from sully.controllers.framework.controller import Controller, Result
from sully.controllers.framework.manager import Manager
from sully.views.devices.changes import Features

POD = Key("a", "p")
NOW = DeleteOptions(grace_period_seconds=0)


async def test_a_pod_on_a_tainted_device_is_reported_marked_and_deleted(world: World) -> None:
    evicting = Evicting()
    await prepare(world)
    pod = await holder(world, "p")
    async with world.controlled(evicting.make()):
        await world.settle()
        await publish(world, marked())
        await world.settle()

    result = await world.admin.get(PODS, POD)
    assert result["metadata"]["deletionGracePeriodSeconds"] == 30
    conditions = {condition["type"]: condition for condition in result["status"]["conditions"]}
    assert conditions["DisruptionTarget"] == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByDeviceTaintManager",
        "message": "Device Taint manager: deleting due to NoExecute taint",
        "lastProbeTime": None,
        "lastTransitionTime": "2030-01-01T12:00:00Z",
    }
    assert evicting.calls() == ["get", "patch", "delete"]
    (event,) = (await world.admin.list(EVENTS, "a")).items
    about = event["involvedObject"]
    assert (about["kind"], about["apiVersion"]) == ("Pod", "v1")
    assert (about["namespace"], about["name"], about["uid"]) == ("a", "p", pod["metadata"]["uid"])
    assert (event["type"], event["reason"]) == ("Normal", "DeviceTaintManagerEviction")
    assert (event["message"], event["source"]) == ("Marking for deletion", {"component": NAME})
    assert evicting.metric("pod_deletions_total") == 1
    assert evicting.metric("pod_deletion_duration_seconds_sum") == 0


async def test_pods_without_a_taint_wake_nobody(world: World) -> None:
    looked: list[str] = []

    def make(world: World, manager: Manager) -> Controller:
        controller: Any = Evicting().make()(world, manager)
        reconcile = controller.reconcile

        async def noted(key: Key) -> Result:
            looked.append(key.name)
            return await reconcile(key)

        controller.reconcile = noted
        return controller

    await prepare(world)
    await bound_pod(world, "first")
    async with world.controlled(make):
        await world.settle()
        assert looked == ["first"], "all are looked at once"
        looked.clear()
        await holder(world, "p")
        await world.settle()
        assert looked == []
        await publish(world, marked())
        await world.settle()

    assert set(looked) == {"p"}
    assert await fate(world, "p") == "evicted"


async def taint_slice(world: World) -> None:
    await publish(world, marked())


async def make_rule(world: World) -> None:
    await rule(world)


async def give_device(world: World) -> None:
    await allocate(world, "p", pods=("p",))


async def bind(world: World) -> None:
    target = {"kind": "Node", "name": "node-1"}
    body = {"metadata": {"name": "p", "namespace": "a"}, "target": target}
    await world.admin.create(PODS.read_as(dict), body | {"kind": "Binding"}, "binding")


@pytest.mark.parametrize("start", range(4))
@pytest.mark.parametrize(
    "steps", [*orders(taint_slice, give_device, bind), *orders(make_rule, give_device, bind)]
)
async def test_in_every_order_the_pod_is_evicted_once(
    world: World, steps: tuple[Any, ...], start: int
) -> None:
    evicting = Evicting()
    await prepare(world)
    await claim(world, "p")
    await bound_pod(world, "p", "p", node="")

    await play(world, steps, evicting.make(), start=start, pauses=True)

    assert await fate(world, "p") == "evicted"
    assert evicting.calls() == ["get", "patch", "delete"]
    assert await event_messages(world) == ["p: Marking for deletion"]


@dataclass(frozen=True)
class Case:
    tolerations: tuple[Obj, ...] = ()
    after: float | None = 0
    """Seconds until the pod is evicted; None for never."""
    strict: float | None = -1


CASES = {
    "nothing tolerated": Case(),
    "another key tolerated": Case((for_seconds(key="other"),)),
    "another effect tolerated": Case((for_seconds(effect="NoSchedule"),)),
    "tolerated indefinitely": Case((for_seconds(),), None),
    "tolerated for a while": Case((for_seconds(60),), 60),
    "the shortest that matches": Case(
        (for_seconds(60), for_seconds(30), for_seconds(20, key="other")), 30
    ),
    "one without end beside one with": Case((for_seconds(60), for_seconds()), None),
    "every effect tolerated": Case((for_seconds(effect=""),), None, strict=0),
}


@pytest.mark.parametrize("strict", [False, True], ids=["documented", "strict"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_tolerations(world: World, case: Case, strict: bool) -> None:
    evicting = Evicting(strict=strict)
    want = case.strict if strict and case.strict != -1 else case.after
    await prepare(world)
    await holder(world, "p", tolerations=case.tolerations)
    async with world.controlled(evicting.make()):
        await publish(world, marked())
        if want:
            await world.pass_time(want - 1)
            assert await fate(world, "p") == "stays"
            await world.pass_time(1)
        elif want is None:
            await world.pass_time(1000, step=100)
        await world.settle()

        assert await fate(world, "p") == ("stays" if want is None else "evicted")


@pytest.mark.parametrize("effect", ["None", "NoSchedule"])
async def test_other_effects_evict_nobody(world: World, effect: str) -> None:
    await prepare(world)
    await holder(world, "p")
    async with world.controlled(Evicting().make()):
        await publish(world, marked(effect))
        await rule(world, effect)
        await world.pass_time(30)

    assert await fate(world, "p") == "stays"


async def test_a_pod_that_a_user_deleted_is_left_alone(world: World) -> None:
    evicting = Evicting()
    await prepare(world)
    await holder(world, "p", tolerations=(for_seconds(60),))
    await publish(world, marked())
    async with world.controlled(evicting.make()):
        await world.pass_time(30)
        await world.admin.delete(PODS, POD, NOW)
        await world.pass_time(100, step=10)

    assert evicting.calls() == []
    assert await event_messages(world) == []


@pytest.mark.parametrize("strict", [False, True], ids=["documented", "strict"])
async def test_a_pod_that_is_terminating_is_counted_only_by_kubernetes(
    world: World, strict: bool
) -> None:
    evicting = Evicting(strict=strict)
    await prepare(world)
    await holder(world, "p")
    await world.admin.delete(PODS, POD)
    async with world.controlled(evicting.make()):
        await rule(world)
        await world.pass_time(30)

    assert evicting.calls() == (["get"] if strict else [])
    assert evicting.metric("pod_deletions_total") == (1 if strict else 0)
    assert await event_messages(world) == []


async def test_a_finished_pod_is_left_to_its_end(world: World) -> None:
    await prepare(world)
    await holder(world, "p")
    await world.admin.patch(PODS, POD, {"status": {"phase": "Succeeded"}}, subresource="status")
    async with world.controlled(Evicting().make()):
        await rule(world)
        await world.pass_time(30)

    assert await fate(world, "p") == "stays"


async def test_another_value_that_is_not_tolerated_evicts_immediately(world: World) -> None:
    tolerated = {"key": KEY, "operator": "Equal", "value": "a", "effect": "NoExecute"}
    await prepare(world)
    await holder(world, "p", tolerations=(tolerated,))
    await publish(world, marked(value="a"))
    async with world.controlled(Evicting().make()):
        await world.settle()
        assert await fate(world, "p") == "stays"
        await retaint(world, marked(value="b"))
        await world.settle()

    assert await fate(world, "p") == "evicted"


async def test_all_pods_of_a_shared_claim_are_evicted(world: World) -> None:
    await prepare(world)
    await claim(world, "shared")
    for name in ("p", "q", "unreserved"):
        await bound_pod(world, name, "shared")
    await allocate(world, "shared", pods=("p", "q"))
    async with world.controlled(Evicting().make()):
        await rule(world)
        await world.settle()

    assert [await fate(world, name) for name in ("p", "q", "unreserved")] == [
        "evicted",
        "evicted",
        "stays",
    ]


async def test_a_pod_with_a_finalizer_is_evicted_once(world: World) -> None:
    evicting = Evicting()
    await prepare(world)
    await holder(world, "p", finalizers=["example.com/hold"])
    async with world.controlled(evicting.make()):
        await rule(world)
        await world.settle()
        await world.admin.patch(PODS, POD, {"metadata": {"labels": {"x": "y"}}})
        await rule(world, name="r2")
        await world.pass_time(30)
        await unrule(world)
        await unrule(world, "r2")
        await world.pass_time(30)

    assert evicting.calls() == ["get", "patch", "delete"]
    assert await event_messages(world) == ["p: Marking for deletion"]


async def test_a_new_controller_continues_where_the_old_one_was(world: World) -> None:
    await prepare(world)
    await holder(world, "p", tolerations=(for_seconds(60),))
    await publish(world, marked())
    async with world.controlled(Evicting().make()):
        await world.pass_time(30)
    world.clock.advance(29)
    evicting = Evicting()
    async with world.controlled(evicting.make()):
        await world.settle()
        assert await fate(world, "p") == "stays"
        await world.pass_time(1)

    assert await fate(world, "p") == "evicted"


async def test_without_the_gate_rules_do_nothing(world: World) -> None:
    evicting = Evicting(features=Features(rules=False))
    await prepare(world)
    await holder(world, "p")
    async with world.controlled(evicting.make()):
        await rule(world)
        await world.pass_time(30)

    assert await fate(world, "p") == "stays"
    assert evicting.calls("devicetaintrules") == []


async def test_the_earliest_of_slices_and_rules_decides_and_all_are_reported(world: World) -> None:
    hot = marked(key="example.com/hot")
    await prepare(world)
    await publish(world, marked(), hot)
    await holder(world, "p", tolerations=(for_seconds(60), for_seconds(30, key="example.com/hot")))
    async with world.controlled(Evicting().make()):
        await rule(world)
        spec = {"deviceSelector": {"device": "gpu-0"}, "taint": hot}
        await world.admin.create(RULES, {"metadata": {"name": "r2"}, "spec": spec})
        await world.pass_time(29)
        assert await fate(world, "p") == "stays"
        await world.pass_time(1)
        assert await fate(world, "p") == "evicted"
        await world.pass_time(2)

        left = ("False", "Completed", "1 pod evicted since starting the controller.")
        assert [await status(world, name) for name in ("r", "r2")] == [left, left]


async def test_a_claim_must_be_reserved_for_this_very_pod(world: World) -> None:
    await prepare(world)
    await claim(world, "p")
    await bound_pod(world, "p", "p")
    await allocate(world, "p", pods=("p",))
    await world.admin.delete(PODS, POD, NOW)
    await bound_pod(world, "p", "p")
    async with world.controlled(Evicting().make()):
        await rule(world)
        await world.settle()
        assert await fate(world, "p") == "stays"
        result = await world.admin.get(CLAIMS, POD)
        uid = (await world.admin.get(PODS, POD))["metadata"]["uid"]
        consumer = {"resource": "pods", "name": "p", "uid": uid}
        result["status"]["reservedFor"] = [consumer]
        await world.admin.update(CLAIMS, result, "status")
        await world.settle()

    assert await fate(world, "p") == "evicted"


async def test_what_does_not_concern_a_pod_does_nothing(world: World) -> None:
    evicting = Evicting()
    await prepare(world)
    await holder(world, "p", tolerations=(for_seconds(60),))
    await publish(world, marked())
    async with world.controlled(evicting.make()):
        await world.settle()
        label = {"metadata": {"labels": {"x": "y"}}}
        await publish(world, marked(), name="other", generation=1)
        await world.admin.patch(SLICES, Key("", "s"), label)
        await world.admin.patch(CLAIMS, POD, label)
        await world.admin.patch(PODS, POD, label)
        await rule(world, name="elsewhere", driver="other.example.com")
        await world.pass_time(50)

    assert evicting.calls() == []
    assert await event_messages(world) == []


async def test_a_taint_of_a_patch_evicts(world: World) -> None:
    await prepare(world)
    await publish(world)
    await holder(world, "p")
    async with world.controlled(Evicting().make()):
        await world.settle()
        spec = {"devices": {"taints": [marked()]}}
        await world.admin.create(PATCHES, {"metadata": {"name": "x"}, "spec": spec})
        await world.settle()

    assert await fate(world, "p") == "evicted"


async def test_a_pod_with_an_extended_resource_is_evicted(world: World) -> None:
    await prepare(world)
    pod = await bound_pod(world, "p", extended="example.com/gpu")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "controller": True}
    owner["uid"] = pod["metadata"]["uid"]
    metadata = {"ownerReferences": [owner]}
    await world.create(CLAIMS, "a", "x", metadata=metadata, spec=claim_spec())
    await allocate(world, "x", pods=("p",))
    mapping = [{"containerName": "c", "resourceName": "example.com/gpu", "requestName": "r"}]
    made = {"resourceClaimName": "x", "requestMappings": mapping}
    async with world.controlled(Evicting().make()):
        await rule(world)
        await world.settle()
        assert await fate(world, "p") == "stays"
        change = {"status": {"extendedResourceClaimStatus": made}}
        await world.admin.patch(PODS, POD, change, subresource="status")
        await world.settle()

    assert await fate(world, "p") == "evicted"
