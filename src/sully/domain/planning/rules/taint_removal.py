"""Which DeviceTaintRules are deleted to remove a taint from devices, and what prevents that.

A rule is deleted if the command selects every device that it selects: others would lose their taint
too. Taints of drivers and patches are not removed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import msgspec

from sully.api.resource.types import DeviceTaintRule, DeviceTaintSelector
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.taints import Origin
from sully.domain.planning.rules.taint_grammar import TaintToRemove

DeviceMatcher = Callable[[str, str, str], bool]
"""Reports whether the command selects a device, by driver, pool and name."""
ANY_NAME = "/any/"
"""Stands for a name that a selector omits. No device has it, so only patterns for any name match
it."""


class RemainingTaint(msgspec.Struct, frozen=True):
    """A taint on a selected device that deleting rules does not remove."""

    device: str
    origin: Origin


class TaintRemoval(msgspec.Struct, frozen=True):
    """The rules to delete, and the taints that would remain."""

    rules: tuple[DeviceTaintRule, ...]
    remaining: tuple[RemainingTaint, ...]


def plan_removal(
    rules: Iterable[DeviceTaintRule],
    devices: Iterable[EffectiveDevice],
    selects: DeviceMatcher,
    taint: TaintToRemove,
) -> TaintRemoval:
    """Decide which rules to delete so that the selected devices lose a taint."""
    deleted = tuple(
        rule
        for rule in _by_name(rules)
        if taint.matches(rule.spec.taint.key, rule.spec.taint.effect)
        and covers(selects, rule.spec.device_selector)
    )
    names = {rule.metadata.name for rule in deleted}
    remaining: dict[Origin, RemainingTaint] = {}
    for device in devices:
        if not device.taints or not selects(*device.id):
            continue
        for effective in device.taints:
            origin = effective.origin
            is_deleted = origin.kind == "DeviceTaintRule" and origin.name in names
            if not is_deleted and taint.matches(effective.taint.key, effective.taint.effect):
                source = Origin(origin.kind, origin.name)
                remaining.setdefault(source, RemainingTaint(str(device.id), source))
    return TaintRemoval(deleted, tuple(remaining.values()))


def _by_name(rules: Iterable[DeviceTaintRule]) -> list[DeviceTaintRule]:
    return sorted(rules, key=lambda rule: rule.metadata.name)


def same_criteria(
    rules: Iterable[DeviceTaintRule],
    selects: DeviceMatcher,
    taint: TaintToRemove,
    device_class: str,
    expressions: Collection[str],
) -> tuple[DeviceTaintRule, ...]:
    """Return the rules that set a taint by this class and these expressions, and no others."""
    return tuple(
        rule
        for rule in _by_name(rules)
        if (selector := rule.spec.device_selector) is not None
        and taint.matches(rule.spec.taint.key, rule.spec.taint.effect)
        and covers(selects, selector)
        and (selector.device_class_name or "") == device_class
        and {entry.cel.expression for entry in selector.selectors if entry.cel} == set(expressions)
    )


def covers(selects: DeviceMatcher, selector: DeviceTaintSelector | None) -> bool:
    """Report whether the command selects every device that a selector selects."""
    if selector is None:
        return False
    return selects(
        selector.driver or ANY_NAME, selector.pool or ANY_NAME, selector.device or ANY_NAME
    )


def remedy(taint: RemainingTaint) -> str:
    """Return what sets a taint that remains, and how to remove it."""
    origin = taint.origin
    match origin.kind:
        case "DeviceTaintRule":
            return (
                f"{taint.device} is tainted by DeviceTaintRule {origin.name}, which also selects"
                f" other devices\n  'sully untaint' replaces it by rules for the others;"
                f" to delete it: sully untaint rule {origin.name}"
            )
        case "ResourceSlicePatch":
            return (
                f"{taint.device} is tainted by ResourceSlicePatch {origin.name}\n"
                f"  kubectl edit resourceslicepatch {origin.name}"
            )
        case "ResourceSlice":
            return (
                f"{taint.device} is tainted by its driver, in ResourceSlice {origin.name}\n"
                "  the driver removes it when the device is healthy; a claim can tolerate it"
            )
