"""`sully policies` on policies of devices and of clusters, and plans of suppressed taints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import manifests
from sully.cli.client.snapshots import missing_kind
from sully.cli.main import main
from sully.views.kinds import DEVICE_POLICIES
from sully.views.snapshot.snapshot import Gap

Obj = dict[str, Any]
NOW = "2026-01-03T00:00:00Z"
SELECTOR = {"matchLabels": {"zone": "eu"}}
TAINT = {"key": "example.com/lost", "effect": "NoSelect"}
DRIVER = "gpu.example.com"


def _stored(body: Obj) -> Obj:
    return manifests.stored(body, creationTimestamp=NOW)


def _condition(type_: str, status: str = "True", reason: str = "Yes", message: str = "") -> Obj:
    return {
        "type": f"sully.dev/{type_}",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": NOW,
    }


def _of_clusters(name: str, *conditions: Obj, **spec: Any) -> Obj:
    rules = [{"condition": {"type": "Ready", "status": "False"}, "taint": TAINT}]
    spec = {"clusterSelector": SELECTOR, "rules": rules, **spec}
    status = {"conditions": list(conditions)}
    return _stored(manifests.body("ClusterTaintPolicy", name, spec, status))


def _cluster(name: str, **metadata: Any) -> Obj:
    return _stored(manifests.cluster(name, accepted=True, **metadata))


APPLIED = _condition("Applied")
HELD = _condition("HeldBack", message="1 clusters wait")
VALUE = [
    {
        "condition": {"type": "Ready", "status": "False", "orStatuses": ["Unknown"]},
        "taint": {**TAINT, "value": "net"},
    }
]
OF_DEVICES = _stored(
    manifests.body(
        "DeviceTaintPolicy",
        "false-positives",
        {"mode": "Enforce", "selector": {"driver": DRIVER}},
        {"observedGeneration": 1, "selected": 4, "suppressed": 2},
    )
)
OWNED = {"annotations": {"sully.dev/policy-taints": "[]"}, "labels": {"zone": "eu"}}
OBJECTS = (
    OF_DEVICES,
    _of_clusters("calm", APPLIED, _condition("HeldBack", "False")),
    _of_clusters("held", APPLIED, HELD, _condition("Flapping"), rules=VALUE),
    _of_clusters("none", _condition("Applied", "False", "NoSelector"), clusterSelector=None),
    _of_clusters("strange", clusterSelector={"matchExpressions": [{"key": "a", "operator": "X"}]}),
    _cluster("eu-1", **OWNED),
    _cluster("us-1"),
)


@pytest.fixture
def snapshot(tmp_path: Path) -> str:
    return _file(tmp_path / "cluster.yaml", *OBJECTS)


def _file(path: Path, *objects: Obj, **more: Any) -> str:
    listed = {"apiVersion": "v1", "kind": "List", "takenTime": NOW, "items": list(objects), **more}
    path.write_text(yaml.safe_dump(listed))
    return str(path)


def test_both_kinds(snapshot: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policies", "--snapshot", snapshot]) == 0

    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows == [
        ["NAME", "MODE", "TAINT", "DEVICES", "FAULTY", "UNAVAILABLE", "STATE", "NEXT"],
        ["false-positives", "Enforce", "-", "4", "0", "0", "2", "Suppressed", "-"],
        [],
        ["CLUSTER", "POLICY", "TAINT", "CLUSTERS", "TAINTED", "STATE"],
        ["calm", "example.com/lost:NoSelect", "1", "0", "ok"],
        ["held", "example.com/lost=net:NoSelect", "1", "0", "held", "back,", "flapping"],
        ["none", "example.com/lost:NoSelect", "0", "0", "selects", "no", "cluster"],
        ["strange", "example.com/lost:NoSelect", "0", "0", "not", "processed", "yet"],
    ]


def test_only_those_of_clusters(snapshot: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policies", "list", "held", "-o", "wide", "--snapshot", snapshot]) == 0

    title, row = capsys.readouterr().out.splitlines()
    assert title.split()[-2:] == ["CONDITIONS", "AGE"]
    assert row.split()[-2:] == ["Ready=False|Unknown", "0s"]


def test_for_programs(snapshot: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policies", "-o", "json", "--snapshot", snapshot]) == 0

    document = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in document["policies"]] == ["false-positives"]
    assert document["policies"][0]["suppressed"] == 2
    calm, held, *_ = document["clusterPolicies"]
    assert (calm["selected"], calm["tainted"], "waiting" in calm) == (1, 0, False)
    assert held["waiting"] == {"HeldBack": "1 clusters wait", "Flapping": ""}
    assert main(["policies", "list", "calm", "-o", "name", "--snapshot", snapshot]) == 0
    assert capsys.readouterr().out == "clustertaintpolicy.sully.dev/calm\n"


def test_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = _file(tmp_path / "empty.yaml", _cluster("us-1"))

    assert main(["policies", "--snapshot", empty]) == 0
    assert capsys.readouterr().err == "No policies found.\n"
    assert main(["policies", "list", "x", "--snapshot", empty]) == 1
    assert 'devicetaintpolicy "x" not found' in capsys.readouterr().err


def test_where_nothing_of_sully_is_installed() -> None:
    error = missing_kind(Gap(DEVICE_POLICIES, "not served", "the server has no such kind"))

    assert str(error).endswith("are required here; 'sully install' adds them to a cluster")
