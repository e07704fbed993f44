"""Whether a toleration tolerates a taint: one rule for devices, nodes and clusters.

Effects and eviction of devices are in devices/taints.py, nodes in scheduling/filters.py, the
`tolerationSeconds` of clusters in placement/tolerations.py. When the toleration of a device taint
expires is decided in eviction/judge.py (`eviction_time`).
"""

from __future__ import annotations

from typing import Literal, Protocol

TolerationField = Literal["effect", "key", "value", "operator"]


class Taint(Protocol):
    """A taint of a device, a node or a cluster."""

    @property
    def key(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def effect(self) -> str: ...


class Toleration(Protocol):
    """A toleration of any of them; an empty key or effect matches all."""

    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def effect(self) -> str: ...


def taint_text(taint: Taint) -> str:
    """Write a taint as kubectl does: `key=value:Effect`."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Report whether a toleration tolerates a taint."""
    return mismatched_field(toleration, taint) is None


def mismatched_field(toleration: Toleration, taint: Taint) -> TolerationField | None:
    """Return the first field of a toleration that does not match a taint; None if all match."""
    if toleration.effect not in ("", taint.effect):
        return "effect"
    if toleration.key not in ("", taint.key):
        return "key"
    match toleration.operator:
        case "Exists":
            return None
        case "Equal" | "":
            # Objects stored before defaulting may lack the operator.
            return None if toleration.value == taint.value else "value"
        case _:
            # From a newer API, or behind a gate that is off: tolerating too little is safe.
            return "operator"
