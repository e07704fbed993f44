"""Whether a pod may be evicted now: everything that delays an eviction.

In this order: tolerations and pauses (the verdict of `domain/eviction/judge.py`), the freshness of
the caches, the rates of the taints, and the budgets, whose answer comes from the API.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import msgspec

from sully.client.transport import Key
from sully.domain.eviction.judge import Evict, EvictingTaint, Hold, Wait, needs_budget
from sully.domain.eviction.rates import Limit, limits
from sully.domain.workloads.workloads import Budget
from sully.evictor.budget_queue import BudgetWaitQueue
from sully.evictor.events import EvictionRefused
from sully.evictor.freshness import CacheFreshness, Freshness
from sully.evictor.rate_limiter import NOT_FIRST, EvictionRateLimiter, EvictionTimes
from sully.evictor.settings import EvictionOptions
from sully.runtime.backoff import Backoff

REFUSED = Backoff(base=1.0, cap=300.0, jitter=0.0)
"""When to retry an eviction that a budget refused, if no event shows that it allows more."""


# -- why a pod is not evicted yet -----------------------------------------------------------------


class Tolerated(msgspec.Struct, frozen=True, gc=False):
    """Its tolerations have not expired."""


class Paused(msgspec.Struct, frozen=True, gc=False):
    """All rules that evict it are paused."""

    reasons: tuple[EvictingTaint, ...]


class StaleCache(msgspec.Struct, frozen=True, gc=False):
    """The server has not confirmed the caches recently enough."""


class RateLimited(msgspec.Struct, frozen=True, gc=False):
    """Other pods are first at the rate of its taints, or of the cluster."""


class BudgetExhausted(msgspec.Struct, frozen=True, gc=False):
    """Its PodDisruptionBudgets do not allow it; no key if the budget is not in the cache yet."""

    budgets: tuple[Key, ...]


DelayCause = Tolerated | Paused | StaleCache | RateLimited | BudgetExhausted
TOLERATED, STALE_CACHE, RATE_LIMITED = Tolerated(), StaleCache(), RateLimited()


class Delayed(msgspec.Struct, frozen=True, gc=False):
    """A pod will be evicted, but not now."""

    cause: DelayCause
    until: datetime | None = None
    """When to retry; None if an event requeues it."""


class Passed(msgspec.Struct, frozen=True, gc=False):
    """A pod may be evicted now."""

    within_budget: bool
    """Only if its budgets allow it."""


_NOT_FIRST = Delayed(RATE_LIMITED)
_PASSED, _WITHIN_BUDGET = Passed(within_budget=False), Passed(within_budget=True)


class DueEviction:
    """A verdict to evict, the taints that are due, and their limits; both can only become more."""

    __slots__ = ("_default", "_due", "_rates", "limits", "verdict", "within_budget")

    def __init__(self, verdict: Evict, options: EvictionOptions) -> None:
        self.verdict = verdict
        self._rates = options.rates
        self._default = options.default_per_second
        self._due = 0
        self.limits: tuple[Limit, ...] = ()
        self.within_budget = True
        """Whether all taints that are due honor budgets."""

    @property
    def all_due(self) -> bool:
        """Report whether all taints were due at the last update: time changes no limit then."""
        return self._due == len(self.verdict.because)

    def update(self, now: datetime) -> None:
        """Update what is due by now."""
        if not self.all_due:
            due = self.verdict.due(now)
            self._due = len(due)
            self.within_budget = needs_budget(due)
            if self._rates:
                # A taint that is not due does not make an eviction any faster.
                taints = (reason.taint for reason in due)
                self.limits = limits(taints, default=self._default)


class EvictionChecks:
    """Decides whether pods may be evicted now, and requeues those that may be later."""

    def __init__(
        self,
        options: EvictionOptions,
        *,
        past: EvictionTimes,
        caches: Sequence[Freshness],
        requeue: Callable[[Key], None],
        wait: Callable[[Key, datetime], None],
        refresh: Callable[[int], None],
    ) -> None:
        self._retry = not options.authoritative_cache
        self._rates = EvictionRateLimiter(
            requeue, wait, past=past, max_per_minute=options.max_per_minute
        )
        self._budgets = BudgetWaitQueue(self._budget_allows)
        self.freshness = CacheFreshness(
            caches, options.max_staleness, requeue=requeue, refresh=refresh
        )
        self._requeue = requeue
        self._refusals: dict[Key, int] = {}

    def check(
        self, key: Key, decision: Hold | Wait | DueEviction, now: datetime
    ) -> Passed | Delayed:
        """Check a pod; one that passes holds a rate token until `evicted` or `release`."""
        if not isinstance(decision, DueEviction):
            self.release(key)
            if isinstance(decision, Wait):
                return Delayed(TOLERATED, decision.until)
            return Delayed(Paused(decision.because))
        if not self.freshness.is_fresh(key):
            # Other pods may use the token meanwhile.
            self._rates.release(key)
            return Delayed(STALE_CACHE)
        decision.update(now)
        at = self._rates.take(key, decision.limits, now)
        if at is not None:
            return _NOT_FIRST if at is NOT_FIRST else Delayed(RATE_LIMITED, at)
        return _WITHIN_BUDGET if decision.within_budget else _PASSED

    def refuse(self, answer: EvictionRefused, verdict: Evict, now: datetime) -> Delayed:
        """Handle the refusal of a budget: the pod waits until it allows more, or is not asked."""
        key = answer.key
        self._rates.release(key)
        budgets = self._budgets.add(answer)
        later = [
            reason.due for reason in verdict.because if reason.due is not None and reason.due > now
        ]
        if self._retry:
            refusals = self._refusals[key] = self._refusals.get(key, 0) + 1
            later.append(now + timedelta(seconds=REFUSED.delay(refusals)))
        return Delayed(BudgetExhausted(budgets), min(later, default=None))

    def budget_changed(self, old: Budget | None, new: Budget | None) -> None:
        """Handle a change of a budget."""
        self._budgets.budget_changed(old, new)

    def evicted(self, key: Key) -> None:
        """Note that a pod was evicted: its token is used."""
        self._refusals.pop(key, None)
        self._rates.evicted(key)
        self._budgets.evicted(key)

    def release(self, key: Key) -> None:
        """Release the token and the queue positions of a pod that is not evicted now."""
        self._refusals.pop(key, None)
        self._rates.release(key)
        self._budgets.release(key)

    def _budget_allows(self, key: Key) -> None:
        self._refusals.pop(key, None)
        self._requeue(key)
