"""The best node, and how a refusal reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from sully.domain.allocation.failures import TooManyDevices, Unresolved
from sully.domain.allocation.pools.nodes import AllocatorNode as AllocationNode
from sully.domain.allocation.verdicts import (
    Allocated,
    Failed,
    Unallocatable,
    UnallocatableReason,
)
from sully.domain.scheduling.cluster_events import ClusterEvent
from sully.domain.scheduling.decisions import (
    ERROR,
    NO_DEVICES,
    UNSCHEDULABLE,
    Fit,
    FitError,
    decide,
    reject_pod,
)
from sully.domain.scheduling.filters import NodeInfo
from sully.domain.scheduling.objects import Pod
from sully.domain.scheduling.resources import NodeResources, amounts
from sully.testing.builders import node

ALL = ~ClusterEvent.NONE
NOT_HELPFUL = "Preemption is not helpful for scheduling"
DEVICES = ClusterEvent.NODE_UPDATE | ClusterEvent.DEVICE_RELEASE | ClusterEvent.DEVICE_CLASS_UPDATE


def state(name: str, **spec: Any) -> NodeInfo:
    return NodeInfo(
        node(name, spec=spec),
        AllocationNode(name),
        NodeResources(amounts({"cpu": "1", "pods": "9"})),
    )


@dataclass
class Fake:
    """Devices by the name of the node."""

    answers: dict[str, Allocated | Unallocatable | Failed] = field(default_factory=dict)
    varied: bool = False
    backed: tuple[str, ...] = ()
    disliked: tuple[str, ...] = ()
    deallocates: bool = False
    asked: list[str] = field(default_factory=list)

    def on(self, state: NodeInfo) -> Allocated | Unallocatable | Failed:
        self.asked.append(state.name)
        return self.answers.get(state.name, NO_DEVICES)

    def settles(self, allocated: Allocated) -> bool:
        return not self.varied

    def penalty(self, allocated: Allocated) -> int:
        return sum(self.answers.get(name) is allocated for name in self.disliked)

    def deallocate(self) -> bool:
        return self.deallocates


@dataclass(frozen=True)
class Rejected:
    """An error as its condition shows it."""

    message: str
    reason: str = UNSCHEDULABLE
    retry_on: ClusterEvent = ClusterEvent.NONE


def rendered(error: FitError) -> Rejected:
    return Rejected(error.message, error.reason, error.retry_on)


@dataclass(frozen=True)
class Case:
    want: Fit | Rejected
    nodes: tuple[NodeInfo, ...] = (state("a"), state("b"))
    devices: Fake = field(default_factory=Fake)
    spec: dict[str, Any] = field(default_factory=dict)
    requests: dict[str, str] = field(default_factory=dict)


LATE, EARLY = Allocated((), (), preference=7), Allocated((), (), preference=8)
CASES = {
    "the first that fits": Case(Fit("a", NO_DEVICES)),
    "the second, if the first is cordoned": Case(
        Fit("b", NO_DEVICES), (state("a", unschedulable=True), state("b"))
    ),
    "the second, if the first has no devices": Case(
        Fit("b", NO_DEVICES), devices=Fake({"a": Unallocatable()})
    ),
    "the better choice": Case(
        Fit("b", EARLY, ("a", "b")), devices=Fake({"a": LATE, "b": EARLY}, varied=True)
    ),
    "equally good": Case(
        Fit("a", EARLY, ("a", "b")), devices=Fake({"a": EARLY, "b": EARLY}, varied=True)
    ),
    "a taint that advises against weighs more": Case(
        Fit("a", LATE, ("a", "b")),
        devices=Fake({"a": LATE, "b": EARLY}, varied=True, disliked=("b",)),
    ),
    "no nodes": Case(
        Rejected("no nodes available to schedule pods", retry_on=ClusterEvent.NODE_UPDATE), nodes=()
    ),
    "an error ends the attempt": Case(
        Rejected(
            'running "DynamicResources" filter plugin: claim default/c: number of requested'
            " devices 33 exceeds the claim limit of 32",
            ERROR,
            ALL,
        ),
        devices=Fake({"a": Failed(TooManyDevices("default/c", 33, 32))}),
    ),
    "reasons are counted and sorted": Case(
        Rejected(
            "0/3 nodes are available: 1 node(s) were unschedulable, 2 cannot allocate all claims."
            f" preemption: 0/3 nodes are available: 3 {NOT_HELPFUL}.",
            retry_on=DEVICES,
        ),
        (state("a"), state("b", unschedulable=True), state("c")),
        Fake({"a": Unallocatable(), "c": Unallocatable()}),
    ),
    "room that others hold": Case(
        Rejected(
            "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."
            f" preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod,"
            f" 1 {NOT_HELPFUL}.",
            retry_on=ClusterEvent.NODE_UPDATE | ClusterEvent.ASSIGNED_POD_DELETE,
        ),
        (state("a"), state("b", unschedulable=True)),
        requests={"cpu": "1"},
    ),
    "a pod that evicts no pod": Case(
        Rejected(
            "0/1 nodes are available: 1 cannot allocate all claims."
            " preemption: not eligible due to preemptionPolicy=Never.",
            retry_on=DEVICES,
        ),
        (state("a"),),
        Fake({"a": Unallocatable()}),
        {"preemptionPolicy": "Never"},
    ),
    "devices were taken back": Case(
        Rejected(
            "0/1 nodes are available: 1 resourceclaim not available on the node."
            " deallocation of ResourceClaim completed,"
            f" preemption: 0/1 nodes are available: 1 {NOT_HELPFUL}.",
            retry_on=DEVICES,
        ),
        (state("a"),),
        Fake(
            {"a": Unallocatable(UnallocatableReason.NOT_ON_NODE)},
            deallocates=True,
        ),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_decide(case: Case) -> None:
    pod = msgspec.convert({"spec": case.spec}, Pod)
    if case.requests:
        for node in case.nodes:
            node.resources.used = {"cpu": 1}

    got = decide(pod, amounts(case.requests), case.nodes, case.devices)

    assert (rendered(got) if isinstance(got, FitError) else got) == case.want


def test_what_fits_together_is_not_compared() -> None:
    devices = Fake()

    decide(Pod(), {}, (state("a"), state("b")), devices)

    assert devices.asked == ["a"]


def test_a_reason_of_the_pod_itself() -> None:
    got = reject_pod(
        Pod(),
        Unresolved("r", "x"),
        2,
        ClusterEvent.DEVICE_CLASS_UPDATE,
    )

    assert rendered(got) == Rejected(
        "0/2 nodes are available: request r: device class x does not exist."
        f" preemption: 0/2 nodes are available: 2 {NOT_HELPFUL}.",
        retry_on=ClusterEvent.DEVICE_CLASS_UPDATE,
    )
