"""Repeats the events of unschedulable pods: those of a pod that waits for hours have expired.

`kubectl describe` shows events and no messages of conditions, so without this it would show nothing
about such a pod. Each pod gets an event every half hour, and the pods are spread over that time;
the message is that of the condition that reporting.py wrote.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

from sully.client.events import EventRecorder, reference
from sully.client.informers.informer import Informer
from sully.controllers.scheduling.kinds import PODS
from sully.controllers.scheduling.reporting import SCHEDULED
from sully.domain.scheduling.objects import Pod
from sully.runtime.clock import Clock
from sully.scheduler.queue import SchedulingQueue

EVERY: Final = 60.0
"""Seconds between two rounds."""
ROUNDS: Final = 30
"""After so many rounds each pod got one event; well within the hour that events live."""


class Reminder:
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
            await self._clock.sleep(EVERY)
            self._round = (self._round + 1) % ROUNDS
            self._remind()

    def _remind(self) -> None:
        for key in self._queue.unschedulable():
            pod = self._pods.get(key)
            if pod is None or crc32(pod.metadata.uid.encode()) % ROUNDS != self._round:
                continue
            condition = pod.condition(SCHEDULED)
            if condition is not None and condition.status == "False":
                regarding = reference(PODS, pod)
                self._recorder.event(regarding, "Warning", "FailedScheduling", condition.message)
