"""The scheduling queue: active pods, the most important first, and unschedulable pods.

An unschedulable pod waits for a cluster event that its error names (`ClusterEvent`), or for a
change of its own. After a failed write a pod backs off (`controllers/scheduling/pod_backoff.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from heapq import heappop, heappush
from itertools import count

import msgspec

from sully.client.transport import COLLECTION, Key
from sully.domain.scheduling.cluster_events import ClusterEvent
from sully.domain.scheduling.objects import Pod
from sully.scheduler.effects import Attempt

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Rank = tuple[int, datetime, int]
"""What orders pods: priority, age, and which came first."""


class _QueuedPod(msgspec.Struct):
    pod: Pod
    rank: Rank
    since: float
    active: bool = False
    attempts: int = 0
    retry_on: ClusterEvent = ClusterEvent.NONE


class SchedulingQueue:
    """Pods without a node."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._pods: dict[Key, _QueuedPod] = {}
        self._heap: list[tuple[Rank, Key]] = []
        self._unschedulable: dict[ClusterEvent, set[Key]] = {}
        """By the events that may help, so that others cost nothing for each pod."""
        self._awaited = 0
        """All events that any pod has waited for so far, as bits: those of an enum are slower."""
        self._order = count()
        self._expected: dict[Key, Rank] = {}
        self._listeners: list[Callable[[], None]] = []

    def __len__(self) -> int:
        """Return how many pods are active."""
        return sum(queued.active for queued in self._pods.values())

    def waiting(self) -> int:
        """Return how many pods are not active."""
        return len(self._pods) - len(self)

    def add(self, key: Key, pod: Pod) -> None:
        """Add a pod, or one that changed, to the active pods."""
        known, expected = self._pods.get(key), self._expected.pop(key, None)
        previous = known.rank if known is not None else expected
        rank = _rank(pod, previous[2] if previous is not None else next(self._order))
        if known is None:
            self._pods[key] = _QueuedPod(pod, rank, self._monotonic())
        else:
            known.pod = pod
            if known.rank != rank:
                known.rank, known.active = rank, False
        self.activate(key)

    def expect(self, key: Key, pod: Pod) -> Rank:
        """Return what will order a pod that is about to be created."""
        rank = self._expected[key] = _rank(pod, next(self._order))
        return rank

    def unexpect(self, key: Key) -> None:
        """Forget a pod that will not be added."""
        self._expected.pop(key, None)

    def update(self, key: Key, pod: Pod) -> None:
        """Keep the newest state of a pod whose change does not matter to scheduling."""
        known = self._pods.get(key)
        if known is not None:
            known.pod = pod

    def get(self, key: Key) -> Pod | None:
        """Return a pod of the queue, or None."""
        known = self._pods.get(key)
        return known.pod if known is not None else None

    def activate(self, key: Key) -> None:
        """Move one pod to the active pods, because something of its own changed."""
        queued = self._pods.get(key)
        if queued is None or queued.active:
            return
        self._take_out(key, queued)
        queued.active = True
        heappush(self._heap, (queued.rank, key))
        for listener in list(self._listeners):
            listener()

    def is_awaited(self, event: ClusterEvent) -> bool:
        """Report whether a pod may be waiting for an event."""
        return bool(self._awaited & event.value)

    def move_to_active_queue(self, event: ClusterEvent) -> None:
        """Activate all pods that an event may help."""
        if not self.is_awaited(event):
            return
        for events in [events for events in self._unschedulable if events & event]:
            for key in list(self._unschedulable[events]):
                self.activate(key)

    def remove(self, key: Key) -> None:
        """Remove a pod."""
        queued = self._pods.pop(key, None)
        if queued is not None:
            self._take_out(key, queued)

    def is_first(self, rank: Rank) -> bool:
        """Report whether no active pod comes before a rank."""
        return not self._heap or self._heap[0][0] > rank

    def pop(self, until: Rank | None = None) -> Key | None:
        """Take the first active pod; it stays known, and waits for nothing yet.

        With a rank, only if it does not come after that.
        """
        while self._heap and (until is None or self._heap[0][0] <= until):
            rank, key = heappop(self._heap)
            queued = self._pods.get(key)
            # Other entries are outdated: the pod was removed, or its rank changed.
            if queued is not None and queued.active and queued.rank == rank:
                queued.active = False
                queued.attempts += 1
                return key
        return None

    def attempt(self, key: Key) -> Attempt:
        """Return an attempt that begins now."""
        now, queued = self._monotonic(), self._pods.get(key)
        if queued is None:
            return Attempt(now, now)
        return Attempt(now, queued.since, queued.attempts)

    def rank(self, key: Key) -> Rank | None:
        """Return what orders a pod; None if it is not in the queue."""
        queued = self._pods.get(key)
        return queued.rank if queued is not None else None

    def is_unschedulable(self, key: Key) -> bool:
        """Report whether a pod waits for events, and none of them happened."""
        queued = self._pods.get(key)
        return queued is not None and not queued.active and queued.retry_on != ClusterEvent.NONE

    def unschedulable(self) -> Iterator[Key]:
        """Yield the pods that wait for an event."""
        for keys in self._unschedulable.values():
            yield from keys

    def add_unschedulable(self, key: Key, retry_on: ClusterEvent) -> None:
        """Let a pod wait for events."""
        queued = self._pods.get(key)
        if queued is not None and not queued.active:
            self._take_out(key, queued)
            queued.retry_on = retry_on
            self._awaited |= retry_on.value
            self._unschedulable.setdefault(retry_on, set()).add(key)

    def _take_out(self, key: Key, queued: _QueuedPod) -> None:
        keys = self._unschedulable.get(queued.retry_on)
        queued.retry_on = ClusterEvent.NONE
        if keys is not None:
            keys.discard(key)

    def enqueue(
        self, add: Callable[[Key], None], to_keys: Callable[[Key], Iterable[Key]]
    ) -> Callable[[], None]:
        """Wake the controller when there are active pods."""

        def handle() -> None:
            for key in to_keys(COLLECTION):
                add(key)

        self._listeners.append(handle)
        if self._heap:
            handle()
        return lambda: self._listeners.remove(handle)


def _rank(pod: Pod, number: int) -> Rank:
    return -(pod.spec.priority or 0), pod.metadata.creation_timestamp or _EPOCH, number
