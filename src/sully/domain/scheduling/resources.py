"""The resources that a pod requests, and how loaded a node is.

Amounts are whole numbers of nano units, so that sums are exact.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Final

import msgspec

from sully.api.core.pods.aggregate import POD_LEVEL, container_requests
from sully.domain.scheduling.objects import Pod
from sully.machinery.formats.quantity import parse_quantity
from sully.machinery.memo import memoized

Amounts = Mapping[str, int]

PODS: Final = "pods"
IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"
"""The prefix of the resource that devices of a class provide, before the name of the class."""
_NATIVE: Final = "kubernetes.io/"
_NANO: Final = 1_000_000_000
ASSUMED: Final = {"cpu": _NANO // 10, "memory": 200 * 1024 * 1024 * _NANO}
"""What a pod without requests counts for in the load, so that such pods spread as well."""
_FULL: Final = 1_000_000


@memoized(4096)
def nanos(text: str) -> int:
    """Return a quantity as a number of nano units."""
    return parse_quantity(text).nanos


def may_be_backed(resource: str) -> bool:
    """Report whether a device class may provide a resource."""
    if resource.startswith(IMPLICIT):
        return True
    return "/" in resource and _NATIVE not in resource and not resource.startswith("requests.")


def whole(text: str) -> int:
    """Return a quantity as a whole number, as extended resources are counted; 0 if it is none."""
    number, rest = divmod(nanos(text), _NANO)
    return 0 if rest else number


def amounts(texts: Mapping[str, str]) -> dict[str, int]:
    """Read quantities."""
    return {name: nanos(text) for name, text in texts.items()}


def requests_of(pod: Pod) -> dict[str, int]:
    """Return what a pod requests of a node: for its containers, or for all of them together."""
    spec = pod.spec
    if len(spec.containers) == 1 and _is_plain(pod):
        # Most pods; a plan calls this three times for each pod that is evicted.
        own = spec.containers[0].resources.requests
        return (
            {name: amount for name, text in own.items() if (amount := nanos(text))} if own else {}
        )
    parts = {"containers": spec.containers, "initContainers": spec.init_containers}
    requests = amounts(container_requests(msgspec.to_builtins(parts)))
    own = (spec.resources or {}).get("requests") or {}
    requests |= amounts({name: text for name, text in own.items() if name in POD_LEVEL})
    for name, extra in amounts(spec.overhead).items():
        requests[name] = requests.get(name, 0) + extra
    by_devices = set(_provided_by_devices(pod))
    return {name: amount for name, amount in requests.items() if amount and name not in by_devices}


def _is_plain(pod: Pod) -> bool:
    """Report whether only the containers of a pod have requests."""
    spec, extended = pod.spec, pod.status.extended_resource_claim_status
    return not (spec.init_containers or spec.resources or spec.overhead or extended is not None)


def _provided_by_devices(pod: Pod) -> Iterator[str]:
    """Yield the resources of a bound pod that devices provide, so that its node does not."""
    status = pod.status.extended_resource_claim_status
    if status is not None and pod.spec.node_name:
        for mapping in status.request_mappings or ():
            yield mapping.resource_name


class NodeResources(msgspec.Struct):
    """The allocatable resources of a node, and what its pods request."""

    allocatable: Amounts = msgspec.field(default_factory=dict)
    used: dict[str, int] = msgspec.field(default_factory=dict)
    counted: dict[str, int] = msgspec.field(default_factory=dict)
    """Like `used` for cpu and memory, but no pod counts as nothing."""
    pods: int = 0

    def copy(self) -> NodeResources:
        """Return an independent copy."""
        return NodeResources(self.allocatable, self.used.copy(), self.counted.copy(), self.pods)

    def add(self, requests: Amounts, sign: int = 1) -> None:
        """Add the requests of a pod, or with -1 subtract them."""
        self.pods += sign
        for name, amount in requests.items():
            self.used[name] = self.used.get(name, 0) + sign * amount
        for name, least in ASSUMED.items():
            self.counted[name] = self.counted.get(name, 0) + sign * requests.get(name, least)

    def load(self) -> int:
        """Return how loaded the node is, in millionths, over cpu and memory."""
        load = resources = 0
        for name in POD_LEVEL:
            most = self.allocatable.get(name)
            if most:
                load += self.counted.get(name, 0) * _FULL // most
                resources += 1
        return load // resources if resources else _FULL


class Shortage(msgspec.Struct, frozen=True):
    """A resource that a node has too little of."""

    could_fit: bool
    """It would be enough if other pods were deleted."""
    resource: str = ""
    """Empty if the node has too many pods."""


def shortages(
    requests: Amounts, resources: NodeResources, backed: Container[str] = ()
) -> list[Shortage]:
    """Return what a node has too little of for one more pod.

    Of `backed` resources it needs none itself: where it has none, devices provide them.
    """
    lacking: list[Shortage] = []
    most = resources.allocatable.get(PODS, 0)
    if resources.pods * _NANO + _NANO > most:
        lacking.append(Shortage(could_fit=most > 0))
    for name, amount in requests.items():
        has = resources.allocatable.get(name, 0)
        if not has and name in backed:
            continue
        if amount > has - resources.used.get(name, 0):
            fits = amount <= has
            lacking.append(Shortage(could_fit=fits, resource=name))
    return lacking
