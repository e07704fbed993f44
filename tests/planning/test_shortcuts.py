"""What a simulation leaves out to be quick makes no difference: with every pod looked at each time,
and all that comes free reported to every pod, the plan is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest

import manifests
from planning.building import (
    DRIVER,
    KEY,
    Obj,
    class_,
    meta,
    node,
    planned,
    put,
    rule,
    running,
    slice_,
    snapshot,
    template,
    toleration,
    waiting,
)
from sully.api.resource.types import ResourceClaim
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.allocation import allocator
from sully.domain.scheduling.objects import Pod
from sully.machinery.formats.timestamps import format_time
from sully.planning.plan_builder import build_plan
from sully.planning.simulation.cluster_copy import ClusterCopy, SimulationOptions
from sully.planning.simulation.evictor import PlannedEvictor
from sully.planning.simulation.simulator import Simulation
from sully.scheduler.core import SchedulingCore
from sully.scheduler.equivalence.groups import EquivalenceGroups
from sully.scheduler.event_handlers import EventHandlers
from sully.testing.clock import NOON

HOT = "example.com/hot"
CARD = 8
"""How much memory the parts of a card share."""
WORLDS = 100


def machine(name: str, rng: Random) -> list[Obj]:
    """Return a node with devices, which may be parts of one card."""
    plain = slice_(name, rng.randint(1, 3))
    results = [node(name, cpu=rng.choice(["8", "2", "3"])), plain]
    if rng.random() < 0.5:
        return results
    for device in plain["spec"]["devices"]:
        amount = {"memory": {"value": rng.choice(["2", "4", "8"])}}
        device["consumesCounters"] = [{"counterSet": "card", "counters": amount}]
    plain["spec"]["pool"]["resourceSliceCount"] = 2
    common = {name: plain["spec"][name] for name in ("driver", "pool", "nodeName")}
    card = {"name": "card", "counters": {"memory": {"value": str(CARD)}}}
    spec = common | {"sharedCounters": [card]}
    return [*results, manifests.body("ResourceSlice", spec=spec, **meta(f"card-{name}"))]


def held(slices: list[Obj], rng: Random) -> list[tuple[str, str]]:
    """Return devices that pods may hold at the same time."""
    results = []
    for spec in (part["spec"] for part in slices):
        left = CARD
        for device in spec.get("devices", ()):
            draws = device.get("consumesCounters")
            amount = int(draws[0]["counters"]["memory"]["value"]) if draws else 0
            if amount <= left and rng.random() < 0.7:
                left -= amount
                results.append((spec["nodeName"], device["name"]))
    return results


def tolerated(rng: Random) -> list[Obj]:
    some = [toleration(rng.choice([0, 3, 7, 50]))], [toleration()], [toleration(key=HOT)]
    return rng.choice([[], [], [], *some])


def holder(name: str, on: str, device: str, rng: Random) -> list[Obj]:
    """Return a pod with a device; its replacement may tolerate less, or ask what others ask."""
    tolerations = tolerated(rng)
    owner = rng.choice(["", "ReplicaSet/a", "ReplicaSet/b", "StatefulSet/s"])
    grace = {"terminationGracePeriodSeconds": rng.choice([0, 5, 30])}
    pod, claim, source = running(
        name, on, device, owned_by=owner, tolerations=tolerations, cpu=rng.choice("112"), **grace
    )
    if rng.random() < 0.3:
        source = template(f"{name}-template")
    if rng.random() < 0.5:
        pod["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] = "p0-template"
    return [pod, claim, source]


def marking(number: int, nodes: int, rng: Random) -> Obj:
    more: Obj = {"key": rng.choice([KEY, KEY, HOT])}
    if rng.random() < 0.6:
        more["pool"] = f"n{rng.randrange(nodes)}"
    if rng.random() < 0.5:
        more["device"] = f"gpu-{rng.randrange(3)}"
    if rng.random() < 0.4:
        more["rate"] = rng.choice([1, 2])
    if rng.random() < 0.4:
        end = NOON + timedelta(seconds=rng.choice([2, 5, 20, 100]))
        more["annotations"] = {"sully.dev/expires-at": format_time(end)}
    effect = rng.choice(["NoExecute", "NoExecute", "NoSchedule"])
    return rule(f"r{number}", effect, **more)


def scene(seed: int) -> tuple[list[Obj], list[Obj]]:
    """Return a small cluster, and the rules that are made in it."""
    rng = Random(seed)
    nodes = rng.randint(1, 3)
    objects = [class_(), *(item for at in range(nodes) for item in machine(f"n{at}", rng))]
    slices = [obj for obj in objects if obj["kind"] == "ResourceSlice"]
    for at, (on, device) in enumerate(held(slices, rng)):
        objects += holder(f"p{at}", on, device, rng)
    for at in range(rng.randint(0, 3)):
        asked: Any = {"count": rng.choice([1, 1, 2]), "cpu": rng.choice("12")}
        objects += waiting(f"w{at}", *tolerated(rng), **asked)
    return objects, [marking(at, nodes, rng) for at in range(rng.randint(1, 3))]


def notify_of_termination(cluster: ClusterCopy, pod: Pod, end: datetime) -> Pod:
    return cluster.put(cluster.pods, pod, deletion_timestamp=end)


def remove_one_by_one(cluster: ClusterCopy, pod: Pod, claims: Sequence[ResourceClaim]) -> None:
    cluster.remove(cluster.pods, key_of(pod))
    for claim in claims:
        cluster.remove(cluster.claims, key_of(claim))


def wake_always(evictor: PlannedEvictor, key: Key) -> None:
    evictor._changed.add(key)
    evictor._enqueue(key)


def test_what_is_left_out_makes_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    scenes = [scene(seed) for seed in range(WORLDS)]

    def plans() -> list[Any]:
        return [
            planned(there, *map(put, made), options=SimulationOptions()) for there, made in scenes
        ]

    quick = plans()
    # Every pod is created first and gets attempts, whatever other pods got and what is released.
    monkeypatch.setattr(EquivalenceGroups, "join", lambda *_: None)
    monkeypatch.setattr(SchedulingCore, "schedule_new", lambda *_: None)
    monkeypatch.setattr(EventHandlers, "_is_useless_release", lambda *_: False)
    # Handlers are called for terminating pods, every pod is queued, and devices have no fast path.
    monkeypatch.setattr(ClusterCopy, "mark_terminating", notify_of_termination)
    monkeypatch.setattr(ClusterCopy, "_remove_with_claims", remove_one_by_one)
    monkeypatch.setattr(PlannedEvictor, "wake", wake_always)
    monkeypatch.setattr(allocator, "quick_result", lambda *_: None)

    assert quick == plans()
    assert sum(item.has_unscheduled for item in quick) > WORLDS // 5
    assert {DRIVER in str(item.scheduled_pods) for item in quick} == {True, False}


@pytest.mark.parametrize("seed", range(30))
def test_a_simulation_from_another_one_is_as_from_the_cluster(seed: int) -> None:
    there, made = scene(seed)
    taken, changes = snapshot(*there), [*map(put, made)]

    def plan(simulation: Simulation) -> Any:
        simulation.run(changes)
        return build_plan(simulation)

    base = Simulation(taken)
    copied = Simulation(taken, base=base)
    want = plan(Simulation(taken))

    assert plan(copied) == want
    # What the copy did has not changed where it came from.
    assert plan(base) == want
