"""The replacements of evicted pods, counted by workload.

A workload that lost three pods has to have three new ones that are Ready. New are those that did
not exist when its first pod was evicted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

import msgspec

from sully.domain.drain.messages import PENDING_TIMEOUT, DrainOutcome, DrainPod, Stop

Pods = Mapping[str, DrainPod]
"""Pods by uid."""


class _Workload(msgspec.Struct):
    known: set[str]
    """The pods that are not replacements."""
    since: list[datetime] = msgspec.field(default_factory=list)
    """Since when each evicted pod needs a replacement, the earliest first."""
    last: dict[str, int] = msgspec.field(default_factory=dict)
    """The evicted pods that still exist, with their position in `since`."""
    pods: tuple[DrainPod, ...] = ()
    """Its new pods."""
    started: bool = False
    """Whether one of its pods was evicted."""
    returns: int = 0
    """How often a new pod was evicted from a drained device."""

    @property
    def ready(self) -> int:
        return min(len(self.since), sum(pod.ready for pod in self.pods if not pod.on_devices))

    @property
    def unavailable(self) -> int:
        return len(self.since) - self.ready

    @property
    def waiting(self) -> list[DrainPod]:
        """Return new pods that are not Ready, as many as are needed."""
        waiting = [pod for pod in self.pods if not pod.ready and not pod.on_devices]
        return waiting[: self.unavailable]


class Replacements:
    """The new pods of all workloads that lost some."""

    def __init__(self, wait_ready: timedelta | None, before: Iterable[str] = ()) -> None:
        self._wait_ready = wait_ready
        self._before = frozenset(before)
        """Workloads that an earlier run did not wait for until the end."""
        self._workloads: dict[str, _Workload] = {}
        self._unschedulable_since: dict[str, datetime] = {}

    # -- events -----------------------------------------------------------------------------------

    def observe(self, pods: Pods, now: datetime) -> None:
        """Take the current pods."""
        self._adopt(pods, now)
        for name, workload in self._workloads.items():
            workload.pods = tuple(
                pod
                for pod in pods.values()
                if pod.workload == name and pod.uid not in workload.known and not pod.terminating
            )
            for uid in workload.last.keys() & pods.keys():
                # Some owners recreate a pod only when it is deleted.
                workload.since[workload.last[uid]] = now
        unschedulable = {pod.uid for pod in self.waiting() if pod.unschedulable}
        self._unschedulable_since = {
            uid: self._unschedulable_since.get(uid, now) for uid in unschedulable
        }

    def _adopt(self, pods: Pods, now: datetime) -> None:
        """Wait for the pods that an earlier run waited for."""
        for name in self._before:
            own = [pod for pod in pods.values() if pod.workload == name and not pod.terminating]
            new = [pod.uid for pod in own if not pod.ready and not pod.on_devices]
            known = {pod.uid for pod in own}.difference(new)
            workload = _Workload(known, [now] * len(new), started=True)
            self._workloads[name] = workload
        self._before = frozenset()

    def evicting(self, pod: DrainPod, pods: Pods) -> None:
        """Note that a pod is about to be evicted: pods that exist are not replacements."""
        workload = self._workloads.get(pod.workload)
        if pod.workload and (workload is None or not workload.started):
            known = {other.uid for other in pods.values() if other.workload == pod.workload}
            self._workloads[pod.workload] = _Workload(known | {pod.uid})

    def evicted(self, pod: DrainPod, now: datetime) -> None:
        """Note that a pod was evicted."""
        workload = self._workloads.get(pod.workload)
        if workload is None:
            return
        workload.started = True
        if pod.uid not in workload.known:
            workload.known.add(pod.uid)
            workload.returns += 1
        if pod.awaited:
            workload.last[pod.uid] = len(workload.since)
            workload.since.append(now)

    # -- decisions --------------------------------------------------------------------------------

    def overdue(self, now: datetime) -> Stop | None:
        """Return why to stop: a replacement stays Pending, is not Ready, or does not exist."""
        if self._wait_ready is None:
            return None
        limit = min(PENDING_TIMEOUT, self._wait_ready)
        pending = tuple(
            pod
            for pod in self.waiting()
            if pod.unschedulable and now >= self._unschedulable_since.get(pod.uid, now) + limit
        )
        if pending:
            return Stop(DrainOutcome.REPLACEMENT_PENDING, pending)
        for name, workload in sorted(self._workloads.items()):
            late = _oldest(workload)
            if late is None or now < late + self._wait_ready:
                continue
            if workload.waiting:
                return Stop(DrainOutcome.REPLACEMENT_NOT_READY, tuple(workload.waiting))
            return Stop(DrainOutcome.NOT_RECREATED, workload=name)
        return None

    def returned(self) -> tuple[DrainPod, ...]:
        """Return new pods that use a drained device, if that is not a coincidence.

        A scheduler may learn of the taint a moment after the first eviction, so one pod of each
        workload that does not tolerate it is evicted a second time.
        """
        returned = []
        for workload in self._workloads.values():
            again = [pod for pod in workload.pods if pod.on_devices]
            returns = workload.returns + len(again)
            returned += [pod for pod in again if pod.tolerates or returns > 1]
        return tuple(returned)

    def deadlines(self) -> Iterator[datetime]:
        """Yield when `overdue` may change."""
        if self._wait_ready is None:
            return
        limit = min(PENDING_TIMEOUT, self._wait_ready)
        yield from (since + limit for since in self._unschedulable_since.values())
        for workload in self._workloads.values():
            late = _oldest(workload)
            if late is not None:
                yield late + self._wait_ready

    # -- reading ----------------------------------------------------------------------------------

    def workloads(self) -> frozenset[str]:
        """Return the workloads whose pods matter."""
        return self._before.union(self._workloads)

    def unavailable(self) -> int:
        """Return how many evicted pods are without a Ready replacement."""
        return sum(workload.unavailable for workload in self._workloads.values())

    def ready(self) -> int:
        """Return how many evicted pods have a Ready replacement."""
        return sum(workload.ready for workload in self._workloads.values())

    def waiting(self) -> tuple[DrainPod, ...]:
        """Return the replacements that are not Ready."""
        return tuple(pod for workload in self._workloads.values() for pod in workload.waiting)

    def unschedulable(self) -> bool:
        """Report whether a replacement is unschedulable."""
        return bool(self._unschedulable_since)

    def open_workloads(self, in_flight: Iterable[DrainPod]) -> tuple[str, ...]:
        """Return the workloads with evicted pods that have no Ready replacement."""
        names = {name for name, workload in self._workloads.items() if workload.unavailable}
        names.update(pod.workload for pod in in_flight if pod.workload and pod.awaited)
        return tuple(sorted(names))


def _oldest(workload: _Workload) -> datetime | None:
    """Return since when the first evicted pod without a Ready replacement needs one."""
    return sorted(workload.since)[workload.ready] if workload.unavailable else None
