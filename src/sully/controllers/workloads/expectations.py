"""Creations and deletions that the cache does not show yet, as client-go's ControllerExpectations.

New pods are not in the cache immediately, and a controller that counts them there would create them
again. So it first expects what it is about to do, and does not count again before the cache shows
it, or until a timeout after which an event must have been lost.
"""

from __future__ import annotations

import msgspec

from sully.client.informers.cache import Cache
from sully.domain.scheduling.objects import Pod
from sully.runtime.clock import Clock

TIMEOUT = 300.0
"""Seconds after which expectations expire."""


class _Expected(msgspec.Struct):
    until: float
    creations: int = 0
    deletions: set[str] = msgspec.field(default_factory=set)

    @property
    def fulfilled(self) -> bool:
        return self.creations <= 0 and not self.deletions


class Expectations:
    """The expectations of each owner, by uid."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._expected: dict[str, _Expected] = {}

    def follow(self, pods: Cache[Pod]) -> None:
        """Observe the changes of a cache.

        To be called before keys are queued for the same events, so that a reconcile may count them.
        """
        pods.on_change(self._observe)

    def _observe(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        controller = pod.metadata.controller() if pod is not None else None
        if pod is None or controller is None:
            return
        if old is None:
            self.creation_observed(controller.uid)
        if new is None or new.is_terminating:
            self.deletion_observed(controller.uid, pod.metadata.uid)

    def __len__(self) -> int:
        """Return how many owners have expectations."""
        return len(self._expected)

    def expect_creations(self, owner: str, count: int) -> None:
        """Expect new pods; called first, because their events may arrive immediately."""
        self._get_or_add(owner).creations += count

    def expect_deletions(self, owner: str, uids: set[str]) -> None:
        """Expect pods to be deleted."""
        self._get_or_add(owner).deletions |= uids

    def creation_observed(self, owner: str, count: int = 1) -> None:
        """Lower the expectation of pods that were created, or whose creation failed."""
        expected = self._expected.get(owner)
        if expected is not None:
            expected.creations -= count
            self._delete_if_fulfilled(owner, expected)

    def deletion_observed(self, owner: str, uid: str) -> None:
        """Lower the expectation of a pod that was deleted, or whose deletion failed."""
        expected = self._expected.get(owner)
        if expected is not None:
            expected.deletions.discard(uid)
            self._delete_if_fulfilled(owner, expected)

    def satisfied(self, owner: str) -> bool:
        """Report whether an owner has no expectations, or they have expired."""
        return not self.timeout(owner)

    def timeout(self, owner: str) -> float:
        """Return in how many seconds the expectations expire; 0 if there are none."""
        expected = self._expected.get(owner)
        if expected is None:
            return 0.0
        remaining = expected.until - self._clock.monotonic()
        if remaining <= 0:
            del self._expected[owner]
        return max(remaining, 0.0)

    def forget(self, owner: str) -> None:
        """Delete the expectations of a deleted owner."""
        self._expected.pop(owner, None)

    def _get_or_add(self, owner: str) -> _Expected:
        until = self._clock.monotonic() + TIMEOUT
        return self._expected.setdefault(owner, _Expected(until))

    def _delete_if_fulfilled(self, owner: str, expected: _Expected) -> None:
        if expected.fulfilled:
            del self._expected[owner]
