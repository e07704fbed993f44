"""`sully maintenance create` from flags, plans of maintenances, and how they are explained."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

import manifests
from cli.commandlines import parsed
from manifests import DRIVER
from sully.api.sully.types import DeviceMaintenance
from sully.cli.change.maintenance.args import build_maintenance
from sully.cli.change.maintenance.printer import row
from sully.cli.command import CommandError
from sully.cli.main import main

Obj = dict[str, Any]

NOW = datetime(2026, 1, 3, tzinfo=UTC)
CLUSTER = Path(__file__).parent / "plans" / "cluster.yaml"
SPECS: dict[str, Obj] = {
    "--driver d --start now": {"selector": {"driver": "d"}, "start": "2026-01-03T00:00:00Z"},
    "--all --start 8h --for 4h --close-before 2h": {
        "selector": {"matchAll": True},
        "start": "2026-01-03T08:00:00Z",
        "duration": "14400s",
        "closeBefore": "7200s",
    },
    "--class a100 --uuid GPU-1 --start 2026-01-04T00:00:00Z --end 2026-01-05T00:00:00Z": {
        "selector": {"deviceClassName": "a100", "identities": ["GPU-1"]},
        "start": "2026-01-04T00:00:00Z",
        "end": "2026-01-05T00:00:00Z",
    },
    "-l zone=a,!old,tier!=b,gpu --start now": {
        "selector": {
            "nodeSelector": {
                "matchExpressions": [
                    {"key": "gpu", "operator": "Exists"},
                    {"key": "old", "operator": "DoesNotExist"},
                    {"key": "tier", "operator": "NotIn", "values": ["b"]},
                    {"key": "zone", "operator": "In", "values": ["a"]},
                ]
            }
        },
        "start": "2026-01-03T00:00:00Z",
    },
    "--all --start 2026-01-02T23:55:00Z": {
        "selector": {"matchAll": True},
        "start": "2026-01-02T23:55:00Z",
    },
    "--pool p --device gpu-0 --start now --approval --proof --reason why": {
        "selector": {"pool": "p", "device": "gpu-0"},
        "start": "2026-01-03T00:00:00Z",
        "hook": {"type": "Approval"},
        "proof": {"type": "Manual"},
        "reason": "why",
    },
}


@pytest.mark.parametrize(("flags", "want"), SPECS.items(), ids=SPECS.keys())
def test_flags(flags: str, want: Obj) -> None:
    body = build_maintenance(parsed("maintenance", "create", "m", *flags.split()), "m", NOW)

    rolling = {"by": "Device", "maxUnavailable": 1}
    limits = {"rolling": rolling, "drain": {"rate": "1/s", "then": "Fail"}}
    assert body["spec"] == limits | want


@pytest.mark.parametrize("text", ["fail", "Fail"])
def test_what_follows_the_timeout_is_spelled_as_for_drains(text: str) -> None:
    flags = f"--driver d --start now --timeout 1h --then {text}"
    spec = build_maintenance(parsed("maintenance", "create", "m", *flags.split()), "m", NOW)["spec"]

    assert spec["drain"]["then"] == "Fail"


def test_how_it_is_drained() -> None:
    flags = (
        "--driver d --start now --by Node --max-unavailable 10% --wait-ready 1m --rate 10/m"
        " --timeout 30m --then noexecute --when-idle --force --ignore-daemonsets"
    )
    spec = build_maintenance(parsed("maintenance", "create", "m", *flags.split()), "m", NOW)["spec"]

    assert spec["rolling"] == {"by": "Node", "maxUnavailable": "10%", "waitForReady": "60s"}
    assert spec["drain"] == {
        "mode": "WhenIdle",
        "rate": "10/m",
        "timeout": "1800s",
        "then": "NoExecute",
        "force": True,
        "ignoreDaemonSets": True,
    }


REFUSED = {
    "--driver d": "missing flag: --start",
    "--start now": "no devices specified: use --driver",
    "--driver d --start now --then NoExecute": "--then NoExecute requires --timeout",
    "--driver d --start soon": "--start: invalid time 'soon'",
    "--all --start 2020-01-01T00:00:00Z --for 4h": (
        "--start 2020-01-01T00:00:00Z is in the past: it is 2026-01-03T00:00:00Z now\n"
        "  use --start now to begin immediately"
    ),
    "--all --start 2026-01-02T23:54:59Z": "--start 2026-01-02T23:54:59Z is in the past",
    "--start now -l a>1": "nodes are not selected by comparisons",
    "--start now -l a=b=c": "-l a=b=c: ",
}


@pytest.mark.parametrize(("flags", "want"), REFUSED.items(), ids=REFUSED.keys())
def test_refused_flags(flags: str, want: str) -> None:
    options = parsed("maintenance", "create", "m", *flags.split())
    with pytest.raises(CommandError) as error:
        build_maintenance(options, "m", NOW)

    assert want in str(error.value)


WRONG = (
    (("maintenance", "create"), "create takes one argument: NAME"),
    (("maintenance", "pause"), "missing argument: NAME"),
    (("maintenance", "approve", "m"), "missing argument: NAME and UNIT"),
)


def body(**spec: Any) -> Obj:
    spec = {"selector": {"driver": DRIVER}, "start": "2031-01-01T00:00:00Z", **spec}
    return manifests.body("DeviceMaintenance", "firmware", spec, generation=1)


def plan(tmp_path: Path, *flags: str, **spec: Any) -> int:
    file = tmp_path / "maintenance.yaml"
    file.write_text(yaml.safe_dump(body(**spec)))
    return main(["plan", "-f", str(file), "--snapshot", str(CLUSTER), *flags])


def test_a_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan(tmp_path, rolling={"by": "Node"}, duration="1h", closeBefore="1h")
    shown = capsys.readouterr().out

    assert "1 of 3 units at a time" in shown
    assert "No pod is evicted before the start." in shown
    assert [line.split()[:3] for line in shown.splitlines()[3:]] == [
        ["1", "node-1", "2"],
        ["2", "node-2", "2"],
        ["3", "node-3", "2"],
    ]


LOSING = {"evicted": ({}, True), "waited for": ({"drain": {"mode": "WhenIdle"}}, False)}


@pytest.mark.parametrize(("spec", "want"), LOSING.values(), ids=LOSING)
def test_pods_that_would_lose_data_are_named(
    spec: Obj, want: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    items = yaml.safe_load(CLUSTER.read_text())["items"]
    for pod in (item for item in items if item["kind"] == "Pod"):
        pod["spec"]["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    saved, file = tmp_path / "cluster.yaml", tmp_path / "maintenance.yaml"
    saved.write_text(yaml.safe_dump({"kind": "List", "items": items}))
    file.write_text(yaml.safe_dump(body(**spec)))

    main(["plan", "-f", str(file), "--snapshot", str(saved)])

    assert ("lose the data in emptyDir volumes: " in capsys.readouterr().err) == want


def test_a_plan_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan(tmp_path, "-o", "json", rolling={"maxUnavailable": "50%"})
    shown = json.loads(capsys.readouterr().out)

    assert [len(batch) for batch in shown["batches"]] == [3, 3]
    assert len(shown["plans"]) == 2


def test_a_plan_for_no_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(tmp_path, selector={"driver": "typo.example.com"}) == 0
    assert "its selector matches no device" in capsys.readouterr().out


def test_a_plan_with_other_objects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "both.yaml"
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}}
    file.write_text(yaml.safe_dump_all([body(), pod]))
    assert main(["plan", "-f", str(file), "--snapshot", str(CLUSTER)]) == 2
    assert "maintenances cannot be planned together with Pod" in capsys.readouterr().err


UNIT = {"name": "node-1", "devices": ["gpu.example.com/node-1/gpu-0"], "message": "why"}
WAITING = {**UNIT, "phase": "Closed", "nextActionTime": "2031-01-01T00:00:00Z"}
BLOCKED = {**UNIT, "phase": "Closed"}
STATES: dict[str, tuple[Obj, str]] = {
    "NotProcessed": ({}, "not processed yet"),
    "SelectsNoDevice": ({"phase": "Running"}, "matches no device"),
    "Scheduled": ({"phase": "Scheduled", "total": 2, "selected": 2}, "ok"),
    "Running": ({"phase": "Running", "total": 2, "units": [WAITING]}, "ok"),
    "ApprovalNeeded": (
        {"phase": "Running", "total": 2, "phases": {"AwaitingApproval": 1}},
        "1 AwaitingApproval",
    ),
    "UnitsFailed": ({"phase": "Running", "total": 2, "phases": {"Failed": 1}}, "1 Failed"),
    "Paused": ({"phase": "Paused", "total": 2}, "ok"),
    "Completed": ({"phase": "Completed", "total": 2, "done": 2}, "ok"),
    "Ended": ({"phase": "Ended", "total": 2, "done": 1}, "ok"),
    "Cancelled": ({"phase": "Cancelled", "total": 2}, "ok"),
}


@pytest.mark.parametrize(("cause", "status", "state"), [(k, *v) for k, v in STATES.items()])
def test_a_maintenance_is_explained(
    cause: str, status: Obj, state: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = {"observedGeneration": 1} if status else {}
    obj = body(duration="1h") | {"status": {**seen, **status}}
    file = tmp_path / "cluster.yaml"
    file.write_text(f"{CLUSTER.read_text()}\n---\n{yaml.safe_dump(obj)}")
    assert main(["explain", "maintenance", "firmware", "--snapshot", str(file), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["cause"] == cause
    assert main(["status", "--snapshot", str(file)]) == 0
    over = cause in ("Completed", "Ended", "Cancelled")
    assert ("Maintenance" in capsys.readouterr().out) is not over
    cells = [str(getattr(cell, "text", cell)) for cell in row(_typed(obj), NOW)]
    assert state in cells


def test_pods_that_are_not_evicted_are_shown() -> None:
    units = [WAITING, {**BLOCKED, "name": "node-2"}, {**BLOCKED, "name": "node-3"}]
    phases = {"Closed": 3, "Failed": 1}
    status = {"observedGeneration": 1, "phase": "Running", "selected": 4, "total": 4}
    obj = body() | {"status": {**status, "units": units, "phases": phases}}
    cells = [str(getattr(cell, "text", cell)) for cell in row(_typed(obj), NOW)]
    assert "1 Failed, 2 Blocked" in cells


def test_times_that_are_over_are_shown_as_such() -> None:
    cells = row(_typed(body(start="2026-01-02T18:00:00Z", duration="4h")), NOW)

    assert list(cells[2:4]) == ["6h ago", "120m ago"]


def _typed(obj: Obj) -> DeviceMaintenance:
    return msgspec.convert(obj, DeviceMaintenance, strict=False)
