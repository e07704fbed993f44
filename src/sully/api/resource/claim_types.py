"""Claims and claim templates as frozen values, in the shape of the hub; the rest is in types.py."""

from datetime import datetime
from typing import Any

from msgspec import field

from sully.api.resource.types import DeviceSelector, NodeSelector, OpaqueDeviceConfiguration
from sully.machinery.meta import Condition, ObjectMeta, Wire


class DeviceToleration(Wire, frozen=True, kw_only=True):
    """Lets a request have devices that carry matching taints."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class CapacityRequirements(Wire, frozen=True, kw_only=True):
    """Amounts a request needs of one device."""

    requests: dict[str, str] = field(default_factory=dict)


class DeviceDerivedAttribute(Wire, frozen=True, kw_only=True):
    """An attribute worked out from others, for constraints."""

    name: str
    expression: str


class ExactDeviceRequest(Wire, frozen=True, kw_only=True):
    """A request for one kind of device."""

    device_class_name: str
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceSubRequest(Wire, frozen=True, kw_only=True):
    """One alternative of a request."""

    name: str
    device_class_name: str
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceRequest(Wire, frozen=True, kw_only=True):
    """A named request: one kind of device, or the first available of several."""

    name: str
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Wire, frozen=True, kw_only=True):
    """What devices of several requests must have in common, or not."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(Wire, frozen=True, kw_only=True):
    """Settings for the devices of some requests."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(Wire, frozen=True, kw_only=True):
    """Everything a claim asks for."""

    # The wire has null where there are none.
    requests: tuple[DeviceRequest, ...] | None = None
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(Wire, frozen=True, kw_only=True):
    """The wanted devices."""

    devices: DeviceClaim


class DeviceRequestAllocationResult(Wire, frozen=True, kw_only=True):
    """One device given to one request."""

    request: str
    driver: str
    pool: str
    device: str
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = field(default=None, name="shareID")
    consumed_capacity: dict[str, str] = field(default_factory=dict)
    skip_node_operations: tuple[str, ...] = ()


class DeviceAllocationConfiguration(Wire, frozen=True, kw_only=True):
    """Settings that apply to an allocation, and where they come from."""

    source: str
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(Wire, frozen=True, kw_only=True):
    """The devices of an allocation."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(Wire, frozen=True, kw_only=True):
    """What a claim was given, and on which nodes it can be used."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: datetime | None = None


class ResourceClaimConsumerReference(Wire, frozen=True, kw_only=True):
    """Somebody who may use the claim."""

    api_group: str = ""
    resource: str
    name: str
    uid: str


class NetworkDeviceData(Wire, frozen=True, kw_only=True):
    """How a network device appears inside a pod."""

    interface_name: str = ""
    ips: tuple[str, ...] = ()
    hardware_address: str = ""


class AllocatedDeviceStatus(Wire, frozen=True, kw_only=True):
    """What a driver reports about one allocated device."""

    driver: str
    pool: str
    device: str
    share_id: str | None = field(default=None, name="shareID")
    conditions: tuple[Condition, ...] | None = None
    data: Any = None
    network_data: NetworkDeviceData | None = None


class ResourceClaimStatus(Wire, frozen=True, kw_only=True):
    """What became of a claim."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(Wire, frozen=True, kw_only=True):
    """Somebody's wish for devices."""

    metadata: ObjectMeta
    spec: ResourceClaimSpec
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(Wire, frozen=True, kw_only=True):
    """The claim to make for each pod."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec


class ResourceClaimTemplate(Wire, frozen=True, kw_only=True):
    """A pattern from which claims are made."""

    metadata: ObjectMeta
    spec: ResourceClaimTemplateSpec
