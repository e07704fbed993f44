"""What the scheduler would do with a pod now, on a copy of the cluster.

The algorithm is the scheduler's own (`scheduler/schedule_algorithm.py`), filled from a snapshot;
this package knows the scheduler only through this file. what_if.py changes the copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal, NamedTuple

from sully.api.resource.types import ResourceClaim
from sully.client.transport import Key
from sully.domain.allocation.failures import AllocationFailure, Unresolved
from sully.domain.allocation.rejections.reason_counts import DeviceFinding as DeviceFinding
from sully.domain.allocation.rejections.survey import Survey, diagnose, findings_on
from sully.domain.allocation.requests import Alternative, Demand, prepare
from sully.domain.allocation.toleration_expiry import AsOf
from sully.domain.allocation.verdicts import Failed, RejectionReason
from sully.domain.devices.pools import DeviceId
from sully.domain.scheduling.causes import FilterFailed, PodRejected, Unknown, UnsupportedField
from sully.domain.scheduling.diagnosis import Diagnosis
from sully.domain.scheduling.extended import Backings, Extension, extend
from sully.domain.scheduling.filters import (
    FilterReason,
    InsufficientResource,
    NodeInfo,
    NodeReason,
    Rejection,
    run_filters,
)
from sully.domain.scheduling.messages import filter_reason, pre_filter_reason
from sully.domain.scheduling.objects import Pod
from sully.domain.scheduling.resources import requests_of
from sully.domain.scheduling.volumes.topology import VolumeProblem
from sully.explain.trials.changes import LargestNode, RequestName
from sully.machinery.cel import CostBudgetExceededError
from sully.scheduler.binding_conditions import deadline, unready
from sully.scheduler.caches.constraint_sources import ConstraintSources
from sully.scheduler.caches.device_cache import DeviceCache
from sully.scheduler.caches.node_cache import NodeCache
from sully.scheduler.claim_resolution import ClaimsNotReady, claim_keys, resolve, unallocated
from sully.scheduler.options import options_for
from sully.scheduler.preemption import Preemption
from sully.scheduler.schedule_algorithm import ScheduleAlgorithm, ScheduleResult, Unschedulable
from sully.views.kinds import CLAIMS, CLASSES
from sully.views.snapshot.kinds import NODES, PODS
from sully.views.snapshot.snapshot import Snapshot

__all__ = ["ScheduleResult", "Unschedulable", "claim_keys", "deadline", "unallocated", "unready"]

_MOST_NODES: Final = 64
"""Nodes that are tried for a device that many can use."""
_RIGHT_KIND = (
    RejectionReason.TAINT,
    RejectionReason.IN_USE,
    RejectionReason.COUNTERS,
    RejectionReason.CONSTRAINT,
)
"""Why a request cannot have a device that is of the right kind."""


RejectionKind = Literal[
    "Cordoned",
    "Untolerated",
    "NotSelected",
    "TooManyPods",
    "Insufficient",
    "PortsInUse",
    "VolumesElsewhere",
    "NotSpread",
    "NotNear",
    "NotApart",
]
_CONSTRAINTS: Final[Mapping[FilterReason, RejectionKind]] = {
    NodeReason.PORTS_IN_USE: "PortsInUse",
    NodeReason.DISK_IN_USE: "VolumesElsewhere",
    NodeReason.ONE_POD_IN_USE: "VolumesElsewhere",
    NodeReason.VOLUME_NOT_USABLE: "VolumesElsewhere",
    NodeReason.NO_VOLUME_TO_BIND: "VolumesElsewhere",
    NodeReason.VOLUME_ZONE: "VolumesElsewhere",
    NodeReason.TOPOLOGY_SPREAD: "NotSpread",
    NodeReason.TOPOLOGY_LABEL: "NotSpread",
    NodeReason.POD_AFFINITY: "NotNear",
    NodeReason.POD_ANTI_AFFINITY: "NotApart",
    NodeReason.EXISTING_ANTI_AFFINITY: "NotApart",
}
_KINDS: Final[Mapping[FilterReason, RejectionKind]] = {
    NodeReason.UNSCHEDULABLE: "Cordoned",
    NodeReason.UNTOLERATED_TAINT: "Untolerated",
    NodeReason.NODE_AFFINITY: "NotSelected",
    NodeReason.TOO_MANY_PODS: "TooManyPods",
    **_CONSTRAINTS,
}


class RejectedNodes(NamedTuple):
    """Nodes that do not fit a pod for one reason, devices aside."""

    reason: FilterReason
    names: tuple[str, ...]

    @property
    def kind(self) -> RejectionKind:
        """Return what `explain` calls the reason."""
        return "Insufficient" if self.resource else _KINDS[self.reason]

    @property
    def resource(self) -> str:
        """Return what the nodes have too little of; empty for another reason."""
        return self.reason.resource if isinstance(self.reason, InsufficientResource) else ""

    @property
    def message(self) -> str:
        """Return the message of Kubernetes."""
        return filter_reason(self.reason)

    @property
    def is_constraint(self) -> bool:
        """Report whether other pods or volumes are the reason."""
        return self.reason in _CONSTRAINTS


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulingTrial:
    """What the scheduler would do with a pod now."""

    node: str = ""
    """Where it would be scheduled."""
    unresolved: str = ""
    """A request names a class that does not exist."""
    failure: AllocationFailure | None = None
    """Something is wrong with a request, a class or a pool."""
    diagnosis: Diagnosis | None = None
    rejections: tuple[RejectedNodes, ...] = ()
    """Nodes that do not fit the pod, devices aside, those first that are the most."""
    nodes: int = 0
    message: str = ""
    """What the scheduler would report, apart from preemption."""
    unsupported: str = ""
    """A field that this scheduler does not evaluate."""
    volumes: str = ""
    """Why the volumes of the pod prevent scheduling."""
    unknown: tuple[Unknown, ...] = ()
    """What decides as well, and was not evaluated."""
    preemptions: tuple[Preemption, ...] = ()


class DeviceOffer(NamedTuple):
    """Whether a device on a node could serve a request of a pod."""

    node: str
    claim: str
    request: Alternative
    finding: DeviceFinding
    """Why the request cannot get the device, if so."""
    rejection: Rejection | UnsupportedField | VolumeProblem | None
    """Why the node does not fit the pod; None if it does."""


class ResolvedClaims(NamedTuple):
    """The claims of a pod; the message has why they are not all there."""

    claims: Sequence[ResourceClaim] = ()
    message: str = ""


def resolve_claims(pod: Pod, snapshot: Snapshot) -> ResolvedClaims:
    """Return the claims of a pod as the scheduler resolves them."""
    claims = resolve(pod, snapshot.of(CLAIMS).get)
    if isinstance(claims, ClaimsNotReady):
        return ResolvedClaims(message=claims.message)
    return ResolvedClaims(claims)


class Stage(NamedTuple):
    """Nodes, and the algorithm that schedules on them."""

    cluster: NodeCache
    algorithm: ScheduleAlgorithm


class SchedulerCopy:
    """A scheduler that decides and binds nothing."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.devices = DeviceCache(snapshot.inventory)
        self.backings = Backings()
        self._pods: dict[str, list[Pod]] = {}
        for pod in snapshot.of(PODS).values():
            if pod.spec.node_name and not pod.is_terminal:
                self._pods.setdefault(pod.spec.node_name, []).append(pod)
        for class_ in snapshot.of(CLASSES).values():
            self.backings.change(None, class_)
        for claim in snapshot.of(CLAIMS).values():
            self.devices.claim_changed(None, claim)
        self._options = options_for(snapshot.control_plane)
        self._sources = ConstraintSources()
        self._sources.read(snapshot)
        self._all = self._stage(None, *snapshot.of(NODES).keys())
        self._single: dict[str, Stage] = {}

    def _stage(self, every: NodeCache | None, *nodes: Key) -> Stage:
        cluster = NodeCache()
        for key in nodes:
            node = self.snapshot.get(NODES, key)
            if node is not None:
                cluster.update_node(node)
            for pod in self.pods_on(key.name):
                cluster.add_pod(pod, key.name, requests_of(pod))
        algorithm = ScheduleAlgorithm(
            devices=self.devices,
            nodes=cluster,
            backings=self.backings,
            options=self._options,
            sources=self._sources,
            cluster=every,
        )
        return Stage(cluster, algorithm)

    @property
    def every_node(self) -> NodeCache:
        """Return all nodes and pods."""
        return self._all.cluster

    def stage(self, node: str) -> Stage:
        """Return one node, or all."""
        if not node:
            return self._all
        if node not in self._single:
            self._single[node] = self._stage(self._all.cluster, Key("", node))
        return self._single[node]

    def pods_on(self, node: str) -> Sequence[Pod]:
        """Return the pods that use resources of a node."""
        return self._pods.get(node, ())

    def states(self) -> Iterator[NodeInfo]:
        """Yield the nodes, the emptiest first."""
        return self._all.cluster.by_load()

    def attempt(self, pod: Pod, claims: Sequence[ResourceClaim]) -> SchedulingTrial:
        """Return what the scheduler would do with a pod whose claims are all there."""
        nodes = len(self._all.cluster)
        match self._prepare(claims):
            case Unresolved() as unresolved:
                return SchedulingTrial(unresolved=pre_filter_reason(unresolved), nodes=nodes)
            case Failed(failure):
                return SchedulingTrial(failure=failure, nodes=nodes)
            case _:
                pass
        verdict = self._all.algorithm.schedule(pod, claims, self.snapshot.taken)
        if isinstance(verdict, ScheduleResult):
            return SchedulingTrial(node=verdict.node, nodes=nodes, unknown=verdict.unknown)
        reason = verdict.error.cause
        rejected = reason.reason if isinstance(reason, PodRejected) else None
        return SchedulingTrial(
            message=verdict.error.short_message,
            unsupported=rejected.field if isinstance(rejected, UnsupportedField) else "",
            volumes=pre_filter_reason(rejected) if isinstance(rejected, VolumeProblem) else "",
            preemptions=verdict.preemptions,
            # Which plugin of the scheduler met the error does not matter here.
            failure=reason.failure if isinstance(reason, FilterFailed) else None,
            diagnosis=verdict.diagnosis,
            rejections=tuple(self._rejections(pod)),
            nodes=nodes,
        )

    def diagnosis(self, pod: Pod, claims: Sequence[ResourceClaim]) -> Diagnosis | None:
        """Return why there are no devices for a pod; None if it would get a node."""
        verdict = self._all.algorithm.schedule(pod, claims, self.snapshot.taken)
        return None if isinstance(verdict, ScheduleResult) else verdict.diagnosis

    def _prepare(self, claims: Sequence[ResourceClaim]) -> Demand | Unresolved | Failed:
        inventory = self.snapshot.inventory
        as_of = AsOf(self.snapshot.taken, inventory.taint_times)
        return prepare(unallocated(claims), inventory.class_, self._options.honored_taints, as_of)

    def extension(self, pod: Pod) -> Extension | None:
        """Return the claim that a pod gets where devices provide its extended resources."""
        backed = self.backings.backed(requests_of(pod))
        return extend(pod, backed) if backed else None

    def largest(
        self, pod: Pod, claims: Sequence[ResourceClaim]
    ) -> Mapping[RequestName, LargestNode]:
        """Return for each request the node with the most devices that could satisfy it."""
        extension = self.extension(pod)
        more = (extension.claim,) if extension is not None else ()
        demand = self._prepare((*claims, *more))
        largest: dict[RequestName, LargestNode] = {}
        if not isinstance(demand, Demand):
            return largest
        requests = requests_of(pod)
        backed = self.backings.backed(requests)
        for state in self.states():
            if run_filters(state, pod, requests, backed) is not None:
                continue
            survey = Survey([self.devices.node_pools.get(state.target)])
            try:
                diagnosed = diagnose(demand, survey, self.devices.ledger).requests
            except CostBudgetExceededError:
                break
            for request in diagnosed:
                count = request.available + sum(request.refused.get(why, 0) for why in _RIGHT_KIND)
                known = largest.get((request.claim, request.request))
                if known is None or count > known.devices:
                    name = state.node.metadata.name
                    largest[request.claim, request.request] = LargestNode(count, name)
        return largest

    def offers(
        self, pod: Pod, claims: Sequence[ResourceClaim], device: DeviceId
    ) -> Iterator[DeviceOffer]:
        """Yield whether a device could serve requests of a pod, on the nodes that see it."""
        extension = self.extension(pod)
        more = (extension.claim,) if extension is not None else ()
        demand = self._prepare((*claims, *more))
        if not isinstance(demand, Demand):
            return
        for state in self._nodes_of(device):
            node = state.node.metadata.name
            rejected = self._rejection_on(pod, state)
            pools = self.devices.node_pools.get(state.target)
            try:
                judged = list(findings_on(demand, pools, self.devices.ledger, device))
            except CostBudgetExceededError:
                return
            for claim, alternative, finding in judged:
                yield DeviceOffer(node, claim, alternative, finding, rejected)

    def _nodes_of(self, device: DeviceId) -> Iterator[NodeInfo]:
        """Yield the nodes that may use a device; of many, the emptiest."""
        published = self.snapshot.inventory.published(device)
        if published is None:
            return
        only = published.device.node_name or published.slice.spec.node_name
        if only:
            yield from self.stage(only).cluster.by_load()
        else:
            yield from islice(self.states(), _MOST_NODES)

    def _rejection_on(
        self, pod: Pod, state: NodeInfo
    ) -> Rejection | UnsupportedField | VolumeProblem | None:
        """Return why a node does not fit a pod, apart from devices; None if it does."""
        constraints = self._all.algorithm.constraints(pod)
        if isinstance(constraints, UnsupportedField | VolumeProblem):
            return constraints
        filters = constraints.filters if constraints is not None else None
        requests = requests_of(pod)
        return run_filters(state, pod, requests, self.backings.backed(requests), filters)

    def _rejections(self, pod: Pod) -> list[RejectedNodes]:
        constraints = self._all.algorithm.constraints(pod)
        if isinstance(constraints, UnsupportedField | VolumeProblem):
            return []
        filters = constraints.filters if constraints is not None else None
        requests = requests_of(pod)
        backed = self.backings.backed(requests)
        nodes: dict[FilterReason, list[str]] = {}
        for state in self.states():
            rejection = run_filters(state, pod, requests, backed, filters)
            for reason in rejection.reasons if rejection is not None else ():
                nodes.setdefault(reason, []).append(state.node.metadata.name)
        rejections = [RejectedNodes(why, tuple(sorted(names))) for why, names in nodes.items()]
        return sorted(rejections, key=lambda rejection: (-len(rejection.names), rejection.message))
