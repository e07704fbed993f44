"""Reconciles the decisions and the status of placements with the fleet.

The fleet (`views/fleet.py`) knows which placements a change may affect and what each should have;
here that is compared with what is written, and the difference is written. A placement is requeued
for when one of its tolerations expires.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from sully.api.cluster.types import PLACEMENT_LABEL, Placement, PlacementDecision
from sully.client.transport import Key
from sully.controllers.evaluation import BACKOFF, ExpressionEvaluation
from sully.controllers.framework.controller import DONE, Result, Watch
from sully.controllers.framework.sources import Channel, same_key
from sully.controllers.placement.binder import Binder, with_failure
from sully.controllers.placement.metrics import PlacementMetrics
from sully.controllers.placement.plans import DecisionWrites, by_name, make_plan
from sully.domain.placement.incremental.membership import BrokenSetError
from sully.domain.placement.rate_limiter import RateLimiter
from sully.domain.placement.results.notes import score_note
from sully.domain.placement.results.outcome import Outcome, is_disabled
from sully.machinery.cel import COST_BUDGET, SLICE, CostBudget, UnfinishedError
from sully.runtime.clock import Clock
from sully.runtime.evaluation import Evaluator
from sully.runtime.log import get_logger
from sully.views.fleet import FleetView
from sully.views.mutation_cache import MutationCache

log = get_logger("placement")

NAME = "placement-controller"
OWNER = "placement"
"""The index of decisions by their placement."""
MIN_DELAY = timedelta(milliseconds=1)
"""The least time until a requeue: a timer may fire a little early."""
_MAX_SCORES = 260
"""More clusters than fit into one note, even with the shortest names."""


class _Exceeded(msgspec.Struct, frozen=True):
    generation: int
    failures: int
    until: datetime


class EvaluationBudgets:
    """What each placement may still spend on expressions, and its back-off after it spent all."""

    def __init__(self, units: int = COST_BUDGET) -> None:
        self._units = units
        self._budgets: dict[Key, CostBudget] = {}
        self._exceeded: dict[Key, _Exceeded] = {}

    def budget(self, key: Key) -> CostBudget:
        """Return what is left of the budget for a decision."""
        return self._budgets.get(key) or CostBudget(self._units, per_slice=SLICE)

    def keep(self, key: Key, budget: CostBudget) -> None:
        """Keep what is left for an interrupted decision."""
        self._budgets[key] = budget

    def reset(self, key: Key) -> None:
        """Give the next decision a new budget."""
        self._budgets.pop(key, None)

    def back_off(self, key: Key, placement: Placement, now: datetime) -> datetime:
        """Return when a placement that exceeded its budget is retried."""
        exceeded = self._exceeded.get(key)
        failures = 1 + (exceeded.failures if exceeded is not None else 0)
        until = now + timedelta(seconds=BACKOFF.delay(failures))
        self._exceeded[key] = _Exceeded(placement.metadata.generation, failures, until)
        return until

    def backing_off(self, key: Key, placement: Placement, now: datetime) -> datetime | None:
        """Return until when a placement backs off; None also if its spec has changed."""
        exceeded = self._exceeded.get(key)
        if exceeded is None or exceeded.until <= now:
            return None
        return exceeded.until if exceeded.generation == placement.metadata.generation else None

    def forget(self, key: Key) -> None:
        """Forget a deleted placement."""
        self._budgets.pop(key, None)
        self._exceeded.pop(key, None)


class PlacementController:
    """Writes the decisions and the status of placements."""

    name = NAME

    def __init__(  # noqa: PLR0913 - what it reads, how it writes, and who evaluates
        self,
        *,
        view: FleetView,
        placements: MutationCache[Placement],
        decisions: MutationCache[PlacementDecision],
        binder: Binder,
        metrics: PlacementMetrics,
        clock: Clock,
        evaluator: Evaluator,
        budgets: EvaluationBudgets,
    ) -> None:
        self._view = view
        self._placements = placements
        self._decisions = decisions
        self._binder = binder
        self._metrics = metrics
        self._clock = clock
        self._rate_limiter = RateLimiter()
        self._budgets = budgets
        self._affected: Channel[Key] = Channel(lambda: map(Key._make, view.fleet.placements))
        """Placements that a change may affect, or whose expressions were evaluated."""
        view.enqueue(self._affected.send)
        self.evaluation = ExpressionEvaluation(
            "placement-evaluation", evaluator, self._affected.send
        )
        self._compat = view.fleet.options.compat

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for placements whose outcome may change."""
        yield Watch(self._affected, same_key)

    async def reconcile(self, key: Key) -> Result:
        """Write what of the decisions and the status of a placement has changed."""
        placement = self._placements.get(key)
        if placement is None:
            self._rate_limiter.forget(key)
            self._budgets.forget(key)
            return DONE
        if is_disabled(placement) or key in self.evaluation:
            return DONE
        now, started = self._clock.now(), self._clock.monotonic()
        if (until := self._budgets.backing_off(key, placement, now)) is not None:
            return _requeue_at(until, now)
        try:
            outcome = self._decide(key, now, self._budgets.budget(key))
        except UnfinishedError as unfinished:
            return self._postpone(key, unfinished, self._clock.monotonic() - started)
        self._budgets.reset(key)
        if outcome is None:
            return DONE
        # All of this before the first write: during a write the fleet may change.
        plan = make_plan(key.name, outcome, self._existing(key, outcome))
        allowed_at = self._rate_limiter.hold(key, now) if plan.changes_clusters else None
        if allowed_at is not None:
            return _requeue_at(allowed_at, now)
        scores = self._scores(key) if plan.changes_clusters else ""
        await self._write(placement, outcome, plan, scores)
        if outcome.back_off:
            return _requeue_at(self._budgets.back_off(key, placement, now), now)
        return _requeue_at(outcome.requeue_at, now)

    def _postpone(self, key: Key, unfinished: UnfinishedError, seconds: float) -> Result:
        """Continue a decision after other tasks, or after its expression was evaluated."""
        self._budgets.keep(key, unfinished.budget)
        if unfinished.work is not None:
            self.evaluation.put(key, unfinished)
            return DONE
        unfinished.budget.resume()
        return Result(requeue_after=timedelta(seconds=seconds))

    def _decide(self, key: Key, now: datetime, budget: CostBudget) -> Outcome | None:
        started = self._clock.monotonic()
        try:
            return self._view.decide(key, now, budget)
        except BrokenSetError as error:
            # Nothing is written until the set is corrected, which enqueues the placement.
            log.warning("failed to read a cluster set", placement=str(key), error=str(error))
            return None
        finally:
            self._metrics.decided(self._clock.monotonic() - started)

    def _existing(self, key: Key, outcome: Outcome) -> dict[str, PlacementDecision]:
        """Return the decisions with the placement's label, and those with one of its names."""
        decisions = by_name(self._decisions.by_index(OWNER, str(key)))
        for part in outcome.slices:
            if part.name not in decisions:
                unlabelled = self._decisions.get(Key(key.namespace, part.name))
                if unlabelled is not None:
                    decisions[part.name] = unlabelled
        return decisions

    def _scores(self, key: Key) -> str:
        return score_note(self._view.totals(key, _MAX_SCORES))

    async def _write(
        self, placement: Placement, outcome: Outcome, plan: DecisionWrites, scores: str
    ) -> None:
        started = self._clock.monotonic()
        problem = await self._binder.bind(placement, plan, outcome.status, scores)
        self._metrics.bound(self._clock.monotonic() - started)
        if problem is not None and self._compat.reports_failed_decisions:
            outcome = with_failure(outcome, problem.message)
        await self._binder.update_status(placement, outcome, self._clock.now())
        if problem is not None:
            raise problem


def _requeue_at(at: datetime | None, now: datetime) -> Result:
    return DONE if at is None else Result(requeue_after=max(at - now, MIN_DELAY))


def index_owner(decision: PlacementDecision) -> Iterable[str]:
    """Return the key of the placement of a decision, as text."""
    label = decision.metadata.labels.get(PLACEMENT_LABEL)
    return (str(Key(decision.metadata.namespace, label)),) if label else ()
