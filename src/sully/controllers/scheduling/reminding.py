"""Says again why pods wait: an event about a pod that has waited for hours has long expired.

`kubectl describe` shows events and no messages of conditions, so without this it would say nothing
about such a pod. Each one comes up every half hour, and the pods are spread over that time; what
is said stands in the condition that telling.py wrote.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

from sully.client.events import EventRecorder, reference
from sully.client.informers.informer import Informer
from sully.controllers.scheduling.kinds import PODS
from sully.controllers.scheduling.queue import Queue
from sully.controllers.scheduling.telling import SCHEDULED
from sully.domain.scheduling.objects import Pod
from sully.runtime.clock import Clock

EVERY: Final = 60.0
"""Seconds between two rounds."""
ROUNDS: Final = 30
"""After so many rounds each pod has come up once; well within the hour that events live."""


class Reminder:
    """Repeats the events of pods that wait for a change."""

    def __init__(
        self, *, queue: Queue, pods: Informer[Pod], recorder: EventRecorder, clock: Clock
    ) -> None:
        self._queue = queue
        self._pods = pods
        self._recorder = recorder
        self._clock = clock
        self._round = 0

    async def run(self) -> None:
        """Remind for ever."""
        while True:
            await self._clock.sleep(EVERY)
            self._round = (self._round + 1) % ROUNDS
            self._remind()

    def _remind(self) -> None:
        for key in self._queue.parked():
            pod = self._pods.get(key)
            if pod is None or crc32(pod.metadata.uid.encode()) % ROUNDS != self._round:
                continue
            why = pod.condition(SCHEDULED)
            if why is not None and why.status == "False":
                about = reference(PODS, pod)
                self._recorder.event(about, "Warning", "FailedScheduling", why.message)
