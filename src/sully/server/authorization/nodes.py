"""What a node identity may do, by verb and by its relation to the object.

The identity is the user `system:node:NAME` in the group `system:nodes`. What depends on the content
of a write is checked by the admission plugin (admission/node_restriction.py).
"""

from collections.abc import Callable
from typing import Any

from sully.api.rbac.rules import Rights, resource_access
from sully.server.authorization.attributes import Attributes, Verdict
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
_YES = Verdict(allowed=True)
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
    """Return the node whose identity a user is, None for other users."""
    if GROUP not in user.groups or not user.name.startswith(PREFIX):
        return None
    return user.name.removeprefix(PREFIX)


def _no(reason: str = "") -> Verdict:
    return Verdict(allowed=False, reason=reason)


class Nodes:
    """Decides for node identities."""

    def __init__(self, relations: Relations, lookup: Lookup) -> None:
        self._relations = relations
        self._lookup = lookup
        self._rights = Rights(NODE_RULES)
        # Resources where the verb alone does not decide.
        self._narrower: dict[tuple[str, str], Callable[[str, Attributes], Verdict]] = {
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

    def decide(self, node: str, asked: Attributes) -> Verdict:
        """Report whether a node may do something."""
        if asked.path is not None:
            return _YES if self._rights.grant_path(asked.verb, asked.path) else _no()
        narrower = self._narrower.get((asked.group, asked.resource))
        if narrower is not None:
            return narrower(node, asked)
        put = resource_access(
            asked.verb, asked.group, asked.resource, asked.subresource, asked.name
        )
        return _YES if self._rights.grant(put) else _no()

    def _related(self, node: str, asked: Attributes) -> Verdict:
        if not asked.name:
            return _no("No Object name found")
        if self._relations.uses(node, (asked.resource, asked.namespace, asked.name)):
            return _YES
        return _no(f"no relationship found between node '{node}' and this object")

    def _read(self, node: str, asked: Attributes) -> Verdict:
        if asked.verb not in _READ:
            return _no("can only read resources of this type")
        if asked.subresource:
            return _no("cannot read subresource")
        if not asked.namespace:
            return _no("can only read namespaced object of this type")
        return self._related(node, asked)

    def _get(self, node: str, asked: Attributes) -> Verdict:
        if asked.verb != "get":
            return _no("can only get individual resources of this type")
        if asked.subresource:
            return _no("cannot get subresource")
        return self._related(node, asked)

    def _account(self, node: str, asked: Attributes) -> Verdict:
        if asked.verb == "get" and not asked.subresource:
            return self._related(node, asked)
        if asked.verb != "create" or asked.subresource != "token":
            return _no("can only create tokens for individual service accounts")
        return self._related(node, asked)

    def _node(self, node: str, asked: Attributes) -> Verdict:
        match asked.subresource, asked.verb:
            case ("", "create" | "update" | "patch") | ("status", "update" | "patch"):
                return _YES
            case "", "get" | "list" | "watch":
                if asked.name == node:
                    return _YES
                which = f"read '{asked.name}'" if asked.name else "read all nodes"
                return _no(f"node '{node}' cannot {which}, only its own Node object")
            case _:
                return _no()

    def _pod(self, node: str, asked: Attributes) -> Verdict:
        match asked.subresource, asked.verb:
            case "", "get":
                return self._related(node, asked)
            case "", "list" | "watch":
                if asked.fields.get("spec.nodeName") == node:
                    return _YES
                return self._related(node, asked) if asked.name else _no(_POD_LIST)
            case (
                ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create")
            ):
                return _YES
            case _:
                return _no()

    def _slice(self, node: str, asked: Attributes) -> Verdict:
        if asked.subresource:
            return _no("cannot authorize ResourceSlice subresources")
        match asked.verb:
            case "create":
                return _YES
            case "get" | "update" | "patch" | "delete":
                return self._own_slice(node, asked)
            case "list" | "watch" | "deletecollection":
                return _YES if asked.fields.get("spec.nodeName") == node else _no(_SLICE_LIST)
            case _:
                return _no(_SLICE_VERBS)

    def _own_slice(self, node: str, asked: Attributes) -> Verdict:
        slice_ = self._lookup(SLICES, "", asked.name) if asked.name else None
        if slice_ is not None and slice_["spec"].get("nodeName") == node:
            return _YES
        return _no(
            f"no relationship found between node '{node}' and this object"
            if asked.name
            else "No Object name found"
        )


def _lease(node: str, asked: Attributes) -> Verdict:
    if asked.verb not in _LEASE_VERBS:
        return _no(_LEASE_TEXT)
    if asked.namespace != LEASES:
        return _no(_LEASE_PLACE)
    if asked.verb != "create" and asked.name != node:
        return _no(_LEASE_NAME)
    return _YES
