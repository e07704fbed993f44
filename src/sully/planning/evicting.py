"""Eviction in a plan: runs the evictor on a copy of the cluster.

The decisions are those of `sully.evictor`, as in `controllers/eviction`; here its effects change
the copy, and a timeline takes the place of the clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from functools import partial

from sully.client.transport import Key
from sully.domain.eviction.judge import Reason, Verdict
from sully.domain.planning.objects import PlannedPod
from sully.evictor.admission import BudgetExhausted, Paused
from sully.evictor.core import Evictor
from sully.evictor.effects import DeletePod, Effect, EvictPod, Requeue, RequeueAt, SkipPod
from sully.evictor.events import Event, PodChanged, PodDeleted, Requeued
from sully.evictor.settings import EvictionOptions
from sully.planning.budgets import Budgets
from sully.planning.world import World


class Evictions:
    """Evicts the pods of a plan."""

    def __init__(
        self, world: World, on_evicted: Callable[[PlannedPod, tuple[Reason, ...]], None]
    ) -> None:
        self._world = world
        self._on_evicted = on_evicted
        self.on_skipped: Callable[[PlannedPod], None] = lambda _: None
        """Called when a pod is due that is never evicted (`exempt`)."""
        self._queue: deque[Key] = deque()
        self._queued: set[Key] = set()
        self._changed: set[Key] = set()
        """Pods that something happened to since the evictor last decided about them."""
        settings = world.settings
        options = EvictionOptions(
            policy=world.exposures.policy,
            default_per_second=settings.default_per_second,
            max_per_minute=settings.max_per_minute,
            max_staleness=None,
            records=False,
            authoritative_cache=True,
        )
        self._evictor = Evictor(world.exposures, options)
        self._budgets = Budgets(world.budgets.values())
        for event in self._budgets.added():
            self._send(event)

    # -- asking -----------------------------------------------------------------------------------

    def verdict(self, pod: PlannedPod) -> Verdict:
        """Return whether and when a pod is to be evicted."""
        return self._evictor.verdict(pod, self._world.timeline.now())

    def held_back(self) -> Iterator[tuple[PlannedPod, Paused | BudgetExhausted]]:
        """Yield the pods that are to be evicted and still run, with the cause, by key."""
        for key, pending in self._evictor.pending():
            cause = pending.delayed.cause if pending.delayed is not None else None
            pod = self._world.pods.get(key)
            if pod is not None and isinstance(cause, (Paused, BudgetExhausted)):
                yield pod, cause

    # -- what happens -----------------------------------------------------------------------------

    def wake(self, key: Key) -> None:
        """Have the evictor decide about a pod that changed, after those that are queued."""
        pod = self._world.pods.get(key)
        if pod is not None and not pod.is_terminating:
            self._changed.add(key)
            self._enqueue(key)
        elif self._evictor.is_pending(key):
            # It is terminating or gone: no need to queue for that.
            self._send(PodChanged(key))

    def start_with(self, keys: Iterable[Key]) -> None:
        """Have the evictor decide about these pods, in this order, and no others."""
        self._queue.clear()
        self._queued.clear()
        for key in keys:
            self.wake(key)

    def exempt(self, pod: PlannedPod) -> None:
        """Never evict a pod."""
        self._evictor.exempt(pod.metadata.uid)

    def clear_exemptions(self) -> None:
        """Evict all pods again that are due."""
        self._evictor.clear_exemptions()

    def scheduled(self, pod: PlannedPod) -> None:
        """Note that a pod got a node: its budgets count it from now on."""
        for event in self._budgets.scheduled(pod):
            self._send(event)

    def settle(self) -> bool:
        """Decide about all pods that are queued; say whether there were any."""
        any_queued = bool(self._queue)
        while self._queue:
            key = self._queue.popleft()
            self._queued.discard(key)
            if key in self._changed:
                self._changed.discard(key)
                self._send(PodChanged(key))
            else:
                self._send(Requeued(key))
        return any_queued

    def _enqueue(self, key: Key) -> None:
        if key not in self._queued:
            self._queued.add(key)
            self._queue.append(key)

    # -- effects ----------------------------------------------------------------------------------

    def _send(self, event: Event) -> None:
        for effect in self._evictor.step(event, self._world.timeline.now()):
            self._apply(effect)

    def _apply(self, effect: Effect) -> None:
        match effect:
            case Requeue(key):
                self._enqueue(key)
            case RequeueAt(key, at):
                self._world.timeline.at(at, partial(self._enqueue, key))
            case DeletePod() | EvictPod():
                self._evict(effect)
            case SkipPod(key):
                pod = self._world.pods.get(key)
                if pod is not None:
                    self.on_skipped(pod)
            case _:
                # Reports and counts: a plan has its own.
                pass

    def _evict(self, effect: DeletePod | EvictPod) -> None:
        key = effect.key
        pod = self._world.pods.get(key)
        if pod is None:
            return
        refused = self._budgets.refuses(key, pod) if isinstance(effect, EvictPod) else None
        if refused is not None:
            self._send(refused)
            return
        # Before the copy changes: what the evictor then sees is a pod that it has evicted.
        self._send(PodDeleted(key))
        self._budgets.evicted(pod)
        end = self._world.timeline.now() + timedelta(seconds=self._stops_after(pod))
        self._on_evicted(self._world.mark_terminating(pod, end), effect.reasons)

    def _stops_after(self, pod: PlannedPod) -> float:
        most = self._world.settings.stop_seconds
        return pod.grace if most is None else min(most, pod.grace)
