"""Resource slices: pool, nodes, and either devices, counters or taints."""

from collections.abc import Iterator

from sully.api.core.checks import driver_name
from sully.api.resource.checks import (
    Errors,
    Options,
    shown,
    unique,
    unique_keys,
    validate_declared_items,
    validate_items,
)
from sully.api.resource.types import Device, ResourcePool, ResourceSliceSpec, SliceTaint
from sully.api.resource.validation.counters import validate_counter_set
from sully.api.resource.validation.devices import validate_device
from sully.api.resource.validation.names import (
    validate_dns_label,
    validate_fully_qualified_name,
    validate_node_name,
    validate_pool_name,
)
from sully.api.resource.validation.node_selectors import (
    validate_node_selector,
    validate_single_term,
)
from sully.api.resource.validation.taints import validate_taint
from sully.machinery.declared import declared
from sully.machinery.fields import Path

DEVICES_MAX = 128
# With taints, counters or lists a device is so large that fewer fit into one object.
DEVICES_MAX_WITH_EXTRAS = 64
COUNTER_SETS_MAX = 8
SLICE_TAINTS_MAX = 32
OPERATIONS = ("*", "NodePrepareResources", "NodeUnprepareResources")
IMMUTABLE = "field is immutable"


EMPTY_DEVICES = ("spec", "devices")
EMPTY_COUNTERS = ("spec", "sharedCounters")


def validate_slice_spec(
    spec: ResourceSliceSpec, old: ResourceSliceSpec | None, at: Path, rules: Options
) -> Errors:
    """Yield everything wrong with a slice."""
    yield from driver_name(spec.driver, at.child("driver"))
    yield from _pool(spec.pool, at.child("pool"))
    if old is not None:
        yield from _unchanged(spec, old, at)
    yield from _nodes(spec, at)
    yield from _contents(spec, at, rules)
    yield from _devices(spec, old, at, rules)
    yield from _counter_sets(spec, at.child("sharedCounters"))
    if old is None or old.taints != spec.taints:
        yield from validate_items(
            spec.taints,
            SLICE_TAINTS_MAX,
            lambda entry, at: _slice_taint(entry, at, rules),
            at.child("taints"),
        )
    yield from _partition_type(spec, at, rules)
    yield from validate_skipped_operations(
        spec.skip_node_operations, at.child("skipNodeOperations")
    )


def _pool(pool: ResourcePool, at: Path) -> Errors:
    yield from validate_pool_name(pool.name, at.child("name"))
    if pool.resource_slice_count <= 0:
        yield at.child("resourceSliceCount").invalid(
            pool.resource_slice_count, "must be greater than zero"
        )
    if pool.generation < 0:
        text = "must be greater than or equal to zero"
        yield at.child("generation").invalid(pool.generation, text)


def _unchanged(spec: ResourceSliceSpec, old: ResourceSliceSpec, at: Path) -> Errors:
    if spec.pool.name != old.pool.name:
        yield at.child("pool", "name").invalid(spec.pool.name, IMMUTABLE)
    if spec.driver != old.driver:
        yield at.child("driver").invalid(spec.driver, IMMUTABLE)
    if spec.node_name != old.node_name:
        yield at.child("nodeName").invalid(spec.node_name, IMMUTABLE)


def _nodes(spec: ResourceSliceSpec, at: Path) -> Errors:
    if spec.node_name:
        yield from validate_node_name(spec.node_name, at.child("nodeName"))
    elif spec.node_name is not None:
        text = "must be either unset or set to a non-empty string"
        yield at.child("nodeName").invalid("", text)
    if spec.node_selector is not None:
        yield from validate_node_selector(spec.node_selector, at.child("nodeSelector"))
        yield from validate_single_term(spec.node_selector, at.child("nodeSelector"))
    for name, flag in (
        ("allNodes", spec.all_nodes),
        ("perDeviceNodeSelection", spec.per_device_node_selection),
    ):
        if flag is False:
            yield at.child(name).invalid(False, "must be either unset or set to true")
    yield from _one_selection(spec, at)


def _one_selection(spec: ResourceSliceSpec, at: Path) -> Errors:
    choices = {
        "`nodeName`": bool(spec.node_name),
        "`nodeSelector`": spec.node_selector is not None,
        "`allNodes`": bool(spec.all_nodes),
        "`perDeviceNodeSelection`": bool(spec.per_device_node_selection),
    }
    present = [name for name, value in choices.items() if value]
    text = f"exactly one of {', '.join(choices)} is required"
    if not present:
        yield at.required(text)
    elif len(present) > 1:
        yield at.invalid("{" + ", ".join(present) + "}", f"{text}, but multiple fields are set")


def _contents(spec: ResourceSliceSpec, at: Path, rules: Options) -> Errors:
    counters = bool(spec.shared_counters) or EMPTY_COUNTERS in rules.sent_empty
    if counters and (spec.devices or EMPTY_DEVICES in rules.sent_empty):
        yield at.invalid("", "only one of `sharedCounters` or `devices` is allowed")
    if spec.taints and (spec.devices or spec.shared_counters):
        yield at.child("taints").forbidden(
            "may not be specified together with `devices` or `sharedCounters`"
        )


def _devices(
    spec: ResourceSliceSpec, old: ResourceSliceSpec | None, at: Path, rules: Options
) -> Errors:
    before = {device.name: device for device in old.devices} if old is not None else {}
    per_device = bool(spec.per_device_node_selection)

    def check(device: Device, at: Path) -> Errors:
        return validate_device(device, at, rules, before.get(device.name), per_device=per_device)

    limit = DEVICES_MAX_WITH_EXTRAS if _has_extras(spec.devices) else DEVICES_MAX
    at = at.child("devices")
    yield from validate_items(spec.devices, limit, check, at)
    if len(spec.devices) <= limit:
        yield from unique_keys(spec.devices, lambda device: device.name, at)


def _has_extras(devices: tuple[Device, ...]) -> bool:
    return any(
        device.taints or device.consumes_counters or any(_lists_of(device)) for device in devices
    )


def _lists_of(device: Device) -> Iterator[bool]:
    for attribute in device.attributes.values():
        lists = (attribute.ints, attribute.bools, attribute.strings, attribute.versions)
        yield any(values is not None for values in lists)


def _counter_sets(spec: ResourceSliceSpec, at: Path) -> Errors:
    if len(spec.shared_counters) <= COUNTER_SETS_MAX:
        yield from declared(unique(spec.shared_counters, lambda counter_set: counter_set.name, at))
    yield from validate_declared_items(
        spec.shared_counters, COUNTER_SETS_MAX, validate_counter_set, at
    )


def _slice_taint(entry: SliceTaint, at: Path, rules: Options) -> Errors:
    yield from validate_dns_label(entry.device, at.child("device"))
    yield from validate_taint(entry.taint, at.child("taint"), rules)


def _partition_type(spec: ResourceSliceSpec, at: Path, rules: Options) -> Errors:
    name = spec.partition_type_attribute
    if name is None:
        return
    field = at.child("partitionTypeAttribute")
    consumers = [(i, one) for i, one in enumerate(spec.devices) if one.consumes_counters]
    malformed = list(validate_fully_qualified_name(name, field, rules.compat))
    yield from declared(malformed)
    if not consumers:
        yield field.invalid(
            name, "may only be set on a slice which declares devices that consume counters"
        )
        return
    if malformed:
        return
    for position, device in consumers:
        key = at.child("devices").index(position).child("attributes").key(name)
        yield from _partition_value(device, name, spec.driver, key)


def _partition_value(device: Device, name: str, driver: str, at: Path) -> Errors:
    # The driver may leave its own domain out of a name.
    bare = name.removeprefix(f"{driver}/")
    attribute = device.attributes.get(name) or device.attributes.get(bare)
    if attribute is None:
        yield at.required(
            "device consumes counters and `partitionTypeAttribute` names this attribute, so it"
            " must be set"
        )
    elif attribute.string_value is None:
        yield at.invalid(
            shown(attribute),
            "must be a string value because `partitionTypeAttribute` names this attribute",
        )


def validate_skipped_operations(operations: tuple[str, ...], at: Path) -> Errors:
    """Check which operations on nodes are left out, in slices and allocation results."""
    if "NodePrepareResources" in operations and not {"*", "NodeUnprepareResources"} & set(
        operations
    ):
        yield at.invalid(
            list(operations),
            "NodePrepareResources cannot be skipped unless NodeUnprepareResources is also skipped",
        )
    for position, operation in enumerate(operations):
        if operation not in OPERATIONS:
            yield from declared([at.index(position).not_supported(operation, OPERATIONS)])
    yield from declared(unique(operations, str, at))
