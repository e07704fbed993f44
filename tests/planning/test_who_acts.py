"""What plans make of patches and rules depends on who schedules and evicts, and on its gates."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

import manifests
from manifests import stored
from planning.building import (
    DRIVER,
    KEY,
    Obj,
    machines,
    put,
    rule,
    running,
    snapshot,
)
from sully.domain.capabilities.control_plane import ControlPlane
from sully.domain.planning.report import Plan
from sully.machinery.formats.timestamps import format_time
from sully.planning.dryrun.changes import Put
from sully.planning.plan_builder import build_plan, no_effect_texts
from sully.planning.simulation.cluster_copy import SimulationOptions
from sully.planning.simulation.simulator import Simulation
from sully.testing.clock import NOON
from sully.views.kinds import PATCHES

SULLY, KUBERNETES = ControlPlane.SULLY, ControlPlane.KUBERNETES
MIXED = ControlPlane(scheduler="Kubernetes", evictor="Sully")
NO_RULES = {"DRADeviceTaintRules": False}
WORLD = [*machines("n1", "n2", devices=2), *running("p", "n1", "gpu-0", owned_by="ReplicaSet/web")]


def patch(effect: str) -> Put:
    taint = {"key": KEY, "effect": effect, "timeAdded": format_time(NOON)}
    devices: Obj = {"filter": {"driver": DRIVER, "pool": "n1"}, "taints": [taint]}
    devices["attributes"] = {f"{DRIVER}/slow": {"bool": True}}
    return put(stored(manifests.patch("x", devices)), PATCHES)


def plan(change: Put, plane: ControlPlane) -> Plan:
    there = snapshot(*WORLD, plane=plane)
    simulation = Simulation(there, SimulationOptions(stop_seconds=0))
    simulation.run([change])
    return build_plan(simulation, no_effects=no_effect_texts(there, [change]))


CASES = {
    "a patch on Sully's server": (patch("NoExecute"), SULLY, ["Rescheduled"], ""),
    "a patch that nobody reads": (patch("NoExecute"), KUBERNETES, [], "have no effect"),
    "kube-scheduler does not see the taint": (
        patch("NoExecute"),
        MIXED,
        ["EvictedAgain"],
        "only evict pods",
    ),
    "it prevents nothing there": (patch("NoSchedule"), MIXED, [], "only evict pods"),
    "a rule": (put(rule(pool="n1")), KUBERNETES, ["Rescheduled"], ""),
    "a rule without its gate": (
        put(rule(pool="n1")),
        replace(KUBERNETES, gates=NO_RULES),
        [],
        "DRADeviceTaintRules is disabled in kube-apiserver",
    ),
    "Sully evicts, kube-scheduler does not see rules": (
        put(rule(pool="n1")),
        replace(MIXED, gates=NO_RULES),
        ["EvictedAgain"],
        "DeviceTaintRules only evict pods",
    ),
}


@pytest.mark.parametrize(("change", "plane", "outcomes", "text"), CASES.values(), ids=CASES)
def test_plans(change: Put, plane: ControlPlane, outcomes: list[str], text: str) -> None:
    result = plan(change, plane)

    assert [x.replacement.outcome.value for x in result.caused] == outcomes
    assert bool(result.no_effects) == bool(text)
    assert all(text in result.no_effects[0] for _ in result.no_effects)


RATED = put(rule(annotations={"sully.dev/eviction-rate": "1/h"}))
HALTED = put(rule(annotations={"sully.dev/paused": "later"}))
LIMITS: dict[str, tuple[Put, ControlPlane, list[float]]] = {
    "a rate on Sully's server": (RATED, SULLY, [0, 3600]),
    "Kubernetes ignores rates": (RATED, KUBERNETES, [0, 0]),
    "rates are disabled": (RATED, replace(SULLY, gates={"SullyEvictionRate": False}), [0, 0]),
    "Sully evicts beside kube-scheduler": (RATED, MIXED, [0, 3600]),
    "a pause on Sully's server": (HALTED, SULLY, []),
    "Kubernetes ignores pauses": (HALTED, KUBERNETES, [0, 0]),
    "pauses are disabled": (HALTED, replace(SULLY, gates={"SullyEvictionGuards": False}), [0, 0]),
}


@pytest.mark.parametrize(("change", "plane", "want"), LIMITS.values(), ids=LIMITS)
def test_limits_apply_where_the_evictor_honors_them(
    change: Put, plane: ControlPlane, want: list[float]
) -> None:
    simulation = Simulation(
        snapshot(*WORLD, *running("q", "n1", "gpu-1"), plane=plane), SimulationOptions()
    )
    simulation.run([change])

    assert sorted(pod.after_seconds for pod in build_plan(simulation).caused) == want


@pytest.mark.parametrize(("plane", "limit", "want"), [(SULLY, 1, [0, 60]), (KUBERNETES, 1, [0, 0])])
def test_the_limit_per_minute(plane: ControlPlane, limit: int, want: list[float]) -> None:
    there = snapshot(*WORLD, *running("q", "n1", "gpu-1"), plane=plane)
    simulation = Simulation(there, SimulationOptions(max_per_minute=limit))
    simulation.run([put(rule())])

    assert sorted(pod.after_seconds for pod in build_plan(simulation).caused) == want


@pytest.mark.parametrize(
    ("plane", "want"), [(SULLY, True), (KUBERNETES, False), (MIXED, False)], ids=str
)
def test_patched_values(plane: ControlPlane, want: bool) -> None:
    changes = [
        text for device in plan(patch("NoSchedule"), plane).devices for text in device.changes
    ]

    assert any("slow" in text for text in changes) == want
