"""Builds the plan that commands print from a simulation that has run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sully.client.transport import Kind
from sully.domain.allocation.verdicts import written
from sully.domain.devices.pools import DeviceId
from sully.domain.eviction.judge import Reason
from sully.domain.planning.device_counts import DeviceCounts
from sully.domain.planning.differences import taint_text
from sully.domain.planning.replacements import SIMULATED_MARK, is_replaced
from sully.domain.planning.report import (
    BlockedEviction,
    ClassCounts,
    DeviceChange,
    EvictionReason,
    Plan,
    PlannedEviction,
    Replacement,
    ReplacementOutcome,
    ScheduledPod,
)
from sully.domain.scheduling.diagnosis import shortened
from sully.evictor.admission import BudgetExhausted, Paused
from sully.planning.simulation import SimulatedEviction, Simulation
from sully.views.kinds import CLAIMS, CLASSES, PODS
from sully.views.snapshot.kinds import NODES
from sully.views.snapshot.snapshot import Gap, Snapshot

NO_CONTROLLER = "no controller manages it, so it is not recreated"


def build_plan(simulation: Simulation, notes: Sequence[str] = ()) -> Plan:
    """Return the plan of a simulation that has run."""
    devices = (*simulation.device_changes, *_unpublished(simulation))
    return Plan(
        start_time=simulation.cluster.clock.start,
        changes=tuple(simulation.changes),
        devices=devices,
        total_devices=_total_devices(simulation),
        claims=tuple(sorted({claim for device in devices for claim in device.claims})),
        evictions=tuple(_eviction(simulation, eviction) for eviction in simulation.evicted),
        blocked_evictions=tuple(_blocked_evictions(simulation)),
        scheduled_pods=tuple(_scheduled_pods(simulation)),
        classes=tuple(_class_counts(simulation)),
        notes=tuple(notes),
    )


def _total_devices(simulation: Simulation) -> int:
    """Count the devices that exist before the change or after it."""
    before, after = simulation.before, simulation.after
    return sum(
        len(before.get(pool, {}).keys() | after.get(pool, {}).keys())
        for pool in before.keys() | after.keys()
    )


def gap_notes(snapshot: Snapshot) -> list[str]:
    """Return what a plan on this snapshot does not consider, and what that means."""
    gaps = ((snapshot.gap(kind), meaning) for kind, meaning in _UNKNOWN)
    return [f"{_gap_text(gap)}: {meaning}" for gap, meaning in gaps if gap is not None]


def _gap_text(gap: Gap) -> str:
    if gap.only_namespace:
        return f"the plan only considers {gap.kind.plural} in namespace {gap.only_namespace}"
    return f"the plan does not consider {gap.kind.plural} ({gap.reason})"


_UNKNOWN: Sequence[tuple[Kind[Any], str]] = (
    (CLASSES, "which devices a new claim would be allocated is not known"),
    (CLAIMS, "which pods use a device is not known"),
    (PODS, "which pods would be evicted is not known"),
    (NODES, "where a pod would be rescheduled is not known"),
)


# -- pods -----------------------------------------------------------------------------------------


def _eviction(simulation: Simulation, eviction: SimulatedEviction) -> PlannedEviction:
    pod, start = eviction.pod, simulation.cluster.clock.start
    return PlannedEviction(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        owner=pod.owner_text,
        node=pod.spec.node_name,
        eviction_time=eviction.time,
        after_seconds=(eviction.time - start).total_seconds(),
        devices=tuple(sorted({str(reason.device) for reason in eviction.reasons})),
        reasons=tuple(map(_reason, eviction.reasons)),
        without_change=eviction.without_change,
        replacement=_replacement(simulation, eviction),
    )


def _reason(reason: Reason) -> EvictionReason:
    taint = reason.taint
    return EvictionReason(
        device=str(reason.device), taint=written(taint.taint), origin=str(taint.origin)
    )


def _replacement(simulation: Simulation, eviction: SimulatedEviction) -> Replacement:
    if not is_replaced(eviction.pod):
        return Replacement(outcome=ReplacementOutcome.NOT_REPLACED, message=NO_CONTROLLER)
    binding = simulation.scheduler.bindings.get(eviction.replacement_uid)
    if binding is None:
        return _pending(simulation, eviction)
    outcome, message = ReplacementOutcome.RESCHEDULED, ""
    if eviction.evicted_again is not None:
        outcome = ReplacementOutcome.EVICTED_AGAIN
        seconds = int((eviction.evicted_again - binding.time).total_seconds())
        when = f"after {seconds}s" if seconds else "immediately"
        message = (
            f"it tolerates the taints there only for some time, and would be evicted again {when}"
        )
    return Replacement(
        outcome=outcome,
        scheduled_time=binding.time,
        node=binding.node,
        devices=tuple(map(str, binding.devices)),
        message=message,
    )


def _pending(simulation: Simulation, eviction: SimulatedEviction) -> Replacement:
    pod, diagnosis = eviction.pod, None
    pending = simulation.pending(eviction.replacement_uid)
    if eviction.missing_template:
        name = f"{pod.metadata.namespace}/{eviction.missing_template}"
        message = f"ResourceClaimTemplate {name} does not exist"
    elif not pod.asks_for():
        message = f"the decisions of scheduler {pod.spec.scheduler_name} are not known"
    elif pending is None:
        message = "it has a scheduling gate"
    else:
        message = pending.message
        # Thousands of pods may wait for the same thousand claims.
        diagnosis = shortened(pending.diagnosis) if pending.diagnosis is not None else None
    return Replacement(outcome=ReplacementOutcome.PENDING, message=message, diagnosis=diagnosis)


def _blocked_evictions(simulation: Simulation) -> Iterator[BlockedEviction]:
    for pod, cause in simulation.evictor.blocked():
        metadata = pod.metadata
        yield BlockedEviction(
            namespace=metadata.namespace,
            name=metadata.name,
            owner=pod.owner_text,
            message=_blocked_by(cause),
        )


def _blocked_by(cause: Paused | BudgetExhausted) -> str:
    if isinstance(cause, Paused):
        names = sorted({str(reason.taint.origin) for reason in cause.reasons})
        return f"paused: {', '.join(names)}"
    if len(cause.budgets) > 1:
        return "more than one PodDisruptionBudget is about it"
    return f"PodDisruptionBudget {cause.budgets[0].name} allows no disruption"


def _scheduled_pods(simulation: Simulation) -> Iterator[ScheduledPod]:
    """Yield the pods that were Pending before the change and are scheduled after it."""
    pods = {pod.metadata.uid: pod for pod in simulation.cluster.pods.values()}
    for uid, binding in simulation.scheduler.bindings.items():
        pod = pods.get(uid)
        if pod is None or uid in simulation.bound_before or SIMULATED_MARK in uid:
            continue
        yield ScheduledPod(
            namespace=pod.metadata.namespace,
            name=pod.metadata.name,
            owner=pod.owner_text,
            node=binding.node,
            devices=tuple(map(str, binding.devices)),
            scheduled_time=binding.time,
            evicted_again=uid in simulation.evicted_again,
        )


# -- devices --------------------------------------------------------------------------------------


def _unpublished(simulation: Simulation) -> Iterator[DeviceChange]:
    """Yield the devices without a slice that pods are evicted from: a rule may name those too."""
    seen: set[DeviceId] = set()
    for eviction in simulation.evicted:
        for reason in eviction.reasons if not eviction.without_change else ():
            if (
                reason.device in seen
                or simulation.cluster.inventory.published(reason.device) is not None
            ):
                continue
            seen.add(reason.device)
            yield DeviceChange(
                device=str(reason.device),
                node="",
                added_taints=(taint_text(reason.taint),),
                claims=eviction.claims[reason.device],
            )


def _class_counts(simulation: Simulation) -> Iterator[ClassCounts]:
    before, after = simulation.counts_before, simulation.counts_after or {}
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name, DeviceCounts()), after.get(name, DeviceCounts())
        yield ClassCounts(
            name=name,
            devices_before=old.devices,
            devices_after=new.devices,
            tainted_before=old.tainted,
            tainted_after=new.tainted,
            used_before=old.used,
            used_after=new.used,
            free_before=old.free,
            free_after=new.free,
        )
