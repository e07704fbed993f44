"""Permissions that writes to clusters and bindings require in addition to the write itself.

To accept a cluster, to move one between sets, and to bind a set to a namespace each requires a
permission of its own, on subresources that exist for RBAC only. Otherwise a user who can write a
ManagedCluster could accept it. OCM checks in webhooks; the texts are theirs. Checks without
permissions are in api/cluster.
"""

from collections.abc import Callable
from typing import Any

from sully.api.cluster.agents import VALIDATORS
from sully.api.cluster.namespaces import foreign_namespace, is_namespace_of
from sully.api.cluster.sets import BINDING_VALIDATORS
from sully.api.cluster.strategy import denied
from sully.api.cluster.types import GROUP, SET_LABEL
from sully.machinery.compat import Compat
from sully.machinery.serialization.gotext import quote
from sully.server.admission.plugins import AdmissionAttributes
from sully.server.authorization.attributes import Attributes, Authorizer
from sully.server.requests import Target, User

Obj = dict[str, Any]
Lookup = Callable[[str, str, str], Obj | None]

REGISTER = "register.open-cluster-management.io"
_SETS = "managedclustersets"


class ClusterAdmission:
    """Checks who accepts, moves and binds clusters."""

    def __init__(self, authorizer: Authorizer, lookup: Lookup, compat: Compat) -> None:
        self._authorizer = authorizer
        self._lookup = lookup
        self._compat = compat

    def handles(self, target: Target, operation: str) -> bool:  # noqa: ARG002 - part of the protocol
        """Report whether the plugin checks an operation on a resource."""
        return target.resource.group == GROUP and not target.subresource

    def validate(self, attributes: AdmissionAttributes) -> None:
        """Reject a change without its permission."""
        target = attributes.request.target
        if attributes.obj is None:
            return
        if target.resource.plural == "managedclusters":
            self._check_cluster(attributes.request.user, attributes.obj, attributes.old)
        elif target.resource.plural == "managedclustersetbindings" and attributes.old is None:
            self._check_binding(attributes.request.user, attributes.obj)

    def _check_cluster(self, user: User, obj: Obj, old: Obj | None) -> None:
        name = obj["metadata"].get("name", "")
        if _is_accepted(obj) and not _is_accepted(old):
            self._check_acceptance(user, name)
        before, after = _set_of(old), _set_of(obj)
        if before != after:
            for cluster_set in filter(None, (before, after)):
                self._check_membership(user, cluster_set)

    def _check_acceptance(self, user: User, name: str) -> None:
        resource = "managedclusters/accept"
        namespace = self._lookup("namespaces", "", name)
        if namespace is not None and "deletionTimestamp" in namespace["metadata"]:
            reason = f"cluster namespace {quote(name)} is terminating"
            raise denied(VALIDATORS, resource, name, reason)
        if namespace is not None and self._is_foreign(name, namespace):
            raise denied(VALIDATORS, resource, name, foreign_namespace(name))
        required = Attributes("update", REGISTER, "", "managedclusters", "accept", name=name)
        if not self._authorizer.authorize(user, required).allowed:
            reason = f"user {quote(user.name)} cannot update the HubAcceptsClient field"
            raise denied(VALIDATORS, resource, name, reason)

    def _is_foreign(self, cluster: str, namespace: Obj) -> bool:
        return self._compat.protects_foreign_namespaces and not is_namespace_of(cluster, namespace)

    def _check_membership(self, user: User, name: str) -> None:
        required = Attributes("create", GROUP, "", _SETS, "join", name=name)
        if not self._authorizer.authorize(user, required).allowed:
            reason = (
                f"user {quote(user.name)} cannot add/remove a ManagedCluster to/from"
                f" ManagedClusterSet {quote(name)}"
            )
            raise denied(VALIDATORS, f"{_SETS}/join", name, reason)

    def _check_binding(self, user: User, obj: Obj) -> None:
        name = (obj.get("spec") or {}).get("clusterSet", "")
        required = Attributes("create", GROUP, "", _SETS, "bind", name=name)
        if not self._authorizer.authorize(user, required).allowed:
            reason = f"user {quote(user.name)} is not allowed to bind cluster set {quote(name)}"
            raise denied(BINDING_VALIDATORS, f"{_SETS}/bind", name, reason)


def _is_accepted(obj: Obj | None) -> bool:
    return bool(((obj or {}).get("spec") or {}).get("hubAcceptsClient"))


def _set_of(obj: Obj | None) -> str:
    labels = ((obj or {"metadata": {}})["metadata"].get("labels")) or {}
    name: str = labels.get(SET_LABEL, "")
    return name
