"""The graph of owners reads caches that other controllers read as types of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from sully.client.informers.cache import Cache
from sully.client.transport import Key, WatchEvent
from sully.controllers.garbagecollection.graph import Graph
from sully.domain.scheduling.objects import Pod, PodSpec
from sully.domain.workloads.ownership import FOREGROUND, ORPHAN, Owned
from sully.machinery.meta import OwnerReference
from sully.testing.builders import pod_as
from sully.testing.clock import NOON
from sully.views.snapshot.kinds import PODS

OWNER = OwnerReference(api_version="v1", kind="Pod", name="owner", uid="owner")
POD = pod_as(Pod, "a", node="", uid="a")


def with_metadata(**changes: Any) -> Pod:
    return replace(POD, metadata=replace(POD.metadata, resource_version="2", **changes))


def follow(pods: Cache[Pod]) -> tuple[Graph, list[str]]:
    """Return a graph of a cache, and the uids that it enqueues from now on."""
    graph, enqueued = Graph(), list[str]()
    graph.follow(PODS.read_as(Owned), pods)
    graph.enqueue(lambda key: enqueued.append(key.name), lambda uid: (Key("", uid),))
    enqueued.clear()
    return graph, enqueued


CASES: dict[str, tuple[Pod, bool]] = {
    "an owner": (with_metadata(owner_references=(OWNER,)), True),
    "foreground deletion": (
        with_metadata(deletion_timestamp=NOON, finalizers=(FOREGROUND,)),
        True,
    ),
    "orphaning deletion": (with_metadata(deletion_timestamp=NOON, finalizers=(ORPHAN,)), True),
    "deletion without dependents": (with_metadata(deletion_timestamp=NOON), False),
    "labels": (with_metadata(labels={"a": "b"}), False),
    "a node": (replace(with_metadata(), spec=PodSpec(node_name="n")), False),
}


@pytest.mark.parametrize(("pod", "enqueues"), CASES.values(), ids=CASES.keys())
def test_a_change_is_enqueued_if_it_matters_to_garbage_collection(pod: Pod, enqueues: bool) -> None:
    pods = Cache(PODS)
    pods.replace([POD])
    graph, enqueued = follow(pods)

    pods.change(WatchEvent("MODIFIED", pod, "2"))

    assert enqueued == (["a"] if enqueues else [])
    node = graph.get("a")
    assert node is not None
    assert node.obj.owners == pod.metadata.owner_references
    assert node.obj.is_terminating == pod.is_terminating
    assert node.obj.metadata.finalizers == pod.metadata.finalizers


DELETIONS: dict[str, Callable[[Cache[Pod]], None]] = {
    "deleted": lambda pods: pods.change(WatchEvent("DELETED", POD, "2")),
    "missing in the next list": lambda pods: pods.replace([]),
}


@pytest.mark.parametrize("delete", DELETIONS.values(), ids=DELETIONS.keys())
def test_a_deleted_object_is_removed_and_its_dependents_are_enqueued(
    delete: Callable[[Cache[Pod]], None],
) -> None:
    owner = OwnerReference(api_version="v1", kind="Pod", name="a", uid="a")
    child = with_metadata(name="child", uid="child", owner_references=(owner,))
    pods, children = Cache(PODS), Cache(PODS)
    pods.replace([POD])
    children.replace([child])
    graph, enqueued = follow(pods)
    graph.follow(PODS.read_as(Owned), children)

    delete(pods)

    assert graph.get("a") is None
    assert enqueued == ["child"]
