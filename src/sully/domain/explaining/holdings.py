"""Devices in somebody's hands, in words: their taints, and how long those are tolerated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from sully.api.resource.claim_types import DeviceToleration
from sully.domain.devices.pools import DeviceId
from sully.domain.devices.taints import SourcedTaint, blocks
from sully.domain.eviction.judge import Terms, leaves_at
from sully.domain.explaining.sources import Sources
from sully.domain.explaining.story import Table
from sully.domain.explaining.wording import mark, moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """A device that a claim has."""

    device: DeviceId
    claim: str
    request: str = ""
    taints: tuple[SourcedTaint, ...] = ()
    tolerations: tuple[DeviceToleration, ...] = ()
    published: bool = True
    pods: tuple[str, ...] = ()
    """Who uses the claim; not who has finished."""
    leaving: tuple[str, ...] = ()
    """Those of them that are on their way out."""
    admin: bool = False
    """It only looks at the device, beside whoever uses it."""


def toleration_text(toleration: DeviceToleration) -> str:
    """Write a toleration as people do."""
    key = toleration.key or "*"
    value = f"={toleration.value}" if toleration.operator != "Exists" and toleration.value else ""
    effect = toleration.effect or "*"
    seconds = toleration.toleration_seconds
    return f"{key}{value}:{effect}" + (f" for {seconds}s" if seconds is not None else "")


def standing(
    found: SourcedTaint, tolerations: tuple[DeviceToleration, ...], *, now: datetime, terms: Terms
) -> str:
    """Say what a taint means for who has the device already."""
    taint = found.taint
    if taint.effect not in terms.effects:
        return "keeps new pods off" if blocks(taint) else "has no effect"
    due = leaves_at(taint, tolerations, now=now, terms=terms)
    if due is None:
        return "tolerated"
    return f"tolerated until {moment(due, now)}" if due > now else "not tolerated"


def evicting(
    held: Holding, sources: Sources, *, now: datetime, terms: Terms
) -> Iterator[tuple[datetime, SourcedTaint]]:
    """Yield the taints that make the users of a device leave it, and when.

    Not those whose rule is paused, or ends by itself before anybody has to leave for it.
    """
    if not held.pods:
        return
    for each in held.taints:
        source = sources.of(str(each.origin))
        at = leaves_at(each.taint, held.tolerations, now=now, terms=terms)
        if at is None or source.paused is not None:
            continue
        if source.until is None or source.until > max(at, now):
            yield at, each


def device_table(
    holdings: Iterable[Holding], sources: Sources, *, now: datetime, terms: Terms
) -> Table:
    """Return who has which device, with each taint and what it means."""
    rows: list[tuple[str, ...]] = []
    for each in holdings:
        rows += _rows(each, sources, now=now, terms=terms)
    return Table("Devices", ("device", "claim", "taint", "origin", "standing"), tuple(rows))


def _rows(
    held: Holding, sources: Sources, *, now: datetime, terms: Terms
) -> Iterator[tuple[str, ...]]:
    if not held.taints:
        yield str(held.device), held.claim, "", "", "" if held.published else "not published"
    for taint in held.taints:
        state = standing(taint, held.tolerations, now=now, terms=terms)
        origin = sources.of(str(taint.origin)).origin
        yield str(held.device), held.claim, mark(taint.taint), origin, state
