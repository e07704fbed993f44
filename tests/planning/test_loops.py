"""Changes after which pods would be evicted again and again, and what a plan shows about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

import manifests
from planning.building import (
    DRIVER,
    KEY,
    Obj,
    machines,
    meta,
    owner,
    put,
    request,
    rule,
    running,
    snapshot,
    toleration,
    waiting,
)
from sully.cli.change.plan.printer import show_plan, summary
from sully.cli.change.plan.results import exit_code
from sully.domain.eviction.loops import LoopCause
from sully.domain.planning.report import Plan, ReplacementOutcome, document
from sully.planning.plan_builder import build_plan
from sully.planning.simulation.cluster_copy import SimulationOptions
from sully.planning.simulation.simulator import Simulation
from sully.views.kinds import TAINT_RECORDS
from sully.views.snapshot.snapshot import Gap

WEB, HASH = "ReplicaSet/web-5d9f7", {"pod-template-hash": "5d9f7"}
NO_SCHEDULE = {"key": KEY, "operator": "Exists", "effect": "NoSchedule"}
ONE_NODE = machines("n1", devices=3)
"""All devices are tainted, and one is free while an evicted pod terminates."""
ANY_EFFECT = {"key": KEY, "operator": "Exists"}


def web(name: str, *tolerations: Obj, device: str = "gpu-0", **more: Any) -> list[Obj]:
    more = {"owned_by": WEB, "labels": HASH, **more}
    return running(name, "n1", device, tolerations=tolerations, **more)


def sharing(*names: str) -> list[Obj]:
    """Return pods of one ReplicaSet on n1 with the same claim."""
    users = [{"resource": "pods", "name": name, "uid": f"uid-{name}"} for name in names]
    result = {"request": "r", "driver": DRIVER, "pool": "n1", "device": "gpu-0"}
    status = {"reservedFor": users, "allocation": {"devices": {"results": [result]}}}
    metadata = meta("shared", "a", finalizers=["resource.kubernetes.io/delete-protection"])
    claim = manifests.body("ResourceClaim", spec=request(), status=status, **metadata)
    pods = [
        manifests.pod(
            spec=manifests.pod_spec("shared", schedulerName="default-scheduler", nodeName="n1"),
            status={"phase": "Running"},
            **meta(name, "a", labels=HASH, ownerReferences=[owner(WEB)]),
        )
        for name in names
    ]
    return [claim, *pods]


def plan(
    *objects: Obj,
    change: Any = None,
    sully: bool = False,
    options: SimulationOptions | None = None,
) -> Plan:
    gaps = [] if sully else [Gap(TAINT_RECORDS, "not served")]
    simulation = Simulation(snapshot(*objects, gaps=gaps), options)
    simulation.run([change or put(rule(pool="n1"))])
    return build_plan(simulation)


@dataclass(frozen=True)
class Shape:
    pods: list[Obj]
    cause: LoopCause
    remedy: str
    pods_evicted: int = 1
    after: float = 0


TAINT_DEVICES = f"sully taint device '{DRIVER}/n1/*'"
SHAPES = {
    "tolerates NoExecute for some seconds": Shape(
        web("p1", toleration(300)),
        LoopCause.TOLERATION_EXPIRES,
        f"{TAINT_DEVICES} {KEY}:NoSchedule",
        after=300,
    ),
    "also tolerates NoSchedule": Shape(
        web("p1", toleration(300), NO_SCHEDULE),
        LoopCause.TOLERATES_NO_SCHEDULE,
        f"{TAINT_DEVICES} {KEY}-no-schedule:NoSchedule",
        after=300,
    ),
    "tolerates no effect by name": Shape(
        web("p1", ANY_EFFECT),
        LoopCause.TOLERATION_WITHOUT_EFFECT,
        f"{TAINT_DEVICES} {KEY}-no-schedule:NoSchedule",
    ),
    "two pods share a named claim": Shape(
        sharing("p1", "p2"),
        LoopCause.NAMED_CLAIM,
        "kubectl scale deployment/web -n a --replicas=0",
        pods_evicted=2,
    ),
    "one pod has a named claim": Shape(
        sharing("p1"), LoopCause.NAMED_CLAIM, "kubectl scale deployment/web -n a --replicas=0"
    ),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_kubernetes_evicts_again_and_again(shape: Shape) -> None:
    made = plan(*ONE_NODE, *shape.pods)

    [loop] = made.eviction_loops
    assert (loop.namespace, loop.owner, loop.pods) == ("a", "Deployment/web", shape.pods_evicted)
    assert (loop.cause, loop.after_seconds) == (shape.cause, shape.after)
    assert loop.evictions_per_minute == 400
    assert shape.remedy in " ".join(loop.remedies)
    assert exit_code(made) == 4


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_sully_does_not(shape: Shape) -> None:
    made = plan(*ONE_NODE, *shape.pods, sully=True)

    assert made.eviction_loops == ()
    assert exit_code(made) != 4


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_loop_is_the_headline(shape: Shape, capsys: pytest.CaptureFixture[str]) -> None:
    made = plan(*ONE_NODE, *shape.pods)

    show_plan(made)

    printed = capsys.readouterr().out
    assert printed.startswith("Eviction loop: ")
    assert "of Deployment a/web would be evicted again and again (up to 400 evictions" in printed
    assert all(f"  - {remedy}\n" in printed for remedy in made.eviction_loops[0].remedies)
    assert "All would be rescheduled" not in printed
    assert "would be rescheduled" not in summary(made)
    assert list(document(made))[:2] == ["kind", "evictionLoops"]


ALL_POOLS = {
    "two": (("n1", "n2"), f"'{DRIVER}/n1/*' '{DRIVER}/n2/*' {KEY}:NoSchedule"),
    "more than are listed": (("n1", "n2", "n3", "n4"), f"'{DRIVER}/n3/*' ... {KEY}:NoSchedule"),
}


@pytest.mark.parametrize(("pools", "remedy"), ALL_POOLS.values(), ids=ALL_POOLS)
def test_the_remedy_is_for_all_rules_with_the_taint(pools: tuple[str, ...], remedy: str) -> None:
    others = [rule(f"rule-{pool}", pool=pool) for pool in pools[1:]]

    [loop] = plan(*ONE_NODE, *web("p1", toleration(300)), *others).eviction_loops

    assert remedy in " ".join(loop.remedies)


def test_the_remedy_avoids_the_loop() -> None:
    for shape in (*SHAPES.values(),)[:3]:
        key = shape.remedy.rpartition(" ")[2].removesuffix(":NoSchedule")
        made = plan(*ONE_NODE, *shape.pods, rule("first", "NoSchedule", pool="n1", key=key))

        assert made.eviction_loops == ()
        assert [x.replacement.outcome for x in made.evictions] == [ReplacementOutcome.PENDING]


def test_other_pods_are_counted_apart() -> None:
    made = plan(*machines("n1", devices=2), *web("p1", toleration(0)), *web("p2", device="gpu-1"))

    assert [loop.pods for loop in made.eviction_loops] == [1]
    assert summary(made) == (
        "2 devices affected, used by 2 claims. 2 pods would be evicted (immediately)."
        " 1 pod would be recreated and evicted again and again. 1 would not be rescheduled."
    )


def test_a_pod_without_a_controller_is_evicted_once() -> None:
    made = plan(*ONE_NODE, *web("p1", toleration(0), owned_by=""))

    assert made.eviction_loops == ()


def test_pods_that_are_evicted_anyway_are_not_the_change() -> None:
    tainted = rule("before", pool="n1")
    made = plan(
        *ONE_NODE,
        *web("p1", toleration(0)),
        tainted,
        change=put(rule("more", pool="n1", key="example.com/other")),
    )

    assert made.eviction_loops == ()


def test_pending_pods_that_are_scheduled_are_part_of_it() -> None:
    """Removing another taint lets a pod be scheduled that is then evicted."""
    claim_of = waiting("p1", toleration(0))
    claim_of[0]["metadata"] |= {"ownerReferences": [owner(WEB)], "labels": HASH}
    keeps_off = rule("cordon", "NoSchedule", pool="n1", key="example.com/cordon")
    made = plan(
        *machines("n1"),
        *claim_of,
        rule(pool="n1"),
        keeps_off,
        change=put(rule("cordon", "None", pool="n1", key="example.com/cordon")),
    )

    [loop] = made.eviction_loops
    assert (loop.owner, loop.pods) == ("Deployment/web", 1)
    assert summary(made) == (
        "1 device affected. 1 pod would be recreated and evicted again and again."
    )


def test_owners_that_wait_for_the_end_of_pods_are_slower() -> None:
    options = SimulationOptions(stop_seconds=30)
    pods = [
        *web("web-0", toleration(0), owned_by="StatefulSet/web", labels={}),
        *web("web-1", toleration(0), owned_by="StatefulSet/web", labels={}, device="gpu-1"),
    ]
    [loop] = plan(*machines("n1", devices=2), *pods, options=options).eviction_loops

    assert (loop.owner, loop.pods, loop.evictions_per_minute) == ("StatefulSet/web", 2, 4)


IGNORES = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}
JOBS = {
    "a Job fails after some evictions": ({}, 0),
    "one that ignores them does not": ({"podFailurePolicy": IGNORES}, 1),
}


@pytest.mark.parametrize(("spec", "loops"), JOBS.values(), ids=JOBS)
def test_jobs(spec: Obj, loops: int) -> None:
    job = {"kind": "Job", "metadata": meta("train", "a"), "spec": {"parallelism": 1, **spec}}
    made = plan(*ONE_NODE, job, *web("p1", toleration(0), owned_by="Job/train", labels={}))

    assert len(made.eviction_loops) == loops


def test_whether_an_unknown_owner_recreates_pods_is_not_known() -> None:
    made = plan(*ONE_NODE, *web("p1", toleration(0), owned_by="Mystery/train", labels={}))

    assert made.eviction_loops == ()
