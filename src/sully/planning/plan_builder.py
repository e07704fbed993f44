"""Builds the plan that commands print from a simulation that has run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from sully.client.transport import Key, Kind
from sully.domain.devices.pools import DeviceId
from sully.domain.eviction.judge import EvictingTaint
from sully.domain.eviction.loops import LoopCause, evicted_again
from sully.domain.planning.candidate_nodes import with_nodes_of_equal_pods
from sully.domain.planning.device_counts import DeviceCounts
from sully.domain.planning.differences import planned_taint
from sully.domain.planning.owner_messages import (
    NO_CONTROLLER,
    expected_text,
    obstacle_text,
    unknown_text,
)
from sully.domain.planning.owners import Recreation
from sully.domain.planning.replacements import SIMULATED_MARK
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
from sully.domain.scheduling.messages import unknown
from sully.domain.tolerations import taint_text
from sully.evictor.checks import BudgetExhausted, Paused
from sully.planning.baseline import counts_without_change
from sully.planning.dryrun.changes import Change, Put, describe
from sully.planning.latent import latent_effects
from sully.planning.loops import eviction_loops
from sully.planning.owners.report import (
    created_pods,
    deleted_pods,
    gap_text,
    not_created,
    owner_notes,
)
from sully.planning.simulation.budgets import budget_text
from sully.planning.simulation.scheduler import DecidedElsewhere
from sully.planning.simulation.simulator import SimulatedEviction, Simulation
from sully.scheduler.preemption import Preemption
from sully.views.inactions import inactions_of
from sully.views.kinds import CLAIMS, CLASSES, CONSUMER_PODS
from sully.views.snapshot.kinds import NODES
from sully.views.snapshot.snapshot import Snapshot


def build_plan(
    simulation: Simulation, notes: Sequence[str] = (), no_effects: Sequence[str] = ()
) -> Plan:
    """Return the plan of a simulation that has run."""
    unpublished = tuple(_unpublished(simulation))
    devices = (*simulation.device_changes, *unpublished)
    plan = Plan(
        start_time=simulation.cluster.clock.start,
        eviction_loops=eviction_loops(simulation),
        changes=tuple(describe(one.change, one.existing) for one in simulation.applied),
        devices=devices,
        total_devices=_published_devices(simulation) + len(unpublished),
        claims=tuple(sorted({claim for device in devices for claim in device.claims})),
        evictions=tuple(_evictions(simulation)),
        blocked_evictions=tuple(_blocked_evictions(simulation)),
        scheduled_pods=tuple(_scheduled_pods(simulation)),
        classes=tuple(_class_counts(simulation)),
        deleted_pods=tuple(deleted_pods(simulation)),
        created_pods=tuple(created_pods(simulation)),
        no_effects=tuple(no_effects),
        notes=(*notes, *owner_notes(simulation)),
    )
    caused = {Key(eviction.namespace, eviction.name) for eviction in plan.caused}
    plan = replace(plan, broken_budgets=tuple(simulation.evictor.broken_budgets(caused)))
    # Last: it changes the copy.
    reported = ((eviction.namespace, eviction.owner) for eviction in plan.not_rescheduled)
    return replace(plan, latent_effects=latent_effects(simulation, reported))


def _published_devices(simulation: Simulation) -> int:
    """Count the devices that are published before the change or after it."""
    before, after = simulation.before, simulation.after
    return sum(
        len(before.get(pool, {}).keys() | after.get(pool, {}).keys())
        for pool in before.keys() | after.keys()
    )


def gap_notes(snapshot: Snapshot) -> list[str]:
    """Return what a plan on this snapshot does not consider, and what that means."""
    gaps = ((snapshot.gap(kind), meaning) for kind, meaning in _UNKNOWN)
    return [f"{gap_text(gap)}: {meaning}" for gap, meaning in gaps if gap is not None]


def no_effect_texts(snapshot: Snapshot, changes: Iterable[Change]) -> list[str]:
    """Return what of the changes has no effect where the snapshot was taken."""
    objects = (
        (change.kind.kind, change.obj if isinstance(change, Put) else None) for change in changes
    )
    inactions = inactions_of(snapshot.control_plane, objects)
    return [f"{inaction.text}; {inaction.remedy}" for inaction in inactions]


_UNKNOWN: Sequence[tuple[Kind[Any], str]] = (
    (CLASSES, "which devices a new claim would be allocated is not known"),
    (CLAIMS, "which pods use a device is not known"),
    (CONSUMER_PODS, "which pods would be evicted is not known"),
    (NODES, "where a pod would be rescheduled is not known"),
)


# -- pods -----------------------------------------------------------------------------------------


def _evictions(simulation: Simulation) -> Iterator[PlannedEviction]:
    selected: dict[tuple[str, str], dict[str, None]] = {}
    """Nodes that the simulation selected among several, by namespace and owner of the pods."""
    for eviction in simulation.evicted:
        pod = eviction.pod
        nodes = selected.setdefault((pod.metadata.namespace, pod.owner_text), {})
        yield _eviction(simulation, eviction, nodes)
        binding = simulation.scheduler.bindings.get(eviction.replacement_uid)
        if binding is not None and binding.candidates.count > 1:
            nodes[binding.node] = None


def _eviction(
    simulation: Simulation, eviction: SimulatedEviction, selected: Collection[str]
) -> PlannedEviction:
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
        replacement=_replacement(simulation, eviction, selected),
    )


def _reason(reason: EvictingTaint) -> EvictionReason:
    taint = reason.taint
    return EvictionReason(
        device=str(reason.device), taint=taint_text(taint.taint), origin=str(taint.origin)
    )


def _replacement(
    simulation: Simulation, eviction: SimulatedEviction, selected: Collection[str]
) -> Replacement:
    pod, behavior = eviction.pod, simulation.owners.behavior(eviction.pod)
    if behavior.recreation is Recreation.NEVER:
        return Replacement(outcome=ReplacementOutcome.NOT_REPLACED, message=NO_CONTROLLER)
    obstacle = simulation.owners.obstacle(eviction)
    if obstacle is not None and eviction.evicted_again is None:
        return not_created(obstacle)
    replacement = _recreated(simulation, eviction, selected)
    if obstacle is not None:
        message = f"{replacement.message}; then {obstacle_text(obstacle)}"
        return replace(replacement, message=message)
    expected = expected_text(pod, behavior)
    if behavior.recreation is Recreation.UNKNOWN:
        otherwise = f"rescheduled to {replacement.node}" if replacement.node else "unschedulable"
        message = unknown_text(pod, behavior, otherwise)
        return replace(
            replacement, outcome=ReplacementOutcome.UNKNOWN, message=message, expected=expected
        )
    return replace(replacement, expected=expected) if expected else replacement


def _recreated(
    simulation: Simulation, eviction: SimulatedEviction, selected: Collection[str]
) -> Replacement:
    """Return what happens to the pod that the owner creates."""
    binding = simulation.scheduler.bindings.get(eviction.replacement_uid)
    if binding is None:
        return _pending(simulation, eviction)
    outcome, message = ReplacementOutcome.RESCHEDULED, ""
    if eviction.evicted_again is not None:
        outcome = ReplacementOutcome.EVICTED_AGAIN
        seconds = int((eviction.evicted_again - binding.time).total_seconds())
        when = f"after {seconds}s" if seconds else "immediately"
        message = f"{_why_again(simulation, eviction)}, and would be evicted again {when}"
    if binding.unknown and outcome is ReplacementOutcome.RESCHEDULED:
        outcome = ReplacementOutcome.UNKNOWN
        message = f"it would fit on {binding.node}, but {'; '.join(map(unknown, binding.unknown))}"
    nodes = with_nodes_of_equal_pods(binding.candidates, selected)
    return Replacement(
        outcome=outcome,
        scheduled_time=binding.time,
        node=binding.node,
        candidates=nodes.names,
        candidate_count=nodes.count,
        evicting_candidates=nodes.evicting,
        devices=tuple(map(str, binding.devices)),
        message=message,
    )


def _why_again(simulation: Simulation, eviction: SimulatedEviction) -> str:
    """Return why the replacement of a pod was scheduled where it is evicted again."""
    due = simulation.due_again.get(eviction.replacement_uid)
    again = evicted_again(due.pod, due.claims, due.reasons) if due is not None else None
    match again.cause if again is not None else LoopCause.UNKNOWN:
        case LoopCause.NAMED_CLAIM:
            return "its claim is still allocated to tainted devices"
        case LoopCause.TOLERATION_WITHOUT_EFFECT:
            return "its toleration of the taints there names no effect"
        case _:
            return "it tolerates the taints there only for some time"


def _pending(simulation: Simulation, eviction: SimulatedEviction) -> Replacement:
    pod, diagnosis = eviction.pod, None
    pending = simulation.pending(eviction.replacement_uid)
    if eviction.missing_template:
        name = f"{pod.metadata.namespace}/{eviction.missing_template}"
        message = f"ResourceClaimTemplate {name} does not exist"
    elif pending is None:
        message = "no scheduler has processed it"
    else:
        message = pending.message
        # Thousands of pods may wait for the same thousand claims.
        diagnosis = shortened(pending.diagnosis) if pending.diagnosis is not None else None
    outcome = ReplacementOutcome.PENDING
    if pending is not None and isinstance(pending.cause, DecidedElsewhere):
        outcome = ReplacementOutcome.UNKNOWN
    elif pending is not None and pending.preemptions:
        outcome = ReplacementOutcome.UNKNOWN
        message = f"{_may_preempt(pending.preemptions)}; {message}"
    return Replacement(outcome=outcome, message=message, diagnosis=diagnosis)


def _may_preempt(preemptions: Sequence[Preemption]) -> str:
    places = (f"{', '.join(x.victims)} on {x.node}" for x in preemptions)
    return f"the scheduler may preempt {', or '.join(places)}"


def _blocked_evictions(simulation: Simulation) -> Iterator[BlockedEviction]:
    blocked = [(pod, _blocked_by(cause)) for pod, cause in simulation.evictor.blocked()]
    if simulation.drain is not None:
        blocked += simulation.drain.blocked()
    for pod, message in blocked:
        metadata = pod.metadata
        yield BlockedEviction(
            namespace=metadata.namespace,
            name=metadata.name,
            owner=pod.owner_text,
            message=message,
        )


def _blocked_by(cause: Paused | BudgetExhausted) -> str:
    if isinstance(cause, Paused):
        names = sorted({str(reason.taint.origin) for reason in cause.reasons})
        return f"paused: {', '.join(names)}"
    return budget_text(cause.budgets)


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
                added_taints=(planned_taint(reason.taint),),
                claims=eviction.claims[reason.device],
            )


def _class_counts(simulation: Simulation) -> Iterator[ClassCounts]:
    before, after = counts_without_change(simulation), simulation.counts_after or {}
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
