"""Health becomes taints (checklist R1, R2)."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from controllers.clusters.hubbing import (
    CLUSTERS,
    UNAVAILABLE,
    UNREACHABLE,
    HubWorld,
    joined,
)
from sully.client.transport import Key
from sully.controllers.clusters.names import TAINT_CONTROLLER

DOWN, GONE = f"{UNAVAILABLE}:NoSelect", f"{UNREACHABLE}:NoSelect"
CASES = {
    "R1 available": ("True", []),
    "R1 not available": ("False", [DOWN]),
    "R1 unknown": ("Unknown", [GONE]),
    "R1 no condition": ("", [GONE]),
}


@pytest.mark.parametrize(("status", "want"), CASES.values(), ids=CASES)
async def test_health(hub: HubWorld, status: str, want: list[str]) -> None:
    async with hub.hub():
        await hub.register("c1")
        if status:
            await hub.report("c1", status)

        assert await hub.taints("c1") == want


async def test_r1_a_cluster_that_is_gone_is_not_written(hub: HubWorld) -> None:
    async with hub.hub():
        await joined(hub)
        await hub.report("c1", "False")
        # Both together: who wakes for the event finds nothing any more.
        await hub.admin.patch(CLUSTERS, Key("", "c1"), {"metadata": {"finalizers": None}})
        await hub.admin.delete(CLUSTERS, Key("", "c1"))
        with capture_logs() as lines:
            await hub.calm()

        assert await hub.there(CLUSTERS, "", "c1") is None
        assert [line for line in lines if line.get("controller") == TAINT_CONTROLLER] == []


async def test_r2_a_cluster_from_its_registration_until_it_is_unreachable(hub: HubWorld) -> None:
    async with hub.hub():
        await hub.register("c1", leaseDurationSeconds=1)
        assert await hub.taints("c1") == [GONE]
        await hub.renew("c1")
        await hub.report("c1", "True")
        assert await hub.taints("c1") == []
        await hub.report("c1", "False")
        assert await hub.taints("c1") == [DOWN]

        await hub.pass_time(5)
        await hub.calm()

        assert await hub.taints("c1") == [GONE]


async def test_a_cluster_that_is_not_accepted_is_unreachable(hub: HubWorld) -> None:
    async with hub.hub():
        await hub.register("c1", accepted=False)

        assert await hub.taints("c1") == [GONE]


async def test_other_taints_stay_in_their_order_with_their_times(hub: HubWorld) -> None:
    mine = [{"key": "b", "effect": "NoSelect"}, {"key": "a", "value": "1", "effect": "NoSelect"}]
    async with hub.hub():
        await joined(hub, taints=mine)
        before = (await hub.cluster("c1"))["spec"]["taints"]
        await hub.pass_time(60)

        await hub.report("c1", "False")
        assert await hub.taints("c1") == ["b:NoSelect", "a=1:NoSelect", DOWN]
        await hub.renew("c1")
        await hub.report("c1", "True")

        assert (await hub.cluster("c1"))["spec"]["taints"] == before


async def test_one_health_taint_keeps_the_clock_of_the_other(hub: HubWorld) -> None:
    async with hub.hub():
        await joined(hub)
        await hub.report("c1", "False")
        (first,) = (await hub.cluster("c1"))["spec"]["taints"]
        await hub.pass_time(30)

        await hub.report("c1", "Unknown")

        (second,) = (await hub.cluster("c1"))["spec"]["taints"]
        assert second["key"] != first["key"]
        # OCM restarts it.
        assert (second["timeAdded"] == first["timeAdded"]) is not hub.strict


async def test_what_is_changed_by_hand_is_restored(hub: HubWorld) -> None:
    async with hub.hub():
        await joined(hub)

        await hub.change("c1", taints=[{"key": UNREACHABLE, "effect": "NoSelect"}])
        assert await hub.taints("c1") == []
        await hub.report("c1", "False")
        await hub.change("c1", taints=None)

        assert await hub.taints("c1") == [DOWN]


async def test_a_taint_of_the_same_key_but_another_effect_is_another_users(hub: HubWorld) -> None:
    async with hub.hub():
        await joined(hub)

        await hub.change("c1", taints=[{"key": UNREACHABLE, "effect": "NoSelectIfNew"}])

        assert await hub.taints("c1") == [f"{UNREACHABLE}:NoSelectIfNew"]


async def test_a_cluster_that_is_deleted_is_left_alone(hub: HubWorld) -> None:
    async with hub.hub():
        await joined(hub, metadata={"finalizers": ["example.com/hold"]})
        await hub.admin.delete(CLUSTERS, Key("", "c1"))
        await hub.calm()

        await hub.report("c1", "False")

        assert await hub.taints("c1") == []
