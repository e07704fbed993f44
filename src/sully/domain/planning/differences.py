"""Which devices a change makes different, and how: taints, attributes, capacity."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sully.domain.allocation.verdicts import written
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.pools import DeviceId, PoolId
from sully.domain.devices.taints import SourcedTaint
from sully.domain.planning.report import DeviceTold

Merged = dict[PoolId, dict[str, EffectiveDevice]]
"""Devices as they count, by pool and name."""
Holders = Callable[[DeviceId], tuple[str, ...]]
"""Finds the claims that hold a device."""


def differences(before: Merged, after: Merged, holders: Holders) -> Iterator[DeviceTold]:
    """Yield the devices that are not what they were, in order of their names."""
    for pool in sorted(before.keys() | after.keys()):
        old, new = before.get(pool, {}), after.get(pool, {})
        for name in sorted(old.keys() | new.keys()):
            was, is_ = old.get(name), new.get(name)
            # Most devices of most pools were not touched.
            if was is not is_:
                found = _difference(DeviceId(*pool, name), was, is_, holders)
                if found is not None:
                    yield found


def marked(taint: SourcedTaint) -> str:
    """Write a taint and who set it."""
    return f"{written(taint.taint)} ({taint.origin})"


def _difference(
    device: DeviceId, was: EffectiveDevice | None, is_: EffectiveDevice | None, holders: Holders
) -> DeviceTold | None:
    had, has = _taints(was), _taints(is_)
    gains = tuple(marked(each) for each in has if each not in had)
    loses = tuple(marked(each) for each in had if each not in has)
    changes = tuple(_changes(was, is_))
    if not (gains or loses or changes):
        return None
    known = is_ if is_ is not None else was
    node = (known.published.slice.spec.node_name or "") if known is not None else ""
    return DeviceTold(
        device=str(device),
        node=node,
        gains=gains,
        loses=loses,
        changes=changes,
        claims=holders(device),
    )


def _taints(device: EffectiveDevice | None) -> tuple[SourcedTaint, ...]:
    return device.taints if device is not None else ()


def _changes(was: EffectiveDevice | None, is_: EffectiveDevice | None) -> Iterator[str]:
    if was is None or is_ is None:
        yield "appears" if was is None else "vanishes"
        return
    # Only patches change these, and most changes are taints.
    if was.content is is_.content:
        return
    yield from _named(was.attributes, is_.attributes)
    yield from _named(was.capacity, is_.capacity)


def _named(was: Mapping[str, Any], is_: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(was.keys() | is_.keys()):
        if was.get(name) != is_.get(name):
            yield name
