"""One device of a slice: attributes, taints, where it can be used; counters have their own file."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from sully.api.resource.checks import (
    Errors,
    Options,
    shortened,
    shown,
    unique,
    validate_declared_items,
    validate_items,
)
from sully.api.resource.types import (
    Device,
    DeviceAttribute,
    DeviceCapacity,
    NodeAllocatableResource,
)
from sully.api.resource.validation.capacity import validate_capacity
from sully.api.resource.validation.counters import validate_consumptions
from sully.api.resource.validation.names import (
    QUALIFIED_MAX,
    validate_dns_label,
    validate_label_key,
    validate_node_name,
    validate_qualified_name,
)
from sully.api.resource.validation.node_selectors import validate_node_selector
from sully.api.resource.validation.taints import TAINTS_MAX, validate_taint
from sully.machinery.compat import Compat
from sully.machinery.declared import declared
from sully.machinery.fields import Path
from sully.machinery.formats.quantity import parse_quantity
from sully.machinery.memo import LONGEST

ATTRIBUTES_MAX = 32
ATTRIBUTE_VALUES_MAX = 48
TEXT_MAX = 64
BINDING_CONDITIONS_MAX = 4

_NUMBER = r"(0|[1-9]\d*)"
_PRERELEASE = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
SEMVER_PATTERN = (
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRERELEASE}(\.{_PRERELEASE})*)?"
    r"(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?"
)
_SEMVER = re.compile(SEMVER_PATTERN, re.ASCII)
_LISTS = ("ints", "bools", "strings", "versions")
_MEMBERS = ("int", "bool", "string", "version", *_LISTS)


def validate_device(
    device: Device, at: Path, rules: Options, old: Device | None, *, per_device: bool
) -> Errors:
    """Yield everything wrong with one device.

    What a device of the same name already had is not checked again, so that rules can become
    stricter without locking drivers out.
    """
    yield from validate_dns_label(device.name, at.child("name"))
    yield from _sizes(device, at)
    yield from validate_attributes(device.attributes, at.child("attributes"), rules)
    if old is None or old.capacity != device.capacity:
        shareable = bool(device.allow_multiple_allocations)
        yield from validate_capacities(
            device.capacity, at.child("capacity"), rules, shareable=shareable
        )
    if old is None or old.taints != device.taints:
        yield from validate_items(
            device.taints,
            TAINTS_MAX,
            lambda t, at: validate_taint(t, at, rules),
            at.child("taints"),
        )
    yield from validate_consumptions(device.consumes_counters, at.child("consumesCounters"))
    yield from _nodes(device, at) if per_device else _no_nodes(device, at)
    yield from validate_binding_conditions(
        device.binding_conditions, device.binding_failure_conditions, at
    )
    yield from _node_resources(device, at.child("nodeAllocatableResources"))


def _sizes(device: Device, at: Path) -> Errors:
    names = len(device.attributes) + len(device.capacity)
    if names > ATTRIBUTES_MAX:
        text = f"the total number of attributes and capacities must not exceed {ATTRIBUTES_MAX}"
        yield at.invalid(names, text)
    values = sum(_values_in(attribute) for attribute in device.attributes.values())
    if values > ATTRIBUTE_VALUES_MAX:
        text = f"the total number of attribute values must not exceed {ATTRIBUTE_VALUES_MAX}"
        yield at.invalid(values, text)


def _values_in(attribute: DeviceAttribute) -> int:
    return sum(len(getattr(attribute, name) or ()) for name in _LISTS) or 1


def validate_attributes(
    attributes: Mapping[str, DeviceAttribute], at: Path, rules: Options
) -> Errors:
    """Check names and values of attributes."""
    for name, attribute in attributes.items():
        yield from _name(name, at, rules)
        if not _is_plain(attribute):
            yield from validate_attribute(attribute, at.key(shortened(name, QUALIFIED_MAX)))


def _is_plain(attribute: DeviceAttribute) -> bool:
    """Report whether an attribute is a valid common one; a slice can have thousands."""
    scalars = (attribute.int_value, attribute.bool_value, attribute.string_value)
    text = attribute.string_value
    return (
        scalars.count(None) == 2
        and attribute.version_value is None
        and not any(getattr(attribute, name) is not None for name in _LISTS)
        and (text is None or len(text.encode()) <= TEXT_MAX)
    )


def _name(name: str, at: Path, rules: Options) -> Errors:
    well_named = _cached_well_named if len(name) <= LONGEST else _is_well_named
    if not well_named(name, rules.compat):
        yield from validate_qualified_name(name, at, rules.compat)


def _is_well_named(name: str, compat: Compat) -> bool:
    return not any(validate_qualified_name(name, Path(), compat))


# The devices of a driver share their names.
_cached_well_named = lru_cache(maxsize=4096)(_is_well_named)


def validate_capacities(
    capacities: Mapping[str, DeviceCapacity], at: Path, rules: Options, *, shareable: bool
) -> Errors:
    """Check names and policies of capacities."""
    for name, capacity in capacities.items():
        yield from _name(name, at, rules)
        if capacity.request_policy is not None:
            key = at.key(shortened(name, QUALIFIED_MAX))
            yield from validate_capacity(capacity, key, rules, shareable=shareable)


def validate_attribute(attribute: DeviceAttribute, at: Path) -> Errors:
    """Check that an attribute has one value of a legal size and form."""
    if attribute.string_value is not None:
        yield from _text(attribute.string_value, at.child("string"))
    if attribute.version_value is not None:
        yield from _version(attribute.version_value, at.child("version"))
    for name in ("bools", "ints", "strings", "versions"):
        if getattr(attribute, name) == ():
            yield at.child(name).invalid([], "must not be empty if specified")
    for position, text in enumerate(attribute.strings or ()):
        yield from declared(_text(text, at.child("strings").index(position)))
    for position, text in enumerate(attribute.versions or ()):
        yield from _version(text, at.child("versions").index(position))
    yield from declared(validate_union(shown(attribute), _MEMBERS, at))


def validate_union(value: Mapping[str, Any], members: tuple[str, ...], at: Path) -> Errors:
    """Check that one member of a union is set, and not several."""
    present = [member for member in members if member in value]
    choices = ", ".join(f"`{member}`" for member in members)
    if not present:
        yield at.invalid("", f"must specify one of: {choices}")
    elif len(present) > 1:
        shown_members = "{" + ", ".join(present) + "}"
        yield at.invalid(shown_members, f"must specify exactly one of: {choices}")


def _text(text: str, at: Path) -> Errors:
    if len(text.encode()) > TEXT_MAX:
        yield at.too_long(TEXT_MAX)


def _version(text: str, at: Path) -> Errors:
    if not _SEMVER.fullmatch(text):
        yield at.invalid(text, "must be a string compatible with semver.org spec 2.0.0")
    yield from _text(text, at)


def _nodes(device: Device, at: Path) -> Errors:
    if device.node_name:
        yield from validate_node_name(device.node_name, at.child("nodeName"))
    elif device.node_name is not None:
        yield at.child("nodeName").invalid("", "must not be empty")
    if device.node_selector is not None:
        yield from validate_node_selector(device.node_selector, at.child("nodeSelector"))
    if device.all_nodes is False:
        yield at.child("allNodes").invalid(False, "must be either unset or set to true")
    text = (
        "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when"
        " `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
    )
    present = [
        name
        for name, value in (
            ("`nodeName`", device.node_name),
            ("`nodeSelector`", device.node_selector is not None),
            ("`allNodes`", device.all_nodes),
        )
        if value
    ]
    if not present:
        yield at.required(text)
    elif len(present) > 1:
        yield at.invalid("{" + ", ".join(present) + "}", text)


def _no_nodes(device: Device, at: Path) -> Errors:
    values = (device.node_name, device.node_selector, device.all_nodes)
    if any(value is not None for value in values):
        yield at.invalid(
            None,
            "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection`"
            " is set to true in the ResourceSlice spec",
        )


def validate_binding_conditions(
    conditions: tuple[str, ...], failures: tuple[str, ...], at: Path
) -> Errors:
    """Check the conditions for binding and for its failure: both or neither, and no overlap."""
    ready, failed = at.child("bindingConditions"), at.child("bindingFailureConditions")
    key: Callable[[str, Path], Errors] = validate_label_key
    yield from validate_declared_items(conditions, BINDING_CONDITIONS_MAX, key, ready)
    yield from validate_declared_items(failures, BINDING_CONDITIONS_MAX, key, failed)
    yield from unique(conditions, str, ready)
    seen: set[str] = set()
    for position, condition in enumerate(failures):
        if condition in seen:
            yield failed.index(position).duplicate(condition)
        seen.add(condition)
        if condition in conditions:
            text = "bindingFailureConditions must not overlap with bindingConditions"
            yield failed.index(position).invalid(condition, text)
    if failures and not conditions:
        yield ready.invalid(None, "bindingConditions are required to use bindingFailureConditions")
    if conditions and not failures:
        yield failed.invalid(None, "bindingFailureConditions are required to use bindingConditions")


def _node_resources(device: Device, at: Path) -> Errors:
    for name, resource in device.node_allocatable_resources.items():
        key = at.key(name)
        known = name in ("cpu", "memory", "ephemeral-storage") or name.startswith("hugepages-")
        if not known:
            yield key.invalid(name, "must be a node allocatable resource name")
        if resource.mapping is None and resource.overhead is None:
            yield key.required("at least one of mapping or overhead must be set")
        yield from _mapping(resource, device, key.child("mapping"))
        yield from _overhead(resource, key.child("overhead"))


def _mapping(resource: NodeAllocatableResource, device: Device, at: Path) -> Errors:
    mapping = resource.mapping
    if mapping is None:
        return
    if mapping.capacity_key == "":
        yield at.child("capacityKey").invalid("", "capacityKey must not be an empty string")
    elif mapping.capacity_key is not None and mapping.capacity_key not in device.capacity:
        yield at.child("capacityKey").not_found(mapping.capacity_key)
    if mapping.capacity_key is not None and mapping.capacity_multiplier is None:
        text = "capacityMultiplier is required when capacityKey is set"
        yield from declared([at.child("capacityMultiplier").required(text)])
    for name, factor in (
        ("capacityMultiplier", mapping.capacity_multiplier),
        ("deviceMultiplier", mapping.device_multiplier),
    ):
        if factor is not None and parse_quantity(factor).sign() <= 0:
            yield at.child(name).invalid(factor, "must be positive")
    if mapping.capacity_multiplier is not None and mapping.capacity_key is None:
        text = "capacityKey is required when capacityMultiplier is set"
        yield from declared([at.child("capacityKey").required(text)])


def _overhead(resource: NodeAllocatableResource, at: Path) -> Errors:
    overhead = resource.overhead
    if overhead is None:
        return
    if overhead.per_pod is None and overhead.per_container is None:
        yield at.invalid("", "at least one of perPod or perContainer must be set")
    for name, amount in (("perPod", overhead.per_pod), ("perContainer", overhead.per_container)):
        if amount is not None and parse_quantity(amount).sign() < 0:
            yield at.child(name).invalid(amount, "must be non-negative")
