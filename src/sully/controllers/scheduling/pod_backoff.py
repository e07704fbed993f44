"""How long pods get no attempt after one that failed, whatever happens meanwhile.

A pod that no node fits waits for an event that may help it. One whose attempt failed is retried
after a time, because it is unknown what helps.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from sully.controllers.evaluation import BACKOFF as OVER_BUDGET
from sully.domain.scheduling.decisions import ERROR, FitError
from sully.domain.scheduling.objects import Pod
from sully.machinery.memo import Memo
from sully.runtime.backoff import Backoff

BACKOFF: Final = Backoff(base=1.0, cap=10.0, jitter=0.0)
"""After errors, as in kube-scheduler."""
_MAX_PODS: Final = 4096
"""Pods whose failures are counted."""


class PodBackoff:
    """Counts the attempts of each pod that failed in a row."""

    def __init__(self) -> None:
        self._failures: Memo[str, int] = Memo(_MAX_PODS)

    def after(self, pod: Pod, error: FitError, now: datetime) -> timedelta | None:
        """Return how long a pod waits after an attempt; None: for an event.

        As in kube-scheduler, pods whose back-off ends in the same second are retried together,
        after it.
        """
        uid = pod.metadata.uid
        if error.reason != ERROR:
            self._failures.pop(uid, None)
            return None
        failures = self._failures.keep(uid, self._failures.get(uid, 0) + 1)
        backoff = OVER_BUDGET if error.over_budget else BACKOFF
        ends = now + timedelta(seconds=backoff.delay(failures))
        return ends.replace(microsecond=0) + timedelta(seconds=1) - now
