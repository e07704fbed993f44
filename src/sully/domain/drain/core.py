"""The drain core: which pods to evict, what to wait for, when to stop and why. No I/O, no clock.

`handle` takes what happened, `decide` returns what to do. A pod is evicted if the rate leaves a
token and fewer than `max_unavailable` evicted pods are without a Ready replacement. Which pod is
the replacement of which cannot be known; the new pods of a workload are counted (workloads.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from sully.domain.drain.messages import (
    RETRY,
    TAINT_TIMEOUT,
    DrainEvictionRefused,
    DrainOutcome,
    DrainPod,
    DrainPodNotFound,
    DrainProgress,
    DrainSettings,
    DrainState,
    Effect,
    Event,
    EvictDrainPod,
    EvictionsPostponed,
    PodEvicted,
    PodsChanged,
    RulesDeleted,
    StateChanged,
    Stop,
    UseNoExecute,
    WaitUntil,
)
from sully.domain.drain.workloads import Replacements
from sully.domain.eviction.rates import Bucket
from sully.domain.workloads.percentages import scaled


class Drain:
    """A drain that is running."""

    def __init__(
        self, settings: DrainSettings, start: datetime, state: DrainState | None = None
    ) -> None:
        self._settings = settings
        self._deadline = None if settings.timeout is None else start + settings.timeout
        state = state or DrainState()
        self._bucket = None if settings.rate is None else Bucket(settings.rate)
        if self._bucket is not None and state.full_at is not None:
            # A run that was stopped and started again has no new burst.
            self._bucket = Bucket(self._bucket.rate, state.full_at)
        self._evicted_before = state.evicted
        self._pods: dict[str, DrainPod] = {}
        self._in_flight: dict[str, DrainPod] = {}
        self._evicted: dict[str, DrainPod] = {}
        self._refused: dict[str, tuple[datetime, str]] = {}
        self._by_taint: dict[str, DrainPod] = {}
        """Pods that are left to the eviction controller."""
        self._tainted_at: datetime | None = None
        self._uncordoned = False
        self._replacements = Replacements(settings.wait_ready, state.workloads)

    # -- events -----------------------------------------------------------------------------------

    def handle(self, event: Event, now: datetime) -> None:
        """Note what happened."""
        match event:
            case PodsChanged(pods):
                self._pods = {pod.uid: pod for pod in pods}
                for uid in [*self._by_taint]:
                    pod = self._pods.get(uid)
                    if pod is None or pod.terminating:
                        self._note_evicted(self._by_taint.pop(uid), now)
                self._replacements.observe(self._pods, now)
            case PodEvicted(uid):
                self._refused.pop(uid, None)
                self._note_evicted(self._in_flight.pop(uid), now)
                self._charge(now)
            case DrainEvictionRefused(uid, message, answered):
                self._in_flight.pop(uid, None)
                self._refused[uid] = (now + RETRY, message)
                if not answered:
                    self._charge(now)
            case EvictionsPostponed(uids):
                for uid in uids:
                    self._in_flight.pop(uid, None)
            case StateChanged(state):
                self._share_rate(state)
            case DrainPodNotFound(uid):
                self._in_flight.pop(uid, None)
                self._refused.pop(uid, None)
                self._pods.pop(uid, None)
            case RulesDeleted():
                self._uncordoned = True

    def _note_evicted(self, pod: DrainPod, now: datetime) -> None:
        self._evicted[pod.uid] = pod
        self._replacements.evicted(pod, now)

    def _charge(self, now: datetime) -> None:
        """Take the token of an eviction when it is answered: the server may have been slow."""
        if self._bucket is not None:
            self._bucket = self._bucket.take(now)

    def _share_rate(self, state: DrainState) -> None:
        """Count the evictions of other runs of the same drain, which have the same rate."""
        if self._bucket is not None and state.full_at is not None:
            full_at = max(self._bucket.full_at, state.full_at)
            self._bucket = Bucket(self._bucket.rate, full_at)

    def _charged(self, now: datetime) -> Bucket | None:
        """Return the bucket as if all evictions that are not answered yet were executed now."""
        bucket = self._bucket
        for _ in self._in_flight:
            bucket = None if bucket is None else bucket.take(now)
        return bucket

    # -- decisions --------------------------------------------------------------------------------

    def decide(self, now: datetime) -> tuple[Effect, ...]:
        """Return what to do now; the last effect is when to decide again, or the end."""
        stop = self._stop(now)
        if stop is not None:
            return (stop,)
        if self._is_overdue(now) and self._tainted_at is None:
            self._tainted_at = now
            self._by_taint = {pod.uid: pod for pod in self.remaining()}
            for pod in self._by_taint.values():
                self._replacements.evicting(pod, self._pods)
            return (UseNoExecute(), WaitUntil(now + TAINT_TIMEOUT))
        evictions = tuple(map(EvictDrainPod, self._next(now)))
        return (*evictions, WaitUntil(self._next_time(now)))

    def _stop(self, now: datetime) -> Stop | None:
        if self._uncordoned:
            return Stop(DrainOutcome.UNCORDONED, tuple(self.remaining()))
        returned = self._replacements.returned()
        if returned:
            return Stop(DrainOutcome.EVICTION_LOOP, returned)
        remaining, terminating = tuple(self.remaining()), tuple(self._terminating())
        if not remaining and not terminating and not self._in_flight:
            return self._replacements.overdue(now) or self._done()
        stop = self._replacements.overdue(now)
        if stop is not None and self._settings.evicts and self._tainted_at is None:
            return stop
        expired = self._tainted_at is not None and now >= self._tainted_at + TAINT_TIMEOUT
        if expired or (self._is_overdue(now) and not self._may_taint(remaining)):
            return Stop(DrainOutcome.TIMED_OUT, remaining or terminating)
        return None

    def _done(self) -> Stop | None:
        waits = self._settings.wait_ready is not None and self._replacements.unavailable()
        return None if waits else Stop(DrainOutcome.DONE)

    def _is_overdue(self, now: datetime) -> bool:
        return self._deadline is not None and now >= self._deadline

    def _may_taint(self, remaining: tuple[DrainPod, ...]) -> bool:
        if self._tainted_at is not None:
            return True
        return self._settings.use_no_execute and bool(remaining)

    def _next(self, now: datetime) -> Iterator[DrainPod]:
        """Yield the pods for which there is a token now."""
        if not self._settings.evicts or self._tainted_at is not None:
            return
        if self._settings.wait_ready is not None and self._replacements.unschedulable():
            # Others would have no device either.
            return
        for pod in list(self.remaining()):
            retry, _ = self._refused.get(pod.uid, (now, ""))
            if pod.uid in self._in_flight or retry > now:
                continue
            if not self._may_be_unavailable():
                return
            bucket = self._charged(now)
            if bucket is not None and bucket.opens_at() > now:
                return
            self._in_flight[pod.uid] = pod
            self._replacements.evicting(pod, self._pods)
            yield pod

    def _may_be_unavailable(self) -> bool:
        most = self._settings.max_unavailable
        return most is None or self.unavailable() < scaled(most, self._total(), up=True)

    def _total(self) -> int:
        """Return how many pods this drain evicts, with those of earlier runs."""
        remaining = sum(1 for _ in self.remaining())
        return self._evicted_before + len(self._evicted) + remaining

    def _next_time(self, now: datetime) -> datetime | None:
        times = [retry for retry, _ in self._refused.values()]
        times += self._replacements.deadlines()
        if self._bucket is not None and any(True for _ in self.remaining()):
            times.append(self._bucket.opens_at())
        if self._tainted_at is not None:
            times.append(self._tainted_at + TAINT_TIMEOUT)
        elif self._deadline is not None:
            times.append(self._deadline)
        return min((time for time in times if time > now), default=None)

    # -- reading ----------------------------------------------------------------------------------

    def remaining(self) -> Iterator[DrainPod]:
        """Yield the pods that are to be evicted, or to finish, in order."""
        for pod in sorted(self._pods.values(), key=lambda pod: (pod.namespace, pod.name)):
            if pod.on_devices and not pod.terminating and pod.uid not in self._evicted:
                yield pod

    def _terminating(self) -> Iterator[DrainPod]:
        """Yield the pods that this drain evicted and that still exist."""
        return (self._pods[uid] for uid in self._evicted if uid in self._pods)

    def evicted_pods(self) -> tuple[DrainPod, ...]:
        """Return the pods that this run evicted, in order."""
        return tuple(self._evicted.values())

    def unavailable(self) -> int:
        """Return how many evicted pods are without a Ready replacement."""
        alone = sum(1 for pod in self._terminating() if not pod.awaited)
        return len(self._in_flight) + self._replacements.unavailable() + alone

    def workloads(self) -> frozenset[str]:
        """Return the workloads all of whose pods the core has to know."""
        return self._replacements.workloads()

    def state(self, now: datetime) -> DrainState:
        """Return what another run of the same drain has to know."""
        bucket = self._charged(now)
        return DrainState(
            full_at=bucket.full_at if bucket is not None else None,
            evicted=self._evicted_before + len(self._evicted) + len(self._in_flight),
            workloads=self._replacements.open_workloads(self._in_flight.values()),
        )

    def progress(self) -> DrainProgress:
        """Return how far the drain is."""
        remaining = [pod.uid for pod in self.remaining()]
        return DrainProgress(
            evicted=len(self._evicted),
            remaining=len(remaining),
            terminating=sum(1 for _ in self._terminating()),
            refused={uid: self._refused[uid][1] for uid in remaining if uid in self._refused},
            ready=self._replacements.ready(),
            waiting=self._replacements.waiting(),
            unavailable=self.unavailable(),
        )
