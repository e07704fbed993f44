"""When a pod may be evicted: written from the documentation, not from the code under test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

Obj = dict[str, Any]
Objects = Mapping[str, Mapping[tuple[str, str], Obj]]
Device = tuple[str, str, str]

CLAIMS = "resource.k8s.io/resourceclaims"
RULES = "resource.k8s.io/devicetaintrules"
SLICES = "resource.k8s.io/resourceslices"
EVICTING = ("NoExecute", "NoExecuteWithPodDisruptionBudget")
BLOCKING = (*EVICTING, "NoSchedule")
BUDGETED = "NoExecuteWithPodDisruptionBudget"


@dataclass(frozen=True, slots=True)
class Cause:
    """A taint that evicts a pod from a time on."""

    source: str
    effect: str
    due: datetime
    rate: int = 0
    paused: bool = False


def causes(objects: Objects, pod: Obj) -> Iterator[Cause]:
    """Yield every taint that evicts a pod, sooner or later."""
    for device, tolerations in held(objects, pod):
        for source, taint, rule in taints(objects, device):
            if taint["effect"] not in EVICTING:
                continue
            matching = [t for t in tolerations if tolerates(t, taint)]
            seconds = [_seconds(t) for t in matching]
            if None in seconds:
                continue
            added = datetime.fromisoformat(taint["timeAdded"])
            shortest = min((s for s in seconds if s is not None), default=0)
            yield Cause(
                source,
                taint["effect"],
                added + timedelta(seconds=max(0, shortest)),
                taint.get("evictionsPerSecond") or 0,
                _is_paused(rule),
            )


def held(objects: Objects, pod: Obj) -> Iterator[tuple[Device, list[Obj]]]:
    """Yield the devices of a pod, with the tolerations of their allocation."""
    for claim in claims_of(objects, pod):
        allocation = (claim.get("status") or {}).get("allocation") or {}
        for result in (allocation.get("devices") or {}).get("results") or ():
            device = (result["driver"], result["pool"], result["device"])
            yield device, result.get("tolerations") or []


def claims_of(objects: Objects, pod: Obj) -> Iterator[Obj]:
    """Yield the existing claims of a pod."""
    generated = {
        status["name"]: status.get("resourceClaimName")
        for status in (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    }
    for entry in pod["spec"].get("resourceClaims") or ():
        name = entry.get("resourceClaimName") or generated.get(entry["name"])
        claim = objects[CLAIMS].get((pod["metadata"]["namespace"], name or ""))
        if claim is not None:
            yield claim


def taints(objects: Objects, device: Device) -> Iterator[tuple[str, Obj, Obj | None]]:
    """Yield the taints of a device, with their source, and the rule if a rule sets it."""
    for slice_ in objects[SLICES].values():
        spec = slice_["spec"]
        if (spec["driver"], spec["pool"]["name"]) != device[:2]:
            continue
        for listed in spec.get("devices") or ():
            if listed["name"] == device[2]:
                for taint in listed.get("taints") or ():
                    yield f"driver {device[1]}/{device[2]}", taint, None
    for (_, name), rule in objects[RULES].items():
        selector = rule["spec"].get("deviceSelector")
        if selector is not None and all(
            selector.get(field, value) == value
            for field, value in zip(("driver", "pool", "device"), device, strict=True)
        ):
            yield f"rule {name}", rule["spec"]["taint"], rule


def tolerates(toleration: Obj, taint: Obj) -> bool:
    """Report whether a toleration covers a taint."""
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("key") not in (None, "", taint["key"]):
        return False
    return toleration.get("operator") == "Exists" or (
        toleration.get("value", "") == taint.get("value", "")
    )


def _seconds(toleration: Obj) -> int | None:
    if toleration.get("effect") not in EVICTING:
        return None
    seconds = toleration.get("tolerationSeconds")
    return None if seconds is None else int(seconds)


def _is_paused(rule: Obj | None) -> bool:
    annotations = ((rule or {}).get("metadata") or {}).get("annotations") or {}
    return annotations.get("sully.dev/paused") == "true"
