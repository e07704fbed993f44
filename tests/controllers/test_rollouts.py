"""Rollouts stay within their limits, can be held, and fail visibly."""

from __future__ import annotations

import pytest

from controllers.lifecycles import (
    DEPLOYMENTS,
    LABELS,
    active,
    bring_up,
    change_image,
    conditions,
    deployment,
    deployments,
    finish_deletions,
    images,
    make_ready,
    open_namespace,
    pods,
    replica_sets,
    roll,
    sets,
    status,
    template,
)
from controllers.world import ACCOUNTS, PODS, World
from sully.client.objects import key_of
from sully.client.transport import Key

WEB = Key("a", "web")
FINE = {"Available": ("True", "MinimumReplicasAvailable")}
TWO = "example.com/web:2"


@pytest.fixture(autouse=True)
async def _namespace(world: World) -> None:
    await open_namespace(world)


async def test_a_rolling_update_stays_within_its_limits(world: World) -> None:
    await deployment(world, 4, strategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}})
    async with world.controlled(deployments, replica_sets):
        await roll(world)
        await change_image(world, TWO)
        seen = []
        for _ in range(20):
            await world.settle()
            result = await active(world)
            ready = [item for item in result if item["status"].get("phase") == "Running"]
            assert len(result) <= 5
            assert len(ready) >= 3
            seen.append(await images(world))
            waiting = [item for item in result if item not in ready]
            await make_ready(world, *waiting[:1])
            await finish_deletions(world)

        assert seen[0] == {"1": 3, "2": 2}
        assert seen[-1] == {"2": 4}
        assert await conditions(world) == FINE | {"Progressing": ("True", "NewReplicaSetAvailable")}
    sizes = {image: entry["spec"]["replicas"] for image, entry in (await sets(world)).items()}
    assert sizes == {"1": 0, "2": 4}


async def test_recreate_waits_until_the_old_pods_are_gone(world: World) -> None:
    await deployment(world, 2, strategy={"type": "Recreate"})
    async with world.controlled(deployments, replica_sets):
        await roll(world)
        nodes = await active(world)
        await change_image(world, TWO)
        for node in nodes:
            # A pod that runs somewhere takes its time to end.
            finalizers = {"metadata": {"finalizers": ["x.example/hold"]}}
            await world.admin.patch(PODS, key_of(node), finalizers)
        await world.settle()
        assert await images(world) == {}
        assert len(await pods(world)) == 2

        for node in nodes:
            free = {"metadata": {"finalizers": None}}
            await world.admin.patch(PODS, key_of(node), free)
            await world.settle()
        assert await images(world) == {"2": 2}
        await roll(world)

    assert await conditions(world) == FINE | {"Progressing": ("True", "NewReplicaSetAvailable")}


async def test_a_paused_one_waits(world: World) -> None:
    await deployment(world, 2)
    async with world.controlled(deployments, replica_sets):
        await roll(world)
        await world.admin.patch(DEPLOYMENTS, WEB, {"spec": {"paused": True}})
        await change_image(world, TWO)
        await roll(world)
        assert await images(world) == {"1": 2}
        assert (await conditions(world))["Progressing"] == ("Unknown", "DeploymentPaused")

        await world.admin.patch(DEPLOYMENTS, WEB, {"spec": {"replicas": 4}})
        await roll(world)
        assert await images(world) == {"1": 4}

        await world.admin.patch(DEPLOYMENTS, WEB, {"spec": {"paused": False}})
        await roll(world)

    assert await images(world) == {"2": 4}
    assert (await conditions(world))["Progressing"] == ("True", "NewReplicaSetAvailable")


async def test_scaling_in_the_middle_keeps_the_proportions(world: World) -> None:
    limits = {"maxSurge": 3, "maxUnavailable": 2}
    await deployment(world, 10, strategy={"rollingUpdate": limits})
    async with world.controlled(deployments, replica_sets):
        await roll(world)
        await change_image(world, TWO)
        await world.settle()
        assert await images(world) == {"1": 8, "2": 5}

        await world.admin.patch(DEPLOYMENTS, WEB, {"spec": {"replicas": 15}})
        await world.settle()
        assert await images(world) == {"1": 11, "2": 7}
        await roll(world)

    assert await images(world) == {"2": 15}


async def test_a_rollout_that_does_not_move_is_reported(world: World) -> None:
    await deployment(world, 2, progressDeadlineSeconds=60)
    async with world.controlled(deployments, replica_sets):
        await roll(world)
        await change_image(world, TWO)
        await world.pass_time(55)
        assert (await conditions(world))["Progressing"] == ("True", "ReplicaSetUpdated")
        await world.pass_time(15)
        assert (await conditions(world))["Progressing"] == ("False", "ProgressDeadlineExceeded")
        (reported,) = [
            condition["message"]
            for condition in (await status(world, DEPLOYMENTS))["conditions"]
            if condition["type"] == "Progressing"
        ]
        name = (await sets(world))["2"]["metadata"]["name"]
        assert reported == f'ReplicaSet "{name}" has timed out progressing.'

        await roll(world)

    assert (await conditions(world))["Progressing"] == ("True", "NewReplicaSetAvailable")


async def test_each_step_moves_the_deadline(world: World) -> None:
    limits = {"maxSurge": 1, "maxUnavailable": 0}
    made = {"rollingUpdate": limits}
    await deployment(world, 3, progressDeadlineSeconds=60, strategy=made)
    async with world.controlled(deployments, replica_sets):
        await roll(world)
        await change_image(world, TWO)
        for _ in range(2):
            await world.pass_time(50)
            await bring_up(world)
            await finish_deletions(world)
        await world.pass_time(50)

        assert (await conditions(world))["Progressing"] == ("True", "ReplicaSetUpdated")


async def test_new_pods_count_after_they_were_ready_for_long_enough(world: World) -> None:
    limits = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    await deployment(world, 1, minReadySeconds=30, strategy=limits)
    async with world.controlled(deployments, replica_sets):
        await bring_up(world)
        await world.pass_time(35)
        await change_image(world, TWO)
        await world.settle()
        await bring_up(world)
        await world.pass_time(25)
        assert await images(world) == {"1": 1, "2": 1}
        await world.pass_time(10)

        assert await images(world) == {"2": 1}


async def test_a_failure_to_make_pods_is_reported(world: World) -> None:
    await world.namespace("b")
    spec = {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": template()}
    await world.create(DEPLOYMENTS, "b", "web", spec=spec)
    async with world.controlled(deployments, replica_sets):
        # The server waits a moment for the account that is missing.
        await world.pass_time(2, step=0.5)
        deployment = await world.admin.get(DEPLOYMENTS, Key("b", "web"))
        await world.create(ACCOUNTS, "b", "default")
        await world.pass_time(2, step=0.5)

    results = {condition["type"]: condition for condition in deployment["status"]["conditions"]}
    assert results["ReplicaFailure"]["reason"] == "FailedCreate"
    assert "serviceaccount" in results["ReplicaFailure"]["message"]
