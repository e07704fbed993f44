"""The RBAC rules of controllers that run as one service account: only what they need.

The roles on our own server are those of Kubernetes, which grant more. Tests check that a role here
grants nothing that the identity of its controller does not have there, and nothing that no
end-to-end test uses (tests/e2e/rights.py).
"""

from __future__ import annotations

from itertools import chain
from typing import Any

from sully.client.discovery.capabilities import EVICTOR_ROLE
from sully.domain.capabilities.offers import OURS, PATCHES
from sully.domain.devices.taints import BUDGET_EFFECTS, EFFECTS
from sully.machinery.gates import Gates
from sully.server.authorization.policy.builders import RBAC, READ, RESOURCE, on
from sully.server.authorization.policy.clusters import CLUSTER

Obj = dict[str, Any]

POOL_STATUS_REQUESTS = "resourcepoolstatusrequests"
_EVENTS = on("core", "events", "create patch")
_PATCHES = f"{RESOURCE} {OURS}"  # in the group of ours where they are custom resources
_DEVICES = (
    on(RESOURCE, "deviceclasses devicetaintrules resourceslices", READ),
    on(_PATCHES, PATCHES, READ),
)
_PROOFS = (
    # Jobs that prove devices healthy, in namespaces that allow admin access.
    on("batch", "jobs", "create delete get list watch"),
    on("core", "namespaces", "get"),
    on("core", "pods", "list"),
    on(RESOURCE, "resourceclaims", "create"),
)
RIGHTS: dict[str, tuple[Obj, ...]] = {
    # It aggregates rules that it does not have itself.
    "aggregation": (on(RBAC, "clusterroles", f"escalate patch {READ}"),),
    "serviceaccounts": (
        on("core", "namespaces", READ),
        on("core", "serviceaccounts", f"create {READ}"),
    ),
    "namespaces": (
        on("core", "namespaces", READ),
        on("core", "namespaces/finalize namespaces/status", "update"),
        on("*", "*", "deletecollection list"),
    ),
    "rootca": (
        on("core", "namespaces", READ),
        on("core", "configmaps", f"create update {READ}"),
    ),
    "garbagecollection": (on("*", "*", f"delete patch {READ}"), on("core", "events", "create")),
    "resourcequota": (
        # A quota may count any resource.
        on("*", "*", "list watch"),
        on("core", "resourcequotas/status", "update"),
    ),
    "replicasets": (
        on("apps", "replicasets", READ),
        on("apps", "replicasets/finalizers replicasets/status", "update"),
        on("core", "pods", f"create delete patch {READ}"),
        _EVENTS,
    ),
    "deployments": (
        on("apps", "deployments", READ),
        on("apps", "deployments/finalizers deployments/status", "update"),
        on("apps", "replicasets", f"create delete patch {READ}"),
        on("core", "pods", READ),
        _EVENTS,
    ),
    "jobs": (
        on("batch", "jobs", f"delete {READ}"),
        on("batch", "jobs/finalizers jobs/status", "update"),
        on("core", "pods", f"create delete patch {READ}"),
        _EVENTS,
    ),
    "statefulsets": (
        on("apps", "statefulsets", READ),
        on("apps", "statefulsets/finalizers statefulsets/status", "update"),
        on("apps", "controllerrevisions", f"create delete patch {READ}"),
        on("core", "persistentvolumeclaims", "create"),
        on("core", "pods", f"create delete patch {READ}"),
        _EVENTS,
    ),
    "daemonsets": (
        on("apps", "daemonsets", READ),
        on("apps", "daemonsets/finalizers daemonsets/status", "update"),
        on("apps", "controllerrevisions", f"create delete patch {READ}"),
        on("core", "nodes", READ),
        on("core", "pods", f"create delete patch {READ}"),
        _EVENTS,
    ),
    "disruption": (
        on("apps", "deployments replicasets", READ),
        on("core", "pods", READ),
        on("core", "pods/status", "patch"),
        on("policy", "poddisruptionbudgets", READ),
        on("policy", "poddisruptionbudgets/status", "update"),
        _EVENTS,
    ),
    "claims": (
        on("core", "pods", READ),
        on("core", "pods/finalizers", "update"),
        on("core", "pods/status", "patch"),
        on(RESOURCE, "resourceclaimtemplates", READ),
        on(RESOURCE, "resourceclaims", f"create delete patch {READ}"),
        on(RESOURCE, "resourceclaims/binding resourceclaims/status", "patch"),
        _EVENTS,
    ),
    "eviction": (
        *_DEVICES,
        on("core", "pods", f"delete {READ}"),
        on("core", "pods/status", "patch"),
        on(OURS, "evictionrecords", f"create delete {READ}"),
        on(RESOURCE, "resourceclaims", READ),
        on(RESOURCE, "resourceclaims/binding resourceclaims/status", "patch"),
        on(RESOURCE, "devicetaintrules/status", "patch"),
        _EVENTS,
    ),
    "history": (
        on("core", "pods", READ),
        on(RESOURCE, "devicetaintrules", READ),
        on(OURS, "evictionrecords", f"delete {READ}"),
        on(OURS, "taintrecords", f"create delete {READ}"),
        on(OURS, "taintrecords/status", "update"),
    ),
    "expiry": (
        on(RESOURCE, "devicetaintrules", f"delete {READ}"),
        on(_PATCHES, PATCHES, f"delete {READ}"),
        on(CLUSTER, "managedclusters", f"patch {READ}"),
        _EVENTS,
    ),
    "patchstatus": (*_DEVICES, on(_PATCHES, f"{PATCHES}/status", "patch"), _EVENTS),
    "poolstatus": (),
    "deviceconflicts": (*_DEVICES, on(RESOURCE, "resourceclaims", READ), _EVENTS),
    "devicemetrics": (
        *_DEVICES,
        on("core", "pods", READ),
        on(OURS, "devicemaintenances devicetaintpolicies", READ),
        on(RESOURCE, "resourceclaims", READ),
    ),
    "devicetaintpolicies": (
        on(RESOURCE, "deviceclasses resourceclaims resourceslices", READ),
        on(RESOURCE, "devicetaintrules", f"create delete patch {READ}"),
        on(_PATCHES, PATCHES, READ),
        on("core", "nodes", READ),
        on(OURS, "devicehealths devicetaintpolicies", READ),
        on(OURS, "devicetaintpolicies/status", "patch"),
        *_PROOFS,
        _EVENTS,
    ),
    "devicemaintenances": (
        *_PROOFS,
        on(RESOURCE, "deviceclasses resourceclaims resourceslices", READ),
        on(RESOURCE, "devicetaintrules", f"create delete patch {READ}"),
        on(_PATCHES, PATCHES, READ),
        on("core", "nodes pods", READ),
        on("core", "pods/eviction", "create"),
        on(OURS, "devicemaintenances", READ),
        on(OURS, "devicemaintenances/status", "patch"),
        _EVENTS,
    ),
    "clusters": (
        # It may not escalate: it has what it grants to the agents of clusters.
        on(CLUSTER, "managedclusters", f"patch update {READ}"),
        on(CLUSTER, "managedclusters/status", "patch update"),
        on("coordination.k8s.io", "leases", f"create patch update {READ}"),
        on("events.k8s.io", "events", "create list watch"),
        on(RBAC, "clusterrolebindings clusterroles rolebindings", f"create delete patch {READ}"),
        on("core", "namespaces", f"create patch {READ}"),
        on(CLUSTER, "managedclustersetbindings", READ),
        on(CLUSTER, "managedclustersets", f"create patch {READ}"),
        on(CLUSTER, "managedclustersetbindings/status managedclustersets/status", "patch"),
        on(OURS, "clustertaintpolicies", READ),
        on(OURS, "clustertaintpolicies/status", "patch"),
        _EVENTS,
    ),
    "scheduling": (
        *_DEVICES,
        on("core", "namespaces nodes persistentvolumeclaims persistentvolumes pods", READ),
        on("storage.k8s.io", "storageclasses", READ),
        on("core", "pods/binding", "create"),
        on("core", "pods/status", "patch"),
        on(RESOURCE, "resourceclaims", f"create delete patch update {READ}"),
        on(RESOURCE, "resourceclaims/binding resourceclaims/status", "patch update"),
        _EVENTS,
    ),
    "placement": (
        on(
            CLUSTER,
            "addonplacementscores managedclusters managedclustersetbindings managedclustersets",
            READ,
        ),
        on(CLUSTER, "placements", READ),
        on(CLUSTER, "placements/finalizers", "update"),
        on(CLUSTER, "placements/status", "patch"),
        on(CLUSTER, "placementdecisions", f"create delete patch {READ}"),
        on(CLUSTER, "placementdecisions/status", "patch"),
        _EVENTS,
    ),
}
"""The rules of each controller, by the name that `--only` takes."""

_BUDGET_RULES: tuple[Obj, ...] = (
    on("core", "pods/eviction", "create"),
    on("policy", "poddisruptionbudgets", READ),
)
_POOL_STATUS_RULES: tuple[Obj, ...] = (
    on(RESOURCE, POOL_STATUS_REQUESTS, f"delete {READ}"),
    on(RESOURCE, f"{POOL_STATUS_REQUESTS}/status", "update"),
    on(RESOURCE, f"deviceclasses devicetaintrules {PATCHES} resourceslices", READ),
    on(RESOURCE, "resourceclaims", READ),
)
GATED: dict[str, dict[str, tuple[Obj, ...]]] = {
    **{EFFECTS[effect].feature_gate: {"eviction": _BUDGET_RULES} for effect in BUDGET_EFFECTS},
    "DRAResourcePoolStatus": {"poolstatus": _POOL_STATUS_RULES},
}
"""Additional rules of a controller, by feature gate."""


def rules_of(name: str, gates: Gates | None = None) -> list[Obj]:
    """Return the rules of the role of one controller."""
    gates = gates or Gates()
    more = [rules.get(name, ()) for gate, rules in GATED.items() if gates[gate]]
    return [dict(rule) for rule in chain(RIGHTS[name], *more)]


def discovery_rules() -> list[Obj]:
    """Return the rules to find the evictor; every user may read discovery and schemas."""
    return [on(RBAC, "clusterroles", "get", EVICTOR_ROLE.name)]


def review_rules() -> list[Obj]:
    """Return the rules to authorize readers of the metrics."""
    return [
        on("authentication.k8s.io", "tokenreviews", "create"),
        on("authorization.k8s.io", "subjectaccessreviews", "create"),
    ]


def lease_rules(lease: str) -> list[Obj]:
    """Return the rules to hold a lease; a name cannot limit `create`."""
    return [
        on("coordination.k8s.io", "leases", "create"),
        on("coordination.k8s.io", "leases", "get list update watch", lease),
    ]
