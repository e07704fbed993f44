"""Evicts pods whose devices carry taints that nothing tolerates any longer.

Reads the inventory's tainted devices and who holds them; writes pod deletions and events. The
decision is `domain.eviction.judge`; this file only fetches, asks and acts. How fast is asked of
pacer.py, and what all that means for the rules that wanted it is told to status.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sully.client.informers.informer import Informer
from sully.client.transport import Key
from sully.controllers.eviction.evictor import Departure, Evictor, Outcome, Refusal
from sully.controllers.eviction.kept import Kept
from sully.controllers.eviction.metrics import EvictionMetrics
from sully.controllers.eviction.outlook import Outlook
from sully.controllers.eviction.pacer import NOT_YET, Pacer
from sully.controllers.eviction.records import rules_in
from sully.controllers.eviction.requests import Requests
from sully.controllers.eviction.sight import Sight
from sully.controllers.eviction.status import RuleStatuses
from sully.controllers.framework import DONE, Result, Watch
from sully.domain.claims.pods import Pod
from sully.domain.eviction.judge import (
    KEEP,
    Evict,
    Hold,
    Keep,
    Reason,
    Verdict,
    Wait,
    needs_budget,
)
from sully.domain.eviction.rates import Limit, limits
from sully.domain.workloads.workloads import Budget
from sully.runtime.backoff import Backoff

NAME = "device-taint-eviction-controller"
WORKERS = 32
"""Kubernetes has 8; but writes that are under way together are made durable together."""
BACKOFF = Backoff(base=0.005, cap=1000.0, jitter=0.0)
TURNS = 20
"""How many turns of the loop an eviction leaves to the status of a new rule."""
REFUSED = Backoff(base=1.0, cap=300.0, jitter=0.0)
"""How long to wait after a budget refused an eviction; it is noticed before when it has room."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """A pod that is to leave."""

    uid: str
    at: datetime | None
    """None while everything that wants it is paused."""
    because: tuple[Reason, ...]


class EvictionController:
    """Makes pods leave tainted devices."""

    name = NAME

    def __init__(
        self,
        outlook: Outlook,
        evictor: Evictor,
        statuses: RuleStatuses,
        metrics: EvictionMetrics,
        caches: Iterable[Informer[Any]],
        budgets: Informer[Budget] | None,
    ) -> None:
        self._exposures = outlook.exposures
        self._records = outlook.records
        self._clock = outlook.clock
        self._options = outlook.options
        self._evictor = evictor
        self._statuses = statuses
        self._metrics = metrics
        self._requests = Requests()
        most = outlook.options.max_per_minute
        self._pacer = Pacer(self._requests.add, past=outlook.records, max_per_minute=most)
        self._sight = Sight(caches, outlook.options.max_staleness, self._requests.add)
        self._kept = Kept(self._has_room, budgets)
        metrics.unconfirmed(lambda: self._sight.waiting)
        self._plans: dict[Key, _Plan] = {}
        self._refusals: dict[Key, int] = {}
        self._begun = False

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for devices and their taints, pods and their claims, and for whose turn it is."""
        yield Watch(self._exposures.inventory, self._exposures.touched_by)
        yield Watch(self._exposures.usage, self._concerned)
        yield Watch(self._requests, lambda key: (key,))

    def _concerned(self, pods: frozenset[Key]) -> Iterable[Key]:
        """Return the pods that must leave, or were to: most come, run and go without a taint."""
        # Until the first is looked at, caches may still be filling.
        return filter(self._concerns, pods) if self._begun else pods

    def _concerns(self, key: Key) -> bool:
        if key in self._plans or self._records.open(key) is not None:
            return True
        pod = self._exposures.usage.pod(key)
        return pod is not None and self._judge(pod) is not KEEP

    async def reconcile(self, key: Key) -> Result:
        """Make a pod leave if it must, or look again when its time has come."""
        self._begun = True
        pod = self._exposures.usage.pod(key)
        plan = self._plans.get(key)
        if plan is not None and (pod is None or pod.metadata.uid != plan.uid):
            self._drop(key)
        await self._settle_record(key, pod)
        if pod is None:
            return DONE
        verdict = self._judge(pod)
        match verdict:
            case Keep():
                return await self._keep(key, pod)
            case Hold(because):
                self._plan(key, pod, None, because)
                self._stays(key)
                return DONE
            case Wait(until, because, paused):
                self._plan(key, pod, until, because + paused)
                self._stays(key)
                return Result(requeue_after=until - self._clock.now())
            case Evict(since, because, paused):
                self._plan(key, pod, since, because + paused)
                return await self._evict_at_its_pace(key, pod, verdict)

    def _judge(self, pod: Pod) -> Verdict:
        ignored = pod.leaving and self._options.compat.ignores_finished_pods
        if self._exposures.has_departed(pod) or ignored:
            # Nothing more can be done to a pod that is on its way.
            return KEEP
        return self._exposures.judge(pod)

    async def _settle_record(self, key: Key, pod: Pod | None) -> None:
        """Deal with the open record of a pod that went while nobody watched."""
        known = self._records.open(key)
        if known is None or (pod is not None and pod.metadata.uid == known.uid and not pod.leaving):
            return
        if not known.sent:
            await self._records.withdraw(key)
            return
        self._records.close(key)
        self._statuses.evicted(known.rules, now=known.ours)
        if known.ours:
            self._metrics.deleted(0.0)

    def _plan(self, key: Key, pod: Pod, at: datetime | None, because: tuple[Reason, ...]) -> None:
        plan = _Plan(pod.metadata.uid, at, because)
        before = self._plans.get(key)
        if before != plan:
            self._plans[key] = plan
            self._statuses.concern((*because, *(before.because if before is not None else ())))

    def _drop(self, key: Key) -> _Plan | None:
        plan = self._plans.pop(key, None)
        self._stays(key)
        self._sight.forget(key)
        if plan is not None:
            self._statuses.concern(plan.because)
        return plan

    async def _keep(self, key: Key, pod: Pod) -> Result:
        plan = self._drop(key)
        if not pod.leaving:
            await self._records.withdraw(key)
            if plan is not None:
                self._evictor.cancel(key, plan.uid)
        return DONE

    async def _evict_at_its_pace(self, key: Key, pod: Pod, verdict: Evict) -> Result:
        if not self._sight.clear(key):
            # Others go first; it is woken when the server has confirmed what we believe.
            self._pacer.stays(key)
            return DONE
        now = self._clock.now()
        wait = self._pacer.ask(key, self._limits(verdict, now), now)
        if wait == NOT_YET:
            # Whoever is before us wakes us.
            return DONE
        return Result(requeue_after=wait) if wait else await self._evict(key, pod, verdict)

    def _limits(self, verdict: Evict, now: datetime) -> tuple[Limit, ...]:
        if not self._options.rates:
            return ()
        # A taint whose time has not come does not make the pod leave any faster.
        taints = (each.taint for each in verdict.due(now))
        return limits(taints, default=self._options.default_per_second)

    async def _evict(self, key: Key, pod: Pod, verdict: Evict) -> Result:
        await self._give_way(verdict)
        within_budget = needs_budget(verdict.due(self._clock.now()))
        outcome = await self._evictor.evict(
            Departure(pod, verdict, lambda: self._still(key, pod.metadata.uid), within_budget)
        )
        match outcome:
            case Outcome.SPARED:
                # What changed has woken us again, or will.
                self._pacer.stays(key)
                return DONE
            case Refusal(labels, ready):
                self._kept.refused(key, labels, ready=ready)
                return self._refused(key, verdict)
            case _:
                self._departed(key, pod, verdict, outcome)
                return DONE

    async def _give_way(self, verdict: Evict) -> None:
        """Let others run: a thousand pods may be due at once, and all should see them go.

        What will happen is to be said before it happens, but nobody waits long for that.
        """
        for _ in range(TURNS):
            await self._clock.sleep(0)
            if not self._statuses.lags(verdict.because):
                return

    def _departed(self, key: Key, pod: Pod, verdict: Evict, outcome: Outcome) -> None:
        plan = self._plans.pop(key)
        self._exposures.departed(pod.metadata.uid)
        # Kubernetes also counts pods that someone else had deleted.
        counts_leaving = not self._options.compat.ignores_finished_pods
        if outcome is Outcome.EVICTED or (outcome is Outcome.LEAVING and counts_leaving):
            self._refusals.pop(key, None)
            self._pacer.left(key)
            self._kept.left(key)
            self._statuses.evicted(rules_in(verdict.because))
            self._metrics.deleted((self._clock.now() - verdict.since).total_seconds())
        else:
            self._stays(key)
        self._statuses.concern(plan.because)

    def _refused(self, key: Key, verdict: Evict) -> Result:
        """Let others go first, until there may be room or no budget has a say any more."""
        self._pacer.stays(key)
        tries = self._refusals[key] = self._refusals.get(key, 0) + 1
        now, wait = self._clock.now(), timedelta(seconds=REFUSED.delay(tries))
        later = (each.due - now for each in verdict.because if each.due is not None)
        return Result(requeue_after=min([wait, *(each for each in later if each > timedelta(0))]))

    def _has_room(self, key: Key) -> None:
        self._refusals.pop(key, None)
        self._requests.add(key)

    def _stays(self, key: Key) -> None:
        """Leave what a pod waited for to others: it does not leave, at least not now."""
        self._refusals.pop(key, None)
        self._pacer.stays(key)
        self._kept.stays(key)

    def _still(self, key: Key, uid: str) -> bool:
        pod = self._exposures.usage.pod(key)
        if pod is None or pod.metadata.uid != uid:
            return False
        return isinstance(self._judge(pod), Evict) and self._sight.clear(key)
