"""A device as a cell of the fleet: its state, and what filters and groups need.

Short keys, because a fleet has thousands of rows: `d` the device, `n` its node, `s` its state, `u`
and `f` whether it is in use and free, `c` its classes, `t` its taints, `p` the pods that use it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from sully.domain.devices.taints import BLOCKING_EFFECTS, EVICTING_EFFECTS, strongest_effect
from sully.domain.tolerations import taint_text
from sully.views.devices.device_views import DeviceView

State = Literal["free", "used", "none", "noschedule", "noexecute", "evicting", "blocked", "unknown"]
_INCOMPLETE = ("PoolIncomplete", "PoolInvalid")
Row = dict[str, Any]


def state_of(view: DeviceView) -> State:
    """Return the state of a device; what needs attention most comes first."""
    if view.device is None or not view.claims_visible:
        return "unknown"
    if any(claim.eviction_time is not None for claim in view.claims):
        return "evicting"
    effect = strongest_effect({taint.sourced.taint.effect for taint in view.taints})
    if effect in EVICTING_EFFECTS:
        return "noexecute"
    if effect in BLOCKING_EFFECTS:
        return "noschedule"
    if view.obstacle is not None and view.obstacle.cause in _INCOMPLETE:
        return "unknown"
    if effect:
        return "none"
    if view.in_use:
        return "used"
    return "free" if view.free else "blocked"


def row_of(view: DeviceView, classes: Iterable[str]) -> Row:
    """Return a device for the page; what is empty is left out."""
    row: Row = {"d": str(view.id), "n": view.node, "s": state_of(view)}
    if view.in_use:
        row["u"] = 1
    if view.free:
        row["f"] = 1
    if names := list(classes):
        row["c"] = names
    if view.taints:
        row["t"] = [taint_text(taint.sourced.taint) for taint in view.taints]
    if pods := [str(pod) for claim in view.claims for pod in claim.pods]:
        row["p"] = pods
    return row
