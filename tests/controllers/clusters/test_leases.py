"""Detects agents that do not renew their leases (checklist R3, R4, R5), clocks compared (R6)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from controllers.broken_transport import BreakableTransport
from controllers.clusters.hubbing import (
    AVAILABLE,
    CLOCK,
    CLUSTERS,
    LEASES,
    UNREACHABLE,
    HubWorld,
    joined,
)
from sully.client.transport import Key
from sully.controllers.framework.kinds import CLUSTER_LEASE

GRACE = timedelta(seconds=300)
MOMENT = timedelta(milliseconds=1)
STOPPED = (
    "Unknown",
    "ManagedClusterLeaseUpdateStopped",
    "Registration agent stopped updating its lease.",
)


async def test_r3_never_accepted_no_lease(hub: HubWorld) -> None:
    async with hub.hub():
        await hub.namespace("c1")
        await hub.register("c1", accepted=False)

        assert await hub.there(LEASES, "c1", CLUSTER_LEASE) is None


async def test_r3_accepted_gets_a_lease(hub: HubWorld) -> None:
    async with hub.hub():
        await hub.register("c1")

        lease = await hub.there(LEASES, "c1", CLUSTER_LEASE)

        assert lease is not None
        assert lease["metadata"]["labels"] == {"open-cluster-management.io/cluster-name": "c1"}
        assert lease["spec"]["holderIdentity"] == "managed-cluster-lease"
        assert "renewTime" in lease["spec"]


async def test_r3_denied_is_still_watched(hub: HubWorld) -> None:
    async with hub.hub():
        await joined(hub)
        renewed = await hub.renew("c1")
        await hub.change("c1", hubAcceptsClient=False)

        await hub.until(renewed + GRACE)

        assert await hub.condition("c1", AVAILABLE) == STOPPED


async def test_r3_r4_a_lease_that_is_not_renewed_is_noticed_exactly_in_time(hub: HubWorld) -> None:
    async with hub.hub():
        await joined(hub)
        renewed = await hub.renew("c1")

        await hub.until(renewed + GRACE - MOMENT)
        assert await hub.status("c1") == "True"
        await hub.until(renewed + GRACE)

        assert await hub.condition("c1", AVAILABLE) == STOPPED
        await hub.calm()
        (event,) = await hub.events_of("c1", "AvailableUnknown")
        assert event["type"] == "Warning"
        assert event["action"] == "AvailableUnknown"
        assert event["message"] == (
            "The c1 is successfully imported. However, the connection check from the managed "
            "cluster to the hub cluster has failed"
        )


@pytest.mark.parametrize(("before", "left"), [(240, 60), (30, 270)])
async def test_r4_timers(hub: HubWorld, before: int, left: int) -> None:
    async with hub.hub():
        await joined(hub)
        await hub.renew("c1", ahead=-before)

        now = hub.clock.now()
        await hub.until(now + timedelta(seconds=left) - MOMENT)
        assert await hub.status("c1") == "True"
        await hub.until(now + timedelta(seconds=left))
        assert await hub.status("c1") == "Unknown"


async def test_r4_a_hub_that_starts_late_sees_it_immediately(hub: HubWorld) -> None:
    async with hub.hub():
        await joined(hub)
    hub.clock.advance(400)

    async with hub.hub():
        assert await hub.condition("c1", AVAILABLE) == STOPPED


async def test_a_server_that_was_down_waits_for_its_agents(hub: HubWorld) -> None:
    """No agent could renew a lease meanwhile; OCM marks all of them Unknown."""
    async with hub.hub(serving=True):
        await joined(hub)
        await joined(hub, "c2")
    hub.clock.advance(400)
    started = hub.clock.now()

    async with hub.hub(serving=True):
        assert await hub.status("c1") == ("Unknown" if hub.strict else "True")
        await hub.renew("c2")
        await hub.report("c2", "True")
        await hub.until(started + GRACE - MOMENT)
        assert await hub.status("c1") == ("Unknown" if hub.strict else "True")
        await hub.until(started + GRACE + MOMENT)

        assert await hub.condition("c1", AVAILABLE) == STOPPED
        assert await hub.status("c2") == "True"


async def test_while_the_line_is_cut_a_lease_that_is_not_renewed_does_not_count(
    hub: HubWorld,
) -> None:
    line = BreakableTransport(hub)
    async with hub.hub(line=line):
        await joined(hub)
        await joined(hub, "c2")
        renewed = await hub.renew("c1")
        await hub.until(renewed + GRACE / 2)
        line.cut()
        await hub.until(renewed + GRACE + MOMENT)
        assert await hub.status("c1") == ("Unknown" if hub.strict else "True")

        line.mend()
        await hub.pass_time(120)
        await hub.renew("c2")
        await hub.report("c2", "True")
        await hub.pass_time(GRACE.total_seconds() - 120)

        assert await hub.condition("c1", AVAILABLE) == STOPPED
        assert await hub.status("c2") == "True"


async def test_a_cut_that_was_repaired_before_the_look_counts_as_well(hub: HubWorld) -> None:
    line = BreakableTransport(hub)
    async with hub.hub(line=line):
        await joined(hub)
        renewed = await hub.renew("c1")
        line.cut()
        await hub.until(renewed + GRACE - timedelta(seconds=60))
        line.mend()
        await hub.pass_time(50, step=5)
        mended = hub.clock.now()
        await hub.until(renewed + GRACE + MOMENT)
        assert await hub.status("c1") == ("Unknown" if hub.strict else "True")

        await hub.until(mended + GRACE)
        await hub.calm()

        assert await hub.condition("c1", AVAILABLE) == STOPPED


async def test_a_renewal_that_is_seen_is_taken_at_its_word(hub: HubWorld) -> None:
    async with hub.hub(serving=True):
        await joined(hub)
    async with hub.hub(serving=True):
        await hub.renew("c1", ahead=-300)

        assert await hub.condition("c1", AVAILABLE) == STOPPED


async def test_r3_already_unknown_is_left_alone(hub: HubWorld) -> None:
    async with hub.hub():
        await joined(hub)
        await hub.report("c1", "Unknown")
        renewed = await hub.renew("c1")

        await hub.until(renewed + GRACE)
        await hub.calm()

        assert (await hub.condition("c1", AVAILABLE) or ("", ""))[1] == "Test"
        assert await hub.events_of("c1", "AvailableUnknown") == []


async def test_r3_being_deleted_without_a_lease_is_unknown_immediately(hub: HubWorld) -> None:
    async with hub.hub():
        await joined(hub, metadata={"finalizers": ["example.com/hold"]})

        await hub.admin.delete(CLUSTERS, Key("", "c1"))
        await hub.admin.delete(LEASES, Key("c1", CLUSTER_LEASE))
        await hub.calm()

        assert await hub.status("c1") == "Unknown"


async def test_a_lease_that_is_deleted_comes_back(hub: HubWorld) -> None:
    async with hub.hub():
        await joined(hub)

        await hub.admin.delete(LEASES, Key("c1", CLUSTER_LEASE))
        await hub.calm()

        assert await hub.there(LEASES, "c1", CLUSTER_LEASE) is not None
        assert await hub.status("c1") == "True"


async def test_a_lease_without_a_time_has_expired(hub: HubWorld) -> None:
    async with hub.hub():
        await joined(hub)

        patch = {"spec": {"renewTime": None}}
        await hub.admin.patch(LEASES, Key("c1", CLUSTER_LEASE), patch)
        await hub.calm()

        assert await hub.status("c1") == "Unknown"


async def test_r5_only_the_agent_reports_that_it_is_back(hub: HubWorld) -> None:
    async with hub.hub():
        await joined(hub)
        await hub.until(hub.clock.now() + GRACE)
        await hub.calm()
        assert await hub.taints("c1") == [f"{UNREACHABLE}:NoSelect"]

        await hub.renew("c1")
        await hub.calm()
        assert await hub.status("c1") == "Unknown"
        await hub.report("c1", "True")

        assert await hub.status("c1") == "True"
        assert await hub.taints("c1") == []


async def test_r5_deleted_and_registered_again(hub: HubWorld) -> None:
    async with hub.hub():
        await joined(hub)
        await hub.admin.delete(CLUSTERS, Key("", "c1"))
        await hub.calm()

        await joined(hub)

        assert await hub.status("c1") == "True"
        assert await hub.taints("c1") == []


async def test_r5_a_shorter_duration_counts_immediately(hub: HubWorld) -> None:
    async with hub.hub():
        await joined(hub)
        renewed = await hub.renew("c1")
        await hub.until(renewed + timedelta(seconds=60))
        assert await hub.status("c1") == "True"

        await hub.change("c1", leaseDurationSeconds=1)

        assert await hub.status("c1") == "Unknown"


CLOCKS = {
    "R6 five seconds ahead": ({}, 5, "True"),
    "R6 five minutes and a second ahead": ({}, 301, "False"),
    "R6 nobody asks": ({"skip-clock-sync-check": "true"}, 301, "True"),
    "R6 a user asks": ({"skip-clock-sync-check": "false"}, 301, "False"),
}


@pytest.mark.parametrize(("annotations", "ahead", "want"), CLOCKS.values(), ids=CLOCKS)
async def test_clock(hub: HubWorld, annotations: dict[str, str], ahead: float, want: str) -> None:
    prefix = "registration.open-cluster-management.io"
    expected = {f"{prefix}/{name}": value for name, value in annotations.items()}
    async with hub.hub():
        await hub.register("c1", metadata={"annotations": expected})
        assert await hub.status("c1", CLOCK) == ""

        await hub.renew("c1", ahead)
        await hub.calm()

        assert await hub.status("c1", CLOCK) == want


async def test_a_clock_that_stays_right_is_not_written_again(hub: HubWorld) -> None:
    async with hub.hub():
        await joined(hub)
        before = (await hub.cluster("c1"))["metadata"]["resourceVersion"]

        await hub.renew("c1", 2)
        await hub.calm()

        assert (await hub.cluster("c1"))["metadata"]["resourceVersion"] == before
