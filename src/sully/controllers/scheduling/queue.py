"""Pods that want a node: those to look at now, the most important first, and those that wait.

A pod that was refused waits until something changes that its refusal was about (`Concern`), or
something of its own. Nothing here is ever tried again because time has passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from heapq import heappop, heappush
from itertools import count

from sully.client.transport import COLLECTION, Key
from sully.controllers.scheduling.outbox import Look
from sully.domain.scheduling.decisions import Concern
from sully.domain.scheduling.objects import Pod

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Rank = tuple[int, datetime, int]
"""What the order of pods goes by: importance, age, and who came first."""


@dataclass(slots=True)
class _Entry:
    rank: Rank
    since: float
    active: bool = False
    attempts: int = 0
    concern: Concern = Concern.NOTHING


class Queue:
    """Pods without a node."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._entries: dict[Key, _Entry] = {}
        self._heap: list[tuple[Rank, Key]] = []
        self._parked: dict[Concern, set[Key]] = {}
        """Pods that wait, by what may help them, so that a change does not cost as many looks."""
        self._order = count()
        self._expected: dict[Key, Rank] = {}
        self._listeners: list[Callable[[], None]] = []

    def __len__(self) -> int:
        """Return how many pods are to be looked at now."""
        return sum(each.active for each in self._entries.values())

    def waiting(self) -> int:
        """Return how many pods wait for a change."""
        return len(self._entries) - len(self)

    def add(self, key: Key, pod: Pod) -> None:
        """Look at a pod soon."""
        known, expected = self._entries.get(key), self._expected.pop(key, None)
        came = known.rank if known is not None else expected
        rank = _rank(pod, came[2] if came is not None else next(self._order))
        if known is not None and known.rank != rank:
            known.rank, known.active = rank, False
        elif known is None:
            self._entries[key] = _Entry(rank, self._monotonic())
        self.touch(key)

    def expect(self, key: Key, pod: Pod) -> Rank:
        """Keep a place for a pod that will be added, and return what its turn will go by."""
        rank = self._expected[key] = _rank(pod, next(self._order))
        return rank

    def excuse(self, key: Key) -> None:
        """Keep no place any more for a pod that needs none."""
        self._expected.pop(key, None)

    def touch(self, key: Key) -> None:
        """Look again at a pod that waits, because something of its own changed."""
        entry = self._entries.get(key)
        if entry is None or entry.active:
            return
        self._unpark(key, entry)
        entry.active = True
        heappush(self._heap, (entry.rank, key))
        self._tell()

    def wake(self, concern: Concern) -> None:
        """Look again at all pods whose refusal was about this."""
        for about in [each for each in self._parked if each & concern]:
            for key in list(self._parked[about]):
                self.touch(key)

    def remove(self, key: Key) -> None:
        """Forget a pod."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._unpark(key, entry)

    def is_idle(self, until: Rank) -> bool:
        """Say whether there is nobody to look at, up to a rank."""
        return not self._heap or self._heap[0][0] > until

    def pop(self, until: Rank | None = None) -> Key | None:
        """Take the pod that comes first; it stays known, and waits for nothing yet.

        With a rank, only if it does not come after that.
        """
        while self._heap and (until is None or self._heap[0][0] <= until):
            rank, key = heappop(self._heap)
            entry = self._entries.get(key)
            # Anything else was overtaken: removed, or ranked anew since.
            if entry is not None and entry.active and entry.rank == rank:
                entry.active = False
                entry.attempts += 1
                return key
        return None

    def look(self, key: Key) -> Look:
        """Return how often a pod was looked at, and since when it waits; this look begins now."""
        now, entry = self._monotonic(), self._entries.get(key)
        return Look(now, entry.since, entry.attempts) if entry is not None else Look(now, now)

    def rank(self, key: Key) -> Rank | None:
        """Return what a pod's turn goes by; None if it is not known."""
        entry = self._entries.get(key)
        return entry.rank if entry is not None else None

    def is_parked(self, key: Key) -> bool:
        """Say whether nothing has happened that may help a pod since it was refused."""
        entry = self._entries.get(key)
        return entry is not None and not entry.active and entry.concern != Concern.NOTHING

    def parked(self) -> Iterator[Key]:
        """Go through the pods that wait for a change."""
        for keys in self._parked.values():
            yield from keys

    def park(self, key: Key, concern: Concern) -> None:
        """Let a pod wait until something changes."""
        entry = self._entries.get(key)
        if entry is not None and not entry.active:
            self._unpark(key, entry)
            entry.concern = concern
            self._parked.setdefault(concern, set()).add(key)

    def _unpark(self, key: Key, entry: _Entry) -> None:
        parked = self._parked.get(entry.concern)
        entry.concern = Concern.NOTHING
        if parked is not None:
            parked.discard(key)

    def enqueue(
        self, add: Callable[[Key], None], to_keys: Callable[[Key], Iterable[Key]]
    ) -> Callable[[], None]:
        """Tell whoever schedules that there is something to do."""

        def handle() -> None:
            for key in to_keys(COLLECTION):
                add(key)

        self._listeners.append(handle)
        if self._heap:
            handle()
        return lambda: self._listeners.remove(handle)

    def _tell(self) -> None:
        for listener in list(self._listeners):
            listener()


def _rank(pod: Pod, place: int) -> Rank:
    return -(pod.spec.priority or 0), pod.metadata.creation_timestamp or _EPOCH, place
