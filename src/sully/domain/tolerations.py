"""Does a toleration cover a taint: one rule for devices, nodes and clusters.

Who asks adds what is its own: taints.py effects and eviction of devices, scheduling/filters.py
nodes, placement/tolerations.py the seconds of clusters.
"""

from __future__ import annotations

from typing import Literal, Protocol

Difference = Literal["effect", "key", "value", "operator"]


class Taint(Protocol):
    """A mark on something."""

    @property
    def key(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def effect(self) -> str: ...


class Toleration(Protocol):
    """Marks that somebody does not mind; an empty key or effect stands for every one."""

    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def effect(self) -> str: ...


def difference(toleration: Toleration, taint: Taint) -> Difference | None:
    """Return in what a toleration differs from a taint; None where it covers the taint."""
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
