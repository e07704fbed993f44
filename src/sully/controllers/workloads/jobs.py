"""Runs Jobs: creates their pods, counts how they end, and finishes the Job.

Reads Jobs and pods; creates, deletes, adopts and releases pods, removes their finalizer, writes
the status of Jobs and events, and deletes Jobs after `ttlSecondsAfterFinished`. What happens next
is domain/workloads/jobs/sync.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from sully.client.events import reference
from sully.client.informers.informer import own_key
from sully.client.objects import key_of
from sully.client.options import DeleteOptions, PatchType
from sully.client.transport import Key
from sully.controllers.framework.controller import DONE, Result, Watch
from sully.controllers.workloads.kinds import JOBS
from sully.controllers.workloads.owned_pods import OwnedPods
from sully.controllers.workloads.pod_control import pod_of, prefix
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.jobs.failures import INDEX, SYNC_PERIOD, TRACKING, JobState
from sully.domain.workloads.jobs.objects import ENDS, Job, JobStatus
from sully.domain.workloads.jobs.pods import NewPod
from sully.domain.workloads.jobs.sync import JobSync, sync_job
from sully.domain.workloads.jobs.tracking import is_failed, is_tracked
from sully.machinery.errors import Invalid, NotFound
from sully.machinery.formats.timestamps import later
from sully.views.snapshot.kinds import PODS

_JOB_NAME = "batch.kubernetes.io/job-name"

_VARIABLE = "JOB_COMPLETION_INDEX"


class JobController:
    """Runs Jobs."""

    name = "job-controller"

    def __init__(self, owned: OwnedPods[Job]) -> None:
        self._owned = owned
        self._transport = owned.transport
        self._recorder = owned.recorder
        self._clock = owned.clock
        self._states: dict[str, JobState] = {}
        """The back-off of each Job, by uid."""
        self._pending: dict[str, datetime] = {}
        """Since when pods of a Job have ended that are not counted."""
        self._counted: dict[str, frozenset[str]] = {}
        """The ended pods of each Job that are counted, or about to be."""
        owned.owners.on_change(self._forget)

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for Jobs, and for their pods."""
        yield Watch(self._owned.owners, own_key)
        yield Watch(self._owned.pods.informer, _job_of)

    async def reconcile(self, key: Key) -> Result:
        """Take the next step of a Job."""
        job = self._owned.owners.get(key)
        await self._release_orphans(key, job)
        if job is None or job.is_managed_elsewhere:
            return DONE
        if job.is_finished:
            return await self._expire(job)
        pods = await self._owned.claim(job)
        wait = self._wait_for_more(job, pods)
        if wait is not None:
            return Result(requeue_after=wait)
        if not self._owned.expectations.satisfied(job.metadata.uid):
            return Result(requeue_after=timedelta(seconds=1))
        state = self._states.get(job.metadata.uid, JobState())
        step = sync_job(job, pods, state, self._clock.now())
        return await self._execute(job, step)

    def _wait_for_more(self, job: Job, pods: Iterable[Pod]) -> timedelta | None:
        """Return how long to collect further changes of pods before any of them is counted."""
        uid, now = job.metadata.uid, self._clock.now()
        ended = {pod.metadata.uid for pod in pods if is_tracked(pod) and _has_ended(pod, job)}
        if ended <= self._counted.get(uid, frozenset()):
            return None
        due = self._pending.setdefault(uid, now) + SYNC_PERIOD
        if due > now:
            return due - now
        self._counted[uid] = frozenset(ended)
        self._pending.pop(uid, None)
        return None

    async def _execute(self, job: Job, step: JobSync) -> Result:
        uid = job.metadata.uid
        bodies = [new_pod(job, pod) for pod in step.create]
        error = await self._owned.apply(job, delete=step.delete, create=bodies)
        if error is not None:
            raise error
        status = replace(step.status, active=step.status.active + len(step.create))
        if status != job.status:
            self._report(await self._owned.write_status(job, status), status)
        self._states[uid] = step.state
        for pod in step.release:
            await self._release(pod)
        if step.again_at is None:
            return DONE
        return Result(requeue_after=max(step.again_at - self._clock.now(), timedelta()))

    def _report(self, job: Job, status: JobStatus) -> None:
        """Emit the events of conditions that changed in this write."""
        for condition in status.conditions:
            if condition.last_transition_time != self._clock.now():
                continue
            about = reference(JOBS, job)
            match condition.type, condition.status:
                case "Suspended", "True":
                    self._recorder.event(about, "Normal", "Suspended", "Job suspended")
                case "Suspended", _:
                    self._recorder.event(about, "Normal", "Resumed", "Job resumed")
                case "Complete", _:
                    self._recorder.event(about, "Normal", "Completed", "Job completed")
                case "Failed", _:
                    reason, text = condition.reason, condition.message
                    self._recorder.event(about, "Warning", reason, text)
                case _:
                    pass

    # -- finalizers -------------------------------------------------------------------------------

    async def _release(self, pod: Pod) -> None:
        """Remove the finalizer of a pod, if it is still the same pod."""
        change = {
            "metadata": {
                "uid": pod.metadata.uid,
                "$deleteFromPrimitiveList/finalizers": ["batch.kubernetes.io/job-tracking"],
            }
        }
        try:
            await self._transport.patch(PODS, key_of(pod), change, PatchType.STRATEGIC)
        except (NotFound, Invalid):
            # Deleted, or recreated with the same name.
            return

    async def _release_orphans(self, key: Key, job: Job | None) -> None:
        """Remove the finalizer of pods whose Job does not exist, or is finished."""
        uid = job.metadata.uid if job is not None and not job.is_finished else ""
        for pod in self._owned.pods.in_namespace(key.namespace):
            if is_tracked(pod) and key in _job_of(pod):
                controller = pod.metadata.controller()
                if controller is None and job is not None:
                    continue
                if controller is None or controller.uid != uid:
                    await self._release(pod)

    # -- the end ----------------------------------------------------------------------------------

    async def _expire(self, job: Job) -> Result:
        """Delete a finished Job when its time to live is over."""
        self._discard(job.metadata.uid)
        ttl = job.spec.ttl_seconds_after_finished
        ends = [condition for type_ in ENDS if (condition := job.condition(type_)) is not None]
        times = [end.last_transition_time for end in ends if end.last_transition_time]
        if ttl is None or job.is_terminating or not times:
            return DONE
        wait = later(max(times), ttl) - self._clock.now()
        if wait > timedelta():
            return Result(requeue_after=wait)
        options = DeleteOptions(propagation_policy="Foreground", uid=job.metadata.uid)
        try:
            await self._transport.delete(JOBS, key_of(job), options)
        except NotFound:
            return DONE
        return DONE

    def _discard(self, uid: str) -> None:
        self._states.pop(uid, None)
        self._pending.pop(uid, None)
        self._counted.pop(uid, None)
        self._owned.expectations.forget(uid)

    def _forget(self, old: Job | None, new: Job | None) -> None:
        if new is None and old is not None:
            self._discard(old.metadata.uid)


def _has_ended(pod: Pod, job: Job) -> bool:
    return pod.status.phase == "Succeeded" or is_failed(pod, job)


def _job_of(pod: Pod) -> tuple[Key, ...]:
    """Return the Job of a pod; an orphan is found by its label as long as it has the finalizer."""
    controller, namespace = pod.metadata.controller(), pod.metadata.namespace
    if controller is not None:
        return (Key(namespace, controller.name),) if controller.kind == JOBS.kind else ()
    name = pod.metadata.labels.get(_JOB_NAME, "")
    return (Key(namespace, name),) if name else ()


def new_pod(job: Job, new: NewPod) -> dict[str, Any]:
    """Return a pod to create, with the finalizer that keeps it until it is counted."""
    body = pod_of(JOBS, job, job.spec.template)
    metadata = body["metadata"]
    metadata["finalizers"] = [*metadata.get("finalizers", ()), TRACKING]
    if new.index is not None:
        _set_index(body, job, new)
    return body


def _set_index(body: dict[str, Any], job: Job, new: NewPod) -> None:
    metadata, spec, index = body["metadata"], body["spec"], str(new.index)
    metadata["generateName"] = prefix(f"{job.name}-{index}")
    metadata["labels"] = metadata.get("labels", {}) | {INDEX: index}
    metadata["annotations"] = metadata.get("annotations", {}) | {INDEX: index, **new.annotations}
    spec["hostname"] = f"{job.name}-{index}"
    for name in ("initContainers", "containers"):
        if spec.get(name):
            spec[name] = [_with_variable(container) for container in spec[name]]


def _with_variable(container: dict[str, Any]) -> dict[str, Any]:
    env = container.get("env") or []
    if any(variable["name"] == _VARIABLE for variable in env):
        return container
    path = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    return {**container, "env": [*env, {"name": _VARIABLE, "valueFrom": path}]}
