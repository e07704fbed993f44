"""What a plan predicts for Jobs, StatefulSets and DaemonSets is what their controllers then do."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

import manifests
from controllers.world import NAMESPACES, PODS, SCHEME, Obj, World, running
from planning.test_agreement import CLAIM_TEMPLATES, DRY, KEY, RULES, STOP
from sully.client.discovery.resources import of_scheme
from sully.client.objects import from_body
from sully.client.transport import Kind
from sully.controller_context import ControllerConfig
from sully.controller_setup import build_manager
from sully.controllers.simulatednodes.wiring import SimulatedNodeSettings
from sully.controllers.workloads import kinds as workloads
from sully.domain.planning.report import Plan, ReplacementOutcome
from sully.domain.simulated.fleet import DRIVER, Fleet, PodDelays, name_of
from sully.machinery.gates import Gates
from sully.planning.dryrun.changes import Put
from sully.planning.plan_builder import build_plan
from sully.planning.simulation.cluster_copy import PLAN_KINDS, SimulationOptions
from sully.planning.simulation.simulator import Simulation
from sully.runtime.ids import Ids
from sully.runtime.metrics import Metrics
from sully.views import kinds
from sully.views.snapshot.loading import load

CHOSEN = frozenset(
    (
        "serviceaccounts",
        "claims",
        "eviction",
        "scheduling",
        "jobs",
        "statefulsets",
        "daemonsets",
    )
)
IGNORES: Obj = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}


@dataclass(frozen=True)
class Case:
    """An owner, the devices that get a taint, and how the pods that are left end up."""

    kind: Kind[Any]
    spec: Obj
    nodes: int = 3
    devices: int = 2
    tainted: int = 0
    """The number of the node whose devices get the taint."""


CASES = {
    "a Job that retries": Case(workloads.JOBS, {"parallelism": 2, "completions": 2}),
    "a Job without retries": Case(
        workloads.JOBS, {"parallelism": 2, "completions": 2, "backoffLimit": 0}
    ),
    "a Job that ignores evictions": Case(
        workloads.JOBS, {"backoffLimit": 0, "podFailurePolicy": IGNORES}
    ),
    "an Indexed Job with a limit for each index": Case(
        workloads.JOBS,
        {
            "parallelism": 3,
            "completions": 3,
            "completionMode": "Indexed",
            "backoffLimitPerIndex": 0,
        },
    ),
    "a StatefulSet": Case(workloads.STATEFUL_SETS, {"replicas": 3}),
    "a parallel StatefulSet": Case(
        workloads.STATEFUL_SETS, {"replicas": 4, "podManagementPolicy": "Parallel"}
    ),
    "a StatefulSet without room": Case(
        workloads.STATEFUL_SETS, {"replicas": 4}, nodes=2, devices=2
    ),
    "a DaemonSet": Case(workloads.DAEMON_SETS, {}),
    "a DaemonSet without a second device": Case(workloads.DAEMON_SETS, {}, devices=1),
}


@asynccontextmanager
async def controlled(case: Case) -> AsyncIterator[World]:
    world = World()
    fleet = Fleet(case.nodes, case.devices)
    config = ControllerConfig(
        transport=world.transport,
        served=of_scheme(SCHEME),
        gates=Gates(),
        ids=Ids(random.Random(2)),
        simulated_nodes=SimulatedNodeSettings(fleet, PodDelays(start=0, stop=STOP)),
        chosen=CHOSEN,
    )
    manager = build_manager(config, world.clock, Metrics())
    async with running(manager):
        await world.settle()
        await world.admin.create(NAMESPACES, {"metadata": {"name": "a"}})
        await fill(world, case)
        yield world


async def fill(world: World, case: Case) -> None:
    want = manifests.claim_spec(DRIVER, count=1)
    await world.create(CLAIM_TEMPLATES, "a", "gpu", spec={"spec": want})
    pod = manifests.pod_spec(template="gpu")
    labels = {"app": "x"}
    spec: Obj = {}
    if case.kind is workloads.JOBS:
        pod["restartPolicy"] = "Never"
    else:
        spec["selector"] = {"matchLabels": labels}
    spec["template"] = manifests.pod_template(labels, pod)
    await world.create(case.kind.read_as(dict), "a", "x", spec=spec | case.spec)
    await world.pass_time(10, step=1)


def rule(case: Case) -> Obj:
    selector = {"driver": DRIVER, "pool": name_of(case.tainted)}
    return manifests.rule("rule", "NoExecute", key=KEY, selector=selector)


async def predict(world: World, case: Case) -> Plan:
    made = await world.admin.create(RULES, rule(case), "", DRY)
    snapshot = await load(world.admin, PLAN_KINDS, now=world.clock.now())
    simulation = Simulation(snapshot, SimulationOptions(stop_seconds=STOP))
    simulation.run([Put(kinds.RULES, from_body(kinds.RULES, made))])
    return build_plan(simulation)


async def running_pods(world: World) -> list[Obj]:
    items = (await world.admin.list(PODS, "a")).items
    return [
        pod
        for pod in items
        if "deletionTimestamp" not in pod["metadata"]
        and pod["status"]["phase"] in ("Pending", "Running")
    ]


def places(result: list[Obj]) -> Counter[str]:
    return Counter(pod["spec"].get("nodeName", "") for pod in result)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_owners_do_what_the_plan_reports(case: Case) -> None:
    async with controlled(case) as world:
        before = await running_pods(world)
        assert before
        plan = await predict(world, case)
        assert plan.evictions
        names = {pod["metadata"]["uid"]: pod["metadata"]["name"] for pod in before}
        await world.admin.create(RULES, rule(case))
        await world.pass_time(60, step=0.5)
        after = await running_pods(world)

    expected = places(before)
    for eviction in plan.evictions:
        expected[eviction.node] -= 1
        if eviction.replacement.outcome is not ReplacementOutcome.NOT_REPLACED:
            expected[eviction.replacement.node] += 1
    for deleted in plan.deleted_pods:
        expected[deleted.node] -= 1
    remaining = {pod["metadata"]["uid"] for pod in after}
    gone = sorted(name for uid, name in names.items() if uid not in remaining)
    evicted = [eviction.name for eviction in plan.evictions]
    assert gone == sorted([*evicted, *(pod.name for pod in plan.deleted_pods)])
    assert places(after) == Counter({node: n for node, n in expected.items() if n})
