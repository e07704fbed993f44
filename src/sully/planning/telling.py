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
from sully.evictor.admission import BudgetExhausted, Paused
from sully.planning.rehearsal import Eviction, Rehearsal
from sully.views.kinds import CLAIMS, CLASSES, PODS
from sully.views.snapshot.kinds import NODES
from sully.views.snapshot.snapshot import Gap, Snapshot

NOBODY = "no controller manages it, so it is not recreated"


def tell(rehearsal: Rehearsal, notes: Sequence[str] = ()) -> Plan:
    """Return what happened in a rehearsal."""
    devices = (*rehearsal.differences, *_unpublished(rehearsal))
    departures = tuple(_departure(rehearsal, eviction) for eviction in rehearsal.evicted)
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
    """Return what a plan on this snapshot cannot know, and what that means."""
    found = ((snapshot.gap(kind), meaning) for kind, meaning in _UNKNOWN)
    return [f"{_lacks(gap)}: {meaning}" for gap, meaning in found if gap is not None]


def _lacks(gap: Gap) -> str:
    if gap.but:
        return f"the plan only considers {gap.kind.plural} in namespace {gap.but}"
    return f"the plan does not consider {gap.kind.plural} ({gap.why})"


_UNKNOWN: Sequence[tuple[Kind[Any], str]] = (
    (CLASSES, "which devices a new claim would be allocated is not known"),
    (CLAIMS, "which pods use a device is not known"),
    (PODS, "which pods would be evicted is not known"),
    (NODES, "where a pod would be rescheduled is not known"),
)


# -- pods -----------------------------------------------------------------------------------------


def _departure(rehearsal: Rehearsal, eviction: Eviction) -> Departure:
    pod, start = eviction.pod, rehearsal.world.timeline.start
    return Departure(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        owner=pod.owner_text,
        node=pod.spec.node_name,
        at=eviction.at,
        after=(eviction.at - start).total_seconds(),
        devices=tuple(sorted({str(reason.device) for reason in eviction.reasons})),
        because=tuple(map(_reason, eviction.reasons)),
        anyway=eviction.anyway,
        landing=_landing(rehearsal, eviction),
    )


def _reason(reason: Reason) -> TaintTold:
    taint = reason.taint
    return TaintTold(
        device=str(reason.device), taint=written(taint.taint), origin=str(taint.origin)
    )


def _landing(rehearsal: Rehearsal, eviction: Eviction) -> Landing:
    pod = eviction.pod
    if not is_replaced(pod):
        return Landing(fate=Fate.LOST, why=NOBODY)
    binding = rehearsal.scheduler.bindings.get(eviction.replacement)
    if binding is None:
        return _nowhere(rehearsal, eviction, pod)
    devices = tuple(map(str, binding.devices))
    if eviction.evicted_again is None:
        return Landing(fate=Fate.LANDS, at=binding.at, node=binding.node, devices=devices)
    seconds = int((eviction.evicted_again - binding.at).total_seconds())
    when = f"after {seconds}s" if seconds else "immediately"
    why = f"it tolerates the taints there only for some time, and would be evicted again {when}"
    return Landing(fate=Fate.RETURNS, at=binding.at, node=binding.node, devices=devices, why=why)


def _nowhere(rehearsal: Rehearsal, eviction: Eviction, pod: PlannedPod) -> Landing:
    if eviction.missing:
        why = f"ResourceClaimTemplate {pod.metadata.namespace}/{eviction.missing} does not exist"
        return Landing(fate=Fate.PENDING, why=why)
    if not pod.asks_for():
        why = f"the decisions of scheduler {pod.spec.scheduler_name} are not known"
        return Landing(fate=Fate.PENDING, why=why)
    pending = rehearsal.pending(eviction.replacement)
    if pending is None:
        return Landing(fate=Fate.PENDING, why="it has a scheduling gate")
    # Thousands of pods may wait for the same thousand claims.
    account = shortened(pending.diagnosis) if pending.diagnosis is not None else None
    return Landing(fate=Fate.PENDING, why=pending.message, account=account)


def _stays(rehearsal: Rehearsal) -> Iterator[Stay]:
    for pod, cause in rehearsal.evictions.held_back():
        metadata = pod.metadata
        yield Stay(
            namespace=metadata.namespace,
            name=metadata.name,
            owner=pod.owner_text,
            why=_held_back_by(cause),
        )


def _held_back_by(cause: Paused | BudgetExhausted) -> str:
    if isinstance(cause, Paused):
        names = sorted({str(reason.taint.origin) for reason in cause.reasons})
        return f"paused: {', '.join(names)}"
    if len(cause.budgets) > 1:
        return "more than one PodDisruptionBudget is about it"
    return f"PodDisruptionBudget {cause.budgets[0].name} allows no disruption"


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
    for eviction in rehearsal.evicted:
        for reason in eviction.reasons if not eviction.anyway else ():
            if (
                reason.device in told
                or rehearsal.world.inventory.published(reason.device) is not None
            ):
                continue
            told.add(reason.device)
            yield DeviceTold(
                device=str(reason.device),
                node="",
                gains=(marked(reason.taint),),
                claims=eviction.claims[reason.device],
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
