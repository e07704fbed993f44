"""Which rules must go so that devices lose a taint, and what cannot be taken off that way.

A rule goes when all that it names is meant. One that also marks others is not touched, for they
would lose their taint too; and what a driver or a patch says is not ours to delete.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from sully.api.resource.types import DeviceTaintRule, DeviceTaintSelector
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.taints import Origin
from sully.domain.planning.taintgrammar import Unwanted

Meant = Callable[[str, str, str], bool]
"""Says whether a device is meant, by driver, pool and name."""
OPEN = "/any/"
"""Stands for a name that a selector leaves open. No device has it, so only a pattern that takes
any name takes this one."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Something that marks a device that is meant and does not go."""

    device: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class Lifting:
    """The rules that go, and what stays in the way."""

    rules: tuple[DeviceTaintRule, ...]
    obstacles: tuple[Obstacle, ...]


def lifting(
    rules: Iterable[DeviceTaintRule],
    devices: Iterable[EffectiveDevice],
    meant: Meant,
    unwanted: Unwanted,
) -> Lifting:
    """Decide what must go so that the devices that are meant lose these taints."""
    going = tuple(
        rule
        for rule in sorted(rules, key=lambda each: each.metadata.name)
        if unwanted.means(rule.spec.taint.key, rule.spec.taint.effect)
        and covers(meant, rule.spec.device_selector)
    )
    names = {each.metadata.name for each in going}
    obstacles: dict[Origin, Obstacle] = {}
    for device in devices:
        if not device.taints or not meant(*device.id):
            continue
        for each in device.taints:
            origin = each.origin
            ours = origin.kind == "DeviceTaintRule" and origin.name in names
            if not ours and unwanted.means(each.taint.key, each.taint.effect):
                found = Origin(origin.kind, origin.name)
                obstacles.setdefault(found, Obstacle(str(device.id), found))
    return Lifting(going, tuple(obstacles.values()))


def same_criteria(
    rules: Iterable[DeviceTaintRule],
    meant: Meant,
    unwanted: Unwanted,
    device_class: str,
    expressions: Collection[str],
) -> tuple[DeviceTaintRule, ...]:
    """Return the rules that set a taint by this class and these expressions, and no others."""
    return tuple(
        rule
        for rule in sorted(rules, key=lambda each: each.metadata.name)
        if (selector := rule.spec.device_selector) is not None
        and unwanted.means(rule.spec.taint.key, rule.spec.taint.effect)
        and covers(meant, selector)
        and (selector.device_class_name or "") == device_class
        and {each.cel.expression for each in selector.selectors if each.cel} == set(expressions)
    )


def covers(meant: Meant, selector: DeviceTaintSelector | None) -> bool:
    """Report whether everything that a selector selects is meant."""
    if selector is None:
        return False
    return meant(selector.driver or OPEN, selector.pool or OPEN, selector.device or OPEN)


def remedy(obstacle: Obstacle) -> str:
    """Say what to do about an obstacle."""
    origin = obstacle.origin
    match origin.kind:
        case "DeviceTaintRule":
            return (
                f"{obstacle.device} is tainted by DeviceTaintRule {origin.name}, which also selects"
                f" other devices\n  untaint all of them, or: kubectl delete devicetaintrule"
                f" {origin.name}"
            )
        case "ResourceSlicePatch":
            return (
                f"{obstacle.device} is tainted by ResourceSlicePatch {origin.name}\n"
                f"  kubectl edit resourceslicepatch {origin.name}"
            )
        case "ResourceSlice":
            return (
                f"{obstacle.device} is tainted by its driver, in ResourceSlice {origin.name}\n"
                "  the driver removes it when the device is healthy; a claim can tolerate it"
            )
