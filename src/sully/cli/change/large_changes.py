"""Which changes are so large that they have to be confirmed, from a snapshot."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from sully.api.resource.types import DeviceTaintSelector
from sully.domain.devices.pools import DeviceId
from sully.domain.devices.rules import choose_by_content
from sully.views.devices.name_index import Names
from sully.views.kinds import CLASSES

if TYPE_CHECKING:
    from sully.domain.devices.selectors import Content
    from sully.views.snapshot.snapshot import Snapshot

_MOST = 3
"""How many reasons are shown."""


def large_change_reasons(snapshot: "Snapshot", selected: "Collection[DeviceId]") -> tuple[str, ...]:
    """Return why a change of these devices is large; nothing if it is not."""
    from sully.domain.planning.large_changes import large_change

    if len(selected) < 2:
        return ()
    inventory = snapshot.inventory
    devices = {
        DeviceId(*pool, name) for pool in inventory.pools() for name in inventory.devices(pool)
    }
    return large_change(selected, devices, _classes(snapshot), _owners(snapshot))


def large_change_text(reasons: Sequence[str]) -> str:
    """Return the reasons on one line."""
    more = f" and {len(reasons) - _MOST} more" if len(reasons) > _MOST else ""
    return f"Large change: {', '.join(reasons[:_MOST])}{more}."


def _classes(snapshot: "Snapshot") -> "dict[str, set[DeviceId]]":

    inventory = snapshot.inventory
    by_content: dict[Content, set[DeviceId]] = {}
    for pool in inventory.pools():
        for device in inventory.devices(pool).values():
            # Equal devices share their content.
            by_content.setdefault(device.content, set()).add(device.id)
    members: dict[str, set[DeviceId]] = {}
    for class_ in snapshot.of(CLASSES).values():
        selector = DeviceTaintSelector(device_class_name=class_.metadata.name)
        for content, devices in by_content.items():
            if choose_by_content(selector, content, inventory.class_).selected:
                members.setdefault(class_.metadata.name, set()).update(devices)
    return members


def _owners(snapshot: "Snapshot") -> "dict[str, set[DeviceId]]":
    """Return the devices that the pods of each owner use, of owners that use several."""

    used: dict[str, set[DeviceId]] = {}
    for allocated in snapshot.usage.allocated(Names()):
        for pod in snapshot.exposures.running(allocated.claim):
            owner = pod.metadata.controller()
            if owner is not None:
                name = f"{owner.kind} {pod.metadata.namespace}/{owner.name}"
                used.setdefault(name, set()).add(allocated.device)
    return {owner: devices for owner, devices in used.items() if len(devices) > 1}
