"""The alert rules for Prometheus, as one table; each has a section in docs/runbooks.md.

A test evaluates every expression with promtool, and checks that each alert can fire.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sully.domain.devices.taints import BLOCKING_EFFECTS
from sully.install.workload import NAME, Settings, metadata

Obj = dict[str, Any]
BLOCKING: Final = "|".join(sorted(BLOCKING_EFFECTS))
RUNBOOKS: Final = "docs/runbooks.md"


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert rule."""

    name: str
    expression: str
    minutes: int
    """For how long the expression must hold."""
    severity: str
    summary: str

    @property
    def runbook(self) -> str:
        """Return where the documentation describes what to do."""
        return f"{RUNBOOKS}#{self.name.lower()}"


ALERTS: Final = (
    Alert(
        "SullyControllersDown",
        "absent(sully_informer_connected)",
        10,
        "critical",
        "No controller of Sully reports metrics.",
    ),
    Alert(
        "SullyCacheStale",
        "min by (resource) (sully_informer_connected) == 0",
        10,
        "warning",
        "Sully cannot watch {{ $labels.resource }}.",
    ),
    Alert(
        "SullyReconcileFailing",
        "sum by (name) (rate(workqueue_retries_total[10m])) > 0.1",
        15,
        "warning",
        "Controller {{ $labels.name }} retries {{ $value | humanize }} times per second.",
    ),
    Alert(
        "SullyDevicesUnavailable",
        "sum by (device_class)"
        f' (sully_deviceclass_devices{{taint_effect=~"{BLOCKING}"}})'
        " / sum by (device_class) (sully_deviceclass_devices) > 0.1",
        15,
        "warning",
        "{{ $value | humanizePercentage }} of the devices of class {{ $labels.device_class }} are"
        " tainted.",
    ),
    Alert(
        "SullyDeviceConflict",
        "sully_devices_in_conflict > 0",
        5,
        "critical",
        "{{ $value }} devices are allocated to claims that cannot all use them.",
    ),
    Alert(
        "SullyPolicyStorm",
        "max by (policy) (sully_devicetaintpolicy_storm) == 1",
        0,
        "critical",
        "A storm of faults stopped DeviceTaintPolicy {{ $labels.policy }}.",
    ),
    Alert(
        "SullyPolicyHeldBack",
        'sum by (policy) (sully_devicetaintpolicy_devices{phase="HeldBack"}) > 0',
        15,
        "warning",
        "DeviceTaintPolicy {{ $labels.policy }} holds back {{ $value }} devices: a limit is"
        " reached.",
    ),
    Alert(
        "SullyApprovalPending",
        'sum by (policy) (sully_devicetaintpolicy_devices{phase=~"AwaitingApproval|AwaitingProof"})'
        " > 0",
        60,
        "info",
        "{{ $value }} devices of DeviceTaintPolicy {{ $labels.policy }} wait for a decision.",
    ),
    Alert(
        "SullyMaintenanceFailed",
        'sum by (maintenance) (sully_devicemaintenance_units{phase="Failed"}) > 0',
        5,
        "warning",
        "{{ $value }} units of DeviceMaintenance {{ $labels.maintenance }} failed and stay closed.",
    ),
    Alert(
        "SullyPodsBlocked",
        "sum by (source_kind, source_name) (sully_blocked_pods) > 0",
        30,
        "warning",
        "{{ $value }} pods are pending, and {{ $labels.source_kind }} {{ $labels.source_name }}"
        " taints devices that they could use.",
    ),
    Alert(
        "SullyReplacementsUnschedulable",
        "increase(sully_unschedulable_replacements_total[15m]) > 0",
        0,
        "warning",
        "Pods that replace evicted pods cannot be scheduled.",
    ),
    Alert(
        "SullyEvictionsSlow",
        "histogram_quantile(0.9, sum by (le)"
        " (rate(sully_pod_eviction_duration_seconds_bucket[1h]))) > 300",
        15,
        "warning",
        "One of ten evicted pods needs more than {{ $value | humanizeDuration }} to terminate.",
    ),
    Alert(
        "SullyNotificationsFailing",
        "increase(sully_notifications_failed_total[30m]) > 0",
        0,
        "warning",
        "Receiver {{ $labels.receiver }} accepts no notifications.",
    ),
    Alert(
        "SullyEvictionsUnconfirmed",
        "max(sully_eviction_unconfirmed_pods) > 0",
        10,
        "warning",
        "{{ $value }} evictions wait until the API server confirms a cache.",
    ),
)


def groups() -> list[Obj]:
    """Return the alerts as groups of rules, as Prometheus reads them."""
    return [{"name": "sully", "rules": [_rule(alert) for alert in ALERTS]}]


def _rule(alert: Alert) -> Obj:
    return {
        "alert": alert.name,
        "expr": alert.expression,
        **({"for": f"{alert.minutes}m"} if alert.minutes else {}),
        "labels": {"severity": alert.severity},
        "annotations": {"summary": alert.summary, "runbook": alert.runbook},
    }


def prometheus_rule(settings: Settings) -> Obj:
    """Return the alerts as an object of the Prometheus operator."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": metadata(NAME, settings),
        "spec": {"groups": groups()},
    }
