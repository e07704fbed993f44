"""What the scheduler keeps in memory: its queue, the load of nodes, allocations under way."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest

from sully.client.transport import Key
from sully.controllers.scheduling.cluster import Cluster
from sully.controllers.scheduling.outbox import Again, Outbox, Placement, Refusal
from sully.controllers.scheduling.queue import Queue
from sully.domain.scheduling.decisions import Concern, Refuse
from sully.domain.scheduling.objects import (
    Node,
    NodeMetadata,
    NodeStatus,
    Pod,
    PodMetadata,
    PodSpec,
)
from sully.domain.scheduling.resources import amounts

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
ONE_CPU = amounts({"cpu": "1"})


def pod(name: str, *, priority: int = 0, age: int = 0) -> Pod:
    created = NOON - timedelta(seconds=age)
    metadata = PodMetadata(name=name, namespace="a", uid=name, creation_timestamp=created)
    return Pod(metadata=metadata, spec=PodSpec(priority=priority))


def taken(queue: Queue) -> list[str]:
    found = []
    while (key := queue.pop()) is not None:
        found.append(key.name)
    return found


PODS = (pod("new"), pod("old", age=60), pod("urgent", priority=5))


@pytest.mark.parametrize("order", list(permutations(PODS)))
def test_pods_come_by_priority_then_age(order: tuple[Pod, ...]) -> None:
    queue = Queue(lambda: 0.0)
    for each in order:
        queue.add(Key("a", each.metadata.name), each)

    assert taken(queue) == ["urgent", "old", "new"]


def test_a_pod_that_becomes_urgent_overtakes() -> None:
    queue = Queue(lambda: 0.0)
    for each in PODS[:2]:
        queue.add(Key("a", each.metadata.name), each)
    queue.add(Key("a", "new"), pod("new", priority=9))

    assert taken(queue) == ["new", "old"]


def test_a_pod_that_waits_wakes_for_what_concerns_it() -> None:
    queue = Queue(lambda: 0.0)
    for each in PODS:
        queue.add(Key("a", each.metadata.name), each)
    taken(queue)
    queue.park(Key("a", "new"), Concern.ROOM)
    queue.park(Key("a", "old"), Concern.DEVICES | Concern.NODES)

    queue.wake(Concern.NODES | Concern.CLASSES)

    assert taken(queue) == ["old"]


def test_a_pod_that_is_gone_does_not_come() -> None:
    queue = Queue(lambda: 0.0)
    queue.add(Key("a", "new"), PODS[0])
    queue.remove(Key("a", "new"))
    queue.touch(Key("a", "new"))

    assert taken(queue) == []


def node(name: str, cpu: str = "4") -> Node:
    return Node(
        metadata=NodeMetadata(name=name), status=NodeStatus(allocatable={"cpu": cpu, "pods": "9"})
    )


def order(cluster: Cluster) -> list[str]:
    return [each.place.name for each in cluster.by_load()]


def test_the_emptiest_node_comes_first() -> None:
    cluster = Cluster()
    for name in ("c", "a", "b"):
        cluster.put(node(name))

    cluster.occupy("p", "a", ONE_CPU)
    assert order(cluster) == ["b", "c", "a"]
    cluster.occupy("p", "b", ONE_CPU)
    assert order(cluster) == ["a", "c", "b"], "a pod is on one node only"
    cluster.put(node("b", cpu="400"))
    cluster.occupy("q", "c", ONE_CPU)
    assert order(cluster) == ["a", "b", "c"]
    assert cluster.vacate("p")
    assert not cluster.vacate("p")
    cluster.remove("a")
    assert order(cluster) == ["b", "c"]


def test_pods_are_remembered_while_their_node_is_away() -> None:
    cluster = Cluster()
    cluster.occupy("p", "a", ONE_CPU)
    cluster.put(node("a"))
    cluster.remove("a")
    cluster.put(node("a"))
    found = cluster.get("a")

    assert found is not None
    assert found.room.used == ONE_CPU


def test_a_refusal_is_overtaken_and_a_placement_is_not_looked_at() -> None:
    outbox, key = Outbox(), Key("a", "p")
    heard: list[Key] = []
    outbox.enqueue(heard.append, lambda key: (key,))
    first, second = Refusal(PODS[0], Refuse("x")), Placement(PODS[0], "n")

    outbox.put(key, first)
    assert not outbox.is_busy(key)
    outbox.put(key, second)
    outbox.done(key, first)
    assert outbox.get(key) is second
    assert outbox.is_busy(key)
    outbox.replace(key, Again())
    assert outbox.is_busy(key)
    assert heard == [key, key]
