"""The status of quotas reports what is used, whatever is created and deleted."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.lifecycles import NOW, open_namespace, pods_of
from controllers.world import CONFIG_MAPS, PODS, Obj, Step, World, orders
from embedded import SCHEME
from manifests import pod
from quotas import CLAIMS, CLASSES, QUOTAS, gpus
from sully.client.discovery.resources import of_scheme
from sully.client.transport import Key
from sully.controllers.framework.manager import Manager
from sully.controllers.garbagecollection.owners import collected_kinds
from sully.controllers.resourcequota.controller import QUOTAS as TYPED_QUOTAS
from sully.controllers.resourcequota.controller import RESYNC, ResourceQuotaController
from sully.controllers.resourcequota.usage import UsageCalculator
from sully.views import kinds

GPUS = "gpu.deviceclass.resource.k8s.io/devices"


def quotas(world: World, manager: Manager) -> ResourceQuotaController:
    access = world.transport(ResourceQuotaController.name)
    counted = [kind for kind in collected_kinds(of_scheme(SCHEME)).all if kind.namespaced]
    classes = manager.informer(kinds.CLASSES)
    return ResourceQuotaController(
        quotas=manager.informer(TYPED_QUOTAS),
        pods=pods_of(manager).informer,
        claims=manager.informer(kinds.CLAIMS),
        usage=UsageCalculator(access, counted, classes, world.clock),
        transport=access,
        clock=world.clock,
    )


@pytest.fixture(autouse=True)
async def _namespace(world: World) -> None:
    await world.api.quotas.start()
    await open_namespace(world)


async def limit(world: World, hard: dict[str, str], **spec: Any) -> None:
    await world.create(QUOTAS, "a", "q", spec={"hard": hard, **spec})


async def status(world: World) -> Obj:
    result: Obj = (await world.admin.get(QUOTAS, Key("a", "q"))).get("status") or {}
    return result


async def run_pod(world: World, name: str, **spec: Any) -> None:
    made = pod(name)
    await world.create(PODS, "a", name, spec=made["spec"] | spec)


async def finish(world: World, name: str) -> None:
    patch = {"status": {"phase": "Succeeded"}}
    await world.admin.patch(PODS, Key("a", name), patch, subresource="status")


async def test_what_is_there_is_counted(world: World) -> None:
    for number in range(3):
        await world.create(CONFIG_MAPS, "a", f"m-{number}")
    await run_pod(world, "p")
    await run_pod(world, "ended")
    await finish(world, "ended")
    await world.admin.create(CLAIMS, gpus("c", 2, namespace="a"))
    hard = dict.fromkeys(
        ("configmaps", "count/secrets", "pods", "count/pods", GPUS, "services", "x.example/y"), "9"
    )
    await limit(world, hard)

    async with world.controlled(quotas):
        await world.settle()

    assert await status(world) == {
        "hard": hard,
        "used": {
            "configmaps": "3",
            "count/secrets": "0",
            "pods": "1",
            "count/pods": "2",
            GPUS: "2",
            "services": "0",
        },
    }


async def test_what_is_deleted_is_released(world: World) -> None:
    async with world.controlled(quotas):
        await limit(world, {"configmaps": "2", "pods": "1", GPUS: "4"})
        await world.settle()
        await world.create(CONFIG_MAPS, "a", "m")
        await run_pod(world, "p")
        await world.admin.create(CLAIMS, gpus("c", 3, namespace="a"))
        full = (await status(world))["used"]
        await world.admin.delete(CONFIG_MAPS, Key("a", "m"))
        await finish(world, "p")
        await world.admin.delete(CLAIMS, Key("a", "c"))
        await world.settle()
        empty = (await status(world))["used"]

    assert full == {"configmaps": "1", "pods": "1", GPUS: "3"}
    assert empty == {"configmaps": "0", "pods": "0", GPUS: "0"}


async def test_new_limits_take_force(world: World) -> None:
    async with world.controlled(quotas):
        await limit(world, {"configmaps": "5", "secrets": "1"})
        await world.settle()
        await world.create(CONFIG_MAPS, "a", "m")
        patch = {"spec": {"hard": {"configmaps": "1", "secrets": None, "pods": "3"}}}
        await world.admin.patch(QUOTAS, Key("a", "q"), patch)
        await world.settle()

    assert await status(world) == {
        "hard": {"configmaps": "1", "pods": "3"},
        "used": {"configmaps": "1", "pods": "0"},
    }


async def test_scopes(world: World) -> None:
    await run_pod(world, "lasting")
    await run_pod(world, "brief", activeDeadlineSeconds=60)
    await limit(world, {"pods": "5"}, scopes=["NotTerminating"])
    async with world.controlled(quotas):
        await world.settle()
        before = (await status(world))["used"]
        patch = {"spec": {"activeDeadlineSeconds": 60}}
        await world.admin.patch(PODS, Key("a", "lasting"), patch)
        await world.settle()

    assert before == {"pods": "1"}
    assert (await status(world))["used"] == {"pods": "0"}


async def test_a_count_that_is_wrong_is_corrected_in_time(world: World) -> None:
    async with world.controlled(quotas):
        await limit(world, {"configmaps": "5"})
        await world.pass_time(5)
        wrong = {"status": {"used": {"configmaps": "4"}}}
        await world.admin.patch(QUOTAS, Key("a", "q"), wrong, subresource="status")
        await world.settle()
        before = (await status(world))["used"]
        await world.pass_time(RESYNC.total_seconds(), step=30)

    assert before == {"configmaps": "4"}
    assert (await status(world))["used"] == {"configmaps": "0"}


async def test_a_pod_on_a_lost_node_does_not_hold_its_place(world: World) -> None:
    async with world.controlled(quotas):
        await limit(world, {"pods": "1", "count/pods": "9"})
        await world.settle()
        await run_pod(world, "p", nodeName="lost", terminationGracePeriodSeconds=30)
        await world.admin.delete(PODS, Key("a", "p"))
        await world.pass_time(40)
        early = (await status(world))["used"]
        await world.pass_time(RESYNC.total_seconds(), step=30)
        late = (await status(world))["used"]
        await world.admin.delete(PODS, Key("a", "p"), NOW)
        await world.settle()
        gone = (await status(world))["used"]

    assert early == {"pods": "1", "count/pods": "1"}
    assert late == {"pods": "0", "count/pods": "1"}
    assert gone == {"pods": "0", "count/pods": "0"}


async def test_a_pod_that_is_long_overdue_is_released_when_it_is_deleted(world: World) -> None:
    async with world.controlled(quotas):
        await limit(world, {"pods": "1"})
        await world.pass_time(5)
        await run_pod(world, "p", nodeName="lost", terminationGracePeriodSeconds=30)
        await world.admin.delete(PODS, Key("a", "p"))
        await world.pass_time(100)
        await world.admin.delete(PODS, Key("a", "p"), NOW)
        await world.settle()

    assert (await status(world))["used"] == {"pods": "0"}


async def test_creates_wake_nobody(world: World) -> None:
    async with world.controlled(quotas):
        await limit(world, {"configmaps": "50"})
        await world.pass_time(5)
        before = world.store.revision
        for number in range(10):
            await world.create(CONFIG_MAPS, "a", f"m-{number}")
        await world.settle()

        assert world.store.revision == before + 10


async def test_extended_resources_are_counted_once(world: World) -> None:
    name = "requests.example.com/gpu"
    backing = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}}
    await world.admin.create(CLASSES, backing)
    amounts = {"example.com/gpu": "2"}
    resources = {"requests": amounts, "limits": amounts}
    await run_pod(world, "p", containers=[{"name": "c", "image": "i", "resources": resources}])
    owner = await world.admin.get(PODS, Key("a", "p"))
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "controller": True}
    reference["uid"] = owner["metadata"]["uid"]
    for claim in ("own", "second"):
        metadata = {
            "namespace": "a",
            "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
            "ownerReferences": [reference],
        }
        await world.admin.create(CLAIMS, gpus(claim, 2, **metadata))
    await limit(world, {name: "9", GPUS: "9"})

    async with world.controlled(quotas):
        await world.settle()

    # The first claim is what the pod asks for; the second is more.
    assert (await status(world))["used"] == {name: "4", GPUS: "4"}


async def make_map(world: World) -> None:
    await world.create(CONFIG_MAPS, "a", "new")


async def delete_map(world: World) -> None:
    await world.admin.delete(CONFIG_MAPS, Key("a", "old"))


async def raise_limit(world: World) -> None:
    await world.admin.patch(QUOTAS, Key("a", "q"), {"spec": {"hard": {"configmaps": "7"}}})


async def delete_pod(world: World) -> None:
    await world.admin.delete(PODS, Key("a", "p"), NOW)


@pytest.mark.parametrize("steps", orders(make_map, delete_map, raise_limit, delete_pod))
@pytest.mark.parametrize("pauses", [False, True])
async def test_every_order(world: World, steps: tuple[Step, ...], *, pauses: bool) -> None:
    await world.create(CONFIG_MAPS, "a", "old")
    await run_pod(world, "p")
    async with world.controlled(quotas):
        await limit(world, {"configmaps": "5", "pods": "5"})
        await world.settle()
        for step in steps:
            await step(world)
            if pauses:
                await world.settle()
        await world.pass_time(20)

    assert await status(world) == {
        "hard": {"configmaps": "7", "pods": "5"},
        "used": {"configmaps": "1", "pods": "0"},
    }
