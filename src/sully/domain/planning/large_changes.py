"""Whether a change is large, so that it has to be confirmed whatever its effect.

One device is never large. More are if they are more than a tenth of all devices or of the devices
of a class, or everything that an owner of several devices uses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from sully.domain.devices.pools import DeviceId

SHARE = 0.10
"""The share of devices above which a change is large."""


def large_change(
    selected: Collection[DeviceId],
    devices: Collection[DeviceId],
    classes: Mapping[str, Collection[DeviceId]],
    owners: Mapping[str, Collection[DeviceId]],
) -> tuple[str, ...]:
    """Return why a change of the selected devices is large; nothing if it is not.

    `classes` has the devices of each class, `owners` those that the pods of each owner use.
    """
    if len(selected) < 2:
        return ()
    return tuple(_reasons(set(selected), devices, classes, owners))


def _reasons(
    selected: set[DeviceId],
    devices: Collection[DeviceId],
    classes: Mapping[str, Collection[DeviceId]],
    owners: Mapping[str, Collection[DeviceId]],
) -> Iterator[str]:
    if len(selected) > len(devices) * SHARE:
        # Classes are parts of the whole, and add nothing then.
        yield f"{len(selected)} of {len(devices)} devices"
    else:
        for name, members in sorted(classes.items()):
            count = len(selected.intersection(members))
            if count > 1 and count > len(members) * SHARE:
                yield f"{count} of {len(members)} devices of class {name}"
    for owner, used in sorted(owners.items()):
        if used and selected.issuperset(used):
            yield f"all devices that {owner} uses ({len(set(used))})"
