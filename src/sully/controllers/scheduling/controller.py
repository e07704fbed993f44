"""Gives pods a node, one pod at a time: reads, decides, and leaves the writing to binder.py.

Between taking a pod and deciding nothing is awaited, so a decision sees one state of the world, and
what it takes is taken before the next pod is looked at. A pod whose selectors take long to evaluate
is left to evaluating.py and decided when they are. What happens in the cluster comes in by
news.py; who waits for what is in queue.py; where a pod goes is decided by judging.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import msgspec

from sully.api.resource.claim_types import AllocationResult, ResourceClaim
from sully.api.resource.types import DeviceClass
from sully.client.informers.informer import Informer
from sully.client.transport import Key
from sully.controllers.framework import DONE, Result, Watch
from sully.controllers.scheduling.cluster import Cluster
from sully.controllers.scheduling.devices import Devices
from sully.controllers.scheduling.evaluating import Evaluations
from sully.controllers.scheduling.judging import Judge, Placed, Refused
from sully.controllers.scheduling.metrics import ERROR as ERRED
from sully.controllers.scheduling.metrics import UNSCHEDULABLE, SchedulerMetrics
from sully.controllers.scheduling.news import News, extended_for
from sully.controllers.scheduling.outbox import (
    ClaimWrite,
    ExtendedWrite,
    Look,
    Outbox,
    Placement,
    Refusal,
)
from sully.controllers.scheduling.queue import Queue
from sully.controllers.scheduling.wishes import Options, resolve, unallocated
from sully.domain.allocation.results import with_share_ids
from sully.domain.claims.reservations import reserved_for
from sully.domain.devices.rules import record
from sully.domain.scheduling.decisions import ERROR, refuse_leftover
from sully.domain.scheduling.extended import Backings, Extension, generated_name
from sully.domain.scheduling.objects import Node, Pod
from sully.domain.scheduling.resources import requests_of
from sully.machinery.cel import UnfinishedError
from sully.runtime.clock import Clock
from sully.runtime.ids import Ids
from sully.runtime.log import get_logger

log = get_logger("scheduling")
NEXT = Result(requeue_after=timedelta(0))
"""There may be more to do."""
TOGETHER = 8
"""Pods looked at before others get a turn: each turn costs as much as a quick look."""
LONGEST = 0.002
"""Seconds after which they get it in any case."""
_EXTENDED = "scheduling/extended"


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
        metrics: SchedulerMetrics,
        evaluations: Evaluations,
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
        self._metrics = metrics
        self._evaluations = evaluations
        backings = Backings()
        self._judge = Judge(
            devices=devices, cluster=cluster, backings=backings, clock=clock, options=options
        )
        news = News(
            devices=devices,
            cluster=cluster,
            backings=backings,
            queue=queue,
            outbox=outbox,
            schedulers=options.schedulers,
        )
        claims.add_index(_EXTENDED, _extended_for)
        nodes.on_change(news.node_changed)
        claims.on_change(news.claim_changed)
        classes.on_change(news.class_changed)
        devices.inventory.on_change(news.devices_changed)
        pods.on_change(news.pod_changed)
        metrics.follow("active", lambda: len(queue))
        metrics.follow("unschedulable", queue.waiting)
        metrics.follow("backoff", outbox.backing_off)
        metrics.follow("gated", lambda: len(news.gated))

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake when there are pods to look at; there is one key, for the one who looks."""
        yield Watch(self._queue, lambda key: (key,))

    async def reconcile(self, _: Key) -> Result:
        """Look at the pods that come first."""
        # Whoever writes what was decided before must get a turn.
        await self._clock.sleep(0)
        until = self._clock.monotonic() + LONGEST
        for _turn in range(TOGETHER):
            key = self._queue.pop()
            if key is None:
                return DONE
            pod = self._pods.get(key)
            if pod is not None and pod.waits and not self._outbox.is_busy(key):
                self._schedule(key, pod)
            if self._clock.monotonic() >= until:
                break
        return NEXT

    def _schedule(self, key: Key, pod: Pod) -> None:
        claims = resolve(pod, self._claims.get)
        if isinstance(claims, str):
            # Not worth telling anyone: they are usually on their way, and their arrival wakes us.
            log.debug("pod not ready for scheduling", pod=str(key), reason=claims)
            return
        look = self._queue.look(key)
        left = self._claims.by_index(_EXTENDED, pod.metadata.uid)
        if left:
            self._refuse(key, pod, look, Refused(refuse_leftover(pod, len(self._cluster))), left[0])
            return
        try:
            found = self._judge.judge(pod, claims, budget=self._evaluations.budget(pod))
        except UnfinishedError as unfinished:
            took = self._clock.monotonic() - look.began
            self._evaluations.interrupted(key, pod, unfinished, took)
            return
        self._evaluations.ended(pod)
        self._metrics.decided(self._clock.monotonic() - look.began)
        if isinstance(found, Refused):
            self._refuse(key, pod, look, found)
        else:
            self._place(key, pod, claims, found, look)

    def _refuse(
        self,
        key: Key,
        pod: Pod,
        look: Look,
        found: Refused,
        leftover: ResourceClaim | None = None,
    ) -> None:
        self._queue.park(key, found.why.concern)
        result = ERRED if found.why.reason == ERROR else UNSCHEDULABLE
        self._metrics.attempted(pod, result, self._clock.monotonic() - look.began)
        pause = self._evaluations.exceeded(pod) if found.why.back_off else None
        refusal = Refusal(pod, found.why, found.deallocate, leftover, found.account, pause)
        self._outbox.put(key, refusal)

    def _place(
        self, key: Key, pod: Pod, claims: Sequence[ResourceClaim], placed: Placed, look: Look
    ) -> None:
        allocated = placed.place.allocated
        if allocated.shares:
            allocated = with_share_ids(allocated, (self._ids.uid() for _ in allocated.shares))
        records = [
            record((each.id, each.content) for each in devices)
            if self._options.compat.records_allocated_attributes
            else ""
            for devices in allocated.devices
        ]
        given = list(zip(allocated.allocations, records, strict=True))
        extended = None
        if placed.extension is not None:
            extended = self._named(placed.extension, *given.pop())
            self._devices.assume(extended.claim, extended.allocation)
        uids = (each.metadata.uid for each in unallocated(claims))
        chosen = dict(zip(uids, given, strict=True))
        for claim in claims:
            if claim.metadata.uid in chosen:
                self._devices.assume(claim, chosen[claim.metadata.uid][0])
        requests = requests_of(pod)
        for mapped in extended.mappings if extended is not None else ():
            requests.pop(mapped.resource, None)
        self._cluster.occupy(pod.metadata.uid, placed.place.node, requests)
        writes = tuple(_writes(pod, claims, chosen))
        self._outbox.put(key, Placement(pod, placed.place.node, writes, extended, look))

    def _named(
        self, extension: Extension, allocation: AllocationResult, record: str
    ) -> ExtendedWrite:
        """Give the claim for extended resources its name, so that creating it twice is harmless."""
        name = generated_name(extension.claim, self._ids.suffix())
        metadata = msgspec.structs.replace(extension.claim.metadata, name=name)
        claim = msgspec.structs.replace(extension.claim, metadata=metadata)
        return ExtendedWrite(claim, extension.mappings, allocation, record)


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


def _extended_for(claim: ResourceClaim) -> Iterator[str]:
    pod = extended_for(claim)
    if pod is not None:
        yield pod.uid
