"""How many devices of each class a claim may get, as quotas count them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from sully.domain.claims.lifecycle import EXTENDED
from sully.machinery.formats.timestamps import parse_time

Obj = dict[str, Any]

DEVICES: Final = ".deviceclass.resource.k8s.io/devices"
"""After the name of a class, it is what a quota calls its devices."""
MOST_RESULTS: Final = 32
"""The most devices of one claim, which is what a request for all of them counts as."""


def device_usage(claim: Obj) -> dict[str, int]:
    """Return the most devices of each class that a claim can get."""
    total: dict[str, int] = {}
    for request in (claim["spec"].get("devices") or {}).get("requests") or ():
        for name, count in _of_request(request).items():
            total[name] = total.get(name, 0) + count
    return total


def _of_request(request: Obj) -> dict[str, int]:
    """Return the devices of one request; of alternatives the most for each class."""
    most: dict[str, int] = {}
    exactly = request.get("exactly")
    for alternative in request.get("firstAvailable") or ([exactly] if exactly else ()):
        name = alternative.get("deviceClassName", "")
        most[name] = max(most.get(name, 0), _count(alternative))
    return most


def _count(request: Obj) -> int:
    match request.get("allocationMode"):
        case "ExactCount":
            return int(request.get("count", 0))
        case "All":
            return MOST_RESULTS
        case _:
            return 0


def extended_claim_owner(claim: Obj) -> Obj | None:
    """Return the reference to the pod whose extended resources a claim stands for, if any."""
    metadata = claim["metadata"]
    if (metadata.get("annotations") or {}).get(EXTENDED) != "true":
        return None
    return next(_pods(metadata.get("ownerReferences") or ()), None)


def _pods(references: Iterable[Obj]) -> Iterator[Obj]:
    for reference in references:
        if reference.get("controller") and (reference["apiVersion"], reference["kind"]) == (
            "v1",
            "Pod",
        ):
            yield reference


def is_claim_of(claim: Obj, pod: Obj, owned: Iterable[Obj]) -> bool:
    """Report whether a claim is the one for a pod's extended resources.

    `owned` are all claims that have the pod as owner. The pod's status decides; until it is set,
    the first claim counts, so that creating more of them does not evade the quota.
    """
    status = (pod.get("status") or {}).get("extendedResourceClaimStatus")
    name = claim["metadata"]["name"]
    if status is not None:
        return bool(status.get("resourceClaimName") == name)
    own = _order(claim)
    return all(_order(other) >= own for other in owned if other["metadata"]["name"] != name)


def _order(claim: Obj) -> tuple[datetime, str]:
    metadata = claim["metadata"]
    return parse_time(metadata["creationTimestamp"]), metadata["name"]
