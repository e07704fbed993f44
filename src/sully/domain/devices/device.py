"""A device: as its driver publishes it, and as it is with patches and taints applied.

`Published` is the first, `EffectiveDevice` the second; patches.py and rules.py make one of the
other. Every value has the object it comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from types import MappingProxyType

import msgspec

from sully.api.resource.types import Device, DeviceAttribute, DeviceCapacity, ResourceSlice
from sully.domain.devices.pools import DeviceId
from sully.domain.devices.selectors import Content, content_of
from sully.domain.devices.taints import Origin, SourcedTaint

_OF_ALL_DEVICES = attrgetter(
    "node_name",
    "node_selector",
    "all_nodes",
    "per_device_node_selection",
    "partition_type_attribute",
    "skip_node_operations",
)
"""The fields of a slice that hold for each of its devices."""
_NO_ORIGINS: Mapping[str, Origin] = MappingProxyType({})
"""Shared: there may be a hundred thousand devices, and few are patched."""


class Published(msgspec.Struct, eq=False, gc=False):
    """A device in a slice of the newest generation of its pool.

    A Struct without garbage collection, as EffectiveDevice is: there are as many as devices, and
    nothing in them refers back to them.
    """

    slice: ResourceSlice
    index: int
    """Its index in the slice; devices are tried in published order."""
    _content: Content | None = None
    """Not part of the value: computed when needed, and cached."""

    @property
    def content(self) -> Content:
        """Return its attributes and capacity as expressions see them."""
        if self._content is None:
            self._content = content_of(self.slice.spec.driver, self.device)
        return self._content

    @property
    def device(self) -> Device:
        """Return the device as the driver wrote it."""
        return self.slice.spec.devices[self.index]

    @property
    def id(self) -> DeviceId:
        """Return its driver, pool and name."""
        spec = self.slice.spec
        return DeviceId(spec.driver, spec.pool.name, self.device.name)

    def same_as(self, other: Published) -> bool:
        """Report whether both are equal, apart from the version of the slice."""
        if self.index != other.index or self.device != other.device:
            return False
        mine, theirs = self.slice, other.slice
        return mine.metadata.name == theirs.metadata.name and bool(
            _OF_ALL_DEVICES(mine.spec) == _OF_ALL_DEVICES(theirs.spec)
        )


def slice_origin(slice_: ResourceSlice, index: int = 0) -> Origin:
    """Return a slice as an origin."""
    return Origin("ResourceSlice", slice_.metadata.name, slice_.metadata.uid, index)


def driver_taints(published: Published) -> tuple[SourcedTaint, ...]:
    """Return the taints of the published device, in the driver's order."""
    if not published.device.taints:
        return ()
    return tuple(
        SourcedTaint(taint, slice_origin(published.slice, index))
        for index, taint in enumerate(published.device.taints)
    )


class EffectiveDevice(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A device as the scheduler, eviction and people see it."""

    published: Published
    taints: tuple[SourcedTaint, ...] = ()
    """The driver's first, then those of patches, then one per rule, by the name of the rule."""
    patched: Content | None = None
    """Its attributes and capacity, if a patch changed them."""
    attribute_origins: Mapping[str, Origin] = _NO_ORIGINS
    """Which attributes a patch set or removed; all others are the driver's."""
    capacity_origins: Mapping[str, Origin] = _NO_ORIGINS

    @property
    def content(self) -> Content:
        """Return its attributes and capacity with patches applied, as expressions see them."""
        return self.published.content if self.patched is None else self.patched

    @property
    def id(self) -> DeviceId:
        """Return its driver, pool and name."""
        return self.published.id

    @property
    def shareable(self) -> bool:
        """Report whether several claims can share it."""
        return bool(self.published.device.allow_multiple_allocations)

    @property
    def attributes(self) -> Mapping[str, DeviceAttribute]:
        """Return the attributes with patches applied."""
        return self.content.attributes

    @property
    def capacity(self) -> Mapping[str, DeviceCapacity]:
        """Return the capacity with patches applied."""
        return self.content.capacity

    def attribute_origin(self, name: str) -> Origin:
        """Return the object that set or removed an attribute."""
        return self.attribute_origins.get(name) or slice_origin(self.published.slice)

    def capacity_origin(self, name: str) -> Origin:
        """Return the object that set a capacity."""
        return self.capacity_origins.get(name) or slice_origin(self.published.slice)
