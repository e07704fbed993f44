"""The simulated clusters: which exist, what they report, when their agents renew leases.

Everything follows from the number of a cluster, so that another start has the same objects. Nodes
of one cluster are fleet.py; these are members of a hub.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from sully.api.cluster.types import ManagedCluster
from sully.domain.clusters.health import (
    AVAILABLE,
    CLOCK_SYNCED,
    JOINED,
    LEASE_DURATION,
    condition,
)
from sully.domain.clusters.hub import is_accepted
from sully.domain.placement.results.conditions import PlacementCondition
from sully.domain.simulated.fleet import SIMULATED

SIMULATE_UNREACHABLE = "sully.dev/unreachable"
"""Annotation: the agent does nothing, as if its network were cut."""
UNHEALTHY = "sully.dev/unhealthy"
"""Annotation: the agent reports its cluster as not available; the value is the message."""
RENEWALS = 20
"""Most renewals of leases in a second; larger fleets renew more seldom."""
JITTER = 0.25

_NAME = re.compile(r"member-cluster-(\d{4,})")
_REGIONS = ("eu-central", "eu-west", "us-east", "us-west", "ap-south")
_STAGES = ("prod", "prod", "staging", "dev")
_CLOUDS = ("aws", "gcp", "azure")
_VERSIONS = ("v1.36.4", "v1.37.0")
_GOLDEN = 0.6180339887498949
"""Multiples of it, without their whole parts, are spread evenly whatever their number."""

JOINED_CONDITION = PlacementCondition(
    JOINED, "True", "ManagedClusterJoined", "Managed cluster joined"
)
HEALTHY = PlacementCondition(
    AVAILABLE, "True", "ManagedClusterAvailable", "Managed cluster is available"
)


class Members(msgspec.Struct, frozen=True):
    """How many simulated clusters there are, and how often their agents renew their leases."""

    count: int
    lease_seconds: int = 0
    """0: what suits their number."""

    @property
    def duration(self) -> int:
        """Return the lease duration of each cluster, in seconds."""
        return self.lease_seconds or max(LEASE_DURATION, self.count // RENEWALS)

    def has(self, number: int) -> bool:
        """Report whether a cluster belongs to the fleet."""
        return 0 <= number < self.count


def name_of(number: int) -> str:
    """Return what a cluster is called; names sort as numbers do."""
    return f"member-cluster-{number:04}"


def number_of(name: str) -> int | None:
    """Return which cluster has a name, or None if it is not one of a simulated cluster."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    number = int(match[1])
    return number if name_of(number) == name else None


def cluster_of(number: int, members: Members) -> dict[str, Any]:
    """Return a cluster as an administrator would register it."""
    name = name_of(number)
    labels = {
        SIMULATED: "true",
        "region": _REGIONS[number % len(_REGIONS)],
        "env": _STAGES[number // len(_REGIONS) % len(_STAGES)],
        "cloud": _CLOUDS[number % len(_CLOUDS)],
    }
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "hubAcceptsClient": True,
            "leaseDurationSeconds": members.duration,
            "managedClusterClientConfigs": [{"url": f"https://{name}.example.com:6443"}],
        },
    }


def facts(number: int) -> dict[str, Any]:
    """Return what the agent of a cluster reports in addition to conditions."""
    nodes = 3 + number % 8
    whole = {"cpu": str(16 * nodes), "memory": f"{64 * nodes}Gi"}
    version = _VERSIONS[number % len(_VERSIONS)]
    claims = {
        "id.k8s.io": name_of(number),
        "kubeversion.open-cluster-management.io": version,
        "platform.open-cluster-management.io": _CLOUDS[number % len(_CLOUDS)].upper(),
        "product.open-cluster-management.io": "Other",
        "region": _REGIONS[number % len(_REGIONS)],
    }
    return {
        "capacity": whole,
        "allocatable": {"cpu": str(15 * nodes), "memory": f"{60 * nodes}Gi"},
        "version": {"kubernetes": version},
        "clusterClaims": [{"name": name, "value": value} for name, value in claims.items()],
    }


def reports_facts(cluster: ManagedCluster, expected: Mapping[str, Any]) -> bool:
    """Report whether the status of a cluster has what its agent reports."""
    status = cluster.status
    claims = [{"name": claim.name, "value": claim.value} for claim in status.cluster_claims]
    reported = {
        "capacity": status.capacity,
        "allocatable": status.allocatable,
        "version": {"kubernetes": status.version.kubernetes},
        "clusterClaims": claims,
    }
    return reported == expected


def is_inactive(cluster: ManagedCluster) -> bool:
    """Report whether the agent of a cluster does nothing at present."""
    unreachable = cluster.metadata.annotations.get(SIMULATE_UNREACHABLE) == "true"
    terminating = cluster.metadata.deletion_timestamp is not None
    return unreachable or terminating or not is_accepted(cluster)


def is_unreachable(cluster: ManagedCluster) -> bool:
    """Report whether the hub has never seen the lease renewed, or considers it expired."""
    available = condition(cluster, AVAILABLE)
    return available is None or available.status == "Unknown"


def may_report(cluster: ManagedCluster) -> bool:
    """Report whether an agent may write its status: not with a clock that is known to be wrong."""
    synced = condition(cluster, CLOCK_SYNCED)
    return synced is None or synced.status != "False"


def health(cluster: ManagedCluster) -> PlacementCondition:
    """Return what the agent of a cluster reports about its API server."""
    unhealthy = cluster.metadata.annotations.get(UNHEALTHY, "false")
    if unhealthy == "false":
        return HEALTHY
    text = "[-]etcd failed" if unhealthy == "true" else unhealthy
    return PlacementCondition(
        AVAILABLE,
        "False",
        "ManagedClusterKubeAPIServerUnavailable",
        f"The kube-apiserver is not ok, status code: 500, {text}",
    )


def health_event(cluster: str, finding: PlacementCondition) -> tuple[str, str]:
    """Return reason and note of the event about a change of health."""
    if finding.status == "True":
        # The text of OCM.
        text = (
            f"The {cluster} is successfully imported, and it is managed by the hub cluster. "
            "Its apieserver is available"
        )
        return "Available", text
    text = f"The {cluster} is successfully imported. However, its Kube API server is unavailable"
    return "Unavailable", text


def first_renewal(number: int, duration: int) -> float:
    """Return after how many seconds an agent renews first: each at its own moment."""
    return duration * (number * _GOLDEN % 1.0)


def next_renewal(number: int, turn: int, duration: int) -> float:
    """Return after how many seconds an agent renews again: a little later than required."""
    return duration * (1 + JITTER * ((number + 7 * turn) * _GOLDEN % 1.0))
