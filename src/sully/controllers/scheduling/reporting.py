"""Writes why pods are unschedulable: the condition of Kubernetes, and our diagnosis in another.

The message of PodScheduled rarely changes. The diagnosis changes with every device that is
allocated or released, so alone it is written at most every half minute; states in between are
skipped, the last one is not.

Events expire, and `kubectl describe` does not show the messages of conditions. So the events of
unschedulable pods are repeated every half hour, and the pods are spread over that time.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final
from zlib import crc32

from sully.api.core.pods.conditions import POD_SCHEDULED
from sully.client.events import EventRecorder, reference
from sully.client.informers.informer import Informer
from sully.client.options import PatchType
from sully.client.transport import Key
from sully.controllers.framework.controller import DONE, ControllerEnv, Result
from sully.controllers.scheduling.bind_queue import BindQueue
from sully.domain.scheduling.decisions import FitError
from sully.domain.scheduling.diagnosis import DEVICE_DIAGNOSIS, Diagnosis, encode
from sully.domain.scheduling.objects import Pod, PodCondition
from sully.machinery.compat import Compat
from sully.machinery.errors import Conflict, NotFound
from sully.machinery.formats.timestamps import format_time, later
from sully.runtime.clock import Clock
from sully.scheduler.queue import SchedulingQueue
from sully.views.snapshot.kinds import PODS

FAILED_SCHEDULING: Final = "FailedScheduling"
INTERVAL: Final = timedelta(seconds=30)
"""Between two diagnoses of one pod, if nothing else is to be written."""

Obj = dict[str, Any]


class Reporter:
    """Writes why a pod is unschedulable."""

    def __init__(
        self,
        *,
        bind_queue: BindQueue,
        env: ControllerEnv,
        compat: Compat,
    ) -> None:
        self._bind_queue = bind_queue
        self._transport, self._recorder, self._clock = env
        self._compat = compat

    async def report(
        self, key: Key, pod: Pod, error: FitError, diagnosis: Diagnosis | None = None
    ) -> Result:
        """Write what the status does not show yet; return when to write the rest."""
        now, message = self._clock.now(), error.message
        reported = _is_reported(pod.condition(POD_SCHEDULED), error, message)
        change = self._diagnosis_change(pod, diagnosis, now)
        if reported and change is not None and (wait := _remaining(pod, now)) > timedelta(0):
            return Result(requeue_after=wait)
        conditions = [] if reported else [_condition(pod, error, message, now)]
        conditions += [change] if change is not None else []
        if conditions and not await self._patch(key, pod, conditions):
            return DONE
        if diagnosis is not None and self._compat.explains_pending_pods:
            self._bind_queue.diagnosed.add(key)
        if not (reported and self._compat.reports_failed_scheduling_on_change):
            regarding = reference(PODS, pod)
            self._recorder.event(regarding, "Warning", FAILED_SCHEDULING, message)
        return DONE

    async def remove_diagnosis(self, key: Key, pod: Pod) -> None:
        """Remove the diagnosis of a pod that has a node."""
        self._bind_queue.diagnosed.discard(key)
        await self._patch(key, pod, [_removed_diagnosis()])

    async def _patch(self, key: Key, pod: Pod, conditions: list[Obj]) -> bool:
        patch = {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": conditions}}
        try:
            await self._transport.patch(PODS, key, patch, PatchType.STRATEGIC, "status")
        except (NotFound, Conflict):
            # The pod is gone, or another one has its name.
            return False
        return True

    def _diagnosis_change(self, pod: Pod, diagnosis: Diagnosis | None, now: datetime) -> Obj | None:
        """Return the patch of the condition with the diagnosis; None if nothing changes."""
        current = pod.condition(DEVICE_DIAGNOSIS)
        if not self._compat.explains_pending_pods:
            return None
        if diagnosis is None:
            return _removed_diagnosis() if current is not None else None
        text = encode(diagnosis)
        if current is not None and (current.reason, current.message) == (diagnosis.reason, text):
            return None
        same = current is not None and current.reason == diagnosis.reason
        since = current.last_transition_time if current is not None and same else None
        return {
            "type": DEVICE_DIAGNOSIS,
            "status": "True",
            "reason": diagnosis.reason,
            "message": text,
            "lastProbeTime": format_time(now),
            "lastTransitionTime": format_time(since or now),
        }


def _is_reported(condition: PodCondition | None, error: FitError, message: str) -> bool:
    if condition is None:
        return False
    current = (condition.status, condition.reason, condition.message)
    return current == ("False", error.reason, message)


def _condition(pod: Pod, error: FitError, message: str, now: datetime) -> Obj:
    current = pod.condition(POD_SCHEDULED)
    since = (
        current.last_transition_time if current is not None and current.status == "False" else None
    )
    return {
        "type": POD_SCHEDULED,
        "status": "False",
        "reason": error.reason,
        "message": message,
        "lastTransitionTime": format_time(since or now),
    }


def _removed_diagnosis() -> Obj:
    return {"type": DEVICE_DIAGNOSIS, "$patch": "delete"}


def _remaining(pod: Pod, now: datetime) -> timedelta:
    """Return how long a diagnosis alone has to wait."""
    current = pod.condition(DEVICE_DIAGNOSIS)
    if current is None or current.last_probe_time is None:
        return timedelta(0)
    return later(current.last_probe_time, INTERVAL) - now


REPEAT_SECONDS: Final = 60.0
"""Seconds between two rounds."""
REPEAT_ROUNDS: Final = 30
"""Rounds in which each pod gets one event; they take less than the hour that events live."""


class EventRepeater:
    """Repeats the events of unschedulable pods."""

    def __init__(
        self, *, queue: SchedulingQueue, pods: Informer[Pod], recorder: EventRecorder, clock: Clock
    ) -> None:
        self._queue = queue
        self._pods = pods
        self._recorder = recorder
        self._clock = clock
        self._round = 0

    async def run(self) -> None:
        """Repeat events until cancelled."""
        while True:
            await self._clock.sleep(REPEAT_SECONDS)
            self._round = (self._round + 1) % REPEAT_ROUNDS
            self._repeat()

    def _repeat(self) -> None:
        for key in self._queue.unschedulable():
            pod = self._pods.get(key)
            if pod is None or crc32(pod.metadata.uid.encode()) % REPEAT_ROUNDS != self._round:
                continue
            condition = pod.condition(POD_SCHEDULED)
            if condition is not None and condition.status == "False":
                regarding = reference(PODS, pod)
                self._recorder.event(regarding, "Warning", FAILED_SCHEDULING, condition.message)
