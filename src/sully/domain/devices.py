"""A device as it counts: what its driver publishes, with patches and taints laid over it.

`Published` is one side, `EffectiveDevice` the other; patches.py and rules.py lead from the first to
the second. Every value knows the object it comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from sully.api.resource.types import Device, DeviceAttribute, DeviceCapacity, ResourceSlice
from sully.domain.pools import DeviceId
from sully.domain.selectors import Content, content_of
from sully.domain.taints import Origin, SourcedTaint

_OF_ALL_DEVICES = (
    "node_name",
    "node_selector",
    "all_nodes",
    "per_device_node_selection",
    "partition_type_attribute",
    "skip_node_operations",
)
"""What a slice says about each of its devices."""
_NO_ORIGINS: Mapping[str, Origin] = MappingProxyType({})


def _no_origins() -> Mapping[str, Origin]:
    # One for all: there may be a hundred thousand devices, and few are patched.
    return _NO_ORIGINS


@dataclass(frozen=True, slots=True, eq=False)
class Published:
    """A device in a slice of the newest generation of its pool."""

    slice: ResourceSlice
    index: int
    """Its place in the slice; devices are offered in published order."""
    content: Content

    @property
    def device(self) -> Device:
        """Return the device as the driver wrote it."""
        return self.slice.spec.devices[self.index]

    @property
    def id(self) -> DeviceId:
        """Return its name in the whole cluster."""
        spec = self.slice.spec
        return DeviceId(spec.driver, spec.pool.name, self.device.name)

    def same_as(self, other: Published) -> bool:
        """Say whether both are the same to everyone, apart from the version of the slice."""
        if self.index != other.index or self.device != other.device:
            return False
        mine, theirs = self.slice, other.slice
        return mine.metadata.name == theirs.metadata.name and all(
            getattr(mine.spec, name) == getattr(theirs.spec, name) for name in _OF_ALL_DEVICES
        )


def publish(slice_: ResourceSlice, index: int, before: Published | None = None) -> Published:
    """Return a device of a slice; verdicts on it last while expressions see the same."""
    content = content_of(slice_.spec.driver, slice_.spec.devices[index])
    if before is not None and before.content.same_as(content):
        content = before.content
    return Published(slice_, index, content)


def slice_origin(slice_: ResourceSlice, index: int = 0) -> Origin:
    """Name a slice as the origin of something."""
    return Origin("ResourceSlice", slice_.metadata.name, slice_.metadata.uid, index)


def driver_taints(published: Published) -> tuple[SourcedTaint, ...]:
    """Return the taints that stand in the device itself, in the driver's order."""
    if not published.device.taints:
        return ()
    return tuple(
        SourcedTaint(taint, slice_origin(published.slice, index))
        for index, taint in enumerate(published.device.taints)
    )


@dataclass(frozen=True, slots=True, eq=False)
class EffectiveDevice:
    """A device as the scheduler, eviction and people see it."""

    published: Published
    content: Content
    """Its attributes and capacity with patches applied."""
    taints: tuple[SourcedTaint, ...]
    """The driver's first, then those of patches, then one per rule, by the name of the rule."""
    attribute_origins: Mapping[str, Origin] = field(default_factory=_no_origins)
    """Which attributes a patch set or removed; all others are the driver's."""
    capacity_origins: Mapping[str, Origin] = field(default_factory=_no_origins)

    @property
    def id(self) -> DeviceId:
        """Return its name in the whole cluster."""
        return self.published.id

    @property
    def attributes(self) -> Mapping[str, DeviceAttribute]:
        """Return the attributes that count."""
        return self.content.attributes

    @property
    def capacity(self) -> Mapping[str, DeviceCapacity]:
        """Return the capacity that counts."""
        return self.content.capacity

    def attribute_origin(self, name: str) -> Origin:
        """Return who set an attribute, or took it away."""
        return self.attribute_origins.get(name) or slice_origin(self.published.slice)

    def capacity_origin(self, name: str) -> Origin:
        """Return who set a capacity."""
        return self.capacity_origins.get(name) or slice_origin(self.published.slice)
