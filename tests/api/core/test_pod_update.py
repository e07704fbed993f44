"""What may change in a pod that exists."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from api.core.bodies import container, pod
from api.core.writing import create, update

Obj = dict[str, Any]
Change = Callable[[Obj], None]
ALLOWED = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
FROZEN = f"spec: Forbidden: pod updates may not change fields other than {ALLOWED}\n"
NODES = "requiredDuringSchedulingIgnoredDuringExecution"


def _set(**fields: Any) -> Change:
    return lambda spec: spec.update(fields)


def _image(spec: Obj) -> None:
    spec["containers"][0]["image"] = "example.com/app:2"


def _another_container(spec: Obj) -> None:
    spec["containers"].append(container(name="more"))


def _toleration(spec: Obj) -> None:
    spec["tolerations"].append({"key": "k", "operator": "Exists"})


def _longer_stay(spec: Obj) -> None:
    spec["tolerations"][0]["tolerationSeconds"] = 5


def _nodes(*keys: str) -> Obj:
    """Affinity to nodes that have these labels."""
    term = {"matchExpressions": [{"key": key, "operator": "Exists"} for key in keys]}
    return {"nodeAffinity": {NODES: {"nodeSelectorTerms": [term]}}}


def _preferred(key: str) -> Obj:
    """Affinity to nodes that had better have this label."""
    term = {"matchExpressions": [{"key": key, "operator": "Exists"}]}
    preferred = [{"weight": 1, "preference": term}]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


CASES: dict[str, tuple[Obj, Change, list[str]]] = {
    "nothing": ({}, _set(), []),
    "image": ({}, _image, []),
    "toleration more": ({}, _toleration, []),
    "other seconds": ({}, _longer_stay, []),
    "deadline set": ({}, _set(activeDeadlineSeconds=9), []),
    "deadline lowered": ({"activeDeadlineSeconds": 9}, _set(activeDeadlineSeconds=8), []),
    "deadline raised": (
        {"activeDeadlineSeconds": 8},
        _set(activeDeadlineSeconds=9),
        [
            "spec.activeDeadlineSeconds: Invalid value: 9: must be less than or equal to previous"
            " value"
        ],
    ),
    "container more": (
        {},
        _another_container,
        ["spec.containers: Forbidden: pod updates may not add or remove containers"],
    ),
    "toleration taken away": (
        {"tolerations": [{"key": "k", "operator": "Exists"}]},
        _set(tolerations=[]),
        [
            "spec.tolerations: Forbidden: existing toleration can not be modified except its"
            " tolerationSeconds"
        ],
    ),
    "node": (
        {},
        _set(nodeName="n1"),
        [
            f"{FROZEN}@@ -43,7 +43,7 @@\n"
            '  "ServiceAccountName": "default",\n  "DeprecatedServiceAccount": "default",\n'
            '  "AutomountServiceAccountToken": false,\n- "NodeName": "",\n+ "NodeName": "n1",\n'
            '  "HostNetwork": false,\n  "HostPID": false,\n  "HostIPC": false,\n'
        ],
    ),
    "node selector": (
        {"nodeSelector": {"zone": "a"}},
        _set(nodeSelector={"zone": "b"}),
        [
            f"{FROZEN}@@ -40,7 +40,7 @@\n"
            '  "ActiveDeadlineSeconds": null,\n  "DNSPolicy": "ClusterFirst",\n'
            '  "NodeSelector": {\n-  "zone": "a"\n+  "zone": "b"\n  },\n'
            '  "ServiceAccountName": "default",\n  "DeprecatedServiceAccount": "default",\n'
        ],
    ),
    "gate taken away": ({"schedulingGates": [{"name": "a"}]}, _set(schedulingGates=[]), []),
    "gate added": (
        {},
        _set(schedulingGates=[{"name": "a"}]),
        [
            "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new"
            " scheduling gate 'a'"
        ],
    ),
    "label for the node, while gated": (
        {"schedulingGates": [{"name": "a"}], "nodeSelector": {"zone": "a"}},
        _set(nodeSelector={"zone": "a", "tier": "b"}),
        [],
    ),
    "another label for the node, while gated": (
        {"schedulingGates": [{"name": "a"}], "nodeSelector": {"zone": "a"}},
        _set(nodeSelector={"zone": "b"}),
        [
            'spec.nodeSelector: Invalid value: {"zone":"b"}: only additions to spec.nodeSelector'
            " are allowed (no mutations or deletions)"
        ],
    ),
    "another node, while gated": (
        {"schedulingGates": [{"name": "a"}], "affinity": _nodes("zone")},
        _set(affinity=_nodes("tier")),
        [
            f"spec.affinity.nodeAffinity.{NODES}.nodeSelectorTerms[0]: Invalid value:"
            ' {"MatchExpressions":[{"Key":"tier","Operator":"Exists","Values":null}],'
            '"MatchFields":null}: only additions are allowed (no mutations or deletions)'
        ],
    ),
    "fewer nodes, while gated": (
        {"schedulingGates": [{"name": "a"}], "affinity": _nodes("zone")},
        _set(affinity=_nodes("zone", "tier")),
        [],
    ),
    "preferred nodes, while gated": (
        {"schedulingGates": [{"name": "a"}], "affinity": _preferred("zone")},
        _set(affinity=_preferred("tier")),
        [],
    ),
    "affinity to nodes taken away, while gated": (
        {"schedulingGates": [{"name": "a"}], "affinity": _nodes("zone")},
        _set(affinity={}),
        [
            f"spec.affinity.nodeAffinity.{NODES}.nodeSelectorTerms: Invalid value: null: no"
            " additions/deletions to non-empty NodeSelectorTerms list are allowed"
        ],
    ),
    "affinity, while gated": (
        {"schedulingGates": [{"name": "a"}]},
        _set(affinity=_nodes("zone")),
        [],
    ),
    "grace period": (
        {},
        _set(terminationGracePeriodSeconds=5),
        [
            f"{FROZEN}@@ -36,7 +36,7 @@\n"
            '  ],\n  "EphemeralContainers": null,\n  "RestartPolicy": "Always",\n'
            '- "TerminationGracePeriodSeconds": 30,\n+ "TerminationGracePeriodSeconds": 5,\n'
            '  "ActiveDeadlineSeconds": null,\n  "DNSPolicy": "ClusterFirst",\n'
            '  "NodeSelector": null,\n'
        ],
    ),
}


@pytest.mark.parametrize(("body", "change", "want"), CASES.values(), ids=CASES.keys())
def test_update(body: Obj, change: Change, want: list[str]) -> None:
    old = create("pods", pod(automountServiceAccountToken=False, **body)).obj
    new = copy.deepcopy(old)
    change(new["spec"])

    written = update("pods", new, old)

    assert written.texts() == want
    changed = written.obj["spec"] != old["spec"]
    assert written.obj["metadata"]["generation"] == (2 if changed else 1)


def test_status_cannot_be_written_with_the_pod() -> None:
    old = create("pods", pod()).obj
    new = copy.deepcopy(old)
    new["status"]["phase"] = "Running"

    assert update("pods", new, old).obj["status"]["phase"] == "Pending"
