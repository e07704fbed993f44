"""Why a pod has no node: constraints between pods, ports and volumes, and who else decides."""

from __future__ import annotations

from typing import Any

import pytest

import manifests
from explain.situation import Situation
from explain.waiters import BUSY, PLAIN, alone, waiting
from explain.worlds import NAMESPACE, Obj, node, pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HOST = "kubernetes.io/hostname"
KUBERNETES = ("TaintRecord", "EvictionRecord")
"""Kinds that a server without Sully does not have."""


def hosts(*names: str) -> tuple[Obj, ...]:
    nodes = [node(name) for name in names]
    for entry in nodes:
        entry["metadata"] = entry["metadata"] | {"labels": {HOST: entry["metadata"]["name"]}}
    return tuple(nodes)


def labeled(name: str, **more: Any) -> Obj:
    made = pod(name, **more)
    return made | {"metadata": made["metadata"] | {"labels": {"app": "web"}}}


def affinity(kind: str) -> Obj:
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}}
    return {"affinity": {kind: {REQUIRED: [term]}}}


def port(number: int) -> Obj:
    ports = [{"containerPort": number, "hostPort": number}]
    return {"containers": [{"name": "c", "ports": ports}]}


def cpu(amount: str, **more: Any) -> Obj:
    container = {"name": "c", "resources": {"requests": {"cpu": amount}}}
    return {"containers": [container], **more}


def scheduled(message: str, reason: str = "Unschedulable") -> Obj:
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    return {"conditions": [condition]}


SPREAD: Obj = {
    "topologySpreadConstraints": [
        {
            "topologyKey": HOST,
            "maxSkew": 1,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
}
USES: Obj = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
CLAIM = manifests.body(
    "PersistentVolumeClaim",
    "data",
    {"volumeName": "disk"},
    {"phase": "Bound"},
    namespace=NAMESPACE,
    annotations={"pv.kubernetes.io/bind-completed": "yes"},
)
_ON_N9: Obj = {"matchExpressions": [{"key": HOST, "operator": "In", "values": ["n9"]}]}
VOLUME = manifests.body(
    "PersistentVolume",
    "disk",
    {"nodeAffinity": {"required": {"nodeSelectorTerms": [_ON_N9]}}},
)
FAST: Obj = {"storageClassName": "fast"}
WAITS = manifests.body("StorageClass", "fast") | {
    "provisioner": "example.com/disk",
    "volumeBindingMode": "WaitForFirstConsumer",
}
REPORT = "0/1 nodes are available: 1 node(s) were out of luck."

CONSTRAINTS = {
    "no pod to be near": alone(
        "NodesUnsuitable",
        *hosts("n1"),
        pod(**affinity("podAffinity")),
        first="the only node does not satisfy its pod affinity.",
        contains=("node(s) didn't match pod affinity rules",),
        because=("Node/n1",),
        helps="Run the pods first that it has affinity to",
    ),
    "a pod to keep apart from": alone(
        "NodesUnsuitable",
        *hosts("n1"),
        labeled("q", on="n1"),
        pod(**affinity("podAntiAffinity")),
        first="the only node does not satisfy pod anti-affinity.",
        contains=("node(s) didn't match pod anti-affinity rules",),
        because=("Node/n1",),
        helps="change the anti-affinity of the pod",
    ),
    "too many pods in the domain": alone(
        "NodesUnsuitable",
        *hosts("n1"),
        node("n2", cordoned=True) | {"metadata": {"name": "n2", "labels": {HOST: "n2"}}},
        labeled("q", on="n1"),
        labeled("p", **SPREAD),
        first="1 does not satisfy its topology spread constraints",
        contains=("node(s) didn't match pod topology spread constraints",),
        because=("Node/n1", "Node/n2"),
        helps="Uncordon node n2",
    ),
    "a port in use": alone(
        "NodesUnsuitable",
        *hosts("n1"),
        pod("q", on="n1", **port(80)),
        pod(**port(80)),
        first="the only node does not have the host ports free that it requests.",
        contains=("node(s) didn't have free ports for the requested pod ports",),
        because=("Node/n1",),
        helps="use other host ports",
    ),
    "a volume of another node": alone(
        "NodesUnsuitable",
        *hosts("n1"),
        CLAIM,
        VOLUME,
        pod(**USES),
        first="the only node does not have access to its volumes.",
        contains=("node(s) didn't match PersistentVolume's node affinity",),
        because=("Node/n1",),
        helps="Use a volume that other nodes can use",
    ),
    "no volume claim": alone(
        "VolumesNotReady",
        *hosts("n1"),
        pod(**USES),
        contains=('persistentvolumeclaim "data" not found',),
        helps="Check the PersistentVolumeClaims of the pod",
    ),
}
KUBE_SCHEDULER = {
    "devices, and what it reports": waiting(
        "DevicesInUse",
        *PLAIN,
        *BUSY,
        takes={"status": scheduled("0/1 nodes are available: 1 cannot allocate all claims.")},
        missing=KUBERNETES,
        contains=(
            "kube-scheduler reports: 0/1 nodes are available: 1 cannot allocate all claims.",
            "Request gpu of claim team/c needs 1",
        ),
        omits=("does not evaluate",),
        because=("ResourceClaim/team/busy",),
    ),
    "a group that it alone understands": alone(
        "NotScheduledYet",
        *hosts("n1"),
        pod(schedulingGroup={"podGroupName": "g"}, status=scheduled(REPORT)),
        missing=KUBERNETES,
        contains=(
            f"kube-scheduler reports: {REPORT}",
            "What else decides is not known: spec.schedulingGroup is not evaluated.",
        ),
        omits=("does not evaluate",),
        helps="check that it is running",
    ),
    "a volume that has to be provisioned": alone(
        "VolumesNotReady",
        *hosts("n1"),
        WAITS,
        CLAIM | {"metadata": {"name": "data", "namespace": NAMESPACE}, "spec": FAST},
        pod(**USES),
        missing=KUBERNETES,
        first='a volume for persistentvolumeclaim "data" has to be provisioned by example.com/disk',
        omits=("What else decides",),
        helps="Check the PersistentVolumeClaims of the pod",
    ),
    "a pod that it may preempt": alone(
        "NodesUnsuitable",
        *hosts("n1"),
        pod("q", on="n1", **cpu("4", priority=1)),
        pod(**cpu("2", priority=9)),
        missing=KUBERNETES,
        contains=("The scheduler may preempt team/q on node n1 for it.",),
        because=("Node/n1",),
    ),
    "another scheduler, and devices": alone(
        "OtherScheduler",
        *hosts("n1"),
        pod(schedulerName="volcano", status=scheduled(REPORT)),
        missing=KUBERNETES,
        contains=(f"volcano reports: {REPORT}", "it would fit on node n1"),
        helps="schedulerName",
    ),
    "a gate, and no node that fits": alone(
        "SchedulingGated",
        *hosts("n1"),
        pod(
            schedulingGates=[{"name": "example.com/quota"}],
            nodeSelector={"zone": "a"},
            status=scheduled("Scheduling is blocked", "SchedulingGated"),
        ),
        missing=KUBERNETES,
        contains=("0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",),
        omits=("kube-scheduler reports",),
        helps="The controller that set the gate",
    ),
    "volumes that may not be seen": alone(
        "NotScheduledYet",
        *hosts("n1"),
        pod(**USES, status=scheduled(REPORT)),
        missing=KUBERNETES,
        hidden=("PersistentVolumeClaim", "PersistentVolume", "StorageClass"),
        contains=(
            f"kube-scheduler reports: {REPORT}",
            "persistentvolumeclaims could not be read",
        ),
        helps="check that it is running",
    ),
}


SITUATIONS: dict[str, Situation] = {**CONSTRAINTS, **KUBE_SCHEDULER}


@pytest.mark.parametrize("case", SITUATIONS.values(), ids=SITUATIONS.keys())
def test_cause(case: Situation) -> None:
    case.check()
