"""Which devices a DeviceTaintRule selects, and the taint that it adds.

Names can be compared with any device, also with an allocated one whose slice was deleted. Class and
CEL criteria need attributes: those of the published device after patches, or those recorded
in the claim when it was allocated (`record`, `recorded`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from sully.api.resource.annotations import ALLOCATED_ATTRIBUTES
from sully.api.resource.eviction_rate import (
    BURST_ANNOTATION,
    RATE_ANNOTATION,
    EvictionRate,
    rate_of,
)
from sully.api.resource.types import (
    DeviceAttribute,
    DeviceCapacity,
    DeviceClass,
    DeviceTaintRule,
    DeviceTaintSelector,
)
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.pools import DeviceId
from sully.domain.devices.selectors import Content, DeviceSelectorError, matches, shared
from sully.domain.devices.taints import Origin, SourcedTaint
from sully.machinery.cel import CostBudget, CostBudgetExceededError
from sully.machinery.formats.quantity import QuantityError, parse_quantity
from sully.machinery.meta import Wire
from sully.machinery.serialization.notes import read_note

TOGETHER = "sully.dev/taint"
"""The label of rules that were created together, such as those for the pools of a glob."""

Classes = Callable[[str], DeviceClass | None]
"""Returns a class by name."""


class Choice(msgspec.Struct, frozen=True):
    """Whether criteria select a device; `problem` is why they could not be evaluated."""

    selected: bool
    problem: str = ""
    own: bool = False
    """The problem is in an expression of the rule or patch itself, not in the class it names."""
    over_budget: bool = False
    """The problem is what evaluating the expressions costs."""
    compiles: bool = True
    """False: the expression is invalid, so it fails for every device."""
    cause: str = ""
    """The problem of an own expression, without its index among the selectors."""
    missing_key: str = ""
    """The attribute or capacity that an own expression reads and the device does not have."""


YES = Choice(selected=True)
NO = Choice(selected=False)
UNKNOWN = Choice(selected=False, problem="its attributes were not recorded at allocation")


def names_match(selector: DeviceTaintSelector | None, device: DeviceId) -> bool:
    """Report whether the names in a selector fit a device; no selector fits none, `{}` fits all."""
    return (
        selector is not None
        and selector.driver in (None, device.driver)
        and selector.pool in (None, device.pool)
        and selector.device in (None, device.device)
    )


def needs_content(selector: DeviceTaintSelector | None) -> bool:
    """Report whether a selector has criteria other than names."""
    return selector is not None and bool(selector.selectors or selector.device_class_name)


def choose(
    selector: DeviceTaintSelector | None,
    device: DeviceId,
    content: Content | None,
    classes: Classes,
    budget: CostBudget | None = None,
) -> Choice:
    """Decide whether a selector selects a device; without content only names can be compared."""
    if selector is None or not names_match(selector, device):
        return NO
    if not needs_content(selector):
        return YES
    if content is None:
        return UNKNOWN
    return choose_by_content(selector, content, classes, budget)


def choose_by_content(
    selector: DeviceTaintSelector,
    content: Content,
    classes: Classes,
    budget: CostBudget | None = None,
) -> Choice:
    """Decide the same for a device whose names are known to fit.

    Criteria that exceed the budget select nothing. Raises UnfinishedError if the budget has slices.
    """
    try:
        return _choose(selector, content, classes, budget or CostBudget())
    except CostBudgetExceededError as error:
        return Choice(selected=False, problem=str(error), over_budget=True)


def _choose(
    selector: DeviceTaintSelector, content: Content, classes: Classes, budget: CostBudget
) -> Choice:
    if selector.device_class_name is not None:
        class_ = classes(selector.device_class_name)
        if class_ is None:
            return Choice(selected=False, problem=f"there is no class {selector.device_class_name}")
        try:
            if not matches(class_.spec.selectors, content, budget):
                return NO
        except DeviceSelectorError as error:
            return Choice(selected=False, problem=f"class {class_.metadata.name}: {error}")
    try:
        return YES if matches(selector.selectors, content, budget) else NO
    except DeviceSelectorError as error:
        return Choice(
            selected=False,
            problem=str(error),
            own=True,
            compiles=error.phase != "compile",
            cause=f"{error.phase} error: {error.error}",
            missing_key=error.missing_key or "",
        )


def sourced(rule: DeviceTaintRule) -> SourcedTaint:
    """Return the taint of a rule, with the rule as its origin."""
    origin = Origin("DeviceTaintRule", rule.metadata.name, rule.metadata.uid)
    return SourcedTaint(rule.spec.taint, origin, group_of(rule), _annotated_rate(rule))


def rule_rate(rule: DeviceTaintRule) -> EvictionRate | None:
    """Return how fast a rule evicts pods; None: no limit."""
    return rate_of(rule.spec.taint.evictions_per_second, rule.metadata.annotations)


def _annotated_rate(rule: DeviceTaintRule) -> EvictionRate | None:
    # Most rules have no such annotation, and then share the field's value.
    annotations = rule.metadata.annotations
    has_rate = RATE_ANNOTATION in annotations or BURST_ANNOTATION in annotations
    return rule_rate(rule) if has_rate else None


def group_of(rule: DeviceTaintRule) -> str:
    """Return the label of the rules that were created together with a rule, if any."""
    return rule.metadata.labels.get(TOGETHER, "")


def stacked(taints: Iterable[SourcedTaint]) -> tuple[SourcedTaint, ...]:
    """Put the taints of rules in order, each as `sourced` returns it.

    The names of the rules decide, so that the order in which rules were seen does not matter.
    """
    return tuple(sorted(taints, key=lambda taint: taint.origin.name))


def with_taints(device: EffectiveDevice, stack: tuple[SourcedTaint, ...]) -> EffectiveDevice:
    """Add the taints of rules that select a device, as `stacked` returns them.

    No taint is replaced or merged: each must be tolerated. Devices without other taints share the
    tuple.
    """
    if not stack:
        return device
    return EffectiveDevice(
        device.published,
        (*device.taints, *stack) if device.taints else stack,
        device.patched,
        device.attribute_origins,
        device.capacity_origins,
    )


class _Recorded(Wire, frozen=True, kw_only=True):
    attributes: dict[str, DeviceAttribute] = msgspec.field(default_factory=dict)
    capacity: dict[str, DeviceCapacity] = msgspec.field(default_factory=dict)
    allow_multiple_allocations: bool | None = None


def record(devices: Iterable[tuple[DeviceId, Content]]) -> str:
    """Return the attributes of allocated devices, for the annotation of their claim."""
    devices_by_id: dict[str, Any] = {
        str(device): msgspec.to_builtins(
            _Recorded(
                attributes=dict(content.attributes),
                capacity=dict(content.capacity),
                allow_multiple_allocations=content.allow_multiple_allocations,
            )
        )
        for device, content in devices
    }
    return msgspec.json.encode(devices_by_id, order="deterministic").decode()


def recorded(annotations: Mapping[str, str]) -> Mapping[str, Content]:
    """Return the recorded attributes of devices by `str(DeviceId)`; nothing if they are invalid.

    On a server that is not ours other clients may edit them, which must not stop eviction by names.
    """
    text = annotations.get(ALLOCATED_ATTRIBUTES)
    if not text:
        return {}
    devices = read_note(text, dict[str, _Recorded]) or {}
    return {
        name: shared(
            name.partition("/")[0],
            device.attributes,
            device.capacity,
            device.allow_multiple_allocations,
        )
        for name, device in devices.items()
        if _has_amounts(device)
    }


def _has_amounts(device: _Recorded) -> bool:
    try:
        for capacity in device.capacity.values():
            parse_quantity(capacity.value)
    except QuantityError:
        return False
    return True
