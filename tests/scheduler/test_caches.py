"""The scheduling queue, and the cache of nodes."""

from __future__ import annotations

from datetime import timedelta
from itertools import permutations

import pytest

from sully.client.transport import Key
from sully.domain.scheduling.cluster_events import ClusterEvent
from sully.domain.scheduling.objects import Pod
from sully.domain.scheduling.resources import amounts
from sully.machinery.formats.timestamps import format_time
from sully.scheduler.caches.node_cache import NodeCache
from sully.scheduler.queue import SchedulingQueue
from sully.testing.builders import node, pod_as
from sully.testing.clock import NOON

ONE_CPU = amounts({"cpu": "1"})


def pod(name: str, *, priority: int = 0, age: int = 0) -> Pod:
    created = format_time(NOON - timedelta(seconds=age))
    metadata, spec = {"creationTimestamp": created}, {"priority": priority}
    return pod_as(Pod, name, namespace="a", node="", metadata=metadata, spec=spec)


def taken(queue: SchedulingQueue) -> list[str]:
    results = []
    while (key := queue.pop()) is not None:
        results.append(key.name)
    return results


PODS = (pod("new"), pod("old", age=60), pod("urgent", priority=5))


@pytest.mark.parametrize("order", list(permutations(PODS)))
def test_pods_come_by_priority_then_age(order: tuple[Pod, ...]) -> None:
    queue = SchedulingQueue(lambda: 0.0)
    for item in order:
        queue.add(Key("a", item.metadata.name), item)

    assert taken(queue) == ["urgent", "old", "new"]


def test_a_pod_that_becomes_urgent_overtakes() -> None:
    queue = SchedulingQueue(lambda: 0.0)
    for item in PODS[:2]:
        queue.add(Key("a", item.metadata.name), item)
    queue.add(Key("a", "new"), pod("new", priority=9))

    assert taken(queue) == ["new", "old"]


def test_an_event_activates_the_pods_that_it_may_help() -> None:
    queue = SchedulingQueue(lambda: 0.0)
    for pod in PODS:
        queue.add(Key("a", pod.metadata.name), pod)
    taken(queue)
    queue.add_unschedulable(Key("a", "new"), ClusterEvent.ASSIGNED_POD_DELETE)
    queue.add_unschedulable(Key("a", "old"), ClusterEvent.DEVICE_RELEASE | ClusterEvent.NODE_UPDATE)

    queue.move_to_active_queue(ClusterEvent.NODE_UPDATE | ClusterEvent.DEVICE_CLASS_UPDATE)

    assert taken(queue) == ["old"]


def test_a_pod_that_is_gone_does_not_come() -> None:
    queue = SchedulingQueue(lambda: 0.0)
    queue.add(Key("a", "new"), PODS[0])
    queue.remove(Key("a", "new"))
    queue.activate(Key("a", "new"))

    assert taken(queue) == []


def order(nodes: NodeCache) -> list[str]:
    return [item.name for item in nodes.by_load()]


def test_the_least_loaded_node_comes_first() -> None:
    nodes = NodeCache()
    for name in ("c", "a", "b"):
        nodes.update_node(node(name))

    nodes.add_pod(pod("p"), "a", ONE_CPU)
    assert order(nodes) == ["b", "c", "a"]
    nodes.add_pod(pod("p"), "b", ONE_CPU)
    assert order(nodes) == ["a", "c", "b"], "a pod is on one node only"
    nodes.update_node(node("b", cpu="400"))
    nodes.add_pod(pod("q"), "c", ONE_CPU)
    assert order(nodes) == ["a", "b", "c"]
    assert nodes.remove_pod("uid-p")
    assert not nodes.remove_pod("uid-p")
    nodes.remove_node("a")
    assert order(nodes) == ["b", "c"]


def test_pods_count_while_their_node_is_deleted() -> None:
    nodes = NodeCache()
    nodes.add_pod(pod("p"), "a", ONE_CPU)
    nodes.update_node(node("a"))
    nodes.remove_node("a")
    nodes.update_node(node("a"))
    result = nodes.get("a")

    assert result is not None
    assert result.resources.used == ONE_CPU
