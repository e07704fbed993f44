"""DeviceHealth: what a write may do, and how reports are printed.

A report is what its writer claims, as a ResourceSlice is: there is no status. What a report is
worth at a time is decided in `domain/health/reports.py`.
"""

import re
from collections.abc import Iterator
from typing import Any

from sully.api.core import generations
from sully.api.core.checks import (
    between,
    dns_label,
    dns_subdomain,
    formatted,
    label_key,
    not_negative,
    one_of,
    unchanged,
)
from sully.api.sully import SULLY
from sully.api.sully.columns import table
from sully.api.sully.types import GROUP, HEALTH_KIND, SEVERITIES, STATUSES, VERSION
from sully.api.sully.validation import limited, required, validate_device
from sully.machinery.fields import FieldError, Path
from sully.machinery.names import label_value_problems
from sully.machinery.strategy import ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]
Errors = Iterator[FieldError]

REPORTED_MAX = 256
REASONS_MAX = 32
IDENTITY_MAX = 64
"""As long as an attribute of a device."""
LONGEST_LEASE = 24 * 3600
PCI_PATTERN = "[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}[.][0-7]"
NO_IDENTITY = "one of uuid, pciAddress and device is required"
WRONG_NAME = "must be NODE or NODE.REPORTER, or REPORTER without a node"
_WRONG_PCI = "must be a PCI address in lower case, for example 0000:3b:00.0"
_SPEC = Path("spec")


class DeviceHealthStrategy(Strategy):
    """Writes to reports: all of it may change, apart from whose report it is."""

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Count from one."""
        generations.start(obj)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Do not count: a report changes with every renewal."""
        generations.follow(obj, old, bump=False)

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Errors:
        """Check a new report."""
        yield from _name(obj["metadata"].get("name", ""), obj["spec"])
        yield from validate_health(obj["spec"], _SPEC)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Errors:
        """Check a renewed report."""
        for field in ("nodeName", "reporter"):
            at = _SPEC.child(field)
            yield from unchanged(obj["spec"].get(field), old["spec"].get(field), at)
        yield from validate_health(obj["spec"], _SPEC)


def report_name(node: str, reporter: str) -> str:
    """Return the name of the report of a reporter that is not the agent of the node."""
    return ".".join(filter(None, (node, reporter)))


def _name(name: str, spec: Obj) -> Errors:
    node, reporter = spec.get("nodeName", ""), spec.get("reporter", "")
    if name not in (node, report_name(node, reporter)):
        yield Path("metadata").child("name").invalid(name, WRONG_NAME)


def validate_health(spec: Obj, at: Path) -> Errors:
    """Yield everything wrong with a report."""
    if node := spec.get("nodeName"):
        yield from dns_subdomain(node, at.child("nodeName"))
    yield from dns_label(spec.get("reporter", ""), at.child("reporter"))
    yield from required(spec, "renewTime", at)
    if (lease := spec.get("leaseDurationSeconds")) is not None:
        yield from between(lease, 1, LONGEST_LEASE, at.child("leaseDurationSeconds"))
    yield from limited(spec, "bootID", at, IDENTITY_MAX)
    yield from limited(spec, "message", at)
    if overall := spec.get("overallStatus"):
        yield from one_of(overall, STATUSES, at.child("overallStatus"))
    devices, where = spec.get("devices") or [], at.child("devices")
    if len(devices) > REPORTED_MAX:
        yield where.too_many(len(devices), REPORTED_MAX)
    for position, device in enumerate(devices[:REPORTED_MAX]):
        yield from _device(device, where.index(position))


def _device(device: Obj, at: Path) -> Errors:
    if not any(device.get(name) for name in ("uuid", "pciAddress", "device")):
        yield at.required(NO_IDENTITY)
    for name in ("uuid", "model"):
        yield from limited(device, name, at, IDENTITY_MAX)
    address = device.get("pciAddress")
    if address and not re.fullmatch(PCI_PATTERN, address):
        yield at.child("pciAddress").invalid(address, _WRONG_PCI)
    yield from not_negative(device.get("index", 0), at.child("index"))
    if named := device.get("device"):
        yield from validate_device(named, at.child("device"))
    yield from one_of(device.get("status", ""), STATUSES, at.child("status"), required=True)
    yield from required(device, "since", at)
    reasons, where = device.get("reasons") or [], at.child("reasons")
    if len(reasons) > REASONS_MAX:
        yield where.too_many(len(reasons), REASONS_MAX)
    for position, reason in enumerate(reasons[:REASONS_MAX]):
        yield from _reason(reason, where.index(position))


def _reason(reason: Obj, at: Path) -> Errors:
    if reason.get("key"):
        yield from label_key(reason["key"], at.child("key"))
    else:
        yield at.child("key").required()
    yield from formatted(reason.get("value", ""), label_value_problems, at.child("value"))
    yield from one_of(reason.get("severity", ""), SEVERITIES, at.child("severity"), required=True)
    yield from limited(reason, "message", at)
    yield from required(reason, "since", at)
    yield from not_negative(reason.get("count", 0), at.child("count"))


HEALTH = ResourceType(
    group=GROUP,
    kind=HEALTH_KIND,
    plural="devicehealths",
    singular="devicehealth",
    namespaced=False,
    versions=(Version(VERSION, SULLY, delete_returns_object=True),),
    strategy=DeviceHealthStrategy(),
    short_names=("dh",),
    columns=table(HEALTH_KIND),
)
