"""Whether the pods of a new workload would fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

import manifests
from manifests import claim_spec, claim_template
from sully.api.resource.types import ResourceClaimTemplate
from sully.client.transport import Key, Kind
from sully.domain.planning.workload_pods import pod_count, template_pod
from sully.domain.scheduling.objects import Pod
from sully.planning.workloads import NewWorkload, WorkloadFit, fit_workloads
from sully.testing.builders import class_, device, node, pod_as, rule, select, slice_, taint
from sully.testing.clock import NOON
from sully.views.kinds import CLAIMS, CLASSES, RULES, SLICES
from sully.views.snapshot.kinds import NODES, PODS, TEMPLATES
from sully.views.snapshot.snapshot import Objects, Snapshot

KINDS: dict[str, Kind[Any]] = {
    "slices": SLICES,
    "classes": CLASSES,
    "rules": RULES,
    "claims": CLAIMS,
    "templates": TEMPLATES,
    "nodes": NODES,
    "pods": PODS,
}
TEMPLATE = claim_template(
    "one", claim_spec(allocationMode="ExactCount", count=1), namespace="default"
)
CLAIMING = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
CLUSTER: dict[str, list[Any]] = {
    "slices": [
        slice_("a", device("gpu-0"), device("gpu-1"), pool="a", node="node-1"),
        slice_("b", device("gpu-0"), pool="b", node="node-2"),
    ],
    "classes": [class_()],
    "nodes": [node("node-1"), node("node-2")],
    "templates": [msgspec.convert(TEMPLATE, ResourceClaimTemplate)],
}
OWNED = {
    "ownerReferences": [
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "name": "w",
            "uid": "u",
            "controller": True,
        }
    ]
}


def fit(kind: str, spec: dict[str, Any], **objects: list[Any]) -> WorkloadFit:
    """Return the fit of a workload whose pods need one device each."""
    templated = {"template": {"spec": {"resourceClaims": CLAIMING}}, **spec}
    body = manifests.body(kind, "w", templated, namespace="default", uid="u")
    pod = msgspec.convert(template_pod(kind, body), Pod)
    held = CLUSTER | objects
    snapshot = Snapshot([Objects(KINDS[name], held[name]) for name in held], taken=NOON)
    new = NewWorkload(kind=kind, key=Key("default", "w"), pod=pod, count=pod_count(kind, spec))
    (result,) = fit_workloads(snapshot, [new])
    return result


@dataclass(frozen=True)
class Case:
    kind: str
    spec: dict[str, Any]
    objects: dict[str, list[Any]]
    nodes: tuple[str, ...]
    """Of the pods in order; empty: Pending."""
    replaced: int = 0


CASES = {
    "all fit": Case("Deployment", {"replicas": 2}, {}, ("node-2", "node-1")),
    "replicas are 1 by default": Case("ReplicaSet", {}, {}, ("node-1",)),
    "one too many": Case("StatefulSet", {"replicas": 4}, {}, ("node-1", "node-2", "node-1", "")),
    "as many as run at a time": Case(
        "Job", {"parallelism": 3, "completions": 2}, {}, ("node-1", "node-2")
    ),
    "a suspended job": Case("Job", {"parallelism": 3, "suspend": True}, {}, ()),
    "one for each node, but not where it cannot run": Case(
        "DaemonSet",
        {},
        {
            "nodes": [
                node("node-1"),
                node("node-2", spec={"unschedulable": True}),
                node("node-3", spec={"taints": [{"key": "k", "effect": "NoSchedule"}]}),
            ]
        },
        ("node-1", "node-2"),
    ),
    "a tainted node": Case(
        "Deployment",
        {"replicas": 2},
        {"rules": [rule("r", select(pool="a"), taint("NoSchedule"))]},
        ("node-2", ""),
    ),
    "existing pods are replaced": Case(
        "StatefulSet",
        {"replicas": 3},
        {"pods": [pod_as(Pod, "w-0", metadata=OWNED)]},
        ("node-1", "node-2", "node-1"),
        replaced=1,
    ),
    "no template": Case("Deployment", {}, {"templates": []}, ("",)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_fit(case: Case) -> None:
    result = fit(case.kind, case.spec, **case.objects)

    assert sorted(pod.node for pod in result.pods) == sorted(case.nodes)
    assert result.replaced == case.replaced
    assert result.fits == all(case.nodes)


def test_why_not() -> None:
    result = fit("Deployment", {}, rules=[rule("r", select(), taint("NoSchedule"))])

    (pod,) = result.pods
    assert "cannot allocate all claims" in pod.message
    assert pod.diagnosis is not None
    assert pod.diagnosis.requests[0].refused == {"taint": 3}


def test_devices_and_names() -> None:
    result = fit("StatefulSet", {"replicas": 2}, nodes=[node("node-1")])

    assert [(pod.name, pod.node) for pod in result.pods] == [("w-0", "node-1"), ("w-1", "node-1")]
    assert {x for pod in result.pods for x in pod.devices} == {
        "gpu.example.com/a/gpu-0",
        "gpu.example.com/a/gpu-1",
    }
