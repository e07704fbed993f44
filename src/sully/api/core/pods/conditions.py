"""Conditions of pods: reading and setting them."""

from datetime import datetime
from typing import Any, Final

from sully.machinery.formats.timestamps import format_time

Obj = dict[str, Any]

POD_SCHEDULED: Final = "PodScheduled"
DISRUPTION_TARGET: Final = "DisruptionTarget"
"""The condition of a pod that is evicted or preempted, whoever does that."""
DEVICE_TAINT: Final = "DeletionByDeviceTaintManager"
"""Its reason if the taint of a device evicts the pod."""


def condition_of(pod: Obj, kind: str) -> Obj | None:
    """Return a pod's condition of a type, or None."""
    for condition in pod["status"].get("conditions") or ():
        if condition.get("type") == kind:
            return dict(condition)
    return None


def is_ready(pod: Obj) -> bool:
    """Report whether the pod has the condition Ready."""
    return (condition_of(pod, "Ready") or {}).get("status") == "True"


def with_condition(pod: Obj, condition: Obj, now: datetime) -> Obj:
    """Return the pod with a condition set; its time moves only when its status does."""
    old = condition_of(pod, condition["type"])
    moment = format_time(now)
    if old is not None and old.get("status") == condition["status"]:
        moment = old.get("lastTransitionTime") or moment
    condition = {
        "type": condition["type"],
        "status": condition["status"],
        "lastProbeTime": None,
        "lastTransitionTime": moment,
        **condition,
    }
    rest = list(pod["status"].get("conditions") or ())
    places = [index for index, one in enumerate(rest) if one.get("type") == condition["type"]]
    if places:
        rest[places[0]] = condition
    else:
        rest.append(condition)
    return {**pod, "status": {**pod["status"], "conditions": rest}}
