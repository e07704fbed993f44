"""Rules, patches and taints that exist and have no effect where the snapshot was taken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sully.api.resource.types import DeviceTaintRule
from sully.domain.capabilities.inaction import Inaction, Subject, inaction_of
from sully.domain.devices.pools import DeviceId
from sully.domain.eviction.status import EVICTION_IN_PROGRESS
from sully.explain.causes import Note, note
from sully.explain.reader import Reader
from sully.views.kinds import PATCHES, RULES


def whole_inaction(reader: Reader, subject: Subject) -> Inaction | None:
    """Return why a subject has no effect at all; None if it has some."""
    inaction = inaction_of(reader.snapshot.control_plane, subject)
    return None if inaction is None or inaction.evicts else inaction


def advice(inaction: Inaction) -> str:
    """Return what to do, as a sentence."""
    return f"{inaction.remedy[:1].upper()}{inaction.remedy[1:]}"


def inactive_notes(
    reader: Reader, devices: Iterable[DeviceId], *, named: bool = True
) -> Iterator[Note]:
    """Yield what selects any of these devices, or is published with them, without an effect.

    The devices are `named`, unless the explanation is about one of them.
    """
    inventory = reader.snapshot.inventory
    known = dict.fromkeys(devices)
    published = [x for x in map(inventory.published, known) if x is not None]
    tainted = [str(x.id) for x in published if x.device.taints]
    if tainted and (why := whole_inaction(reader, Subject.TAINTS)):
        yield note("InactiveTaints", devices=tainted, why=why.reason, remedy=advice(why))
    names = [str(device) for device in known] if named else []
    if why := whole_inaction(reader, Subject.RULES):
        rules = [
            rule.metadata.name
            for rule in reader.snapshot.of(RULES).values()
            if any(inventory.choose(rule, device).selected for device in known)
        ]
        if rules:
            facts: dict[str, Any] = {"rules": sorted(rules), "devices": names, "why": why.reason}
            yield note("InactiveRules", **facts, remedy=advice(why))
    if why := inaction_of(reader.snapshot.control_plane, Subject.PATCHES):
        patches = [
            patch.metadata.name
            for patch in reader.snapshot.of(PATCHES).values()
            if any(inventory.patch_choice(patch, device).selected for device in published)
        ]
        if patches:
            facts = {"patches": sorted(patches), "devices": names, "why": why.reason}
            yield note("InactivePatches", **facts, evicts=why.evicts, remedy=advice(why))


def stale_status(rule: DeviceTaintRule) -> Iterator[Note]:
    """Yield the condition that nothing updates any more."""
    for condition in rule.status.conditions:
        if condition.type == EVICTION_IN_PROGRESS:
            yield note(
                "StaleStatus",
                condition=f"{condition.type}={condition.status}",
                message=condition.message,
                at=condition.last_transition_time,
            )
