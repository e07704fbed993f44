"""The nodes and the resources that their pods request, as the API shows them or core.py assumes.

A pod counts from the moment a node was selected for it, so that the next pod finds less.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from sully.domain.allocation.pools import nodes
from sully.domain.scheduling.filters import NodeInfo
from sully.domain.scheduling.objects import Node, Pod
from sully.domain.scheduling.resources import Amounts, NodeResources, amounts
from sully.scheduler.caches.assigned_pods import AssignedPods

_FEW: Final = 16
"""If more than one in so many nodes changed, all are sorted instead of each being moved."""


class NodeCache:
    """Nodes by name and by load."""

    def __init__(self) -> None:
        self._nodes: dict[str, NodeInfo] = {}
        self._resources: dict[str, NodeResources] = {}
        """Also of nodes that are deleted or not there yet, as long as pods are on them."""
        self._pods: dict[str, tuple[str, Amounts]] = {}
        """By uid: the node, and what the pod requests."""
        self.pods = AssignedPods()
        """The pods themselves, for constraints between pods."""
        self._order: list[tuple[int, str]] = []
        self._loads: dict[str, int] = {}
        self._changed: set[str] = set()
        """Nodes whose position in the order may be outdated; it is needed only to schedule."""
        self.version = 0
        """Increases with every change."""
        self._listeners: list[Callable[[str], None]] = []

    def copy_from(self, other: NodeCache) -> None:
        """Take the nodes and pods of another cache; this one has none yet."""
        resources = {name: used.copy() for name, used in other._resources.items()}
        self._resources = resources
        self._nodes = {
            name: NodeInfo(info.node, info.target, resources[name])
            for name, info in other._nodes.items()
        }
        self._pods = other._pods.copy()
        self.pods.copy_from(other.pods)
        self._order, self._loads = other._order.copy(), other._loads.copy()
        self._changed, self.version = other._changed.copy(), other.version

    def __len__(self) -> int:
        """Return how many nodes there are."""
        return len(self._nodes)

    def by_load(self) -> Iterator[NodeInfo]:
        """Yield all nodes, the least loaded first; equally loaded ones by name."""
        return (self._nodes[name] for _, name in self.loads())

    def loads(self) -> Sequence[tuple[int, str]]:
        """Return the load and the name of all nodes, in the same order."""
        self._sort()
        return self._order

    def load(self, name: str) -> int:
        """Return how loaded a node is."""
        return self._resources[name].load()

    def by_load_among(self, names: Iterable[str]) -> Iterator[NodeInfo]:
        """Yield those of these nodes that exist, in the same order."""
        self._sort()
        known = sorted((self._loads[name], name) for name in names if name in self._nodes)
        return (self._nodes[name] for _, name in known)

    def on_capacity_gain(self, listener: Callable[[str], None]) -> None:
        """Call a listener with each node that is new, that changed, or that lost a pod."""
        self._listeners.append(listener)

    def get(self, name: str) -> NodeInfo | None:
        """Return a node, or None."""
        return self._nodes.get(name)

    def labels(self, name: str) -> Mapping[str, str] | None:
        """Return the labels of a node; None if there is no such node."""
        info = self._nodes.get(name)
        return info.target.labels if info is not None else None

    def update_node(self, node: Node) -> None:
        """Add or update a node."""
        self.version += 1
        name = node.metadata.name
        resources = self._resources_of(name)
        resources.allocatable = amounts(node.status.allocatable)
        target = nodes.AllocatorNode(name, node.metadata.labels)
        self._nodes[name] = NodeInfo(node, target, resources)
        self._changed.add(name)
        self._notify(name)

    def remove_node(self, name: str) -> None:
        """Remove a node."""
        self.version += 1
        self._nodes.pop(name, None)
        self._remove_from_order(name)
        resources = self._resources.get(name)
        if resources is not None and not resources.pods:
            del self._resources[name]

    def add_pod(self, pod: Pod, node: str, requests: Amounts) -> bool:
        """Count a pod on a node, and no longer where it was counted before.

        Report whether that changed anything.
        """
        uid = pod.metadata.uid
        if self._pods.get(uid) == (node, requests):
            self.update_pod(pod)
            return False
        if uid in self._pods:
            self.remove_pod(uid)
        self.version += 1
        self._pods[uid] = (node, requests)
        self._resources_of(node).add(requests)
        self.pods.add(node, pod)
        self._changed.add(node)
        return True

    def update_pod(self, pod: Pod) -> None:
        """Handle a newer state of a pod on a node."""
        if self.pods.update(pod):
            self.version += 1

    def remove_pod(self, uid: str) -> bool:
        """Count a pod no longer; report whether it was counted."""
        known = self._pods.pop(uid, None)
        if known is None:
            return False
        self.version += 1
        self.pods.remove(uid)
        node, requests = known
        resources = self._resources[node]
        resources.add(requests, -1)
        self._changed.add(node)
        self._notify(node)
        if not resources.pods and node not in self._nodes:
            del self._resources[node]
        return True

    def _resources_of(self, name: str) -> NodeResources:
        resources = self._resources.get(name)
        if resources is None:
            resources = self._resources[name] = NodeResources()
        return resources

    def _notify(self, name: str) -> None:
        for listener in self._listeners:
            listener(name)

    def _sort(self) -> None:
        """Bring the order up to date."""
        if len(self._changed) * _FEW > len(self._order):
            self._loads |= {name: self.load(name) for name in self._changed & self._nodes.keys()}
            self._order = sorted((load, name) for name, load in self._loads.items())
        else:
            for name in self._changed:
                self._reorder(name)
        self._changed.clear()

    def _reorder(self, name: str) -> None:
        if name not in self._nodes:
            return
        load = self._resources[name].load()
        if self._loads.get(name) != load:
            self._remove_from_order(name)
            self._loads[name] = load
            index = bisect_left(self._order, (load, name))
            self._order.insert(index, (load, name))

    def _remove_from_order(self, name: str) -> None:
        load = self._loads.pop(name, None)
        if load is not None:
            index = bisect_left(self._order, (load, name))
            del self._order[index]
