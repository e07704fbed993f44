"""Templates become ReplicaSets with numbers, and can be taken back; rollouts: test_rollouts.py."""

from __future__ import annotations

import pytest

from controllers.lifecycles import (
    DEPLOYMENTS,
    LABELS,
    REPLICA_SETS,
    active,
    bring_up,
    change_image,
    conditions,
    deployment,
    deployments,
    events,
    images,
    open_namespace,
    replica_sets,
    roll,
    sets,
    status,
)
from controllers.world import PODS, Obj, Step, World, orders
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.machinery.formats.timestamps import format_time

WEB = Key("a", "web")
REVISION = "deployment.kubernetes.io/revision"
FINE = {"Available": ("True", "MinimumReplicasAvailable")}
TWO = "example.com/web:2"
THREE = "example.com/web:3"


@pytest.fixture(autouse=True)
async def _namespace(world: World) -> None:
    await open_namespace(world)


def numbers(result: dict[str, Obj]) -> dict[str, str]:
    return {image: entry["metadata"]["annotations"][REVISION] for image, entry in result.items()}


async def test_it_makes_a_replica_set(world: World) -> None:
    made = await deployment(world, 3)
    async with world.controlled(deployments, replica_sets):
        await world.settle()
        assert await images(world) == {"1": 3}
        (owned,) = (await sets(world)).values()
        short = owned["metadata"]["labels"]["pod-template-hash"]
        assert owned["metadata"]["name"] == f"web-{short}"
        assert owned["spec"]["selector"]["matchLabels"] == LABELS | {"pod-template-hash": short}
        assert owned["spec"]["template"]["metadata"]["labels"] == LABELS | {
            "pod-template-hash": short
        }
        assert owned["metadata"]["annotations"] == {
            REVISION: "1",
            "deployment.kubernetes.io/desired-replicas": "3",
            "deployment.kubernetes.io/max-replicas": "4",
        }
        (ref,) = owned["metadata"]["ownerReferences"]
        assert (ref["kind"], ref["uid"]) == ("Deployment", made["metadata"]["uid"])
        assert await conditions(world) == {
            "Available": ("False", "MinimumReplicasUnavailable"),
            "Progressing": ("True", "ReplicaSetUpdated"),
        }
        await bring_up(world)

    result = await world.admin.get(DEPLOYMENTS, WEB)
    assert result["metadata"]["annotations"] == {REVISION: "1"}
    results = {item["type"]: item["message"] for item in result["status"].pop("conditions")}
    assert result["status"] == {
        "observedGeneration": 1,
        "replicas": 3,
        "updatedReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "terminatingReplicas": 0,
    }
    assert results == {
        "Available": "Deployment has minimum availability.",
        "Progressing": f'ReplicaSet "web-{short}" has successfully progressed.',
    }
    assert await conditions(world) == FINE | {"Progressing": ("True", "NewReplicaSetAvailable")}
    assert await events(world, "Deployment") == [
        ("ScalingReplicaSet", f"Scaled up replica set web-{short} from 0 to 3")
    ]


async def test_it_goes_back_to_an_old_template(world: World) -> None:
    await deployment(world, 2)
    async with world.controlled(deployments, replica_sets):
        await roll(world)
        first = (await sets(world))["1"]["metadata"]["uid"]
        for image in (TWO, THREE, "example.com/web:1"):
            await change_image(world, image)
            await roll(world)

    result = await sets(world)
    assert numbers(result) == {"1": "4", "2": "2", "3": "3"}
    assert result["1"]["metadata"]["uid"] == first
    history = result["1"]["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"]
    assert history == "1"
    assert (await world.admin.get(DEPLOYMENTS, WEB))["metadata"]["annotations"][REVISION] == "4"
    assert await images(world) == {"1": 2}


async def test_old_revisions_are_forgotten_beyond_the_limit(world: World) -> None:
    await deployment(world, 1, revisionHistoryLimit=1)
    async with world.controlled(deployments, replica_sets):
        for image in ("1", "2", "3", "4"):
            await change_image(world, f"example.com/web:{image}")
            await roll(world)

    assert sorted(await sets(world)) == ["3", "4"]


async def test_a_name_that_is_taken_is_avoided(world: World) -> None:
    """Another user has a ReplicaSet of the name that the template gets."""
    await deployment(world, 1)
    async with world.controlled(deployments, replica_sets):
        await world.settle()
    (taken,) = await sets(world)
    (first,) = (await world.admin.list(REPLICA_SETS, "a")).items
    await world.admin.delete(DEPLOYMENTS, WEB)
    assert taken == "1"
    await world.admin.patch(
        REPLICA_SETS,
        key_of(first),
        {"metadata": {"ownerReferences": None, "labels": None}, "spec": {"replicas": 0}},
    )
    await deployment(world, 1)
    async with world.controlled(deployments, replica_sets):
        await world.pass_time(5)

    items = (await world.admin.list(REPLICA_SETS, "a")).items
    assert len(items) == 2
    assert (await status(world, DEPLOYMENTS))["collisionCount"] == 1


async def test_annotations_are_handed_on(world: World) -> None:
    await deployment(world, 1)
    async with world.controlled(deployments, replica_sets):
        await world.settle()
        cause = {"kubernetes.io/change-cause": "because"}
        hidden = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
        change = {"metadata": {"annotations": cause | hidden}}
        await world.admin.patch(DEPLOYMENTS, WEB, change)
        await world.settle()

    annotations = (await sets(world))["1"]["metadata"]["annotations"]
    assert annotations.items() >= cause.items()
    assert not annotations.keys() & hidden.keys()


async def test_a_restart_is_a_new_template(world: World) -> None:
    await deployment(world, 2)
    async with world.controlled(deployments, replica_sets):
        await roll(world)
        stamp = {"kubectl.kubernetes.io/restartedAt": format_time(world.clock.now())}
        change = {"spec": {"template": {"metadata": {"annotations": stamp}}}}
        await world.admin.patch(DEPLOYMENTS, WEB, change)
        await roll(world)

    items = (await world.admin.list(REPLICA_SETS, "a")).items
    assert sorted(item["spec"]["replicas"] for item in items) == [0, 2]
    assert all(item["metadata"]["annotations"] == stamp for item in await active(world))


async def test_it_adopts_replica_sets_that_match(world: World) -> None:
    await deployment(world, 2)
    async with world.controlled(deployments, replica_sets):
        await roll(world)
    (owned,) = (await sets(world)).values()
    free = {"metadata": {"ownerReferences": None}}
    await world.admin.patch(REPLICA_SETS, key_of(owned), free)
    async with world.controlled(deployments, replica_sets):
        await world.settle()

    (again,) = (await sets(world)).values()
    assert again["metadata"]["uid"] == owned["metadata"]["uid"]
    assert again["metadata"]["ownerReferences"] == owned["metadata"]["ownerReferences"]


async def test_it_adopts_no_terminating_pod(world: World) -> None:
    await deployment(world, 2)
    async with world.controlled(deployments, replica_sets):
        await roll(world)
    (owned,) = (await sets(world)).values()
    free = {"metadata": {"ownerReferences": None, "finalizers": ["x.example/hold"]}}
    await world.admin.patch(REPLICA_SETS, key_of(owned), free)
    await world.admin.delete(REPLICA_SETS, key_of(owned))
    async with world.controlled(deployments, replica_sets):
        await world.pass_time(5)

    items = (await world.admin.list(REPLICA_SETS, "a")).items
    owners = {item["metadata"]["name"]: "ownerReferences" in item["metadata"] for item in items}
    assert len(owners) == 2
    assert owners.pop(owned["metadata"]["name"]) is False
    assert list(owners.values()) == [True]


async def test_a_finished_one_is_left_alone(world: World) -> None:
    await deployment(world, 2)
    async with world.controlled(deployments, replica_sets) as manager:
        await roll(world)
        revision = world.store.revision
        await world.pass_time(1200, step=60)
        assert manager.delayed == 0
        assert world.store.revision == revision


async def scale(world: World) -> None:
    await world.admin.patch(DEPLOYMENTS, WEB, {"spec": {"replicas": 5}})


async def set_image(world: World) -> None:
    await change_image(world, TWO)


async def lose_pods(world: World) -> None:
    for item in await active(world):
        await world.admin.delete(PODS, key_of(item))


@pytest.mark.parametrize("strategy", ["RollingUpdate", "Recreate"])
@pytest.mark.parametrize("pauses", [True, False], ids=["one by one", "all at once"])
@pytest.mark.parametrize("steps", orders(scale, set_image, lose_pods))
async def test_every_order_ends_the_same(
    world: World, steps: tuple[Step, ...], pauses: bool, strategy: str
) -> None:
    await deployment(world, 3, strategy={"type": strategy})
    async with world.controlled(replica_sets, deployments):
        await world.settle()
        for step in steps:
            await step(world)
            if pauses:
                await roll(world)
        await roll(world)
        await world.pass_time(20)
        await roll(world)

    assert await images(world) == {"2": 5}
    result = await status(world, DEPLOYMENTS)
    counts = {name: result.get(name, 0) for name in ("replicas", "updatedReplicas")}
    assert counts == {"replicas": 5, "updatedReplicas": 5}
    assert result["availableReplicas"] == 5
    assert await conditions(world) == FINE | {"Progressing": ("True", "NewReplicaSetAvailable")}
