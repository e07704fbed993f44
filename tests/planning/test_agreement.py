"""What a plan predicts is what then happens: random small worlds, the real controllers, no other
writer, and a clock that only the test moves."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st

import manifests
from controllers.world import NAMESPACES, PODS, SCHEME, Obj, World, running
from property_examples import examples
from sully.client.discovery.resources import of_scheme
from sully.client.objects import from_body
from sully.client.options import WriteOptions
from sully.client.transport import Kind
from sully.controller_context import ControllerConfig
from sully.controller_setup import build_manager
from sully.controllers.simulatednodes.wiring import SimulatedNodeSettings
from sully.controllers.workloads.kinds import REPLICA_SETS
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
from sully.views.snapshot.kinds import TEMPLATES
from sully.views.snapshot.loading import load

SETS: Kind[Obj] = REPLICA_SETS.read_as(dict)
RULES: Kind[Obj] = kinds.RULES.read_as(dict)
CLAIM_TEMPLATES: Kind[Obj] = TEMPLATES.read_as(dict)
KEY = "example.com/broken"
STEP = 0.25
STOP = 1.0
CHOSEN = frozenset(("serviceaccounts", "replicasets", "claims", "eviction", "scheduling"))
DRY = WriteOptions(dry_run=True)


@dataclass(frozen=True)
class Workload:
    """Equal pods: how many, how many devices each, how long they tolerate the taint, and how
    much they matter. Pods of two workloads may ask the same, and matter more or less."""

    replicas: int
    devices: int = 1
    seconds: int | None = None
    cpu: str = "1"
    priority: str = ""


@dataclass(frozen=True)
class Scene:
    """A cluster, and a rule that is made in it."""

    nodes: int
    devices: int
    workloads: tuple[Workload, ...]
    selector: tuple[tuple[str, str], ...]
    rate: int | None = None
    effect: str = "NoExecute"


@asynccontextmanager
async def controlled(scene: Scene) -> AsyncIterator[World]:
    world = World()
    settings = SimulatedNodeSettings(
        Fleet(scene.nodes, scene.devices), PodDelays(start=0, stop=STOP)
    )
    config = ControllerConfig(
        transport=world.transport,
        served=of_scheme(SCHEME),
        gates=Gates(),
        ids=Ids(random.Random(2)),
        simulated_nodes=settings,
        chosen=CHOSEN,
    )
    manager = build_manager(config, world.clock, Metrics())
    async with running(manager):
        await world.settle()
        yield world


async def fill(world: World, scene: Scene) -> None:
    await world.admin.create(NAMESPACES, {"metadata": {"name": "a"}})
    for index, workload in enumerate(scene.workloads):
        await make(world, f"set-{index}", workload)
        # One after the other, so that who came first is not random.
        await world.pass_time(1, step=1)


async def make(world: World, name: str, workload: Workload) -> None:
    exactly: Obj = {"count": workload.devices}
    if workload.seconds is not None:
        exactly["tolerations"] = [
            {"key": KEY, "operator": "Exists", "effect": "NoExecute"}
            | {"tolerationSeconds": workload.seconds}
        ]
    want = manifests.claim_spec(DRIVER, **exactly)
    await world.create(CLAIM_TEMPLATES, "a", name, spec={"spec": want})
    spec = manifests.pod_spec(
        template=name,
        resources={"requests": {"cpu": workload.cpu}},
        priorityClassName=workload.priority,
    )
    template = manifests.pod_template({"app": name}, spec)
    body = manifests.workload("ReplicaSet", name, template, replicas=workload.replicas)
    await world.create(SETS, "a", name, spec=body["spec"])


def rule(scene: Scene) -> Obj:
    taint = {"evictionsPerSecond": scene.rate} if scene.rate is not None else {}
    selector = {"driver": DRIVER, **dict(scene.selector)}
    return manifests.rule("rule", scene.effect, key=KEY, selector=selector, taint=taint)


async def predict(world: World, scene: Scene) -> Plan:
    made = await world.admin.create(RULES, rule(scene), "", DRY)
    snapshot = await load(world.admin, PLAN_KINDS, now=world.clock.now())
    simulation = Simulation(snapshot, SimulationOptions(stop_seconds=STOP))
    simulation.run([Put(kinds.RULES, from_body(kinds.RULES, made))])
    return build_plan(simulation)


Pod = tuple[str, str]
"""An owner, and a node or nothing."""


@dataclass(frozen=True)
class Outcome:
    """Which pods were evicted after how many seconds, and where pods are in the end."""

    left: tuple[tuple[float, str], ...]
    places: Counter[Pod]


async def pods(world: World) -> list[Obj]:
    return list((await world.admin.list(PODS)).items)


def owner(pod: Obj) -> str:
    return str(pod["metadata"]["ownerReferences"][0]["name"])


def places(result: Sequence[Obj]) -> Counter[Pod]:
    return Counter(
        (owner(item), item["spec"].get("nodeName", ""))
        for item in result
        if "deletionTimestamp" not in item["metadata"]
    )


async def watch(world: World, scene: Scene, until: float) -> Outcome:
    """Create the rule, and note what happens at which time."""
    before = {pod["metadata"]["name"] for pod in await pods(world)}
    start, left = world.clock.now(), dict[str, float]()
    await world.admin.create(RULES, rule(scene))
    await world.settle()
    while True:
        after = (world.clock.now() - start).total_seconds()
        result = await pods(world)
        here = {x["metadata"]["name"] for x in result if "deletionTimestamp" not in x["metadata"]}
        for name in sorted(before - here):
            left.setdefault(name, after)
        if after >= until:
            break
        world.clock.advance(STEP)
        await world.settle()
    return Outcome(tuple(sorted((at, name) for name, at in left.items())), places(result))


def predicted(plan: Plan, before: Sequence[Obj]) -> Outcome:
    expected = places(before)
    for item in plan.evictions:
        name = item.owner.partition("/")[2]
        expected[name, item.node] -= 1
        expected[name, item.replacement.node] += 1
    for pod in plan.scheduled_pods:
        name = pod.owner.partition("/")[2]
        expected[name, ""] -= 1
        expected[name, pod.node] += 1
    left = sorted((eviction.after_seconds, eviction.name) for eviction in plan.evictions)
    return Outcome(tuple(left), Counter({key: n for key, n in expected.items() if n}))


def is_race(plan: Plan) -> bool:
    """Report whether several owners make pods in the same second: it is unknown who is first."""
    evictions = {(int(eviction.after_seconds), eviction.owner) for eviction in plan.evictions}
    return len({second for second, _ in evictions}) < len(evictions)


def as_known(outcome: Outcome, scene: Scene, plan: Plan) -> Counter[Pod]:
    """Return as much of who is where as can be known before."""
    if not is_race(plan):
        return outcome.places
    alike = len({replace(workload, replicas=0) for workload in scene.workloads}) == 1
    return Counter(
        ("", node) for (_, node), count in outcome.places.items() for _ in range(count) if alike
    )


async def compare(scene: Scene) -> tuple[Outcome, Outcome] | None:
    """Return what was predicted and what happened; None if it would never come to an end."""
    async with controlled(scene) as world:
        await fill(world, scene)
        before = await pods(world)
        assert len(before) == sum(workload.replicas for workload in scene.workloads)
        plan = await predict(world, scene)
        back = any(
            eviction.replacement.outcome is ReplacementOutcome.EVICTED_AGAIN
            for eviction in plan.evictions
        )
        if back or any(pod.evicted_again for pod in plan.scheduled_pods):
            # A pod that returns to a tainted device is evicted in a loop; a plan shows that once.
            return None
        longest = max((eviction.after_seconds for eviction in plan.evictions), default=0.0)
        happened = await watch(world, scene, longest + STOP + 2)
    expected = predicted(plan, before)
    return (
        replace(expected, places=as_known(expected, scene, plan)),
        replace(happened, places=as_known(happened, scene, plan)),
    )


WORKLOADS = st.builds(
    Workload,
    replicas=st.integers(1, 5),
    devices=st.integers(1, 2),
    seconds=st.sampled_from([None, None, 0, 1, 3]),
    cpu=st.sampled_from(["1", "1", "40"]),
    priority=st.sampled_from(["", "", "system-cluster-critical"]),
)
SELECTORS = st.sampled_from(
    [
        (),
        (("pool", name_of(0)),),
        (("pool", name_of(1)),),
        (("device", "gpu-0"),),
        (("pool", name_of(0)), ("device", "gpu-1")),
        (("pool", "nowhere"),),
    ]
)
SCENES = st.builds(
    Scene,
    nodes=st.integers(1, 4),
    devices=st.integers(1, 3),
    workloads=st.lists(WORKLOADS, min_size=1, max_size=3).map(tuple),
    selector=SELECTORS,
    rate=st.sampled_from([None, 1, 2, 4]),
    effect=st.sampled_from(["NoExecute", "NoExecute", "NoExecute", "NoSchedule"]),
)


@settings(max_examples=examples(20))
@given(SCENES)
def test_what_was_planned_is_what_happens(scene: Scene) -> None:
    result = asyncio.run(compare(scene))
    assume(result is not None)
    assert result is not None
    expected, happened = result

    assert happened.left == expected.left
    assert happened.places == expected.places
