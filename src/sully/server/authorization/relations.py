"""Which objects a node has to do with: those that the pods bound to it use.

A node may read the secrets, maps, claims and accounts of its own pods and no others, so a stolen
node key opens one node's drawers. Neighbour: nodes.py asks.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

Obj = dict[str, Any]

MIRROR = "kubernetes.io/config.mirror"

# Resource, namespace, name.
Thing = tuple[str, str, str]


class Relations:
    """Every thing that pods on a node use, counted."""

    def __init__(self) -> None:
        self._pods: dict[tuple[str, str], tuple[str, frozenset[Thing]]] = {}
        self._used: Counter[tuple[str, Thing]] = Counter()

    def put(self, pod: Obj) -> None:
        """Take in a pod; one that is on no node has no relations yet."""
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
        """Say whether some pod on a node uses a thing."""
        return (node, thing) in self._used


def used_by(pod: Obj) -> Iterator[Thing]:
    """Go through what a pod uses, beginning with itself."""
    metadata, spec = pod["metadata"], pod["spec"]
    namespace = metadata["namespace"]
    yield "pods", namespace, metadata["name"]
    if MIRROR in (metadata.get("annotations") or {}):
        # A node makes these up itself; they must not give it anything.
        return
    if spec.get("serviceAccountName"):
        yield "serviceaccounts", namespace, spec["serviceAccountName"]
    for reference in spec.get("imagePullSecrets") or ():
        yield "secrets", namespace, reference.get("name", "")
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(kind) or ():
            for resource, name in _of_container(container):
                yield resource, namespace, name
    for volume in spec.get("volumes") or ():
        for resource, name in _of_volume(volume):
            yield resource, namespace, name
    for name in _claims(pod):
        yield "resourceclaims", namespace, name


def _of_container(container: Obj) -> Iterator[tuple[str, str]]:
    for source in container.get("envFrom") or ():
        yield from _named(source, ("secretRef", "secrets"), ("configMapRef", "configmaps"))
    for variable in container.get("env") or ():
        source = variable.get("valueFrom") or {}
        yield from _named(source, ("secretKeyRef", "secrets"), ("configMapKeyRef", "configmaps"))


def _of_volume(volume: Obj) -> Iterator[tuple[str, str]]:
    if "secret" in volume:
        yield "secrets", volume["secret"].get("secretName", "")
    if "persistentVolumeClaim" in volume:
        yield "persistentvolumeclaims", volume["persistentVolumeClaim"].get("claimName", "")
    yield from _named(volume, ("configMap", "configmaps"))
    for source in (volume.get("projected") or {}).get("sources") or ():
        yield from _named(source, ("secret", "secrets"), ("configMap", "configmaps"))


def _named(source: Obj, *parts: tuple[str, str]) -> Iterator[tuple[str, str]]:
    for part, resource in parts:
        if source.get(part):
            yield resource, source[part].get("name", "")


def _claims(pod: Obj) -> Iterator[str]:
    for claim in pod["spec"].get("resourceClaims") or ():
        if claim.get("resourceClaimName"):
            yield claim["resourceClaimName"]
    status = pod.get("status") or {}
    for made in status.get("resourceClaimStatuses") or ():
        if made.get("resourceClaimName"):
            yield made["resourceClaimName"]
    extended = status.get("extendedResourceClaimStatus") or {}
    if extended.get("resourceClaimName"):
        yield extended["resourceClaimName"]
