"""Taints of clusters as a patch has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sully.api.cluster.types import Taint
from sully.machinery.timestamps import format_time

Obj = dict[str, Any]


def written_taints(taints: Sequence[Taint]) -> list[Obj] | None:
    """Return a list of taints for a patch; none at all takes the field away.

    Times go with those that have one: OCM refuses a taint without the time it has.
    """
    return [_written(one) for one in taints] or None


def _written(taint: Taint) -> Obj:
    written: Obj = {"key": taint.key, "effect": taint.effect}
    if taint.value:
        written["value"] = taint.value
    if taint.time_added is not None:
        written["timeAdded"] = format_time(taint.time_added)
    return written
