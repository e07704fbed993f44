"""The scheduling cycle: feeds the scheduling core with events and executes its effects.

Nothing is awaited between taking a pod and deciding, so a decision sees one state of the cluster.
The decision is `sully.scheduler.core`; binder.py writes it. Selectors that take long are evaluated
while other pods are scheduled.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from sully.api.resource.types import DeviceClass, ResourceClaim
from sully.client.informers.informer import Informer
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.controllers.evaluation import ExpressionEvaluation
from sully.controllers.framework.controller import DONE, Result, Watch
from sully.controllers.framework.sources import same_key
from sully.controllers.scheduling.bind_queue import BindQueue, RemoveDiagnosis, Report, Requeue
from sully.controllers.scheduling.metrics import ERROR as ERROR_RESULT
from sully.controllers.scheduling.metrics import UNSCHEDULABLE_RESULT, SchedulerMetrics
from sully.controllers.scheduling.pod_backoff import PodBackoff
from sully.domain.scheduling.decisions import ERROR
from sully.domain.scheduling.diagnosis import DEVICE_DIAGNOSIS
from sully.domain.scheduling.objects import Node, Pod
from sully.runtime.clock import Clock
from sully.runtime.evaluation import Evaluator
from sully.runtime.log import get_logger
from sully.scheduler.core import SchedulingCore
from sully.scheduler.effects import (
    Bind,
    CreateDeferred,
    Effect,
    MarkUnschedulable,
    WaitForClaims,
    WaitForEvaluation,
)

log = get_logger("scheduling")
CONTINUE = Result(requeue_after=timedelta(0))
"""There may be more active pods."""
BATCH = 8
"""Attempts before yielding to other tasks: a yield costs as much as a quick attempt."""
BATCH_SECONDS = 0.002
"""Seconds after which a batch ends early."""


class Evaluations:
    """The controllers that evaluate selectors.

    Evaluations larger than a slice have a controller of their own, so that a pod with many small
    ones does not wait for them.
    """

    def __init__(self, core: SchedulingCore, evaluator: Evaluator) -> None:
        self.light = ExpressionEvaluation("scheduler-evaluation", evaluator, core.evaluated)
        self.heavy = ExpressionEvaluation("scheduler-heavy-evaluation", evaluator, core.evaluated)

    def put(self, effect: WaitForEvaluation, seconds: float) -> None:
        """Evaluate what an attempt waits for; `seconds` is how long its last slice took."""
        evaluation = self.light if effect.unfinished.work is None else self.heavy
        evaluation.put(effect.key, effect.unfinished, seconds)


class Scheduler:
    """Executes the scheduling core."""

    name = "scheduler"

    def __init__(  # noqa: PLR0913 - what it reads, and where effects go
        self,
        *,
        core: SchedulingCore,
        pods: Informer[Pod],
        nodes: Informer[Node],
        claims: Informer[ResourceClaim],
        classes: Informer[DeviceClass],
        bind_queue: BindQueue,
        clock: Clock,
        metrics: SchedulerMetrics,
        evaluations: Evaluations,
    ) -> None:
        self._core = core
        self._bind_queue = bind_queue
        self._clock = clock
        self._metrics = metrics
        self._evaluations = evaluations
        self._back_off = PodBackoff()
        handlers = core.handlers
        nodes.on_change(handlers.node_changed)
        claims.on_change(handlers.claim_changed)
        classes.on_change(handlers.class_changed)
        core.devices.inventory.on_change(handlers.devices_changed)
        pods.on_change(self._pod_changed)
        metrics.follow("active", lambda: len(core.queue))
        metrics.follow("unschedulable", core.queue.waiting)
        metrics.follow("backoff", bind_queue.backing_off)
        metrics.follow("gated", lambda: len(handlers.gated))

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake when there are active pods; one key stands for the whole queue."""
        yield Watch(self._core.queue, same_key)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Handle a change of a pod, and drop the pending write of one that has a node."""
        self._core.handlers.pod_changed(old, new)
        if new is None:
            if old is not None:
                self._forget(key_of(old))
        elif new.spec.node_name and not self._core.is_in_progress(key := key_of(new)):
            self._bind_queue.drop(key)
            if new.condition(DEVICE_DIAGNOSIS) is not None:
                self._bind_queue.put(key, RemoveDiagnosis(new))

    def _forget(self, key: Key) -> None:
        """Forget a pod, so that another one with its name does not back off."""
        self._bind_queue.diagnosed.discard(key)
        if isinstance(self._bind_queue.get(key), Requeue):
            self._bind_queue.drop(key)
            self._core.requeue(key)

    async def reconcile(self, _: Key) -> Result:
        """Schedule the first pods of the queue."""
        # Yield to the workers that write earlier decisions.
        await self._clock.sleep(0)
        until = self._clock.monotonic() + BATCH_SECONDS
        for _attempt in range(BATCH):
            effect = self._core.schedule_one(self._clock.now())
            if effect is None:
                return DONE
            now = self._clock.monotonic()
            self._execute(effect, now)
            if now >= until:
                break
        return CONTINUE

    def _execute(self, effect: Effect, now: float) -> None:
        match effect:
            case Bind():
                self._metrics.decided(now - effect.attempt.began)
                self._bind_queue.put(effect.key, effect)
            case MarkUnschedulable():
                self._report(effect, now - effect.attempt.began)
            case WaitForEvaluation():
                self._evaluations.put(effect, now - effect.attempt.began)
            case WaitForClaims():
                message = effect.problem.message
                log.debug("pod not ready for scheduling", pod=str(effect.key), reason=message)
            case CreateDeferred():
                raise AssertionError("only pods of a plan are deferred")

    def _report(self, effect: MarkUnschedulable, seconds: float) -> None:
        pod, error = effect.pod, effect.result.error
        if effect.leftover is None:
            self._metrics.decided(seconds)
        result = ERROR_RESULT if error.reason == ERROR else UNSCHEDULABLE_RESULT
        self._metrics.attempted(pod, result, seconds)
        back_off = self._back_off.after(pod, error, self._clock.now())
        self._bind_queue.put(effect.key, Report(effect, back_off))
