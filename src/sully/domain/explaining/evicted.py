"""Why a pod that is gone, or on its way, was evicted: from the records that were written then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from sully.api.sully.types import EvictionCause, EvictionRecord
from sully.domain.explaining.sources import Sources
from sully.domain.explaining.story import Explanation, Table
from sully.domain.explaining.wording import listed, mark, moment
from sully.machinery.timestamps import format_time


def explain_evicted(
    records: Sequence[EvictionRecord], sources: Sources, now: datetime
) -> Explanation:
    """Say why a pod that is gone was evicted; the last one of the name comes first."""
    ordered = sorted(records, key=lambda each: each.spec.evicted_time, reverse=True)
    spec = ordered[0].spec
    pod = spec.pod
    owner = f" of {pod.owner.kind} {pod.owner.name}" if pod.owner is not None else ""
    where = f" from node {pod.node}" if pod.node else ""
    before = f" It is the last of {len(ordered)} of that name." if len(ordered) > 1 else ""
    return Explanation(
        kind="Pod",
        namespace=pod.namespace,
        name=pod.name,
        state="Evicted",
        cause="EvictedByTaint",
        summary=(
            f"Pod {pod.namespace}/{pod.name}{owner} was evicted{where} at"
            f" {moment(spec.evicted_time, now)} because of"
            f" {_origins(spec.causes, sources)}.{before}",
            *causes_told(spec.causes, sources, now),
        ),
        because=tuple(dict.fromkeys(f"{each.kind}/{each.name}" for each in spec.causes)),
        remedies=_afterwards(owned=pod.owner is not None),
        details=record_tables(ordered),
    )


def explain_left(
    device: str, records: Sequence[EvictionRecord], sources: Sources, now: datetime
) -> Explanation:
    """Say what is remembered of a device that no driver publishes and no claim has.

    The records are of pods that left it.
    """
    last = max(records, key=lambda each: each.spec.evicted_time).spec
    causes = [each for each in last.causes if each.device == device]
    return Explanation(
        kind="Device",
        name=device,
        state="Gone",
        cause="NotPublished",
        summary=(
            f"No driver publishes device {device} any more, and no claim has it; pod"
            f" {last.pod.namespace}/{last.pod.name} was evicted from it at"
            f" {moment(last.evicted_time, now)} because of {_origins(causes, sources)}.",
            *causes_told(causes, sources, now),
        ),
        because=tuple(dict.fromkeys(f"{each.kind}/{each.name}" for each in causes)),
        remedies=("If it should be there, see that its driver runs.",),
        details=record_tables(records),
    )


def evicted_before(
    records: Sequence[EvictionRecord], sources: Sources, now: datetime
) -> Iterator[str]:
    """Tell of pods that were evicted before this one came in their place, in order of time."""
    if not records:
        return
    spec = records[-1].spec
    at = f"at {moment(spec.evicted_time, now)} because of {_origins(spec.causes, sources)}"
    of = f" of {spec.pod.owner.kind} {spec.pod.owner.name}" if spec.pod.owner is not None else ""
    if len(records) == 1:
        yield f"Before it, pod {spec.pod.namespace}/{spec.pod.name}{of} was evicted, {at}."
    else:
        of = of or f" called {spec.pod.namespace}/{spec.pod.name}"
        yield f"Before it, {len(records)} pods{of} were evicted, the last {at}."


def _origins(causes: Iterable[EvictionCause], sources: Sources) -> str:
    names = [sources.of(f"{each.kind}/{each.name}").told() for each in causes]
    return listed(dict.fromkeys(names), 2) or "a taint that is not on record"


def _afterwards(*, owned: bool) -> tuple[str, ...]:
    if owned:
        return ("Its owner makes another pod; ask about that one if it waits.",)
    return ("Nobody manages it: create it again, with a toleration if it may use such devices.",)


def causes_told(causes: Iterable[EvictionCause], sources: Sources, now: datetime) -> Iterator[str]:
    """Tell which taints made a pod leave."""
    for each in causes:
        told = sources.told(each, f"{each.kind}/{each.name}", now)
        yield f"Device {each.device} carried {told}."


def record_tables(records: Iterable[EvictionRecord]) -> tuple[Table, ...]:
    """Return who left when, and because of what."""
    rows = tuple(
        (
            format_time(each.spec.evicted_time),
            cause.device,
            mark(cause),
            f"{cause.kind}/{cause.name}",
        )
        for each in records
        for cause in each.spec.causes
    )
    return (Table("Evictions", ("evicted", "device", "taint", "origin"), rows),)
