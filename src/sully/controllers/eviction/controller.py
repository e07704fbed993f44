"""Evicts pods whose devices carry taints that nothing tolerates any longer.

Reads the inventory's tainted devices and who holds them; writes pod deletions and events. The
decision is `domain.eviction.judge`; this file only fetches, asks and acts. What that means for the
rules that wanted it is told to status.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sully.client.transport import Key
from sully.controllers.eviction.evictor import Evictor, Outcome
from sully.controllers.eviction.metrics import EvictionMetrics
from sully.controllers.eviction.status import RuleStatuses
from sully.controllers.framework import DONE, Result, Watch
from sully.domain.eviction import KEEP, Evict, Keep, Reason, Verdict, Wait, judge
from sully.runtime.backoff import Backoff
from sully.runtime.clock import Clock
from sully.views.exposures import Exposures
from sully.views.kinds import Pod

NAME = "device-taint-eviction-controller"
WORKERS = 32
"""Kubernetes has 8; but writes that are under way together are made durable together."""
BACKOFF = Backoff(base=0.005, cap=1000.0, jitter=0.0)


@dataclass(frozen=True, slots=True)
class _Plan:
    """A pod that is to leave."""

    uid: str
    at: datetime
    because: tuple[Reason, ...]


class EvictionController:
    """Makes pods leave tainted devices."""

    name = NAME

    def __init__(
        self,
        *,
        exposures: Exposures,
        evictor: Evictor,
        statuses: RuleStatuses,
        clock: Clock,
        metrics: EvictionMetrics | None = None,
        strict: bool = False,
    ) -> None:
        self._exposures = exposures
        self._evictor = evictor
        self._statuses = statuses
        self._clock = clock
        self._metrics = metrics
        self._strict = strict
        self._plans: dict[Key, _Plan] = {}

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for devices and their taints, and for pods and their claims."""
        yield Watch(self._exposures.inventory, self._exposures.touched_by)
        yield Watch(self._exposures.usage, lambda pods: pods)

    async def reconcile(self, key: Key) -> Result:
        """Make a pod leave if it must, or look again when its time has come."""
        pod = self._exposures.usage.pod(key)
        plan = self._plans.get(key)
        if plan is not None and (pod is None or pod.metadata.uid != plan.uid):
            self._drop(key)
        if pod is None:
            return DONE
        match self._judge(pod):
            case Keep():
                self._keep(key, pod)
                return DONE
            case Wait(until, because):
                self._plan(key, pod, until, because)
                return Result(requeue_after=until - self._clock.now())
            case Evict(since, because):
                self._plan(key, pod, since, because)
                return await self._evict(key, pod)

    def _judge(self, pod: Pod) -> Verdict:
        if self._exposures.has_departed(pod) or (pod.leaving and not self._strict):
            # Nothing more can be done to a pod that is on its way.
            return KEEP
        return judge(self._exposures.of(pod), now=self._clock.now(), strict=self._strict)

    def _plan(self, key: Key, pod: Pod, at: datetime, because: tuple[Reason, ...]) -> None:
        plan = _Plan(pod.metadata.uid, at, because)
        before = self._plans.get(key)
        if before != plan:
            self._plans[key] = plan
            self._statuses.concern((*because, *(before.because if before is not None else ())))

    def _drop(self, key: Key) -> _Plan | None:
        plan = self._plans.pop(key, None)
        if plan is not None:
            self._statuses.concern(plan.because)
        return plan

    def _keep(self, key: Key, pod: Pod) -> None:
        plan = self._drop(key)
        if plan is not None and not pod.leaving:
            self._evictor.cancel(key, plan.uid)

    async def _evict(self, key: Key, pod: Pod) -> Result:
        plan, uid = self._plans[key], pod.metadata.uid
        # A thousand pods may be due at once; whoever watches should see them go one by one.
        await self._clock.sleep(0)
        outcome = await self._evictor.evict(key, uid, lambda: self._still(key, uid))
        if outcome is Outcome.SPARED:
            # What changed has woken us again, or will.
            return DONE
        del self._plans[key]
        self._exposures.departed(uid)
        # Kubernetes also counts pods that someone else had deleted.
        if outcome is Outcome.EVICTED or (outcome is Outcome.LEAVING and self._strict):
            self._statuses.evicted(plan.because)
            if self._metrics is not None:
                self._metrics.deleted((self._clock.now() - plan.at).total_seconds())
        else:
            self._statuses.concern(plan.because)
        return DONE

    def _still(self, key: Key, uid: str) -> bool:
        pod = self._exposures.usage.pod(key)
        if pod is None or pod.metadata.uid != uid:
            return False
        return isinstance(self._judge(pod), Evict)
