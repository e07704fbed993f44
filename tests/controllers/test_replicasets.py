"""A ReplicaSet has as many pods as it asks for, and never more than it should."""

from __future__ import annotations

from contextlib import suppress
from itertools import permutations

import pytest

from controllers.lifecycles import (
    LABELS,
    REPLICA_SETS,
    Late,
    active,
    bring_up,
    events,
    make_ready,
    open_namespace,
    pod,
    pods,
    replica_set,
    replica_sets,
    status,
    template,
)
from controllers.world import PODS, Step, World, orders, play
from sully.client.objects import key_of
from sully.client.options import DeleteOptions
from sully.client.transport import Key
from sully.controllers.framework.manager import Manager
from sully.controllers.workloads.expectations import TIMEOUT, Expectations
from sully.controllers.workloads.replicasets import ReplicaSetController
from sully.machinery.errors import NotFound

NOW = DeleteOptions(grace_period_seconds=0)
WEB = Key("a", "web")


@pytest.fixture(autouse=True)
async def _namespace(world: World) -> None:
    await open_namespace(world)


async def test_it_creates_the_pods_it_asks_for(world: World) -> None:
    owner = await replica_set(world)
    async with world.controlled(replica_sets):
        await world.settle()

    result = await pods(world)
    assert len(result) == 3
    for entry in result:
        metadata = entry["metadata"]
        assert metadata["name"].startswith("web-")
        assert len(metadata["name"]) == len("web-") + 5
        assert metadata["generateName"] == "web-"
        assert metadata["labels"] == LABELS
        assert metadata["ownerReferences"] == [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "web",
                "uid": owner["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
    reported = await events(world)
    assert sorted(reported) == sorted(
        ("SuccessfulCreate", f"Created pod: {item['metadata']['name']}") for item in result
    )


async def test_its_status_shows_what_there_is(world: World) -> None:
    await replica_set(world)
    async with world.controlled(replica_sets):
        await world.settle()
        assert await status(world, REPLICA_SETS) == {
            "replicas": 3,
            "fullyLabeledReplicas": 3,
            "observedGeneration": 1,
            "terminatingReplicas": 0,
        }
        await make_ready(world, *(await pods(world))[:2])
        await world.settle()

    assert await status(world, REPLICA_SETS) == {
        "replicas": 3,
        "fullyLabeledReplicas": 3,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "observedGeneration": 1,
        "terminatingReplicas": 0,
    }


async def test_a_pod_is_available_after_it_was_ready_for_long_enough(world: World) -> None:
    await replica_set(world, 2, minReadySeconds=30)
    async with world.controlled(replica_sets) as manager:
        await world.settle()
        first, second = await pods(world)
        await make_ready(world, first)
        await world.pass_time(10)
        await make_ready(world, second)
        await world.settle()
        seen = []
        for _ in range(5):
            result = await status(world, REPLICA_SETS)
            seen.append((result.get("readyReplicas", 0), result.get("availableReplicas", 0)))
            await world.pass_time(10)

        assert seen == [(2, 0), (2, 0), (2, 1), (2, 2), (2, 2)]
        assert manager.delayed == 0


async def test_it_is_scaled(world: World) -> None:
    await replica_set(world, 2)
    async with world.controlled(replica_sets):
        await world.settle()
        for expected in (5, 1, 0, 2):
            await world.admin.patch(REPLICA_SETS, WEB, {"spec": {"replicas": expected}})
            await world.settle()
            assert len(await active(world)) == expected
            assert (await status(world, REPLICA_SETS))["replicas"] == expected


async def test_a_pod_that_is_deleted_is_replaced(world: World) -> None:
    await replica_set(world, 2)
    async with world.controlled(replica_sets):
        await world.settle()
        gone, stays = await pods(world)
        await world.admin.delete(PODS, key_of(gone), NOW)
        await world.settle()
        names = [pod["metadata"]["name"] for pod in await pods(world)]
        assert len(names) == 2
        assert stays["metadata"]["name"] in names

        await make_ready(world, stays, phase="Failed", ready=False)
        await world.settle()

    assert len(await pods(world)) == 3
    assert (await status(world, REPLICA_SETS))["replicas"] == 2


async def test_those_that_serve_least_go_first(world: World) -> None:
    await replica_set(world, 4)
    async with world.controlled(replica_sets):
        await world.settle()
        result = await pods(world)
        await make_ready(world, *result[:2])
        await make_ready(world, result[2], ready=False)
        await world.settle()
        await world.admin.patch(REPLICA_SETS, WEB, {"spec": {"replicas": 2}})
        await world.settle()

    left = [item["metadata"]["name"] for item in await active(world)]
    assert left == [item["metadata"]["name"] for item in result[:2]]
    results = [message for reason, message in await events(world) if reason == "SuccessfulDelete"]
    assert sorted(results) == sorted(f"Deleted pod: {p['metadata']['name']}" for p in result[2:])


async def test_it_adopts_pods_without_an_owner(world: World) -> None:
    await pod(world, "stray")
    await pod(world, "other", labels={"app": "db"})
    owner = await replica_set(world, 2)
    async with world.controlled(replica_sets):
        await world.settle()

    results = {pod["metadata"]["name"]: pod["metadata"] for pod in await pods(world)}
    assert len(results) == 3
    assert results["stray"]["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]
    assert "ownerReferences" not in results["other"]


async def test_it_deletes_adopted_pods_beyond_its_number(world: World) -> None:
    async with world.controlled(replica_sets):
        await replica_set(world, 1)
        await world.settle()
        await pod(world, "stray")
        await world.settle()

    assert len(await active(world)) == 1


async def test_it_lets_go_of_pods_that_no_longer_match(world: World) -> None:
    await replica_set(world, 2)
    async with world.controlled(replica_sets):
        await world.settle()
        first = (await pods(world))[0]
        await world.admin.patch(PODS, key_of(first), {"metadata": {"labels": {"app": "debug"}}})
        await world.settle()

    results = {pod["metadata"]["name"]: pod["metadata"] for pod in await pods(world)}
    assert len(results) == 3
    assert "ownerReferences" not in results[first["metadata"]["name"]]


async def test_two_do_not_fight_for_a_pod(world: World) -> None:
    await replica_set(world, 1, name="one")
    await replica_set(world, 1, name="two")
    async with world.controlled(replica_sets):
        await pod(world, "stray")
        await world.settle()

    assert len(await active(world)) == 2
    owners = [item["metadata"]["ownerReferences"] for item in await active(world)]
    assert sorted(refs[0]["name"] for refs in owners) == ["one", "two"]
    assert [len(refs) for refs in owners] == [1, 1]


async def test_one_that_is_deleted_makes_no_more_pods(world: World) -> None:
    await replica_set(world, 2, template=template())
    await world.admin.patch(REPLICA_SETS, WEB, {"metadata": {"finalizers": ["x.example/hold"]}})
    async with world.controlled(replica_sets):
        await world.settle()
        await world.admin.delete(REPLICA_SETS, WEB)
        for pod in await pods(world):
            await world.admin.delete(PODS, key_of(pod), NOW)
        await world.settle()

    assert await pods(world) == []
    assert (await status(world, REPLICA_SETS))["replicas"] == 0


async def test_what_cannot_be_created_is_reported(world: World) -> None:
    """The account that pods need is missing, and comes later."""
    await world.namespace("b")
    made = {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": template()}
    await world.create(REPLICA_SETS, "b", "web", spec=made)
    async with world.controlled(replica_sets):
        # The server itself waits a moment for it.
        await world.pass_time(2, step=0.5)
        set_ = await world.admin.get(REPLICA_SETS, Key("b", "web"))
        (reported,) = set_["status"]["conditions"]
        assert (reported["type"], reported["status"], reported["reason"]) == (
            "ReplicaFailure",
            "True",
            "FailedCreate",
        )
        assert "serviceaccount" in reported["message"]
        assert set_["status"]["replicas"] == 0

        accounts = REPLICA_SETS.__class__("", "v1", "serviceaccounts", "ServiceAccount", dict)
        await world.create(accounts, "b", "default")
        await world.pass_time(10)
        set_ = await world.admin.get(REPLICA_SETS, Key("b", "web"))

    assert "conditions" not in set_["status"]
    assert set_["status"]["replicas"] == 2


async def test_it_never_creates_or_deletes_too_many(world: World) -> None:
    """Events of pods come late, and the owner is looked at before."""
    made: list[ReplicaSetController] = []

    def recording(world: World, manager: Manager) -> ReplicaSetController:
        made.append(replica_sets(world, manager))
        return made[0]

    late = Late(world, "pods")
    async with world.controlled(recording):
        await world.settle()
        for before, expected in ((0, 20), (20, 5)):
            with late:
                if not before:
                    await replica_set(world, expected)
                else:
                    await world.admin.patch(REPLICA_SETS, WEB, {"spec": {"replicas": expected}})
                await world.settle()
                for number in range(3):
                    note = {"metadata": {"annotations": {"look": f"{expected} {number}"}}}
                    await world.admin.patch(REPLICA_SETS, WEB, note)
                    await world.pass_time(5)
                assert len(await active(world)) == expected
            await world.pass_time(10)
            assert len(await active(world)) == expected

    assert (await status(world, REPLICA_SETS))["replicas"] == 5
    assert len(made[0]._expectations) == 0


async def test_an_event_that_never_comes_is_not_waited_for_indefinitely(world: World) -> None:
    expectations = Expectations(world.clock)
    expectations.expect_creations("rs", 2)
    expectations.creation_observed("rs")

    assert expectations.timeout("rs") == TIMEOUT
    world.clock.advance(TIMEOUT - 1)
    assert expectations.timeout("rs") == 1
    world.clock.advance(1)
    assert expectations.timeout("rs") == 0
    assert len(expectations) == 0


async def scale_up(world: World) -> None:
    await world.admin.patch(REPLICA_SETS, WEB, {"spec": {"replicas": 4}})


async def add_stray(world: World) -> None:
    await pod(world, "stray")


async def lose_one(world: World) -> None:
    with suppress(NotFound):  # its owner may have had too many
        await world.admin.delete(PODS, Key("a", "first"), NOW)


@pytest.mark.parametrize("pauses", [True, False], ids=["one by one", "all at once"])
@pytest.mark.parametrize("start", range(4))
@pytest.mark.parametrize("steps", orders(scale_up, add_stray, lose_one))
async def test_every_order_ends_the_same(
    world: World, steps: tuple[Step, ...], start: int, pauses: bool
) -> None:
    await replica_set(world, 2)
    await pod(world, "first")

    await play(world, steps, replica_sets, start=start, pauses=pauses)

    result = await active(world)
    assert len(result) == 4
    assert all(item["metadata"]["ownerReferences"][0]["name"] == "web" for item in result)
    assert (await status(world, REPLICA_SETS))["replicas"] == 4


async def test_after_a_restart_nothing_is_done_twice(world: World) -> None:
    await replica_set(world, 3)
    async with world.controlled(replica_sets):
        await bring_up(world)
    revision = None
    for _ in permutations(range(2)):
        async with world.controlled(replica_sets):
            await world.settle()
            await bring_up(world)
        if revision is not None:
            assert world.store.revision == revision
        revision = world.store.revision
    assert len(await pods(world)) == 3
