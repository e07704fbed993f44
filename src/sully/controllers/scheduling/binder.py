"""Writes what was decided about pods: claims, then the binding; or the condition that says why not.

Many pods are written at the same time, each by one worker. A write that fails for a while is tried
again with the same decision; one that is refused gives back what was taken, and the pod is looked
at again after a delay.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sully.api.resource.claim_types import ResourceClaim
from sully.client.events import EventRecorder, reference
from sully.client.informer import Informer
from sully.client.objects import key_of
from sully.client.options import PatchType
from sully.client.transport import Key, Transport
from sully.controllers.framework import AGAIN, DONE, Result, Watch
from sully.controllers.scheduling.claims import ClaimWriter, OvertakenError
from sully.controllers.scheduling.cluster import Cluster
from sully.controllers.scheduling.devices import Devices
from sully.controllers.scheduling.kinds import PODS
from sully.controllers.scheduling.outbox import Again, ClaimWrite, Outbox, Placement, Refusal
from sully.controllers.scheduling.queue import Queue
from sully.controllers.scheduling.readiness import Readiness, deadline, readiness, waits
from sully.domain.scheduling.decisions import ERROR, Concern, Refuse
from sully.domain.scheduling.messages import before_binding
from sully.domain.scheduling.objects import Pod
from sully.machinery.errors import (
    ApiError,
    Conflict,
    InternalError,
    NotFound,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
)
from sully.machinery.timestamps import format_time
from sully.runtime.backoff import Backoff
from sully.runtime.clock import Clock

WORKERS = 32
BACKOFF = Backoff(base=1.0, cap=10.0, jitter=0.0)
CONDITION = "PodScheduled"
_PASSING = (TooManyRequests, ServiceUnavailable, InternalError, Timeout)


class Binder:
    """Writes decisions."""

    name = "scheduler-binding"

    def __init__(  # noqa: PLR0913 - what it reads, where it gives back, and how it writes
        self,
        *,
        outbox: Outbox,
        queue: Queue,
        cluster: Cluster,
        devices: Devices,
        claims: Informer[ResourceClaim],
        writer: ClaimWriter,
        transport: Transport,
        recorder: EventRecorder,
        clock: Clock,
        strict: bool = False,
    ) -> None:
        self._outbox = outbox
        self._queue = queue
        self._cluster = cluster
        self._devices = devices
        self._claims = claims
        self._writer = writer
        self._transport = transport
        self._recorder = recorder
        self._clock = clock
        self._strict = strict

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for decisions, and for reports about devices that a pod waits for."""
        yield Watch(self._outbox, lambda key: (key,))
        yield Watch(self._claims, self._waiting_for)

    def _waiting_for(self, claim: ResourceClaim) -> Iterable[Key]:
        if not waits(claim):
            return
        for each in claim.status.reserved_for:
            key = Key(claim.metadata.namespace, each.name)
            if isinstance(self._outbox.get(key), Placement):
                yield key

    async def reconcile(self, key: Key) -> Result:
        """Write what was decided about a pod."""
        decision = self._outbox.get(key)
        match decision:
            case None:
                return DONE
            case Placement():
                return await self._place(key, decision)
            case Refusal():
                await self._refuse(key, decision)
            case Again():
                self._queue.touch(key)
        self._outbox.done(key, decision)
        return DONE

    # Placing

    async def _place(self, key: Key, placement: Placement) -> Result:
        try:
            claims = [await self._reserve(placement.pod, each) for each in placement.claims]
        except _PASSING:
            raise
        except (OvertakenError, ApiError) as error:
            return await self._give_up(key, placement, before_binding(str(error)))
        match readiness(claims):
            case Readiness.FAILED:
                return await self._not_ready(key, placement, "device binding failed")
            case Readiness.PENDING:
                return await self._wait(key, placement, claims)
            case Readiness.READY:
                return await self._bind(key, placement)

    async def _reserve(self, pod: Pod, write: ClaimWrite) -> ResourceClaim:
        known = self._claims.get(key_of(write.claim))
        claim = await self._writer.reserve(pod, write, known or write.claim)
        if write.allocation is not None:
            self._devices.written(claim)
        return claim

    async def _bind(self, key: Key, placement: Placement) -> Result:
        pod, node = placement.pod, placement.node
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": key.name, "namespace": key.namespace, "uid": pod.metadata.uid},
            "target": {"kind": "Node", "name": node},
        }
        try:
            await self._transport.create(PODS.read_as(dict), binding, "binding")
        except _PASSING:
            raise
        except ApiError as error:
            if not (isinstance(error, Conflict) and await self._is_bound(key, placement)):
                # A pod that is gone, or went elsewhere: who keeps claims sees to them.
                kept = not isinstance(error, Conflict | NotFound)
                text = f"binding rejected: {error}"
                return await self._give_up(key, placement, text, unreserve=kept)
        text = f"Successfully assigned {key} to {node}"
        self._recorder.event(reference(PODS, pod), "Normal", "Scheduled", text)
        self._outbox.done(key, placement)
        return DONE

    async def _is_bound(self, key: Key, placement: Placement) -> bool:
        """Say whether a pod is where it should be: our own call went through unanswered."""
        try:
            found = await self._transport.get(PODS, key)
        except NotFound:
            return False
        same = found.metadata.uid == placement.pod.metadata.uid
        return same and found.spec.node_name == placement.node

    async def _wait(
        self, key: Key, placement: Placement, claims: Sequence[ResourceClaim]
    ) -> Result:
        now = self._clock.now()
        until = deadline(claims, now)
        if now >= until:
            return await self._not_ready(key, placement, "device binding timeout")
        return Result(requeue_after=until - now)

    async def _not_ready(self, key: Key, placement: Placement, why: str) -> Result:
        for write in placement.claims:
            claim = self._claims.get(key_of(write.claim))
            alone = claim is not None and len(claim.status.reserved_for) <= 1
            if claim is not None and alone and waits(claim):
                await self._writer.deallocate(claim)
        return await self._give_up(key, placement, before_binding(why))

    async def _give_up(
        self, key: Key, placement: Placement, message: str, *, unreserve: bool = True
    ) -> Result:
        if unreserve:
            for write in placement.claims:
                await self._writer.unreserve(placement.pod, write.claim)
        # In one step: what is free again must not be written by a second attempt at this.
        for write in placement.claims:
            self._devices.abandon(write.claim.metadata.uid)
        self._cluster.vacate(placement.pod.metadata.uid)
        self._outbox.replace(key, Again())
        self._queue.wake(Concern.DEVICES | Concern.ROOM)
        await self._refuse(key, Refusal(placement.pod, Refuse(message, ERROR)))
        return AGAIN

    # Refusing

    async def _refuse(self, key: Key, refusal: Refusal) -> None:
        if refusal.deallocate is not None:
            await self._writer.deallocate(refusal.deallocate)
        pod, why = refusal.pod, refusal.why
        known = pod.condition(CONDITION)
        said = known is not None and (known.status, known.reason, known.message) == (
            "False",
            why.reason,
            why.message,
        )
        if not said:
            try:
                await self._mark(key, pod, why)
            except (NotFound, Conflict):
                # The pod is gone, or another one has its name.
                return
        if not said or self._strict:
            about = reference(PODS, pod)
            self._recorder.event(about, "Warning", "FailedScheduling", why.message)

    async def _mark(self, key: Key, pod: Pod, why: Refuse) -> None:
        known = pod.condition(CONDITION)
        since = (
            known.last_transition_time if known is not None and known.status == "False" else None
        )
        condition = {
            "type": CONDITION,
            "status": "False",
            "reason": why.reason,
            "message": why.message,
            "lastTransitionTime": format_time(since or self._clock.now()),
        }
        patch = {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}}
        await self._transport.patch(PODS, key, patch, PatchType.STRATEGIC, "status")
