"""Scheduling in a plan: runs the scheduling core on a copy of the cluster.

Which node and devices a pod gets is decided by `sully/scheduler/core.py`, as in
`controllers/scheduling`; here its effects change the copy immediately.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from itertools import count
from operator import itemgetter

import msgspec

from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.claims.reservations import reserved_for
from sully.domain.devices.pools import DeviceId
from sully.domain.planning.candidate_nodes import CandidateNodes, candidate_nodes
from sully.domain.planning.replacements import SIMULATED_MARK, ReplacementPod
from sully.domain.scheduling.causes import Unknown
from sully.domain.scheduling.cluster_events import ANY_EVENT
from sully.domain.scheduling.decisions import FitError
from sully.domain.scheduling.diagnosis import Diagnosis
from sully.domain.scheduling.objects import ExtendedClaimStatus, Pod
from sully.machinery.serialization.wire import amended
from sully.planning.simulation.cluster_copy import ClusterCopy, reserved
from sully.scheduler.binding_conditions import Readiness, readiness
from sully.scheduler.claim_resolution import ClaimsNotReady, claim_keys, resolve
from sully.scheduler.core import SchedulingCore
from sully.scheduler.effects import (
    Bind,
    CreateDeferred,
    Effect,
    ExtendedResourceClaim,
    MarkUnschedulable,
    WaitForClaims,
    WaitForEvaluation,
)
from sully.scheduler.equivalence.classes import for_claims_of
from sully.scheduler.preemption import Preemption
from sully.scheduler.queue import Rank, SchedulingQueue
from sully.scheduler.schedule_algorithm import ScheduleResult, Unschedulable


class SimulatedBinding(msgspec.Struct, frozen=True):
    """The node and devices of a scheduled pod."""

    time: datetime
    node: str
    devices: tuple[DeviceId, ...]
    candidates: CandidateNodes = CandidateNodes()
    unknown: tuple[Unknown, ...] = ()
    """What decides about the pod as well, and was not evaluated."""


class DevicesNotReady:
    """The binding conditions of the devices of a pod are not true."""

    message = "its driver has not made its devices ready"


class DecidedElsewhere(msgspec.Struct, frozen=True):
    """Another scheduler decides about the pod, or it has scheduling gates."""

    pod: Pod
    node: str = ""
    """A node that would fit, as far as that can be evaluated."""
    problem: str = ""
    """Why none would."""

    @property
    def message(self) -> str:
        """Return what decides, and what is known about nodes and devices."""
        gates = [str(gate.get("name", "")) for gate in self.pod.spec.scheduling_gates]
        text = f"scheduler {self.pod.spec.scheduler_name} decides about it"
        if gates:
            text = f"it waits until {'gates' if len(gates) > 1 else 'gate'} {', '.join(gates)}"
            text += f" {'are' if len(gates) > 1 else 'is'} removed"
        if self.node:
            return f"{text}; nodes and devices: it would fit on {self.node}"
        return f"{text}; nodes and devices: {self.problem}"


class Pending(msgspec.Struct, frozen=True):
    """Why a pod stays Pending, as of its last attempt."""

    cause: FitError | ClaimsNotReady | DevicesNotReady | DecidedElsewhere
    diagnosis: Diagnosis | None = None
    preemptions: tuple[Preemption, ...] = ()
    """Pods that kube-scheduler may delete so that it fits."""

    @property
    def message(self) -> str:
        """Return the message of the scheduler; preemption is not part of a plan."""
        cause = self.cause
        return cause.short_message if isinstance(cause, FitError) else cause.message


class PlannedIds:
    """Generates the uids and names of objects that exist only in a plan."""

    def __init__(self) -> None:
        self._numbers = count()

    def uid(self) -> str:
        """Return a unique uid."""
        return f"{SIMULATED_MARK}{next(self._numbers)}"

    def suffix(self) -> str:
        """Return the suffix of a generated name."""
        return SIMULATED_MARK


class PlannedScheduler:
    """Runs the scheduling core on a copy of the cluster."""

    def __init__(
        self,
        cluster: ClusterCopy,
        on_bound: Callable[[Pod], None],
        base: SchedulingCore | None = None,
    ) -> None:
        """Schedule on a copy; `base` is the core of an equal one that has not changed."""
        self._cluster = cluster
        self._on_bound = on_bound
        self.bindings: dict[str, SimulatedBinding] = {}
        """By uid, of all pods that were bound in this plan."""
        self.pending: dict[str, Pending] = {}
        self.on_untainted: Key | None = None
        """A pod that is being created on devices of which none has a taint."""
        self._deferred: dict[Key, ReplacementPod] = {}
        self.core = SchedulingCore(
            cluster.inventory,
            SchedulingQueue(cluster.clock.monotonic),
            options=cluster.scheduling,
            ids=PlannedIds(),
            one_per_class=True,
        )
        self.core.sources.read(cluster.snapshot)
        handlers = self.core.handlers
        if base is None:
            cluster.nodes.on_change(handlers.node_changed)
            cluster.claims.on_change(handlers.claim_changed)
        else:
            self.core.copy_from(base)
            cluster.nodes.follow(handlers.node_changed)
            cluster.claims.follow(handlers.claim_changed)
        cluster.classes.on_change(handlers.class_changed)
        cluster.inventory.on_change(handlers.devices_changed)
        if base is None:
            cluster.pods.on_change(handlers.pod_changed)
        else:
            for pod in cluster.pods.values():
                if not pod.spec.node_name:
                    handlers.pod_changed(None, pod)
            cluster.pods.follow(handlers.pod_changed)
        cluster.on_deletion(handlers.pod_deleted)

    def create(self, replacements: Iterable[ReplacementPod]) -> None:
        """Create pods with their claims, in the order of the queue.

        A pod that is scheduled is created with its node, which saves half of the events; one that
        is equal to an unschedulable pod is created when that one is scheduled.
        """
        ranked: list[tuple[Rank, ReplacementPod]] = []
        for replacement in replacements:
            pod = replacement.pod
            if pod.needs_scheduling:
                ranked.append((self.core.queue.expect(key_of(pod), pod), replacement))
            else:
                self._create(replacement)
        now = self._cluster.clock.now()
        for rank, replacement in sorted(ranked, key=itemgetter(0)):
            pod, claims = replacement.pod, replacement.claims
            if not _has_own_claims(replacement):
                self._create(replacement)
            elif self.core.defer(pod, claims, rank, now):
                self._deferred[key_of(pod)] = replacement
                continue
            elif (bind := self.core.schedule_new(pod, claims, rank, now)) is not None:
                self.on_untainted = None if _is_tainted(bind) else bind.key
                self._create_bound(bind, pod)
                self.on_untainted = None
            else:
                self._create(replacement)
            self.settle(until=rank)

    def _create(self, replacement: ReplacementPod) -> None:
        for claim in replacement.claims:
            self._cluster.put(self._cluster.claims, claim)
        self._cluster.put(self._cluster.pods, replacement.pod)

    def settle(self, *, until: Rank | None = None, diagnose: bool = False) -> None:
        """Schedule until no pod is active; with a rank, only pods up to it."""
        schedule_one, now = self.core.schedule_one, self._cluster.clock.now()
        while (effect := schedule_one(now, until=until, diagnose=diagnose)) is not None:
            self._execute(effect)

    def retry_all(self, *, diagnose: bool = False) -> None:
        """Make an attempt for each pending pod."""
        self.core.queue.move_to_active_queue(ANY_EVENT)
        self.settle(diagnose=diagnose)

    def diagnose(self) -> None:
        """Find out why each pending pod is unschedulable."""
        self.retry_all(diagnose=True)
        for pod in self._cluster.pods.values():
            if SIMULATED_MARK in pod.metadata.uid and not (
                pod.spec.node_name or pod.needs_scheduling
            ):
                self.pending[pod.metadata.uid] = self._decided_elsewhere(pod)
        for represented, representative in (
            self.core.groups.represented() if self.core.groups else ()
        ):
            self._diagnose_as(represented, representative)

    def _decided_elsewhere(self, pod: Pod) -> Pending:
        """Evaluate nodes and devices for a pod that another scheduler, or a gate, decides about."""
        match self.core.preview(pod, self._cluster.clock.now()):
            case ScheduleResult(node=node):
                return Pending(DecidedElsewhere(pod, node=node))
            case Unschedulable(error=error, diagnosis=diagnosis):
                return Pending(DecidedElsewhere(pod, problem=error.short_message), diagnosis)
            case ClaimsNotReady() as problem:
                return Pending(DecidedElsewhere(pod, problem=problem.message))

    def terminating(self, pod: Pod) -> None:
        """Note that a pod on a node terminates: topology spread no longer counts it."""
        self.core.nodes.update_pod(pod)

    def _diagnose_as(self, represented: Key, representative: Key) -> None:
        """Give a pod the result of the equal pod that represents it."""
        deferred, first = self._deferred.get(represented), self._cluster.pods.get(representative)
        pod = deferred.pod if deferred is not None else self._cluster.pods.get(represented)
        if pod is None or first is None:
            return
        pending = self.pending[first.metadata.uid]
        diagnosis = pending.diagnosis
        claims = deferred.claims if deferred else resolve(pod, self._cluster.claims.get)
        if diagnosis is not None and not isinstance(claims, ClaimsNotReady):
            names = [str(key) for key in claim_keys(first)]
            diagnosis = for_claims_of(diagnosis, names, claims)
        self.pending[pod.metadata.uid] = Pending(pending.cause, diagnosis, pending.preemptions)

    def _execute(self, effect: Effect) -> None:
        match effect:
            case Bind():
                self._pre_bind(effect)
            case MarkUnschedulable(pod=pod, result=result):
                self.pending[pod.metadata.uid] = Pending(
                    result.error, result.diagnosis, result.preemptions
                )
                if result.deallocate is not None:
                    self._cluster.deallocate(result.deallocate)
                if effect.leftover is not None:
                    self._cluster.remove(self._cluster.claims, key_of(effect.leftover))
            case WaitForClaims(pod=pod, problem=problem):
                self.pending[pod.metadata.uid] = Pending(problem)
            case CreateDeferred():
                self._create(self._deferred.pop(effect.key))
            case WaitForEvaluation():
                raise AssertionError("a plan evaluates selectors without a pause")

    def _pre_bind(self, bind: Bind) -> None:
        pod = self._cluster.pods.get(bind.key)
        if pod is None:
            return
        uid, claims = pod.metadata.uid, map(self._cluster.claims.get, claim_keys(pod))
        reserved = [claim for claim in claims if claim and reserved_for(claim, uid=uid)]
        if readiness(reserved) is Readiness.READY:
            self._bind(bind, pod)
        else:
            # It stays in progress: its driver decides whether it is bound.
            self.pending[uid] = Pending(DevicesNotReady())

    def _bind(self, bind: Bind, pod: Pod) -> None:
        for reservation in bind.claims:
            allocation = reservation.allocation or reservation.claim.status.allocation
            self._cluster.reserve(reservation.claim, pod, allocation=allocation)
        if bind.extended is not None:
            pod = self._create_extended(pod, bind.extended)
        self.pending.pop(pod.metadata.uid, None)
        self._note_binding(bind)
        bound = self._cluster.put(self._cluster.pods, _on_node(pod, bind.node))
        self.core.finish_binding(bind.key)
        self._on_bound(bound)

    def _create_bound(self, bind: Bind, pod: Pod) -> None:
        """Create a pod with its node and its claims, as `_bind`, in one step."""
        if bind.extended is not None or self._cluster.pods.get(bind.key) is not None:
            self._bind(bind, pod)
            return
        claims = [
            reserved(reservation.claim, pod, allocation=reservation.allocation)
            for reservation in bind.claims
        ]
        self._note_binding(bind)
        bound = _on_node(pod, bind.node)
        self._cluster.create_bound(bound, claims)
        self.core.created(bind.key, bound, claims)
        self._on_bound(bound)

    def _note_binding(self, bind: Bind) -> None:
        devices = [device for reservation in bind.claims for device in reservation.devices]
        if bind.extended is not None:
            devices += bind.extended.devices
        now, ids = self._cluster.clock.now(), tuple([device.id for device in devices])
        # The order in which Sully's scheduler selects nodes is fixed; kube-scheduler's is not.
        fitting = () if self._cluster.scheduling.compat.stops_at_best_node else bind.candidates
        self.bindings[bind.pod.metadata.uid] = SimulatedBinding(
            now, bind.node, ids, candidate_nodes(bind.node, fitting, bind.evicting), bind.unknown
        )

    def _create_extended(self, pod: Pod, extended: ExtendedResourceClaim) -> Pod:
        """Create the claim for the extended resources of a pod."""
        self._cluster.reserve(extended.claim, pod, allocation=extended.allocation)
        name = extended.claim.metadata.name
        status = msgspec.structs.replace(
            pod.status,
            extended_resource_claim_status=ExtendedClaimStatus(resource_claim_name=name),
        )
        return msgspec.structs.replace(pod, status=status)


def _on_node(pod: Pod, node: str) -> Pod:
    return msgspec.structs.replace(pod, spec=amended(pod.spec, node_name=node))


def _is_tainted(bind: Bind) -> bool:
    """Report whether a new pod may get tainted devices."""
    return bind.extended is not None or any(
        device.taints for reservation in bind.claims for device in reservation.devices
    )


def _has_own_claims(replacement: ReplacementPod) -> bool:
    """Report whether all claims of a new pod are created with it."""
    return not replacement.missing_template and len(replacement.claims) == len(
        replacement.pod.spec.resource_claims
    )
