"""Selectors of rules and patches: why no device matches, or whether it does is unknown."""

from __future__ import annotations

from collections.abc import Iterable

from sully.api.resource.types import DeviceTaintSelector
from sully.domain.devices.pools import DeviceId
from sully.domain.devices.rules import Choice, needs_content
from sully.explain.causes import Note, note
from sully.explain.reader import Reader


def mismatch(reader: Reader, selector: DeviceTaintSelector | None) -> Note | None:
    """Return the criterion of a selector that excludes the last device."""
    if selector is None:
        return None
    inventory = reader.snapshot.inventory
    pools = [pool for pool in inventory.pools() if selector.driver in (None, pool.driver)]
    if not pools:
        return note("NoSuchDriver", driver=selector.driver or "")
    if selector.pool is not None and all(pool.pool != selector.pool for pool in pools):
        return note("NoSuchPool", pool=selector.pool)
    if selector.device is not None and not inventory.count_named(selector):
        return note("NoSuchDevice", device=selector.device)
    if needs_content(selector):
        class_ = selector.device_class_name
        criteria = [f"class {class_}"] if class_ else []
        criteria += [x.cel.expression for x in selector.selectors if x.cel is not None]
        return note("NoMatchingDevice", criteria=criteria)
    return None


def undecided(choices: Iterable[tuple[DeviceId, Choice]]) -> tuple[Note, ...]:
    """Return the devices for which a selector cannot be evaluated, if there are any."""
    failed = [(device, choice) for device, choice in choices if choice.problem]
    if not failed:
        return ()
    device, choice = failed[0]
    more = len(failed) - 1
    return (note("UndecidedDevices", device=str(device), error=choice.problem, more=more),)
