"""Conditions of clusters, sets and bindings, apart from health, with the texts of OCM.

Health is health.py; what an accepted agent may do is rights.py.
"""

from __future__ import annotations

from sully.api.cluster.types import (
    DEFAULT_SET,
    GLOBAL_SET,
    LabelSelector,
    ManagedCluster,
    ManagedClusterSelector,
    ManagedClusterSet,
)
from sully.domain.clusters.health import ACCEPTED
from sully.domain.placement.results.conditions import PlacementCondition
from sully.machinery.meta import is_condition_true

FINALIZER = "cluster.open-cluster-management.io/api-resource-cleanup"
AUTO_UPDATE = "cluster.open-cluster-management.io/autoupdate"

ADMITTED = PlacementCondition(
    ACCEPTED, "True", "HubClusterAdminAccepted", "Accepted by hub cluster admin"
)
DENIED = PlacementCondition(
    ACCEPTED, "False", "HubClusterAdminDenied", "Denied by hub cluster admin"
)
ACCEPTANCE_ERROR = "Error"
"""The reason if the objects of an accepted cluster could not be applied."""
BOUND = PlacementCondition("Bound", "True", "ClusterSetBound", "")
UNBOUND = PlacementCondition("Bound", "False", "ClusterSetNotFound", "")

BUILT_IN_SETS = {
    DEFAULT_SET: ManagedClusterSelector(selector_type="ExclusiveClusterSetLabel"),
    GLOBAL_SET: ManagedClusterSelector(
        selector_type="LabelSelector", label_selector=LabelSelector()
    ),
}
"""Sets that every hub has, and how they find their clusters."""


def is_accepted(cluster: ManagedCluster) -> bool:
    """Report whether the hub has accepted the agent."""
    return is_condition_true(cluster.status.conditions, ACCEPTED)


def acceptance_error(errors: list[str]) -> PlacementCondition:
    """Return the condition of a cluster whose acceptance failed."""
    return PlacementCondition(ACCEPTED, "False", ACCEPTANCE_ERROR, "\n".join(errors))


def set_finding(members: int) -> PlacementCondition:
    """Return the condition with the number of clusters of a set."""
    if not members:
        return PlacementCondition(
            "ClusterSetEmpty", "True", "NoClusterMatched", "No ManagedCluster selected"
        )
    text = f"{members} ManagedClusters selected"
    return PlacementCondition("ClusterSetEmpty", "False", "ClustersSelected", text)


def is_modified(cluster_set: ManagedClusterSet) -> bool:
    """Report whether a built-in set does not select any more what it should."""
    metadata = cluster_set.metadata
    if metadata.annotations.get(AUTO_UPDATE) == "false":
        return False
    return cluster_set.spec.cluster_selector != BUILT_IN_SETS[metadata.name]
