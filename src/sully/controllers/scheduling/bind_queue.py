"""Effects that are not written yet, one per pod: from controller.py to binder.py.

A binding stays until it is done or failed, and its pod gets no attempt meanwhile; a pod that was
marked unschedulable may get a newer effect before that is written.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec

from sully.client.transport import Key
from sully.controllers.framework.sources import Channel
from sully.domain.scheduling.objects import Pod
from sully.scheduler.effects import Bind, MarkUnschedulable


class Requeue(msgspec.Struct, frozen=True):
    """Activate a pod after its back-off."""


class RemoveDiagnosis(msgspec.Struct, frozen=True):
    """Remove the diagnosis from the status of a pod that has a node."""

    pod: Pod


class Report(msgspec.Struct, frozen=True, eq=False):
    """Write why a pod is unschedulable."""

    effect: MarkUnschedulable
    back_off: timedelta | None = None
    """How long the pod gets no attempt after that; None: until an event activates it."""


Write = Bind | Report | Requeue | RemoveDiagnosis


class BindQueue(Channel[Key]):
    """What is to be written, by pod: a source of the keys of these pods."""

    def __init__(self) -> None:
        super().__init__(lambda: self._writes)
        self._writes: dict[Key, Write] = {}
        self.diagnosed: set[Key] = set()
        """Pods with a written diagnosis, though the cache may not show it yet."""

    def __len__(self) -> int:
        """Return how many writes are pending."""
        return len(self._writes)

    def put(self, key: Key, write: Write) -> None:
        """Add a write for a pod; it replaces an earlier one."""
        self._writes[key] = write
        self.send(key)

    def drop(self, key: Key) -> None:
        """Drop a write that is obsolete."""
        self._writes.pop(key, None)

    def replace(self, key: Key, write: Write) -> None:
        """Change what to write when the worker retries a pod."""
        self._writes[key] = write

    def get(self, key: Key) -> Write | None:
        """Return what is to be written for a pod, or None."""
        return self._writes.get(key)

    def backing_off(self) -> int:
        """Return how many pods back off."""
        return sum(isinstance(write, Requeue) for write in self._writes.values())

    def done(self, key: Key, write: Write) -> None:
        """Remove a write that is done, unless a newer one replaced it."""
        if self._writes.get(key) is write:
            del self._writes[key]
