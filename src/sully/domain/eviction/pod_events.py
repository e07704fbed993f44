"""The Events of an eviction controller about a pod: of Sully, and those of Kubernetes.

Kubernetes writes the same Event when it starts to evict a pod and when it cancels that: reason,
type and source are equal, and `action` is empty. Only the message differs, so it is read here, and
nowhere else. Sully's evictor also records what it evicts.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Final

from msgspec import field

from sully.machinery.meta import ObjectIdentity, Wire

EVENT_REASON: Final = "DeviceTaintManagerEviction"
"""The reason of all of them, and of those about claims whose devices were deallocated."""


class EvictionStep(Enum):
    """What an Event reports about the eviction of a pod; the values are the messages."""

    STARTED = "Marking for deletion"
    CANCELLED = "Cancelling deletion"


_STEPS: Final[Mapping[str, EvictionStep]] = {step.value: step for step in EvictionStep}


class EventMetadata(ObjectIdentity, frozen=True, kw_only=True):
    """The metadata of an Event."""

    creation_timestamp: datetime | None = None


class InvolvedObject(Wire, frozen=True, kw_only=True):
    """The object that an Event is about."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class EvictionEvent(Wire, frozen=True, kw_only=True):
    """An Event of an eviction controller."""

    metadata: EventMetadata = field(default_factory=EventMetadata)
    involved_object: InvolvedObject = field(default_factory=InvolvedObject)
    message: str = ""
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    event_time: datetime | None = None

    @property
    def step(self) -> EvictionStep | None:
        """Return what it reports; None if that is not known."""
        return _STEPS.get(self.message)

    @property
    def time(self) -> datetime | None:
        """Return when that happened last."""
        time = self.last_timestamp or self.event_time or self.first_timestamp
        return time or self.metadata.creation_timestamp
