"""The best node, and how a refusal reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from sully.domain.allocation.nodes import Node as Spot
from sully.domain.allocation.verdicts import Allocated, Failed, Refused
from sully.domain.scheduling.decisions import (
    ERROR,
    NO_DEVICES,
    Concern,
    Place,
    Refuse,
    decide,
    refuse_everywhere,
)
from sully.domain.scheduling.filters import NodeState
from sully.domain.scheduling.objects import Node, Pod
from sully.domain.scheduling.resources import Room, amounts

ALL = ~Concern.NOTHING
NOT_HELPFUL = "Preemption is not helpful for scheduling"
DEVICES = Concern.NODES | Concern.DEVICES | Concern.CLASSES


def state(name: str, **spec: Any) -> NodeState:
    node = msgspec.convert({"metadata": {"name": name}, "spec": spec}, Node)
    return NodeState(node, Spot(name), Room(amounts({"cpu": "1", "pods": "9"})))


@dataclass
class Fake:
    """Devices by the name of the node."""

    answers: dict[str, Allocated | Refused | Failed] = field(default_factory=dict)
    varied: bool = False
    backed: tuple[str, ...] = ()
    disliked: tuple[str, ...] = ()
    cleared: str = ""
    asked: list[str] = field(default_factory=list)

    def on(self, state: NodeState) -> Allocated | Refused | Failed:
        self.asked.append(state.place.name)
        return self.answers.get(state.place.name, NO_DEVICES)

    def settles(self, allocated: Allocated) -> bool:
        return not self.varied

    def dislikes(self, allocated: Allocated) -> int:
        return sum(self.answers.get(name) is allocated for name in self.disliked)

    def clear(self) -> str:
        return self.cleared


@dataclass(frozen=True)
class Case:
    want: Place | Refuse
    nodes: tuple[NodeState, ...] = (state("a"), state("b"))
    devices: Fake = field(default_factory=Fake)
    spec: dict[str, Any] = field(default_factory=dict)
    requests: dict[str, str] = field(default_factory=dict)


LATE, EARLY = Allocated((), (), preference=7), Allocated((), (), preference=8)
CASES = {
    "the first that fits": Case(Place("a", NO_DEVICES)),
    "the second, if the first is cordoned": Case(
        Place("b", NO_DEVICES), (state("a", unschedulable=True), state("b"))
    ),
    "the second, if the first has no devices": Case(
        Place("b", NO_DEVICES), devices=Fake({"a": Refused()})
    ),
    "the better choice": Case(
        Place("b", EARLY), devices=Fake({"a": LATE, "b": EARLY}, varied=True)
    ),
    "equally good": Case(Place("a", EARLY), devices=Fake({"a": EARLY, "b": EARLY}, varied=True)),
    "a taint that advises against weighs more": Case(
        Place("a", LATE), devices=Fake({"a": LATE, "b": EARLY}, varied=True, disliked=("b",))
    ),
    "no nodes": Case(
        Refuse("no nodes available to schedule pods", concern=Concern.NODES), nodes=()
    ),
    "an error ends the attempt": Case(
        Refuse('running "DynamicResources" filter plugin: oh', ERROR, ALL),
        devices=Fake({"a": Failed("oh")}),
    ),
    "reasons are counted and sorted": Case(
        Refuse(
            "0/3 nodes are available: 1 node(s) were unschedulable, 2 cannot allocate all claims."
            f" preemption: 0/3 nodes are available: 3 {NOT_HELPFUL}.",
            concern=DEVICES,
        ),
        (state("a"), state("b", unschedulable=True), state("c")),
        Fake({"a": Refused(), "c": Refused()}),
    ),
    "room that others hold": Case(
        Refuse(
            "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."
            f" preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod,"
            f" 1 {NOT_HELPFUL}.",
            concern=Concern.NODES | Concern.ROOM,
        ),
        (state("a"), state("b", unschedulable=True)),
        requests={"cpu": "1"},
    ),
    "a pod that makes nobody leave": Case(
        Refuse(
            "0/1 nodes are available: 1 cannot allocate all claims."
            " preemption: not eligible due to preemptionPolicy=Never.",
            concern=DEVICES,
        ),
        (state("a"),),
        Fake({"a": Refused()}),
        {"preemptionPolicy": "Never"},
    ),
    "devices were taken back": Case(
        Refuse(
            "0/1 nodes are available: 1 resourceclaim not available on the node."
            " deallocation of ResourceClaim completed,"
            f" preemption: 0/1 nodes are available: 1 {NOT_HELPFUL}.",
            concern=DEVICES,
        ),
        (state("a"),),
        Fake(
            {"a": Refused("resourceclaim not available on the node")},
            cleared="deallocation of ResourceClaim completed",
        ),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_decide(case: Case) -> None:
    pod = msgspec.convert({"spec": case.spec}, Pod)
    if case.requests:
        for each in case.nodes:
            each.room.used = {"cpu": 1}

    assert decide(pod, amounts(case.requests), case.nodes, case.devices) == case.want


def test_what_fits_at_once_is_not_compared() -> None:
    devices = Fake()

    decide(Pod(), {}, (state("a"), state("b")), devices)

    assert devices.asked == ["a"]


def test_a_reason_of_the_pod_itself() -> None:
    got = refuse_everywhere(Pod(), "request r: device class x does not exist", 2, Concern.CLASSES)

    assert got == Refuse(
        "0/2 nodes are available: request r: device class x does not exist."
        f" preemption: 0/2 nodes are available: 2 {NOT_HELPFUL}.",
        concern=Concern.CLASSES,
    )
