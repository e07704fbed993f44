"""Which nodes take a pod, apart from devices."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from sully.domain.allocation.pools.nodes import AllocatorNode as AllocationNode
from sully.domain.scheduling.filters import (
    InsufficientResource,
    NodeInfo,
    NodeReason,
    Rejection,
    run_filters,
)
from sully.domain.scheduling.objects import Pod
from sully.domain.scheduling.resources import NodeResources, amounts, requests_of
from sully.testing.builders import node, pod_as

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
CORDON = "node.kubernetes.io/unschedulable"


def pod(**spec: Any) -> Pod:
    return pod_as(Pod, "p", namespace="a", node="", spec=spec)


def state(
    room: dict[str, str] | None = None, used: dict[str, Any] | None = None, **spec: Any
) -> NodeInfo:
    labels = {"zone": "a", "cores": "8"}
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "10"} if room is None else room
    resources = NodeResources(amounts(allocatable))
    if used is not None:
        resources.add(requests_of(asking(**used)))
    labeled = node("n", metadata={"labels": labels}, spec=spec)
    return NodeInfo(labeled, AllocationNode("n", labels), resources)


def asking(**requests: str) -> Pod:
    return pod(containers=[{"name": "c", "resources": {"requests": requests}}])


def affine(*terms: Any) -> Pod:
    return pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}})


def expression(key: str, operator: str, *values: str) -> Any:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def tainted(effect: str) -> NodeInfo:
    return state(taints=[{"key": "dedicated", "value": "infra", "effect": effect}])


def tolerating(**toleration: str) -> Pod:
    return pod(tolerations=[toleration])


@dataclass(frozen=True)
class Case:
    pod: Pod = field(default_factory=pod)
    node: NodeInfo = field(default_factory=state)
    want: Rejection | None = None


CASES = {
    "nothing asked": Case(),
    "cordoned": Case(node=state(unschedulable=True), want=Rejection((NodeReason.UNSCHEDULABLE,))),
    "cordoned, tolerated": Case(
        tolerating(key=CORDON, operator="Exists"), state(unschedulable=True)
    ),
    "cordoned comes before taints": Case(
        node=state(unschedulable=True, taints=[{"key": "k", "effect": "NoSchedule"}]),
        want=Rejection((NodeReason.UNSCHEDULABLE,)),
    ),
    "taint": Case(node=tainted("NoSchedule"), want=Rejection((NodeReason.UNTOLERATED_TAINT,))),
    "taint that evicts": Case(
        node=tainted("NoExecute"), want=Rejection((NodeReason.UNTOLERATED_TAINT,))
    ),
    "taint that only advises": Case(node=tainted("PreferNoSchedule")),
    "tolerated by value": Case(tolerating(key="dedicated", value="infra"), tainted("NoSchedule")),
    "tolerated by key": Case(tolerating(key="dedicated", operator="Exists"), tainted("NoExecute")),
    "everything tolerated": Case(tolerating(operator="Exists"), tainted("NoExecute")),
    "another value": Case(
        tolerating(key="dedicated", value="x"),
        tainted("NoSchedule"),
        Rejection((NodeReason.UNTOLERATED_TAINT,)),
    ),
    "another effect": Case(
        tolerating(key="dedicated", operator="Exists", effect="NoExecute"),
        tainted("NoSchedule"),
        Rejection((NodeReason.UNTOLERATED_TAINT,)),
    ),
    "an operator that is unknown": Case(
        tolerating(key="dedicated", operator="Gt", value="infra"),
        tainted("NoSchedule"),
        Rejection((NodeReason.UNTOLERATED_TAINT,)),
    ),
    "selector": Case(pod(nodeSelector={"zone": "a"})),
    "selector, other value": Case(
        pod(nodeSelector={"zone": "b"}), want=Rejection((NodeReason.NODE_AFFINITY,))
    ),
    "selector, no label": Case(
        pod(nodeSelector={"x": ""}), want=Rejection((NodeReason.NODE_AFFINITY,))
    ),
    "affinity": Case(affine(expression("zone", "In", "b", "a"))),
    "affinity by number": Case(affine(expression("cores", "Gt", "4"))),
    "one of two terms": Case(affine(expression("x", "Exists"), expression("zone", "Exists"))),
    "affinity elsewhere": Case(
        affine(expression("zone", "NotIn", "a")), want=Rejection((NodeReason.NODE_AFFINITY,))
    ),
    "affinity with an empty term": Case(affine({}), want=Rejection((NodeReason.NODE_AFFINITY,))),
    "affinity to the name": Case(
        affine({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]})
    ),
    "fits exactly": Case(asking(cpu="4", memory="8Gi")),
    "more than there is": Case(asking(cpu="4001m"), want=Rejection((InsufficientResource("cpu"),))),
    "more than is left": Case(
        asking(cpu="3", memory="1Gi"),
        state(used={"cpu": "2"}),
        Rejection((InsufficientResource("cpu"),), preemptible=True),
    ),
    "several together": Case(
        asking(cpu="3", memory="9Gi"),
        state(used={"cpu": "2"}),
        Rejection((InsufficientResource("cpu"), InsufficientResource("memory"))),
    ),
    "a resource the node does not know": Case(
        asking(**{"example.com/x": "1"}),
        want=Rejection((InsufficientResource("example.com/x"),), helped_by_classes=True),
    ),
    "too many pods": Case(
        node=state({"pods": "1"}, used={}),
        want=Rejection((NodeReason.TOO_MANY_PODS,), preemptible=True),
    ),
    "a node that reports nothing": Case(
        node=state({}), want=Rejection((NodeReason.TOO_MANY_PODS,))
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_rejects(case: Case) -> None:
    assert run_filters(case.node, case.pod, requests_of(case.pod)) == case.want
