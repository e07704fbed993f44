"""Writes what was decided about pods: claims, then the binding; or, by telling.py, why not.

Many pods are written at the same time, each by one worker. A write that fails for a while is tried
again with the same decision; one that is refused gives back what was taken, and the pod is looked
at again after a delay.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from sully.api.resource.claim_types import ResourceClaim
from sully.client.events import EventRecorder, reference
from sully.client.informers.informer import Informer
from sully.client.objects import key_of
from sully.client.transport import TRANSIENT, Key, Transport
from sully.controllers.framework import AGAIN, DONE, Result, Watch
from sully.controllers.scheduling.claims import ClaimWriter, OvertakenError
from sully.controllers.scheduling.cluster import Cluster
from sully.controllers.scheduling.devices import Devices
from sully.controllers.scheduling.kinds import PODS
from sully.controllers.scheduling.metrics import ERROR as ERRED
from sully.controllers.scheduling.metrics import SchedulerMetrics
from sully.controllers.scheduling.outbox import (
    Again,
    ClaimWrite,
    ExtendedWrite,
    Outbox,
    Placement,
    Refusal,
    Tidy,
)
from sully.controllers.scheduling.queue import Queue
from sully.controllers.scheduling.readiness import Readiness, deadline, readiness, waits
from sully.controllers.scheduling.telling import Teller
from sully.domain.scheduling import account as accounts
from sully.domain.scheduling.decisions import ERROR, Concern, Refuse
from sully.domain.scheduling.extended import mapping_status
from sully.domain.scheduling.messages import before_binding
from sully.domain.scheduling.objects import Pod
from sully.machinery.errors import (
    ApiError,
    Conflict,
    NotFound,
)
from sully.runtime.backoff import Backoff
from sully.runtime.clock import Clock

WORKERS = 32
BACKOFF = Backoff(base=1.0, cap=10.0, jitter=0.0)


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
        teller: Teller,
        clock: Clock,
        metrics: SchedulerMetrics,
    ) -> None:
        self._outbox = outbox
        self._queue = queue
        self._cluster = cluster
        self._devices = devices
        self._claims = claims
        self._writer = writer
        self._transport = transport
        self._recorder = recorder
        self._teller = teller
        self._clock = clock
        self._metrics = metrics

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
                result = await self._refuse(key, decision)
                if result is not DONE:
                    return result
                if decision.pause is not None and self._outbox.get(key) is decision:
                    self._outbox.replace(key, Again())
                    return Result(requeue_after=decision.pause)
            case Again():
                self._queue.touch(key)
            case Tidy(pod):
                await self._teller.tidy(key, pod)
        self._outbox.done(key, decision)
        return DONE

    # Placing

    async def _place(self, key: Key, placement: Placement) -> Result:
        claims: list[ResourceClaim] = []
        try:
            for write in placement.claims:
                claims.append(await self._reserve(placement.pod, write))  # noqa: PERF401 - those before a failure must be known
            if placement.extended is not None:
                claims.append(await self._extend(placement.pod, placement.extended))
        except TRANSIENT:
            raise
        except (OvertakenError, ApiError) as error:
            message = before_binding(str(error))
            return await self._give_up(key, placement, message, reserved=claims)
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

    async def _extend(self, pod: Pod, extended: ExtendedWrite) -> ResourceClaim:
        """Create the claim for extended resources, and tell the pod of it."""
        try:
            created = await self._writer.create(extended)
        except ApiError:
            self._metrics.created_claim(success=False)
            raise
        self._metrics.created_claim(success=True)
        self._devices.adopt(extended.claim.metadata.uid, created)
        write = ClaimWrite(created, extended.allocation, extended.record)
        claim = await self._reserve(pod, write)
        status = mapping_status(extended.mappings, created.metadata.name)
        patch = {
            "metadata": {"uid": pod.metadata.uid},
            "status": {"extendedResourceClaimStatus": status},
        }
        await self._transport.patch(PODS, key_of(pod), patch, subresource="status")
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
        except TRANSIENT:
            raise
        except ApiError as error:
            if not (isinstance(error, Conflict) and await self._is_bound(key, placement)):
                # A pod that is gone, or went elsewhere: who keeps claims sees to them.
                kept = not isinstance(error, Conflict | NotFound)
                text = f"binding rejected: {error}"
                reserved = [each.claim for each in placement.claims] if kept else []
                return await self._give_up(key, placement, text, reserved=reserved)
        text = f"Successfully assigned {key} to {node}"
        self._recorder.event(reference(PODS, pod), "Normal", "Scheduled", text)
        self._metrics.bound(pod, placement.look, self._clock.monotonic())
        if key in self._outbox.accounted or pod.condition(accounts.CONDITION) is not None:
            await self._teller.tidy(key, pod)
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
        reserved = [each.claim for each in placement.claims]
        return await self._give_up(key, placement, before_binding(why), reserved=reserved)

    async def _give_up(
        self,
        key: Key,
        placement: Placement,
        message: str,
        *,
        reserved: Iterable[ResourceClaim],
    ) -> Result:
        """Give back what was taken. Claims that we did not get to are somebody else's matter."""
        for claim in reserved:
            await self._writer.unreserve(placement.pod, claim)
        if placement.extended is not None:
            await self._discard(key, placement.pod, placement.extended)
        # In one step: what is free again must not be written by a second attempt at this.
        for write in placement.claims:
            self._devices.abandon(write.claim.metadata.uid)
        self._cluster.vacate(placement.pod.metadata.uid)
        self._outbox.replace(key, Again())
        self._queue.wake(Concern.DEVICES | Concern.ROOM)
        self._metrics.attempted(
            placement.pod, ERRED, self._clock.monotonic() - placement.look.began
        )
        await self._teller.tell(key, Refusal(placement.pod, Refuse(message, ERROR)))
        return AGAIN

    async def _discard(self, key: Key, pod: Pod, extended: ExtendedWrite) -> None:
        """Take back the claim for extended resources, as far as it came."""
        uid = await self._writer.discard(extended.claim)
        self._devices.abandon(extended.claim.metadata.uid)
        if not uid:
            return
        self._devices.abandon(uid)
        patch = {
            "metadata": {"uid": pod.metadata.uid},
            "status": {"extendedResourceClaimStatus": None},
        }
        with suppress(NotFound, Conflict):
            await self._transport.patch(PODS, key, patch, subresource="status")

    async def _refuse(self, key: Key, refusal: Refusal) -> Result:
        if refusal.deallocate is not None:
            await self._writer.deallocate(refusal.deallocate)
        if refusal.delete is not None:
            await self._writer.discard(refusal.delete)
        return await self._teller.tell(key, refusal)
