"""Gives pods a node, one pod at a time: reads, decides, and leaves the writing to binder.py.

Between taking a pod and deciding nothing is awaited, so a decision sees one state of the world, and
what it takes is taken before the next pod is looked at. Who waits for what is in queue.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any

from sully.api.resource.claim_types import AllocationResult, ResourceClaim
from sully.api.resource.types import DeviceClass
from sully.client.informer import Informer
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.controllers.framework import DONE, Result, Watch
from sully.controllers.scheduling.cluster import Cluster
from sully.controllers.scheduling.devices import Devices
from sully.controllers.scheduling.outbox import ClaimWrite, Outbox, Placement, Refusal
from sully.controllers.scheduling.queue import Queue
from sully.controllers.scheduling.wishes import Options, Wish, claim_keys, resolve, unallocated
from sully.domain.allocation.rechecks import evicting_taints
from sully.domain.allocation.requests import Demand, claim_key, prepare
from sully.domain.allocation.results import with_share_ids
from sully.domain.allocation.verdicts import Failed, Unresolved
from sully.domain.holding import reserved_for
from sully.domain.rules import record
from sully.domain.scheduling.decisions import (
    ERROR,
    Concern,
    Place,
    Refuse,
    decide,
    refuse_everywhere,
)
from sully.domain.scheduling.filters import not_evaluated
from sully.domain.scheduling.messages import in_filter
from sully.domain.scheduling.objects import Node, Pod
from sully.domain.scheduling.resources import requests_of
from sully.runtime.clock import Clock
from sully.runtime.ids import Ids
from sully.runtime.log import get_logger
from sully.views.changes import Change

log = get_logger("scheduling")
NEXT = Result(requeue_after=timedelta(0))
"""There may be more to do."""


class Scheduler:
    """Decides where pods run."""

    name = "scheduler"

    def __init__(  # noqa: PLR0913 - what it reads, where it remembers, and what it is given
        self,
        *,
        pods: Informer[Pod],
        nodes: Informer[Node],
        claims: Informer[ResourceClaim],
        classes: Informer[DeviceClass],
        devices: Devices,
        cluster: Cluster,
        queue: Queue,
        outbox: Outbox,
        clock: Clock,
        ids: Ids,
        options: Options,
    ) -> None:
        self._pods = pods
        self._claims = claims
        self._devices = devices
        self._cluster = cluster
        self._queue = queue
        self._outbox = outbox
        self._clock = clock
        self._ids = ids
        self._options = options
        self._users: dict[Key, set[Key]] = {}
        """Pods without a node, by the claims they name."""
        nodes.on_change(self._node_changed)
        claims.on_change(self._claim_changed)
        classes.on_change(self._class_changed)
        devices.inventory.on_change(self._devices_changed)
        pods.on_change(self._pod_changed)

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake when there are pods to look at; there is one key, for the one who looks."""
        yield Watch(self._queue, lambda key: (key,))

    async def reconcile(self, _: Key) -> Result:
        """Look at the pod that comes first."""
        # Whoever writes what was decided before must get a turn.
        await self._clock.sleep(0)
        key = self._queue.pop()
        if key is None:
            return DONE
        pod = self._pods.get(key)
        if pod is not None and pod.waits and not self._outbox.is_busy(key):
            self._schedule(key, pod)
        return NEXT

    def _schedule(self, key: Key, pod: Pod) -> None:
        claims = resolve(pod, self._claims.get)
        if isinstance(claims, str):
            # Not worth telling anyone: they are usually on their way, and their arrival wakes us.
            log.debug("pod not ready for scheduling", pod=str(key), reason=claims)
            return
        decision, cleared = self._decide(pod, claims)
        match decision:
            case Refuse(concern=concern):
                self._queue.park(key, concern)
                self._outbox.put(key, Refusal(pod, decision, cleared))
            case Place():
                self._place(key, pod, claims, decision)

    # Deciding

    def _decide(
        self, pod: Pod, claims: Sequence[ResourceClaim]
    ) -> tuple[Place | Refuse, ResourceClaim | None]:
        demand = self._demand(pod, claims)
        if isinstance(demand, Refuse):
            return demand, None
        wish = Wish(pod, claims, demand, self._devices, self._options)
        found = decide(pod, requests_of(pod), self._cluster.by_load(), wish)
        return found, wish.to_deallocate

    def _demand(self, pod: Pod, claims: Sequence[ResourceClaim]) -> Demand | Refuse | None:
        """Look at what needs no node; return what is still to be allocated."""
        for reason, concern in self._objections(pod, claims):
            return refuse_everywhere(pod, reason, len(self._cluster), concern)
        wanted = unallocated(claims)
        if not wanted:
            return None
        match prepare(wanted, self._devices.inventory.class_, taints=self._options.taints):
            case Unresolved(message):
                return refuse_everywhere(pod, message, len(self._cluster), Concern.CLASSES)
            case Failed(error):
                return Refuse(in_filter(error), ERROR, Concern.CLASSES)
            case Demand() as demand:
                return demand

    def _objections(
        self, pod: Pod, claims: Sequence[ResourceClaim]
    ) -> Iterator[tuple[str, Concern]]:
        if field := not_evaluated(pod):
            yield f"this scheduler does not evaluate {field}", Concern.NOTHING
        for claim in claims:
            name = claim_key(claim)
            if self._devices.is_in_flight(claim):
                text = f"resource claim {name} is in the process of being allocated"
                yield text, Concern.NOTHING
            elif self._would_evict(pod, claim):
                text = f"resourceclaim {name} holds a device with an untolerated NoExecute taint"
                yield text, Concern.DEVICES

    def _would_evict(self, pod: Pod, claim: ResourceClaim) -> bool:
        """Say whether a pod that joins a claim now would have to leave at once."""
        allocation = claim.status.allocation
        if self._options.strict or not self._options.taints or allocation is None:
            return False
        if reserved_for(claim, uid=pod.metadata.uid):
            return False
        return bool(evicting_taints(allocation, self._devices.taints))

    def _place(self, key: Key, pod: Pod, claims: Sequence[ResourceClaim], place: Place) -> None:
        allocated = place.allocated
        if allocated.shares:
            allocated = with_share_ids(allocated, (self._ids.uid() for _ in allocated.shares))
        records = [
            "" if self._options.strict else record((each.id, each.content) for each in devices)
            for devices in allocated.devices
        ]
        chosen = dict(
            zip(
                (each.metadata.uid for each in unallocated(claims)),
                zip(allocated.allocations, records, strict=True),
                strict=True,
            )
        )
        for claim in claims:
            if claim.metadata.uid in chosen:
                self._devices.assume(claim, chosen[claim.metadata.uid][0])
        self._cluster.occupy(pod.metadata.uid, place.node, requests_of(pod))
        writes = tuple(_writes(pod, claims, chosen))
        self._outbox.put(key, Placement(pod, place.node, writes))

    # What happened

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        self._index(old, new)
        if new is None or new.finished:
            gone = new or old
            if gone is not None and self._cluster.vacate(gone.metadata.uid):
                self._queue.wake(Concern.ROOM)
        elif new.spec.node_name:
            self._cluster.occupy(new.metadata.uid, new.spec.node_name, requests_of(new))
        if new is not None and new.waits:
            if old is None or not old.waits or not new.asks_as(old):
                self._queue.add(key_of(new), new)
        elif old is not None:
            self._queue.remove(key_of(old))

    def _index(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None:
            for claim in claim_keys(old):
                users = self._users.get(claim, set())
                users.discard(key_of(old))
                if not users:
                    self._users.pop(claim, None)
        if new is not None and new.waits:
            for claim in claim_keys(new):
                self._users.setdefault(claim, set()).add(key_of(new))

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is None:
            if old is not None:
                self._cluster.remove(old.metadata.name)
                self._devices.catalogue.forget(old.metadata.name)
        elif old is None or not new.offers_as(old):
            self._cluster.put(new)
            self._queue.wake(Concern.NODES)

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if self._devices.claim_changed(old, new):
            self._queue.wake(Concern.DEVICES)
        if new is None or (old is not None and not _differs(old, new)):
            return
        for pod in sorted(self._users.get(key_of(new), ())):
            self._queue.touch(pod)

    def _class_changed(self, old: DeviceClass | None, new: DeviceClass | None) -> None:
        if new is not None and (old is None or old.spec != new.spec):
            self._queue.wake(Concern.CLASSES)

    def _devices_changed(self, change: Change) -> None:
        self._devices.changed(change)
        if change.pools:
            self._queue.wake(Concern.DEVICES)


def _differs(old: ResourceClaim, new: ResourceClaim) -> bool:
    return (
        old.status != new.status
        or old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
        or old.metadata.owner_references != new.metadata.owner_references
    )


def _writes(
    pod: Pod,
    claims: Iterable[ResourceClaim],
    chosen: dict[str, tuple[AllocationResult, str]],
) -> Iterator[ClaimWrite]:
    for claim in claims:
        found = chosen.get(claim.metadata.uid)
        if found is not None:
            yield ClaimWrite(claim, *found)
        elif not reserved_for(claim, uid=pod.metadata.uid):
            yield ClaimWrite(claim)
