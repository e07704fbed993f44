"""Whatever happens, skipping unfit nodes changes no decision: compared with a new instance."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from property_examples import examples
from sully.api.resource.types import ResourceClaim, ResourceSlice
from sully.domain.scheduling.cluster_events import ClusterEvent
from sully.domain.scheduling.extended import Backings
from sully.domain.scheduling.objects import Pod
from sully.domain.scheduling.resources import requests_of
from sully.scheduler.caches.device_cache import DeviceCache
from sully.scheduler.caches.node_cache import NodeCache
from sully.scheduler.equivalence.unfit_nodes import MANY
from sully.scheduler.options import SchedulerOptions
from sully.scheduler.schedule_algorithm import ScheduleAlgorithm, ScheduleResult, Unschedulable
from sully.testing.builders import claim, class_, devices, node, pod_as, request, slice_
from sully.testing.clock import NOON
from sully.views.kinds import CLASSES, SLICES
from sully.views.snapshot.snapshot import Objects, Snapshot

NODES = MANY + 8
Action = tuple[str, int]
EMPTIER: list[Action] = [
    ("ask", 1),
    ("ask", 1),
    ("ask", 1),
    ("delete", 0),
    ("delete", 1),
    ("ask", 1),
]
"""A node that was full has a device again, and comes before another that has one."""
ACTIONS = st.one_of(
    st.tuples(st.just("ask"), st.integers(1, 2)),
    st.tuples(st.just("ask"), st.just(1)),
    st.tuples(st.just("ask for room"), st.integers(1, 4)),
    st.tuples(st.just("delete"), st.integers(0, 30)),
    st.tuples(st.just("change"), st.integers(0, NODES - 1)),
)


def slice_of(name: str, count: int) -> ResourceSlice:
    return slice_(name, *devices(count), pool=name, node=name)


def claim_of(number: int, count: int) -> ResourceClaim:
    return claim(f"c-{number}", pods=(), namespace="a", requests=(request(count=count),))


def pod_of(number: int, cpu: int) -> Pod:
    return pod_as(Pod, f"p-{number}", namespace="a", node="", requests={"cpu": str(cpu)})


class Scene:
    """Nodes and devices, an algorithm that records, and what pods got."""

    def __init__(self, devices: list[int]) -> None:
        names = [f"n-{index:02d}" for index in range(NODES)]
        gpus = class_()
        slices = [slice_of(*item) for item in zip(names, devices, strict=True) if item[1]]
        objects = [Objects(SLICES, slices), Objects(CLASSES, [gpus])]
        self._devices = DeviceCache(Snapshot(objects, taken=NOON).inventory)
        self._nodes, self._backings = NodeCache(), Backings()
        self._backings.change(None, gpus)
        for name in names:
            self._nodes.update_node(node(name))
        self._algorithm, self._brief = self._new_algorithm(), self._new_algorithm()
        self._placed: list[int] = []
        self._waiting: list[tuple[Pod, list[ResourceClaim], ClusterEvent]] = []
        self._asked = 0

    def _new_algorithm(self) -> ScheduleAlgorithm:
        return ScheduleAlgorithm(
            devices=self._devices,
            nodes=self._nodes,
            backings=self._backings,
            options=SchedulerOptions(),
        )

    def ask(self, count: int, cpu: int) -> None:
        """Ask all instances, and execute their decisions."""
        self._asked += 1
        number = self._asked
        pod = pod_of(number, cpu)
        claims = [claim_of(number, count)] if count else []
        result, fresh = (
            self._algorithm.schedule(pod, claims, NOON),
            self._new_algorithm().schedule(pod, claims, NOON),
        )
        assert result == fresh
        brief = self._brief.schedule(pod, claims, NOON, diagnose=False)
        if isinstance(result, ScheduleResult):
            assert brief == result
        else:
            assert isinstance(brief, Unschedulable)
            assert result.equivalence == brief.equivalence
            self._waiting = [*self._waiting[-3:], (pod, claims, brief.error.retry_on)]
        if isinstance(result, ScheduleResult):
            for claim, allocation in zip(claims, result.allocated.allocations, strict=True):
                self._devices.assume(claim, allocation)
            self._nodes.add_pod(pod, result.node, requests_of(pod))
            self._placed.append(number)

    def delete(self, which: int) -> None:
        if self._placed:
            number = self._placed.pop(which % len(self._placed))
            self._devices.forget(f"c-{number}")
            self._none_is_missed(ClusterEvent.DEVICE_RELEASE)
            self._nodes.remove_pod(f"p-{number}")
            self._none_is_missed(ClusterEvent.DEVICE_RELEASE | ClusterEvent.ASSIGNED_POD_DELETE)

    def change(self, which: int) -> None:
        self._nodes.update_node(node(f"n-{which:02d}", cpu="6"))
        self._none_is_missed(ClusterEvent.NODE_UPDATE)

    def _none_is_missed(self, event: ClusterEvent) -> None:
        """Whoever a change does not wake would have got nothing."""
        still_waiting = [item for item in self._waiting if not item[2] & event]
        for pod, claims, _ in still_waiting:
            assert isinstance(self._new_algorithm().schedule(pod, claims, NOON), Unschedulable)
        self._waiting = still_waiting


@settings(max_examples=examples(50))
@given(
    st.lists(st.integers(0, 2), min_size=8, max_size=8),
    st.lists(ACTIONS, min_size=10, max_size=60),
)
@example([1, 2, 0, 0, 0, 0, 0, 0], EMPTIER)
def test_skipping_unfit_nodes_changes_no_decision(some: list[int], actions: list[Action]) -> None:
    scene = Scene([0] * MANY + some)
    for action, number in actions:
        match action:
            case "ask":
                scene.ask(number, 1)
            case "ask for room":
                scene.ask(0, number)
            case "delete":
                scene.delete(number)
            case _:
                scene.change(number)
