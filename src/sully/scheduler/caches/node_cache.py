"""The nodes and the resources that their pods request, as the API shows them or core.py assumes.

A pod counts from the moment a node was selected for it, so that the next pod finds less.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from operator import itemgetter

from sully.domain.allocation.pools import nodes
from sully.domain.scheduling.filters import NodeInfo
from sully.domain.scheduling.objects import Node, Pod
from sully.domain.scheduling.resources import Amounts, NodeResources, amounts
from sully.scheduler.caches.assigned_pods import AssignedPods

Entry = tuple[int, str]
"""The load and the name of a node."""
_NAME = itemgetter(1)


class NodeOrder:
    """Nodes, the least loaded first, equally loaded ones by name; sorted when they are read."""

    def __init__(self, entry_of: Callable[[str], Entry | None]) -> None:
        """Order the nodes for which `entry_of` returns an entry."""
        self._entry_of = entry_of
        self._order: list[Entry] = []
        self._entries: dict[str, Entry] = {}
        self._changed: set[str] = set()

    def get(self, name: str) -> Entry | None:
        """Return where a node is in the order."""
        if name in self._changed:
            self._sort()
        return self._entries.get(name)

    def names(self) -> Iterator[str]:
        """Return the names of the nodes, in order."""
        self._sort()
        return map(_NAME, self._order)

    def changed(self, names: Iterable[str]) -> None:
        """Note nodes whose entries may have changed."""
        self._changed.update(names)

    def _sort(self) -> None:
        if len(self._changed) > len(self._order):
            # A cluster was loaded.
            entries = map(self._entry_of, self._entries.keys() | self._changed)
            self._order = sorted(entry for entry in entries if entry is not None)
            self._entries = {entry[1]: entry for entry in self._order}
        else:
            for name in self._changed:
                self._move(name, self._entry_of(name))
        self._changed.clear()

    def _move(self, name: str, entry: Entry | None) -> None:
        before = self._entries.pop(name, None)
        if entry is not None:
            self._entries[name] = entry
        if entry == before:
            return
        if before is not None:
            del self._order[bisect_left(self._order, before)]
        if entry is not None:
            insort(self._order, entry)


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
        self._order = NodeOrder(self._entry_of)
        self._parts: list[NodeOrder] = []
        self.version = 0
        """Increases with every change."""
        self._listeners: list[Callable[[str], None]] = []

    def __len__(self) -> int:
        """Return how many nodes there are."""
        return len(self._nodes)

    def by_load(self, part: NodeOrder | None = None) -> Iterator[NodeInfo]:
        """Yield all nodes, or those of a part, the least loaded first; equally loaded by name."""
        return map(self._nodes.__getitem__, (part or self._order).names())

    def by_load_among(self, names: Iterable[str]) -> Iterator[NodeInfo]:
        """Yield those of these nodes that exist, in the same order."""
        known = sorted(filter(None, map(self._order.get, names)))
        return (self._nodes[name] for _, name in known)

    def without(self, names: Container[str]) -> NodeOrder:
        """Return the order of all nodes but these, of which others may be added or removed later.

        It follows all changes until `forget`; who changes the names reports that to it.
        """
        part = NodeOrder(lambda name: None if name in names else self._order.get(name))
        part.changed(self._nodes)
        self._parts.append(part)
        return part

    def forget(self, part: NodeOrder) -> None:
        """Keep a part of the order up to date no longer."""
        self._parts.remove(part)

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
        target = nodes.Node(name, node.metadata.labels)
        self._nodes[name] = NodeInfo(node, target, resources)
        self._reorder(name)
        self._notify(name)

    def remove_node(self, name: str) -> None:
        """Remove a node."""
        self.version += 1
        self._nodes.pop(name, None)
        self._reorder(name)
        resources = self._resources.get(name)
        if resources is not None and not resources.pods:
            del self._resources[name]

    def add_pod(self, pod: Pod, node: str, requests: Amounts) -> bool:
        """Count a pod on a node, and no longer where it was counted before.

        Report whether that changed anything.
        """
        uid = pod.metadata.uid
        if self._pods.get(uid) == (node, requests):
            return False
        self.remove_pod(uid)
        self.version += 1
        self._pods[uid] = (node, requests)
        self._resources_of(node).add(requests)
        self.pods.add(node, pod)
        self._reorder(node)
        return True

    def update_pod(self, pod: Pod) -> None:
        """Handle new labels of a pod on a node, or that it is terminating."""
        self.pods.update(pod)
        if self.pods.counts_pods:
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
        self._reorder(node)
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

    def _entry_of(self, name: str) -> Entry | None:
        return (self._resources[name].load(), name) if name in self._nodes else None

    def _reorder(self, name: str) -> None:
        for order in (self._order, *self._parts):
            order.changed((name,))
