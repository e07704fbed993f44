"""What the agent of a cluster may do on the hub: read and report its own cluster, show it lives.

Agents are a group per cluster. The roles are made when a cluster is accepted; one that is denied
later may still read its own cluster, so that it can learn of it.
"""

from __future__ import annotations

from typing import Any

from sully.api.cluster.types import CLUSTER_NAME_LABEL, GROUP

Obj = dict[str, Any]

RBAC = "rbac.authorization.k8s.io"
AGENTS = "system:open-cluster-management"
COMMON_ROLE = "open-cluster-management:managedcluster:registration"
"""What all agents may do, each in the namespace of its cluster."""


def agent_user(cluster: str, agent: str) -> tuple[str, tuple[str, ...]]:
    """Return the name and the groups that an agent of a cluster has."""
    return f"{AGENTS}:{cluster}:{agent}", (f"{AGENTS}:{cluster}", AGENTS, "system:authenticated")


def role_name(cluster: str) -> str:
    """Return what the role of a cluster's agents, and its binding, are called."""
    name = f"open-cluster-management:managedcluster:{cluster}"
    # A cluster may have the name of the shared role; no name contains colons.
    return f"{name}:cluster" if name == COMMON_ROLE else name


def binding_name(cluster: str) -> str:
    """Return what the binding in the namespace of a cluster is called."""
    return f"{role_name(cluster)}:registration"


def namespace(cluster: str) -> Obj:
    """Return the namespace for what belongs to a cluster."""
    return {"metadata": {"name": cluster, "labels": {CLUSTER_NAME_LABEL: cluster}}}


def common_role() -> Obj:
    """Return the role that is the same for all clusters."""
    return {
        "metadata": {"name": COMMON_ROLE, "labels": {CLUSTER_NAME_LABEL: ""}},
        "rules": [
            _rule("coordination.k8s.io", "leases", "get", "list", "watch", "update"),
            _rule("events.k8s.io", "events", "list", "watch", "create"),
        ],
    }


def cluster_role(cluster: str, *, accepted: bool) -> Obj:
    """Return the role for what is not in the namespace of a cluster."""
    own = {"resourceNames": [cluster]}
    if accepted:
        rules = [
            _rule(GROUP, "managedclusters", "get", "list", "update", "watch") | own,
            _rule(GROUP, "managedclusters/status", "patch", "update") | own,
        ]
    else:
        rules = [_rule(GROUP, "managedclusters", "get", "list", "watch") | own]
    return {"metadata": _named(role_name(cluster), cluster), "rules": rules}


def cluster_role_binding(cluster: str) -> Obj:
    """Return who has the role of a cluster."""
    return {
        "metadata": _named(role_name(cluster), cluster),
        "roleRef": _role(role_name(cluster)),
        "subjects": [_group(cluster)],
    }


def role_binding(cluster: str) -> Obj:
    """Return who has the common role in the namespace of a cluster."""
    return {
        "metadata": _named(binding_name(cluster), cluster) | {"namespace": cluster},
        "roleRef": _role(COMMON_ROLE),
        "subjects": [_group(cluster)],
    }


def _rule(group: str, resource: str, *verbs: str) -> Obj:
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}


def _named(name: str, cluster: str) -> Obj:
    return {"name": name, "labels": {CLUSTER_NAME_LABEL: cluster}}


def _role(name: str) -> Obj:
    return {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}


def _group(cluster: str) -> Obj:
    return {"apiGroup": RBAC, "kind": "Group", "name": f"{AGENTS}:{cluster}"}
