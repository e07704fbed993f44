"""Which objects a node may read: those that the pods bound to it use.

A node may read the secrets, maps, claims and accounts of its own pods and no others, so a stolen
node key gives access to one node's objects. nodes.py calls it.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from sully.api.core.pods.mirrors import is_mirror
from sully.api.core.pods.references import references

Obj = dict[str, Any]

_READABLE = frozenset(
    ("configmaps", "persistentvolumeclaims", "resourceclaims", "secrets", "serviceaccounts")
)
"""The references of pods that give their node access."""

# Resource, namespace, name.
Thing = tuple[str, str, str]


class Relations:
    """The objects that pods on a node use, counted."""

    def __init__(self) -> None:
        self._pods: dict[tuple[str, str], tuple[str, frozenset[Thing]]] = {}
        self._used: Counter[tuple[str, Thing]] = Counter()

    def put(self, pod: Obj) -> None:
        """Add a pod; an unbound pod has no relations."""
        metadata = pod["metadata"]
        at = (metadata["namespace"], metadata["name"])
        node = pod["spec"].get("nodeName", "")
        now = (node, frozenset(used_by(pod))) if node else None
        if self._pods.get(at) != now:
            self.drop(*at)
            if now is not None:
                self._pods[at] = now
                self._used.update((node, thing) for thing in now[1])

    def drop(self, namespace: str, name: str) -> None:
        """Forget a pod."""
        node, things = self._pods.pop((namespace, name), ("", frozenset()))
        for thing in things:
            self._used[node, thing] -= 1
            if not self._used[node, thing]:
                del self._used[node, thing]

    def uses(self, node: str, thing: Thing) -> bool:
        """Report whether some pod on a node uses a thing."""
        return (node, thing) in self._used


def used_by(pod: Obj) -> Iterator[Thing]:
    """Yield what a pod uses, beginning with itself."""
    namespace = pod["metadata"]["namespace"]
    yield "pods", namespace, pod["metadata"]["name"]
    if is_mirror(pod):
        # Mirror pods are created by nodes and must not give them access.
        return
    for reference in references(pod):
        if reference.name and reference.resource in _READABLE:
            yield reference.resource, namespace, reference.name
    for name in _made_claims(pod.get("status") or {}):
        yield "resourceclaims", namespace, name


def _made_claims(status: Obj) -> Iterator[str]:
    """Yield the claims that the system made for a pod; nodes cannot write these fields."""
    extended = status.get("extendedResourceClaimStatus") or {}
    for made in (*(status.get("resourceClaimStatuses") or ()), extended):
        if made.get("resourceClaimName"):
            yield made["resourceClaimName"]
