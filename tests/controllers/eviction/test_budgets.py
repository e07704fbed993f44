"""NoExecuteWithPodDisruptionBudget: pods are evicted as their budgets allow."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from controllers.eviction.evicting import (
    Evicting,
    conditions,
    event_messages,
    fate,
    for_seconds,
    holder,
    holders,
    left,
    prepare,
    records,
    rule,
    status,
)
from controllers.world import PODS, Obj, World
from sully.client.transport import Key, Kind
from sully.domain.eviction.status import EVICTED
from sully.machinery.gates import Gates

BUDGETS: Kind[Obj] = Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", dict)
EFFECT = "NoExecuteWithPodDisruptionBudget"
ON = {"SullyNoExecuteWithPodDisruptionBudget": True}
POD = Key("a", "p")


@pytest.fixture
def world() -> World:
    return World(gates=Gates(ON))


async def running(world: World, *names: str) -> None:
    ready = {"type": "Ready", "status": "True"}
    for name in names:
        change = {"status": {"phase": "Running", "conditions": [ready]}}
        await world.admin.patch(PODS, Key("a", name), change, subresource="status")


async def budget(world: World, allowed: int, name: str = "b", **labels: str) -> None:
    """Make a budget for all pods or some, as its controller would have counted it."""
    spec = {"selector": {"matchLabels": labels} if labels else {}, "minAvailable": 1}
    await world.create(BUDGETS, "a", name, spec=spec)
    await allow(world, allowed, name)


async def allow(world: World, allowed: int, name: str = "b", *, healthy: int = 5) -> None:
    budget = await world.admin.get(BUDGETS, Key("a", name))
    budget["status"] = {
        "observedGeneration": budget["metadata"]["generation"],
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": 1,
        "expectedPods": 5,
    }
    await world.admin.update(BUDGETS, budget, "status")


async def guarded_pod(world: World) -> None:
    """Make a pod `p` that holds a device, and a budget that does not let it go."""
    await prepare(world)
    await holder(world, "p")
    await running(world, "p")
    await budget(world, 0)


async def test_without_budgets_pods_are_evicted_through_the_eviction_endpoint(world: World) -> None:
    evicting = Evicting(gates=ON)
    await prepare(world)
    await holder(world, "p")
    await running(world, "p")
    async with world.controlled(evicting.make()):
        await world.settle()
        await rule(world, EFFECT)
        await world.settle()
        assert await status(world) == (
            "True",
            "PodsPendingEviction",
            "1 pod needs to be evicted in 1 namespace.",
        )
        await world.pass_time(2)

        assert (await status(world))[1] == "Completed"
        assert (await conditions(world))[EVICTED]["message"] == "1 pod evicted."
    assert evicting.calls() == ["get", "evict", "evict"]
    pod = await world.admin.get(PODS, POD)
    (mark,) = [
        condition
        for condition in pod["status"]["conditions"]
        if condition["type"] == "DisruptionTarget"
    ]
    assert mark["reason"] == "EvictionByEvictionAPI"
    assert len(await records(world)) == 1


async def test_a_budget_lets_go_as_many_as_it_allows(world: World) -> None:
    await prepare(world)
    await holders(world, 5)
    await running(world, *(f"p-{index}" for index in range(5)))
    await budget(world, 2)
    async with world.controlled(Evicting(gates=ON).make()):
        await rule(world, EFFECT)
        await world.pass_time(10, step=0.5)
        assert len(await left(world)) == 2
        assert len(await records(world)) == 2
        assert (await status(world))[2].startswith("3 pods need to be evicted in 1 namespace.")
        await allow(world, 3)
        await world.pass_time(31)

        assert len(await left(world)) == 5
        assert (await status(world))[1] == "Completed"


async def test_those_who_wait_go_as_soon_as_there_is_room(world: World) -> None:
    """Whoever came first, as many as may: nobody else asks."""
    evicting = Evicting(gates=ON)
    await prepare(world)
    await holders(world, 5)
    await running(world, *(f"p-{index}" for index in range(5)))
    await budget(world, 0)
    async with world.controlled(evicting.make()):
        await rule(world, EFFECT)
        await world.pass_time(100, step=1)
        assert await left(world) == []
        asked = evicting.calls().count("evict")
        await allow(world, 2)
        await world.settle()

        assert await left(world) == ["p-0", "p-1"]
        # To look whether they may, and to go.
        assert evicting.calls().count("evict") == asked + 4


async def test_who_is_not_ready_is_evicted_as_soon_as_the_others_suffice(world: World) -> None:
    await guarded_pod(world)
    unready = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    await world.admin.patch(PODS, POD, unready, subresource="status")
    await allow(world, 0, healthy=0)
    async with world.controlled(Evicting(gates=ON).make()):
        await rule(world, EFFECT)
        await world.pass_time(100, step=1)
        assert await fate(world, "p") == "stays"
        await allow(world, 0, healthy=1)
        await world.settle()

        assert await fate(world, "p") == "evicted"


async def test_without_their_budget_all_go_immediately(world: World) -> None:
    await guarded_pod(world)
    async with world.controlled(Evicting(gates=ON).make()):
        await rule(world, EFFECT)
        await world.pass_time(100, step=1)
        await world.admin.delete(BUDGETS, Key("a", "b"))
        await world.settle()

        assert await fate(world, "p") == "evicted"


async def forget(world: World) -> None:
    await world.admin.delete(BUDGETS, Key("a", "two"))


async def retarget(world: World) -> None:
    """Have the second budget choose others, counted again."""
    change = {"spec": {"selector": {"matchLabels": {"x": "y"}}}}
    await world.admin.patch(BUDGETS, Key("a", "two"), change)
    await allow(world, 1, "two")


ONE_REMAINS = {"the other is deleted": forget, "the other chooses others": retarget}


@pytest.mark.parametrize("change", ONE_REMAINS.values(), ids=ONE_REMAINS.keys())
async def test_a_pod_under_two_budgets_is_evicted_as_soon_as_one_remains(
    world: World, change: Callable[[World], Awaitable[None]]
) -> None:
    """As the server has it, such a pod cannot be evicted, whatever both allow."""
    evicting = Evicting(gates=ON)
    await guarded_pod(world)
    await allow(world, 1)
    await budget(world, 1, "two")
    async with world.controlled(evicting.make()):
        await rule(world, EFFECT)
        await world.pass_time(300, step=2)
        assert await fate(world, "p") == "stays"
        # It asks as rarely as others that a budget keeps.
        assert evicting.calls().count("evict") < 12
        await change(world)
        await world.settle()

        assert await fate(world, "p") == "evicted"


async def test_a_pod_under_two_budgets_uses_no_disruption_of_either(world: World) -> None:
    await prepare(world)
    await holder(world, "p-0", "gpu-0", labels={"double": "yes"})
    await holder(world, "p-1", "gpu-1")
    await running(world, "p-0", "p-1")
    await budget(world, 0)
    await budget(world, 1, "two", double="yes")
    async with world.controlled(Evicting(gates=ON).make()):
        await rule(world, EFFECT)
        await world.pass_time(100, step=1)
        await allow(world, 1)
        await world.settle()

        assert await left(world) == ["p-1"]


async def test_a_budget_holds_nobody_beyond_a_taint_that_needs_none(world: World) -> None:
    """A pod that tolerates a plain taint for a while asks its budget only as long as that."""
    await prepare(world)
    await holder(world, "p", tolerations=(for_seconds(100, effect="NoExecute"),))
    await running(world, "p")
    await budget(world, 0)
    async with world.controlled(Evicting(gates=ON).make()):
        await rule(world, EFFECT)
        await rule(world, name="hard")
        await world.pass_time(99, step=1)
        assert await fate(world, "p") == "stays"
        await world.pass_time(1)

    assert await fate(world, "p") == "evicted"


async def test_a_pod_that_must_stay_is_not_marked_and_nothing_is_reported(world: World) -> None:
    await guarded_pod(world)
    async with world.controlled(Evicting(gates=ON).make()):
        await rule(world, EFFECT)
        await world.pass_time(60)

    pod = await world.admin.get(PODS, POD)
    assert {condition["type"] for condition in pod["status"]["conditions"]} == {"Ready"}
    assert await event_messages(world) == []
    assert await records(world) == []


async def test_asking_again_becomes_rarer_but_never_stops(world: World) -> None:
    evicting = Evicting(gates=ON)
    await guarded_pod(world)
    async with world.controlled(evicting.make()):
        await rule(world, EFFECT)
        await world.pass_time(61, step=0.5)
        asked = evicting.calls().count("evict")
        assert 5 < asked < 10
        await world.pass_time(1200, step=20)

    assert 3 < evicting.calls().count("evict") - asked < 8


async def test_a_plain_taint_beside_it_needs_no_budget(world: World) -> None:
    await guarded_pod(world)
    async with world.controlled(Evicting(gates=ON).make()):
        await rule(world, EFFECT)
        await world.pass_time(3)
        assert await fate(world, "p") == "stays"
        await rule(world, name="hard")
        await world.settle()

    assert await fate(world, "p") == "evicted"


TOLERATIONS = {
    "its own name": (for_seconds(effect=EFFECT), "stays"),
    "every effect": (for_seconds(effect=""), "stays"),
    "another effect": (for_seconds(effect="NoExecute"), "evicted"),
}


@pytest.mark.parametrize(("toleration", "want"), TOLERATIONS.values(), ids=TOLERATIONS.keys())
async def test_what_tolerates_it(world: World, toleration: Obj, want: str) -> None:
    await prepare(world)
    await holder(world, "p", tolerations=(toleration,))
    async with world.controlled(Evicting(gates=ON).make()):
        await rule(world, EFFECT)
        await world.pass_time(5)

    assert await fate(world, "p") == want


async def test_it_honours_seconds(world: World) -> None:
    await prepare(world)
    await holder(world, "p", tolerations=(for_seconds(60, effect=EFFECT),))
    async with world.controlled(Evicting(gates=ON).make()):
        await rule(world, EFFECT)
        await world.pass_time(59)
        assert await fate(world, "p") == "stays"
        await world.pass_time(1)

    assert await fate(world, "p") == "evicted"


@pytest.mark.parametrize("strict", [False, True], ids=["gate off", "strict"])
async def test_where_it_is_off_it_does_nothing(world: World, strict: bool) -> None:
    await prepare(world)
    await holder(world, "p")
    async with world.controlled(Evicting(strict=strict).make()):
        await rule(world, EFFECT)
        await world.pass_time(20)

        assert await fate(world, "p") == "stays"
        assert (await status(world))[1] == "OtherEffect"
