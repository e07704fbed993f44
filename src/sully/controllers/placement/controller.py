"""Keeps the decisions and the status of placements as the fleet would have them.

The fleet (`views/fleet.py`) says which placements a change may matter to and what each should
have; here that is compared with what is written, and the difference is written. A placement is
looked at again exactly when a toleration of it runs out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from sully.api.cluster.types import PLACEMENT_LABEL, Placement, PlacementDecision
from sully.client.transport import Key
from sully.controllers.evaluation import ExpressionEvaluation, KeySource
from sully.controllers.framework import DONE, Result, Watch
from sully.controllers.placement.binder import Binder
from sully.controllers.placement.metrics import PlacementMetrics
from sully.controllers.placement.passes import Passes
from sully.controllers.placement.plans import Plan, by_name, make_plan
from sully.controllers.placement.statuses import failed, status_patch
from sully.domain.placement.membership import BrokenSetError
from sully.domain.placement.notes import score_note
from sully.domain.placement.outcome import Outcome, is_disabled
from sully.domain.placement.rate_limiter import RateLimiter
from sully.machinery.cel import CostBudget, UnfinishedError
from sully.runtime.clock import Clock
from sully.runtime.evaluation import Evaluator
from sully.runtime.log import get_logger
from sully.views.fleet import FleetView
from sully.views.mutation_cache import MutationCache

log = get_logger("placement")

NAME = "placement-controller"
OWNER = "placement"
"""The index of decisions by the placement they are for."""
MOMENT = timedelta(milliseconds=1)
"""The least time between two looks: a timer may ring a little before the clock is there."""
_MOST_SCORES = 260
"""More clusters than the shortest names let into one note."""


class _Touches:
    """The fleet as a source of keys."""

    def __init__(self, view: FleetView) -> None:
        self._view = view

    def enqueue(
        self, add: Callable[[Key], None], to_keys: Callable[[Key], Iterable[Key]]
    ) -> Callable[[], None]:
        """Add the placements that a change may matter to."""

        def handle(touched: Key) -> None:
            for key in to_keys(touched):
                add(key)

        return self._view.enqueue(handle)


class PlacementController:
    """Gives placements their clusters."""

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
        passes: Passes,
    ) -> None:
        self._view = view
        self._placements = placements
        self._decisions = decisions
        self._binder = binder
        self._metrics = metrics
        self._clock = clock
        self._rate_limiter = RateLimiter()
        self._passes = passes
        self._evaluated = KeySource()
        self.evaluating = ExpressionEvaluation(
            "placement-evaluation", evaluator, self._evaluated.add
        )
        self._compat = view.fleet.options.compat

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for placements that may come out otherwise."""
        yield Watch(_Touches(self._view), lambda key: (key,))
        yield Watch(self._evaluated, lambda key: (key,))

    async def reconcile(self, key: Key) -> Result:
        """Write what a placement should have, where something else stands."""
        placement = self._placements.get(key)
        if placement is None:
            self._rate_limiter.forget(key)
            self._passes.forget(key)
            return DONE
        if is_disabled(placement) or key in self.evaluating:
            return DONE
        now, began = self._clock.now(), self._clock.monotonic()
        if (until := self._passes.held(key, placement, now)) is not None:
            return _look_again(until, now)
        try:
            outcome = self._decide(key, now, self._passes.budget(key))
        except UnfinishedError as unfinished:
            return self._postpone(key, unfinished, self._clock.monotonic() - began)
        self._passes.ended(key)
        if outcome is None:
            return DONE
        # All of this before the first write: while one is under way the fleet goes on changing.
        plan = make_plan(key.name, outcome, self._existing(key, outcome))
        held = self._rate_limiter.hold(key, now) if plan.changes_clusters else None
        if held is not None:
            return _look_again(held, now)
        scores = self._scores(key) if plan.changes_clusters else ""
        await self._write(key, placement, outcome, plan, scores)
        if outcome.back_off:
            return _look_again(self._passes.exceeded(key, placement, now), now)
        return _look_again(outcome.requeue_at, now)

    def _postpone(self, key: Key, unfinished: UnfinishedError, took: float) -> Result:
        """Go on with a pass when others had a turn, or its expression was evaluated."""
        self._passes.interrupted(key, unfinished.budget)
        if unfinished.work is not None:
            self.evaluating.put(key, unfinished)
            return DONE
        unfinished.budget.resume()
        return Result(requeue_after=timedelta(seconds=took))

    def _decide(self, key: Key, now: datetime, budget: CostBudget) -> Outcome | None:
        began = self._clock.monotonic()
        try:
            return self._view.decide(key, now, budget)
        except BrokenSetError as error:
            # Nothing is written until the set is mended, and that will wake us.
            log.warning("failed to read a cluster set", placement=str(key), error=str(error))
            return None
        finally:
            self._metrics.decided(self._clock.monotonic() - began)

    def _existing(self, key: Key, outcome: Outcome) -> dict[str, PlacementDecision]:
        """Return the decisions with the placement's label, and those with a name it needs."""
        found = by_name(self._decisions.by_index(OWNER, str(key)))
        for part in outcome.slices:
            if part.name not in found:
                unlabelled = self._decisions.get(Key(key.namespace, part.name))
                if unlabelled is not None:
                    found[part.name] = unlabelled
        return found

    def _scores(self, key: Key) -> str:
        return score_note(self._view.totals(key, _MOST_SCORES))

    async def _write(
        self, key: Key, placement: Placement, outcome: Outcome, plan: Plan, scores: str
    ) -> None:
        began = self._clock.monotonic()
        problem = await self._binder.bind(placement, plan, outcome.status, scores)
        self._metrics.bound(self._clock.monotonic() - began)
        if problem is not None and self._compat.reports_failed_decisions:
            outcome = failed(outcome, problem.message)
        await self._tell(key, placement, outcome)
        if problem is not None:
            raise problem

    async def _tell(self, key: Key, placement: Placement, outcome: Outcome) -> None:
        patch = status_patch(placement, outcome, self._clock.now())
        if patch is not None:
            await self._binder.tell(key, patch)


def _look_again(at: datetime | None, now: datetime) -> Result:
    return DONE if at is None else Result(requeue_after=max(at - now, MOMENT))


def owners(decision: PlacementDecision) -> Iterable[str]:
    """Return the placement that a decision is for, as its key is written."""
    label = decision.metadata.labels.get(PLACEMENT_LABEL)
    return (str(Key(decision.metadata.namespace, label)),) if label else ()
