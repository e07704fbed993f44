"""What is done to a pod that must leave: write it down, mark it, tell people, delete it.

One pod costs a GET, a PATCH and a DELETE, and the record of it. The uid guards every step against a
new pod that took the old one's name. A pod whose budgets have a say is not deleted but evicted: the
server asks the budgets, and marks it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

import msgspec

from sully.api.policy.protection import TWO_BUDGETS
from sully.client.events import EventRecorder, Reference
from sully.client.objects import key_of
from sully.client.options import DeleteOptions, PatchType, WriteOptions
from sully.client.transport import Key, Kind, Transport
from sully.controllers.eviction.records import Records
from sully.domain.claims.pods import Pod, PodMetadata
from sully.domain.eviction.judge import Evict
from sully.machinery.errors import ApiError, NotFound, TooManyRequests
from sully.machinery.meta import Wire, find_condition
from sully.machinery.timestamps import format_time
from sully.runtime.clock import Clock

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


class _Metadata(PodMetadata, frozen=True, kw_only=True):
    labels: dict[str, str] = msgspec.field(default_factory=dict)


class _Status(Wire, frozen=True, kw_only=True):
    conditions: tuple[PodCondition, ...] = ()


class MarkedPod(Wire, frozen=True, kw_only=True):
    """A pod, of which matters whether it is marked already, and which budgets count it."""

    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def marked(self) -> bool:
        """Say whether the condition stands there as we would write it."""
        return any(
            {name: getattr(each, name) for name in CONDITION} == CONDITION
            for each in self.status.conditions
        )

    @property
    def ready(self) -> bool:
        """Say whether it serves."""
        found = find_condition(self.status.conditions, "Ready")
        return found is not None and found.status == "True"


PODS: Kind[MarkedPod] = Kind("", "v1", "pods", "Pod", MarkedPod)
EVICTIONS: Kind[dict[str, Any]] = PODS.read_as(dict)


class Outcome(Enum):
    """What became of a pod that was to leave."""

    EVICTED = "evicted"
    LEAVING = "leaving"
    """Someone else had deleted it already."""
    GONE = "gone"
    SPARED = "spared"
    """While we looked, the reason went away."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A budget does not allow it now; which one goes by what is known of the pod."""

    labels: dict[str, str]
    ready: bool | None
    """None if it does not matter: as long as several budgets count the pod, none can allow it."""


@dataclass(frozen=True, slots=True)
class Departure:
    """A pod that is to leave, and why."""

    pod: Pod
    verdict: Evict
    still: Callable[[], bool]
    """Says whether that is so at the moment of the question."""
    within_budget: bool = False
    """Whether its budgets have a say."""

    @property
    def key(self) -> Key:
        """Return which pod it is."""
        return key_of(self.pod)

    @property
    def uid(self) -> str:
        """Return which pod of that name it is."""
        return self.pod.metadata.uid


class Evictor:
    """Makes pods leave."""

    def __init__(
        self, transport: Transport, recorder: EventRecorder, clock: Clock, records: Records
    ) -> None:
        self._transport = transport
        self._recorder = recorder
        self._clock = clock
        self._records = records

    async def evict(self, departure: Departure) -> Outcome | Refusal:
        """Make a pod leave as long as it still has to; errors other than its absence rise."""
        found = await self._look(departure)
        if isinstance(found, Outcome):
            return found
        if departure.within_budget:
            refusal = await self._ask_budgets(departure, found, dry_run=True)
            if refusal is not None:
                return refusal
        await self._records.write(departure.key, departure.pod, departure.verdict)
        outcome: Outcome | Refusal = Outcome.SPARED
        if departure.still():
            outcome = await self._remove(departure, found)
        if outcome is Outcome.EVICTED:
            self._records.close(departure.key)
        else:
            await self._records.withdraw(departure.key)
        return outcome

    def cancel(self, key: Key, uid: str) -> None:
        """Tell people that a pod stays after all."""
        self._say(key, uid, "Cancelling deletion")

    async def _look(self, departure: Departure) -> MarkedPod | Outcome:
        """Return the pod as it is, or what became of it."""
        try:
            pod = await self._transport.get(PODS, departure.key)
        except NotFound:
            return Outcome.GONE
        if pod.metadata.uid != departure.uid:
            return Outcome.GONE
        if pod.metadata.deletion_timestamp is not None:
            return Outcome.LEAVING
        return pod if departure.still() else Outcome.SPARED

    async def _remove(self, departure: Departure, found: MarkedPod) -> Outcome | Refusal:
        """Delete a pod or have it evicted, unless a budget does not allow that any more."""
        key, uid = departure.key, departure.uid
        self._say(key, uid, "Marking for deletion")
        try:
            if departure.within_budget:
                self._note_sent(key)
                refusal = await self._ask_budgets(departure, found, dry_run=False)
                return refusal or Outcome.EVICTED
            if not found.marked:
                await self._mark(key, uid)
                if not departure.still():
                    # On a bad line that took long. The mark goes as all marks that led to nothing.
                    return Outcome.SPARED
            self._note_sent(key)
            await self._transport.delete(PODS, key, DeleteOptions(uid=uid))
        except NotFound:
            return Outcome.GONE
        return Outcome.EVICTED

    def _note_sent(self, key: Key) -> None:
        known = self._records.open(key)
        if known is not None:
            known.sent = True

    async def _ask_budgets(
        self, departure: Departure, found: MarkedPod, *, dry_run: bool
    ) -> Refusal | None:
        """Evict a pod, or try whether that would be allowed; return who does not allow it."""
        key = departure.key
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": key.name, "namespace": key.namespace},
            "deleteOptions": {"preconditions": {"uid": departure.uid}},
        }
        try:
            options = WriteOptions(dry_run=dry_run)
            await self._transport.create(EVICTIONS, body, "eviction", options)
        except TooManyRequests:
            return Refusal(found.metadata.labels, found.ready)
        except ApiError as error:
            # Servers take this for a failure, of the client's or of their own.
            if error.message != TWO_BUDGETS:
                raise
            return Refusal(found.metadata.labels, None)
        return None

    async def _mark(self, key: Key, uid: str) -> None:
        condition = CONDITION | {"lastTransitionTime": format_time(self._clock.now())}
        patch: dict[str, Any] = {"metadata": {"uid": uid}, "status": {"conditions": [condition]}}
        await self._transport.patch(PODS, key, patch, PatchType.STRATEGIC, "status")

    def _say(self, key: Key, uid: str, message: str) -> None:
        self._recorder.event(Reference("v1", "Pod", key, uid), "Normal", REASON, message)
