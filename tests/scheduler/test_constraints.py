"""Constraints between pods, host ports and volumes: our verdict on each case of the table."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from itertools import count

import pytest

from scheduler.constraint_cases import (
    CASES,
    NAMESPACE,
    NODES,
    PREEMPTED,
    Case,
    Obj,
    Preempted,
    claim,
    namespace,
    pod,
    storage_class,
    uses,
)
from sully.api.core.pods.creation.label_keys import merge_label_keys
from sully.client.transport import Key
from sully.domain.capabilities.control_plane import ControlPlane
from sully.domain.scheduling.causes import Unknown
from sully.domain.scheduling.extended import Backings
from sully.domain.scheduling.filters import run_filters
from sully.domain.scheduling.messages import unknown
from sully.domain.scheduling.objects import Pod
from sully.domain.scheduling.resources import requests_of
from sully.scheduler.caches.constraint_sources import ConstraintSources
from sully.scheduler.caches.device_cache import DeviceCache
from sully.scheduler.caches.node_cache import NodeCache
from sully.scheduler.constraints import Constraints
from sully.scheduler.options import SchedulerOptions, options_for
from sully.scheduler.schedule_algorithm import ScheduleAlgorithm, ScheduleResult, Unschedulable
from sully.testing.clock import NOON
from sully.views.snapshot.file import from_documents
from sully.views.snapshot.kinds import NODES as NODE_KIND
from sully.views.snapshot.kinds import PODS
from sully.views.snapshot.snapshot import Snapshot

KUBERNETES, SULLY = map(options_for, (ControlPlane.KUBERNETES, ControlPlane.SULLY))
LISTED = ("namespaces", "persistentvolumeclaims", "persistentvolumes")
KINDS = [*LISTED, "storageclasses.storage.k8s.io", "pods", "nodes"]


def snapshot(*objects: Obj, listed: list[str] = KINDS) -> Snapshot:
    numbers = count(1)
    items = [
        x | {"metadata": {"uid": f"u{next(numbers)}", "resourceVersion": "1"} | x["metadata"]}
        for x in deepcopy((*objects, DEFAULT))
    ]
    for x in items:
        if x["kind"] == "Pod":
            # The API server does that with new pods.
            merge_label_keys(x)
    document = {"apiVersion": "v1", "kind": "List", "listedKinds": listed, "items": items}
    return from_documents([document], now=NOON)


DEFAULT = namespace(NAMESPACE)


class World:
    """The algorithm with a cluster, and the pod to schedule."""

    def __init__(self, taken: Snapshot, options: SchedulerOptions) -> None:
        self.nodes, sources = NodeCache(), ConstraintSources()
        sources.read(taken)
        for result in taken.of(NODE_KIND).values():
            self.nodes.update_node(result)
        for other in taken.of(PODS).values():
            if other.spec.node_name:
                self.nodes.add_pod(other, other.spec.node_name, requests_of(other))
        incoming = taken.get(PODS, Key(NAMESPACE, "p"))
        assert incoming is not None
        self.pod: Pod = incoming
        self.algorithm = ScheduleAlgorithm(
            devices=DeviceCache(taken.inventory),
            nodes=self.nodes,
            backings=Backings(),
            options=options,
            sources=sources,
        )

    def verdict(self) -> ScheduleResult | Unschedulable:
        return self.algorithm.schedule(self.pod, (), NOON)

    def fitting(self) -> Iterator[str]:
        constraints = self.algorithm.constraints(self.pod)
        assert constraints is None or isinstance(constraints, Constraints)
        filters = constraints.filters if constraints is not None else None
        for result in self.nodes.by_load():
            if run_filters(result, self.pod, requests_of(self.pod), (), filters) is None:
                yield result.name


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_as_kube_scheduler(case: Case) -> None:
    world = World(snapshot(case.pod, *case.nodes, *case.objects), KUBERNETES)
    verdict = world.verdict()

    if isinstance(verdict, Unschedulable):
        assert verdict.error.message == case.message
    else:
        assert set(world.fitting()) == case.fits


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_our_own_scheduler_decides_the_same(case: Case) -> None:
    """It refuses only what it would have to bind or provision."""
    world = World(snapshot(case.pod, *case.nodes, *case.objects), SULLY)
    verdict = world.verdict()

    if isinstance(verdict, ScheduleResult):
        assert verdict.node in case.fits
    elif "does not evaluate" in verdict.error.message:
        assert any(x["kind"] == "StorageClass" for x in case.objects)
    else:
        assert verdict.error.message == case.message


def ephemeral(cls: str) -> Obj:
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": cls}
    return {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}]}


PROVISIONED = "has to be provisioned by example.com/disk"
UNKNOWN: dict[str, tuple[Obj, tuple[Obj, ...], str]] = {
    "a volume that is provisioned where the pod is": (
        pod("p", **uses("c")),
        (storage_class("fast", "example.com/disk"), claim("c", cls="fast")),
        f'a volume for persistentvolumeclaim "c" {PROVISIONED}',
    ),
    "an ephemeral volume": (
        pod("p", **ephemeral("fast")),
        (storage_class("fast", "example.com/disk"),),
        f'a volume for persistentvolumeclaim "p-v" {PROVISIONED}',
    ),
    "an ephemeral volume that is bound first": (
        pod("p", **ephemeral("now")),
        (storage_class("now", "example.com/disk", waits=False),),
        f'a volume for persistentvolumeclaim "p-v" {PROVISIONED}',
    ),
    "a group of pods": (
        pod("p", schedulingGroup={"podGroupName": "g"}),
        (),
        "spec.schedulingGroup is not evaluated",
    ),
}


def unknowns(result: ScheduleResult | Unschedulable) -> tuple[Unknown, ...]:
    assert isinstance(result, ScheduleResult)
    return result.unknown


@pytest.mark.parametrize(("asking", "objects", "want"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_what_is_not_known(asking: Obj, objects: tuple[Obj, ...], want: str) -> None:
    verdict = World(snapshot(asking, *NODES, *objects), KUBERNETES).verdict()

    assert tuple(map(unknown, unknowns(verdict))) == (want,)


def test_allowed_topologies() -> None:
    zones = [{"key": "topology.kubernetes.io/zone", "values": ["b"]}]
    cls = storage_class(
        "fast", "example.com/disk", allowedTopologies=[{"matchLabelExpressions": zones}]
    )
    world = World(snapshot(pod("p", **uses("c")), *NODES, cls, claim("c", cls="fast")), KUBERNETES)

    assert list(world.fitting()) == ["n3"]


def test_volumes_that_may_not_be_read() -> None:
    taken = snapshot(pod("p", **uses("c")), *NODES, listed=["pods", "nodes", "namespaces"])
    verdict = World(taken, KUBERNETES).verdict()

    assert [unknown(x) for x in unknowns(verdict)] == [
        "persistentvolumeclaims could not be read",
        "persistentvolumes could not be read",
        "storageclasses could not be read",
    ]


REFUSED = {
    "a volume that waits": (
        pod("p", **uses("c")),
        (storage_class("fast", "example.com/disk"), claim("c", cls="fast")),
        "this scheduler does not evaluate spec.volumes[0].persistentVolumeClaim",
    ),
    "a claim of an ephemeral volume": (
        pod("p", **ephemeral("fast")),
        (),
        'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-v"',
    ),
    "a group of pods": (
        pod("p", schedulingGroup={"podGroupName": "g"}),
        (),
        "this scheduler does not evaluate spec.schedulingGroup",
    ),
}


@pytest.mark.parametrize(("asking", "objects", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_what_our_scheduler_refuses(asking: Obj, objects: tuple[Obj, ...], want: str) -> None:
    verdict = World(snapshot(asking, *NODES, *objects), SULLY).verdict()

    assert isinstance(verdict, Unschedulable)
    assert verdict.error.message.startswith(f"0/3 nodes are available: {want}. ")


@pytest.mark.parametrize(("objects", "want"), PREEMPTED.values(), ids=PREEMPTED.keys())
def test_who_may_be_preempted(objects: tuple[Obj, ...], want: Preempted) -> None:
    verdict = World(snapshot(*objects, *NODES), KUBERNETES).verdict()

    assert isinstance(verdict, Unschedulable)
    assert tuple((x.node, x.victims) for x in verdict.preemptions) == want
    ours = World(snapshot(*objects, *NODES), SULLY).verdict()
    assert isinstance(ours, Unschedulable)
    assert not ours.preemptions, "our scheduler deletes no pod"
