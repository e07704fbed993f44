"""Executes the effects of an eviction through the API, and returns the answers.

One pod costs a GET, a PATCH and a DELETE, and its record, and the uid guards every step against a
new pod of the same name. Where the server is in this process it is one transaction without a GET,
guarded by the resourceVersion. A pod that budgets protect is not deleted but evicted: the server
asks the budgets, and marks it. What is written is read as the caches read it, so that a server in
this process decodes it once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Protocol

from sully.api.core.pods.conditions import DEVICE_TAINT, DISRUPTION_TARGET
from sully.api.sully.types import EvictionRecord
from sully.client.events import Reference
from sully.client.evictions import SeveralBudgetsError, create_eviction
from sully.client.options import DeleteOptions, PatchType
from sully.client.transactions import Writes, transactional
from sully.client.transport import TRANSIENT, Key
from sully.controllers.framework.controller import ControllerEnv
from sully.domain.claims.pods import still_runs
from sully.domain.eviction.pod_events import EVENT_REASON
from sully.domain.eviction.records import record
from sully.domain.notifications.kinds import BLOCKED_BY_BUDGET
from sully.domain.scheduling.objects import Pod
from sully.evictor.effects import (
    Announce,
    CommitEviction,
    DeletePod,
    Effect,
    EvictPod,
    MarkPod,
    ReadPod,
    RecordEviction,
    TryEviction,
    WithdrawRecord,
)
from sully.evictor.events import (
    CommitRejected,
    Event,
    EvictionAllowed,
    EvictionCommitted,
    EvictionRecorded,
    EvictionRefused,
    PodDeleted,
    PodMarked,
    PodNotFound,
    PodRead,
    RecordWithdrawn,
)
from sully.machinery.errors import AlreadyExists, ApiError, NotFound, TooManyRequests
from sully.machinery.formats.timestamps import format_time
from sully.runtime.log import get_logger
from sully.views.kinds import PARTIAL_EVICTION_RECORDS
from sully.views.snapshot.kinds import PODS

log = get_logger("eviction")

_EVICTED = {
    "type": DISRUPTION_TARGET,
    "status": "True",
    "reason": DEVICE_TAINT,
    "message": "Device Taint manager: deleting due to NoExecute taint",
}


def is_marked(pod: Pod) -> bool:
    """Report whether a pod has the condition as we would write it."""
    return any(
        {name: getattr(condition, name) for name in _EVICTED} == _EVICTED
        for condition in pod.status.conditions
    )


class Publisher(Protocol):
    """Notifies people."""

    def publish(self, kind: str, about: str, message: str) -> None:
        """Publish a notification."""
        ...


class Executor:
    """Executes effects on pods; raises errors that are not an answer to the evictor."""

    def __init__(
        self,
        env: ControllerEnv,
        notifier: Publisher | None = None,
    ) -> None:
        self._notifier = notifier
        self._transport, self._recorder, self._clock = env
        self._transactional = transactional(self._transport)
        self._methods: dict[type[Effect], Callable[[Any], Awaitable[Event | None]]] = {
            ReadPod: self.read,
            TryEviction: self.evict,
            RecordEviction: self.record,
            WithdrawRecord: self.withdraw,
            MarkPod: self.mark,
            DeletePod: self.delete,
            CommitEviction: self.commit,
            EvictPod: self.evict,
        }

    async def execute(self, effect: Effect) -> Event | None:
        """Execute an effect that has an answer; return it."""
        return await self._methods[type(effect)](effect)

    def announce(self, effect: Announce) -> None:
        """Record an Event."""
        about = Reference("v1", "Pod", effect.key, effect.uid)
        self._recorder.event(about, "Normal", EVENT_REASON, effect.step.value)

    async def commit(self, effect: CommitEviction) -> Event:
        """Record an eviction, mark the pod and delete it in one transaction."""
        key, uid, writes = effect.key, effect.uid, Writes()
        if effect.record is not None:
            await writes.create(PARTIAL_EVICTION_RECORDS, _record(effect.record))
        patch = self._marked(uid)
        # The pod was not read: it must be the one that was judged, and not be terminating.
        patch["metadata"]["resourceVersion"] = effect.resource_version
        await writes.patch(PODS, key, patch, PatchType.STRATEGIC, "status")
        await writes.delete(PODS, key, DeleteOptions(uid=uid))
        if self._transactional is None:
            return CommitRejected(key)
        try:
            await self._transactional.commit(writes.calls)
        except TRANSIENT:
            raise
        except ApiError:
            return CommitRejected(key)
        return EvictionCommitted(key)

    async def read(self, effect: ReadPod) -> Event:
        """Read a pod."""
        key = effect.key
        try:
            pod = await self._transport.get(PODS, key)
        except NotFound:
            return PodNotFound(key)
        if pod.metadata.uid != effect.uid:
            return PodNotFound(key)
        return PodRead(
            key,
            terminating=pod.is_terminating,
            marked=is_marked(pod),
            ready=pod.ready,
            labels=pod.metadata.labels,
        )

    async def record(self, effect: RecordEviction) -> Event:
        """Create the record of an eviction."""
        try:
            await self._transport.create(PARTIAL_EVICTION_RECORDS, _record(effect))
        except AlreadyExists:
            pass
        except TRANSIENT:
            # Any other refusal would be repeated, and must not keep a pod running.
            raise
        except ApiError as error:
            # A terminating namespace takes no new objects, but its pods must still be evicted.
            log.warning("eviction not recorded", pod=str(effect.key), error=str(error))
        return EvictionRecorded(effect.key)

    async def withdraw(self, effect: WithdrawRecord) -> Event | None:
        """Delete the record of an eviction that did not happen."""
        if effect.sent and not await self._runs(effect.key, effect.uid):
            return None
        with suppress(NotFound):
            await self._transport.delete(
                PARTIAL_EVICTION_RECORDS, Key(effect.key.namespace, effect.uid)
            )
        return RecordWithdrawn(effect.key, effect.uid)

    async def _runs(self, key: Key, uid: str) -> bool:
        """Report whether a pod was not deleted, which caches may not show yet."""
        with suppress(NotFound):
            pod = await self._transport.get(PODS, key)
            return still_runs(pod, uid)
        return False

    async def mark(self, effect: MarkPod) -> Event:
        """Set the condition of a pod."""
        patch = self._marked(effect.uid)
        try:
            await self._transport.patch(PODS, effect.key, patch, PatchType.STRATEGIC, "status")
        except NotFound:
            return PodNotFound(effect.key)
        return PodMarked(effect.key)

    def _marked(self, uid: str) -> dict[str, Any]:
        """Return the patch that sets the condition of a pod."""
        condition = _EVICTED | {"lastTransitionTime": format_time(self._clock.now())}
        return {"metadata": {"uid": uid}, "status": {"conditions": [condition]}}

    async def delete(self, effect: DeletePod) -> Event:
        """Delete a pod."""
        try:
            await self._transport.delete(PODS, effect.key, DeleteOptions(uid=effect.uid))
        except NotFound:
            return PodNotFound(effect.key)
        return PodDeleted(effect.key)

    async def evict(self, effect: TryEviction | EvictPod) -> Event:
        """Evict a pod through the subresource, or try whether that is allowed."""
        key, dry_run = effect.key, isinstance(effect, TryEviction)
        read = effect.read or PodRead(key)
        try:
            await create_eviction(self._transport, key, effect.uid, dry_run=dry_run)
        except NotFound:
            return PodNotFound(key)
        except TooManyRequests as error:
            if self._notifier is not None:
                self._notifier.publish(BLOCKED_BY_BUDGET, f"Pod/{key}", error.message)
            return EvictionRefused(key, read.labels, read.ready)
        except SeveralBudgetsError:
            return EvictionRefused(key, read.labels, None)
        return EvictionAllowed(key) if dry_run else PodDeleted(key)


def _record(effect: RecordEviction) -> EvictionRecord:
    """Return the record of an eviction."""
    return record(effect.pod, effect.reasons, due=effect.due, now=effect.at, claims=effect.claims)
