"""Decides about one pod: its node and devices, or why no node fits, with a diagnosis of devices.

A result holds for every pod of the same equivalence class until something in the cluster changes,
so a queue of a thousand equal pods is evaluated once. Reads and decides only; core.py acts on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Final

import msgspec
from msgspec.structs import replace

from sully.api.resource.types import ResourceClaim
from sully.domain.allocation.failures import Unresolved
from sully.domain.allocation.rejections.survey import MOST_NODES, Survey, diagnose
from sully.domain.allocation.requests import ClaimReader, Demand, claim_key
from sully.domain.allocation.toleration_expiry import AsOf
from sully.domain.allocation.verdicts import Allocated, Failed
from sully.domain.claims.reservations import reserved_for
from sully.domain.eviction.judge import evicting_taints
from sully.domain.scheduling.causes import (
    ClaimInProgress,
    ClaimTainted,
    FilterFailed,
    NodesRejected,
    PreFilterReason,
    Unknown,
    UnsupportedField,
)
from sully.domain.scheduling.cluster_events import ClusterEvent
from sully.domain.scheduling.decisions import ERROR, Fit, FitError, decide, reject_pod
from sully.domain.scheduling.diagnosis import Blocked, Diagnosis, diagnosis_of, tainted_claim
from sully.domain.scheduling.extended import Backings, Extension
from sully.domain.scheduling.filters import NodeInfo, PodConstraints, run_filters
from sully.domain.scheduling.objects import Pod
from sully.domain.scheduling.resources import Amounts, requests_of
from sully.domain.scheduling.scores import SCORED_NODES, by_score
from sully.domain.scheduling.volumes.topology import VolumeProblem
from sully.machinery.cel import CostBudget, CostBudgetExceededError
from sully.scheduler.caches.constraint_sources import ConstraintSources
from sully.scheduler.caches.device_cache import DeviceCache
from sully.scheduler.caches.node_cache import NodeCache
from sully.scheduler.claim_resolution import unallocated
from sully.scheduler.constraints import ConstraintBuilder, Constraints
from sully.scheduler.device_request import PodDeviceRequest
from sully.scheduler.equivalence.classes import (
    EquivalenceClass,
    EquivalenceClasses,
    PodQuery,
    for_claims_of,
)
from sully.scheduler.equivalence.unfit_nodes import MANY, UnfitNodes
from sully.scheduler.equivalence.unschedulable_cache import UnschedulableCache
from sully.scheduler.options import SchedulerOptions
from sully.scheduler.preemption import Preemption, preemptions

_START: Final = datetime.min.replace(tzinfo=UTC)


class ScheduleResult(msgspec.Struct, frozen=True):
    """The node that a pod gets, and its devices there."""

    node: str
    allocated: Allocated
    extension: Extension | None = None
    """The claim for its extended resources; its devices are the last of `allocated`."""
    candidates: tuple[str, ...] = ()
    """All nodes that fit, if all were evaluated."""
    evicting: tuple[str, ...] = ()
    """Those of them where taints of the devices would evict the pod."""
    unknown: tuple[Unknown, ...] = ()
    """What else decides about the pod, and was not evaluated."""


class Unschedulable(msgspec.Struct, frozen=True):
    """No node fits a pod."""

    error: FitError
    diagnosis: Diagnosis | None = None
    deallocate: ResourceClaim | None = None
    """A claim that is allocated where the pod cannot run, and no other pod uses."""
    equivalence: EquivalenceClass = b""
    """Every pod of this class is unschedulable as well; empty if that depends on more."""
    preemptions: tuple[Preemption, ...] = ()
    """Pods that kube-scheduler may delete so that this one fits."""


class _Objection(msgspec.Struct, frozen=True):
    reason: PreFilterReason
    retry_on: ClusterEvent = ClusterEvent.NONE
    blocked: Blocked | None = None


class ScheduleAlgorithm:
    """Decides where pods run."""

    def __init__(
        self,
        *,
        devices: DeviceCache,
        nodes: NodeCache,
        backings: Backings,
        options: SchedulerOptions,
        sources: ConstraintSources | None = None,
        cluster: NodeCache | None = None,
    ) -> None:
        """Decide about `nodes`; `cluster` are all nodes, if those are only a part."""
        self._devices = devices
        self._nodes = nodes
        self._backings = backings
        self._options = options
        self._claims = ClaimReader(devices.inventory.class_, options.honored_taints)
        self._classes = EquivalenceClasses()
        self._sources = sources or ConstraintSources()
        self._constraints = ConstraintBuilder(
            cluster or nodes, self._sources, simulates=options.simulates_kube_scheduler
        )
        self.constraints = self._constraints.build
        self._unfit = UnfitNodes(nodes, devices.node_pools)
        self._unschedulable = UnschedulableCache(devices.node_pools)
        for cache in (self._unfit, self._unschedulable):
            nodes.on_capacity_gain(cache.node_changed)
            devices.ledger.on_release(cache.pool_released)
        taints = devices.inventory.taint_times
        self._now = AsOf(_START, taints) if options.tolerations_expire else None
        self._expired = 0
        """How often tolerations that were read have expired."""
        self._evaluated_in_vain = 0
        """Unfit nodes that were evaluated since some were cached."""
        self._versions: tuple[int, ...] = ()
        self._results: dict[tuple[EquivalenceClass, bool], tuple[Unschedulable, list[str]]] = {}
        """Results in this state of the cluster, by class and whether they have a diagnosis, with
        the claims that it names."""

    def schedule(
        self,
        pod: Pod,
        claims: Sequence[ResourceClaim],
        now: datetime,
        *,
        diagnose: bool = True,
        budget: CostBudget | None = None,
    ) -> ScheduleResult | Unschedulable:
        """Decide about a pod whose claims are all there.

        Without `diagnose` the result need not contain why no node fits. Raises UnfinishedError if
        the budget has slices; without a budget the pod gets the usual one.
        """
        constraints = self._constraints.build(pod)
        if isinstance(constraints, UnsupportedField | VolumeProblem):
            return self._object(pod, _Objection(constraints, ClusterEvent.VOLUME_UPDATE))
        for objection in self._objections(pod, claims, now):
            return self._object(pod, objection)
        unallocated_claims = unallocated(claims)
        as_of = self._as_of(now)
        demand = self._demand(
            pod, unallocated_claims, as_of, budget or CostBudget(self._options.cost_units)
        )
        if isinstance(demand, FitError):
            return Unschedulable(demand)
        if len(unallocated_claims) < len(claims):
            # Claims that are allocated decide as well, and no other pod has the same.
            return self._evaluate(pod, claims, demand, diagnose=diagnose, constraints=constraints)
        constrained = constraints is not None
        query = PodQuery(
            pod,
            unallocated_claims,
            self._classes,
            as_of,
            diagnose=diagnose,
            constrained=constrained,
        )
        if constraints is not None:
            # What is bound elsewhere may make a node fit, so no node stays unfit.
            return self._cached(query) or self._evaluate_all(query, demand, constraints)
        return (
            self._cached(query)
            or self._retry_changed_nodes(query, demand)
            or self._skip_unfit(query, demand)
            or self._evaluate_all(query, demand)
        )

    def equivalence(
        self, pod: Pod, claims: Sequence[ResourceClaim], now: datetime
    ) -> EquivalenceClass:
        """Return the class of a pod; empty if the result depends on more than that."""
        constraints = self._constraints.build(pod)
        if isinstance(constraints, UnsupportedField | VolumeProblem):
            return b""
        if len(unallocated(claims)) < len(claims) or any(self._objections(pod, claims, now)):
            return b""
        constrained = constraints is not None
        as_of = self._as_of(now)
        return PodQuery(pod, claims, self._classes, as_of, constrained=constrained).equivalence

    def _as_of(self, now: datetime) -> AsOf | None:
        # A change of devices may change the times of taints.
        versions = self._devices.node_pools.version, self._backings.version
        as_of = self._now
        if as_of is not None and as_of.now != now and as_of.advance(now):
            self._expired += 1
        state = versions, self._expired
        self._claims.invalidate_if_changed(state)
        self._classes.invalidate_if_changed(state)
        return as_of

    def _evaluate_all(
        self, query: PodQuery, demand: Demand, constraints: Constraints | None = None
    ) -> ScheduleResult | Unschedulable:
        result = self._evaluate(
            query.pod,
            query.unallocated,
            demand,
            query,
            diagnose=query.diagnose,
            constraints=constraints,
        )
        if isinstance(result, Unschedulable) and result.error.reason != ERROR:
            result = replace(result, equivalence=query.equivalence)
            if constraints is None:
                self._unschedulable.add(query.equivalence, result.error.retry_on)
            names = [claim_key(claim) for claim in query.unallocated]
            self._results[query.equivalence, query.diagnose] = result, names
        return result

    def _evaluate(
        self,
        pod: Pod,
        claims: Sequence[ResourceClaim],
        demand: Demand,
        query: PodQuery | None = None,
        *,
        diagnose: bool,
        constraints: Constraints | None = None,
    ) -> ScheduleResult | Unschedulable:
        """Evaluate all nodes, so that an error can count what each of them lacks."""
        filters = constraints.filters if constraints is not None else None
        fit, device_request, unfit = self._decide(
            pod, claims, demand, self._nodes.by_load(), filters
        )
        if isinstance(fit, FitError):
            diagnosed = diagnose and self._options.diagnoses
            diagnosis = self._diagnosis(pod, device_request, filters) if diagnosed else None
            preempted = self._preemptions(pod, device_request, fit) if diagnose else ()
            return Unschedulable(
                fit, diagnosis, device_request.to_deallocate, preemptions=preempted
            )
        if constraints is not None:
            return self._result(fit, device_request, constraints.unknown)
        if query is not None and unfit:
            self._evaluated_in_vain += len(unfit)
            if self._evaluated_in_vain >= MANY:
                self._evaluated_in_vain = 0
                self._unfit.add(query.equivalence, unfit)
        return self._result(fit, device_request)

    def _preemptions(
        self, pod: Pod, device_request: PodDeviceRequest, error: FitError
    ) -> tuple[Preemption, ...]:
        cause = error.cause
        if not self._options.simulates_kube_scheduler or not isinstance(cause, NodesRejected):
            return ()
        if not cause.preemptible or cause.never_preempts:
            return ()
        return preemptions(pod, self._nodes, self._constraints, device_request)

    def _retry_changed_nodes(
        self, query: PodQuery, demand: Demand
    ) -> ScheduleResult | Unschedulable | None:
        """Evaluate nodes that changed since all nodes were unfit, if they were."""
        self._unschedulable.invalidate_if_changed(
            self._devices.node_pools.version, self._backings.version
        )
        known = self._unschedulable.get(query.equivalence) if self._unschedulable else None
        if known is None:
            return None
        nodes = self._nodes.by_load_among(known.changed_nodes)
        fit, device_request, unfit = self._decide(query.pod, query.unallocated, demand, nodes)
        if isinstance(fit, Fit):
            self._unschedulable.still_unfit(query.equivalence, unfit, ClusterEvent.NONE)
            return self._result(fit, device_request)
        if fit.reason == ERROR:
            return None
        self._unschedulable.still_unfit(query.equivalence, unfit, fit.retry_on)
        if query.diagnose:
            return None
        return Unschedulable(FitError(None, known.retry_on), equivalence=query.equivalence)

    def _skip_unfit(self, query: PodQuery, demand: Demand) -> ScheduleResult | None:
        """Evaluate only nodes that may have changed since equal pods did not fit."""
        self._unfit.invalidate_if_changed(self._devices.node_pools.version, self._backings.version)
        remaining = self._unfit.remaining(query.equivalence) if self._unfit else None
        if remaining is None:
            return None
        fit, device_request, unfit = self._decide(query.pod, query.unallocated, demand, remaining)
        self._unfit.add(query.equivalence, unfit)
        return self._result(fit, device_request) if isinstance(fit, Fit) else None

    def _decide(
        self,
        pod: Pod,
        claims: Sequence[ResourceClaim],
        demand: Demand,
        nodes: Iterator[NodeInfo],
        filters: PodConstraints | None = None,
    ) -> tuple[Fit | FitError, PodDeviceRequest, set[str]]:
        """Evaluate these nodes; return also which of them do not fit."""
        requests, unfit = requests_of(pod), set[str]()
        device_request = self._device_request(pod, claims, demand, requests)
        ordered = self._order(nodes, requests)
        return decide(pod, requests, ordered, device_request, unfit, filters), device_request, unfit

    def _order(self, nodes: Iterator[NodeInfo], requests: Amounts) -> Iterable[NodeInfo]:
        """Return the nodes in the order in which they are preferred."""
        if self._options.compat.prefers_least_loaded_node or len(self._nodes) > SCORED_NODES:
            return nodes
        return by_score(nodes, requests)

    def _device_request(
        self, pod: Pod, claims: Sequence[ResourceClaim], demand: Demand, requests: Amounts
    ) -> PodDeviceRequest:
        backed = self._backings.backed(requests)
        return PodDeviceRequest(pod, claims, demand, self._devices, self._options, backed)

    def _result(
        self, fit: Fit, device_request: PodDeviceRequest, unknown: tuple[Unknown, ...] = ()
    ) -> ScheduleResult:
        node = self._nodes.get(fit.node) if device_request.backed else None
        extension = (
            device_request.extension(device_request.provided(node)) if node is not None else None
        )
        return ScheduleResult(
            fit.node,
            fit.allocated,
            extension,
            fit.candidates,
            tuple(device_request.evicting_nodes),
            unknown,
        )

    def _demand(
        self,
        pod: Pod,
        claims: Sequence[ResourceClaim],
        as_of: AsOf | None,
        budget: CostBudget,
    ) -> Demand | FitError:
        """Return what is still to be allocated, in a form that is quick to try on nodes."""
        if not claims:
            # Devices may still have to provide extended resources.
            return Demand((), budget)
        match self._claims.prepare(claims, as_of, budget):
            case Unresolved() as unresolved:
                event = ClusterEvent.DEVICE_CLASS_UPDATE
                return reject_pod(pod, unresolved, len(self._nodes), event)
            case Failed(failure):
                return FitError(FilterFailed(failure), ClusterEvent.DEVICE_CLASS_UPDATE)
            case Demand() as demand:
                return demand

    # -- what needs no node -----------------------------------------------------------------------

    def _object(self, pod: Pod, objection: _Objection) -> Unschedulable:
        nodes, blocked = len(self._nodes), objection.blocked
        error = reject_pod(pod, objection.reason, nodes, objection.retry_on)
        diagnosis = Diagnosis(nodes=nodes, blocked=(blocked,)) if blocked is not None else None
        return Unschedulable(error, diagnosis)

    def _objections(
        self, pod: Pod, claims: Sequence[ResourceClaim], now: datetime
    ) -> Iterator[_Objection]:
        for claim in claims:
            if self._devices.is_assumed(claim):
                yield _Objection(ClaimInProgress(claim_key(claim)))
            elif claim.status.allocation is None:
                continue
            elif (blocked := self._would_evict(pod, claim, now)) is not None:
                event = ClusterEvent.DEVICE_TAINT_UPDATE
                yield _Objection(ClaimTainted(claim_key(claim)), event, blocked)

    def _would_evict(self, pod: Pod, claim: ResourceClaim, now: datetime) -> Blocked | None:
        """Return why a pod that joins a claim now would be evicted immediately."""
        allocation, options = claim.status.allocation, self._options
        if allocation is None or not (options.taints and options.compat.checks_allocated_claims):
            return None
        if reserved_for(claim, uid=pod.metadata.uid):
            return None
        taints = evicting_taints(
            allocation, self._devices.taints, now=now, policy=options.eviction_policy
        )
        return tainted_claim(claim_key(claim), taints) if taints else None

    # -- why no node fits -------------------------------------------------------------------------

    def _diagnosis(
        self, pod: Pod, device_request: PodDeviceRequest, filters: PodConstraints | None
    ) -> Diagnosis | None:
        """Evaluate the nodes once more, and count why which devices cannot be used."""
        nodes = len(self._nodes)
        if device_request.unavailable:
            elsewhere = sorted(device_request.unavailable.items())
            blocked = (Blocked(claim=name, nodes=count) for name, (_, count) in elsewhere)
            return Diagnosis(nodes=nodes, blocked=tuple(blocked))
        demand = device_request.demand(tuple(device_request.backed))
        if isinstance(demand, Failed) or not demand.claims:
            return None
        survey = self._survey(pod, device_request, filters)
        try:
            refused = diagnose(demand, survey, self._devices.ledger)
        except CostBudgetExceededError:
            return None
        return diagnosis_of(refused, nodes=nodes, reached=len(survey.reached), counted=len(survey))

    def _survey(
        self, pod: Pod, device_request: PodDeviceRequest, filters: PodConstraints | None
    ) -> Survey:
        requests, survey = requests_of(pod), Survey()
        for node in islice(self._nodes.by_load(), MOST_NODES):
            rejected = run_filters(node, pod, requests, device_request.backed, filters) is not None
            offers = survey.others if rejected else survey.reached
            offers.append(self._devices.node_pools.get(node.target))
        return survey

    # -- results of equal pods --------------------------------------------------------------------

    def _cached(self, query: PodQuery) -> Unschedulable | None:
        """Return the result of an equal pod in this state of the cluster."""
        versions = (
            self._nodes.version,
            self._devices.ledger.version,
            self._devices.node_pools.version,
            self._backings.version,
            self._sources.version,
        )
        if versions != self._versions:
            self._versions = versions
            self._results.clear()
        # A pod that gets a node need not pay for this: each binding changes the cluster.
        known = self._results.get((query.equivalence, query.diagnose)) if self._results else None
        if known is None:
            return None
        result, claims = known
        if result.diagnosis is None:
            return result
        diagnosis = for_claims_of(result.diagnosis, claims, query.unallocated)
        return replace(result, diagnosis=diagnosis)
