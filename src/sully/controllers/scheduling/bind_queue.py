"""Effects that are still to be written, one per pod: from controller.py to binder.py.

A binding stays until it is done or failed, and its pod gets no attempt meanwhile; a pod that was
marked unschedulable may get a newer effect before that is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta

from sully.client.transport import Key
from sully.domain.scheduling.objects import Pod
from sully.scheduler.effects import Bind, MarkUnschedulable


@dataclass(frozen=True, slots=True)
class Requeue:
    """Activate a pod after its back-off."""


@dataclass(frozen=True, slots=True)
class RemoveDiagnosis:
    """Remove the diagnosis from the status of a pod that has a node."""

    pod: Pod


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """Write why a pod is unschedulable."""

    effect: MarkUnschedulable
    back_off: timedelta | None = None
    """How long the pod gets no attempt after that; None: until an event activates it."""


Write = Bind | Report | Requeue | RemoveDiagnosis


class BindQueue:
    """What is to be written, by pod."""

    def __init__(self) -> None:
        self._writes: dict[Key, Write] = {}
        self.diagnosed: set[Key] = set()
        """Pods that a diagnosis was written for, though the cache may not show it yet."""
        self._listeners: list[Callable[[Key], None]] = []

    def __len__(self) -> int:
        """Return how many writes are pending."""
        return len(self._writes)

    def put(self, key: Key, write: Write) -> None:
        """Add a write for a pod, instead of the one that it has."""
        self._writes[key] = write
        for listener in list(self._listeners):
            listener(key)

    def drop(self, key: Key) -> None:
        """Drop what is not worth writing any more."""
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
        """Note that something was written; not if there is something newer."""
        if self._writes.get(key) is write:
            del self._writes[key]

    def enqueue(
        self, add: Callable[[Key], None], to_keys: Callable[[Key], Iterable[Key]]
    ) -> Callable[[], None]:
        """Add the keys of pods that have something to write to a work queue."""

        def handle(pod: Key) -> None:
            for key in to_keys(pod):
                add(key)

        self._listeners.append(handle)
        for key in list(self._writes):
            handle(key)
        return lambda: self._listeners.remove(handle)
