"""What node identities may do to pods, and for which pods they get tokens.

A node may read what its pods refer to (relations.py), so it must not create a pod that refers to
anything, nor change what a pod refers to. The texts are those of the admission plugin
NodeRestriction. node_restriction.py calls it.
"""

from collections.abc import Callable, Iterator
from typing import Any

from sully.api.core.pods.mirrors import MIRROR, is_mirror
from sully.api.core.pods.references import references
from sully.machinery.errors import not_found
from sully.machinery.serialization.gotext import quote
from sully.server.admission.plugins import AdmissionAttributes
from sully.server.authorization.attributes import Attributes, Authorizer

Obj = dict[str, Any]
Lookup = Callable[[str, str, str], Obj | None]

_FIRST = ("serviceaccounts", "secrets", "configmaps")
"""What a text names first where a pod refers to several things."""
_SYSTEM_STATUS = {
    # The spelling is that of the wire.
    "resourceClaimStatuses": "resource claim statues",
    "extendedResourceClaimStatus": "extended resource claim status",
    "nodeAllocatableResourceClaimStatuses": "node allocatable resource claim statuses",
}
"""Parts of a pod's status that only the system writes, by their names in texts."""
_AUDIENCE_VERB = "request-serviceaccounts-token-audience"


class NodePods:
    """Checks what a node writes to pods, and the tokens that it requests."""

    def __init__(self, authorizer: Authorizer, lookup: Lookup) -> None:
        self._authorizer = authorizer
        self._lookup = lookup

    def pod_problem(self, node: str, attributes: AdmissionAttributes) -> str:
        """Return why a node may not write a pod; empty if it may."""
        subject = f"node {quote(node)}"
        match attributes.request.target.subresource, attributes.operation:
            case "", "create":
                return self._mirror_problem(node, attributes.obj or {})
            case "", "delete":
                own = _is_on(node, attributes.old)
                return (
                    ""
                    if own
                    else f"{subject} can only delete pods with spec.nodeName set to itself"
                )
            case "", _:
                only = f"{subject} can only create and delete mirror pods"
                return f'unexpected operation "UPDATE", {only}'
            case "status", _:
                problem = _status_problem(node, attributes.obj or {}, attributes.old or {})
                return f"{subject} {problem}" if problem else ""
            case "eviction", _:
                own = _is_on(node, self._target(attributes))
                return (
                    "" if own else f"{subject} can only evict pods with spec.nodeName set to itself"
                )
            case other, _:
                only = "only 'status' and 'eviction' are allowed"
                return f"unexpected pod subresource {quote(other)}, {only}"

    def _mirror_problem(self, node: str, pod: Obj) -> str:
        subject = f"node {quote(node)}"
        if not is_mirror(pod):
            annotation = quote(MIRROR)
            return (
                f"pod does not have {annotation} annotation, {subject} can only create mirror pods"
            )
        if not _is_on(node, pod):
            return f"{subject} can only create pods with spec.nodeName set to itself"
        problem = self._owner_problem(node, pod["metadata"].get("ownerReferences") or [])
        if problem:
            return problem
        referenced = _referenced(pod)
        return f"{subject} can not create pods that reference {referenced}" if referenced else ""

    def _owner_problem(self, node: str, owners: list[Obj]) -> str:
        """Check that the only owner is the node itself, so that no controller acts on the pod."""
        only = f"node {quote(node)} can only create pods with"
        if len(owners) > 1:
            return f"{only} a single owner reference set to itself"
        identity = ("v1", "Node", node)
        if not owners or _identity(owners[0]) != identity:
            return f"{only} an owner reference set to itself"
        owner = owners[0]
        if not owner.get("controller"):
            return f"{only} a controller owner reference set to itself"
        if owner.get("blockOwnerDeletion"):
            return f"node {quote(node)} must not set blockOwnerDeletion on an owner reference"
        live = self._lookup("nodes", "", node)
        if live is None:
            raise not_found("nodes", "", node)
        expected, uid = owner.get("uid", ""), live["metadata"]["uid"]
        return "" if expected == uid else f"node {node} UID mismatch: expected {expected} got {uid}"

    def token_problem(self, node: str, attributes: AdmissionAttributes) -> str:
        """Return why a node does not get a token; empty if it does."""
        spec = (attributes.obj or {}).get("spec") or {}
        bound = spec.get("boundObjectRef") or {}
        if (bound.get("apiVersion"), bound.get("kind")) != ("v1", "Pod") or not bound.get("name"):
            return "node requested token not bound to a pod"
        if not bound.get("uid"):
            return "node requested token with a pod binding without a uid"
        pod = self._lookup("pods", attributes.request.target.namespace, bound["name"])
        if pod is None:
            raise not_found("pods", "", bound["name"])
        if pod["metadata"]["uid"] != bound["uid"]:
            return (
                f"the UID in the bound object reference ({bound['uid']}) does not match the UID"
                f" in record. The object might have been deleted and then recreated"
            )
        if not _is_on(node, pod):
            return "node requested token bound to a pod scheduled on a different node"
        return self._audience_problem(attributes, spec.get("audiences") or [], pod)

    def _audience_problem(
        self, attributes: AdmissionAttributes, audiences: list[str], pod: Obj
    ) -> str:
        """Check that a pod mounts a token for the audience, or that a role allows the node to."""
        if len(audiences) > 1:
            return "node may only request 0 or 1 audiences"
        audience = audiences[0] if audiences else ""
        if audience in _audiences(pod):
            return ""
        user, target = attributes.request.user, attributes.request.target
        required = Attributes(
            _AUDIENCE_VERB,
            "",
            target.version,
            audience,
            namespace=target.namespace,
            name=target.name,
        )
        if self._authorizer.authorize(user, required).allowed:
            return ""
        return f"{user.name} is not authorized to request tokens for audience {quote(audience)}"

    def _target(self, attributes: AdmissionAttributes) -> Obj:
        target = attributes.request.target
        pod = self._lookup("pods", target.namespace, target.name)
        if pod is None:
            raise not_found("pods", "", target.name)
        return pod


def _is_on(node: str, pod: Obj | None) -> bool:
    return pod is not None and pod["spec"].get("nodeName", "") == node


def _identity(owner: Obj) -> tuple[str, str, str]:
    return owner.get("apiVersion", ""), owner.get("kind", ""), owner.get("name", "")


def _referenced(pod: Obj) -> str:
    """Return a resource that a pod references; empty if there is none."""
    used = list(references(pod))
    for resource in _FIRST:
        if any(reference.resource == resource and reference.name for reference in used):
            return resource
    for reference in used:
        return (
            f"{reference.resource} (via {reference.via})" if reference.via else reference.resource
        )
    return ""


def _status_problem(node: str, pod: Obj, old: Obj) -> str:
    if not _is_on(node, old):
        return "can only update pod status for pods with spec.nodeName set to itself"
    if (pod["metadata"].get("labels") or {}) != (old["metadata"].get("labels") or {}):
        return "cannot update labels through pod status"
    after, before = pod.get("status") or {}, old.get("status") or {}
    for field, description in _SYSTEM_STATUS.items():
        if (after.get(field) or None) != (before.get(field) or None):
            return f"cannot update {description}"
    return ""


def _audiences(pod: Obj) -> Iterator[str]:
    for volume in pod["spec"].get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if "serviceAccountToken" in source:
                yield source["serviceAccountToken"].get("audience", "")
