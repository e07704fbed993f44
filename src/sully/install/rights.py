"""The rights of controllers that run as one service account: what their work needs, no more.

Who writes what is said once, in the roles of our own server (`policy/programs.py`), where every
controller has an identity of its own. Here are besides: what their caches read, which there an
identity of its own does, and the scheduler's rights without those of Kubernetes' that ours does
not use.
"""

from __future__ import annotations

from typing import Any

from sully.client.capabilities import EVICTOR_ROLE
from sully.domain.capabilities.offers import OURS, PATCHES
from sully.server.authorization.policy.programs import CONTROLLERS
from sully.server.authorization.policy.writing import RBAC, READ, RESOURCE, events, on

Obj = dict[str, Any]

AGENTS: dict[str, tuple[str, ...]] = {
    "aggregation": ("clusterrole-aggregation-controller",),
    "serviceaccounts": ("service-account-controller",),
    "namespaces": ("namespace-controller",),
    "rootca": ("root-ca-cert-publisher",),
    "garbagecollection": ("generic-garbage-collector",),
    "replicasets": ("replicaset-controller",),
    "deployments": ("deployment-controller",),
    "disruption": ("disruption-controller",),
    "claims": ("resource-claim-controller",),
    "eviction": ("device-taint-eviction-controller",),
    "history": ("taint-history-controller",),
    "expiry": ("taint-expiry-controller",),
    "patchstatus": ("slice-patch-status-controller",),
    "clusters": (
        "managed-cluster-controller",
        "managed-cluster-lease-controller",
        "managed-cluster-set-controller",
        "managed-cluster-taint-controller",
        "cluster-taint-policy-controller",
    ),
    "scheduling": (),
    "placement": ("placement-controller",),
}
"""Whose roles a controller needs, by the name that `--only` takes."""

_DEVICES_READ = (
    on(RESOURCE, "deviceclasses devicetaintrules resourceslices", READ),
    on(RESOURCE, PATCHES, READ),
)
_SCHEDULING = (
    on("core", "nodes pods", READ),
    on("core", "pods/binding", "create"),
    on("core", "pods/status", "patch"),
    on(RESOURCE, "resourceclaims", f"create delete patch update {READ}"),
    on(RESOURCE, "resourceclaims/status", "patch update"),
    on(RESOURCE, "resourceclaims/binding", "patch update"),
    events(),
)
READS: dict[str, tuple[Obj, ...]] = {
    "serviceaccounts": (on("core", "namespaces serviceaccounts", READ),),
    "rootca": (on("core", "namespaces", READ),),
    "disruption": (on("apps", "deployments replicasets", READ),),
    "eviction": (*_DEVICES_READ, on(OURS, "evictionrecords", READ)),
    "patchstatus": _DEVICES_READ,
    "scheduling": (*_DEVICES_READ, *_SCHEDULING),
}
"""What the caches of a controller read besides; of the scheduler everything."""


def rules_of(name: str) -> list[Obj]:
    """Return the rules of the role of one controller."""
    found = [rule for agent in AGENTS[name] for rule in CONTROLLERS[agent]]
    found += READS.get(name, ())
    unique: list[Obj] = []
    for rule in map(_also_ours, found):
        if rule not in unique:
            unique.append(rule)
    return unique


def _also_ours(rule: Obj) -> Obj:
    """Return a rule about patches for both groups where they may be, and all others as they are."""
    plain = {each.partition("/")[0] for each in rule.get("resources", ())}
    if rule.get("apiGroups") != [RESOURCE] or PATCHES not in plain:
        return dict(rule)
    return {**rule, "apiGroups": [RESOURCE, OURS]}


def looking() -> list[Obj]:
    """Return what it takes to find out who evicts; everybody may read discovery and schemas."""
    return [on(RBAC, "clusterroles", "get", EVICTOR_ROLE.name)]


def leading(lease: str) -> list[Obj]:
    """Return what it takes to hold a lease; a name cannot limit what is created."""
    return [
        on("coordination.k8s.io", "leases", "create"),
        on("coordination.k8s.io", "leases", "get update", lease),
    ]
