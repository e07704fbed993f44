"""Owners in simulations: when they replace evicted pods, and what else they do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

import manifests
from manifests import stored
from planning.building import (
    Obj,
    machines,
    node,
    planned,
    put,
    rule,
    running,
    snapshot,
    toleration,
    waiting,
)
from sully.client.transport import Key
from sully.domain.capabilities.control_plane import ControlPlane
from sully.domain.planning.report import Plan
from sully.planning.dryrun.changes import Remove
from sully.planning.owners.kinds import JOBS
from sully.planning.plan_builder import build_plan
from sully.planning.simulation.cluster_copy import SimulationOptions
from sully.planning.simulation.simulator import Simulation
from sully.scheduler.options import options_for
from sully.views.kinds import RULES
from sully.views.snapshot.snapshot import Gap

JOB, SET, DAEMON = "Job/train", "StatefulSet/db", "DaemonSet/agent"


def job(**spec: Any) -> Obj:
    count = {"parallelism": 2, "completions": 2}
    status = {"failed": spec.pop("failed", 0)}
    return stored(manifests.body("Job", "train", count | spec, status), namespace="a")


def stateful_set(replicas: int = 2, **spec: Any) -> Obj:
    return stored(manifests.body("StatefulSet", "db", {"replicas": replicas} | spec), namespace="a")


def daemon_set(**spec: Any) -> Obj:
    return stored(manifests.body("DaemonSet", "agent", spec), namespace="a")


def owned(by: str, *places: str, **more: Any) -> list[Obj]:
    """Return pods; a place is a node and a device."""
    name = by.partition("/")[2]
    return [
        item
        for number, place in enumerate(places)
        for item in running(f"{name}-{number}", *place.split(), owned_by=by, **more)
    ]


def pending(by: str, name: str) -> list[Obj]:
    made = waiting(name)
    kind, _, owner = by.partition("/")
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": f"uid-{owner}"}
    made[0]["metadata"]["ownerReferences"] = [reference | {"controller": True}]
    template = running(name, "n1", "gpu-0")[2]
    return [*made, template]


def replacements(plan: Plan) -> list[str]:
    lines = []
    for eviction in plan.evictions:
        then, late = eviction.replacement, ""
        if then.scheduled_time is not None:
            late = f" +{(then.scheduled_time - eviction.eviction_time).total_seconds():g}"
        text = then.message or then.node
        lines.append(f"{eviction.name} {then.outcome.value}{late} {text}")
    lines += [f"{pod.name} deleted {pod.message}" for pod in plan.deleted_pods]
    lines += [f"{pod.name} scheduled {pod.node}" for pod in plan.scheduled_pods]
    return lines + [f"{pod.name} created {pod.node or 'Pending'}" for pod in plan.created_pods]


@dataclass(frozen=True)
class Case:
    objects: list[Obj]
    want: list[str]
    changes: tuple[Any, ...] = (put(rule(pool="n1")),)
    options: SimulationOptions = field(default_factory=lambda: SimulationOptions(stop_seconds=2))


TWO = machines("n1", "n2", devices=2)
LIMIT = "Job train would fail: {} would exceed its backoffLimit of {}"
IN_N1 = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
ONLY_N1 = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [IN_N1]}
    }
}
ON_N1_ONLY = (
    "0/2 nodes are available: 1 cannot allocate all claims,"
    " 1 node(s) didn't match Pod's node affinity/selector."
)
SURGE = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}
GONE = Remove(RULES, Key("", "old"))
CASES = {
    "a job waits after one failure": Case(
        [*TWO, job(), *owned(JOB, "n1 gpu-0", "n2 gpu-0")], ["train-0 Rescheduled +10 n2"]
    ),
    "and longer after two": Case(
        [*TWO, job(), *owned(JOB, "n1 gpu-0", "n1 gpu-1")],
        ["train-0 Rescheduled +20 n2", "train-1 Rescheduled +20 n2"],
    ),
    "a job that only replaces failed pods waits until they have terminated": Case(
        [
            *TWO,
            job(podReplacementPolicy="Failed"),
            *owned(JOB, "n1 gpu-0", "n2 gpu-0"),
        ],
        ["train-0 Rescheduled +12 n2"],
    ),
    "a job fails and takes its other pods with it": Case(
        [*TWO, job(backoffLimit=0), *owned(JOB, "n1 gpu-0", "n2 gpu-0")],
        [
            f"train-0 NotReplaced {LIMIT.format('1 failed pod', 0)}",
            f"train-1 deleted {LIMIT.format('1 failed pod', 0)}",
        ],
    ),
    "a job that fails makes place for a pending pod": Case(
        [
            *machines("n1", "n2"),
            job(backoffLimit=0),
            *owned(JOB, "n1 gpu-0", "n2 gpu-0"),
            *waiting("next"),
        ],
        [
            f"train-0 NotReplaced {LIMIT.format('1 failed pod', 0)}",
            f"train-1 deleted {LIMIT.format('1 failed pod', 0)}",
            "next scheduled n2",
        ],
    ),
    "a job whose pods are evicted again fails in the end": Case(
        [
            *machines("n1", "n2"),
            job(backoffLimit=1),
            *running("train-0", "n1", "gpu-0", owned_by=JOB, tolerations=[toleration(0)]),
            *running("train-1", "n2", "gpu-0", owned_by=JOB, tolerations=[toleration(0)]),
        ],
        [
            "train-0 EvictedAgain +10 it tolerates the taints there only for some time, and would"
            f" be evicted again immediately; then {LIMIT.format('2 failed pods', 1)}",
            f"train-1 deleted {LIMIT.format('2 failed pods', 1)}",
        ],
        options=SimulationOptions(stop_seconds=2, scheduling=options_for(ControlPlane.KUBERNETES)),
    ),
    "a job set may start a job again that fails": Case(
        [
            *TWO,
            job(backoffLimit=0),
            *owned(JOB, "n1 gpu-0", labels={"jobset.sigs.k8s.io/jobset-name": "big"}),
        ],
        [
            f"train-0 Unknown {LIMIT.format('1 failed pod', 0)}; JobSet big is expected to recreate"
            " all its Jobs, as often as its failurePolicy allows"
        ],
    ),
    "a job is suspended": Case(
        [*TWO, job(suspend=True), *owned(JOB, "n1 gpu-0")],
        ["train-0 NotReplaced Job train is suspended"],
    ),
    "a job that is managed elsewhere": Case(
        [*TWO, job(managedBy="kueue.x-k8s.io/multikueue"), *owned(JOB, "n1 gpu-0")],
        [
            "train-0 Unknown +2 owner Job/train of kind batch/Job: Sully does not know whether it"
            " recreates the pod; if it does, the pod would be rescheduled to n2"
        ],
    ),
    "a stateful set recreates one after the other": Case(
        [*TWO, stateful_set(), *owned(SET, "n1 gpu-0", "n1 gpu-1")],
        ["db-0 Rescheduled +2 n2", "db-1 Rescheduled +2 n2"],
    ),
    "and stops at the first that is unschedulable": Case(
        [*machines("n1", devices=2), stateful_set(), *owned(SET, "n1 gpu-0", "n1 gpu-1")],
        [
            "db-0 Pending 0/1 nodes are available: 1 cannot allocate all claims.",
            "db-1 NotReplaced StatefulSet db creates it when pod db-0 is ready",
        ],
    ),
    "it stops at a pod that is not ready": Case(
        [
            *TWO,
            stateful_set(),
            *running("db-0", "n2", "gpu-0", owned_by=SET, ready=False),
            *running("db-1", "n1", "gpu-0", owned_by=SET),
        ],
        ["db-1 NotReplaced StatefulSet db creates it when pod db-0 is ready"],
    ),
    "unless it creates them in parallel": Case(
        [
            *TWO,
            stateful_set(podManagementPolicy="Parallel"),
            *running("db-0", "n2", "gpu-0", owned_by=SET, ready=False),
            *running("db-1", "n1", "gpu-0", owned_by=SET),
        ],
        ["db-1 Rescheduled +2 n2"],
    ),
    "it waits until a pod has been ready for some time": Case(
        [*TWO, stateful_set(minReadySeconds=30), *owned(SET, "n1 gpu-0", "n1 gpu-1")],
        ["db-0 Rescheduled +2 n2", "db-1 Rescheduled +32 n2"],
    ),
    "a pod that is scheduled lets it create the rest": Case(
        [
            *machines("n1", devices=3),
            stateful_set(3),
            *pending(SET, "db-0"),
            rule("old", "NoSchedule", pool="n1"),
        ],
        ["db-0 scheduled n1", "db-1 created n1", "db-2 created n1"],
        (GONE,),
    ),
    "it wants fewer pods by now": Case(
        [*TWO, stateful_set(1), *owned(SET, "n2 gpu-0", "n1 gpu-1")],
        ["db-1 NotReplaced StatefulSet/db wants fewer pods"],
    ),
    "a daemon set replaces a pod on its node only": Case(
        [
            *TWO,
            *owned(
                DAEMON,
                "n1 gpu-0",
                affinity=ONLY_N1,
            ),
        ],
        [f"agent-0 Pending {ON_N1_ONLY}"],
    ),
    "before the pod has terminated, if it may surge": Case(
        [*TWO, daemon_set(**SURGE), *owned(DAEMON, "n1 gpu-0", "n2 gpu-0", affinity=ONLY_N1)],
        [f"agent-{number} Pending {ON_N1_ONLY}" for number in range(2)],
        (put(rule()),),
    ),
    "if it may surge, to another device": Case(
        [*TWO, daemon_set(**SURGE), *owned(DAEMON, "n1 gpu-0", affinity=ONLY_N1)],
        ["agent-0 Rescheduled +0 n1"],
        (put(rule(pool="n1", device="gpu-0")),),
    ),
    "not on a node that it does not tolerate": Case(
        [
            *TWO[:1],
            node("n1", taints=[{"key": "k", "effect": "NoSchedule"}]),
            *TWO[2:],
            *owned(DAEMON, "n1 gpu-0"),
        ],
        ["agent-0 NotReplaced its DaemonSet does not tolerate the taint k:NoSchedule of node n1"],
    ),
    "an owner of a kind that is not known": Case(
        [*TWO, *owned("Foo/x", "n1 gpu-0")],
        [
            "x-0 Unknown +2 owner Foo/x of kind apps/Foo: Sully does not know whether it recreates"
            " the pod; if it does, the pod would be rescheduled to n2"
        ],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_owners(case: Case) -> None:
    plan = planned(case.objects, *case.changes, options=case.options)

    assert replacements(plan) == case.want


def test_unknown_owners_are_counted_and_not_as_rescheduled() -> None:
    plan = planned([*TWO, *owned("Foo/x", "n1 gpu-0")], put(rule(pool="n1")))

    assert (len(plan.unknown), len(plan.not_rescheduled), plan.has_unscheduled) == (1, 0, True)


def test_jobs_that_cannot_be_read_are_reported() -> None:
    deployed = snapshot(
        *TWO, *owned(JOB, "n1 gpu-0"), gaps=[Gap(JOBS, "not allowed", "jobs is forbidden")]
    )
    simulation = Simulation(deployed, SimulationOptions(stop_seconds=1))
    simulation.run([put(rule(pool="n1"))])
    plan = build_plan(simulation)

    assert replacements(plan) == ["train-0 Rescheduled +10 n2"]
    assert plan.notes == (
        "the plan does not consider jobs (not allowed):"
        " whether a Job would fail, and when it recreates pods, is not known",
    )
