"""What a plan predicts is what then happens, whatever is changed in whatever cluster: rules,
patches, slices and classes that come, change, pause, expire and go."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from controllers.world import PODS, Obj, World
from planning.scenes import (
    BUDGETED,
    KEY,
    OTHER,
    STOP,
    Act,
    Device,
    Machine,
    Marking,
    Scene,
    Workload,
    act,
    controlled,
    fill,
)
from property_examples import examples
from sully.domain.eviction.rates import MINUTE
from sully.domain.planning.report import Plan, ReplacementOutcome
from sully.planning.plan_builder import build_plan
from sully.planning.simulation.cluster_copy import PLAN_KINDS, SimulationOptions
from sully.planning.simulation.simulator import Simulation
from sully.views.kinds import EVICTION_RECORDS
from sully.views.snapshot.loading import load

LONGEST = 100.0
"""Seconds that anyone watches; what takes longer is left to tests of its own."""
AFTERWARDS = 12.0
INSTANT = 0.001

Pod = tuple[str, str]
"""An owner, and a node or nothing."""


@dataclass(frozen=True)
class Outcome:
    """Which pods were evicted after how many seconds, and where pods are in the end."""

    left: tuple[tuple[float, str], ...]
    places: dict[Pod, int]


async def pods(world: World) -> list[Obj]:
    return list((await world.admin.list(PODS)).items)


def owner(pod: Obj) -> str:
    owners = pod["metadata"].get("ownerReferences")
    return (
        f"{owners[0]['kind']}/{owners[0]['name']}" if owners else f"Pod/{pod['metadata']['name']}"
    )


def names(result: Sequence[Obj]) -> set[str]:
    return {x["metadata"]["name"] for x in result if "deletionTimestamp" not in x["metadata"]}


def places(result: Sequence[Obj]) -> Counter[Pod]:
    return Counter(
        (owner(item), item["spec"].get("nodeName", ""))
        for item in result
        if "deletionTimestamp" not in item["metadata"]
    )


async def predict(world: World, scene: Scene) -> Plan:
    changes = await act(world, scene, dry=True)
    snapshot = await load(world.admin, PLAN_KINDS, now=world.clock.now())
    options = SimulationOptions(
        stop_seconds=STOP,
        max_per_minute=scene.most_per_minute,
        default_per_second=scene.usual_per_second,
    )
    simulation = Simulation(snapshot, options)
    simulation.run(changes)
    return build_plan(simulation)


def predicted(plan: Plan, before: Sequence[Obj]) -> Outcome:
    expected = places(before)
    for item in plan.evictions:
        expected[item.owner, item.node] -= 1
        expected[item.owner, item.replacement.node] += (
            item.replacement.outcome is not ReplacementOutcome.NOT_REPLACED
        )
    for pod in plan.scheduled_pods:
        expected[pod.owner, ""] -= 1
        expected[pod.owner, pod.node] += 1
    left = sorted((round(eviction.after_seconds, 2), eviction.name) for eviction in plan.evictions)
    return Outcome(tuple(left), {pod: count for pod, count in expected.items() if count})


async def watch(world: World, scene: Scene, until: float) -> Outcome:
    """Execute the scene, and note what happens at which time."""
    before = names(await pods(world))
    start, left = world.clock.now(), dict[str, float]()
    await act(world, scene, dry=False)
    await world.settle()
    while True:
        after = (world.clock.now() - start).total_seconds()
        result = await pods(world)
        for name in sorted(before - names(result)):
            left.setdefault(name, round(after, 2))
        if after >= until:
            break
        world.clock.advance(ceil((world.clock.next_wake or STOP) * 1000) / 1000 or INSTANT)
        await world.settle()
    counted = {pod: count for pod, count in places(result).items() if count}
    return Outcome(tuple(sorted((at, name) for name, at in left.items())), counted)


def is_endless(plan: Plan) -> bool:
    """Report whether a pod is evicted repeatedly, or too late for anyone to wait for it."""
    back = any(
        eviction.replacement.outcome is ReplacementOutcome.EVICTED_AGAIN
        for eviction in plan.evictions
    )
    late = any(eviction.after_seconds > LONGEST for eviction in plan.evictions)
    return back or late or any(pod.evicted_again for pod in plan.scheduled_pods)


def is_open(result: Sequence[Obj]) -> bool:
    """Report whether pods of several owners wait that came in the same second.

    Which of them the scheduler saw first, no object shows.
    """
    waiting = {
        (item["spec"].get("priority"), item["metadata"]["creationTimestamp"], owner(item))
        for item in result
        if "nodeName" not in item["spec"]
    }
    return len({item[:2] for item in waiting}) < len(waiting)


async def is_under_way(world: World) -> bool:
    """Report whether a pod was evicted just before: no plan knows what is left of the rates."""
    since = world.clock.now() - MINUTE
    items = (await world.admin.list(EVICTION_RECORDS)).items
    return any(item.spec.evicted_time >= since for item in items)


async def check(scene: Scene) -> bool:
    """Compare what was predicted with what happened; return whether that could be done."""
    async with controlled(scene) as world:
        await fill(world, scene)
        if await is_under_way(world):
            return False
        before = await pods(world)
        plan = await predict(world, scene)
        if is_open(before) or is_endless(plan):
            return False
        longest = max((eviction.after_seconds for eviction in plan.evictions), default=0.0)
        happened = await watch(world, scene, longest + AFTERWARDS)
    expected = predicted(plan, before)
    assert happened.left == expected.left
    if not is_race(plan):
        assert happened.places == expected.places
    elif len({replace(workload, replicas=0) for workload in scene.workloads}) == 1:
        assert by_node(happened) == by_node(expected)
    return True


def is_race(plan: Plan) -> bool:
    """Report whether several owners make pods in the same second: it is unknown who is first."""
    evictions = {(int(eviction.after_seconds), eviction.owner) for eviction in plan.evictions}
    return len({second for second, _ in evictions}) < len(evictions)


def by_node(outcome: Outcome) -> Counter[str]:
    """Count the pods on each node, whose ever they are."""
    return sum((Counter({node: n}) for (_, node), n in outcome.places.items()), Counter())


DEVICES = st.builds(
    Device,
    form=st.sampled_from(["plain", "plain", "plain", "shared", "part"]),
    model=st.sampled_from(["a", "a", "b"]),
    taint=st.sampled_from(["", "", "", "NoSchedule", "NoExecute"]),
)
MACHINES = st.builds(
    Machine,
    devices=st.lists(DEVICES, min_size=1, max_size=3).map(tuple),
    cordoned=st.sampled_from([False, False, False, True]),
)
TOLERATIONS = st.lists(
    st.tuples(
        st.sampled_from([KEY, OTHER]),
        st.sampled_from(["NoExecute", "NoExecute", BUDGETED]),
        st.sampled_from([None, 0, 2, 5]),
    ),
    max_size=2,
).map(tuple)
WORKLOADS = st.builds(
    Workload,
    replicas=st.integers(1, 4),
    ask=st.sampled_from(
        ["one", "one", "one", "two", "model", "cel", "list", "together", "extended"]
    ),
    tolerations=TOLERATIONS,
    cpu=st.sampled_from(["1", "1", "40"]),
    priority=st.sampled_from(["", "", "system-cluster-critical"]),
    grace=st.sampled_from([None, 0, 5]),
    bare=st.sampled_from([False, False, False, True]),
)
MARKINGS = st.builds(
    Marking,
    number=st.integers(0, 2),
    patch=st.sampled_from([False, False, True]),
    key=st.sampled_from([KEY, KEY, OTHER]),
    effect=st.sampled_from(["NoExecute", "NoExecute", "NoSchedule", BUDGETED]),
    machine=st.sampled_from([None, 0, 1]),
    device=st.sampled_from([None, None, 0, 1]),
    cel=st.sampled_from(["", "", "a", "b"]),
    of_class=st.sampled_from(["", "", "model-a"]),
    model=st.sampled_from(["", "", "a", "b"]),
    rate=st.sampled_from([None, 1, 2, 4]),
    # Not on the second, when tolerations end and pods are gone: who is first then is chance.
    lasts=st.sampled_from([None, None, 3.3, 6.7]),
    paused=st.sampled_from([False, False, True]),
)
ACTS = st.builds(
    Act,
    verb=st.sampled_from(
        ["mark", "mark", "mark", "delete", "publish", "withdraw", "define", "undefine"]
    ),
    marking=MARKINGS,
    machine=MACHINES,
)


def apart(scene: Scene) -> Scene:
    """Return a scene without others beside pods that share a claim.

    How many of those are looked at while the claim is on its way to the server is chance.
    """
    together = [workload for workload in scene.workloads if workload.ask == "together"]
    return replace(scene, workloads=tuple(together[:1] or scene.workloads))


SCENES = st.builds(
    Scene,
    machines=st.lists(MACHINES, min_size=1, max_size=3).map(tuple),
    workloads=st.lists(WORKLOADS, min_size=1, max_size=3).map(tuple),
    acts=st.lists(ACTS, min_size=1, max_size=2).map(tuple),
    markings=st.lists(MARKINGS, max_size=2, unique_by=lambda item: item.number).map(tuple),
    budget=st.sampled_from([None, ("minAvailable", 1), ("maxUnavailable", 1)]),
    most_per_minute=st.sampled_from([None, None, None, 3]),
    usual_per_second=st.sampled_from([None, None, 2]),
).map(apart)


@settings(max_examples=examples(40))
@given(SCENES)
@example(  # A rule follows its class: other pods are evicted, and those that wait get theirs.
    Scene(
        (Machine((Device(), Device(model="b"))), Machine((Device(), Device(model="b")))),
        (Workload(3, tolerations=((KEY, "NoExecute", 2),)), Workload(1, "model")),
        (Act("define"),),
        (Marking(0, of_class="model-a"),),
    )
)
def test_what_was_planned_is_what_happens(scene: Scene) -> None:
    assume(asyncio.run(check(scene)))
