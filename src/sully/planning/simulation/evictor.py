"""Eviction in a plan: runs the evictor on a copy of the cluster.

The decisions are those of `sully.evictor`, as in `controllers/eviction`; here its effects change
the copy, and a virtual clock replaces the real one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import timedelta
from functools import partial

from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.eviction.judge import EvictingTaint, Verdict
from sully.domain.planning.report import BrokenBudget
from sully.domain.scheduling.objects import Pod
from sully.evictor.checks import BudgetExhausted, Paused
from sully.evictor.core import Evictor
from sully.evictor.effects import DeletePod, Effect, EvictPod, Requeue, RequeueAt, SkipPod
from sully.evictor.events import Event, PodChanged, PodDeleted, Requeued
from sully.evictor.settings import EvictionOptions
from sully.planning.simulation.budgets import Budgets, budget_text
from sully.planning.simulation.cluster_copy import ClusterCopy


class PlannedEvictor:
    """Runs the eviction core on a copy of the cluster."""

    def __init__(
        self, cluster: ClusterCopy, on_evicted: Callable[[Pod, tuple[EvictingTaint, ...]], None]
    ) -> None:
        self._cluster = cluster
        self._on_evicted = on_evicted
        self.on_skipped: Callable[[Pod], None] = lambda _: None
        """Called when a pod is due that is never evicted (`exempt`)."""
        self._queue: deque[Key] = deque()
        self._queued: set[Key] = set()
        self._changed: set[Key] = set()
        """Pods that changed since the evictor last decided about them."""
        flags, rates, pauses = cluster.options, cluster.honors_rates, cluster.honors_pauses
        options = EvictionOptions(
            policy=cluster.exposures.policy,
            rates=rates,
            pauses=pauses,
            default_per_second=flags.default_per_second if rates else None,
            max_per_minute=flags.max_per_minute if pauses else None,
            max_staleness=None,
            records=False,
            authoritative_cache=True,
        )
        self._evictor = Evictor(cluster.exposures, options)
        self._budgets = Budgets(cluster.budgets.values())
        for event in self._budgets.initial_events():
            self._send(event)

    # -- reading ----------------------------------------------------------------------------------

    def verdict(self, pod: Pod) -> Verdict:
        """Return whether and when a pod is evicted."""
        return self._evictor.verdict(pod, self._cluster.clock.now())

    def is_pending(self, key: Key) -> bool:
        """Report whether a pod of this name is to be evicted."""
        return self._evictor.is_pending(key)

    def blocked(self) -> Iterator[tuple[Pod, Paused | BudgetExhausted]]:
        """Yield the pods whose evictions are paused, or refused by budgets, by key."""
        for key, pending in self._evictor.pending():
            cause = pending.delayed.cause if pending.delayed is not None else None
            pod = self._cluster.pods.get(key)
            if pod is not None and isinstance(cause, (Paused, BudgetExhausted)):
                yield pod, cause

    # -- events -----------------------------------------------------------------------------------

    def wake(self, key: Key) -> None:
        """Queue a pod that changed."""
        pod = self._cluster.pods.get(key)
        if pod is not None and not pod.is_terminating:
            self._changed.add(key)
            self._enqueue(key)
        elif self._evictor.is_pending(key):
            # It is terminating or deleted: no need to queue for that.
            self._send(PodChanged(key))

    def usage_changed(self, key: Key) -> None:
        """Queue a pod whose claims changed; most get devices without taints."""
        if self._evictor.concerns(key, self._cluster.clock.now()):
            self.wake(key)

    def start_with(self, keys: Iterable[Key]) -> None:
        """Queue these pods in this order, and no others."""
        self._queue.clear()
        self._queued.clear()
        for key in keys:
            self.wake(key)

    def exempt(self, pod: Pod) -> None:
        """Never evict a pod."""
        self._evictor.exempt(pod.metadata.uid)

    def clear_exemptions(self) -> None:
        """Evict exempt pods again."""
        self._evictor.clear_exemptions()

    def scheduled(self, pod: Pod) -> None:
        """Note that a pod was bound: its budgets count it from now on."""
        for event in self._budgets.scheduled(pod):
            self._send(event)

    def broken_budgets(self, pods: Collection[Key]) -> Iterator[BrokenBudget]:
        """Yield the budgets that evictions of these pods do not honor."""
        return self._budgets.broken(pods)

    def settle(self) -> bool:
        """Decide about all queued pods; report whether there were any."""
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
        for effect in self._evictor.step(event, self._cluster.clock.now()):
            self._apply(effect)

    def _apply(self, effect: Effect) -> None:
        match effect:
            case Requeue(key):
                self._enqueue(key)
            case RequeueAt(key, at):
                self._cluster.clock.call_at(at, partial(self._enqueue, key))
            case DeletePod() | EvictPod():
                self._evict(effect)
            case SkipPod(key):
                pod = self._cluster.pods.get(key)
                if pod is not None:
                    self.on_skipped(pod)
            case _:
                # Reports and counts: a plan has its own.
                pass

    def _evict(self, effect: DeletePod | EvictPod) -> None:
        key = effect.key
        pod = self._cluster.pods.get(key)
        if pod is None:
            return
        refusal = self._budgets.check(key, pod) if isinstance(effect, EvictPod) else None
        if refusal is not None:
            self._send(refusal)
            return
        # Before the copy changes: what the evictor then sees is a pod that it has evicted.
        self._send(PodDeleted(key))
        self._on_evicted(self._terminate(pod), effect.reasons)

    def evict(
        self, pod: Pod, reasons: tuple[EvictingTaint, ...], *, honor_budgets: bool = True
    ) -> str:
        """Evict a pod for another component; return why its budgets do not allow that."""
        refusal = self._budgets.check(key_of(pod), pod) if honor_budgets else None
        if refusal is not None:
            return budget_text(refusal.budgets or ())
        terminating = self._terminate(pod)
        self.wake(key_of(pod))
        self._on_evicted(terminating, reasons)
        return ""

    def delete(self, pod: Pod) -> Pod:
        """Let a pod terminate that another component deletes."""
        terminating = self._terminate(pod)
        self.wake(key_of(pod))
        return terminating

    def _terminate(self, pod: Pod) -> Pod:
        self._budgets.evicted(pod)
        # A pod without a node is deleted immediately.
        seconds = self._stop_seconds(pod) if pod.spec.node_name else 0.0
        end = self._cluster.clock.now() + timedelta(seconds=seconds)
        return self._cluster.mark_terminating(pod, end)

    def _stop_seconds(self, pod: Pod) -> float:
        stop_seconds = self._cluster.options.stop_seconds
        return pod.grace_seconds if stop_seconds is None else min(stop_seconds, pod.grace_seconds)
