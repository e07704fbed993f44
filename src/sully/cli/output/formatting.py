"""How values of objects are printed: taints, tolerations, origins, durations."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sully.api.resource.types import DeviceToleration
    from sully.domain.devices.taints import Origin

SHORT_KINDS = {"DeviceTaintRule": "rule", "ResourceSlicePatch": "patch", "ResourceSlice": "slice"}
EFFECT_STYLES = {
    "NoExecute": "red",
    "NoExecuteWithPodDisruptionBudget": "red",
    "NoSchedule": "yellow",
    "PreferNoSchedule": "",
    "None": "",
}
"""The color of each effect, from the strongest: what evicts, what blocks scheduling, the rest."""
OVERDUE = 60
"""Seconds after which it is shown that something has not happened yet."""


def object_name(obj: dict[str, Any]) -> str:
    """Write the name of an object as `kubectl get -o name` prints it."""
    resource = f"{obj['kind'].lower()}.{obj['apiVersion'].rpartition('/')[0]}".rstrip(".")
    return f"{resource}/{obj['metadata']['name']}"


def rule_name(name: str) -> str:
    """Write the name of a DeviceTaintRule as `kubectl get -o name` prints it."""
    return f"devicetaintrule.resource.k8s.io/{name}"


def cluster_name(name: str) -> str:
    """Write the name of a ManagedCluster as `kubectl get -o name` prints it."""
    return f"managedcluster.cluster.open-cluster-management.io/{name}"


def origin_text(origin: "Origin", *, wide: bool = False) -> str:
    """Write the source of a taint; which slice of a driver it is, only in the wide format."""
    if origin.kind == "ResourceSlice" and not wide:
        return "driver"
    return f"{SHORT_KINDS[origin.kind]}/{origin.name}"


def toleration_text(toleration: "DeviceToleration") -> str:
    """Write a toleration like a taint."""
    key = toleration.key or "*"
    exists = toleration.operator == "Exists"
    value = "" if exists or not toleration.value else f"={toleration.value}"
    effect = f":{toleration.effect}" if toleration.effect else ""
    seconds = toleration.toleration_seconds
    return f"{key}{value}{effect}" + (f" for {seconds}s" if seconds is not None else "")


def duration(seconds: float) -> str:
    from sully.machinery.formats.timestamps import human_duration

    return human_duration(max(0, int(seconds)))


def age(time: datetime | None, now: datetime) -> str:
    return duration((now - time).total_seconds()) if time is not None else ""


def until(time: datetime, now: datetime) -> str:
    return f"in {duration((time - now).total_seconds())}" if time > now else "now"


def when(time: datetime, now: datetime) -> str:
    """Write how far a time is in the future or in the past."""
    late = int((now - time).total_seconds())
    return f"{duration(late)} ago" if late > 0 else until(time, now)


def eviction_text(time: datetime, now: datetime) -> str:
    """Write when a pod is evicted; a rate, a budget or a missing evictor may delay it."""
    late = (now - time).total_seconds()
    return f"evicted {until(time, now)}" if late < OVERDUE else f"eviction overdue {duration(late)}"


def expiry_text(time: datetime, now: datetime) -> str:
    """Write when a taint expires; a server may have no controller that removes it."""
    return f"expires {until(time, now)}" if _in_time(time, now) else expiry_time(time, now)


def expiry_time(time: datetime, now: datetime) -> str:
    """Write the same below a heading that names it."""
    if _in_time(time, now):
        return until(time, now)
    return f"expired {duration((now - time).total_seconds())} ago"


def _in_time(time: datetime, now: datetime) -> bool:
    return (now - time).total_seconds() < OVERDUE
