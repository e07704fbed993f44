"""One pool, slice by slice: which devices it offers now, and how its driver marked them.

Only slices of the pool's owner and of the newest generation count (`domain/devices/pools.py`). A
slice that comes, changes or goes costs its own devices, unless it brings another generation or
owner to the front. inventory.py has them all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Sequence, Set
from itertools import chain

from sully.api.resource.types import ResourceSlice
from sully.domain.devices.device import Published, slice_origin
from sully.domain.devices.pools import PoolId, is_owned, pool_owner
from sully.domain.devices.taints import SourcedTaint

_State = tuple[Published | None, tuple[SourcedTaint, ...]]


class Pool:
    """The slices of one pool."""

    def __init__(self, id_: PoolId, *, taint_slices: bool = True, has_owner: bool = True) -> None:
        self.id = id_
        self.slices: dict[str, ResourceSlice] = {}
        self.ignored: dict[str, ResourceSlice] = {}
        """Slices of nodes that do not own the pool; there are none unless `has_owner`."""
        self.owner: str | None = None
        """The node whose slices count, empty for that of no single node; None: all count."""
        self._has_owner = has_owner
        self._nodes: Counter[str] = Counter()
        """How many slices each node has here; the empty name stands for several nodes."""
        self.generation: int | None = None
        self._taint_slices = taint_slices
        self._by_generation: dict[int, set[str]] = {}
        self._published: dict[str, Published] = {}
        """By device name. A name that stands in two slices is a mistake of the driver; the first
        by the name of the slice counts, whichever was seen first."""
        self._doubles: dict[str, dict[str, Published]] = {}
        """Such mistakes: by device name, then by the name of the slice."""
        self._tainted: dict[str, frozenset[str]] = {}
        """By the name of the slice, the devices that have taints in it; most slices have none."""
        self._marks: dict[str, dict[str, tuple[SourcedTaint, ...]]] = {}
        """Taints from slices of taints: by device name, then by the name of the slice."""

    def __len__(self) -> int:
        """Return how many devices the pool offers."""
        return len(self._published)

    def __contains__(self, device: str) -> bool:
        """Report whether the pool offers a device."""
        return device in self._published

    def get(self, device: str) -> Published | None:
        """Return a device, or None."""
        return self._published.get(device)

    def names(self) -> KeysView[str]:
        """Return the names of all devices, in no order that matters."""
        return self._published.keys()

    def items(self) -> ItemsView[str, Published]:
        """Return all devices with their names, in no order that matters."""
        return self._published.items()

    def devices(self) -> Iterator[Published]:
        """Yield the devices in the order in which they are offered: by slice, then as published."""
        for slice_ in self.current():
            for device in slice_.spec.devices:
                found = self._published[device.name]
                if found.slice is slice_:
                    yield found

    def current(self) -> list[ResourceSlice]:
        """Return the slices of the newest generation, by name."""
        names = self._by_generation.get(self.generation, ()) if self.generation is not None else ()
        return [self.slices[name] for name in sorted(names)]

    def duplicates(self) -> list[str]:
        """Return device names that stand in more than one slice, which makes a pool invalid."""
        return sorted(self._doubles)

    def tainted(self) -> Set[str]:
        """Return the names of devices that the driver itself may have marked."""
        if not self._marks and not self._tainted:
            return frozenset()
        return (self._marks.keys() & self._published.keys()).union(*self._tainted.values())

    def marks(self, device: str) -> tuple[SourcedTaint, ...]:
        """Return the taints that slices of taints have for a device, by slice and place."""
        found = self._marks.get(device)
        if not found:
            return ()
        return tuple(taint for name in sorted(found) for taint in found[name])

    def put(self, slice_: ResourceSlice) -> frozenset[str]:
        """Take a slice, new or changed; return the names of devices that are different now."""
        return self._take(slice_.metadata.name, slice_)

    def remove(self, name: str) -> frozenset[str]:
        """Take a slice away; return the names of devices that are different now."""
        return self._take(name, None)

    def is_empty(self) -> bool:
        """Report whether the pool has no slice, not even one that is ignored."""
        return not self.slices and not self.ignored

    def _take(self, name: str, new: ResourceSlice | None) -> frozenset[str]:
        self._count(self.slices.get(name) or self.ignored.get(name), -1)
        self._count(new, 1)
        owner = self._owner_with(name, new)
        changed = [self._place(name, new, owner)]
        if owner != self.owner:
            self.owner = owner
            others = {**self.slices, **self.ignored}
            changed += [
                self._place(each, slice_, owner)
                for each, slice_ in others.items()
                if (each in self.slices) != _counts(slice_, owner)
            ]
        return changed[0].union(*changed[1:])

    def _owner_with(self, name: str, new: ResourceSlice | None) -> str | None:
        if not self._has_owner or len(self._nodes) <= 1:
            # The usual case: everything in the pool is of one node, or for several.
            return None
        known = chain(self.slices.items(), self.ignored.items())
        others = (slice_ for each, slice_ in known if each != name)
        return pool_owner(
            self.id.pool, self._nodes.keys(), others if new is None else chain(others, (new,))
        )

    def _place(self, name: str, slice_: ResourceSlice | None, owner: str | None) -> frozenset[str]:
        """Let a slice count, or ignore it."""
        self.ignored.pop(name, None)
        if slice_ is None or _counts(slice_, owner):
            return self._change(name, slice_)
        changed = self._change(name, None) if name in self.slices else frozenset[str]()
        self.ignored[name] = slice_
        return changed

    def _count(self, slice_: ResourceSlice | None, by: int) -> None:
        if slice_ is None:
            return
        node = slice_.spec.node_name or ""
        self._nodes[node] += by
        if not self._nodes[node]:
            del self._nodes[node]

    def _change(self, name: str, new: ResourceSlice | None) -> frozenset[str]:
        newest = self._newest_with(name, new)
        if newest == self.generation:
            # The usual case: the other slices of the pool are not looked at.
            leaving = self._shown(self.slices.get(name))
            self._file(name, new)
            return self._swap(leaving, self._shown(new))
        leaving = self.current()
        self._file(name, new)
        self.generation = newest
        return self._swap(leaving, self.current())

    def _newest_with(self, name: str, new: ResourceSlice | None) -> int | None:
        generations = [each for each, names in self._by_generation.items() if names != {name}]
        if new is not None:
            generations.append(_generation(new))
        return max(generations, default=None)

    def _shown(self, slice_: ResourceSlice | None) -> list[ResourceSlice]:
        return [slice_] if slice_ is not None and _generation(slice_) == self.generation else []

    def _file(self, name: str, new: ResourceSlice | None) -> None:
        old = self.slices.pop(name, None)
        if old is not None:
            same = self._by_generation[_generation(old)]
            same.discard(name)
            if not same:
                del self._by_generation[_generation(old)]
        if new is not None:
            self.slices[name] = new
            self._by_generation.setdefault(_generation(new), set()).add(name)

    def _swap(
        self, leaving: Sequence[ResourceSlice], coming: Sequence[ResourceSlice]
    ) -> frozenset[str]:
        if not leaving and len(coming) == 1 and self._is_news(coming[0]):
            # Most events at the start; there is nothing to compare with.
            return frozenset(self._show(coming[0]))
        if not coming and not self._doubles and not any(each.spec.taints for each in leaving):
            # What leaves is gone for sure.
            for slice_ in leaving:
                self._hide(slice_)
            return frozenset(device.name for each in leaving for device in each.spec.devices)
        before: dict[str, _State] = {}
        for slice_ in (*leaving, *coming):
            for device in _names(slice_):
                before.setdefault(device, (self.get(device), self.marks(device)))
        for slice_ in leaving:
            self._hide(slice_)
        for slice_ in coming:
            self._show(slice_)
        return frozenset(name for name, state in before.items() if not self._still(name, *state))

    def _is_news(self, slice_: ResourceSlice) -> bool:
        if slice_.spec.taints:
            return False
        known = self._published
        return not known or not any(device.name in known for device in slice_.spec.devices)

    def _still(self, device: str, was: Published | None, marks: tuple[SourcedTaint, ...]) -> bool:
        now = self.get(device)
        same = now is was if now is None or was is None else now.same_as(was)
        return same and marks == self.marks(device)

    def _show(self, slice_: ResourceSlice) -> Iterable[str]:
        """Offer the devices of a slice; return their names."""
        name, devices = slice_.metadata.name, slice_.spec.devices
        found = {device.name: Published(slice_, index) for index, device in enumerate(devices)}
        for device in self._published.keys() & found.keys():
            first = self._published[device]
            doubles = self._doubles.setdefault(device, {first.slice.metadata.name: first})
            doubles[name] = found[device]
            found[device] = doubles[min(doubles)]
        if self._published:
            self._published.update(found)
        else:
            self._published = found
        tainted = frozenset([device.name for device in devices if device.taints])
        if tainted:
            self._tainted[name] = tainted
        if self._taint_slices:
            for marked, taints in _marked(slice_).items():
                self._marks.setdefault(marked, {})[name] = taints
        return found

    def _hide(self, slice_: ResourceSlice) -> None:
        name = slice_.metadata.name
        self._tainted.pop(name, None)
        for device in slice_.spec.devices:
            if device.name in self._doubles:
                self._hide_double(device.name, name)
            else:
                self._published.pop(device.name, None)
        for marked in {each.device for each in slice_.spec.taints}:
            found_marks = self._marks.get(marked, {})
            found_marks.pop(name, None)
            if not found_marks:
                self._marks.pop(marked, None)

    def _hide_double(self, device: str, slice_: str) -> None:
        others = self._doubles[device]
        others.pop(slice_, None)
        self._published[device] = others[min(others)]
        if len(others) == 1:
            del self._doubles[device]


def _counts(slice_: ResourceSlice, owner: str | None) -> bool:
    return owner is None or is_owned(slice_, owner)


def _generation(slice_: ResourceSlice) -> int:
    return slice_.spec.pool.generation


def _names(slice_: ResourceSlice) -> Iterator[str]:
    for device in slice_.spec.devices:
        yield device.name
    for each in slice_.spec.taints:
        yield each.device


def _marked(slice_: ResourceSlice) -> dict[str, tuple[SourcedTaint, ...]]:
    found: dict[str, tuple[SourcedTaint, ...]] = {}
    for index, each in enumerate(slice_.spec.taints):
        taint = SourcedTaint(each.taint, slice_origin(slice_, index))
        found[each.device] = (*found.get(each.device, ()), taint)
    return found
