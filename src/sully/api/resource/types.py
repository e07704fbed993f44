"""Devices, slices, classes, taint rules and patches as frozen values, in the shape of the hub.

Controllers, views and domain read these; validation does too. Claims are in claim_types.py. The
tables (`*.fields`) say the same about the wire and carry the descriptions of the fields. Amounts
stay texts in canonical form: `sully.machinery.quantity` reads them.
"""

from datetime import datetime
from typing import Any, TypeVar

from msgspec import field
from msgspec.structs import force_setattr

from sully.machinery.memo import Memo
from sully.machinery.meta import Condition, ObjectMeta, Wire

GROUP = "resource.k8s.io"

V = TypeVar("V")


class NodeSelectorRequirement(Wire, frozen=True, kw_only=True):
    """One test on a label or field of a node."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Wire, frozen=True, kw_only=True):
    """Requirements that must all hold."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Wire, frozen=True, kw_only=True):
    """Terms of which one must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] | None = None


class DeviceTaint(Wire, frozen=True, kw_only=True):
    """One mark on a device. The last three fields are ours (gates SullyTaintDetails and -Rate)."""

    key: str
    value: str = ""
    effect: str
    time_added: datetime | None = None
    description: str = ""
    data: Any = None
    evictions_per_second: int | None = None


class SliceTaint(Wire, frozen=True, kw_only=True):
    """A taint in a slice of taints, with the device it is for."""

    device: str
    taint: DeviceTaint


class DeviceAttribute(Wire, frozen=True, kw_only=True):
    """A value of one of several types; exactly one member is set."""

    int_value: int | None = field(default=None, name="int")
    bool_value: bool | None = field(default=None, name="bool")
    string_value: str | None = field(default=None, name="string")
    version_value: str | None = field(default=None, name="version")
    ints: tuple[int, ...] | None = None
    bools: tuple[bool, ...] | None = None
    strings: tuple[str, ...] | None = None
    versions: tuple[str, ...] | None = None


class NullValue(Wire, frozen=True, kw_only=True):
    """Stands for "remove this"."""


class NullableDeviceAttribute(DeviceAttribute, frozen=True, kw_only=True):
    """An attribute in a patch, which may also be removed."""

    null: NullValue | None = None


class CapacityRequestPolicyRange(Wire, frozen=True, kw_only=True):
    """Amounts from a minimum, in steps, to a maximum."""

    minimum: str | None = field(default=None, name="min")
    maximum: str | None = field(default=None, name="max")
    step: str | None = None


class CapacityRequestPolicy(Wire, frozen=True, kw_only=True):
    """How requests for a share of a capacity are rounded."""

    default: str | None = None
    valid_values: tuple[str, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(Wire, frozen=True, kw_only=True):
    """An amount a device has."""

    value: str
    request_policy: CapacityRequestPolicy | None = None


class Counter(Wire, frozen=True, kw_only=True):
    """An amount shared between devices."""

    value: str


class CounterSet(Wire, frozen=True, kw_only=True):
    """Counters that devices of a pool draw from."""

    name: str
    counters: dict[str, Counter] = field(default_factory=dict)


class DeviceCounterConsumption(Wire, frozen=True, kw_only=True):
    """What a device takes out of one counter set."""

    counter_set: str
    counters: dict[str, Counter] = field(default_factory=dict)
    compatibility_groups: tuple[str, ...] = ()


class NodeAllocatableMapping(Wire, frozen=True, kw_only=True):
    """How a device's size turns into an amount of a node resource."""

    capacity_key: str | None = None
    capacity_multiplier: str | None = None
    device_multiplier: str | None = None


class NodeAllocatableOverhead(Wire, frozen=True, kw_only=True):
    """What use of the device costs the node besides."""

    per_pod: str | None = None
    per_container: str | None = None


class NodeAllocatableResource(Wire, frozen=True, kw_only=True):
    """A node resource that a device stands for."""

    mapping: NodeAllocatableMapping | None = None
    overhead: NodeAllocatableOverhead | None = None


_MOST_LOOKS = 8192
"""Kinds of devices that are recognised."""
_known_attributes: Memo[tuple[tuple[str, DeviceAttribute], ...], dict[str, DeviceAttribute]] = Memo(
    _MOST_LOOKS
)
_known_capacity: Memo[tuple[tuple[str, DeviceCapacity], ...], dict[str, DeviceCapacity]] = Memo(
    _MOST_LOOKS
)


def _shared(
    value: dict[str, V], known: Memo[tuple[tuple[str, V], ...], dict[str, V]]
) -> dict[str, V]:
    key = tuple(value.items())
    found = known.get(key)
    return found if found is not None else known.keep(key, value)


class Device(Wire, frozen=True, kw_only=True):
    """One device of a slice."""

    name: str
    attributes: dict[str, DeviceAttribute] = field(default_factory=dict)
    capacity: dict[str, DeviceCapacity] = field(default_factory=dict)
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None
    node_allocatable_resources: dict[str, NodeAllocatableResource] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Share attributes and capacity with devices that have the same.

        A fleet consists of few kinds of devices, and these are most of what a device weighs.
        """
        force_setattr(self, "attributes", _shared(self.attributes, _known_attributes))
        force_setattr(self, "capacity", _shared(self.capacity, _known_capacity))


class ResourcePool(Wire, frozen=True, kw_only=True):
    """The pool a slice belongs to."""

    name: str
    generation: int
    resource_slice_count: int


class ResourceSliceSpec(Wire, frozen=True, kw_only=True):
    """What a driver publishes: devices, or counters, or (ours) taints."""

    driver: str
    pool: ResourcePool
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    devices: tuple[Device, ...] = ()
    per_device_node_selection: bool | None = None
    shared_counters: tuple[CounterSet, ...] = ()
    partition_type_attribute: str | None = None
    skip_node_operations: tuple[str, ...] = ()
    taints: tuple[SliceTaint, ...] = ()


class ResourceSlice(Wire, frozen=True, kw_only=True):
    """One part of a pool of devices."""

    metadata: ObjectMeta
    spec: ResourceSliceSpec


class CELDeviceSelector(Wire, frozen=True, kw_only=True):
    """An expression over one device."""

    expression: str


class DeviceSelector(Wire, frozen=True, kw_only=True):
    """A criterion devices must fulfil."""

    cel: CELDeviceSelector | None = None


class OpaqueDeviceConfiguration(Wire, frozen=True, kw_only=True):
    """Settings that only the driver understands."""

    driver: str
    parameters: Any = None


class DeviceClassConfiguration(Wire, frozen=True, kw_only=True):
    """Settings for every device taken through a class."""

    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(Wire, frozen=True, kw_only=True):
    """Which devices belong to a class, and their settings."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(Wire, frozen=True, kw_only=True):
    """A named choice of devices."""

    metadata: ObjectMeta
    spec: DeviceClassSpec


class DeviceTaintSelector(Wire, frozen=True, kw_only=True):
    """Criteria that must all hold; none given means every device."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    device_class_name: str | None = None
    selectors: tuple[DeviceSelector, ...] = ()


class DeviceTaintRuleSpec(Wire, frozen=True, kw_only=True):
    """Which devices carry which taint; without a selector: none."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint


class ConditionsStatus(Wire, frozen=True, kw_only=True):
    """A status that consists of conditions."""

    conditions: tuple[Condition, ...] = ()


class DeviceTaintRule(Wire, frozen=True, kw_only=True):
    """A taint that an administrator puts on devices."""

    metadata: ObjectMeta
    spec: DeviceTaintRuleSpec
    status: ConditionsStatus = ConditionsStatus()


class DevicePatch(Wire, frozen=True, kw_only=True):
    """What to lay over the devices a filter selects; without a filter: all devices."""

    filter: DeviceTaintSelector | None = None
    priority: int | None = None
    attributes: dict[str, NullableDeviceAttribute] = field(default_factory=dict)
    capacity: dict[str, DeviceCapacity] = field(default_factory=dict)
    taints: tuple[DeviceTaint, ...] = ()


class ResourceSlicePatchSpec(Wire, frozen=True, kw_only=True):
    """The change of a patch."""

    devices: DevicePatch


class ResourceSlicePatch(Wire, frozen=True, kw_only=True):
    """An administrator's change of published devices."""

    metadata: ObjectMeta
    spec: ResourceSlicePatchSpec
    status: ConditionsStatus = ConditionsStatus()
