"""Restricts node identities to their own objects, where the content decides whose they are.

What the URL alone decides is in authorization/nodes.py. The texts are those of the admission plugin
NodeRestriction. node_pods.py has pods and their tokens.
"""

from collections.abc import Callable
from typing import Any

from sully.machinery.compat import Compat
from sully.machinery.errors import Forbidden, forbidden
from sully.machinery.serialization.gotext import quote
from sully.server.admission.node_pods import NodePods
from sully.server.admission.plugins import AdmissionAttributes
from sully.server.authorization.attributes import Authorizer
from sully.server.authorization.nodes import LEASES, node_name
from sully.server.requests import Target

Obj = dict[str, Any]
Lookup = Callable[[str, str, str], Obj | None]

_LEASE_PLACE = f"can only access leases in the {quote(LEASES)} system namespace"
_LEASE_NAME = "can only access node lease with the same name as the requesting node"
_SLICE = "can only {} ResourceSlice with the same NodeName as the requesting node"
_POOL = "can not create ResourceSlice in pool {}, which is named like another node"
_RESTRICTED = "node-restriction.kubernetes.io"
# Labels in Kubernetes' own namespaces that a node may set on itself.
_OWN_LABELS = frozenset(
    (
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "node.kubernetes.io/instance-type",
        "beta.kubernetes.io/instance-type",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
    )
)
_OWNED = frozenset(
    (
        ("", "pods"),
        ("", "nodes"),
        ("", "serviceaccounts"),
        ("resource.k8s.io", "resourceslices"),
        ("coordination.k8s.io", "leases"),
    )
)
"""Of these, objects belong to nodes."""
_OWN_NAMESPACES = ("kubelet.kubernetes.io", "node.kubernetes.io")


class NodeRestriction:
    """Checks the content of what nodes write."""

    def __init__(self, authorizer: Authorizer, lookup: Lookup, compat: Compat) -> None:
        self._lookup = lookup
        self._compat = compat
        self._pods = NodePods(authorizer, lookup)

    def handles(self, target: Target, operation: str) -> bool:  # noqa: ARG002 - part of the protocol
        """Report whether the plugin checks an operation on a resource."""
        return (target.resource.group, target.resource.plural) in _OWNED

    def validate(self, attributes: AdmissionAttributes) -> None:
        """Reject what a node does to objects that are not its own."""
        node = node_name(attributes.request.user)
        if node is None:
            return
        if not node:
            who = quote(attributes.request.user.name)
            raise _refused(attributes, f"could not determine node from user {who}")
        resource = attributes.request.target.resource
        match resource.group, resource.plural:
            case "", "pods":
                _refuse(attributes, self._pods.pod_problem(node, attributes))
            case "", "nodes":
                _node(node, attributes)
            case "", "serviceaccounts" if attributes.request.target.subresource == "token":
                _refuse(attributes, self._pods.token_problem(node, attributes))
            case "resource.k8s.io", "resourceslices":
                self._slice(node, attributes)
            case "coordination.k8s.io", "leases":
                _lease(node, attributes)
            case _:
                # Nodes have no other objects of their own.
                return

    def _slice(self, node: str, attributes: AdmissionAttributes) -> None:
        seen = attributes.obj if attributes.operation == "create" else attributes.old
        if seen is None or seen["spec"].get("nodeName", "") != node:
            raise _refused(attributes, _SLICE.format(attributes.operation))
        pool = seen["spec"]["pool"]["name"]
        if (
            attributes.operation != "create"
            or not self._compat.enforces_pool_owners
            or pool == node
        ):
            return
        if self._lookup("nodes", "", pool) is not None:
            # Kubernetes accepts it, and devices of that node could be taken for those of this one.
            raise _refused(attributes, _POOL.format(quote(pool)))


def _node(node: str, attributes: AdmissionAttributes) -> None:
    target, obj, old = attributes.request.target, attributes.obj or {}, attributes.old
    name = target.name or obj["metadata"].get("name", "")
    subject = f"node {quote(node)} is not allowed to"
    if name != node:
        raise _refused(attributes, f"{subject} modify node {quote(name)}")
    if old is not None:
        if (obj["spec"].get("taints") or []) != (old["spec"].get("taints") or []):
            raise _refused(attributes, f"{subject} modify taints")
        owners = "ownerReferences"
        if (obj["metadata"].get(owners) or []) != (old["metadata"].get(owners) or []):
            raise _refused(attributes, f"{subject} modify ownerReferences")
    before = (old or {"metadata": {}})["metadata"].get("labels") or {}
    after = obj["metadata"].get("labels") or {}
    changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    bad = ", ".join(sorted(filter(_is_reserved, changed)))
    if bad and old is None:
        raise _refused(attributes, f"{subject} set the following labels: {bad}")
    if bad:
        raise _refused(attributes, f"is not allowed to modify labels: {bad}")


def _is_reserved(label: str) -> bool:
    """Report whether a label can mean that pods of a certain kind belong on a node."""
    domain = label.partition("/")[0] if "/" in label else ""
    if domain == _RESTRICTED or domain.endswith(f".{_RESTRICTED}"):
        return True
    theirs = any(
        domain == parent or domain.endswith(f".{parent}") for parent in ("kubernetes.io", "k8s.io")
    )
    if not theirs or label in _OWN_LABELS:
        return False
    return not any(domain == parent or domain.endswith(f".{parent}") for parent in _OWN_NAMESPACES)


def _lease(node: str, attributes: AdmissionAttributes) -> None:
    target = attributes.request.target
    if target.namespace != LEASES:
        raise _refused(attributes, _LEASE_PLACE)
    name = target.name or (attributes.obj or {"metadata": {}})["metadata"].get("name", "")
    if name != node:
        raise _refused(attributes, _LEASE_NAME)


def _refuse(attributes: AdmissionAttributes, reason: str) -> None:
    if reason:
        raise _refused(attributes, reason)


def _refused(attributes: AdmissionAttributes, reason: str) -> Forbidden:
    target = attributes.request.target
    obj: Obj = attributes.obj or {}
    name = target.name or (obj.get("metadata") or {}).get("name", "")
    return forbidden(target.resource.plural, target.resource.group, name, reason)
