"""What is done to a pod that must leave: mark it, tell people, delete it.

One pod costs a GET, a PATCH and a DELETE. The uid guards every step against a new pod that took the
old one's name.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from enum import Enum
from typing import Any

import msgspec

from sully.client.events import EventRecorder, Reference
from sully.client.options import DeleteOptions, PatchType
from sully.client.transport import Key, Kind, Transport
from sully.machinery.errors import NotFound
from sully.machinery.meta import Wire
from sully.machinery.timestamps import format_time
from sully.runtime.clock import Clock
from sully.views.kinds import PodMetadata

REASON = "DeviceTaintManagerEviction"
CONDITION = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByDeviceTaintManager",
    "message": "Device Taint manager: deleting due to NoExecute taint",
}


class PodCondition(Wire, frozen=True, kw_only=True):
    """One aspect of a pod's state."""

    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class _Status(Wire, frozen=True, kw_only=True):
    conditions: tuple[PodCondition, ...] = ()


class MarkedPod(Wire, frozen=True, kw_only=True):
    """A pod, of which matters whether it is marked already."""

    metadata: PodMetadata = msgspec.field(default_factory=PodMetadata)
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def marked(self) -> bool:
        """Say whether the condition stands there as we would write it."""
        return any(
            {name: getattr(each, name) for name in CONDITION} == CONDITION
            for each in self.status.conditions
        )


PODS: Kind[MarkedPod] = Kind("", "v1", "pods", "Pod", MarkedPod)


class Outcome(Enum):
    """What became of a pod that was to leave."""

    EVICTED = "evicted"
    LEAVING = "leaving"
    """Someone else had deleted it already."""
    GONE = "gone"
    SPARED = "spared"
    """While we looked, the reason went away."""


class Evictor:
    """Makes pods leave."""

    def __init__(self, transport: Transport, recorder: EventRecorder, clock: Clock) -> None:
        self._transport = transport
        self._recorder = recorder
        self._clock = clock

    async def evict(self, key: Key, uid: str, still: Callable[[], bool]) -> Outcome:
        """Delete a pod as long as `still` says so; errors other than its absence rise."""
        try:
            pod = await self._transport.get(PODS, key)
        except NotFound:
            return Outcome.GONE
        if pod.metadata.uid != uid:
            return Outcome.GONE
        if pod.metadata.deletion_timestamp is not None:
            return Outcome.LEAVING
        if not still():
            return Outcome.SPARED
        self._say(key, uid, "Marking for deletion")
        try:
            if not pod.marked:
                await self._mark(key, uid)
            await self._transport.delete(PODS, key, DeleteOptions(uid=uid))
        except NotFound:
            return Outcome.GONE
        return Outcome.EVICTED

    def cancel(self, key: Key, uid: str) -> None:
        """Tell people that a pod stays after all."""
        self._say(key, uid, "Cancelling deletion")

    async def _mark(self, key: Key, uid: str) -> None:
        condition = CONDITION | {"lastTransitionTime": format_time(self._clock.now())}
        patch: dict[str, Any] = {"metadata": {"uid": uid}, "status": {"conditions": [condition]}}
        await self._transport.patch(PODS, key, patch, PatchType.STRATEGIC, "status")

    def _say(self, key: Key, uid: str, message: str) -> None:
        self._recorder.event(Reference("v1", "Pod", key, uid), "Normal", REASON, message)
