"""Simulated clusters register, speak, become unreachable and recover."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from controllers.clusters.hubbing import (
    CLUSTERS,
    LEASES,
    UNAVAILABLE,
    UNREACHABLE,
    HubWorld,
)
from controllers.world import running
from sully.client.transport import Key
from sully.controllers.framework.kinds import CLUSTER_LEASE
from sully.controllers.framework.manager import Manager
from sully.controllers.simulatedclusters import USER_NAME, add_simulated_clusters
from sully.domain.simulated.clusters import SIMULATE_UNREACHABLE, UNHEALTHY, Members, facts, name_of

C0, C1 = name_of(0), name_of(1)


@asynccontextmanager
async def simulated_clusters(world: HubWorld, count: int, lease: int = 10) -> AsyncIterator[None]:
    """Run a hub and simulated clusters as long as the block lasts."""
    manager = Manager(world.transport("informers"), clock=world.clock)
    add_simulated_clusters(
        manager,
        env=manager.env(world.transport(USER_NAME), USER_NAME),
        transport_for=world.transport,
        members=Members(count, lease),
    )
    async with world.hub(), running(manager):
        await world.calm()
        await world.calm()
        yield


async def _names(world: HubWorld) -> list[str]:
    return await world.names(CLUSTERS)


async def test_they_join_and_report_what_they_are() -> None:
    world = HubWorld()
    async with simulated_clusters(world, 2):
        cluster = await world.cluster(C0)

        assert await _names(world) == [C0, C1]
        assert await world.status(C0, "ManagedClusterJoined") == "True"
        assert await world.status(C0) == "True"
        assert await world.taints(C0) == []
        assert {name: cluster["status"][name] for name in facts(0)} == facts(0)
        assert cluster["metadata"]["labels"].keys() >= {"region", "env", "cloud"}
        (event,) = await world.events_of(C0, "Available")
        assert event["message"].endswith("Its apieserver is available")


async def test_they_stay_available_while_time_passes() -> None:
    world = HubWorld()
    async with simulated_clusters(world, 3):
        await world.pass_time(30, step=1)
        before = (await world.cluster(C0))["metadata"]["resourceVersion"]

        await world.pass_time(600, step=1)

        assert [await world.status(name) for name in await _names(world)] == ["True"] * 3
        # Renewals touch the lease alone.
        assert (await world.cluster(C0))["metadata"]["resourceVersion"] == before


async def test_renewals_come_in_time_and_not_more_often() -> None:
    world = HubWorld()
    async with simulated_clusters(world, 1, lease=10):
        times = []
        for _ in range(60):
            await world.pass_time(1)
            lease = await world.admin.get(LEASES, Key(C0, CLUSTER_LEASE))
            times.append(lease["spec"]["renewTime"])

        assert 4 <= len(set(times)) <= 7


async def test_a_stopped_one_becomes_unreachable_and_recovers() -> None:
    world = HubWorld()
    async with simulated_clusters(world, 2):
        await world.annotate(C0, **{SIMULATE_UNREACHABLE: "true"})
        await world.pass_time(70, step=1)
        assert (await world.status(C0), await world.status(C1)) == ("Unknown", "True")
        assert await world.taints(C0) == [f"{UNREACHABLE}:NoSelect"]

        await world.annotate(C0, **{SIMULATE_UNREACHABLE: None})
        await world.pass_time(2, step=0.1)

        assert await world.status(C0) == "True"
        assert await world.taints(C0) == []
        await world.pass_time(120, step=1)
        assert await world.status(C0) == "True"


async def test_an_unhealthy_one_reports_it_and_why() -> None:
    world = HubWorld()
    async with simulated_clusters(world, 1):
        await world.annotate(C0, **{UNHEALTHY: "etcd is gone"})

        assert await world.condition(C0, "ManagedClusterConditionAvailable") == (
            "False",
            "ManagedClusterKubeAPIServerUnavailable",
            "The kube-apiserver is not ok, status code: 500, etcd is gone",
        )
        await world.calm()
        assert await world.taints(C0) == [f"{UNAVAILABLE}:NoSelect"]
        assert len(await world.events_of(C0, "Unavailable")) == 1

        await world.annotate(C0, **{UNHEALTHY: None})
        await world.calm()
        assert await world.taints(C0) == []


async def test_a_denied_one_becomes_unreachable() -> None:
    world = HubWorld()
    async with simulated_clusters(world, 1):
        await world.change(C0, hubAcceptsClient=False)

        await world.pass_time(70, step=1)

        assert await world.status(C0) == "Unknown"


async def test_with_a_wrong_clock_nothing_is_reported() -> None:
    world = HubWorld()
    async with simulated_clusters(world, 1):
        await world.renew(C0, 400)
        await world.calm()

        await world.annotate(C0, **{UNHEALTHY: "true"})

        assert await world.status(C0, "ManagedClusterConditionClockSynced") == "False"
        assert await world.status(C0) == "True"


async def test_another_duration_counts_immediately() -> None:
    world = HubWorld()
    async with simulated_clusters(world, 1, lease=1000):
        await world.change(C0, leaseDurationSeconds=1)

        await world.pass_time(60, step=0.5)

        assert await world.status(C0) == "True"


async def test_another_start_leaves_what_is_there_and_removes_the_rest() -> None:
    world = HubWorld()
    async with simulated_clusters(world, 3):
        uid = (await world.cluster(C0))["metadata"]["uid"]
        await world.register("mine")

    async with simulated_clusters(world, 1, lease=20):
        await world.calm()

        cluster = await world.cluster(C0)
        assert await _names(world) == [C0, "mine"]
        assert cluster["metadata"]["uid"] == uid
        assert cluster["spec"]["leaseDurationSeconds"] == 20


async def test_a_cluster_of_another_user_is_left_alone() -> None:
    world = HubWorld()
    async with world.hub():
        await world.register(C0)

    async with simulated_clusters(world, 1):
        await world.pass_time(5)

        assert await world.status(C0) == ""
    async with simulated_clusters(world, 0):
        assert await _names(world) == [C0]


async def test_a_deleted_one_stays_away_until_the_next_start() -> None:
    world = HubWorld()
    async with simulated_clusters(world, 1):
        await world.admin.delete(CLUSTERS, Key("", C0))
        await world.calm()
        assert await _names(world) == []

    async with simulated_clusters(world, 1):
        assert await world.status(C0) == "True"


async def test_after_a_long_stop_they_are_heard_before_they_are_believed() -> None:
    world = HubWorld()
    async with simulated_clusters(world, 2):
        before = await world.admin.get(LEASES, Key(C1, CLUSTER_LEASE))
    world.clock.advance(1000)

    async with simulated_clusters(world, 2):
        lease = await world.admin.get(LEASES, Key(C1, CLUSTER_LEASE))
        assert await world.status(C1) == "True"
        assert lease["spec"]["renewTime"] > before["spec"]["renewTime"]
        (event,) = await world.events_of(C1, "AvailableUnknown")
        assert event["count"] == 1
        assert await world.taints(C1) == []
