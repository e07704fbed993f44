"""The graph of owners and dependents over all kinds, updated by events.

An event costs what it affects: the object, its owners and its dependents. Owners that are not
cached have dependents here and no node; the server is asked about them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from sully.client.informers.cache import Cache
from sully.client.transport import Key, Kind
from sully.controllers.framework.sources import Channel
from sully.domain.workloads.ownership import Ownable, Owned, owned, same_ownership
from sully.machinery.meta import OwnerReference


class Node(NamedTuple):
    """A cached object and its kind."""

    kind: Kind[Owned]
    obj: Owned

    @property
    def key(self) -> Key:
        """Return the key of the object."""
        return Key(self.obj.metadata.namespace, self.obj.metadata.name)

    @property
    def namespace(self) -> str:
        """Return its namespace; empty if its kind is cluster-scoped."""
        return self.obj.metadata.namespace

    def matches(self, ref: OwnerReference, namespace: str) -> bool:
        """Report whether a reference in a namespace refers to this object in all its fields."""
        meta = self.obj.metadata
        group = ref.api_version.rpartition("/")[0]
        referred = (ref.uid, ref.name, ref.kind, group)
        reachable = not meta.namespace or meta.namespace == namespace
        return reachable and referred == (meta.uid, meta.name, self.kind.kind, self.kind.group)


class Graph(Channel[str]):
    """All objects by uid, with their owners and dependents: a source of the uids to reconcile."""

    def __init__(self) -> None:
        super().__init__(lambda: self._nodes)
        self._nodes: dict[str, Node] = {}
        self._dependents: dict[str, dict[str, None]] = {}

    def follow(self, kind: Kind[Owned], objects: Cache[Any]) -> None:
        """Add the objects of one kind, and all changes of their owners and finalizers.

        The objects may be of another type, as others read them, if they are `Ownable`.
        """

        def changed(old: Ownable | None, new: Ownable | None) -> None:
            if new is None:
                if old is not None:
                    self.remove(old.metadata.uid)
            elif old is None or not same_ownership(new, old):
                self.put(Node(kind, owned(new)))

        objects.on_change(changed)

    def forget(self, kind: Kind[Owned]) -> None:
        """Remove the objects of a kind that the server no longer has."""
        for node in [node for node in self._nodes.values() if node.kind == kind]:
            self.remove(node.obj.uid)

    def __len__(self) -> int:
        """Return how many objects there are."""
        return len(self._nodes)

    def get(self, uid: str) -> Node | None:
        """Return a cached object, or None."""
        return self._nodes.get(uid)

    def dependents(self, uid: str) -> Iterator[Node]:
        """Yield the dependents of an owner, in the order in which they were added."""
        for dependent in self._dependents.get(uid, ()):
            yield self._nodes[dependent]

    def is_solid(self, obj: Owned, ref: OwnerReference) -> bool:
        """Report whether an owner is cached, matches, and does not wait for its dependents."""
        owner = self._nodes.get(ref.uid)
        if owner is None or owner.obj.awaiting:
            return False
        return owner.matches(ref, obj.metadata.namespace)

    def put(self, node: Node) -> None:
        """Add or replace an object."""
        obj = node.obj
        before = self._nodes.get(obj.uid)
        self._nodes[obj.uid] = node
        old = before.obj if before is not None else Owned()
        if old.owners != obj.owners:
            self._link(obj.uid, old.owners, obj.owners)
            self._enqueue_waiting_owners(old.owners)
            if not all(self.is_solid(obj, ref) for ref in obj.owners):
                self.send(obj.uid)
        if (obj.orphaning, obj.awaiting) != (old.orphaning, old.awaiting):
            self.send(obj.uid)
        if before is None or obj.awaiting != old.awaiting:
            self._enqueue_dependents(obj.uid)

    def remove(self, uid: str) -> None:
        """Remove a deleted object."""
        node = self._nodes.pop(uid, None)
        if node is None:
            return
        self._link(uid, node.obj.owners, ())
        self._enqueue_waiting_owners(node.obj.owners)
        self._enqueue_dependents(uid)

    def _link(self, uid: str, old: Iterable[OwnerReference], new: Iterable[OwnerReference]) -> None:
        before, after = {ref.uid for ref in old}, {ref.uid for ref in new}
        for owner in before - after:
            dependents = self._dependents[owner]
            del dependents[uid]
            if not dependents:
                del self._dependents[owner]
        for owner in after - before:
            self._dependents.setdefault(owner, {})[uid] = None

    def _enqueue_waiting_owners(self, refs: Iterable[OwnerReference]) -> None:
        """Enqueue owners that may have waited for a dependent."""
        for ref in refs:
            owner = self._nodes.get(ref.uid)
            if owner is not None and owner.obj.awaiting:
                self.send(ref.uid)

    def _enqueue_dependents(self, owner: str) -> None:
        """Enqueue dependents whose owner was added, was deleted, or waits for them now."""
        for dependent in list(self._dependents.get(owner, ())):
            obj = self._nodes[dependent].obj
            if not all(self.is_solid(obj, ref) for ref in obj.owners):
                self.send(dependent)
