"""Kinds that the hub's controllers read, other than clusters and sets, and their names.

Leases are in controllers/framework/kinds.py, because simulated clusters read them too.
"""

from __future__ import annotations

from typing import Any

from sully.api.cluster.types import CLUSTER_NAME_LABEL
from sully.client.informers.reflector import ObjectSelector
from sully.client.transport import Kind
from sully.controllers.framework.kinds import NAMESPACES
from sully.domain.clusters.rights import RBAC
from sully.views import fleet_kinds as fleetkinds

ACCEPTANCE_CONTROLLER = "managed-cluster-controller"
LEASE_CONTROLLER = "managed-cluster-lease-controller"
TAINT_CONTROLLER = "managed-cluster-taint-controller"
SET_CONTROLLER = "managed-cluster-set-controller"
POLICY_CONTROLLER = "cluster-taint-policy-controller"

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
POLICIES = fleetkinds.POLICIES
