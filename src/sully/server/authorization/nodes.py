"""What a node identity may do, by verb and by its relation to the object.

The identity is the user `system:node:NAME` in the group `system:nodes`. What depends on the content
of a write is checked by the admission plugin (admission/node_restriction.py).
"""

from collections.abc import Callable
from typing import Any

from sully.api.rbac.rules import Rights, resource_access
from sully.machinery.serialization.gotext import quote
from sully.server.authorization.attributes import Attributes, Decision
from sully.server.authorization.policy.nodes import NODE_RULES
from sully.server.authorization.relations import Relations
from sully.server.requests import User

Obj = dict[str, Any]
Lookup = Callable[[str, str, str], Obj | None]

PREFIX = "system:node:"
GROUP = "system:nodes"
LEASES = "kube-node-lease"
SLICES = "resource.k8s.io/resourceslices"

_READ = ("get", "list", "watch")
_YES = Decision(allowed=True)
_LEASE_VERBS = ("get", "create", "update", "patch", "delete")
_LEASE_TEXT = "can only get, create, update, patch, or delete a node lease"
_LEASE_PLACE = f'can only access leases in the "{LEASES}" system namespace'
_LEASE_NAME = "can only access node lease with the same name as the requesting node"
_SLICE_LIST = "can only list/watch/deletecollection resourceslices with nodeName field selector"
_SLICE_VERBS = (
    "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update,"
    " patch, delete, deletecollection"
)
_POD_LIST = "can only list/watch pods with spec.nodeName field selector"


def node_name(user: User) -> str | None:
    """Return the node whose identity a user is, None for other users.

    It is empty for a node without a name, which may do nothing.
    """
    if GROUP not in user.groups or not user.name.startswith(PREFIX):
        return None
    return user.name.removeprefix(PREFIX)


def _no(reason: str = "") -> Decision:
    return Decision(allowed=False, reason=reason)


class Nodes:
    """Decides for node identities."""

    def __init__(self, relations: Relations, lookup: Lookup) -> None:
        self._relations = relations
        self._lookup = lookup
        self._rights = Rights(NODE_RULES)
        # Resources where the verb alone does not decide.
        self._restricted: dict[tuple[str, str], Callable[[str, Attributes], Decision]] = {
            ("", "secrets"): self._read,
            ("", "configmaps"): self._read,
            ("", "persistentvolumeclaims"): self._get,
            ("", "serviceaccounts"): self._account,
            ("", "nodes"): self._node,
            ("", "pods"): self._pod,
            ("resource.k8s.io", "resourceclaims"): self._get,
            ("resource.k8s.io", "resourceslices"): self._slice,
            ("coordination.k8s.io", "leases"): _lease,
        }

    def authorize(self, node: str, attributes: Attributes) -> Decision:
        """Report whether a node may do something."""
        if not node:
            # Objects that belong to no node would be its own.
            return _no(f"unknown node for user {quote(PREFIX)}")
        if attributes.path is not None:
            return _YES if self._rights.grant_path(attributes.verb, attributes.path) else _no()
        restricted = self._restricted.get((attributes.group, attributes.resource))
        if restricted is not None:
            return restricted(node, attributes)
        access = resource_access(
            attributes.verb,
            attributes.group,
            attributes.resource,
            attributes.subresource,
            attributes.name,
        )
        return _YES if self._rights.grant(access) else _no()

    def _related(self, node: str, attributes: Attributes) -> Decision:
        if not attributes.name:
            return _no("No Object name found")
        if self._relations.uses(node, (attributes.resource, attributes.namespace, attributes.name)):
            return _YES
        return _no(f"no relationship found between node '{node}' and this object")

    def _read(self, node: str, attributes: Attributes) -> Decision:
        if attributes.verb not in _READ:
            return _no("can only read resources of this type")
        if attributes.subresource:
            return _no("cannot read subresource")
        if not attributes.namespace:
            return _no("can only read namespaced object of this type")
        return self._related(node, attributes)

    def _get(self, node: str, attributes: Attributes) -> Decision:
        if attributes.verb != "get":
            return _no("can only get individual resources of this type")
        if attributes.subresource:
            return _no("cannot get subresource")
        return self._related(node, attributes)

    def _account(self, node: str, attributes: Attributes) -> Decision:
        if attributes.verb == "get" and not attributes.subresource:
            return self._related(node, attributes)
        if attributes.verb != "create" or attributes.subresource != "token":
            return _no("can only create tokens for individual service accounts")
        return self._related(node, attributes)

    def _node(self, node: str, attributes: Attributes) -> Decision:
        match attributes.subresource, attributes.verb:
            case ("", "create" | "update" | "patch") | ("status", "update" | "patch"):
                return _YES
            case "", "get" | "list" | "watch":
                if attributes.name == node:
                    return _YES
                text = f"read '{attributes.name}'" if attributes.name else "read all nodes"
                return _no(f"node '{node}' cannot {text}, only its own Node object")
            case _:
                return _no()

    def _pod(self, node: str, attributes: Attributes) -> Decision:
        match attributes.subresource, attributes.verb:
            case "", "get":
                return self._related(node, attributes)
            case "", "list" | "watch":
                if attributes.fields.get("spec.nodeName") == node:
                    return _YES
                return self._related(node, attributes) if attributes.name else _no(_POD_LIST)
            case (
                ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create")
            ):
                return _YES
            case _:
                return _no()

    def _slice(self, node: str, attributes: Attributes) -> Decision:
        if attributes.subresource:
            return _no("cannot authorize ResourceSlice subresources")
        match attributes.verb:
            case "create":
                return _YES
            case "get" | "update" | "patch" | "delete":
                return self._own_slice(node, attributes)
            case "list" | "watch" | "deletecollection":
                return _YES if attributes.fields.get("spec.nodeName") == node else _no(_SLICE_LIST)
            case _:
                return _no(_SLICE_VERBS)

    def _own_slice(self, node: str, attributes: Attributes) -> Decision:
        slice_ = self._lookup(SLICES, "", attributes.name) if attributes.name else None
        if slice_ is not None and slice_["spec"].get("nodeName") == node:
            return _YES
        return _no(
            f"no relationship found between node '{node}' and this object"
            if attributes.name
            else "No Object name found"
        )


def _lease(node: str, attributes: Attributes) -> Decision:
    if attributes.verb not in _LEASE_VERBS:
        return _no(_LEASE_TEXT)
    if attributes.namespace != LEASES:
        return _no(_LEASE_PLACE)
    if attributes.verb != "create" and attributes.name != node:
        return _no(_LEASE_NAME)
    return _YES
