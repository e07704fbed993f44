"""The metrics of scheduling, with the names of kube-scheduler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sully.domain.scheduling.objects import Pod
from sully.runtime.metrics import Metrics
from sully.scheduler.effects import Attempt

SCHEDULED_RESULT: Final = "scheduled"
UNSCHEDULABLE_RESULT: Final = "unschedulable"
ERROR: Final = "error"
_SECONDS: Final = tuple(0.001 * 2**power for power in range(15))
_SLI_SECONDS: Final = tuple(0.01 * 2**power for power in range(20))
_ATTEMPTS: Final = (1, 2, 4, 8, 16)
_MAX_ATTEMPTS: Final = 16
"""The largest value of the label, so that the number of series stays bounded."""


class SchedulerMetrics:
    """The number of attempts, their results and durations."""

    def __init__(self, metrics: Metrics) -> None:
        labels = ("result", "profile")
        self._total = metrics.counter(
            "scheduler_schedule_attempts_total",
            "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could"
            " not be scheduled, while 'error' means an internal scheduler problem.",
            labels,
        )
        self._seconds = metrics.histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Scheduling attempt latency in seconds (scheduling algorithm + binding)",
            labels,
            buckets=_SECONDS,
        )
        self._deciding = metrics.histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Scheduling algorithm latency in seconds",
            buckets=_SECONDS,
        )
        self._attempts = metrics.histogram(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts to successfully schedule a pod.",
            buckets=_ATTEMPTS,
        )
        self._since = metrics.histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "E2e latency for a pod being scheduled, from the time the pod enters the scheduling"
            " queue and might involve multiple scheduling attempts.",
            ("attempts",),
            buckets=_SLI_SECONDS,
        )
        self._pending = metrics.gauge(
            "scheduler_pending_pods",
            "Number of pending pods, by the queue type: active, backoff, unschedulable or gated.",
            ("queue",),
        )
        self._conflicts = metrics.counter(
            "sully_scheduler_device_conflicts_total",
            "Number of pods that are not bound because another scheduler allocated the same device"
            " at the same time.",
        )
        self._claims = metrics.counter(
            "scheduler_resourceclaim_creates_total",
            "Number of ResourceClaims creation attempts for extended resources.",
            ("status",),
        )

    def follow(self, queue: str, count: Callable[[], int]) -> None:
        """Export the number of pods in a queue, counted on each scrape."""
        self._pending.labels(queue).set_function(count)

    def decided(self, seconds: float) -> None:
        """Observe the time until a decision."""
        self._deciding.observe(seconds)

    def attempted(self, pod: Pod, result: str, seconds: float) -> None:
        """Count one attempt with its result."""
        labels = (result, pod.spec.scheduler_name)
        self._total.labels(*labels).inc()
        self._seconds.labels(*labels).observe(seconds)

    def bound(self, pod: Pod, attempt: Attempt, now: float) -> None:
        """Count a pod that was bound."""
        self.attempted(pod, SCHEDULED_RESULT, now - attempt.began)
        self._attempts.observe(attempt.attempts)
        attempts = str(min(attempt.attempts, _MAX_ATTEMPTS))
        self._since.labels(attempts).observe(now - attempt.queued)

    def conflicted(self) -> None:
        """Count a pod whose device another scheduler allocated at the same time."""
        self._conflicts.inc()

    def created_claim(self, *, success: bool) -> None:
        """Count an attempt to create a claim."""
        self._claims.labels("success" if success else "failure").inc()
