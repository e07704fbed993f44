"""Pods that wait, for tables about them."""

from __future__ import annotations

from typing import Any

from explain.situation import Situation
from explain.worlds import (
    Obj,
    claim,
    class_,
    device,
    node,
    pod,
    request,
    slice_,
)

TWO = slice_(device("gpu-0"), device("gpu-1"))


PLAIN = (node(), class_(), TWO)


BUSY = (claim("busy", holds=("n1/gpu-0", "n1/gpu-1"), pods=("q",)), pod("q", "busy", on="n1"))


TOLERATES_FW = {"key": "example.com/fw", "operator": "Exists", "effect": "NoSchedule"}


ALL: Obj = {"allocationMode": "All", "count": 0}


def waiting(
    cause: str, *objects: Obj, asks: Obj | None = None, takes: Obj | None = None, **more: Any
) -> Situation:
    """Return a pod `p` that waits with claim `c`."""
    own = (claim("c", asks or request()), pod("p", "c", **(takes or {})))
    return Situation(
        kind="pod", name="p", objects=(*objects, *own), state="Pending", cause=cause, **more
    )


def alone(cause: str, *objects: Obj, **more: Any) -> Situation:
    """Return a pod `p` that is among the objects."""
    return Situation(kind="pod", name="p", objects=objects, state="Pending", cause=cause, **more)


def takes(cpu: str) -> Obj:
    return {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}
