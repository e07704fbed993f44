"""DeviceHealth: what a write may do, and how reports are printed.

A report is what its writer claims, as a ResourceSlice is: there is no status. What a report is
worth at a time is decided in `domain/health/reports.py`.
"""

import re
from typing import Any

from sully.api.core import generations
from sully.api.core.checks import (
    Errors,
    between,
    dns_label,
    dns_subdomain,
    not_negative,
    one_of,
    unchanged,
)
from sully.api.sully.checks import (
    key_and_value,
    limited,
    required,
    validate_device,
    validate_items,
)
from sully.api.sully.columns import table
from sully.api.sully.strategies import SPEC, VERSIONS
from sully.api.sully.types import GROUP, HEALTH_KIND, SEVERITIES, STATUSES
from sully.machinery.fields import Path
from sully.machinery.strategy import ResourceType, Strategy, WriteContext

Obj = dict[str, Any]

REPORTED_MAX = 256
REASONS_MAX = 32
IDENTITY_MAX = 64
"""As long as an attribute of a device."""
LONGEST_LEASE = 24 * 3600
PCI_PATTERN = "[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}[.][0-7]"
NO_IDENTITY = "one of uuid, pciAddress and device is required"
WRONG_NAME = "must be NODE or NODE.REPORTER, or REPORTER without a node"
_WRONG_PCI = "must be a PCI address in lower case, for example 0000:3b:00.0"


class DeviceHealthStrategy(Strategy, frozen=True):
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
        yield from validate_health(obj["spec"], SPEC)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Errors:
        """Check a renewed report."""
        for field in ("nodeName", "reporter"):
            at = SPEC.child(field)
            yield from unchanged(obj["spec"].get(field), old["spec"].get(field), at)
        yield from validate_health(obj["spec"], SPEC)


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
    yield from validate_items(spec.get("devices"), REPORTED_MAX, at.child("devices"), _device)


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
    yield from validate_items(device.get("reasons"), REASONS_MAX, at.child("reasons"), _reason)


def _reason(reason: Obj, at: Path) -> Errors:
    yield from key_and_value(reason, at)
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
    versions=VERSIONS,
    strategy=DeviceHealthStrategy(),
    short_names=("dh",),
    columns=table(HEALTH_KIND),
)
