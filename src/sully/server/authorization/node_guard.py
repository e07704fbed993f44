"""Holds node identities to their own objects where only the content tells whose they are.

What can be told from the URL alone is decided in nodes.py. The texts are those of the admission
plugin NodeRestriction.
"""

from collections.abc import Callable
from typing import Any

from sully.machinery.errors import Forbidden, forbidden, not_found
from sully.machinery.gotext import quote
from sully.server.authorization.nodes import LEASES, node_name
from sully.server.authorization.relations import MIRROR
from sully.server.guards import Attempt

Obj = dict[str, Any]
Lookup = Callable[[str, str, str], Obj | None]

_LEASE_PLACE = f"can only access leases in the {quote(LEASES)} system namespace"
_LEASE_NAME = "can only access node lease with the same name as the requesting node"
_SLICE = "can only {} ResourceSlice with the same NodeName as the requesting node"
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
_OWN_NAMESPACES = ("kubelet.kubernetes.io", "node.kubernetes.io")


class NodeGuard:
    """Checks the content of what nodes write."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup

    def check(self, attempt: Attempt) -> None:
        """Refuse what a node does to objects that are not its own."""
        node = node_name(attempt.request.user)
        if node is None:
            return
        resource = attempt.request.target.resource
        match resource.group, resource.plural:
            case "", "pods":
                self._pod(node, attempt)
            case "", "nodes":
                _node(node, attempt)
            case "", "serviceaccounts":
                self._token(node, attempt)
            case "resource.k8s.io", "resourceslices":
                _slice(node, attempt)
            case "coordination.k8s.io", "leases":
                _lease(node, attempt)
            case _:
                # Of nothing else a node has its own.
                return

    def _pod(self, node: str, attempt: Attempt) -> None:
        who = f"node {quote(node)}"
        subresource = attempt.request.target.subresource
        match subresource, attempt.operation:
            case "", "create":
                problem = _pod_problem(who, node, attempt.obj or {})
            case "", "delete":
                own = _is_on(node, attempt.old)
                problem = "" if own else "can only delete pods with spec.nodeName set to itself"
            case "status", _:
                problem = _status_problem(node, attempt.obj or {}, attempt.old or {})
            case "eviction", _:
                own = _is_on(node, self._own(attempt, "pods"))
                problem = "" if own else "can only evict pods with spec.nodeName set to itself"
            case _:
                return
        if problem:
            text = problem if problem.startswith("pod ") else f"{who} {problem}"
            raise _refused(attempt, text)

    def _token(self, node: str, attempt: Attempt) -> None:
        if attempt.request.target.subresource != "token":
            return
        spec = (attempt.obj or {}).get("spec") or {}
        bound = spec.get("boundObjectRef") or {}
        if bound.get("kind") != "Pod" or not bound.get("name"):
            raise _refused(attempt, "node requested token not bound to a pod")
        if not bound.get("uid"):
            raise _refused(attempt, "node requested token with a pod binding without a uid")
        pod = self._lookup("pods", attempt.request.target.namespace, bound["name"])
        if pod is None:
            raise not_found("pods", "", bound["name"])
        if pod["metadata"]["uid"] != bound["uid"]:
            raise _refused(
                attempt,
                f"the UID in the bound object reference ({bound['uid']}) does not match the UID"
                f" in record. The object might have been deleted and then recreated",
            )
        if not _is_on(node, pod):
            text = "node requested token bound to a pod scheduled on a different node"
            raise _refused(attempt, text)

    def _own(self, attempt: Attempt, resource: str) -> Obj:
        target = attempt.request.target
        found = self._lookup(resource, target.namespace, target.name)
        if found is None:
            raise not_found(resource, "", target.name)
        return found


def _is_on(node: str, pod: Obj | None) -> bool:
    return pod is not None and pod["spec"].get("nodeName", "") == node


def _pod_problem(who: str, node: str, pod: Obj) -> str:
    if MIRROR not in (pod["metadata"].get("annotations") or {}):
        return f"pod does not have {quote(MIRROR)} annotation, {who} can only create mirror pods"
    if not _is_on(node, pod):
        return "can only create pods with spec.nodeName set to itself"
    spec = pod["spec"]
    if spec.get("serviceAccountName"):
        return "can not create pods that reference a service account"
    for volume in spec.get("volumes") or ():
        for kind, words in (("secret", "secrets"), ("configMap", "configmaps")):
            if kind in volume:
                return f"can not create pods that reference {words}"
    if spec.get("resourceClaims"):
        return "can not create pods that reference resourceclaims"
    return ""


def _status_problem(node: str, pod: Obj, old: Obj) -> str:
    if not _is_on(node, old):
        return "can only update pod status for pods with spec.nodeName set to itself"
    if (pod["metadata"].get("labels") or {}) != (old["metadata"].get("labels") or {}):
        return "cannot update labels through pod status"
    claims = "resourceClaimStatuses"
    if (pod.get("status") or {}).get(claims) != (old.get("status") or {}).get(claims):
        return "cannot update resource claim statuses"
    return ""


def _node(node: str, attempt: Attempt) -> None:
    target, obj, old = attempt.request.target, attempt.obj or {}, attempt.old
    name = target.name or obj["metadata"].get("name", "")
    who = f"node {quote(node)} is not allowed to"
    if name != node:
        raise _refused(attempt, f"{who} modify node {quote(name)}")
    before = (old or {"metadata": {}})["metadata"].get("labels") or {}
    after = obj["metadata"].get("labels") or {}
    changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    bad = ", ".join(sorted(filter(_is_reserved, changed)))
    if bad:
        verb = "set the following labels" if old is None else "modify labels"
        raise _refused(attempt, f"{who} {verb}: {bad}")
    if old is None:
        return
    if (obj["spec"].get("taints") or []) != (old["spec"].get("taints") or []):
        raise _refused(attempt, f"{who} modify taints")
    owners = "ownerReferences"
    if (obj["metadata"].get(owners) or []) != (old["metadata"].get(owners) or []):
        raise _refused(attempt, f"{who} modify ownerReferences")


def _is_reserved(label: str) -> bool:
    """Say whether a label can mean that pods of a certain kind belong on a node."""
    domain = label.partition("/")[0] if "/" in label else ""
    if domain == _RESTRICTED or domain.endswith(f".{_RESTRICTED}"):
        return True
    theirs = any(
        domain == each or domain.endswith(f".{each}") for each in ("kubernetes.io", "k8s.io")
    )
    if not theirs or label in _OWN_LABELS:
        return False
    return not any(domain == each or domain.endswith(f".{each}") for each in _OWN_NAMESPACES)


def _slice(node: str, attempt: Attempt) -> None:
    seen = attempt.obj if attempt.operation == "create" else attempt.old
    if seen is None or seen["spec"].get("nodeName", "") != node:
        raise _refused(attempt, _SLICE.format(attempt.operation))


def _lease(node: str, attempt: Attempt) -> None:
    target = attempt.request.target
    if target.namespace != LEASES:
        raise _refused(attempt, _LEASE_PLACE)
    name = target.name or (attempt.obj or {"metadata": {}})["metadata"].get("name", "")
    if name != node:
        raise _refused(attempt, _LEASE_NAME)


def _refused(attempt: Attempt, why: str) -> Forbidden:
    target = attempt.request.target
    obj: Obj = attempt.obj or {}
    name = target.name or (obj.get("metadata") or {}).get("name", "")
    return forbidden(target.resource.plural, target.resource.group, name, why)
