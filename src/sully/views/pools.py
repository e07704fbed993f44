"""One pool, slice by slice: which devices it offers now, and how its driver marked them.

Only slices of the newest generation count (`domain/pools.py`). A slice that comes, changes or goes
costs its own devices, unless it brings another generation to the front. inventory.py has them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sully.api.resource.types import ResourceSlice
from sully.domain.devices import Published, publish, slice_origin
from sully.domain.pools import PoolId
from sully.domain.taints import SourcedTaint

_State = tuple[Published | None, tuple[SourcedTaint, ...]]


class Pool:
    """The slices of one pool."""

    def __init__(self, id_: PoolId, *, taint_slices: bool = True) -> None:
        self.id = id_
        self.slices: dict[str, ResourceSlice] = {}
        self.generation: int | None = None
        self._taint_slices = taint_slices
        self._by_generation: dict[int, set[str]] = {}
        self._published: dict[str, tuple[Published, ...]] = {}
        """By device name. A name that stands in two slices is a mistake of the driver; the first
        by the name of the slice counts, whichever was seen first."""
        self._marks: dict[str, dict[str, tuple[SourcedTaint, ...]]] = {}
        """Taints from slices of taints: by device name, then by the name of the slice."""

    def __len__(self) -> int:
        """Return how many devices the pool offers."""
        return len(self._published)

    def __contains__(self, device: str) -> bool:
        """Say whether the pool offers a device."""
        return device in self._published

    def get(self, device: str) -> Published | None:
        """Return a device, or None."""
        found = self._published.get(device)
        return found[0] if found else None

    def names(self) -> Iterable[str]:
        """Return the names of all devices, in no order that matters."""
        return self._published.keys()

    def devices(self) -> Iterator[Published]:
        """Yield the devices in the order in which they are offered: by slice, then as published."""
        for slice_ in self.current():
            for device in slice_.spec.devices:
                found = self._published[device.name][0]
                if found.slice is slice_:
                    yield found

    def current(self) -> list[ResourceSlice]:
        """Return the slices of the newest generation, by name."""
        names = self._by_generation.get(self.generation, ()) if self.generation is not None else ()
        return [self.slices[name] for name in sorted(names)]

    def duplicates(self) -> list[str]:
        """Return device names that stand in more than one slice, which makes a pool invalid."""
        return sorted(name for name, found in self._published.items() if len(found) > 1)

    def marks(self, device: str) -> tuple[SourcedTaint, ...]:
        """Return the taints that slices of taints have for a device, by slice and place."""
        found = self._marks.get(device)
        if not found:
            return ()
        return tuple(taint for name in sorted(found) for taint in found[name])

    def put(self, slice_: ResourceSlice) -> frozenset[str]:
        """Take a slice, new or changed; return the names of devices that are different now."""
        return self._change(slice_.metadata.name, slice_)

    def remove(self, name: str) -> frozenset[str]:
        """Take a slice away; return the names of devices that are different now."""
        return self._change(name, None)

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
        self, leaving: Iterable[ResourceSlice], coming: Iterable[ResourceSlice]
    ) -> frozenset[str]:
        before: dict[str, _State] = {}
        for slice_ in (*leaving, *coming):
            for device in _names(slice_):
                before.setdefault(device, (self.get(device), self.marks(device)))
        for slice_ in leaving:
            self._hide(slice_)
        for slice_ in coming:
            self._show(slice_, before)
        return frozenset(name for name, state in before.items() if not self._still(name, *state))

    def _still(self, device: str, was: Published | None, marks: tuple[SourcedTaint, ...]) -> bool:
        now = self.get(device)
        same = now is was if now is None or was is None else now.same_as(was)
        return same and marks == self.marks(device)

    def _show(self, slice_: ResourceSlice, before: dict[str, _State]) -> None:
        for index, device in enumerate(slice_.spec.devices):
            found = publish(slice_, index, before[device.name][0])
            others = self._published.get(device.name, ())
            together = (*others, found)
            if others:
                together = tuple(sorted(together, key=lambda each: each.slice.metadata.name))
            self._published[device.name] = together
        if self._taint_slices:
            for marked, taints in _marked(slice_).items():
                self._marks.setdefault(marked, {})[slice_.metadata.name] = taints

    def _hide(self, slice_: ResourceSlice) -> None:
        name = slice_.metadata.name
        for device in slice_.spec.devices:
            found = self._published.get(device.name, ())
            others = tuple(each for each in found if each.slice.metadata.name != name)
            if others:
                self._published[device.name] = others
            else:
                self._published.pop(device.name, None)
        for marked in {each.device for each in slice_.spec.taints}:
            found_marks = self._marks.get(marked, {})
            found_marks.pop(name, None)
            if not found_marks:
                self._marks.pop(marked, None)


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
