"""Applies ResourceSlicePatches to a device: attributes, capacity, taints.

As in KEP-5027. Filters see the device as the driver published it, so no patch can hide a device
from another one. For each name the first patch in order of precedence wins, over the
other patches and over the driver; a losing patch still contributes its other names.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from sully.api.resource.annotations import CREATED_AT
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
from sully.domain.devices.taints import EVICTING_EFFECTS, Origin, SourcedTaint

T = TypeVar("T")

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def precedence(patch: ResourceSlicePatch) -> tuple[int, datetime, str, str]:
    """Return what sorts patches: higher priority, then older, then by name.

    The exact time decides within a second; only our server records it.
    """
    metadata = patch.metadata
    created = metadata.creation_timestamp or _LONG_AGO
    exact = metadata.annotations.get(CREATED_AT, "")
    return -(patch.spec.devices.priority or 0), created, exact, metadata.name


def applies(filter_: DeviceTaintSelector | None, published: Published, classes: Classes) -> Choice:
    """Decide whether a patch selects a device; without a filter it selects all, unlike a rule."""
    return YES if filter_ is None else choose(filter_, published.id, published.content, classes)


def overlay(
    published: Published,
    patches: Sequence[ResourceSlicePatch],
    slice_taints: Sequence[SourcedTaint] = (),
    *,
    attributes: bool = True,
    taints: bool = True,
    evictions_only: bool = False,
) -> EffectiveDevice:
    """Apply the patches that select a device.

    `slice_taints` are taints of the device that its driver publishes in slices of their own. The
    flags omit what a feature gate disables, or what no component reads.
    """
    ordered = sorted(patches, key=precedence) if patches else ()
    driver = (*driver_taints(published), *slice_taints) if taints else ()
    effects = EVICTING_EFFECTS if evictions_only else None
    merged = _merge_taints(driver, ordered, effects) if taints and ordered else driver
    if not attributes or not ordered:
        return EffectiveDevice(published, merged)
    return _patch(published, ordered, merged)


def _patch(
    published: Published, ordered: Sequence[ResourceSlicePatch], taints: tuple[SourcedTaint, ...]
) -> EffectiveDevice:
    before = published.content
    attributes, capacity = dict(before.attributes), dict(before.capacity)
    attribute_origins: dict[str, Origin] = {}
    capacity_origins: dict[str, Origin] = {}
    for patch in ordered:
        for name, attribute in patch.spec.devices.attributes.items():
            if _set_origin(attribute_origins, name, patch):
                _put(attributes, before.driver, name, _plain(attribute))
        for name, amount in patch.spec.devices.capacity.items():
            if _set_origin(capacity_origins, name, patch):
                _put(capacity, before.driver, name, amount)
    if not attribute_origins and not capacity_origins:
        return EffectiveDevice(published, taints)
    content = shared(before.driver, attributes, capacity, before.allow_multiple_allocations)
    return EffectiveDevice(published, taints, content, attribute_origins, capacity_origins)


def _set_origin(origins: dict[str, Origin], name: str, patch: ResourceSlicePatch) -> bool:
    """Set the origin of a name, unless a patch before it did; report whether it was set."""
    if name in origins:
        return False
    origins[name] = _origin(patch)
    return True


def _origin(patch: ResourceSlicePatch, index: int = 0) -> Origin:
    return Origin("ResourceSlicePatch", patch.metadata.name, patch.metadata.uid, index)


def _plain(attribute: NullableDeviceAttribute) -> DeviceAttribute | None:
    """Return an attribute of a patch as one of a driver; None if it is removed."""
    if attribute.null is not None:
        return None
    return DeviceAttribute(
        **{name: getattr(attribute, name) for name in DeviceAttribute.__struct_fields__}
    )


def _put(values: dict[str, T], driver: str, name: str, value: T | None) -> None:
    """Set or remove a name with and without domain: a driver may omit its own."""
    values.pop(name, None)
    domain, _, identifier = name.rpartition("/")
    if domain == driver:
        values.pop(identifier, None)
    if value is not None:
        values[name] = value


def _with_time(taint: DeviceTaint, patch: ResourceSlicePatch) -> DeviceTaint:
    """Return a taint with `timeAdded`, from which tolerationSeconds count.

    Our server sets it, but not for custom resources, and without it a taint would be tolerated
    indefinitely.
    """
    created = patch.metadata.creation_timestamp
    if taint.time_added is not None or created is None:
        return taint
    return msgspec.structs.replace(taint, time_added=created)


def _merge_taints(
    driver: tuple[SourcedTaint, ...],
    ordered: Sequence[ResourceSlicePatch],
    effects: frozenset[str] | None,
) -> tuple[SourcedTaint, ...]:
    """Replace the driver's taints of the same key and effect; other taints accumulate."""
    added: dict[tuple[str, str], list[SourcedTaint]] = {}
    owner: dict[tuple[str, str], str] = {}
    for patch in ordered:
        for index, taint in enumerate(patch.spec.devices.taints):
            identity = (taint.key, taint.effect)
            if effects is not None and taint.effect not in effects:
                continue
            if owner.setdefault(identity, patch.metadata.name) == patch.metadata.name:
                sourced = SourcedTaint(_with_time(taint, patch), _origin(patch, index))
                added.setdefault(identity, []).append(sourced)
    if not added:
        return driver
    remaining = (
        sourced for sourced in driver if (sourced.taint.key, sourced.taint.effect) not in added
    )
    return (*remaining, *(sourced for group in added.values() for sourced in group))


def sets_values(patch: ResourceSlicePatch) -> bool:
    """Report whether a patch sets attributes or capacity, not only taints."""
    return bool(patch.spec.devices.attributes or patch.spec.devices.capacity)
