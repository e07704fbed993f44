"""The scheduler as a state machine: events change its state, `schedule_one` returns an effect.

The controller feeds it from informers and executes effects through the API; a plan feeds it with a
copy of the cluster and applies effects to the copy. An attempt sees one state of the cluster, and
what a binding takes is assumed before the next attempt, as in kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final, Protocol

import msgspec

from sully.api.resource.types import AllocationResult, ResourceClaim
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.allocation.results import with_share_ids
from sully.domain.claims.reservations import reserved_for
from sully.domain.devices.device import EffectiveDevice
from sully.domain.scheduling.cluster_events import ClusterEvent
from sully.domain.scheduling.decisions import leftover_claim
from sully.domain.scheduling.extended import Backings, Extension, generated_name
from sully.domain.scheduling.objects import Pod
from sully.domain.scheduling.resources import requests_of
from sully.machinery.cel import SLICE, CostBudget, UnfinishedError
from sully.machinery.memo import Memo
from sully.scheduler.caches.constraint_sources import ConstraintSources
from sully.scheduler.caches.device_cache import DeviceCache
from sully.scheduler.caches.node_cache import NodeCache
from sully.scheduler.claim_resolution import ClaimsNotReady, resolve
from sully.scheduler.effects import (
    Attempt,
    Bind,
    ClaimReservation,
    CreateDeferred,
    Effect,
    ExtendedResourceClaim,
    MarkUnschedulable,
    WaitForClaims,
    WaitForEvaluation,
)
from sully.scheduler.equivalence.groups import EquivalenceGroups
from sully.scheduler.event_handlers import EventHandlers
from sully.scheduler.options import SchedulerOptions
from sully.scheduler.queue import Rank, SchedulingQueue
from sully.scheduler.schedule_algorithm import ScheduleAlgorithm, ScheduleResult, Unschedulable
from sully.views.devices.inventory import Inventory

_MOST_PODS: Final = 4096
"""Pods whose budgets are cached; one that is forgotten gets a new budget."""


class Ids(Protocol):
    """Makes identifiers."""

    def uid(self) -> str:
        """Return an id that is not in use."""

    def suffix(self) -> str:
        """Return the end of a generated name."""


class SchedulingCore:
    """The queue, the caches, and the decision about one pod at a time.

    `sliced`: selectors that take long are evaluated by the caller (`WaitForEvaluation`).
    `one_per_class`: of unschedulable pods of one equivalence class only the first gets attempts,
    and only when a release may help it. For callers that report on pods at the end, not always.
    """

    def __init__(
        self,
        inventory: Inventory,
        queue: SchedulingQueue,
        *,
        options: SchedulerOptions,
        ids: Ids,
        sliced: bool = False,
        one_per_class: bool = False,
    ) -> None:
        self._options = options
        self._ids = ids
        self._sliced = sliced
        self.queue = queue
        self.nodes = NodeCache()
        self.devices = DeviceCache(inventory, options.exclude_device)
        self.groups = EquivalenceGroups(self._activate) if one_per_class else None
        self.sources = ConstraintSources(queue.move_to_active_queue)
        backings = Backings()
        self._algorithm = ScheduleAlgorithm(
            devices=self.devices,
            nodes=self.nodes,
            backings=backings,
            options=options,
            sources=self.sources,
        )
        self.handlers = EventHandlers(
            nodes=self.nodes,
            devices=self.devices,
            backings=backings,
            queue=self.queue,
            schedulers=options.schedulers,
            groups=self.groups,
        )
        self._in_progress: set[Key] = set()
        """Pods that are being bound, or back off after that failed."""
        self._evaluating: set[Key] = set()
        self._deferred: set[Key] = set()
        self._to_create: list[Key] = []
        self._budgets: Memo[str, CostBudget] = Memo(_MOST_PODS)

    def copy_from(self, other: SchedulingCore) -> None:
        """Take nodes, assigned pods and claims from another core, as if events had shown them."""
        self.nodes.copy_from(other.nodes)
        self.devices.ledger.copy_from(other.devices.ledger)
        self.handlers.copy_from(other.handlers)

    # -- scheduling -------------------------------------------------------------------------------

    def schedule_one(
        self, now: datetime, *, until: Rank | None = None, diagnose: bool = True
    ) -> Effect | None:
        """Make an attempt for the first active pod; return what to do, None if no pod is active.

        With a rank, pods that come after it get no attempt.
        """
        if self._to_create:
            return CreateDeferred(self._to_create.pop())
        while (key := self.queue.pop(until)) is not None:
            pod = self.queue.get(key)
            if pod is None or key in self._in_progress:
                continue
            effect = self._attempt(key, pod, now, diagnose=diagnose)
            if effect is not None:
                return effect
        return None

    def _attempt(self, key: Key, pod: Pod, now: datetime, *, diagnose: bool) -> Effect | None:
        claims = resolve(pod, self.handlers.claims.get)
        if isinstance(claims, ClaimsNotReady):
            self._leave_group(key)
            return WaitForClaims(key, pod, claims)
        attempt = self.queue.attempt(key)
        leftover = self.handlers.claims.extended_for(pod)
        if leftover is not None:
            unschedulable = Unschedulable(leftover_claim(pod, len(self.nodes)))
            self._add_unschedulable(key, unschedulable)
            return MarkUnschedulable(key, pod, unschedulable, attempt, leftover)
        try:
            budget = self._budget(pod)
            result = self._algorithm.schedule(pod, claims, now, diagnose=diagnose, budget=budget)
        except UnfinishedError as unfinished:
            if key in self._evaluating:
                return None
            self._evaluating.add(key)
            self._budgets.keep(pod.metadata.uid, unfinished.budget)
            return WaitForEvaluation(key, pod, unfinished, attempt)
        self._budgets.pop(pod.metadata.uid, None)
        if isinstance(result, Unschedulable):
            self._add_unschedulable(key, result)
            return MarkUnschedulable(key, pod, result, attempt)
        return self._assume(key, pod, claims, result, attempt)

    def _budget(self, pod: Pod) -> CostBudget | None:
        if not self._sliced:
            return None
        known = self._budgets.get(pod.metadata.uid)
        return known or CostBudget(self._options.cost_units, per_slice=SLICE)

    def _add_unschedulable(self, key: Key, result: Unschedulable) -> None:
        self.queue.add_unschedulable(key, result.error.retry_on)
        if self.groups is None:
            return
        rank = self.queue.rank(key)
        if not result.equivalence or rank is None:
            self.groups.remove(key)
            return
        represented = self.groups.join(result.equivalence, rank, key)
        if represented is not None:
            self.queue.add_unschedulable(represented, ClusterEvent.NONE)

    def _leave_group(self, key: Key) -> None:
        if self.groups is not None:
            self.groups.remove(key)

    def preview(self, pod: Pod, now: datetime) -> ScheduleResult | Unschedulable | ClaimsNotReady:
        """Decide about a pod that is not in the queue, and change nothing."""
        claims = resolve(pod, self.handlers.claims.get)
        return (
            claims
            if isinstance(claims, ClaimsNotReady)
            else self._algorithm.schedule(pod, claims, now)
        )

    def try_schedule(
        self, pod: Pod, claims: Sequence[ResourceClaim], now: datetime
    ) -> ScheduleResult | Unschedulable:
        """Return the decision about a pod that need not exist, without acting on it."""
        return self._algorithm.schedule(pod, claims, now, diagnose=False)

    # -- pods that are about to be created --------------------------------------------------------

    def schedule_new(
        self, pod: Pod, claims: Sequence[ResourceClaim], rank: Rank, now: datetime
    ) -> Bind | None:
        """Make an attempt for a pod before it is created; None if it is not its turn or none fits.

        The caller then creates the pod with its node (`created`), or without.
        """
        if self._to_create or not self.queue.is_first(rank):
            return None
        result = self._algorithm.schedule(pod, claims, now, diagnose=False)
        if isinstance(result, Unschedulable):
            return None
        key = key_of(pod)
        self.queue.unexpect(key)
        return self._assume(key, pod, claims, result, Attempt())

    def created(self, key: Key, pod: Pod, claims: Iterable[ResourceClaim]) -> None:
        """Note that a pod of `schedule_new` was created on its node, with its allocated claims.

        It is as if events had shown all of them.
        """
        for claim in claims:
            self.handlers.claims.update(None, claim)
            self.devices.confirm(claim)
        self.nodes.update_pod(pod)
        self.finish_binding(key)

    def defer(self, pod: Pod, claims: Sequence[ResourceClaim], rank: Rank, now: datetime) -> bool:
        """Report whether a pod need not be created yet: an equal one before it is unschedulable.

        `CreateDeferred` requests it.
        """
        if not self.groups:
            return False
        equivalence = self._algorithm.equivalence(pod, claims, now)
        representative = self.groups.representative(equivalence) if equivalence else None
        if (
            representative is None
            or representative[0] > rank
            or not self.queue.is_unschedulable(representative[1])
        ):
            return False
        key = key_of(pod)
        self.groups.join(equivalence, rank, key)
        self._deferred.add(key)
        return True

    def _activate(self, key: Key) -> None:
        """Let the next pod of an equivalence class have attempts."""
        if key in self._deferred:
            # An event of another pod is being handled: the caller creates it after that.
            self._deferred.discard(key)
            self._to_create.append(key)
        else:
            self.queue.activate(key)

    # -- binding ----------------------------------------------------------------------------------

    def _assume(
        self,
        key: Key,
        pod: Pod,
        claims: Sequence[ResourceClaim],
        result: ScheduleResult,
        attempt: Attempt,
    ) -> Bind:
        allocated = result.allocated
        if allocated.shares:
            allocated = with_share_ids(allocated, (self._ids.uid() for _ in allocated.shares))
        allocations = list(zip(allocated.allocations, allocated.devices, strict=True))
        extended, requests = None, requests_of(pod)
        if result.extension is not None:
            extended = self._extended_claim(result.extension, *allocations.pop())
            self.devices.assume(extended.claim, extended.allocation)
            for mapping in extended.mappings:
                requests.pop(mapping.resource, None)
        reservations = tuple(_reservations(pod, claims, iter(allocations)))
        for reservation in reservations:
            if reservation.allocation is not None:
                self.devices.assume(reservation.claim, reservation.allocation)
        self.nodes.add_pod(pod, result.node, requests)
        self._in_progress.add(key)
        self._leave_group(key)
        self.queue.move_to_active_queue(ClusterEvent.ASSIGNED_POD_ADD)
        return Bind(
            key,
            pod,
            result.node,
            reservations,
            extended,
            attempt,
            candidates=result.candidates,
            evicting=result.evicting,
            unknown=result.unknown,
        )

    def _extended_claim(
        self,
        extension: Extension,
        allocation: AllocationResult,
        devices: tuple[EffectiveDevice, ...],
    ) -> ExtendedResourceClaim:
        """Give the claim for extended resources its name, so that creating it twice is harmless."""
        name = generated_name(extension.claim, self._ids.suffix())
        metadata = msgspec.structs.replace(extension.claim.metadata, name=name)
        claim = msgspec.structs.replace(extension.claim, metadata=metadata)
        return ExtendedResourceClaim(claim, extension.mappings, allocation, devices)

    def is_in_progress(self, key: Key) -> bool:
        """Report whether a pod is being bound, or backs off."""
        return key in self._in_progress

    def finish_binding(self, key: Key) -> None:
        """Note that a pod was bound."""
        self._in_progress.discard(key)

    def forget(self, bind: Bind) -> None:
        """Release what a binding assumed that failed; its pod backs off until `requeue`."""
        for reservation in bind.claims:
            self.devices.forget(reservation.claim.metadata.uid)
        self.nodes.remove_pod(bind.pod.metadata.uid)
        released = ClusterEvent.DEVICE_RELEASE | ClusterEvent.ASSIGNED_POD_DELETE
        self.queue.move_to_active_queue(released)

    def back_off(self, key: Key) -> None:
        """Make no attempt for a pod until `requeue`."""
        self._in_progress.add(key)

    def requeue(self, key: Key) -> None:
        """Activate a pod after its back-off."""
        self._in_progress.discard(key)
        self.queue.activate(key)

    def evaluated(self, key: Key) -> None:
        """Activate a pod whose selectors were evaluated."""
        self._evaluating.discard(key)
        self.queue.activate(key)


def _reservations(
    pod: Pod,
    claims: Sequence[ResourceClaim],
    allocations: Iterator[tuple[AllocationResult, tuple[EffectiveDevice, ...]]],
) -> Iterator[ClaimReservation]:
    for claim in claims:
        if claim.status.allocation is None:
            yield ClaimReservation(claim, *next(allocations))
        elif not reserved_for(claim, uid=pod.metadata.uid):
            yield ClaimReservation(claim)
