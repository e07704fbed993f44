"""The metrics of placement, with the names of Open Cluster Management.

Its durations of single plugins have no counterpart: verdicts are cached between decisions.
"""

from __future__ import annotations

from typing import Final

from sully.runtime.metrics import Metrics

NAME: Final = "placement_scheduling"
_SECONDS: Final = tuple(1e-6 * 10.0**power for power in range(10))


class PlacementMetrics:
    """How long it takes to decide and to write."""

    def __init__(self, metrics: Metrics) -> None:
        self._deciding = metrics.histogram(
            "scheduling_scheduling_duration_seconds",
            "How long in seconds schedule a placement.",
            ("name",),
            buckets=_SECONDS,
        ).labels(NAME)
        self._binding = metrics.histogram(
            "scheduling_bind_duration_seconds",
            "How long in seconds bind a placement to placementDecisions.",
            ("name",),
            buckets=_SECONDS,
        ).labels(NAME)

    def decided(self, seconds: float) -> None:
        """Observe how long a decision took."""
        self._deciding.observe(seconds)

    def bound(self, seconds: float) -> None:
        """Observe how long the decisions of a placement took to write."""
        self._binding.observe(seconds)
