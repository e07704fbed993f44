"""Writes why pods are unschedulable: the condition of Kubernetes, and our diagnosis beside it.

The message of PodScheduled rarely changes. The diagnosis changes with every device that is
allocated or released, so alone it is written at most every half minute; states in between are
skipped, the last one is not.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from sully.client.events import EventRecorder, reference
from sully.client.options import PatchType
from sully.client.transport import Key, Transport
from sully.controllers.framework import DONE, Result
from sully.controllers.scheduling.bind_queue import BindQueue
from sully.controllers.scheduling.kinds import PODS
from sully.domain.scheduling.decisions import FitError
from sully.domain.scheduling.diagnosis import CONDITION, Diagnosis, encode
from sully.domain.scheduling.objects import Pod, PodCondition
from sully.machinery.compat import Compat
from sully.machinery.errors import Conflict, NotFound
from sully.machinery.timestamps import format_time
from sully.runtime.clock import Clock

SCHEDULED: Final = "PodScheduled"
INTERVAL: Final = timedelta(seconds=30)
"""Between two diagnoses of one pod, if nothing else is to be written."""

Obj = dict[str, Any]


class Reporter:
    """Writes why a pod is unschedulable."""

    def __init__(
        self,
        *,
        bind_queue: BindQueue,
        transport: Transport,
        recorder: EventRecorder,
        clock: Clock,
        compat: Compat,
    ) -> None:
        self._bind_queue = bind_queue
        self._transport = transport
        self._recorder = recorder
        self._clock = clock
        self._compat = compat

    async def report(
        self, key: Key, pod: Pod, error: FitError, diagnosis: Diagnosis | None = None
    ) -> Result:
        """Write what the status does not show yet; return when to write the rest."""
        now, message = self._clock.now(), error.message
        shown = _shows(pod.condition(SCHEDULED), error, message)
        change = self._diagnosis(pod, diagnosis, now)
        if shown and change is not None and (wait := _wait(pod, now)) > timedelta(0):
            return Result(requeue_after=wait)
        conditions = [] if shown else [_condition(pod, error, message, now)]
        conditions += [change] if change is not None else []
        if conditions and not await self._patch(key, pod, conditions):
            return DONE
        if diagnosis is not None and self._compat.explains_pending_pods:
            self._bind_queue.diagnosed.add(key)
        if not (shown and self._compat.reports_failed_scheduling_on_change):
            regarding = reference(PODS, pod)
            self._recorder.event(regarding, "Warning", "FailedScheduling", message)
        return DONE

    async def remove_diagnosis(self, key: Key, pod: Pod) -> None:
        """Remove the diagnosis of a pod that has a node."""
        self._bind_queue.diagnosed.discard(key)
        await self._patch(key, pod, [_removed()])

    async def _patch(self, key: Key, pod: Pod, conditions: list[Obj]) -> bool:
        patch = {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": conditions}}
        try:
            await self._transport.patch(PODS, key, patch, PatchType.STRATEGIC, "status")
        except (NotFound, Conflict):
            # The pod is gone, or another one has its name.
            return False
        return True

    def _diagnosis(self, pod: Pod, diagnosis: Diagnosis | None, now: datetime) -> Obj | None:
        """Return what changes in the condition with the diagnosis; None for nothing."""
        known = pod.condition(CONDITION)
        if not self._compat.explains_pending_pods:
            return None
        if diagnosis is None:
            return _removed() if known is not None else None
        text = encode(diagnosis)
        if known is not None and (known.reason, known.message) == (diagnosis.reason, text):
            return None
        same = known is not None and known.reason == diagnosis.reason
        since = known.last_transition_time if known is not None and same else None
        return {
            "type": CONDITION,
            "status": "True",
            "reason": diagnosis.reason,
            "message": text,
            "lastProbeTime": format_time(now),
            "lastTransitionTime": format_time(since or now),
        }


def _shows(known: PodCondition | None, error: FitError, message: str) -> bool:
    wanted = ("False", error.reason, message)
    return known is not None and (known.status, known.reason, known.message) == wanted


def _condition(pod: Pod, error: FitError, message: str, now: datetime) -> Obj:
    known = pod.condition(SCHEDULED)
    since = known.last_transition_time if known is not None and known.status == "False" else None
    return {
        "type": SCHEDULED,
        "status": "False",
        "reason": error.reason,
        "message": message,
        "lastTransitionTime": format_time(since or now),
    }


def _removed() -> Obj:
    return {"type": CONDITION, "$patch": "delete"}


def _wait(pod: Pod, now: datetime) -> timedelta:
    """Return how long a diagnosis alone has to wait."""
    known = pod.condition(CONDITION)
    if known is None or known.last_probe_time is None:
        return timedelta(0)
    return known.last_probe_time + INTERVAL - now
