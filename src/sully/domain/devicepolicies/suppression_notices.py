"""What is reported about taints of drivers that a policy suppresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sully.domain.devicepolicies.states import Notice
from sully.domain.devicepolicies.suppression import Suppressed
from sully.machinery.formats.timestamps import format_time


def changes(
    old: Mapping[str, tuple[Suppressed, ...]], new: Mapping[str, tuple[Suppressed, ...]]
) -> Iterator[tuple[str, Notice]]:
    """Yield what to report, by device."""
    for device in sorted({*old, *new}):
        begun = [one for one in new.get(device, ()) if one not in old.get(device, ())]
        if begun:
            texts = (f"{one.taint} until {format_time(one.until)}" for one in begun)
            text = f"The driver's taint has no effect: {', '.join(texts)}"
            yield device, Notice("TaintSuppressed", text)
        if device not in new:
            text = "Taints of the driver are not suppressed any more"
            yield device, Notice("SuppressionEnded", text)
