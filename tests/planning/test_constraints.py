"""Plans where kube-scheduler acts, for pods with constraints, and what it alone decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

import manifests
from manifests import stored
from planning.building import (
    Obj,
    machines,
    meta,
    put,
    rule,
    running,
    snapshot,
)
from sully.domain.planning.report import Plan
from sully.planning.plan_builder import build_plan
from sully.planning.simulation.simulator import Simulation
from sully.views.kinds import TAINT_RECORDS
from sully.views.snapshot.kinds import VOLUME_CLAIMS, VOLUMES
from sully.views.snapshot.snapshot import Gap

WEB = "ReplicaSet/web"
HOST, ZONE = "kubernetes.io/hostname", "zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
APP: Obj = {"matchLabels": {"app": "web"}}
PLAIN = (Gap(TAINT_RECORDS, "not served"),)
"""What a server without Sully lacks."""


def nodes(**zones: str) -> list[Obj]:
    """Return nodes with two devices each, by name, and their zones."""
    objects = machines(*zones, devices=2)
    for obj in objects:
        if obj["kind"] == "Node":
            name = obj["metadata"]["name"]
            labels = {HOST: name, ZONE: zones[name]}
            obj["metadata"] = obj["metadata"] | {"labels": labels}
    return objects


def apart(kind: str = "podAntiAffinity", key: str = HOST) -> Obj:
    return {"affinity": {kind: {REQUIRED: [{"topologyKey": key, "labelSelector": APP}]}}}


def spread(key: str) -> Obj:
    constraint = {
        "topologyKey": key,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": APP,
    }
    return {"topologySpreadConstraints": [constraint]}


def pod(name: str, on: str, device: str = "gpu-0", owned_by: str = WEB, **more: Any) -> list[Obj]:
    return running(name, on, device, owned_by=owned_by, labels={"app": "web"}, **more)


def claim(name: str, volume: str = "", cls: str = "") -> Obj:
    metadata = meta(name, "a")
    if volume:
        metadata |= {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    spec = {"volumeName": volume, "storageClassName": cls, "accessModes": ["ReadWriteOnce"]}
    return manifests.body("PersistentVolumeClaim", spec=spec, **metadata)


def volume(name: str, *on: str) -> Obj:
    expressions = [{"key": HOST, "operator": "In", "values": list(on)}]
    required = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    spec = {"nodeAffinity": {"required": required}} if on else {}
    return stored(manifests.body("PersistentVolume", name, spec))


def uses(name: str) -> Obj:
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]}


FAST = stored(manifests.body("StorageClass", "fast")) | {
    "provisioner": "example.com/disk",
    "volumeBindingMode": "WaitForFirstConsumer",
}
SCRATCH: Obj = {
    "volumes": [
        {
            "name": "scratch",
            "ephemeral": {
                "volumeClaimTemplate": {
                    "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast"}
                }
            },
        }
    ]
}


@dataclass(frozen=True)
class Case:
    objects: list[Obj]
    want: tuple[str, ...]
    gaps: tuple[Gap, ...] = PLAIN


CASES = {
    "apart from each other": Case(
        [
            *nodes(n1="a", n2="a", n3="b"),
            *pod("p1", "n1", **apart()),
            *pod("p2", "n2", **apart()),
        ],
        ("p1 Rescheduled n3",),
    ),
    "apart, and no other node": Case(
        [*nodes(n1="a", n2="a"), *pod("p1", "n1", **apart()), *pod("p2", "n2", **apart())],
        (
            "p1 Pending 0/2 nodes are available: 1 cannot allocate all claims, 1 node(s) didn't"
            " match pod anti-affinity rules.",
        ),
    ),
    "spread over zones": Case(
        [
            *nodes(n1="a", n2="a", n3="b"),
            *pod("p1", "n1", **spread(ZONE)),
            *pod("p2", "n3", **spread(ZONE)),
        ],
        # The pod that terminates does not count, so zone a has fewer.
        ("p1 Rescheduled n2",),
    ),
    "a port that is in use": Case(
        [
            *nodes(n1="a", n2="a"),
            *pod(
                "p1",
                "n1",
                initContainers=[
                    port_ := {
                        "name": "s",
                        "restartPolicy": "Always",
                        "ports": [{"containerPort": 80, "hostPort": 80}],
                    }
                ],
            ),
            *pod("p2", "n2", initContainers=[port_]),
        ],
        (
            "p1 Pending 0/2 nodes are available: 1 cannot allocate all claims, 1 node(s) didn't"
            " have free ports for the requested pod ports.",
        ),
    ),
    "a volume of the node": Case(
        [
            *nodes(n1="a", n2="a"),
            *pod("p1", "n1", **uses("data")),
            claim("data", "disk"),
            volume("disk", "n1"),
        ],
        (
            "p1 Pending 0/2 nodes are available: 1 cannot allocate all claims, 1 node(s) didn't"
            " match PersistentVolume's node affinity.",
        ),
    ),
    "a volume of both nodes": Case(
        [
            *nodes(n1="a", n2="a"),
            *pod("p1", "n1", **uses("data")),
            claim("data", "disk"),
            volume("disk"),
        ],
        ("p1 Rescheduled n2",),
    ),
    "a volume that is provisioned": Case(
        [*nodes(n1="a", n2="a"), FAST, *pod("p1", "n1", **SCRATCH)],
        (
            'p1 Unknown it would fit on n2, but a volume for persistentvolumeclaim "p1~1-scratch"'
            " has to be provisioned by example.com/disk",
        ),
    ),
    "volumes that may not be read": Case(
        [*nodes(n1="a", n2="a"), *pod("p1", "n1", **uses("data"))],
        (
            "p1 Unknown it would fit on n2, but persistentvolumeclaims could not be read;"
            " persistentvolumes could not be read",
        ),
        (*PLAIN, Gap(VOLUME_CLAIMS, "not allowed"), Gap(VOLUMES, "not allowed")),
    ),
    "pods that may be preempted": Case(
        [
            *nodes(n1="a", n2="a"),
            *pod("p1", "n1", priority=9, cpu="5"),
            *pod("p2", "n2", priority=1, cpu="5"),
        ],
        (
            "p1 Unknown the scheduler may preempt a/p2 on n2; 0/2 nodes are available: 1"
            " Insufficient cpu, 1 cannot allocate all claims.",
        ),
    ),
    "pods that are as important": Case(
        [
            *nodes(n1="a", n2="a"),
            *pod("p1", "n1", priority=9, cpu="5"),
            *pod("p2", "n2", priority=9, cpu="5"),
        ],
        ("p1 Pending 0/2 nodes are available: 1 Insufficient cpu, 1 cannot allocate all claims.",),
    ),
    "another scheduler, and no device": Case(
        [*nodes(n1="a"), *pod("p1", "n1", schedulerName="volcano")],
        (
            "p1 Unknown scheduler volcano decides about it; nodes and devices: 0/1 nodes are"
            " available: 1 cannot allocate all claims.",
        ),
    ),
    "a gate": Case(
        [*nodes(n1="a", n2="a"), *pod("p1", "n1", schedulingGates=[{"name": "example.com/q"}])],
        (
            "p1 Unknown it waits until gate example.com/q is removed; nodes and devices: it would"
            " fit on n2",
        ),
    ),
    "a group of pods": Case(
        [*nodes(n1="a", n2="a"), *pod("p1", "n1", schedulingGroup={"podGroupName": "g"})],
        ("p1 Unknown it would fit on n2, but spec.schedulingGroup is not evaluated",),
    ),
}


def plan_of(case: Case) -> Plan:
    simulation = Simulation(snapshot(*case.objects, gaps=case.gaps))
    simulation.run([put(rule(pool="n1"))])
    return build_plan(simulation)


def replacements(plan: Plan) -> tuple[str, ...]:
    return tuple(
        f"{x.name} {x.replacement.outcome.value} " + (x.replacement.message or x.replacement.node)
        for x in plan.evictions
    )


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_plan(case: Case) -> None:
    plan = plan_of(case)

    assert replacements(plan) == case.want
    assert plan.has_unscheduled == ("Rescheduled" not in case.want[0])


def test_our_own_scheduler_is_not_assumed_to_preempt() -> None:
    case = CASES["pods that may be preempted"]
    plan = plan_of(Case(case.objects, (), ()))

    assert replacements(plan)[0].startswith("p1 Pending 0/2 nodes are available")
