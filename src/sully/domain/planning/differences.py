"""How devices differ before and after a change: taints, attributes, capacity."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.pools import DeviceId, PoolId
from sully.domain.devices.taints import SourcedTaint
from sully.domain.planning.report import DeviceChange, PlannedTaint
from sully.domain.tolerations import taint_text

DevicesByPool = dict[PoolId, dict[str, EffectiveDevice]]
"""Devices with their effective taints, by pool and name."""
ClaimLookup = Callable[[DeviceId], tuple[str, ...]]
"""Returns the claims that are allocated a device."""


def device_changes(
    before: DevicesByPool, after: DevicesByPool, claims_on: ClaimLookup
) -> Iterator[DeviceChange]:
    """Yield the devices that differ, in order of their names."""
    for pool in sorted(before.keys() | after.keys()):
        old, new = before.get(pool, {}), after.get(pool, {})
        for name in sorted(old.keys() | new.keys()):
            was, is_ = old.get(name), new.get(name)
            # Most devices of most pools did not change.
            if was is not is_:
                change = _device_change(DeviceId(*pool, name), was, is_, claims_on)
                if change is not None:
                    yield change


def planned_taint(taint: SourcedTaint) -> PlannedTaint:
    """Return a taint and its source for a plan."""
    return PlannedTaint(taint_text(taint.taint), str(taint.origin))


def _device_change(
    id_: DeviceId,
    was: EffectiveDevice | None,
    is_: EffectiveDevice | None,
    claims_on: ClaimLookup,
) -> DeviceChange | None:
    before, after = _taints(was), _taints(is_)
    added = tuple(planned_taint(taint) for taint in after if taint not in before)
    removed = tuple(planned_taint(taint) for taint in before if taint not in after)
    changes = tuple(_changes(was, is_))
    if not (added or removed or changes):
        return None
    device = is_ if is_ is not None else was
    node = (device.published.slice.spec.node_name or "") if device is not None else ""
    return DeviceChange(
        device=str(id_),
        node=node,
        added_taints=added,
        removed_taints=removed,
        changes=changes,
        claims=claims_on(id_),
    )


def _taints(device: EffectiveDevice | None) -> tuple[SourcedTaint, ...]:
    return device.taints if device is not None else ()


def _changes(was: EffectiveDevice | None, is_: EffectiveDevice | None) -> Iterator[str]:
    if was is None or is_ is None:
        yield "published" if was is None else "unpublished"
        return
    # Only patches change these, and most changes are taints.
    if was.content is is_.content:
        return
    yield from _changed_names(was.attributes, is_.attributes)
    yield from _changed_names(was.capacity, is_.capacity)


def _changed_names(was: Mapping[str, Any], is_: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(was.keys() | is_.keys()):
        if was.get(name) != is_.get(name):
            yield name
