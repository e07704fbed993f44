"""The Grafana dashboard: a table of panels, and the JSON that Grafana reads.

Grafana's sidecar finds it by the label `grafana_dashboard` of its ConfigMap.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from sully.install.alerts import BLOCKING
from sully.install.workload import Settings, metadata

Obj = dict[str, Any]
TITLE: Final = "Sully: devices"
DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH, _HEIGHT, _COLUMNS = 12, 8, 2


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel with one line for each result of an expression."""

    title: str
    expression: str
    legend: str
    unit: str = "short"
    kind: str = "timeseries"


_DEVICES: Final = "sully_resourcepool_devices"
PANELS: Final = (
    Panel("Devices", f"sum({_DEVICES})", "devices", kind="stat"),
    Panel(
        "Devices with taints that prevent scheduling",
        f'sum({_DEVICES}{{taint_effect=~"{BLOCKING}"}}) / sum({_DEVICES})',
        "tainted",
        "percentunit",
        "stat",
    ),
    Panel(
        "Devices by taint",
        f"sum by (taint_effect, allocated) ({_DEVICES})",
        "{{taint_effect}} allocated={{allocated}}",
    ),
    Panel(
        "Tainted devices by class",
        'sum by (device_class, taint_effect) (sully_deviceclass_devices{taint_effect!=""})',
        "{{device_class}} {{taint_effect}}",
    ),
    Panel(
        "Pools with most tainted devices",
        f'topk(10, sum by (driver, pool) ({_DEVICES}{{taint_effect!=""}}))',
        "{{driver}}/{{pool}}",
    ),
    Panel(
        "Devices of policies",
        "sum by (policy, phase) (sully_devicetaintpolicy_devices)",
        "{{policy}} {{phase}}",
    ),
    Panel(
        "Units of maintenances",
        "sum by (maintenance, phase) (sully_devicemaintenance_units)",
        "{{maintenance}} {{phase}}",
    ),
    Panel(
        "Taint rules",
        "sum by (policy, taint_effect) (sully_devicetaintrules)",
        "{{policy}} {{taint_effect}}",
    ),
    Panel(
        "Pending pods by what blocks them",
        "sum by (source_kind, source_name) (sully_blocked_pods)",
        "{{source_kind}}/{{source_name}}",
    ),
    Panel(
        "Evictions",
        "sum by (reason) (rate(sully_pod_evictions_total[5m]))",
        "{{reason}}",
        "ops",
    ),
    Panel(
        "Eviction until the pod is gone (p90)",
        "histogram_quantile(0.9, sum by (le, reason)"
        " (rate(sully_pod_eviction_duration_seconds_bucket[1h])))",
        "{{reason}}",
        "s",
    ),
    Panel(
        "Eviction until the replacement has a node (p90)",
        "histogram_quantile(0.9, sum by (le)"
        " (rate(sully_pod_replacement_duration_seconds_bucket[1h])))",
        "p90",
        "s",
    ),
    Panel(
        "Time to repair (p50)",
        "histogram_quantile(0.5, sum by (le, driver)"
        " (rate(sully_device_repair_duration_seconds_bucket[1d])))",
        "{{driver}}",
        "s",
    ),
    Panel(
        "Age of caches",
        "max by (resource) (sully_informer_age_seconds)",
        "{{resource}}",
        "s",
    ),
    Panel(
        "Work queues",
        "sum by (name) (workqueue_depth)",
        "{{name}}",
    ),
)


def dashboard() -> Obj:
    """Return the dashboard as Grafana imports it."""
    source = {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Source"}
    return {
        "uid": "sully-devices",
        "title": TITLE,
        "tags": ["sully", "kubernetes"],
        "schemaVersion": 39,
        "editable": True,
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "30s",
        "templating": {"list": [source]},
        "panels": [_panel(number, panel) for number, panel in enumerate(PANELS)],
    }


def _panel(number: int, panel: Panel) -> Obj:
    row, column = divmod(number, _COLUMNS)
    position = {"h": _HEIGHT, "w": _WIDTH, "x": column * _WIDTH, "y": row * _HEIGHT}
    target = {"refId": "A", "expr": panel.expression, "legendFormat": panel.legend}
    return {
        "id": number + 1,
        "type": panel.kind,
        "title": panel.title,
        "datasource": DATASOURCE,
        "gridPos": position,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [{**target, "datasource": DATASOURCE}],
    }


def dashboard_config_map(settings: Settings) -> Obj:
    """Return the dashboard as a ConfigMap."""
    named = metadata("sully-dashboard", settings)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**named, "labels": {**named["labels"], "grafana_dashboard": "1"}},
        "data": {"sully-devices.json": json.dumps(dashboard(), indent=2) + "\n"},
    }
