"""The nodes, and the pods on them: kept from the API, and from what was decided but not yet seen.

A pod counts from the moment a node was chosen for it, so that the next pod finds the room taken.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Iterator
from itertools import filterfalse

from sully.domain.allocation.nodes import Node as Spot
from sully.domain.scheduling.filters import NodeState
from sully.domain.scheduling.objects import Node
from sully.domain.scheduling.resources import Amounts, Room, amounts


class Cluster:
    """Nodes by name and by load."""

    def __init__(self) -> None:
        self._nodes: dict[str, NodeState] = {}
        self._rooms: dict[str, Room] = {}
        """Also of nodes that are gone or not there yet, as long as pods are on them."""
        self._pods: dict[str, tuple[str, Amounts]] = {}
        """By uid: the node, and what the pod takes of it."""
        self._order: list[tuple[int, str]] = []
        self._names: list[str] = []
        """Those of the order: to pass over thousands of nodes at the speed of C."""
        self._loads: dict[str, int] = {}
        self.version = 0
        """Another one after every change."""
        self._listeners: list[Callable[[str], None]] = []

    def __len__(self) -> int:
        """Return how many nodes there are."""
        return len(self._nodes)

    def by_load(self, but: Container[str] = ()) -> Iterator[NodeState]:
        """Yield the nodes but these, the emptiest first; equally empty ones by name."""
        return map(self._nodes.__getitem__, filterfalse(but.__contains__, self._names))

    def among(self, names: Iterable[str]) -> Iterator[NodeState]:
        """Yield those of these nodes that there are, in the same order."""
        known = sorted((self._loads[name], name) for name in names if name in self._nodes)
        return (self._nodes[name] for _, name in known)

    def on_gain(self, listener: Callable[[str], None]) -> None:
        """Tell of every node that is new, that changed, or that a pod has left."""
        self._listeners.append(listener)

    def get(self, name: str) -> NodeState | None:
        """Return a node, or None."""
        return self._nodes.get(name)

    def put(self, node: Node) -> None:
        """Take a node, new or changed."""
        self.version += 1
        name = node.metadata.name
        room = self._room(name)
        room.allocatable = amounts(node.status.allocatable)
        self._nodes[name] = NodeState(node, Spot(name, node.metadata.labels), room)
        self._rank(name)
        self._tell(name)

    def remove(self, name: str) -> None:
        """Drop a node."""
        self.version += 1
        self._nodes.pop(name, None)
        self._unrank(name)
        room = self._rooms.get(name)
        if room is not None and not room.pods:
            del self._rooms[name]

    def occupy(self, uid: str, node: str, requests: Amounts) -> None:
        """Count a pod on a node; again, if it was counted otherwise."""
        if self._pods.get(uid) == (node, requests):
            return
        self.vacate(uid)
        self.version += 1
        self._pods[uid] = (node, requests)
        self._room(node).add(requests)
        self._rank(node)

    def vacate(self, uid: str) -> bool:
        """Count a pod no longer; say whether it was."""
        found = self._pods.pop(uid, None)
        if found is None:
            return False
        self.version += 1
        node, requests = found
        room = self._rooms[node]
        room.add(requests, -1)
        self._rank(node)
        self._tell(node)
        if not room.pods and node not in self._nodes:
            del self._rooms[node]
        return True

    def _room(self, name: str) -> Room:
        found = self._rooms.get(name)
        if found is None:
            found = self._rooms[name] = Room()
        return found

    def _tell(self, name: str) -> None:
        for listener in self._listeners:
            listener(name)

    def _rank(self, name: str) -> None:
        if name not in self._nodes:
            return
        load = self._rooms[name].load()
        if self._loads.get(name) != load:
            self._unrank(name)
            self._loads[name] = load
            at = bisect_left(self._order, (load, name))
            self._order.insert(at, (load, name))
            self._names.insert(at, name)

    def _unrank(self, name: str) -> None:
        load = self._loads.pop(name, None)
        if load is not None:
            at = bisect_left(self._order, (load, name))
            del self._order[at], self._names[at]
