"""What ResourceSlicePatches make of a device: attributes, capacity, taints.

After KEP-5027. Filters are asked about the device as the driver published it, so no patch can hide
a device from another one. For each name the first patch in order of precedence wins, over the
other patches and over the driver; a losing patch still contributes its other names.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from sully.api.resource.types import (
    DeviceAttribute,
    DeviceTaint,
    DeviceTaintSelector,
    NullableDeviceAttribute,
    ResourceSlicePatch,
)
from sully.domain.devices.device import EffectiveDevice, Published, driver_taints
from sully.domain.devices.rules import YES, Choice, Classes, choose
from sully.domain.devices.selectors import shared
from sully.domain.devices.taints import Origin, SourcedTaint

T = TypeVar("T")

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def precedence(patch: ResourceSlicePatch) -> tuple[int, datetime, str]:
    """Return what sorts patches: higher priority, then older, then by name."""
    created = patch.metadata.creation_timestamp or _LONG_AGO
    return -(patch.spec.devices.priority or 0), created, patch.metadata.name


def applies(filter_: DeviceTaintSelector | None, published: Published, classes: Classes) -> Choice:
    """Decide whether a patch is for a device; without a filter it is for all, unlike a rule."""
    return YES if filter_ is None else choose(filter_, published.id, published.content, classes)


def overlay(
    published: Published,
    patches: Sequence[ResourceSlicePatch],
    marks: Sequence[SourcedTaint] = (),
    *,
    attributes: bool = True,
    taints: bool = True,
) -> EffectiveDevice:
    """Lay the patches that apply to a device over it.

    `marks` are the driver's taints from slices of taints. The switches omit what a feature
    gate turns off.
    """
    ordered = sorted(patches, key=precedence) if patches else ()
    driver = (*driver_taints(published), *marks) if taints else ()
    marked = _tainted(driver, ordered) if taints and ordered else driver
    if not attributes or not ordered:
        return EffectiveDevice(published, marked)
    return _patched(published, ordered, marked)


def _patched(
    published: Published, ordered: Sequence[ResourceSlicePatch], taints: tuple[SourcedTaint, ...]
) -> EffectiveDevice:
    before = published.content
    known, amounts = dict(before.attributes), dict(before.capacity)
    attribute_origins: dict[str, Origin] = {}
    capacity_origins: dict[str, Origin] = {}
    for patch in ordered:
        for name, attribute in patch.spec.devices.attributes.items():
            if _first(attribute_origins, name, patch):
                _put(known, before.driver, name, _plain(attribute))
        for name, amount in patch.spec.devices.capacity.items():
            if _first(capacity_origins, name, patch):
                _put(amounts, before.driver, name, amount)
    if not attribute_origins and not capacity_origins:
        return EffectiveDevice(published, taints)
    content = shared(before.driver, known, amounts, before.allow_multiple_allocations)
    return EffectiveDevice(published, taints, content, attribute_origins, capacity_origins)


def _first(origins: dict[str, Origin], name: str, patch: ResourceSlicePatch) -> bool:
    """Note that a patch defines a name, unless one before it did."""
    if name in origins:
        return False
    origins[name] = _origin(patch)
    return True


def _origin(patch: ResourceSlicePatch, index: int = 0) -> Origin:
    return Origin("ResourceSlicePatch", patch.metadata.name, patch.metadata.uid, index)


def _plain(attribute: NullableDeviceAttribute) -> DeviceAttribute | None:
    """Return a patch's attribute as a driver would have written it, to compare equal with that."""
    if attribute.null is not None:
        return None
    return DeviceAttribute(
        **{name: getattr(attribute, name) for name in DeviceAttribute.__struct_fields__}
    )


def _put(known: dict[str, T], driver: str, name: str, value: T | None) -> None:
    """Set or remove a name in both spellings: a driver may leave out its own domain."""
    known.pop(name, None)
    domain, _, identifier = name.rpartition("/")
    if domain == driver:
        known.pop(identifier, None)
    if value is not None:
        known[name] = value


def _dated(taint: DeviceTaint, patch: ResourceSlicePatch) -> DeviceTaint:
    """Return a taint with the time from which tolerations count.

    Our own server stamps it. Custom resources are not stamped, and a taint that is
    always new would be tolerated indefinitely.
    """
    created = patch.metadata.creation_timestamp
    if taint.time_added is not None or created is None:
        return taint
    return msgspec.structs.replace(taint, time_added=created)


def _tainted(
    driver: tuple[SourcedTaint, ...], ordered: Sequence[ResourceSlicePatch]
) -> tuple[SourcedTaint, ...]:
    """Replace the driver's taints of the same key and effect; other taints accumulate."""
    mine: dict[tuple[str, str], list[SourcedTaint]] = {}
    owner: dict[tuple[str, str], str] = {}
    for patch in ordered:
        for index, taint in enumerate(patch.spec.devices.taints):
            identity = (taint.key, taint.effect)
            if owner.setdefault(identity, patch.metadata.name) == patch.metadata.name:
                found = SourcedTaint(_dated(taint, patch), _origin(patch, index))
                mine.setdefault(identity, []).append(found)
    if not mine:
        return driver
    kept = (sourced for sourced in driver if (sourced.taint.key, sourced.taint.effect) not in mine)
    return (*kept, *(sourced for group in mine.values() for sourced in group))
