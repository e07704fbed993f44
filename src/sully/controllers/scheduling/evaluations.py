"""Evaluates selectors for pods whose attempt was interrupted, while other pods are scheduled.

Evaluations that are larger than a slice have a controller of their own, so that a pod with many
small ones does not wait for them.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from sully.controllers.evaluation import BACKOFF, ExpressionEvaluation
from sully.domain.scheduling.objects import Pod
from sully.machinery.memo import Memo
from sully.runtime.evaluation import Evaluator
from sully.scheduler.core import SchedulingCore
from sully.scheduler.effects import WaitForEvaluation

_MOST_PODS: Final = 4096
"""Pods whose back-off is remembered."""


class Evaluations:
    """The two controllers that evaluate, and the back-off of pods that exceed their budget."""

    def __init__(self, core: SchedulingCore, evaluator: Evaluator) -> None:
        self.light = ExpressionEvaluation("scheduler-evaluation", evaluator, core.evaluated)
        self.heavy = ExpressionEvaluation("scheduler-heavy-evaluation", evaluator, core.evaluated)
        self._exceeded: Memo[str, int] = Memo(_MOST_PODS)

    def put(self, effect: WaitForEvaluation, took: float) -> None:
        """Evaluate what an attempt waits for; its last slice took so many seconds."""
        evaluating = self.light if effect.unfinished.work is None else self.heavy
        evaluating.put(effect.key, effect.unfinished, took)

    def back_off(self, pod: Pod) -> timedelta:
        """Return how long a pod that exceeded its budget waits for its next attempt."""
        uid = pod.metadata.uid
        times = self._exceeded.keep(uid, self._exceeded.get(uid, 0) + 1)
        return timedelta(seconds=BACKOFF.delay(times))
