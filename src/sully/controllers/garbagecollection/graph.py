"""Who owns whom, over all kinds, kept up to date event by event.

An event costs what it touches: the object, its owners and its dependents. Owners that are named
but were never seen have dependents here and no node; whoever asks about them asks the server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from sully.client.informers.informer import Informer
from sully.client.transport import Key, Kind
from sully.domain.workloads.ownership import Owned
from sully.machinery.meta import OwnerReference


class Node(NamedTuple):
    """An object that was seen, and what kind of object it is."""

    kind: Kind[Owned]
    obj: Owned

    @property
    def key(self) -> Key:
        """Return where the object is."""
        return Key(self.obj.metadata.namespace, self.obj.metadata.name)

    @property
    def namespace(self) -> str:
        """Return the namespace it is in, empty if its kind has none."""
        return self.obj.metadata.namespace

    def is_meant_by(self, ref: OwnerReference, namespace: str) -> bool:
        """Report whether a reference in a namespace names this object in every respect."""
        meta = self.obj.metadata
        group = ref.api_version.rpartition("/")[0]
        same = (ref.uid, ref.name, ref.kind, group)
        in_reach = not meta.namespace or meta.namespace == namespace
        return in_reach and same == (meta.uid, meta.name, self.kind.kind, self.kind.group)


class Graph:
    """All objects by uid, with their owners and dependents. It tells which uids to look at."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._dependents: dict[str, dict[str, None]] = {}
        self._listeners: list[Callable[[str], None]] = []

    def follow(self, informer: Informer[Owned]) -> None:
        """Take in the objects of one kind, those there are and every change."""
        kind = informer.kind

        def changed(old: Owned | None, new: Owned | None) -> None:
            if new is not None:
                self.put(Node(kind, new))
            elif old is not None:
                self.remove(old)

        informer.on_change(changed)

    def enqueue(
        self, add: Callable[[Key], None], to_keys: Callable[[str], Iterable[Key]]
    ) -> Callable[[], None]:
        """Add the keys of every uid that is to be looked at; return how to stop that."""

        def touched(uid: str) -> None:
            for key in to_keys(uid):
                add(key)

        self._listeners.append(touched)
        for uid in list(self._nodes):
            touched(uid)
        return lambda: self._listeners.remove(touched)

    def __len__(self) -> int:
        """Return how many objects there are."""
        return len(self._nodes)

    def get(self, uid: str) -> Node | None:
        """Return an object that was seen and is not known to be gone."""
        return self._nodes.get(uid)

    def dependents(self, uid: str) -> Iterator[Node]:
        """Go through the objects that name an owner, in the order in which they came."""
        for dependent in self._dependents.get(uid, ()):
            yield self._nodes[dependent]

    def is_solid(self, obj: Owned, ref: OwnerReference) -> bool:
        """Report whether an owner was seen, is the one meant, and does not wait for `obj` to go."""
        owner = self._nodes.get(ref.uid)
        if owner is None or owner.obj.awaiting:
            return False
        return owner.is_meant_by(ref, obj.metadata.namespace)

    def put(self, node: Node) -> None:
        """Take in an object that is new or has changed."""
        obj = node.obj
        before = self._nodes.get(obj.uid)
        self._nodes[obj.uid] = node
        old = before.obj if before is not None else Owned()
        if old.owners != obj.owners:
            self._link(obj.uid, old.owners, obj.owners)
            self._touch_awaiting(old.owners)
            if not all(self.is_solid(obj, ref) for ref in obj.owners):
                self._touch(obj.uid)
        if (obj.orphaning, obj.awaiting) != (old.orphaning, old.awaiting):
            self._touch(obj.uid)
        if before is None or obj.awaiting != old.awaiting:
            self._touch_shaken(obj.uid)

    def remove(self, obj: Owned) -> None:
        """Forget an object that is gone."""
        node = self._nodes.pop(obj.uid, None)
        if node is None:
            return
        self._link(obj.uid, node.obj.owners, ())
        self._touch_awaiting(node.obj.owners)
        self._touch_shaken(obj.uid)

    def _link(self, uid: str, old: Iterable[OwnerReference], new: Iterable[OwnerReference]) -> None:
        before, after = {ref.uid for ref in old}, {ref.uid for ref in new}
        for owner in before - after:
            found = self._dependents[owner]
            del found[uid]
            if not found:
                del self._dependents[owner]
        for owner in after - before:
            self._dependents.setdefault(owner, {})[uid] = None

    def _touch_awaiting(self, refs: Iterable[OwnerReference]) -> None:
        """Look at owners that wait for a dependent that may have let go of them."""
        for ref in refs:
            owner = self._nodes.get(ref.uid)
            if owner is not None and owner.obj.awaiting:
                self._touch(ref.uid)

    def _touch_shaken(self, owner: str) -> None:
        """Look at dependents whose owner came, went, or now waits for them."""
        for dependent in list(self._dependents.get(owner, ())):
            obj = self._nodes[dependent].obj
            if not all(self.is_solid(obj, ref) for ref in obj.owners):
                self._touch(dependent)

    def _touch(self, uid: str) -> None:
        for listener in self._listeners:
            listener(uid)
