"""Maintenances on a server: devices are closed, drained and given back, whoever is restarted."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from controllers.devicemaintenances.working import (
    FIRMWARE,
    MAINTENANCES,
    NAMESPACE,
    RULES,
    SLICES,
    approve,
    change,
    effects,
    fleet,
    phases,
    plan,
    ready,
    status,
    use,
    working,
)
from controllers.world import PODS, Obj, World
from manifests import DRIVER, budget
from sully.client.events import EVENTS
from sully.client.informers.informer import Informer
from sully.client.transport import Key, Kind
from sully.runtime.clock import Moment
from sully.views.snapshot.kinds import PODS as TYPED_PODS

BUDGETS: Kind[Obj] = Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", dict)
FIRST, SECOND = "node-1/gpu-0", "node-2/gpu-0"


async def condition(world: World, type_: str) -> tuple[str, str, str]:
    conditions = (await status(world))["conditions"]
    one = next(one for one in conditions if one["type"] == f"sully.dev/{type_}")
    return one["status"], one["reason"], one["message"]


async def test_closed_drained_and_given_back_one_after_the_other(world: World) -> None:
    await fleet(world, "node-1", "node-2")
    for number in (1, 2):
        await use(world, f"p-{number}", f"node-{number}")
    start = await plan(world)
    async with working(world) as done:
        await world.pass_time(29)
        assert await effects(world) == {}
        await world.pass_time(1)
        assert await effects(world) == {FIRST: "NoSchedule"}
        await world.pass_time(29)
        assert done.evicted == []
        await world.pass_time(2, step=1)
        assert await effects(world) == {SECOND: "NoSchedule"}
        await world.pass_time(40)
        assert await effects(world) == {}
    # The second one has its lead time, too.
    assert [name for name, _ in done.evicted] == ["p-1", "p-2"]
    assert done.evicted[0][1] >= start
    assert (done.evicted[1][1] - done.evicted[0][1]).total_seconds() >= 30
    assert (await status(world))["phase"] == "Completed"
    assert (await condition(world, "Complete"))[0] == "True"
    reasons = [event["reason"] for event in (await world.admin.list(EVENTS)).items]
    results = ["Closed", "Draining", "Evicted", "GivenBack"]
    assert sorted(reasons) == sorted([*results, *results, "Running", "Completed"])


async def test_the_rule_names_device_maintenance_and_reason(world: World) -> None:
    await fleet(world, "node-1")
    await plan(world, duration="4h", reason="firmware 4.2")
    async with working(world):
        await world.pass_time(30)
    (rule,) = (await world.admin.list(RULES)).items
    stored = await world.admin.get(MAINTENANCES, FIRMWARE)

    assert rule["spec"]["deviceSelector"] == {
        "driver": DRIVER,
        "pool": "node-1",
        "device": "gpu-0",
    }
    assert rule["metadata"]["labels"] == {"sully.dev/maintenance": "firmware"}
    (owner,) = rule["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("DeviceMaintenance", stored["metadata"]["uid"])
    annotations = rule["metadata"]["annotations"]
    assert annotations["sully.dev/maintenance-name"] == "firmware"
    assert annotations["sully.dev/description"] == "firmware 4.2"
    assert "sully.dev/maintenance-end" in annotations


async def test_a_node_at_a_time_with_work_and_proof(world: World) -> None:
    await fleet(world, "node-1", "node-2", gpus=2)
    await plan(
        world,
        rolling={"by": "Node", "waitForReady": "0s"},
        hook={"type": "Approval"},
        proof={"type": "Manual"},
    )
    async with working(world):
        await world.pass_time(61)
        assert await phases(world) == {"node-1": "AwaitingApproval"}
        assert await effects(world) == {FIRST: "NoSchedule", "node-1/gpu-1": "NoSchedule"}
        await ready(world, "node-1", "False")
        await approve(world, "node-1")
        await world.settle()
        assert await phases(world) == {"node-1": "AwaitingReady"}
        # As if it rebooted.
        body = await world.admin.get(SLICES, Key("", "node-1-gpus"))
        await world.admin.delete(SLICES, Key("", "node-1-gpus"))
        await ready(world, "node-1")
        await world.settle()
        assert (await status(world))["units"][0]["message"].endswith("gpu-0 is not published")
        metadata = {"name": "node-1-gpus"}
        await world.admin.create(SLICES, body | {"metadata": metadata})
        await world.settle()
        assert await phases(world) == {"node-1": "AwaitingProof"}
        await approve(world, "node-1")
        await world.settle()
        assert (await status(world))["finished"] == ["node-1"]
        assert await effects(world) == {SECOND: "NoSchedule", "node-2/gpu-1": "NoSchedule"}


async def test_a_budget_blocks_until_the_deadline(world: World) -> None:
    await fleet(world, "node-1")
    await use(world, "p-1", "node-1")
    await world.create(BUDGETS, NAMESPACE, "web", spec=budget("web", 1, app="web")["spec"])
    await plan(world, drain={"timeout": "60s", "then": "NoExecute"})
    async with working(world) as done:
        await world.pass_time(65)
        assert await phases(world) == {FIRST: "Draining"}
        assert "disruption budget" in (await status(world))["units"][0]["message"]
        await world.pass_time(50)
        assert await effects(world) == {FIRST: "NoSchedule"}
        await world.pass_time(10)
        assert await effects(world) == {FIRST: "NoExecute"}
        await change(world, paused=True)
        await world.settle()
        assert await effects(world) == {FIRST: "NoSchedule"}
        await change(world, paused=False)
        await world.settle()
        assert await effects(world) == {FIRST: "NoExecute"}
        # As the eviction controller does.
        await world.admin.delete(PODS, Key(NAMESPACE, "p-1"))
        await world.pass_time(5)
        assert (await status(world))["phase"] == "Completed"
    assert done.evicted == []


async def test_a_pause_and_a_cancellation_evict_nobody(world: World) -> None:
    await fleet(world, "node-1", "node-2")
    for number in (1, 2):
        await use(world, f"p-{number}", f"node-{number}")
    await plan(world, rolling={"maxUnavailable": 2, "waitForReady": "0s"}, drain={"rate": "1/m"})
    async with working(world) as done:
        await world.pass_time(65)
        assert len(done.evicted) == 1
        await change(world, paused=True)
        await world.pass_time(300)
        assert len(done.evicted) == 1
        assert (await status(world))["phase"] == "Paused"
        await change(world, cancelled=True)
        await world.pass_time(300)
    assert len(done.evicted) == 1
    assert await effects(world) == {}
    assert (await status(world))["phase"] == "Cancelled"


async def test_stale_caches_evict_nobody_and_begin_no_work(world: World) -> None:
    await fleet(world, "node-1", "node-2")
    await use(world, "p-1", "node-1")
    rolling = {"maxUnavailable": 2, "waitForReady": "0s"}
    await plan(world, rolling=rolling, hook={"type": "Approval"})
    # It is never listed.
    stale = Informer(world.transport("stale"), TYPED_PODS, clock=world.clock)
    async with working(world, None, stale) as done:
        await world.pass_time(300)
        assert done.evicted == []
        assert await phases(world) == {FIRST: "Draining", SECOND: "Draining"}
        stale.freshness.confirmed(Moment.of(world.clock))
        await world.settle()
        assert [name for name, _ in done.evicted] == ["p-1"]
        await world.pass_time(5)
        assert set((await phases(world)).values()) == {"AwaitingApproval"}


@pytest.mark.parametrize("spec", [{"paused": True}, {"cancelled": True}])
async def test_a_pause_between_two_evictions_stops_the_rest(world: World, spec: Obj) -> None:
    await fleet(world, "node-1", gpus=3)
    for number in range(3):
        await use(world, f"p-{number}", "node-1", number)
    rolling = {"maxUnavailable": "100%", "waitForReady": "0s"}
    await plan(world, rolling=rolling, drain={"rate": "1000/s", "burst": 3})

    async def stop() -> None:
        await change(world, **spec)
        await world.settle()

    async with working(world) as done:
        done.after_eviction = stop
        await world.pass_time(120)
    assert len(done.evicted) == 1


async def test_the_rate_is_that_of_all_devices(world: World) -> None:
    await fleet(world, "node-1", gpus=4)
    for number in range(4):
        await use(world, f"p-{number}", "node-1", number)
    rolling = {"maxUnavailable": "100%", "waitForReady": "0s"}
    await plan(world, rolling=rolling, drain={"rate": "1/m"})
    async with working(world) as done:
        await world.pass_time(300)
    times = [time for _, time in done.evicted]
    assert len(times) == 4
    gaps = [(later - time).total_seconds() for time, later in pairwise(times)]
    assert min(gaps) >= 60


@pytest.mark.parametrize(("force", "evicted"), [(False, []), (True, ["alone"])])
async def test_who_would_not_be_recreated(world: World, force: bool, evicted: list[str]) -> None:
    await fleet(world, "node-1")
    await use(world, "alone", "node-1", owner="")
    await plan(world, drain={"force": force})
    async with working(world) as done:
        await world.pass_time(120)
        assert [name for name, _ in done.evicted] == evicted
        if not force:
            text = "pods without a controller are not evicted: default/alone"
            assert text in (await status(world))["units"][0]["message"]


async def test_a_typo_selects_nothing_and_reports_it(world: World) -> None:
    await fleet(world, "node-1")
    await plan(world, selector={"driver": "gpu.exmaple.com"})
    async with working(world):
        await world.pass_time(120)
    result = await condition(world, "Applied")
    assert result[:2] == ("False", "NoDeviceSelected")
    assert await effects(world) == {}


async def test_a_drain_that_stops_is_tried_again(world: World) -> None:
    await fleet(world, "node-1")
    await use(world, "p-1", "node-1")
    await plan(world, rolling={"waitForReady": "60s"})
    async with working(world):
        await world.pass_time(70)
        assert await phases(world) == {FIRST: "Draining"}
        await world.pass_time(60)
        assert await phases(world) == {FIRST: "Failed"}
        text = (await status(world))["units"][0]["message"]
        assert "ReplicaSet default/web did not recreate an evicted pod" in text
        assert (await condition(world, "Failed"))[0] == "True"
        await approve(world, FIRST)
        await world.pass_time(5)
        assert (await status(world))["phase"] == "Completed"


async def test_a_deleted_maintenance_is_left_alone(world: World) -> None:
    await fleet(world, "node-1")
    await plan(world)
    async with working(world):
        await world.pass_time(40)
        await world.admin.delete(MAINTENANCES, FIRMWARE)
        await world.pass_time(60)
    # Garbage collection deletes its rule; no other is created.
    assert len((await world.admin.list(RULES)).items) == 1


async def _story(world: World, writes: int | None) -> tuple[bool, list[Any], int]:
    """Work on two devices; the controller dies after so many writes, and another continues."""
    await fleet(world, "node-1", "node-2")
    for number in (1, 2):
        await use(world, f"p-{number}", f"node-{number}")
    await plan(world, hook={"type": "Approval"}, drain={"rate": "1/10s"})
    evicted: list[Any] = []
    most, died = 0, False
    for limit in (writes, None):
        async with working(world, limit) as done:
            for _ in range(60):
                await world.pass_time(5)
                for name, phase in (await phases(world)).items():
                    if phase == "AwaitingApproval" and not done.dead:
                        await approve(world, name)
                if done.dead or (await status(world)).get("phase") == "Completed":
                    break
        evicted += done.evicted
        most, died = max(most, done.most_rules), died or done.dead
        if not done.dead:
            break
    return died, evicted, most


@pytest.mark.slow
async def test_a_restart_between_any_two_writes() -> None:
    writes, died = 0, True
    while died:
        world = World()
        start = world.clock.now()
        died, evicted, most = await _story(world, writes)
        context = f"after {writes} writes"
        assert (await status(world)).get("phase") == "Completed", context
        assert (await status(world))["finished"] == [f"{DRIVER}/{FIRST}", f"{DRIVER}/{SECOND}"]
        assert await effects(world) == {}, context
        assert most == 1, context
        assert [name for name, _ in evicted] == ["p-1", "p-2"], context
        assert all((time - start).total_seconds() >= 59 for _, time in evicted), context
        writes += 1
    assert writes > 10
