"""Turns a rehearsal into a plan: what people and programs are told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sully.client.transport import Kind
from sully.domain.allocation.verdicts import written
from sully.domain.devices.pools import DeviceId
from sully.domain.eviction.judge import Reason
from sully.domain.planning.differences import marked
from sully.domain.planning.objects import PlannedPod
from sully.domain.planning.replacing import MARK, is_replaced
from sully.domain.planning.report import (
    Arrival,
    ClassTold,
    Departure,
    DeviceTold,
    Fate,
    Landing,
    Plan,
    Stay,
    TaintTold,
)
from sully.domain.planning.supply import Supply
from sully.domain.scheduling.diagnosis import shortened
from sully.domain.scheduling.objects import SCHEDULERS
from sully.planning.rehearsal import Rehearsal, Story
from sully.views.kinds import CLAIMS, CLASSES, PODS
from sully.views.snapshot.kinds import NODES
from sully.views.snapshot.snapshot import Gap, Snapshot

NOBODY = "nobody manages it, so nobody makes another"


def tell(rehearsal: Rehearsal, notes: Sequence[str] = ()) -> Plan:
    """Return what happened in a rehearsal."""
    devices = (*rehearsal.differences, *_unpublished(rehearsal))
    departures = tuple(_departure(rehearsal, each) for each in rehearsal.stories)
    return Plan(
        at=rehearsal.world.timeline.start,
        changes=tuple(rehearsal.changes),
        devices=devices,
        devices_known=_known(rehearsal),
        claims=tuple(sorted({claim for each in devices for claim in each.claims})),
        departures=departures,
        stays=tuple(_stays(rehearsal)),
        arrivals=tuple(_arrivals(rehearsal)),
        classes=tuple(_classes(rehearsal)),
        notes=tuple(notes),
    )


def _known(rehearsal: Rehearsal) -> int:
    """Count the devices there are, before the change or after it."""
    before, after = rehearsal.before, rehearsal.after
    return sum(
        len(before.get(pool, {}).keys() | after.get(pool, {}).keys())
        for pool in before.keys() | after.keys()
    )


def gaps(snapshot: Snapshot) -> list[str]:
    """Say what a plan on this snapshot cannot know, and what that means."""
    found = ((snapshot.gap(kind), meaning) for kind, meaning in _UNKNOWN)
    return [f"{_lacks(gap)}: {meaning}" for gap, meaning in found if gap is not None]


def _lacks(gap: Gap) -> str:
    if gap.but:
        return f"the plan knows only the {gap.kind.plural} of namespace {gap.but}"
    return f"the plan goes without {gap.kind.plural} ({gap.why})"


_UNKNOWN: Sequence[tuple[Kind[Any], str]] = (
    (CLASSES, "nobody can say which devices a new claim may get"),
    (CLAIMS, "nobody can say who holds a device"),
    (PODS, "nobody can say who would have to leave"),
    (NODES, "nobody can say where a pod could go"),
)


# -- pods -----------------------------------------------------------------------------------------


def _departure(rehearsal: Rehearsal, story: Story) -> Departure:
    left, start = story.left, rehearsal.world.timeline.start
    pod = left.pod
    return Departure(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        owner=pod.owner_text,
        node=pod.spec.node_name,
        at=left.at,
        after=(left.at - start).total_seconds(),
        devices=tuple(sorted({str(each.device) for each in left.because})),
        because=tuple(map(_reason, left.because)),
        anyway=story.anyway,
        landing=_landing(rehearsal, story),
    )


def _reason(reason: Reason) -> TaintTold:
    taint = reason.taint
    return TaintTold(
        device=str(reason.device), taint=written(taint.taint), origin=str(taint.origin)
    )


def _landing(rehearsal: Rehearsal, story: Story) -> Landing:
    pod = story.left.pod
    if not is_replaced(pod):
        return Landing(fate=Fate.LOST, why=NOBODY)
    binding = rehearsal.scheduler.bindings.get(story.heir)
    if binding is None:
        return _nowhere(rehearsal, story, pod)
    devices = tuple(map(str, binding.devices))
    if story.back is None:
        return Landing(fate=Fate.LANDS, at=binding.at, node=binding.node, devices=devices)
    seconds = int((story.back - binding.at).total_seconds())
    when = f"after {seconds}s" if seconds else "at once"
    why = f"it tolerates the taints there only for a time, and has to leave again {when}"
    return Landing(fate=Fate.RETURNS, at=binding.at, node=binding.node, devices=devices, why=why)


def _nowhere(rehearsal: Rehearsal, story: Story, pod: PlannedPod) -> Landing:
    if story.missing:
        why = f"ResourceClaimTemplate {pod.metadata.namespace}/{story.missing} does not exist"
        return Landing(fate=Fate.PENDING, why=why)
    if pod.spec.scheduler_name not in SCHEDULERS:
        why = f"what the scheduler {pod.spec.scheduler_name} does is not known"
        return Landing(fate=Fate.PENDING, why=why)
    pending = rehearsal.pending(story.heir)
    if pending is None:
        return Landing(fate=Fate.PENDING, why="somebody holds it back with a scheduling gate")
    # Thousands of pods may wait for the same thousand claims.
    account = shortened(pending.diagnosis) if pending.diagnosis is not None else None
    return Landing(fate=Fate.PENDING, why=pending.message, account=account)


def _stays(rehearsal: Rehearsal) -> Iterator[Stay]:
    for each in rehearsal.standing():
        metadata = each.pod.metadata
        yield Stay(
            namespace=metadata.namespace,
            name=metadata.name,
            owner=each.pod.owner_text,
            why=each.why,
        )


def _arrivals(rehearsal: Rehearsal) -> Iterator[Arrival]:
    """Yield the pods that waited before the change and got a node after it."""
    pods = {each.metadata.uid: each for each in rehearsal.world.pods.values()}
    for uid, binding in rehearsal.scheduler.bindings.items():
        pod = pods.get(uid)
        if pod is None or uid in rehearsal.bound_before or MARK in uid:
            continue
        yield Arrival(
            namespace=pod.metadata.namespace,
            name=pod.metadata.name,
            owner=pod.owner_text,
            node=binding.node,
            devices=tuple(map(str, binding.devices)),
            at=binding.at,
            returns=uid in rehearsal.restless,
        )


# -- devices --------------------------------------------------------------------------------------


def _unpublished(rehearsal: Rehearsal) -> Iterator[DeviceTold]:
    """Yield the devices without a slice that pods have to leave: a rule may name those too."""
    told: set[DeviceId] = set()
    for story in rehearsal.stories:
        for each in story.left.because if not story.anyway else ():
            if each.device in told or rehearsal.world.inventory.published(each.device) is not None:
                continue
            told.add(each.device)
            yield DeviceTold(
                device=str(each.device),
                node="",
                gains=(marked(each.taint),),
                claims=story.claims[each.device],
            )


def _classes(rehearsal: Rehearsal) -> Iterator[ClassTold]:
    before, after = rehearsal.supply, rehearsal.supply_after or {}
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name, Supply()), after.get(name, Supply())
        yield ClassTold(
            name=name,
            devices=new.devices,
            devices_before=old.devices,
            tainted_before=old.tainted,
            tainted_after=new.tainted,
            used_before=old.used,
            used_after=new.used,
            free_before=old.free,
            free_after=new.free,
        )
