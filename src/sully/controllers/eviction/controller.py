"""Runs the evictor: sends it what changes, and executes its effects.

Which pod is evicted when is decided in `sully.evictor`; executor.py calls the API, and status.py
reports the progress on the rules.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from sully.client.informers.informer import Informer
from sully.client.transport import Key
from sully.controllers.eviction.executor import Executor
from sully.controllers.eviction.metrics import EvictionMetrics
from sully.controllers.eviction.status import RuleStatuses
from sully.controllers.framework.controller import DONE, Result, Watch
from sully.controllers.framework.sources import Channel, same_key
from sully.domain.eviction.judge import Rules
from sully.domain.workloads.workloads import Budget
from sully.evictor.core import Evictor
from sully.evictor.effects import (
    Announce,
    CommitEviction,
    CountEviction,
    Effect,
    ReadPod,
    RefreshCache,
    ReportProgress,
    Requeue,
    RequeueAt,
)
from sully.evictor.events import (
    BudgetChanged,
    CacheConfirmed,
    Event,
    PodChanged,
    RulesReported,
)
from sully.runtime.backoff import Backoff
from sully.runtime.clock import Clock
from sully.views.devices.exposures import Exposures

NAME = "device-taint-eviction-controller"
WORKERS = 32
"""Kubernetes has 8; but concurrent writes share one flush of the store."""
BACKOFF = Backoff(base=0.005, cap=1000.0, jitter=0.0)
MAX_YIELDS = 20
"""How many iterations of the event loop an eviction waits for the status of a new rule."""


class EvictionController:
    """Evicts pods from tainted devices."""

    name = NAME

    def __init__(
        self,
        evictor: Evictor,
        exposures: Exposures,
        executor: Executor,
        statuses: RuleStatuses,
        metrics: EvictionMetrics,
        clock: Clock,
    ) -> None:
        self._evictor = evictor
        self._exposures = exposures
        self._executor = executor
        self._statuses = statuses
        self._metrics = metrics
        self._clock = clock
        self._requeued: Channel[Key] = Channel()
        self._caches: Sequence[Informer[Any]] = ()
        self._started = False
        metrics.unconfirmed(lambda: evictor.waiting_for_caches)

    def follow(self, caches: Sequence[Informer[Any]], budgets: Informer[Budget] | None) -> None:
        """Send an event to the evictor when a cache is confirmed or a budget changes."""
        self._caches = caches
        for number, cache in enumerate(caches):
            cache.freshness.on_confirmed(partial(self._send, CacheConfirmed(number)))
        if budgets is not None:
            budgets.on_change(lambda old, new: self._send(BudgetChanged(old, new)))

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for devices and their taints, pods and their claims, and for requeued pods."""
        yield Watch(self._exposures.inventory, self._exposures.affected_pods)
        yield Watch(self._exposures.usage, self._affected)
        yield Watch(self._requeued, same_key)

    def _affected(self, pods: frozenset[Key]) -> Iterable[Key]:
        # Until the first is reconciled, caches may still be filling.
        if not self._started:
            return pods
        now = self._clock.now()
        return [key for key in pods if self._evictor.concerns(key, now)]

    async def reconcile(self, key: Key) -> Result:
        """Evict a pod that is due, or requeue it for when it is."""
        self._started = True
        result = DONE
        effects = deque(self._step(PodChanged(key)))
        while effects:
            effect = effects.popleft()
            if isinstance(effect, RequeueAt):
                result = Result(requeue_after=effect.at - self._clock.now())
                continue
            answer = await self._execute(effect)
            if answer is not None:
                effects.extendleft(reversed(self._step(answer)))
        return result

    def _step(self, event: Event) -> list[Effect]:
        """Send an event; execute what cannot fail, and return the rest."""
        effects = self._evictor.step(event, self._clock.now())
        return [effect for effect in effects if not self._execute_sync(effect)]

    def _send(self, event: Event) -> None:
        """Send an event that is not about one pod: it only requeues pods."""
        self._step(event)

    def _execute_sync(self, effect: Effect) -> bool:
        """Execute an effect that needs no answer; return whether it is one."""
        match effect:
            case Requeue(key):
                self._requeued.send(key)
            case RefreshCache(number):
                self._caches[number].refresh()
            case ReportProgress(rules):
                self._statuses.enqueue_rules(rules)
            case CountEviction(_, delay):
                self._metrics.deleted(delay)
            case Announce():
                self._executor.announce(effect)
            case _:
                return False
        return True

    async def _execute(self, effect: Effect) -> Event | None:
        if isinstance(effect, ReadPod):
            await self._yield(effect.rules)
        elif isinstance(effect, CommitEviction) and self._statuses.lags(effect.rules):
            await self._yield(effect.rules)
            return RulesReported(effect.key)
        return await self._executor.execute(effect)

    async def _yield(self, rules: Rules) -> None:
        """Yield to other tasks: a thousand pods may be due together, and many watch them.

        A rule should report an eviction before it happens, but the eviction does not wait long.
        """
        for _ in range(MAX_YIELDS):
            await self._clock.sleep(0)
            if not self._statuses.lags(rules):
                return
