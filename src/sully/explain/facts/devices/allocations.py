"""Devices that claims have: their taints, and how long those are tolerated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from sully.api.resource.types import DeviceToleration
from sully.api.sully.types import EvictionCause, EvictionRecord
from sully.domain.devices.pools import DeviceId
from sully.domain.devices.taints import SourcedTaint
from sully.domain.eviction.judge import EvictionPolicy, eviction_time
from sully.domain.tolerations import taint_text
from sully.explain.causes import Note, Source, note
from sully.explain.explanation import Table
from sully.explain.sources import Sources
from sully.explain.text import time_text
from sully.machinery.formats.timestamps import format_time


class Context(Protocol):
    """What the taints of a device are judged by."""

    @property
    def now(self) -> datetime: ...

    @property
    def policy(self) -> EvictionPolicy: ...

    @property
    def sources(self) -> Sources: ...

    def prevents_scheduling(self, taint: SourcedTaint) -> bool:
        """Report whether the scheduler honors a taint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatedDeviceFacts:
    device: DeviceId
    claim: str
    taints: tuple[SourcedTaint, ...] = ()
    tolerations: tuple[DeviceToleration, ...] = ()
    published: bool = True
    pods: tuple[str, ...] = ()
    """The pods that use the claim and have not finished."""
    terminating: tuple[str, ...] = ()
    """Those of them that are being deleted."""
    admin_access: bool = False
    """It does not prevent others from using the device."""

    def evicted_at(self, taint: SourcedTaint, context: Context) -> datetime | None:
        """Return when a taint evicts, by its effect and the tolerations alone."""
        return eviction_time(taint.taint, self.tolerations, now=context.now, policy=context.policy)

    def evicting(self, context: Context) -> Iterator[tuple[datetime, SourcedTaint]]:
        """Yield the taints that evict the pods of a device, and when.

        Not those whose rule is paused, or expires before any pod is evicted.
        """
        for taint in self.taints if self.pods else ():
            source = context.sources.of(str(taint.origin))
            at = self.evicted_at(taint, context)
            if at is None or source.paused is not None:
                continue
            if source.until is None or source.until > max(at, context.now):
                yield at, taint

    def effect_text(self, taint: SourcedTaint, context: Context) -> str:
        """Write what a taint does to the pods that have the device already."""
        if taint.taint.effect not in context.policy.effects:
            return unused_text(taint, context)
        at = self.evicted_at(taint, context)
        if at is None:
            return "tolerated"
        return (
            f"tolerated until {time_text(at, context.now)}" if at > context.now else "not tolerated"
        )


def unused_text(taint: SourcedTaint, context: Context) -> str:
    """Write what a taint does to a device that no pod has."""
    return "prevents scheduling" if context.prevents_scheduling(taint) else "has no effect"


def device_table(devices: Iterable[AllocatedDeviceFacts], context: Context) -> Table:
    """Return which claim has which device, with each taint and what it does."""
    rows: list[tuple[str, ...]] = []
    for allocated in devices:
        of = str(allocated.device), allocated.claim
        if not allocated.taints:
            rows.append((*of, "", "", "" if allocated.published else "not published"))
        rows += [
            (*of, taint_text(x.taint), str(x.origin), allocated.effect_text(x, context))
            for x in allocated.taints
        ]
    return Table("Devices", ("device", "claim", "taint", "origin", "effect"), tuple(rows))


# -- records of evictions -------------------------------------------------------------------------


def cause_sources(causes: Iterable[EvictionCause], sources: Sources) -> tuple[Source, ...]:
    return sources.of_all(f"{cause.kind}/{cause.name}" for cause in causes)


def had_taints(causes: Iterable[EvictionCause], sources: Sources) -> tuple[Note, ...]:
    return tuple(
        note(
            "DeviceHadTaint",
            device=cause.device,
            taint=sources.taint(cause, f"{cause.kind}/{cause.name}"),
        )
        for cause in causes
    )


def record_table(records: Iterable[EvictionRecord]) -> Table:
    """Return which pods were evicted when, and because of what."""
    rows = tuple(
        (
            format_time(record.spec.evicted_time),
            cause.device,
            taint_text(cause),
            f"{cause.kind}/{cause.name}",
        )
        for record in records
        for cause in record.spec.causes
    )
    return Table("Evictions", ("evicted", "device", "taint", "origin"), rows)
