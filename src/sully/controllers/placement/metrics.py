"""What is measured about placement, under the names Open Cluster Management uses.

Its times of single plugins have no counterpart: verdicts are kept, not made anew in each pass.
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
            "Seconds until it was decided which clusters a placement gets.",
            ("name",),
            buckets=_SECONDS,
        ).labels(NAME)
        self._binding = metrics.histogram(
            "scheduling_bind_duration_seconds",
            "Seconds it took to write the decisions of a placement.",
            ("name",),
            buckets=_SECONDS,
        ).labels(NAME)

    def decided(self, seconds: float) -> None:
        """Count one decision."""
        self._deciding.observe(seconds)

    def bound(self, seconds: float) -> None:
        """Count one placement whose decisions were brought up to date."""
        self._binding.observe(seconds)
