"""The metrics of devices and evictions. Kubernetes has none of these, so the names are ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sully.runtime.metrics import Metrics, Values

_MINUTE: Final = 60.0
_HOUR: Final = 3600.0
REPAIR_BUCKETS: Final = (
    *(_MINUTE, 5 * _MINUTE, 15 * _MINUTE, _HOUR, 4 * _HOUR, 12 * _HOUR),
    *(24 * _HOUR, 3 * 24 * _HOUR, 7 * 24 * _HOUR, 30 * 24 * _HOUR),
)
EVICTION_BUCKETS: Final = (1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)

POOLS: Final = "sully_resourcepool_devices"
CLASSES: Final = "sully_deviceclass_devices"
BLOCKED: Final = "sully_blocked_pods"
POLICIES: Final = "sully_devicetaintpolicy_devices"
STORMS: Final = "sully_devicetaintpolicy_storm"
MAINTENANCES: Final = "sully_devicemaintenance_units"
RULES: Final = "sully_devicetaintrules"
_GAUGES: Final = {
    POOLS: (
        "Number of published devices of a pool, by the strongest effect of their taints (empty:"
        " none) and whether a claim is allocated them.",
        ("driver", "pool", "taint_effect", "allocated"),
    ),
    CLASSES: (
        "Number of published devices that a DeviceClass selects, by the strongest effect of their"
        " taints (empty: none) and whether a claim is allocated them. A device may be in several"
        " classes.",
        ("device_class", "taint_effect", "allocated"),
    ),
    BLOCKED: (
        "Number of pending pods that request a class with unused devices which a taint keeps"
        " unused, by what sets the taint: a DeviceTaintPolicy, a DeviceTaintRule, a"
        " ResourceSlicePatch, or the driver of a ResourceSlice. Both labels are empty for those"
        " beyond the first hundred.",
        ("source_kind", "source_name"),
    ),
    POLICIES: (
        "Number of devices with a current or recent fault under a DeviceTaintPolicy, by phase.",
        ("policy", "phase"),
    ),
    STORMS: ("1 while a storm stops the steps of a DeviceTaintPolicy.", ("policy",)),
    MAINTENANCES: (
        "Number of units, devices or nodes, of a DeviceMaintenance by phase.",
        ("maintenance", "phase"),
    ),
    RULES: (
        "Number of DeviceTaintRules, by the DeviceTaintPolicy that they are of (empty: none) and"
        " their effect.",
        ("policy", "taint_effect"),
    ),
}


class DeviceMetrics:
    """The metrics of devices, policies and evictions."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        for name in _GAUGES:
            self.follow(name, dict)
        self._repaired = metrics.histogram(
            "sully_device_repair_duration_seconds",
            "Seconds from the first taint of a device until it had none.",
            ("driver",),
            buckets=REPAIR_BUCKETS,
        )
        self._evictions = metrics.counter(
            "sully_pod_evictions_total",
            "Number of pods with claims whose eviction began, by the reason in their condition"
            " DisruptionTarget.",
            ("reason",),
        )
        self._ended = metrics.histogram(
            "sully_pod_eviction_duration_seconds",
            "Seconds from the beginning of an eviction until the pod was gone.",
            ("reason",),
            buckets=EVICTION_BUCKETS,
        )
        self._replaced = metrics.histogram(
            "sully_pod_replacement_duration_seconds",
            "Seconds from the beginning of an eviction until a pod of the same controller was bound"
            " to a node.",
            buckets=EVICTION_BUCKETS,
        )
        self._unschedulable = metrics.counter(
            "sully_unschedulable_replacements_total",
            "Number of pods that replace an evicted pod and could not be scheduled at first.",
        )

    def follow(self, name: str, values: Callable[[], Values]) -> None:
        """Export one of the gauges from what a function returns on each scrape."""
        text, labels = _GAUGES[name]
        self._metrics.computed(name, text, labels, values)

    def stop(self) -> None:
        """Export no gauge any more: another process may, and the last values would be wrong."""
        for name in _GAUGES:
            self.follow(name, dict)

    def repaired(self, driver: str, seconds: float) -> None:
        """Count a device that lost its last taint."""
        self._repaired.labels(driver).observe(max(0.0, seconds))

    def began(self, reason: str) -> None:
        """Count an eviction."""
        self._evictions.labels(reason).inc()

    def ended(self, reason: str, seconds: float) -> None:
        """Observe how long an eviction took."""
        self._ended.labels(reason).observe(max(0.0, seconds))

    def replaced(self, seconds: float) -> None:
        """Observe how long it took until an evicted pod was replaced."""
        self._replaced.observe(max(0.0, seconds))

    def unschedulable(self) -> None:
        """Count a replacement that could not be scheduled."""
        self._unschedulable.inc()
