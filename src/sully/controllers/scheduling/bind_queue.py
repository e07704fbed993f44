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


PendingEffect = Bind | Report | Requeue | RemoveDiagnosis


class BindQueue(Channel[Key]):
    """What is still to be done, by pod: a source of the keys of these pods."""

    def __init__(self) -> None:
        super().__init__(lambda: self._effects)
        self._effects: dict[Key, PendingEffect] = {}
        self.diagnosed: set[Key] = set()
        """Pods with a written diagnosis, though the cache may not show it yet."""

    def __len__(self) -> int:
        """Return how many effects are pending."""
        return len(self._effects)

    def put(self, key: Key, effect: PendingEffect) -> None:
        """Add an effect for a pod; it replaces an earlier one."""
        self._effects[key] = effect
        self.send(key)

    def drop(self, key: Key) -> None:
        """Drop an effect that is obsolete."""
        self._effects.pop(key, None)

    def replace(self, key: Key, effect: PendingEffect) -> None:
        """Change what to do when the worker retries a pod."""
        self._effects[key] = effect

    def get(self, key: Key) -> PendingEffect | None:
        """Return what is to be done for a pod, or None."""
        return self._effects.get(key)

    def backing_off(self) -> int:
        """Return how many pods back off."""
        return sum(isinstance(effect, Requeue) for effect in self._effects.values())

    def done(self, key: Key, effect: PendingEffect) -> None:
        """Remove an effect that is done, unless a newer one replaced it."""
        if self._effects.get(key) is effect:
            del self._effects[key]
