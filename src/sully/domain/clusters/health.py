"""From the health of a cluster to its condition and its taints: leases, clocks, availability.

The hub's own taints follow one condition, immediately; policies (policies.py) map others, with
delays. An agent that stopped is found by its lease. Nothing here makes a cluster available: only
its agent does that.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from sully.api.cluster.types import (
    HEALTH_KEYS,
    NO_SELECT,
    UNAVAILABLE,
    UNREACHABLE,
    ManagedCluster,
    Taint,
)
from sully.domain.placement.results.conditions import PlacementCondition
from sully.machinery.formats.timestamps import later
from sully.machinery.meta import Condition, find_condition

ACCEPTED = "HubAcceptedManagedCluster"
JOINED = "ManagedClusterJoined"
AVAILABLE = "ManagedClusterConditionAvailable"
CLOCK_SYNCED = "ManagedClusterConditionClockSynced"
SKIP_CLOCK_CHECK = "registration.open-cluster-management.io/skip-clock-sync-check"

LEASE_DURATION = 60
"""Seconds between two renewals, unless the cluster specifies them."""
PATIENCE = 5
"""How many renewals an agent may miss."""

LEASE_EXPIRED = PlacementCondition(
    AVAILABLE,
    "Unknown",
    "ManagedClusterLeaseUpdateStopped",
    "Registration agent stopped updating its lease.",
)
SYNCED = PlacementCondition(
    CLOCK_SYNCED,
    "True",
    "ManagedClusterClockSynced",
    "The clock of the managed cluster is synced with the hub.",
)
OUT_OF_SYNC = PlacementCondition(
    CLOCK_SYNCED,
    "False",
    "ManagedClusterClockOutOfSync",
    "The clock of hub and agent is out of sync. This may cause the Unknown status and affect "
    "agent functionalities.",
)


def grace(cluster: ManagedCluster) -> int:
    """Return how many seconds old a lease may become."""
    return PATIENCE * (cluster.spec.lease_duration_seconds or LEASE_DURATION)


def condition(cluster: ManagedCluster, kind: str) -> Condition | None:
    return find_condition(cluster.status.conditions, kind)


class Lease(msgspec.Struct, frozen=True):
    """What matters of a lease; one that was never renewed has no time."""

    renewed: datetime | None = None
    listening: datetime | None = None
    """Since when the lease is watched; None: without interruption since the last renewal."""

    def counts_from(self) -> datetime | None:
        """Return since when the agent has not renewed its lease."""
        if self.renewed is None or self.listening is None:
            return self.renewed
        return max(self.renewed, self.listening)


class Ignore(msgspec.Struct, frozen=True):
    """The cluster was never accepted: its lease does not matter."""


class CreateLease(msgspec.Struct, frozen=True):
    """There is no lease that the agent could renew."""


class Fresh(msgspec.Struct, frozen=True):
    """The lease is young enough, until then."""

    requeue_at: datetime


class Stopped(msgspec.Struct, frozen=True):
    """The agent does not renew its lease; `is_new` if the condition does not show it yet."""

    requeue_at: datetime
    is_new: bool


LeaseVerdict = Ignore | CreateLease | Fresh | Stopped


def watch_lease(cluster: ManagedCluster, lease: Lease | None, now: datetime) -> LeaseVerdict:
    """Return what the lease of a cluster means for its availability."""
    if condition(cluster, ACCEPTED) is None:
        return Ignore()
    patience = grace(cluster)
    if lease is None and cluster.metadata.deletion_timestamp is None:
        return CreateLease()
    renewed = lease.counts_from() if lease is not None else None
    # A lease without a time counts as never renewed.
    end = later(renewed, patience) if renewed is not None else now
    if now < end:
        return Fresh(end)
    available = condition(cluster, AVAILABLE)
    # A duration below nothing is always over; a requeue before now would never end.
    return Stopped(
        later(now, abs(patience)), is_new=available is None or available.status != "Unknown"
    )


def clock_finding(cluster: ManagedCluster, renewed: datetime, now: datetime) -> PlacementCondition:
    """Report whether an agent's clock agrees with ours, by the time of its lease renewal."""
    skipped = cluster.metadata.annotations.get(SKIP_CLOCK_CHECK) == "true"
    in_sync = abs(now - renewed) < timedelta(seconds=grace(cluster))
    return SYNCED if skipped or in_sync else OUT_OF_SYNC


def health_taints(
    taints: Sequence[Taint], available: str | None, added: datetime | None = None
) -> tuple[Taint, ...]:
    """Return the taints that a cluster should have at this status of its availability.

    Only taints exactly like ours are removed; others are kept, in their order. Where a server
    stamps taints, `added` is left to it.
    """
    match available:
        case "True":
            desired = None
        case "False":
            desired = UNAVAILABLE
        case _:
            desired = UNREACHABLE
    others = tuple(taint for taint in taints if not is_health(taint) or taint.key == desired)
    if desired is None or any(is_health(taint) for taint in others):
        return others
    return (*others, Taint(key=desired, effect=NO_SELECT, time_added=added))


def is_health(taint: Taint) -> bool:
    """Report whether a taint is the hub's own; another taint with the same key is not."""
    ours = taint.key in HEALTH_KEYS
    return ours and not taint.value and taint.effect == NO_SELECT


def desired_taints(cluster: ManagedCluster) -> tuple[Taint, ...] | None:
    """Return the taints to write for the health of a cluster; None: nothing is to be written."""
    if cluster.metadata.deletion_timestamp is not None:
        return None
    available = condition(cluster, AVAILABLE)
    desired = health_taints(
        cluster.spec.taints, available.status if available is not None else None
    )
    return None if desired == cluster.spec.taints else desired


def unavailable_text(cluster: str) -> str:
    """Return the note of the event for an unreachable agent."""
    return (
        f"The {cluster} is successfully imported. However, the connection check from the managed "
        "cluster to the hub cluster has failed"
    )
