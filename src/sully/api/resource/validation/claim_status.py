"""Validation of the status of a claim: allocation, consumers, reports of drivers."""

import ipaddress
import re
from typing import Any

from sully.api.core.checks import driver_name
from sully.api.resource.checks import (
    Errors,
    Options,
    repeated,
    shown,
    unique,
    validate_declared_items,
)
from sully.api.resource.types import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceRequestAllocationResult,
    NetworkDeviceData,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from sully.api.resource.validation.claims import Names, request_names, validate_references
from sully.api.resource.validation.classes import validate_configuration, validate_raw
from sully.api.resource.validation.conditions import limit_conditions, validate_conditions
from sully.api.resource.validation.devices import validate_binding_conditions
from sully.api.resource.validation.names import (
    validate_declared_driver_name,
    validate_dns_label,
    validate_pool_name,
    validate_pool_segments,
    validate_request_reference,
    validate_uuid,
)
from sully.api.resource.validation.node_selectors import validate_node_selector
from sully.api.resource.validation.slices import validate_skipped_operations
from sully.api.resource.validation.taints import validate_tolerations
from sully.machinery.declared import declared
from sully.machinery.fields import Path

RESERVED_MAX = 256
RESULTS_MAX = 32
ALLOCATION_CONFIG_MAX = 64
DATA_MAX = 10 * 1024
INTERFACE_NAME_MAX = 256
HARDWARE_ADDRESS_MAX = 128
IPS_MAX = 16
_LEADING_ZEROS = re.compile(r"(?<![0-9A-Fa-f:])0+(?=[0-9])")
_SOURCES = ("FromClaim", "FromClass")

DeviceID = tuple[str, str, str, str]


def validate_claim_status(claim: ResourceClaim, old: ResourceClaim, rules: Options) -> Errors:
    """Yield everything wrong with a new status; an allocation is set once and then only removed."""
    status, at = claim.status, Path("status")
    yield from _reserved_for(status, at.child("reservedFor"))
    yield from _devices(status, at.child("devices"))
    if status.reserved_for:
        yield from _reservation_allowed(claim, old, at.child("reservedFor"))
    at = at.child("allocation")
    if status.allocation is not None and old.status.allocation is not None:
        if status.allocation != old.status.allocation:
            yield from declared([at.invalid(None, "field cannot be modified once set")])
    elif status.allocation is not None:
        names = request_names(claim.spec.devices)
        yield from _allocation(status.allocation, at, names, rules)


def _reserved_for(status: ResourceClaimStatus, at: Path) -> Errors:
    consumers = status.reserved_for
    yield from validate_declared_items(consumers, RESERVED_MAX, _consumer, at)
    if len(consumers) <= RESERVED_MAX:
        yield from declared(unique(consumers, lambda one: one.uid, at))


def _consumer(consumer: ResourceClaimConsumerReference, at: Path) -> Errors:
    for name in ("resource", "name", "uid"):
        if not getattr(consumer, name):
            yield at.child(name).required()


def _reservation_allowed(claim: ResourceClaim, old: ResourceClaim, at: Path) -> Errors:
    if claim.status.allocation is None:
        yield at.forbidden("may not be specified when `allocated` is not set")
    elif claim.metadata.deletion_timestamp is not None:
        known = set(old.status.reserved_for)
        if any(consumer not in known for consumer in claim.status.reserved_for):
            yield at.forbidden(
                "new entries may not be added while `deallocationRequested` or `deletionTimestamp`"
                " are set"
            )


def device_id(entry: DeviceRequestAllocationResult | AllocatedDeviceStatus) -> DeviceID:
    """Return what identifies one share of one device."""
    return (entry.driver, entry.pool, entry.device, entry.share_id or "")


def _devices(status: ResourceClaimStatus, at: Path) -> Errors:
    allocated = status.allocation.devices.results if status.allocation is not None else ()
    known = {device_id(result) for result in allocated}
    for position, device in enumerate(status.devices):
        yield from _device(device, at.index(position), known)
    for position, device in repeated(status.devices, device_id):
        yield from declared([at.index(position).duplicate(_shown_device(device))])


def _shown_device(device: AllocatedDeviceStatus) -> dict[str, Any]:
    """Return a device as Go writes it: its conditions are always there."""
    fields: dict[str, Any] = shown(device)
    known = ("driver", "pool", "device", "shareID")
    first: dict[str, Any] = {name: fields.pop(name) for name in known if name in fields}
    return first | {"conditions": fields.pop("conditions", None)} | fields


def _device(device: AllocatedDeviceStatus, at: Path, known: set[DeviceID]) -> Errors:
    yield from driver_name(device.driver, at.child("driver"))
    yield from validate_pool_name(device.pool, at.child("pool"))
    yield from validate_dns_label(device.device, at.child("device"))
    if device.share_id is not None:
        yield from declared(validate_uuid(device.share_id, at.child("shareID")))
    if device_id(device) not in known:
        # Kubernetes shows its own struct here, with the names of Go fields.
        fields = zip(("Driver", "Pool", "Device", "ShareID"), device_id(device), strict=True)
        yield at.invalid(dict(fields), "must be an allocated device in the claim")
    yield from limit_conditions(device.conditions or (), at.child("conditions"))
    yield from validate_conditions(device.conditions or (), at.child("conditions"))
    if device.data is not None:
        yield from validate_raw(device.data, at.child("data"), DATA_MAX)
    if device.network_data is not None:
        yield from _network(device.network_data, at.child("networkData"))


def _network(data: NetworkDeviceData, at: Path) -> Errors:
    if len(data.interface_name.encode()) > INTERFACE_NAME_MAX:
        yield from declared([at.child("interfaceName").too_long(INTERFACE_NAME_MAX)])
    if len(data.hardware_address.encode()) > HARDWARE_ADDRESS_MAX:
        yield from declared([at.child("hardwareAddress").too_long(HARDWARE_ADDRESS_MAX)])
    yield from validate_declared_items(data.ips, IPS_MAX, _interface_address, at.child("ips"))
    if len(data.ips) <= IPS_MAX:
        yield from declared(unique(data.ips, str, at.child("ips")))


def _interface_address(address: str, at: Path) -> Errors:
    text = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
    try:
        if "/" not in address:
            raise ValueError(address)
        # Leading zeros are not canonical, and known not to be octal.
        parsed = ipaddress.ip_interface(_LEADING_ZEROS.sub("", address))
    except ValueError:
        yield at.invalid(address, text)
        return
    canonical = _canonical(parsed)
    if canonical != address:
        yield at.invalid(address, f'must be in canonical form ("{canonical}")')


def _canonical(parsed: ipaddress.IPv4Interface | ipaddress.IPv6Interface) -> str:
    """Return an address as Go writes it: an IPv4 address that is mapped to IPv6 as IPv4."""
    mapped = parsed.ip.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Interface) else None
    if mapped is None:
        return str(parsed)
    bits = parsed.network.prefixlen
    return f"{mapped}/{bits - 96 if bits >= 96 else bits}"


def _allocation(allocation: AllocationResult, at: Path, names: Names, rules: Options) -> Errors:
    devices = at.child("devices")
    yield from validate_declared_items(
        allocation.devices.results,
        RESULTS_MAX,
        lambda result, at: _result(result, at, names, rules),
        devices.child("results"),
    )
    yield from validate_declared_items(
        allocation.devices.config,
        ALLOCATION_CONFIG_MAX,
        lambda config, at: _config(config, at, names, rules),
        devices.child("config"),
    )
    if allocation.node_selector is not None:
        yield from validate_node_selector(allocation.node_selector, at.child("nodeSelector"))


def _result(
    result: DeviceRequestAllocationResult, at: Path, names: Names, rules: Options
) -> Errors:
    yield from validate_request_reference(result.request, at.child("request"), names)
    yield from declared(validate_declared_driver_name(result.driver, at.child("driver")))
    yield from declared(validate_pool_segments(result.pool, at.child("pool")))
    yield from validate_dns_label(result.device, at.child("device"))
    yield from validate_binding_conditions(
        result.binding_conditions, result.binding_failure_conditions, at
    )
    yield from validate_tolerations(result.tolerations, at.child("tolerations"), rules)
    if result.share_id is not None:
        yield from declared(validate_uuid(result.share_id, at.child("shareID")))
    yield from validate_skipped_operations(
        result.skip_node_operations, at.child("skipNodeOperations")
    )


def _config(
    config: DeviceAllocationConfiguration, at: Path, names: Names, rules: Options
) -> Errors:
    if not config.source:
        yield from declared([at.child("source").required()])
    elif config.source not in _SOURCES:
        yield from declared([at.child("source").not_supported(config.source, _SOURCES)])
    yield from validate_references(config.requests, at.child("requests"), names)
    yield from validate_configuration(config.opaque, at, rules)
