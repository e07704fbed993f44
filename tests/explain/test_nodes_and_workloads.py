"""Why the devices of a node are not used, and why the pods of a workload do not run."""

from __future__ import annotations

from typing import Any

import pytest

import manifests
from explain.situation import Situation
from explain.test_loops import EVENTS, FOR_A_WHILE, NO_SCHEDULE, web
from explain.waiters import BUSY, PLAIN, TWO
from explain.worlds import (
    NAMESPACE,
    Obj,
    claim,
    class_,
    device,
    node,
    pod,
    rule,
    slice_,
)

NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}


def workload(kind: str = "Deployment", name: str = "web", **status: Any) -> Obj:
    return manifests.body(kind, name, {"replicas": 2}, status, namespace=NAMESPACE)


def of_web(name: str, *claims: str, kind: str = "ReplicaSet", **more: Any) -> Obj:
    made = pod(name, *claims, owner="web-7d9" if kind == "ReplicaSet" else "web", **more)
    made["metadata"]["ownerReferences"][0]["kind"] = kind
    if kind == "ReplicaSet":
        made["metadata"]["labels"] = {"pod-template-hash": "7d9"}
    return made


def about_node(state: str, cause: str, *objects: Obj, **more: Any) -> Situation:
    return Situation(kind="node", name="n1", objects=objects, state=state, cause=cause, **more)


def about(
    state: str, cause: str, *objects: Obj, kind: str = "deployment", **more: Any
) -> Situation:
    return Situation(
        kind=kind, name="web", objects=(*PLAIN, *objects), state=state, cause=cause, **more
    )


SITUATIONS: dict[str, Situation] = {
    "node: free devices": about_node(
        "Ready",
        "DevicesFree",
        *PLAIN,
        first="is schedulable and has 2 free devices. It has 2 devices: 0 in use, 2 free",
        helps=None,
    ),
    "node: some free, some tainted": about_node(
        "Ready",
        "DevicesFree",
        *PLAIN,
        rule("fw", select={"device": "gpu-0"}),
        contains=("rule fw (created by alice) prevents scheduling on 1 of them.",),
        because=("DeviceTaintRule/fw",),
    ),
    "node: all in use": about_node("InUse", "DevicesInUse", *PLAIN, *BUSY, first="all are in use"),
    "node: all tainted": about_node(
        "Tainted",
        "DevicesTainted",
        *PLAIN,
        rule("fw"),
        first="no free device: rule fw (created by alice) prevents scheduling on 2 of 2 devices",
        because=("DeviceTaintRule/fw",),
        helps="sully rules",
    ),
    "node: devices cordoned": about_node(
        "Tainted",
        "DevicesTainted",
        *PLAIN,
        rule("cordon-n1", key="sully.dev/unschedulable"),
        because=("DeviceTaintRule/cordon-n1",),
        helps="To uncordon its devices: sully uncordon node n1",
    ),
    "node: devices cordoned and tainted": about_node(
        "Tainted",
        "DevicesTainted",
        *PLAIN,
        rule("cordon-n1", key="sully.dev/unschedulable"),
        rule("fw"),
        because=("DeviceTaintRule/cordon-n1", "DeviceTaintRule/fw"),
        helps="Tolerate the taint, or have it removed: sully rules",
    ),
    "node: an incomplete pool": about_node(
        "Unusable",
        "DevicesUnusable",
        node(),
        class_(),
        slice_(device("gpu-0"), count=2),
        first="pool incomplete: 1 of 2 slices",
    ),
    "node: cordoned": about_node(
        "Unschedulable", "Cordoned", node(cordoned=True), TWO, helps="kubectl uncordon n1"
    ),
    "node: not ready": about_node(
        "Unschedulable", "NotReady", node(taints=[NOT_READY]), TWO, first=NOT_READY["key"]
    ),
    "node: no devices": about_node("Ready", "NoDevices", node(), helps="driver is running"),
    "node: gone, with devices": about_node("Missing", "NodeNotFound", node("n2"), TWO),
    "workload: one pod is Pending": about(
        "Pending",
        "PodsPending",
        workload(),
        rule("fw"),
        claim("a", holds=("n1/gpu-0",), pods=("web-7d9-a",)),
        of_web("web-7d9-a", "a", on="n1"),
        claim("b"),
        of_web("web-7d9-b", "b"),
        first="1 of 2 pods of Deployment team/web is Pending",
        contains=("Pod team/web-7d9-b",),
        because=("DeviceTaintRule/fw", "ResourceClaim/team/a"),
        helps="Tolerate",
    ),
    "workload: pods will be evicted": about(
        "Evicting",
        "PodsToBeEvicted",
        rule("fw", "NoExecute"),
        workload("StatefulSet"),
        claim("a", holds=("n1/gpu-0",), pods=("web-0",)),
        of_web("web-0", "a", kind="StatefulSet", on="n1"),
        kind="statefulset",
        first="1 of 1 pod of StatefulSet team/web will be evicted",
        because=("DeviceTaintRule/fw",),
    ),
    "workload: nothing happens": about(
        "Running",
        "PodsRunning",
        workload("DaemonSet"),
        claim("a", holds=("n1/gpu-0",), pods=("web-x",)),
        of_web("web-x", "a", kind="DaemonSet", on="n1"),
        kind="daemonset",
        first="1 pod of DaemonSet team/web has a node",
        helps=None,
    ),
    "workload: only its pods are known": about(
        "Running",
        "PodsRunning",
        of_web("web-7d9-a", on="n1"),
    ),
    "workload: its controller cannot create pods": about(
        "Idle",
        "NoPods",
        workload(conditions=[{"type": "ReplicaFailure", "status": "True", "message": "quota"}]),
        first="has no pods: quota",
        helps="Correct what the message names",
    ),
    "workload: no pods": about("Idle", "NoPods", workload(), helps="Check its replicas"),
    "workload: a job that is done": about(
        "Finished",
        "Finished",
        workload("Job", conditions=[{"type": "Complete", "status": "True"}]),
        kind="job",
        first="has finished (Complete)",
    ),
    "workload: evicted again and again": Situation(
        kind="deployment",
        name="web",
        objects=(
            *PLAIN,
            *EVENTS,
            workload(),
            web(),
            claim(
                "c",
                holds=("n1/gpu-0",),
                pods=("web-7d9-abcde",),
                tolerations=(FOR_A_WHILE, NO_SCHEDULE),
            ),
            rule("fw", "NoExecute"),
        ),
        after=30,
        state="Evicting",
        cause="EvictionLoop",
        first="of Deployment team/web were evicted in the last",
        because=("DeviceTaintRule/fw",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS)
def test_situations(situation: Situation) -> None:
    situation.check()
