"""Which objects a node may read: those that the pods bound to it use.

A node may read the Secrets, ConfigMaps, claims and ServiceAccounts of its own pods and no others,
so a stolen node key gives access to one node's objects. nodes.py calls it.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from sully.api.core.pods.mirrors import is_mirror
from sully.api.core.pods.references import references
from sully.domain.claims.pods import Pod, claim_references

Obj = dict[str, Any]

_READABLE = frozenset(("configmaps", "persistentvolumeclaims", "secrets", "serviceaccounts"))
"""The references of pods that give their node access, besides claims."""

# Resource, namespace, name.
ObjectRef = tuple[str, str, str]


class Relations:
    """The objects that pods on a node use, counted."""

    def __init__(self) -> None:
        self._pods: dict[tuple[str, str], tuple[str, tuple[ObjectRef, ...]]] = {}
        self._used: dict[str, Counter[ObjectRef]] = {}
        """By node."""

    def put(self, pod: Obj) -> None:
        """Add a pod; an unbound pod has no relations."""
        metadata = pod["metadata"]
        key = (metadata["namespace"], metadata["name"])
        node = pod["spec"].get("nodeName", "")
        entry = (node, tuple(dict.fromkeys(used_by(pod)))) if node else None
        if self._pods.get(key) != entry:
            self.drop(*key)
            if entry is not None:
                self._pods[key] = entry
                self._used.setdefault(node, Counter()).update(entry[1])

    def drop(self, namespace: str, name: str) -> None:
        """Remove a pod."""
        node, refs = self._pods.pop((namespace, name), ("", ()))
        for ref in refs:
            used = self._used[node]
            used[ref] -= 1
            if not used[ref]:
                del used[ref]
        if refs and not self._used[node]:
            del self._used[node]

    def uses(self, node: str, ref: ObjectRef) -> bool:
        """Report whether a pod on a node uses an object."""
        return ref in self._used.get(node, ())


def used_by(pod: Obj) -> Iterator[ObjectRef]:
    """Yield the pod itself, then what it uses."""
    namespace = pod["metadata"]["namespace"]
    yield "pods", namespace, pod["metadata"]["name"]
    if is_mirror(pod):
        # Mirror pods are created by nodes and must not give them access.
        return
    for reference in references(pod):
        if reference.name and reference.resource in _READABLE:
            yield reference.resource, namespace, reference.name
    # Also those that controllers created for it; nodes cannot write these fields.
    for claim in claim_references(msgspec.convert(pod, Pod)):
        if claim.name:
            yield "resourceclaims", namespace, claim.name
