"""Alerts and dashboard: promtool evaluates every expression on a fleet with failures.

The metrics are those that the code registers, with values as a scrape returns them.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from architecture.project import ROOT
from generate_reference import registered_metrics
from sully.client.informers.metrics import InformerMetrics
from sully.controllers.deviceconflicts import ConflictMetrics
from sully.controllers.devicemetrics import metrics as names
from sully.controllers.devicemetrics.metrics import DeviceMetrics
from sully.controllers.eviction.metrics import EvictionMetrics
from sully.controllers.notifications.metrics import NotificationMetrics
from sully.install.alerts import ALERTS, RUNBOOKS, prometheus_rule
from sully.install.grafana import PANELS, dashboard, dashboard_config_map
from sully.install.workload import Settings
from sully.runtime.metrics import Metrics

MINUTES = 240
TAINT = "DeletionByDeviceTaintManager"
EXPRESSIONS = {
    **{f"panel {panel.title}": panel.expression for panel in PANELS},
    **{f"alert {alert.name}": alert.expression for alert in ALERTS},
}
_METRIC = re.compile(r"\b(?:sully|workqueue)_[a-z_]+")
_LABELS = re.compile(r"by \(([^)]*)\)|([a-z_]+)(?:=~|!=|=)\"")
_SUFFIXES = ("_bucket", "_count", "_sum")


def fleet() -> str:
    """Return the metrics of a fleet in which everything is wrong."""
    metrics = Metrics()
    InformerMetrics(metrics)
    EvictionMetrics(metrics).unconfirmed(lambda: 2)
    ConflictMetrics(metrics)
    devices = DeviceMetrics(metrics)
    devices.follow(
        names.POOLS, lambda: {("d", "n1", "", "true"): 6, ("d", "n1", "NoExecute", "false"): 2}
    )
    devices.follow(
        names.CLASSES, lambda: {("gpu", "", "true"): 6, ("gpu", "NoExecute", "false"): 2}
    )
    devices.follow(names.BLOCKED, lambda: {("DeviceTaintPolicy", "p"): 3})
    phases = ("HeldBack", "AwaitingApproval")
    devices.follow(names.POLICIES, lambda: {("p", phase): 1 for phase in phases})
    devices.follow(names.STORMS, lambda: {("p",): 1})
    devices.follow(names.MAINTENANCES, lambda: {("m", "Failed"): 1})
    devices.follow(names.RULES, lambda: {("p", "NoExecute"): 2})
    devices.began(TAINT)
    devices.ended(TAINT, 500)
    devices.replaced(20)
    devices.unschedulable()
    devices.repaired("d", 4000)
    NotificationMetrics(metrics).failed("ops")
    for name in ("sully_informer_connected", "sully_informer_age_seconds"):
        metrics.gauge(name, "").labels("pods", "Pod", "").set(name.endswith("seconds") and 7)
    metrics.gauge("sully_devices_in_conflict", "").set(1)
    queue = metrics.queue("device-taint-policy-controller")
    for _ in range(60):
        queue.retried()
    return metrics.render().decode()


def series(page: str) -> Iterator[dict[str, str]]:
    """Yield the series as promtool reads them; counters grow by their value every minute."""
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            labels = ",".join(
                f"{name}={json.dumps(value)}" for name, value in sample.labels.items()
            )
            grows = family.type in ("counter", "histogram")
            values = f"0+{sample.value}x{MINUTES}" if grows else f"{sample.value}x{MINUTES}"
            yield {"series": f"{sample.name}{{{labels}}}", "values": values}


@pytest.fixture(scope="module")
def promtool() -> Path:
    program = ROOT / ".cache/promtool/promtool"
    if not program.exists():
        fetch = ROOT / "tools/fetch-promtool"
        subprocess.run([fetch, program.relative_to(ROOT)], cwd=ROOT, check=True)
    return program


def holds(expression: str) -> dict[str, Any]:
    """Return the test that an expression has a result."""
    return {
        "expr": f"count({expression}) > bool 0",
        "eval_time": f"{MINUTES}m",
        "exp_samples": [{"labels": "{}", "value": 1}],
    }


def firing(name: str) -> str:
    return f'ALERTS{{alertname="{name}",alertstate="firing"}}'


def test_every_expression_has_a_result_and_every_alert_fires(
    promtool: Path, tmp_path: Path
) -> None:
    down = "SullyControllersDown"
    wrong = [holds(text) for name, text in EXPRESSIONS.items() if name != f"alert {down}"]
    wrong += [holds(firing(alert.name)) for alert in ALERTS if alert.name != down]
    groups = [
        {"interval": "1m", "input_series": list(series(fleet())), "promql_expr_test": wrong},
        {"interval": "1m", "input_series": [], "promql_expr_test": [holds(firing(down))]},
    ]
    rules = ROOT / "deploy/monitoring/prometheus-rules.yaml"
    (tmp_path / "tests.yaml").write_text(
        yaml.safe_dump({"rule_files": [str(rules)], "tests": groups})
    )
    done = subprocess.run(
        [promtool, "test", "rules", tmp_path / "tests.yaml"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_only_metrics_and_labels_that_exist_are_used(expression: str) -> None:
    known = {name: set(labels) | {"le"} for name, _, labels, _ in registered_metrics()}
    used = {_base(name, known) for name in _METRIC.findall(expression)}
    labels = {
        label.strip()
        for grouped, matched in _LABELS.findall(expression)
        for label in (grouped or matched).split(",")
    }

    assert used
    assert used <= known.keys()
    assert all(labels <= known[name] for name in used)


def _base(name: str, known: dict[str, set[str]]) -> str:
    return next((name.removesuffix(x) for x in _SUFFIXES if name.removesuffix(x) in known), name)


def test_each_alert_has_a_section_in_the_runbooks() -> None:
    page = (ROOT / RUNBOOKS).read_text()
    sections = re.findall(r"^## (Sully\w+)$", page, re.MULTILINE)

    assert sections == [alert.name for alert in ALERTS]
    rules = prometheus_rule(Settings())["spec"]["groups"][0]["rules"]
    assert rules[0]["annotations"]["runbook"] == f"{RUNBOOKS}#{rules[0]['alert'].lower()}"


def test_panels_do_not_overlap_and_are_found_by_grafana() -> None:
    positions = [tuple(panel["gridPos"][axis] for axis in "xy") for panel in dashboard()["panels"]]
    made = dashboard_config_map(Settings())

    assert len(set(positions)) == len(positions)
    assert made["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(made["data"]["sully-devices.json"]) == dashboard()
