"""Kinds that the hub's controllers read, other than clusters and sets.

Leases are in controllers/framework/kinds.py, because simulated clusters read them too.
"""

from __future__ import annotations

from typing import Any

from sully.api.cluster.types import CLUSTER_NAME_LABEL
from sully.client.informers.reflector import ObjectSelector
from sully.client.transport import Kind
from sully.controllers.framework.kinds import NAMESPACES
from sully.domain.clusters.rights import RBAC

WHOLE_NAMESPACES: Kind[dict[str, Any]] = NAMESPACES.read_as(dict)
ROLES: Kind[dict[str, Any]] = Kind(
    RBAC, "v1", "clusterroles", "ClusterRole", dict, namespaced=False
)
ROLE_BINDINGS: Kind[dict[str, Any]] = Kind(RBAC, "v1", "rolebindings", "RoleBinding", dict)
CLUSTER_ROLE_BINDINGS: Kind[dict[str, Any]] = Kind(
    RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", dict, namespaced=False
)
WITH_CLUSTER = ObjectSelector(label_selector=CLUSTER_NAME_LABEL)
"""The objects that belong to a cluster."""
