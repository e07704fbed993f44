"""The kinds that placement reads, and the policies that taint clusters."""

from __future__ import annotations

from sully.api.cluster.types import (
    GROUP,
    AddOnPlacementScore,
    ManagedCluster,
    ManagedClusterSet,
    ManagedClusterSetBinding,
    Placement,
    PlacementDecision,
)
from sully.api.sully.types import GROUP as OURS
from sully.api.sully.types import POLICY_KIND, VERSION, ClusterTaintPolicy
from sully.client.transport import Kind

CLUSTERS: Kind[ManagedCluster] = Kind(
    GROUP, "v1", "managedclusters", "ManagedCluster", ManagedCluster, namespaced=False
)
SETS: Kind[ManagedClusterSet] = Kind(
    GROUP, "v1beta2", "managedclustersets", "ManagedClusterSet", ManagedClusterSet, namespaced=False
)
BINDINGS: Kind[ManagedClusterSetBinding] = Kind(
    GROUP,
    "v1beta2",
    "managedclustersetbindings",
    "ManagedClusterSetBinding",
    ManagedClusterSetBinding,
)
PLACEMENTS: Kind[Placement] = Kind(GROUP, "v1beta1", "placements", "Placement", Placement)
DECISIONS: Kind[PlacementDecision] = Kind(
    GROUP, "v1beta1", "placementdecisions", "PlacementDecision", PlacementDecision
)
SCORES: Kind[AddOnPlacementScore] = Kind(
    GROUP, "v1alpha1", "addonplacementscores", "AddOnPlacementScore", AddOnPlacementScore
)
POLICIES: Kind[ClusterTaintPolicy] = Kind(
    OURS, VERSION, "clustertaintpolicies", POLICY_KIND, ClusterTaintPolicy, namespaced=False
)
