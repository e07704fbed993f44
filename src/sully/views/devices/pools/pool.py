"""One pool: the devices in its slices, and the taints that its driver sets.

Only slices of the pool's owner and of the newest generation are used (`domain/devices/pools.py`).
The cost of an event is that of the devices in its slice, unless the generation or the owner of the
pool changes. inventory.py has all pools.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Sequence, Set
from itertools import chain

from sully.api.resource.types import ResourceSlice
from sully.domain.devices.device import EffectiveDevice, Published, slice_origin
from sully.domain.devices.pools import PoolId, is_owned, pool_owner
from sully.domain.devices.taints import SourcedTaint

_State = tuple[Published | None, tuple[SourcedTaint, ...]]


class PoolSlices:
    """The slices of one pool."""

    def __init__(self, id_: PoolId, *, taint_slices: bool = True, has_owner: bool = True) -> None:
        self.id = id_
        self.slices: dict[str, ResourceSlice] = {}
        self.ignored: dict[str, ResourceSlice] = {}
        """Slices of nodes that do not own the pool; none without `has_owner`."""
        self.owner: str | None = None
        """The node whose slices are used, empty for slices of several nodes; None: all are used."""
        self._has_owner = has_owner
        self._nodes: dict[str, int] = {}
        """How many slices each node has here; the empty name stands for several nodes."""
        self.generation: int | None = None
        self._taint_slices = taint_slices
        self._by_generation: dict[int, set[str]] = {}
        self._by_name: dict[str, Published] = {}
        self._unread: ResourceSlice | None = None
        """The only slice, while its devices are not in `_by_name`."""
        self._created: tuple[EffectiveDevice, ...] = ()
        """Its devices, if they were read with taints."""
        self._duplicates: dict[str, dict[str, Published]] = {}
        """Such names: by device name, then by the name of the slice."""
        self._tainted: dict[str, frozenset[str]] = {}
        """By the name of the slice, the devices that have taints in it; most slices have none."""
        self._slice_taints: dict[str, dict[str, tuple[SourcedTaint, ...]]] = {}
        """Taints in `spec.taints` of slices: by device name, then by the name of the slice."""

    def __len__(self) -> int:
        """Return the number of devices."""
        return len(self._published)

    def __contains__(self, device: str) -> bool:
        """Report whether the pool has a device."""
        return device in self._published

    def get(self, device: str) -> Published | None:
        """Return a device, or None."""
        return self._published.get(device)

    def names(self) -> KeysView[str]:
        """Return the names of all devices, in no particular order."""
        return self._published.keys()

    @property
    def _published(self) -> dict[str, Published]:
        """The devices by name.

        A name in two slices is an error of the driver; the first by the name of the slice is used,
        in whatever order events arrive.
        """
        unread = self._unread
        if unread is not None:
            created = [device.published for device in self._created]
            known = {published.device.name: published for published in created}
            self._by_name = known or _devices_in(unread)
            self._unread, self._created = None, ()
        return self._by_name

    def with_taints(self, taints: tuple[SourcedTaint, ...]) -> dict[str, EffectiveDevice]:
        """Return all devices by name, each with these taints and no others."""
        unread = self._unread
        if unread is None or self._created:
            published = self._published.items()
            return {name: EffectiveDevice(device, taints) for name, device in published}
        # Most pools have one slice, and are read as a whole: one pass instead of two.
        devices = {
            device.name: EffectiveDevice(Published(unread, index), taints)
            for index, device in enumerate(unread.spec.devices)
        }
        self._created = tuple(devices.values())
        return devices

    def items(self) -> ItemsView[str, Published]:
        """Return all devices with their names, in no particular order."""
        return self._published.items()

    def devices(self) -> Iterator[Published]:
        """Yield the devices by the name of the slice, then in its order."""
        for slice_ in self.current():
            for device in slice_.spec.devices:
                published = self._published[device.name]
                if published.slice is slice_:
                    yield published

    def current(self) -> list[ResourceSlice]:
        """Return the slices of the newest generation, by name."""
        names = self._by_generation.get(self.generation, ()) if self.generation is not None else ()
        return [self.slices[name] for name in sorted(names)]

    def tainted(self) -> Set[str]:
        """Return the names of devices that the driver may have tainted."""
        if not self._slice_taints and not self._tainted:
            return frozenset()
        return (self._slice_taints.keys() & self._published.keys()).union(*self._tainted.values())

    def slice_taints(self, device: str) -> tuple[SourcedTaint, ...]:
        """Return the taints of a device in `spec.taints` of slices, by slice and index."""
        by_slice = self._slice_taints.get(device)
        if not by_slice:
            return ()
        return tuple(taint for name in sorted(by_slice) for taint in by_slice[name])

    def unpublished_taints(self) -> dict[str, tuple[SourcedTaint, ...]]:
        """Return the taints in `spec.taints` of slices for names that no slice publishes.

        Drivers use these for the health of the whole pool; they have no effect on devices.
        """
        unknown = sorted(self._slice_taints.keys() - self._published.keys())
        return {device: self.slice_taints(device) for device in unknown}

    def put(self, slice_: ResourceSlice) -> frozenset[str] | None:
        """Add or update a slice; return the names of devices that changed, None for all."""
        if not self._nodes and not slice_.spec.taints:
            self._put_first(slice_)
            return None
        return self._update(slice_.metadata.name, slice_)

    def remove(self, name: str) -> frozenset[str]:
        """Remove a slice; return the names of devices that changed."""
        return self._update(name, None)

    def is_empty(self) -> bool:
        """Report whether the pool has no slice, not even one that is ignored."""
        return not self.slices and not self.ignored

    def _put_first(self, slice_: ResourceSlice) -> None:
        """Do the same as `_update`, where there is nothing to compare with: most pools stay so."""
        name, spec = slice_.metadata.name, slice_.spec
        self._nodes = {spec.node_name or "": 1}
        self.slices[name] = slice_
        self.generation = spec.pool.generation
        self._by_generation = {self.generation: {name}}
        self._unread = slice_
        self._note_tainted(slice_)

    def _update(self, name: str, new: ResourceSlice | None) -> frozenset[str]:
        self._count(self.slices.get(name) or self.ignored.get(name), -1)
        self._count(new, 1)
        owner = self._owner_with(name, new)
        changed = self._use_or_ignore(name, new, owner)
        if owner == self.owner:
            return changed
        self.owner = owner
        others = {**self.slices, **self.ignored}
        moved = [
            self._use_or_ignore(other, slice_, owner)
            for other, slice_ in others.items()
            if (other in self.slices) != _is_used(slice_, owner)
        ]
        return changed.union(*moved)

    def _owner_with(self, name: str, new: ResourceSlice | None) -> str | None:
        if not self._has_owner or len(self._nodes) <= 1:
            # The usual case: all slices are of one node, or for several.
            return None
        slices = chain(self.slices.items(), self.ignored.items())
        others = (slice_ for other, slice_ in slices if other != name)
        return pool_owner(
            self.id.pool, self._nodes.keys(), others if new is None else chain(others, (new,))
        )

    def _use_or_ignore(
        self, name: str, slice_: ResourceSlice | None, owner: str | None
    ) -> frozenset[str]:
        self.ignored.pop(name, None)
        if slice_ is None or _is_used(slice_, owner):
            return self._change(name, slice_)
        changed = self._change(name, None) if name in self.slices else frozenset[str]()
        self.ignored[name] = slice_
        return changed

    def _count(self, slice_: ResourceSlice | None, by: int) -> None:
        if slice_ is None:
            return
        node = slice_.spec.node_name or ""
        count = self._nodes.get(node, 0) + by
        if count:
            self._nodes[node] = count
        else:
            del self._nodes[node]

    def _change(self, name: str, new: ResourceSlice | None) -> frozenset[str]:
        newest = self._newest_with(name, new)
        if newest == self.generation:
            # The usual case: the other slices of the pool do not matter.
            old = self._if_current(self.slices.get(name))
            self._store(name, new)
            return self._swap(old, self._if_current(new))
        old = self.current()
        self._store(name, new)
        self.generation = newest
        return self._swap(old, self.current())

    def _newest_with(self, name: str, new: ResourceSlice | None) -> int | None:
        known = self._by_generation.items()
        generations = [generation for generation, names in known if names != {name}]
        if new is not None:
            generations.append(_generation(new))
        return max(generations, default=None)

    def _if_current(self, slice_: ResourceSlice | None) -> list[ResourceSlice]:
        return [slice_] if slice_ is not None and _generation(slice_) == self.generation else []

    def _store(self, name: str, new: ResourceSlice | None) -> None:
        old = self.slices.pop(name, None)
        if old is not None:
            same = self._by_generation[_generation(old)]
            same.discard(name)
            if not same:
                del self._by_generation[_generation(old)]
        if new is not None:
            self.slices[name] = new
            self._by_generation.setdefault(_generation(new), set()).add(name)

    def _swap(self, old: Sequence[ResourceSlice], new: Sequence[ResourceSlice]) -> frozenset[str]:
        """Replace the devices of slices by those of others; return the names of changed devices."""
        if not old and len(new) == 1 and self._has_only_new_devices(new[0]):
            # Most events at the start; there is nothing to compare with.
            return frozenset(self._publish(new[0]))
        if not new and not self._duplicates and not any(slice_.spec.taints for slice_ in old):
            # All devices of these slices are removed.
            for slice_ in old:
                self._unpublish(slice_)
            return frozenset(device.name for slice_ in old for device in slice_.spec.devices)
        before: dict[str, _State] = {}
        for slice_ in (*old, *new):
            for device in _names(slice_):
                before.setdefault(device, (self.get(device), self.slice_taints(device)))
        for slice_ in old:
            self._unpublish(slice_)
        for slice_ in new:
            self._publish(slice_)
        return frozenset(name for name, state in before.items() if not self._is_same(name, *state))

    def _has_only_new_devices(self, slice_: ResourceSlice) -> bool:
        if slice_.spec.taints:
            return False
        known = self._published
        return not known or not any(device.name in known for device in slice_.spec.devices)

    def _is_same(
        self, device: str, was: Published | None, taints: tuple[SourcedTaint, ...]
    ) -> bool:
        now = self.get(device)
        same = now is was if now is None or was is None else now.same_as(was)
        return same and taints == self.slice_taints(device)

    def _publish(self, slice_: ResourceSlice) -> Iterable[str]:
        """Add the devices of a slice; return their names."""
        name = slice_.metadata.name
        published = _devices_in(slice_)
        for device in self._published.keys() & published.keys() if self._published else ():
            first = self._published[device]
            by_slice = self._duplicates.setdefault(device, {first.slice.metadata.name: first})
            by_slice[name] = published[device]
            published[device] = by_slice[min(by_slice)]
        if self._published:
            self._published.update(published)
        else:
            self._by_name = published
        self._note_tainted(slice_)
        if self._taint_slices and slice_.spec.taints:
            for device, taints in _taints_in(slice_).items():
                self._slice_taints.setdefault(device, {})[name] = taints
        return published

    def _note_tainted(self, slice_: ResourceSlice) -> None:
        tainted = [device.name for device in slice_.spec.devices if device.taints]
        if tainted:
            self._tainted[slice_.metadata.name] = frozenset(tainted)

    def _unpublish(self, slice_: ResourceSlice) -> None:
        name = slice_.metadata.name
        self._tainted.pop(name, None)
        for device in slice_.spec.devices:
            if device.name in self._duplicates:
                self._unpublish_duplicate(device.name, name)
            else:
                self._published.pop(device.name, None)
        for tainted in {entry.device for entry in slice_.spec.taints}:
            by_slice = self._slice_taints.get(tainted, {})
            by_slice.pop(name, None)
            if not by_slice:
                self._slice_taints.pop(tainted, None)

    def _unpublish_duplicate(self, device: str, slice_: str) -> None:
        others = self._duplicates[device]
        others.pop(slice_, None)
        self._published[device] = others[min(others)]
        if len(others) == 1:
            del self._duplicates[device]


def _is_used(slice_: ResourceSlice, owner: str | None) -> bool:
    return owner is None or is_owned(slice_, owner)


def _generation(slice_: ResourceSlice) -> int:
    return slice_.spec.pool.generation


def _devices_in(slice_: ResourceSlice) -> dict[str, Published]:
    devices = enumerate(slice_.spec.devices)
    return {device.name: Published(slice_, index) for index, device in devices}


def _names(slice_: ResourceSlice) -> Iterator[str]:
    for device in slice_.spec.devices:
        yield device.name
    for entry in slice_.spec.taints:
        yield entry.device


def _taints_in(slice_: ResourceSlice) -> dict[str, tuple[SourcedTaint, ...]]:
    taints: dict[str, tuple[SourcedTaint, ...]] = {}
    for index, entry in enumerate(slice_.spec.taints):
        taint = SourcedTaint(entry.taint, slice_origin(slice_, index))
        taints[entry.device] = (*taints.get(entry.device, ()), taint)
    return taints
