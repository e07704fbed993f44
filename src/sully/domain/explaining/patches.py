"""What a ResourceSlicePatch changes and why, or why nothing: nobody fits, or others win."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sully.api.resource.types import ResourceSlicePatch
from sully.domain.explaining.devices import attribute_text
from sully.domain.explaining.sources import of_patch
from sully.domain.explaining.story import Explanation, Table, tables
from sully.domain.explaining.wording import ended, listed, mark, moment, number, quoted, which


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchFacts:
    """What is known of a patch."""

    patch: ResourceSlicePatch
    now: datetime
    selected: int
    """Published devices that it is for."""
    problem: str = ""
    """Why it cannot tell of some devices whether it is for them, and of how many."""
    mismatch: str = ""
    """Which of its criteria no device meets."""
    names: int = 0
    """How many values and taints it would set, over all devices."""
    lost: Mapping[str, int] = field(default_factory=dict)
    """How many of them another patch set first, by the name of that patch."""
    marked: tuple[str, ...] = ()
    """Pods that must leave because of its taints."""


def explain_patch(facts: PatchFacts) -> Explanation:
    """Say what a patch does, and why not more."""
    if facts.patch.metadata.deletion_timestamp is not None:
        return _story(facts, "Deleting", "Deleted", "It is being deleted.")
    if not facts.selected:
        return _idle(facts)
    lost = sum(facts.lost.values())
    change = f"It is for {number(facts.selected, 'published device')}"
    if not lost:
        return _story(facts, "Applied", "Applied", f"{change}, and all it says counts.")
    winners = tuple(sorted(facts.lost))
    texts = [f"patch {name} ({count})" for name, count in sorted(facts.lost.items())]
    help_ = "The higher priority wins, then the older patch, then the name."
    all_of_it = lost >= facts.names
    part = "none of its values counts" if all_of_it else f"{lost} of its values do not count"
    return _story(
        facts,
        "Overridden" if all_of_it else "Applied",
        "OtherPatchesFirst" if all_of_it else "PartlyOverridden",
        f"{change}, but {part}: other patches come first, {listed(texts)}.",
        because=tuple(f"ResourceSlicePatch/{each}" for each in winners),
        remedies=(help_,),
    )


def _idle(facts: PatchFacts) -> Explanation:
    if facts.problem:
        help_ = "Correct the expression or name a class that exists."
        return _story(
            facts, "Idle", "SelectorFails", "It is for no published device.", remedies=(help_,)
        )
    text = f"It is for no published device: {facts.mismatch or 'none meets all of its criteria'}."
    help_ = "'sully devices' lists the devices there are."
    return _story(facts, "Idle", "NoDevice", text, remedies=(help_,))


def _story(facts: PatchFacts, state: str, cause: str, *summary: str, **more: Any) -> Explanation:
    trouble: tuple[str, ...] = ()
    if facts.problem:
        trouble = (f"It cannot tell whether it is for some devices: {ended(facts.problem)}",)
    leaving: tuple[str, ...] = ()
    if facts.marked:
        pods = number(len(facts.marked), "pod")
        leaving = (f"{pods} must leave because of its taints: {listed(facts.marked)}.",)
    return Explanation(
        kind="ResourceSlicePatch",
        name=facts.patch.metadata.name,
        state=state,
        cause=cause,
        summary=(_what(facts), *summary, *trouble, *leaving, *_end(facts)),
        details=tables(_values(facts.patch)),
        **more,
    )


def _what(facts: PatchFacts) -> str:
    patch, source = facts.patch, of_patch(facts.patch)
    by = f" by {source.by}" if source.by else ""
    at = f" at {moment(source.since, facts.now)}" if source.since is not None else ""
    made = f", made{by}{at}" if by or at else ""
    why = f", reason {quoted(source.why)}" if source.why else ""
    selector = patch.spec.devices.filter
    devices = "all devices" if selector is None else which(selector)
    return f"Patch {patch.metadata.name}{made}{why}, is laid over {devices}."


def _end(facts: PatchFacts) -> tuple[str, ...]:
    until = of_patch(facts.patch).until
    return (f"It ends by itself at {moment(until, facts.now)}.",) if until is not None else ()


def _values(patch: ResourceSlicePatch) -> Table:
    devices = patch.spec.devices
    rows = [
        (name, "(removed)" if each.null is not None else attribute_text(each))
        for name, each in sorted(devices.attributes.items())
    ]
    rows += [(name, each.value) for name, each in sorted(devices.capacity.items())]
    rows += [("taint", mark(each)) for each in devices.taints]
    return Table("Values", ("name", "value"), tuple(rows))
