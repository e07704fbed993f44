"""What pods may spend on their selectors: a budget for each attempt, taken in slices.

While an attempt waits for an evaluation, other pods are scheduled. Evaluations that are larger than
a slice have a controller of their own, so that a pod with many small ones does not wait for them.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from sully.client.transport import Key
from sully.controllers.evaluation import BACKOFF, ExpressionEvaluation
from sully.controllers.scheduling.queue import Queue
from sully.domain.scheduling.objects import Pod
from sully.machinery.cel import SLICE, CostBudget, UnfinishedError
from sully.machinery.memo import Memo
from sully.runtime.evaluation import Evaluator

_MOST_PODS: Final = 4096
"""Pods whose budgets are remembered; one that is forgotten gets a new budget."""


class Evaluations:
    """The budgets of pods, and who evaluates for them."""

    def __init__(self, queue: Queue, evaluator: Evaluator, units: int) -> None:
        self._units = units
        self.light = ExpressionEvaluation("scheduler-evaluation", evaluator, queue.touch)
        self.heavy = ExpressionEvaluation("scheduler-heavy-evaluation", evaluator, queue.touch)
        self._budgets: Memo[str, CostBudget] = Memo(_MOST_PODS)
        self._exceeded: Memo[str, int] = Memo(_MOST_PODS)

    def budget(self, pod: Pod) -> CostBudget:
        """Return what is left for this attempt of a pod."""
        known = self._budgets.get(pod.metadata.uid)
        return known or CostBudget(self._units, per_slice=SLICE)

    def interrupted(self, key: Key, pod: Pod, unfinished: UnfinishedError, took: float) -> None:
        """Evaluate what an attempt waits for, and then go on with it."""
        if key in self.light or key in self.heavy:
            return
        self._budgets.keep(pod.metadata.uid, unfinished.budget)
        evaluating = self.light if unfinished.work is None else self.heavy
        evaluating.put(key, unfinished, took)

    def ended(self, pod: Pod) -> None:
        """Note that an attempt came to an end: the next one gets a new budget."""
        self._budgets.pop(pod.metadata.uid, None)

    def exceeded(self, pod: Pod) -> timedelta:
        """Return how long a pod that exceeded its budget waits for its next attempt."""
        uid = pod.metadata.uid
        times = self._exceeded.keep(uid, self._exceeded.get(uid, 0) + 1)
        return timedelta(seconds=BACKOFF.delay(times))
