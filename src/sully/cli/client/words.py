"""How people write what objects say: taints, tolerations, origins, spans of time."""

from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sully.api.resource.claim_types import DeviceToleration
    from sully.api.resource.types import DeviceTaint
    from sully.domain.devices.taints import Origin

SHORT = {"DeviceTaintRule": "rule", "ResourceSlicePatch": "patch", "ResourceSlice": "slice"}
STYLES = {"NoExecute": "red", "NoExecuteWithPodDisruptionBudget": "red", "NoSchedule": "yellow"}
"""The colour in which an effect is shown."""
LATE = 60
"""Seconds after which what has not happened yet is worth a word."""


def taint_text(taint: "DeviceTaint") -> str:
    """Write a taint as kubectl does: key=value:Effect."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def origin_text(origin: "Origin", *, wide: bool = False) -> str:
    """Name who set something; which of its slices a driver used is only for those who ask."""
    if origin.kind == "ResourceSlice" and not wide:
        return "driver"
    return f"{SHORT[origin.kind]}/{origin.name}"


def toleration_text(toleration: "DeviceToleration") -> str:
    """Write a toleration in the manner of a taint."""
    key = toleration.key or "*"
    exists = toleration.operator == "Exists"
    value = "" if exists or not toleration.value else f"={toleration.value}"
    effect = f":{toleration.effect}" if toleration.effect else ""
    seconds = toleration.toleration_seconds
    return f"{key}{value}{effect}" + (f" for {seconds}s" if seconds is not None else "")


def span(seconds: float) -> str:
    """Write a span of time briefly, as kubectl does."""
    from sully.machinery.timestamps import human_duration

    return human_duration(max(0, int(seconds)))


def since(time: datetime | None, now: datetime) -> str:
    """Say how long ago something was."""
    return span((now - time).total_seconds()) if time is not None else ""


def until(time: datetime, now: datetime) -> str:
    """Say how long it is until something."""
    return f"in {span((time - now).total_seconds())}" if time > now else "now"


def leaves(time: datetime, now: datetime) -> str:
    """Say when somebody must leave, or should have: a pace, a budget or nobody may hold it up."""
    return _awaited("leaves", "should have left", time, now)


def ends(time: datetime, now: datetime) -> str:
    """Say when a taint ends, or should have: a server may have nobody who removes it."""
    return _awaited("ends", "should have ended", time, now)


def _awaited(will: str, should: str, time: datetime, now: datetime) -> str:
    late = (now - time).total_seconds()
    return f"{will} {until(time, now)}" if late < LATE else f"{should} {span(late)} ago"


def number(count: int, thing: str) -> str:
    """Write a number of things: 1 pod, 2 pods."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
