"""The kinds of snapshots, by purpose.

A kind that is read as another type than it was loaded as is converted (snapshot.py), so each
resource is listed once, as the type with the most fields.
"""

from __future__ import annotations

from typing import Any

from sully.api.resource.types import GROUP, ResourceClaimTemplate
from sully.client.transport import Kind
from sully.domain.eviction.pod_events import EvictionEvent
from sully.domain.scheduling.objects import Namespace, Node, Pod
from sully.domain.scheduling.volumes.objects import (
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from sully.domain.workloads.workloads import Budget
from sully.views.fleet_kinds import (
    BINDINGS,
    CLUSTERS,
    DECISIONS,
    PLACEMENTS,
    POLICIES,
    SCORES,
    SETS,
)
from sully.views.kinds import (
    CLAIMS,
    CLASSES,
    CONSUMER_PODS,
    DEVICE_POLICIES,
    EVICTION_RECORDS,
    MAINTENANCES,
    PATCHES,
    RULES,
    SLICES,
    TAINT_RECORDS,
)

NODES: Kind[Node] = Kind("", "v1", "nodes", "Node", Node, namespaced=False)
PODS: Kind[Pod] = Kind("", "v1", "pods", "Pod", Pod)
"""Pods as all controllers, plans and explanations read them, so that they share one cache."""
BUDGETS: Kind[Budget] = Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", Budget)
TEMPLATES: Kind[ResourceClaimTemplate] = Kind(
    GROUP, "v1", "resourceclaimtemplates", "ResourceClaimTemplate", ResourceClaimTemplate
)
NAMESPACES: Kind[Namespace] = Kind("", "v1", "namespaces", "Namespace", Namespace, namespaced=False)
VOLUME_CLAIMS: Kind[PersistentVolumeClaim] = Kind(
    "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", PersistentVolumeClaim
)
VOLUMES: Kind[PersistentVolume] = Kind(
    "", "v1", "persistentvolumes", "PersistentVolume", PersistentVolume, namespaced=False
)
STORAGE_CLASSES: Kind[StorageClass] = Kind(
    "storage.k8s.io", "v1", "storageclasses", "StorageClass", StorageClass, namespaced=False
)
CONSTRAINT_KINDS: tuple[Kind[Any], ...] = (NAMESPACES, VOLUME_CLAIMS, VOLUMES, STORAGE_CLASSES)
"""What decides about some pods only; listed if there are such pods."""
EVICTION_EVENTS: Kind[EvictionEvent] = Kind("", "v1", "events", "Event", EvictionEvent)
"""Events of eviction controllers, which are listed by their reason (loading.py)."""
DEVICES: tuple[Kind[Any], ...] = (SLICES, CLASSES, RULES, PATCHES, CLAIMS, CONSUMER_PODS)
"""Devices, their taints, and the claims and pods that use them."""
SCHEDULING: tuple[Kind[Any], ...] = (
    SLICES,
    CLASSES,
    RULES,
    PATCHES,
    CLAIMS,
    TEMPLATES,
    PODS,
    NODES,
)
"""With what else decides where pods are scheduled."""
FLEET: tuple[Kind[Any], ...] = (
    CLUSTERS,
    SETS,
    BINDINGS,
    PLACEMENTS,
    DECISIONS,
    SCORES,
    POLICIES,
)
HISTORY: tuple[Kind[Any], ...] = (EVICTION_RECORDS, TAINT_RECORDS)


def _untyped(group: str, plural: str, kind: str) -> Kind[dict[str, Any]]:
    return Kind(group, "v1", plural, kind, dict[str, Any])


WORKLOADS: tuple[Kind[dict[str, Any]], ...] = (
    _untyped("apps", "deployments", "Deployment"),
    _untyped("apps", "replicasets", "ReplicaSet"),
    _untyped("apps", "statefulsets", "StatefulSet"),
    _untyped("apps", "daemonsets", "DaemonSet"),
    _untyped("batch", "jobs", "Job"),
)
"""Controllers of pods."""
_OWNERS = (*WORKLOADS, _untyped("policy", "poddisruptionbudgets", "PodDisruptionBudget"))
EVERYTHING: tuple[Kind[dict[str, Any]], ...] = (
    *(kind.read_as(dict[str, Any]) for kind in (*SCHEDULING, *CONSTRAINT_KINDS, *FLEET, *HISTORY)),
    *_OWNERS,
    DEVICE_POLICIES.read_as(dict[str, Any]),
    MAINTENANCES.read_as(dict[str, Any]),
)
"""What `sully snapshot` saves: enough for all commands that read files."""
