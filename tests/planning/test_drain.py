"""Drains in a simulation, case by case: whom they evict and when, and why they stop."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from manifests import DRIVER
from planning.building import QUICK, Obj, machines, put, rule, running, snapshot
from planning.test_budgets import budget
from planning.test_simulation import WEB, replacements
from sully.api.resource.eviction_rate import EvictionRate
from sully.domain.devices.pools import DeviceId
from sully.domain.drain.messages import DrainOutcome, DrainSettings, DrainState
from sully.domain.drain.rules import KEY, TAINT
from sully.planning.plan_builder import build_plan
from sully.planning.simulation.drain import DrainRequest
from sully.planning.simulation.simulator import Simulation
from sully.views.devices.drained import DrainedDevices

APP = {"app": "web"}
NODES = machines("n1", "n2", devices=3)
TWO = [
    *running("p1", "n1", "gpu-0", owned_by=WEB, labels=APP),
    *running("p2", "n1", "gpu-1", owned_by=WEB, labels=APP),
]
DAEMON = running("d1", "n1", "gpu-2", owned_by="DaemonSet/agent")


def with_admin_access(objects: list[Obj]) -> list[Obj]:
    claim = next(obj for obj in objects if obj["kind"] == "ResourceClaim")
    claim["status"]["allocation"]["devices"]["results"][0]["adminAccess"] = True
    return objects


def changed(objects: list[Obj], **fields: Any) -> list[Obj]:
    """Return objects with other fields of their pod, which is the first."""
    return [objects[0] | fields, *objects[1:]]


@dataclass(frozen=True)
class Case:
    objects: list[Obj]
    settings: DrainSettings = field(default_factory=DrainSettings)
    ignore_daemon_sets: bool = False
    want: tuple[str, ...] = ()
    """Each eviction: name, seconds, outcome, node."""
    blocked: tuple[str, ...] = ()
    outcome: DrainOutcome | None = DrainOutcome.DONE


CASES = {
    "all pods of a node": Case([*NODES, *TWO], want=("p1 0 Rescheduled n2", "p2 0 Rescheduled n2")),
    "at a rate": Case(
        [*NODES, *TWO],
        DrainSettings(rate=EvictionRate(1, timedelta(minutes=5), 1)),
        want=("p1 0 Rescheduled n2", "p2 300 Rescheduled n2"),
    ),
    "as a budget allows": Case(
        [*NODES, *TWO, budget(0)],
        blocked=(
            "p1 PodDisruptionBudget pdb allows no disruption",
            "p2 PodDisruptionBudget pdb allows no disruption",
        ),
        outcome=None,
    ),
    "a budget that allows one counts replacements": Case(
        [*NODES, *TWO, budget(1)], want=("p1 0 Rescheduled n2", "p2 5 Rescheduled n2")
    ),
    "a budget blocks until the timeout": Case(
        [*NODES, *TWO[:3], budget(0)],
        DrainSettings(timeout=timedelta(minutes=1), use_no_execute=True),
        want=("p1 60 Rescheduled n2",),
    ),
    "it stops when a replacement is unschedulable": Case(
        [*machines("n1", devices=3), *TWO],
        DrainSettings(rate=EvictionRate(1, burst=1)),
        want=("p1 0 Pending 0/1 nodes are available: 1 cannot allocate all claims.",),
        blocked=("p2 the drain stops before",),
        outcome=DrainOutcome.REPLACEMENT_PENDING,
    ),
    "it waits for idle devices": Case([*NODES, *TWO], DrainSettings(evicts=False), outcome=None),
    "pods of DaemonSets can be ignored": Case([*NODES, *DAEMON], ignore_daemon_sets=True),
    "admin access does not count as use": Case(
        [*NODES, *with_admin_access(running("m1", "n1", "gpu-0", owned_by=WEB))]
    ),
    "a finished pod does not count as use": Case(
        [*NODES, *changed(running("f1", "n1", "gpu-0"), status={"phase": "Succeeded"})]
    ),
    "a pod that tolerates the taint is evicted once": Case(
        [
            *machines("n1", devices=3),
            *running(
                "t1", "n1", "gpu-0", owned_by=WEB, tolerations=[{"operator": "Exists", "key": KEY}]
            ),
        ],
        want=("t1 0 Rescheduled n1",),
        blocked=("t1~1 the drain stops before",),
        outcome=DrainOutcome.EVICTION_LOOP,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_drain(case: Case) -> None:
    devices = frozenset(DeviceId(DRIVER, "n1", f"gpu-{number}") for number in range(3))
    drained = DrainedDevices(devices, TAINT, ignore_daemon_sets=case.ignore_daemon_sets)
    simulation = Simulation(snapshot(*case.objects), QUICK)
    cordon = put(rule("cordon", "NoSchedule", key=KEY, pool="n1"))

    simulation.run([cordon], DrainRequest(drained, case.settings, DrainState()))
    plan = build_plan(simulation)

    assert replacements(plan) == case.want
    assert tuple(f"{pod.name} {pod.message}" for pod in plan.blocked_evictions) == case.blocked
    assert simulation.drain is not None
    stop = simulation.drain.stop
    assert (stop.outcome if stop is not None else None) == case.outcome
