"""What an owner did and its cache has not seen yet.

Pods that were created a moment ago are not in the cache, and whoever counts them there would create
them again. So an owner first says what it is going to do, and does not count again before the cache
has seen it, or until enough time has passed that something must have been lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sully.runtime.clock import Clock

PATIENCE = 300.0
"""Seconds after which what was expected is no longer waited for."""


@dataclass(slots=True)
class _Expected:
    until: float
    creations: int = 0
    deletions: set[str] = field(default_factory=set)

    @property
    def met(self) -> bool:
        return self.creations <= 0 and not self.deletions


class Expectations:
    """Counts what each owner, by uid, has yet to see."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._expected: dict[str, _Expected] = {}

    def __len__(self) -> int:
        """Return how many owners wait for something."""
        return len(self._expected)

    def creations(self, owner: str, count: int) -> None:
        """Expect new pods; called before they are created, because their news may come at once."""
        self._of(owner).creations += count

    def deletions(self, owner: str, uids: set[str]) -> None:
        """Expect pods to go."""
        self._of(owner).deletions |= uids

    def created(self, owner: str, count: int = 1) -> None:
        """Note pods that came, or that will not come because creating them failed."""
        found = self._expected.get(owner)
        if found is not None:
            found.creations -= count
            self._settle(owner, found)

    def deleted(self, owner: str, uid: str) -> None:
        """Note a pod that goes, or whose deletion failed."""
        found = self._expected.get(owner)
        if found is not None:
            found.deletions.discard(uid)
            self._settle(owner, found)

    def waits(self, owner: str) -> float:
        """Return how many seconds to wait at most for what is expected; 0 if nothing is."""
        found = self._expected.get(owner)
        if found is None:
            return 0.0
        left = found.until - self._clock.monotonic()
        if left <= 0:
            del self._expected[owner]
        return max(left, 0.0)

    def forget(self, owner: str) -> None:
        """Expect nothing more, because the owner is gone."""
        self._expected.pop(owner, None)

    def _of(self, owner: str) -> _Expected:
        until = self._clock.monotonic() + PATIENCE
        return self._expected.setdefault(owner, _Expected(until))

    def _settle(self, owner: str, found: _Expected) -> None:
        if found.met:
            del self._expected[owner]
