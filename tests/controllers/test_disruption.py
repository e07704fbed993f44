"""Budgets allow as many evictions as the pods they count can bear."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from controllers.lifecycles import (
    BUDGETS,
    DEPLOYMENTS,
    LABELS,
    REPLICA_SETS,
    Late,
    active,
    bring_up,
    budgets,
    deployment,
    deployments,
    events,
    make_ready,
    open_namespace,
    pod,
    pods,
    replica_set,
    replica_sets,
    status,
)
from controllers.world import PODS, Obj, Step, World, orders
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.machinery.errors import TooManyRequests
from sully.machinery.formats.timestamps import format_time

WEB = Key("a", "web")


@pytest.fixture(autouse=True)
async def _namespace(world: World) -> None:
    await open_namespace(world)


async def budget(world: World, **spec: Any) -> Obj:
    made = {"selector": {"matchLabels": LABELS}} | spec
    return await world.create(BUDGETS, "a", "web", spec=made)


async def evict(world: World, chosen: Obj) -> None:
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": chosen["metadata"]["name"], "namespace": "a"},
    }
    await world.admin.create(PODS, body, "eviction")


async def numbers(world: World) -> tuple[int, int, int, int]:
    """Return how many are allowed, healthy, wanted healthy, expected."""
    result = await status(world, BUDGETS)
    names = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    return tuple(result[name] for name in names)


async def allowed(world: World) -> tuple[str, str, str]:
    (reported,) = (await status(world, BUDGETS))["conditions"]
    return reported["status"], reported["reason"], reported["message"]


async def test_pods_without_a_controller_count_for_a_number(world: World) -> None:
    for name in ("one", "two", "three"):
        await pod(world, name)
    await pod(world, "other", labels={"app": "db"})
    await budget(world, minAvailable=2)
    async with world.controlled(budgets):
        await world.settle()
        assert await numbers(world) == (0, 0, 2, 3)
        assert await allowed(world) == ("False", "InsufficientPods", "")

        await bring_up(world)
        assert await numbers(world) == (1, 3, 2, 3)
        assert await allowed(world) == ("True", "SufficientPods", "")

        (first, *_) = await pods(world)
        await make_ready(world, first, ready=False)
        await world.settle()
        assert await numbers(world) == (0, 2, 2, 3)

    assert (await status(world, BUDGETS))["observedGeneration"] == 1


async def test_a_change_of_the_budget_is_observed(world: World) -> None:
    await pod(world, "one")
    await budget(world, minAvailable=1)
    async with world.controlled(budgets):
        await bring_up(world)
        await world.admin.patch(BUDGETS, WEB, {"spec": {"minAvailable": 0}})
        await world.settle()

    result = await status(world, BUDGETS)
    assert (result["observedGeneration"], result["disruptionsAllowed"]) == (2, 1)
    assert [condition["observedGeneration"] for condition in result["conditions"]] == [2]


PARTS: dict[str, tuple[Obj, tuple[int, int, int, int]]] = {
    "at least half": ({"minAvailable": "50%"}, (2, 5, 3, 5)),
    "at most one away": ({"maxUnavailable": 1}, (1, 5, 4, 5)),
    "at most a third away": ({"maxUnavailable": "34%"}, (2, 5, 3, 5)),
    "nobody": ({"minAvailable": "100%"}, (0, 5, 5, 5)),
    "everybody": ({"maxUnavailable": "100%"}, (5, 5, 0, 5)),
    "more than there are": ({"minAvailable": 9}, (0, 5, 9, 5)),
}


@pytest.mark.parametrize("make", [replica_set, deployment], ids=["replica set", "deployment"])
@pytest.mark.parametrize(("spec", "want"), PARTS.values(), ids=PARTS.keys())
async def test_parts_are_of_what_the_controllers_ask_for(
    world: World,
    spec: Obj,
    want: tuple[int, int, int, int],
    make: Callable[[World, int], Awaitable[Obj]],
) -> None:
    await make(world, 5)
    await budget(world, **spec)
    async with world.controlled(deployments, replica_sets, budgets):
        await world.settle()
        await bring_up(world)

        assert await numbers(world) == want


async def test_parts_follow_the_size_that_is_asked_for(world: World) -> None:
    """Not the pods that there are: those are too few while they come up."""
    await deployment(world, 4)
    await budget(world, maxUnavailable="50%")
    async with world.controlled(deployments, replica_sets, budgets):
        await world.settle()
        await bring_up(world)
        await world.admin.patch(DEPLOYMENTS, WEB, {"spec": {"replicas": 10}})
        await world.settle()

        assert await numbers(world) == (0, 4, 5, 10)


async def test_a_part_of_what_nobody_decides_about_is_none(world: World) -> None:
    await pod(world, "one")
    await budget(world, maxUnavailable="50%")
    async with world.controlled(budgets):
        await bring_up(world)

        assert await numbers(world) == (0, 1, 0, 0)
    (reported,) = {reason for reason, _ in await events(world)}
    assert reported == "UnmanagedPods"


async def test_a_size_that_cannot_be_known_allows_nothing(world: World) -> None:
    strange = {
        "apiVersion": "x.example/v1",
        "kind": "Fleet",
        "name": "f",
        "uid": "11111111-1111-1111-1111-111111111111",
        "controller": True,
    }
    await pod(world, "one", ownerReferences=[strange])
    await budget(world, maxUnavailable=1)
    async with world.controlled(budgets) as manager:
        await bring_up(world)
        assert await allowed(world) == (
            "False",
            "SyncFailed",
            'found no controllers for pod "one"',
        )
        assert manager.delayed == 0
        with pytest.raises(TooManyRequests):
            await evict(world, (await pods(world))[0])

        await world.admin.patch(PODS, Key("a", "one"), {"metadata": {"ownerReferences": None}})
        await world.admin.patch(BUDGETS, WEB, {"spec": {"maxUnavailable": None, "minAvailable": 0}})
        await world.settle()
        assert await numbers(world) == (1, 1, 0, 1)


async def test_a_budget_for_no_pods_allows_nothing(world: World) -> None:
    await budget(world, minAvailable=0)
    async with world.controlled(budgets):
        await world.settle()
        assert await numbers(world) == (0, 0, 0, 0)

    assert await events(world) == [("NoPods", "No matching pods found")]


async def test_a_budget_is_spent_and_refilled(world: World) -> None:
    """As `kubectl drain` does it: one pod after the other, again when refused."""
    await deployment(world, 3)
    await budget(world, minAvailable=2)
    async with world.controlled(deployments, replica_sets, budgets):
        await world.settle()
        await bring_up(world)
        waiting = {item["metadata"]["name"]: item for item in await active(world)}
        refused = 0
        for _ in range(20):
            for name, entry in list(waiting.items()):
                try:
                    await evict(world, entry)
                    del waiting[name]
                except TooManyRequests:
                    refused += 1
            await world.settle()
            ready = [one for one in await active(world) if one["status"]["phase"] == "Running"]
            assert len(ready) >= 2
            await bring_up(world)
            if not waiting:
                break

        assert waiting == {}
        assert refused == 3
        assert await numbers(world) == (1, 3, 2, 3)
    assert (await status(world, BUDGETS)).get("disruptedPods") is None


async def test_two_evictions_together_do_not_both_pass(world: World) -> None:
    for name in ("one", "two"):
        await pod(world, name)
    await budget(world, minAvailable=1)
    async with world.controlled(budgets):
        await bring_up(world)
        first, second = await pods(world)
        await evict(world, first)
        with pytest.raises(TooManyRequests):  # nobody has counted again yet
            await evict(world, second)
        await world.settle()

        assert await numbers(world) == (0, 1, 1, 1)


async def test_a_pod_that_does_not_go_counts_again(world: World) -> None:
    await pod(world, "one")
    await pod(world, "two")
    await budget(world, minAvailable=1)
    async with world.controlled(budgets) as manager:
        await bring_up(world)
        spent = {
            "disruptionsAllowed": 0,
            "disruptedPods": {"one": format_time(world.clock.now())},
        }
        await world.admin.patch(BUDGETS, WEB, {"status": spent}, subresource="status")
        await world.settle()
        assert await numbers(world) == (0, 1, 1, 2)
        await world.pass_time(115)
        assert await numbers(world) == (0, 1, 1, 2)
        await world.pass_time(10)
        assert await numbers(world) == (1, 2, 1, 2)
        assert manager.delayed == 0

    assert (await status(world, BUDGETS)).get("disruptedPods") is None
    assert await events(world, "Pod") == [
        ("NotDeleted", "Pod was expected by PDB a/web to be deleted but it wasn't")
    ]


async def test_what_others_wrote_into_its_status_does_no_harm(world: World) -> None:
    await pod(world, "one")
    await budget(world, minAvailable=0)
    odd = {
        "type": "Odd",
        "status": "True",
        "reason": "Odd",
        "message": "",
        "lastTransitionTime": "2021-01-01T00:00:00Z",
    }
    strange = {"conditions": [odd], "disruptedPods": {"one": None}}
    await world.admin.patch(BUDGETS, WEB, {"status": strange}, subresource="status")
    async with world.controlled(budgets):
        await bring_up(world)

        assert await numbers(world) == (1, 1, 0, 1)
    types = [condition["type"] for condition in (await status(world, BUDGETS))["conditions"]]
    assert types == ["Odd", "DisruptionAllowed"]


async def test_what_did_not_change_is_not_written(world: World) -> None:
    await pod(world, "one")
    await budget(world, minAvailable=1)
    async with world.controlled(budgets):
        await bring_up(world)
        before = world.store.revision
        await world.admin.patch(PODS, Key("a", "one"), {"metadata": {"annotations": {"a": "b"}}})
        await world.settle()
        assert world.store.revision == before + 1


LATE = ("pods", "replicasets", "deployments", "poddisruptionbudgets")


@pytest.mark.parametrize("make", [replica_set, deployment], ids=["replica set", "deployment"])
@pytest.mark.parametrize("plural", LATE)
async def test_events_may_come_in_any_order(
    world: World, plural: str, make: Callable[[World, int], Awaitable[Obj]]
) -> None:
    late = Late(world, plural)
    await make(world, 4)
    await budget(world, maxUnavailable="50%")
    async with world.controlled(deployments, replica_sets):
        await world.settle()
        await bring_up(world)
    async with world.controlled(budgets):
        await world.settle()
        assert await numbers(world) == (2, 4, 2, 4)
        with late:
            for kind in (DEPLOYMENTS, REPLICA_SETS):
                for item in (await world.admin.list(kind, "a")).items:
                    await world.admin.patch(kind, key_of(item), {"spec": {"replicas": 6}})
            await make_ready(world, (await pods(world))[0], ready=False)
            await world.admin.patch(BUDGETS, WEB, {"spec": {"maxUnavailable": "70%"}})
            await world.settle()
        await world.pass_time(10)

        assert await numbers(world) == (2, 3, 1, 6)


async def make_budget(world: World) -> None:
    await budget(world, maxUnavailable="50%")


async def make_owner(world: World) -> None:
    await replica_set(world, 4)


async def make_free_pod(world: World) -> None:
    await pod(world, "free")


@pytest.mark.parametrize("pauses", [True, False], ids=["one by one", "all at once"])
@pytest.mark.parametrize("steps", orders(make_budget, make_owner, make_free_pod))
async def test_every_order_ends_the_same(
    world: World, steps: tuple[Step, ...], pauses: bool
) -> None:
    async with world.controlled(budgets, replica_sets):
        for step in steps:
            await step(world)
            if pauses:
                await world.settle()
        await world.settle()
        await bring_up(world)
        await world.pass_time(10)

        assert await numbers(world) == (2, 4, 2, 4)
        assert await allowed(world) == ("True", "SufficientPods", "")
        assert (await status(world, REPLICA_SETS))["replicas"] == 4
