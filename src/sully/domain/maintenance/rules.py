"""The DeviceTaintRules of a maintenance: one for each closed device.

Label and owner reference name the maintenance, so the rules of a deleted one are deleted, too. They
have no state: that is in the status. People approve by an annotation of one of the rules of a unit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from sully.api.resource.annotations import DESCRIPTION, MAINTENANCE_END, MAINTENANCE_NAME
from sully.api.resource.types import DeviceTaint, DeviceTaintRule
from sully.api.sully.types import MAINTENANCE_KIND, DeviceMaintenance
from sully.domain.devices.device_rules import (
    build_device_rule,
    device_of,
    label_value,
    owner_reference,
    shortened_description,
)
from sully.domain.devices.device_rules import rule_name as rule_name_of
from sully.domain.devices.taints import NO_EXECUTE, NO_SCHEDULE
from sully.domain.maintenance.settings import end_of
from sully.domain.maintenance.steps import DRAINING, Unit
from sully.machinery.formats.timestamps import format_time

Obj = dict[str, Any]

KEY: Final = "sully.dev/maintenance"
"""The taint of closed devices, and the label of their rules with the name of the maintenance."""
TAINT: Final = DeviceTaint(key=KEY, effect=NO_SCHEDULE)
APPROVED: Final = "sully.dev/approved"
"""The annotation of a rule with which people approve; its value is `approval` of the unit."""


def maintenance_name(rule: DeviceTaintRule) -> str:
    """Return the name of the maintenance that a rule is of; empty if it is of none."""
    metadata = rule.metadata
    return metadata.annotations.get(MAINTENANCE_NAME, "") if KEY in metadata.labels else ""


def rule_name(maintenance: str, device: str) -> str:
    """Return the name of the rule of a device; a policy of the same name has other rules."""
    return rule_name_of(maintenance, f"maintenance/{device}")


def effect_of(unit: Unit, *, paused: bool) -> str:
    """Return the effect of the taint of a unit: only a drain that takes too long evicts."""
    evicts = unit.no_execute and unit.phase == DRAINING and not paused
    return NO_EXECUTE if evicts else NO_SCHEDULE


def desired_rules(
    maintenance: DeviceMaintenance, units: Iterable[Unit], *, paused: bool
) -> dict[str, Obj]:
    """Return the rules of the closed devices, by device."""
    return {
        device: _rule(maintenance, device, effect_of(unit, paused=paused))
        for unit in units
        for device in unit.devices
    }


def _rule(maintenance: DeviceMaintenance, device: str, effect: str) -> Obj:
    name = maintenance.metadata.name
    return build_device_rule(
        device,
        {"key": KEY, "effect": effect},
        name=rule_name(name, device),
        labels={KEY: label_value(name)},
        annotations=_annotations(maintenance),
        owners=[owner_reference(MAINTENANCE_KIND, maintenance.metadata)],
    )


def _annotations(maintenance: DeviceMaintenance) -> dict[str, str]:
    end, reason = end_of(maintenance), maintenance.spec.reason
    annotations = {MAINTENANCE_NAME: maintenance.metadata.name}
    if end is not None:
        annotations[MAINTENANCE_END] = format_time(end)
    if reason:
        annotations[DESCRIPTION] = shortened_description(reason)
    return annotations


def approvals(rules: Iterable[DeviceTaintRule], unit: Unit) -> frozenset[str]:
    """Return what people approved for a unit, by annotations of its rules."""
    devices = set(unit.devices)
    texts = (
        rule.metadata.annotations.get(APPROVED, "") for rule in rules if device_of(rule) in devices
    )
    return frozenset(text for text in texts if text)
