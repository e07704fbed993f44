"""Writes claims for bindings: finalizer, allocation, reservation; and reverts them.

Every write carries the resource version it was decided on. After a conflict the claim is read
again, and the binding fails if the claim is no longer what was decided on.

Pods that share a claim update the same object. Written concurrently, or from a cache that is
behind, all but one of the writes conflict and are retried, and of many pods some conflict so often
that they fail. So each reservation takes the lock of its claim, and starts from what the last one
wrote.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime

import msgspec
from msgspec.structs import replace

from sully.api.resource.annotations import ALLOCATED_ATTRIBUTES
from sully.api.resource.types import (
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from sully.client.objects import key_of
from sully.client.options import DeleteOptions, PatchType
from sully.client.transport import Key, Transport
from sully.controllers.framework.controller import has_status_cause
from sully.domain.allocation.usage.exclusion import IN_USE
from sully.domain.claims.lifecycle import FINALIZER
from sully.domain.claims.reservations import reserved_for
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.rules import record
from sully.domain.scheduling.objects import Pod
from sully.machinery.errors import AlreadyExists, Conflict, NotFound
from sully.runtime.clock import Clock
from sully.scheduler.effects import ClaimReservation, ExtendedResourceClaim
from sully.views.kinds import CLAIMS
from sully.views.mutation_cache import is_newer

RETRIES = 8
_MAX_WRITTEN = 256
"""Claims whose last write is kept; the cache shows it long before so many are written."""


class _ClaimLock(msgspec.Struct):
    lock: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)
    users: int = 0


class ClaimLocks:
    """A lock per claim that is being written, and what was written last."""

    def __init__(self) -> None:
        self._locks: dict[str, _ClaimLock] = {}
        self._written: OrderedDict[str, ResourceClaim] = OrderedDict()

    @asynccontextmanager
    async def lock(self, cached: ResourceClaim) -> AsyncIterator[ResourceClaim]:
        """Wait until no other worker writes a claim; return its newest state."""
        uid = cached.metadata.uid
        entry = self._locks.setdefault(uid, _ClaimLock())
        entry.users += 1
        try:
            async with entry.lock:
                written = self._written.get(uid)
                yield written if written is not None and is_newer(written, cached) else cached
        finally:
            entry.users -= 1
            if not entry.users:
                del self._locks[uid]

    def add_written(self, claim: ResourceClaim) -> None:
        """Keep a claim as the server returned it after a write."""
        self._written[claim.metadata.uid] = claim
        self._written.move_to_end(claim.metadata.uid)
        if len(self._written) > _MAX_WRITTEN:
            self._written.popitem(last=False)


class ClaimChangedError(Exception):
    """A claim is no longer what it was when the decision was made."""


class ClaimWriter:
    """Writes claims for pods."""

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        *,
        timestamps: bool,
        records: bool,
        protects: bool = True,
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._timestamps = timestamps
        self._records = records
        """Whether to write into an annotation what the devices were when they were allocated."""
        self._protects = protects
        """Whether to write the finalizer before the allocation, not with it."""
        self._locks = ClaimLocks()

    async def reserve(
        self, pod: Pod, reservation: ClaimReservation, cached: ResourceClaim
    ) -> ResourceClaim:
        """Reserve a claim for a pod, and allocate it if that was decided; return the new claim."""
        async with self._locks.lock(cached) as newest:
            claim = await self._retry(pod, reservation, newest)
            self._locks.add_written(claim)
            return claim

    async def _retry(
        self, pod: Pod, reservation: ClaimReservation, claim: ResourceClaim
    ) -> ResourceClaim:
        key = key_of(claim)
        for _ in range(RETRIES):
            try:
                return await self._reserve(pod, reservation, claim)
            except (Conflict, NotFound) as error:
                if has_status_cause(error, IN_USE):
                    # Another claim got the devices in the meantime.
                    raise ClaimChangedError(str(error)) from error
                claim = await self._get(key)
        raise ClaimChangedError(f"claim {key} keeps changing")

    async def _get(self, key: Key) -> ResourceClaim:
        try:
            return await self._transport.get(CLAIMS, key)
        except NotFound as error:
            raise ClaimChangedError(f"claim {key} got deleted in the meantime") from error

    async def _reserve(
        self, pod: Pod, reservation: ClaimReservation, claim: ResourceClaim
    ) -> ResourceClaim:
        _check(reservation, claim)
        if reserved_for(claim, uid=pod.metadata.uid):
            return claim
        status = claim.status
        if reservation.allocation is not None and status.allocation is None:
            claim = await self._protected(claim, self._record(reservation.devices))
            allocation = self._with_timestamp(reservation.allocation)
            status = replace(claim.status, allocation=allocation)
        consumer = ResourceClaimConsumerReference(
            resource="pods", name=pod.metadata.name, uid=pod.metadata.uid
        )
        status = replace(status, reserved_for=(*status.reserved_for, consumer))
        return await self._transport.update(CLAIMS, replace(claim, status=status), "status")

    async def _protected(self, claim: ResourceClaim, record: str) -> ResourceClaim:
        metadata = claim.metadata
        if FINALIZER not in metadata.finalizers:
            metadata = replace(metadata, finalizers=(*metadata.finalizers, FINALIZER))
        if record:
            annotations = _with_record(metadata.annotations, record)
            metadata = replace(metadata, annotations=annotations)
        if metadata == claim.metadata:
            return claim
        protected = replace(claim, metadata=metadata)
        return await self._transport.update(CLAIMS, protected) if self._protects else protected

    def _with_timestamp(self, allocation: AllocationResult) -> AllocationResult:
        if not self._timestamps:
            return allocation
        now: datetime = self._clock.now().replace(microsecond=0)
        return replace(allocation, allocation_timestamp=now)

    def _record(self, devices: Iterable[EffectiveDevice]) -> str:
        return record((device.id, device.content) for device in devices) if self._records else ""

    async def create(self, extended: ExtendedResourceClaim) -> ResourceClaim:
        """Create the claim for the extended resources of a pod, or find the one created before."""
        metadata = replace(
            extended.claim.metadata,
            uid="",
            finalizers=(FINALIZER,),
            annotations=_with_record(
                extended.claim.metadata.annotations, self._record(extended.devices)
            ),
        )
        claim = replace(extended.claim, metadata=metadata)
        try:
            return await self._transport.create(CLAIMS, claim)
        except AlreadyExists as error:
            existing = await self._get(key_of(claim))
            if not _same_owner(existing, claim):
                raise ClaimChangedError(str(error)) from error
            return existing

    async def discard(self, claim: ResourceClaim) -> str:
        """Delete a claim for extended resources; return its uid, or nothing if there is none."""
        for _ in range(RETRIES):
            try:
                existing = await self._transport.get(CLAIMS, key_of(claim))
                if not _same_owner(existing, claim):
                    return ""
                finalizers = [name for name in existing.metadata.finalizers if name != FINALIZER]
                version = {"resourceVersion": existing.metadata.resource_version}
                patch = {"metadata": {**version, "finalizers": finalizers or None}}
                await self._transport.patch(CLAIMS, key_of(claim), patch)
                options = DeleteOptions(uid=existing.metadata.uid)
                await self._transport.delete(CLAIMS, key_of(claim), options)
            except Conflict:
                continue
            except NotFound:
                return ""
            return existing.metadata.uid
        return ""

    async def unreserve(self, pod: Pod, claim: ResourceClaim) -> None:
        """Remove a reservation; the claim stays allocated."""
        patch = {
            "metadata": {"uid": claim.metadata.uid},
            "status": {"reservedFor": [{"$patch": "delete", "uid": pod.metadata.uid}]},
        }
        try:
            await self._transport.patch(CLAIMS, key_of(claim), patch, PatchType.STRATEGIC, "status")
        except (Conflict, NotFound):
            # The claim is gone: there is nothing to remove.
            return

    async def deallocate(self, claim: ResourceClaim) -> None:
        """Deallocate a claim, unless it changed since the decision."""
        deallocated = replace(claim, status=ResourceClaimStatus())
        try:
            await self._transport.update(CLAIMS, deallocated, "status")
        except (Conflict, NotFound):
            # The change activates its pod.
            return

    async def release(self, pod: Pod, claim: ResourceClaim) -> None:
        """Deallocate a claim that only one pod uses, also if it changed since the decision."""
        for _ in range(RETRIES):
            try:
                current = await self._transport.get(CLAIMS, key_of(claim))
                consumers = {consumer.uid for consumer in current.status.reserved_for}
                if current.metadata.uid != claim.metadata.uid or consumers - {pod.metadata.uid}:
                    return
                released = replace(current, status=ResourceClaimStatus())
                await self._transport.update(CLAIMS, released, "status")
            except Conflict:
                continue
            except NotFound:
                return
            return


def _with_record(annotations: Mapping[str, str], record: str) -> dict[str, str]:
    return {**annotations, **({ALLOCATED_ATTRIBUTES: record} if record else {})}


def _same_owner(first: ResourceClaim, second: ResourceClaim) -> bool:
    owners = first.metadata.controller(), second.metadata.controller()
    return owners[0] is not None and owners[1] is not None and owners[0].uid == owners[1].uid


def _check(reservation: ClaimReservation, claim: ResourceClaim) -> None:
    key, allocation = key_of(claim), claim.status.allocation
    recreated = claim.metadata.uid != reservation.claim.metadata.uid
    if recreated or claim.metadata.deletion_timestamp is not None:
        raise ClaimChangedError(f"claim {key} got deleted in the meantime")
    decided = reservation.allocation or reservation.claim.status.allocation
    if allocation is None:
        if reservation.allocation is None:
            raise ClaimChangedError(f"claim {key} got deallocated in the meantime")
    elif decided is not None and allocation.devices != decided.devices:
        raise ClaimChangedError(f"claim {key} got allocated elsewhere in the meantime")
