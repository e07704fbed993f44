"""What `sully plan -f` makes of manifests: as `kubectl apply` would, or refused by name.

On the cluster in plans/cluster.yaml, three nodes with two devices each; what is there already
stands in a file beside it. A snapshot that cannot be written is here, too.
"""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

import manifests
from sully.api.resource.annotations import MAINTENANCE_NAME, POLICY_NAME
from sully.cli.command import CommandError
from sully.cli.inspect.snapshot import write_file
from sully.cli.main import main

Obj = dict[str, Any]

PLANS = Path(__file__).parent / "plans"
CLUSTER = str(PLANS / "cluster.yaml")
DRIVER = {"driver": "gpu.example.com"}
ONE = {**DRIVER, "pool": "node-1"}
LAST = "kubectl.kubernetes.io/last-applied-configuration"
TAINT = {"key": "example.com/hot", "effect": "NoSchedule"}
HUB = "resource.k8s.io/v1"


def rule(selector: Obj | None, version: str = HUB, **metadata: Any) -> Obj:
    made = manifests.rule("hot", selector=selector, taint=TAINT, **metadata)
    if selector is None:
        del made["spec"]["deviceSelector"]
    return made | {"apiVersion": version}


def applied(selector: Obj, version: str = HUB) -> Obj:
    """Return what client-side apply keeps of what it applied."""
    text = json.dumps(rule(selector, version, annotations={}))
    return {"annotations": {LAST: text}}


def unversioned(selector: Obj) -> Obj:
    """Return what a user keeps there who writes it by hand."""
    return {"annotations": {LAST: json.dumps({"spec": {"deviceSelector": selector}})}}


def owned(manager: str, *names: str, operation: str = "Apply") -> Obj:
    fields: Obj = {f"f:{name}": {} for name in names}
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": HUB,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:deviceSelector": fields}},
    }


def managed(*entries: Obj) -> Obj:
    return {"managedFields": list(entries)}


@dataclass(frozen=True)
class Case:
    """A rule that is there for node-1, and one that is tried in its place."""

    there: Obj
    """The metadata of the file."""
    tried: Obj | None
    gains: int = 0
    loses: int = 0
    version: str = HUB


APPLIED = {
    "what was applied and is reported no more goes": Case(applied(ONE), DRIVER, gains=4),
    "what another user has set stays": Case(applied(DRIVER), DRIVER),
    "what nobody applied stays": Case({}, DRIVER),
    "an older version was applied": Case(applied(ONE, "resource.k8s.io/v1beta2"), DRIVER, gains=4),
    "an older version is tried": Case(
        applied(ONE), DRIVER, gains=4, version="resource.k8s.io/v1beta2"
    ),
    "no selector is for no device": Case(applied(ONE), None, loses=2),
    "an empty selector is for all": Case(applied(ONE), {}, gains=4),
    "an annotation without a version": Case(unversioned(ONE), DRIVER, gains=4),
    "an annotation that nobody can read": Case({"annotations": {LAST: "{"}}, DRIVER),
    "an annotation of another kind": Case({"annotations": {LAST: '{"spec": 3, "x": {}}'}}, DRIVER),
    "applied by the server": Case(managed(owned("kubectl", "driver", "pool")), DRIVER, gains=4),
    "applied by the server, by another tool": Case(
        managed(owned("flux", "driver", "pool")), DRIVER, gains=4
    ),
    "owned by another user, too": Case(
        managed(owned("kubectl", "driver", "pool"), owned("x", "pool", operation="Update")), DRIVER
    ),
    "updated, not applied": Case(managed(owned("x", "driver", "pool", operation="Update")), DRIVER),
    "the server applied a selector that is gone": Case(
        managed(owned("kubectl", "driver", "pool")), None, loses=2
    ),
}


@pytest.mark.parametrize("case", APPLIED.values(), ids=APPLIED)
def test_a_manifest_is_applied(
    case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = rule(ONE, uid="u", resourceVersion="7", **case.there)
    there["spec"]["taint"] = {**TAINT, "timeAdded": "2026-01-01T00:00:00Z"}
    (tmp_path / "there.json").write_text(json.dumps(there))
    (tmp_path / "tried.yaml").write_text(yaml.safe_dump(rule(case.tried, case.version)))

    arguments = ["plan", "-f", str(tmp_path / "tried.yaml"), "-o", "json"]
    code = main([*arguments, "--snapshot", CLUSTER, "--snapshot", str(tmp_path / "there.json")])

    plan = json.loads(capsys.readouterr().out)
    assert code == 0
    done = "changed" if case.gains or case.loses else "unchanged"
    assert plan["changes"] == [f"DeviceTaintRule/hot {done}"]
    assert sum(bool(device.get("addedTaints")) for device in plan["devices"]) == case.gains
    assert sum(bool(device.get("removedTaints")) for device in plan["devices"]) == case.loses


def test_an_object_as_it_was_printed_can_be_tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One changes what `kubectl get -o yaml` gave, with all that the server wrote into it."""
    (there,) = (
        item
        for item in yaml.safe_load(Path(CLUSTER).read_text())["items"]
        if item["metadata"]["name"] == "s-node-1"
    )
    there["metadata"] |= {"resourceVersion": "4711", "creationTimestamp": "2026-01-01T00:00:00Z"}
    there["spec"]["devices"][0]["taints"] = [TAINT]
    (tmp_path / "slice.yaml").write_text(yaml.safe_dump(there))

    code = main(["plan", "-f", str(tmp_path / "slice.yaml"), "--snapshot", CLUSTER, "-o", "json"])

    plan = json.loads(capsys.readouterr().out)
    assert code == 0
    assert [device["device"] for device in plan["devices"]] == ["gpu.example.com/node-1/gpu-0"]


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({}, "DeviceTaintRule/hot unchanged"),
        ({"labels": {"a": "b"}}, "DeviceTaintRule/hot would be changed"),
    ],
    ids=["the same", "another label"],
)
def test_what_stays_as_it_is_is_reported(
    more: Obj, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = rule(ONE, uid="u", resourceVersion="7", **applied(ONE))
    there["spec"]["taint"] = {**TAINT, "timeAdded": "2026-01-01T00:00:00Z"}
    (tmp_path / "there.json").write_text(json.dumps(there))
    (tmp_path / "tried.json").write_text(json.dumps(rule(ONE, **more)))
    files = ["--snapshot", CLUSTER, "--snapshot", str(tmp_path / "there.json")]

    main(["plan", "-f", str(tmp_path / "tried.json"), *files])

    assert capsys.readouterr().out.startswith(f"{line}\n")


@pytest.mark.parametrize(
    ("ready", "evicted"), [("False", 0), ("True", 1)], ids=["not yet", "ready"]
)
def test_who_waits_for_a_driver_is_not_there_yet(
    ready: str, evicted: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody is evicted who has no node, and nobody gets one before his devices are ready."""
    device = {"driver": "gpu.example.com", "pool": "node-3", "device": "gpu-0"}
    result = {**device, "request": "gpu", "bindingConditions": ["wired"]}
    reported = {"reason": "R", "message": "", "lastTransitionTime": "2026-03-01T11:59:00Z"}
    claim = {
        "apiVersion": HUB,
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "a", "uid": "c"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}},
        "status": {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": "p", "uid": "p"}],
            "devices": [{**device, "conditions": [{"type": "wired", "status": ready, **reported}]}],
        },
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "a", "uid": "p"},
        "spec": {
            "containers": [{"name": "c"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}],
        },
    }
    tried = rule({"pool": "node-3"})
    tried["spec"]["taint"] = {"key": "example.com/hot", "effect": "NoExecute"}
    (tmp_path / "there.json").write_text(json.dumps(claim) + json.dumps(pod))
    (tmp_path / "tried.json").write_text(json.dumps(tried))
    files = ["--snapshot", CLUSTER, "--snapshot", str(tmp_path / "there.json")]

    main(["plan", "-f", str(tmp_path / "tried.json"), "-o", "json", *files])

    plan = json.loads(capsys.readouterr().out)
    assert [eviction["name"] for eviction in plan["evictions"]] == ["p"] * evicted


def test_a_patch_as_a_kubernetes_server_takes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There it is a custom resource in our own group, and kubectl prints it so."""
    there = yaml.safe_load((PLANS / "patch.yaml").read_text())
    there["apiVersion"] = "sully.dev/v1alpha1"
    (tmp_path / "patch.yaml").write_text(yaml.safe_dump(there))
    manifest = str(tmp_path / "patch.yaml")

    main(["plan", "-f", manifest, "--snapshot", CLUSTER])
    tried = capsys.readouterr().out
    main(["plan", "-f", manifest, "--delete", "--snapshot", CLUSTER, "--snapshot", manifest])
    deleted = capsys.readouterr().out

    assert tried.partition("\n")[2] == (PLANS / "patch.txt").read_text().split("\n", 2)[2]
    assert "deleted" in deleted
    assert "0 devices" not in deleted


@pytest.mark.parametrize("effect", ["PreferNoSchedule", "NoExecuteWithPodDisruptionBudget"])
def test_an_effect_that_the_cluster_may_have_switched_on(
    effect: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tried = rule({"pool": "node-3"})
    tried["spec"]["taint"] = {"key": "example.com/hot", "effect": effect}
    (tmp_path / "tried.json").write_text(json.dumps(tried))

    code = main(["plan", "-f", str(tmp_path / "tried.json"), "--snapshot", CLUSTER])

    shown = capsys.readouterr()
    assert (code, shown.err) == (0, "")
    assert f"+example.com/hot:{effect}" in shown.out


WRONG = {
    "a field that there is not": (
        yaml.safe_dump(rule({**DRIVER, "pol": "node-1"})),
        'DeviceTaintRule "hot": unknown field "spec.deviceSelector.pol"',
    ),
    "a field that a custom resource has not": (
        (PLANS / "placement.yaml").read_text().replace("edge", "front") + "  numberOfCluster: 1",
        'Placement "front": unknown field "spec.numberOfCluster"\n$',
    ),
    "a field twice": (
        yaml.safe_dump(rule(ONE)) + "metadata: {name: other}\n",
        'line 12: key "metadata" already set in map',
    ),
    "a number for a text": (yaml.safe_dump(rule({"pool": 3})), 'DeviceTaintRule "hot": '),
    "a version of it from a file of another": (
        yaml.safe_dump(rule(ONE, resourceVersion="4")),
        'DeviceTaintRule "hot": resourceVersion should not be set',
    ),
    "a table": ("NAME   AGE\nhot    3d\n", "it has no kind\n.*-o yaml"),
    "no yaml": ("a: [", "invalid YAML"),
    "nothing": ("", "no objects found in"),
    "a name that no yaml has": (
        yaml.safe_dump({**rule(ONE), "metadata": {}}),
        "metadata.name is required",
    ),
    "no version": (yaml.safe_dump(rule(ONE, "")), "apiVersion is required"),
    "a service": (
        "{apiVersion: v1, kind: Service}",
        'tried.yaml: plans do not support kind "Service"',
    ),
    "a workload and a class": (
        "{apiVersion: v1, kind: Pod, metadata: {name: p}}\n---\n"
        "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: c}}",
        "workloads cannot be planned together with DeviceClass; make two plans",
    ),
    "a claim alone": (
        "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: c}, spec: {devices:"
        " {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}}",
        "no workload found",
    ),
    "a pod that is wrong": (
        "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {}}",
        "spec.containers: Required value",
    ),
    "a node": ("{apiVersion: v1, kind: Node}", "\n  use 'kubectl drain'"),
    "what kustomize reads": (
        "{apiVersion: v1, kind: Kustomization}",
        r"\n  .*kubectl kustomize DIR \| sully plan -f -",
    ),
    "another kind": (
        "{apiVersion: v1, kind: ConfigMap}",
        r'plans do not support kind "ConfigMap" .*ManagedClusterSetBinding[^\n]*\nSee [^\n]*\n$',
    ),
}


@pytest.mark.parametrize(("text", "complaint"), WRONG.values(), ids=WRONG)
def test_what_is_refused(
    text: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tried.yaml").write_text(text)

    code = main(["plan", "-f", str(tmp_path / "tried.yaml"), "--snapshot", CLUSTER])

    assert code in (1, 2)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert re.search(complaint, shown.err, re.DOTALL)


WORKLOAD = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: more, namespace: default}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: more}}}}
  template:
    metadata: {{labels: {{app: more}}}}
    spec:
      containers: [{{name: c, image: i}}]
      resourceClaims: [{{name: gpu, resourceClaimTemplateName: one-more}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: one-more, namespace: default}}
spec: {{spec: {{devices: {{requests: [{{name: r, exactly: {{deviceClassName: gpu}}}}]}}}}}}
"""


CONTROLLER_UID = "batch.kubernetes.io/controller-uid"


def workload(kind: str, image: str) -> Obj:
    """Return a workload of one pod, as its manifest."""
    restart = "Never" if kind == "Job" else "Always"
    spec: Obj = {"containers": [{"name": "c", "image": image}], "restartPolicy": restart}
    if kind == "Pod":
        return manifests.pod("more", spec, namespace="default")
    made = manifests.workload(kind, "more", manifests.pod_template({"app": "more"}, spec))
    if kind == "Job":
        del made["spec"]["selector"]
    made["metadata"]["namespace"] = "default"
    return made


@pytest.mark.parametrize(("replicas", "code"), [(1, 0), (1000, 3)])
def test_a_workload_fits_or_not(
    replicas: int, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "w.yaml").write_text(WORKLOAD.format(replicas=replicas))
    arguments = ["plan", "-f", str(tmp_path / "w.yaml"), "--snapshot", CLUSTER]

    assert main([*arguments, "-o", "json"]) == code
    document = json.loads(capsys.readouterr().out)
    assert main([*arguments, "-o", "wide"]) == code
    shown = capsys.readouterr().out

    assert document["pods"] == replicas
    assert (document["pending"] > 0) is bool(code)
    assert ("stay Pending" in shown) is bool(code)


EXISTING = ("Pod", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job")


@pytest.mark.parametrize("kind", EXISTING)
def test_a_workload_that_exists_is_planned_as_its_replacement(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = (workload(kind, image) for image in ("one", "two"))
    before["metadata"]["uid"] = "uid"
    if kind == "Job":
        before["spec"]["selector"] = {"matchLabels": {CONTROLLER_UID: "uid"}}
        before["spec"]["template"]["metadata"]["labels"] = {CONTROLLER_UID: "uid"}
    (tmp_path / "before.yaml").write_text(yaml.safe_dump(before))
    (tmp_path / "after.yaml").write_text(yaml.safe_dump(after))
    snapshots = ("--snapshot", CLUSTER, "--snapshot", str(tmp_path / "before.yaml"))

    code = main(["plan", "-f", str(tmp_path / "after.yaml"), *snapshots, "-o", "json"])

    shown = capsys.readouterr()
    assert code == 0, shown.err
    assert json.loads(shown.out)["workloads"][0]["name"] == "more"


def test_the_standard_input_is_read_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"{}")))

    code = main(["plan", "-f", "-", "--snapshot", "-"])

    assert code == 2
    assert "only one of -f and --snapshot can read standard input" in capsys.readouterr().err


IDLE = {
    "a pool that there is not": (
        rule({**DRIVER, "pool": "node-11"}),
        'hot: currently matches no device: pool "node-11" not found (did you mean "node-1"?)',
    ),
    "a class that there is not": (
        rule({"deviceClassName": "gpus"}),
        'hot: deviceclass "gpus" not found (did you mean "gpu"?)',
    ),
    "no selector": (rule(None), "no deviceSelector, which matches no device"),
    "a patch": (
        {
            "apiVersion": "resource.k8s.io/v1alpha3",
            "kind": "ResourceSlicePatch",
            "metadata": {"name": "p"},
            "spec": {"devices": {"filter": {"driver": "gpu.example"}, "taints": [TAINT]}},
        },
        'ResourceSlicePatch p: currently matches no device: driver "gpu.example" not found (did',
    ),
}


@pytest.mark.parametrize(("tried", "text"), IDLE.values(), ids=IDLE)
def test_what_is_for_no_device_is_reported(
    tried: Obj, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tried.json").write_text(json.dumps(tried))

    code = main(["plan", "-f", str(tmp_path / "tried.json"), "--snapshot", CLUSTER])

    shown = capsys.readouterr()
    assert (code, "No devices affected." in shown.out) == (0, True)
    assert text in shown.err


CREATORS: dict[str, tuple[str, str, Obj, str]] = {
    "policy": (
        POLICY_NAME,
        "DeviceTaintPolicy",
        {"selector": DRIVER, "taint": TAINT},
        "rule hot is of policy fw, which may create it again; set its mode to DryRun before",
    ),
    "maintenance": (
        MAINTENANCE_NAME,
        "DeviceMaintenance",
        {"selector": DRIVER, "start": "2031-01-01T00:00:00Z"},
        "which may create it again; to end it: sully maintenance cancel fw",
    ),
}


@pytest.mark.parametrize("noun", CREATORS)
@pytest.mark.parametrize("exists", [True, False], ids=["exists", "deleted"])
def test_a_rule_that_would_be_created_again(
    noun: str, exists: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    annotation, kind, spec, want = CREATORS[noun]
    creator = {
        "apiVersion": "sully.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": "fw"},
        "spec": spec,
    }
    there = [rule({**ONE, "device": "gpu-0"}, annotations={annotation: "fw"})]
    there += [creator] if exists else []
    (tmp_path / "there.yaml").write_text(yaml.safe_dump_all(there))
    files = ["--snapshot", CLUSTER, "--snapshot", str(tmp_path / "there.yaml")]

    assert main(["plan", "device", "node-1/gpu-0", "example.com/hot-", *files]) == 0
    assert (want in capsys.readouterr().err) == exists


def test_a_snapshot_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()

    with pytest.raises(CommandError, match="folder: is a directory"):
        write_file(tmp_path / "folder", b"{}")

    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
