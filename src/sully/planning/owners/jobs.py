"""Jobs in a plan: they wait, create pods, or fail and delete the pods that are left."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from sully.domain.planning.owners import JOB_SET, IndexFailed, JobEnded, NotNeeded
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.jobs.failures import (
    SYNC_PERIOD,
    JobEnd,
    JobState,
    action_for,
    count_failure,
    creation_time,
    desired_pods,
    end_of,
    index_of,
    initial_state,
    is_failed_index,
    next_annotations,
)
from sully.domain.workloads.jobs.objects import Job, JobSpec
from sully.planning.owners.kinds import JOBS
from sully.planning.simulation.cluster_copy import ClusterCopy

if TYPE_CHECKING:
    from sully.planning.simulation.simulator import SimulatedEviction

_NO_LIMIT: Final = 2**31 - 1
_UNKNOWN: Final = Job(spec=JobSpec(parallelism=_NO_LIMIT, backoff_limit=_NO_LIMIT))
"""A Job that cannot be read: only its back-off is certain."""


class _JobRun(msgspec.Struct):
    """One Job in a plan."""

    uid: str
    name: str
    job: Job
    state: JobState
    active: int
    """Pods that neither terminate nor have finished."""
    evictions: list[SimulatedEviction] = msgspec.field(default_factory=list)
    new: list[tuple[SimulatedEviction, datetime]] = msgspec.field(default_factory=list)
    """Failures that the controller has not counted yet, and when they happened."""
    waiting: list[tuple[SimulatedEviction, datetime]] = msgspec.field(default_factory=list)
    """Counted failures whose pods are not replaced yet."""


class PlannedJobs:
    """Runs the decisions about Jobs on a copy of the cluster."""

    def __init__(
        self,
        cluster: ClusterCopy,
        *,
        replace: Callable[[SimulatedEviction], None],
        terminate: Callable[[Pod, JobEnd], None],
    ) -> None:
        self._cluster = cluster
        self._replace = replace
        self._terminate = terminate
        self._runs: dict[str, _JobRun] = {}

    def evicted(self, eviction: SimulatedEviction) -> None:
        """Note that a pod was evicted and terminates."""
        run = self._run(eviction.pod)
        run.active -= 1
        run.evictions.append(eviction)
        if run.job.replaces_terminating:
            self._fail(run, eviction)

    def removed(self, eviction: SimulatedEviction) -> None:
        """Note that an evicted pod has terminated."""
        run = self._run(eviction.pod)
        if not run.job.replaces_terminating:
            self._fail(run, eviction)

    def _run(self, pod: Pod) -> _JobRun:
        owner = pod.owner
        uid, name = (owner.uid, owner.name) if owner is not None else ("", "")
        run = self._runs.get(uid)
        if run is None:
            job = self._cluster.owner(JOBS, pod) or _UNKNOWN
            # The pod that is evicted first terminates already.
            active = len(self._pods(uid)) + 1
            run = self._runs[uid] = _JobRun(uid, name, job, initial_state(job), active)
        return run

    def _pods(self, uid: str) -> list[Pod]:
        """Return the active pods of a Job."""
        pods = self._cluster.pods_of(uid)
        return [pod for pod in pods if pod.is_active]

    def _fail(self, run: _JobRun, eviction: SimulatedEviction) -> None:
        now = self._cluster.clock.now()
        if not run.new:
            self._cluster.clock.call_at(now + SYNC_PERIOD, partial(self._count, run))
        run.new.append((eviction, now))

    def _count(self, run: _JobRun) -> None:
        for eviction, time in run.new:
            action = action_for(run.job.spec.pod_failure_policy, eviction.pod)
            run.state = count_failure(run.job, run.state, eviction.pod, time, action)
        run.waiting += run.new
        run.new.clear()
        self._sync(run)

    def _sync(self, run: _JobRun) -> None:
        """Create the pods that are due, or let the Job fail."""
        now = self._cluster.clock.now()
        end = end_of(run.job, run.state, now)
        if end is not None:
            self._end(run, end)
            return
        left: list[tuple[SimulatedEviction, datetime]] = []
        for eviction, failed in run.waiting:
            pod, index = eviction.pod, index_of(eviction.pod)
            due = creation_time(run.job, run.state, pod, failed)
            if is_failed_index(run.state, pod) and index is not None:
                limit = run.job.spec.backoff_limit_per_index or 0
                eviction.obstacle = IndexFailed(run.name, index, limit)
            elif due > now:
                left.append((eviction, failed))
                self._cluster.clock.call_at(due, partial(self._sync, run))
            elif run.active < desired_pods(run.job, run.active):
                run.active += 1
                action = action_for(run.job.spec.pod_failure_policy, pod)
                eviction.annotations = next_annotations(run.job, pod, action)
                self._replace(eviction)
            else:
                eviction.obstacle = NotNeeded(f"Job/{run.name}")
        run.waiting = left

    def _end(self, run: _JobRun, end: JobEnd) -> None:
        gone = [eviction for eviction, _ in run.waiting]
        if end.fails:
            # Also those that were replaced: their replacements are deleted.
            gone = run.evictions
            for pod in self._pods(run.uid):
                self._terminate(pod, end)
            run.active = 0
        for eviction in gone:
            eviction.obstacle = self._ended(run, end, eviction.pod)
        run.waiting.clear()

    def _ended(self, run: _JobRun, end: JobEnd, pod: Pod) -> JobEnded:
        job_set = pod.metadata.labels.get(JOB_SET, "")
        return JobEnded(run.name, end, run.state.failed, run.job.spec.backoff_limit, job_set)
