"""A StatefulSet has pods with fixed names, which come and go in order."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.lifecycles import (
    LABELS,
    REVISIONS,
    STATEFUL_SETS,
    active,
    bring_up,
    events,
    finish_deletions,
    image_of,
    open_namespace,
    pods,
    roll,
    stateful_sets,
    status,
    template,
)
from controllers.world import PODS, Obj, World
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.controllers.workloads import kinds as workloads

WEB = Key("a", "web")
CLAIMS = workloads.CLAIMS


@pytest.fixture(autouse=True)
async def _namespace(world: World) -> None:
    await open_namespace(world)


async def stateful_set(world: World, replicas: int = 3, **spec: Any) -> Obj:
    made = {
        "replicas": replicas,
        "serviceName": "web",
        "selector": {"matchLabels": LABELS},
        "template": template(),
    }
    return await world.create(STATEFUL_SETS, "a", "web", spec=made | spec)


async def names(world: World) -> list[str]:
    return sorted(item["metadata"]["name"] for item in await active(world))


async def change_image(world: World, tag: str) -> None:
    change = {"spec": {"template": template(image=f"example.com/web:{tag}")}}
    await world.admin.patch(STATEFUL_SETS, WEB, change)


async def images(world: World) -> dict[str, str]:
    return {item["metadata"]["name"]: image_of(item["spec"]) for item in await active(world)}


async def test_pods_are_created_in_order_each_when_the_one_before_is_ready(world: World) -> None:
    await stateful_set(world)
    async with world.controlled(stateful_sets):
        seen = []
        for _ in range(4):
            await world.settle()
            seen.append(await names(world))
            await bring_up(world)

    assert await events(world, "StatefulSet") == [
        ("SuccessfulCreate", f"Create Pod web-{index} in StatefulSet web successful")
        for index in range(3)
    ]
    assert seen == [["web-0"], ["web-0", "web-1"], ["web-0", "web-1", "web-2"], seen[2]]
    first = (await active(world))[0]
    revision = (await world.admin.list(REVISIONS, "a")).items[0]["metadata"]["name"]
    assert first["metadata"]["labels"] == LABELS | {
        "apps.kubernetes.io/pod-index": "0",
        "controller-revision-hash": revision,
        "statefulset.kubernetes.io/pod-name": "web-0",
    }
    assert (first["spec"]["hostname"], first["spec"]["subdomain"]) == ("web-0", "web")
    result = await status(world, STATEFUL_SETS)
    assert result == {
        "observedGeneration": 1,
        "replicas": 3,
        "readyReplicas": 3,
        "currentReplicas": 3,
        "updatedReplicas": 3,
        "availableReplicas": 3,
        "currentRevision": revision,
        "updateRevision": revision,
        "collisionCount": 0,
    }


async def test_a_parallel_set_creates_all_pods_together(world: World) -> None:
    await stateful_set(world, podManagementPolicy="Parallel", ordinals={"start": 5})
    async with world.controlled(stateful_sets):
        await world.settle()

    assert await names(world) == ["web-5", "web-6", "web-7"]


async def test_a_pod_is_created_again_with_its_name_when_it_is_deleted(world: World) -> None:
    await stateful_set(world)
    async with world.controlled(stateful_sets):
        await roll(world)
        old = next(item for item in await active(world) if item["metadata"]["name"] == "web-1")
        await world.admin.patch(
            PODS, key_of(old), {"metadata": {"finalizers": ["example.com/hold"]}}
        )
        await world.admin.delete(PODS, key_of(old))
        await world.settle()
        assert await names(world) == ["web-0", "web-2"]
        await world.admin.patch(PODS, key_of(old), {"metadata": {"finalizers": None}})
        await world.settle()
        await finish_deletions(world)
        await roll(world)

        new = next(item for item in await active(world) if item["metadata"]["name"] == "web-1")
        assert new["metadata"]["uid"] != old["metadata"]["uid"]


async def test_it_is_scaled_down_from_the_last(world: World) -> None:
    await stateful_set(world)
    async with world.controlled(stateful_sets):
        await roll(world)
        await world.admin.patch(STATEFUL_SETS, WEB, {"spec": {"replicas": 1}})
        await roll(world)

    assert await names(world) == ["web-0"]


async def test_an_update_replaces_pods_from_the_last_down_to_the_partition(world: World) -> None:
    partition = {"rollingUpdate": {"partition": 1}}
    await stateful_set(world, updateStrategy=partition)
    async with world.controlled(stateful_sets):
        await roll(world)
        await change_image(world, "2")
        await world.settle()
        terminating = [pod for pod in await pods(world) if pod not in await active(world)]
        assert all(item["metadata"]["name"] == "web-2" for item in terminating)
        await roll(world)
        assert await images(world) == {"web-0": "1", "web-1": "2", "web-2": "2"}
        result = await status(world, STATEFUL_SETS)
        assert (result["currentReplicas"], result["updatedReplicas"]) == (1, 2)
        await world.admin.patch(
            STATEFUL_SETS, WEB, {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}
        )
        await roll(world)

    assert set((await images(world)).values()) == {"2"}
    result = await status(world, STATEFUL_SETS)
    assert result["currentRevision"] == result["updateRevision"]
    revisions = (await world.admin.list(REVISIONS, "a")).items
    assert sorted(revision["revision"] for revision in revisions) == [1, 2]


async def test_on_delete_leaves_pods_until_they_are_deleted(world: World) -> None:
    await stateful_set(world, 2, updateStrategy={"type": "OnDelete"})
    async with world.controlled(stateful_sets):
        await roll(world)
        await change_image(world, "2")
        await roll(world)
        assert set((await images(world)).values()) == {"1"}
        await world.admin.delete(PODS, Key("a", "web-1"))
        await finish_deletions(world)
        await roll(world)

    assert await images(world) == {"web-0": "1", "web-1": "2"}


async def test_going_back_reuses_the_revision_with_a_new_number(world: World) -> None:
    await stateful_set(world, 1, revisionHistoryLimit=1)
    async with world.controlled(stateful_sets):
        for tag in ("2", "1", "3"):
            await roll(world)
            await change_image(world, tag)
        await roll(world)

    revisions = (await world.admin.list(REVISIONS, "a")).items
    assert sorted(revision["revision"] for revision in revisions) == [3, 4]


async def test_each_pod_gets_its_claims(world: World) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    await stateful_set(world, 1, volumeClaimTemplates=[claim])
    async with world.controlled(stateful_sets):
        await world.settle()

    items = (await world.admin.list(CLAIMS, "a")).items
    assert [item["metadata"]["name"] for item in items] == ["data-web-0"]
    volumes = (await active(world))[0]["spec"]["volumes"]
    assert volumes == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}}]
