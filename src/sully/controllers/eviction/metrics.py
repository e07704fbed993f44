"""The metrics of eviction, with the names of Kubernetes."""

from __future__ import annotations

from collections.abc import Callable

from sully.runtime.metrics import Metrics

BUCKETS = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 120.0, 180.0, 240.0)


class EvictionMetrics:
    """How many pods were evicted, and with what delay."""

    def __init__(self, metrics: Metrics) -> None:
        self._deletions = metrics.counter(
            "device_taint_eviction_controller_pod_deletions_total",
            "Total number of Pods deleted by DeviceTaintEvictionController since its start.",
        )
        self._latency = metrics.histogram(
            "device_taint_eviction_controller_pod_deletion_duration_seconds",
            "Latency, in seconds, between the time when a device taint effect has been activated"
            " and a Pod's deletion via DeviceTaintEvictionController.",
            buckets=BUCKETS,
        )

        self._unconfirmed = metrics.gauge(
            "sully_eviction_unconfirmed_pods",
            "Number of pods that are due for eviction and wait until the server confirms a cache.",
        )

    def unconfirmed(self, count: Callable[[], int]) -> None:
        """Export how many pods wait for the server."""
        self._unconfirmed.set_function(count)

    def deleted(self, delay: float) -> None:
        """Count a pod that was deleted this many seconds after it was due."""
        self._deletions.inc()
        self._latency.observe(max(0.0, delay))
