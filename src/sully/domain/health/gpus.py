"""The health of the GPUs of a node: samples and events in, a report out.

A state machine without I/O: the agent feeds it and writes what `report` returns. What only a reset
repairs stays in the report until the driver reports that no recovery is needed, the node was
restarted, or a user deletes the report, which acknowledges what is in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from sully.api.sully.health import REASONS_MAX
from sully.api.sully.types import (
    CRITICAL,
    INFO,
    SEVERITIES,
    UNKNOWN,
    WARNING,
    DeviceHealth,
    DeviceHealthSpec,
    HealthReason,
    ReportedDevice,
)
from sully.domain.devices.identity import normal_pci
from sully.domain.health.faults import LOST, UNRESPONSIVE, Fault, counted, links_down, measured
from sully.domain.health.reports import status_for, worst_status
from sully.domain.health.samples import XID, Event, Gpu, Sample
from sully.domain.health.xids import APPLICATION, FATAL, INFORMATIONAL, classify

REPORTER = "nvml"
_MISSING = Fault(LOST, CRITICAL, "The GPU was there before, and is not found any more.")
_HANGS = Fault(UNRESPONSIVE, CRITICAL, "The driver does not answer. Restart the node.")
_DOUBLE_BIT = Fault("ecc-event", WARNING, "A memory error could not be corrected.")
_SEVERITY = {FATAL: CRITICAL, APPLICATION: INFO, INFORMATIONAL: INFO}
Key = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the agent of a node reports."""

    node: str
    boot_id: str = ""
    lease_seconds: int = 40
    hold: timedelta = timedelta(minutes=5)
    """How long an event counts after it was last observed."""
    xids: Mapping[int, str] = field(default_factory=dict)
    """XIDs that are classified in another way than NVIDIA does."""


@dataclass(slots=True)
class _Device:
    gpu: Gpu
    sample: Sample | None = None
    sampled: datetime | None = None
    best_links: tuple[bool, ...] = ()
    measured: dict[Key, HealthReason] = field(default_factory=dict)
    events: dict[Key, HealthReason] = field(default_factory=dict)
    status: str = UNKNOWN
    since: datetime | None = None

    def reasons(self) -> tuple[HealthReason, ...]:
        """Return the worst first: a report has room for some of them."""
        every = sorted((*self.events.values(), *self.measured.values()), key=_order)
        return tuple(every[:REASONS_MAX])


def _order(reason: HealthReason) -> tuple[int, str, str]:
    return -SEVERITIES.index(reason.severity), reason.key, reason.value


class GpuMonitor(msgspec.Struct):
    """What is known about the GPUs of a node."""

    settings: Settings
    problem: str = ""
    """Why they can currently not be measured."""
    _devices: dict[str, _Device] = msgspec.field(default_factory=dict)

    def restore(self, report: DeviceHealth) -> None:
        """Continue a report of an earlier process: what it knew is not forgotten by a restart."""
        same_boot = report.spec.boot_id == self.settings.boot_id
        for old in report.spec.devices:
            device = self._devices.setdefault(old.uuid, _Device(_known(old)))
            if device.since is None:
                device.status, device.since = old.status, old.since
            for reason in old.reasons:
                key = (reason.key, reason.value)
                if same_boot and _is_event(reason):
                    device.events.setdefault(key, reason)
                elif device.sample is None:
                    # Those that are measured again keep the time at which they began.
                    device.measured.setdefault(key, reason)

    def acknowledge(self) -> None:
        """Forget events and GPUs that are gone: a user has deleted the report."""
        for device in self._devices.values():
            device.events.clear()
        self._devices = {
            uuid: device for uuid, device in self._devices.items() if device.sample is not None
        }

    def sampled(self, samples: Iterable[Sample], *, now: datetime) -> None:
        """Take what was measured."""
        self.problem = ""
        by_uuid = {sample.gpu.uuid: sample for sample in samples}
        self._forget_replaced(by_uuid.values())
        for uuid, sample in by_uuid.items():
            device = self._devices.setdefault(uuid, _Device(sample.gpu))
            self._take(device, sample, now)
        for uuid, device in self._devices.items():
            if uuid not in by_uuid:
                device.sample = None
                _measure(device, (_MISSING,), now)

    def event(self, event: Event, *, now: datetime) -> None:
        """Take an event of the driver."""
        fault = self._fault(event)
        for uuid, device in self._devices.items():
            # An event of no GPU in particular may be about any of them.
            if event.uuid in ("", uuid):
                self._happened(device, fault, now)

    def unavailable(self, problem: str, *, now: datetime) -> None:
        """Take that nothing can be measured: the health is unknown, and reasons stay."""
        self.problem = problem
        for device in self._devices.values():
            _turn(device, UNKNOWN, now)

    def unresponsive(self, *, now: datetime) -> None:
        """Take that calls to the driver do not return."""
        self.problem = _HANGS.message
        for device in self._devices.values():
            _measure(device, (_HANGS,), now)

    @property
    def misses_gpus(self) -> bool:
        """Report whether GPUs do not answer that were there before."""
        samples = [device.sample for device in self._devices.values()]
        return any(sample is None or sample.lost for sample in samples)

    def report(self, *, now: datetime) -> DeviceHealthSpec:
        """Return the report as it is now."""
        for device in self._devices.values():
            self._expire(device, now)
            if not self.problem or (UNRESPONSIVE, "") in device.measured:
                _turn(device, status_for(device.reasons()), now)
        devices = sorted(self._devices.values(), key=lambda device: device.gpu.index)
        return DeviceHealthSpec(
            node_name=self.settings.node,
            reporter=REPORTER,
            renew_time=now,
            lease_duration_seconds=self.settings.lease_seconds,
            boot_id=self.settings.boot_id,
            message=self.problem,
            overall_status=worst_status(device.status for device in devices),
            devices=tuple(_reported(device, now) for device in devices),
        )

    # -- one device -------------------------------------------------------------------------------

    def _take(self, device: _Device, sample: Sample, now: datetime) -> None:
        before = device.sample
        if before is not None and device.sampled is not None:
            for fault in counted(before, sample, (now - device.sampled).total_seconds()):
                self._happened(device, fault, now)
        _measure(device, (*measured(sample), *links_down(device.best_links, sample)), now)
        if not sample.lost:
            pairs = zip(sample.nvlinks, device.best_links, strict=False)
            ever = tuple(is_up or was_up for is_up, was_up in pairs)
            device.best_links = ever + sample.nvlinks[len(ever) :]
            device.gpu = sample.gpu
        device.sample, device.sampled = sample, now

    def _fault(self, event: Event) -> Fault:
        if event.kind != XID:
            return _DOUBLE_BIT
        xid = classify(event.data, self.settings.xids)
        severity = _SEVERITY.get(xid.type, WARNING)
        text = f"XID {event.data} ({xid.type}): {xid.text}"
        return Fault("xid", severity, text, str(event.data))

    def _happened(self, device: _Device, fault: Fault, now: datetime) -> None:
        key = (fault.key, fault.value)
        old = device.events.get(key)
        device.events[key] = HealthReason(
            key=fault.key,
            value=fault.value,
            severity=fault.severity,
            message=fault.message,
            since=now if old is None else old.since,
            last_time=now,
            count=1 if old is None else old.count + 1,
            # What is critical stays until the driver reports that no recovery is needed.
            expiration_time=None if fault.severity == CRITICAL else now + self.settings.hold,
        )

    def _expire(self, device: _Device, now: datetime) -> None:
        for key, reason in list(device.events.items()):
            quiet = now - (reason.last_time or reason.since) >= self.settings.hold
            if reason.expiration_time is not None:
                over = now >= reason.expiration_time
            else:
                over = quiet and device.sample is not None and device.sample.recovery_action == 0
            if over:
                del device.events[key]

    def _forget_replaced(self, samples: Iterable[Sample]) -> None:
        """Forget a GPU in whose place another one is."""
        places = {normal_pci(sample.gpu.pci_address): sample.gpu.uuid for sample in samples}
        for uuid, device in list(self._devices.items()):
            if places.get(normal_pci(device.gpu.pci_address), uuid) != uuid:
                del self._devices[uuid]


def _known(old: ReportedDevice) -> Gpu:
    return Gpu(uuid=old.uuid, index=old.index or 0, pci_address=old.pci_address, model=old.model)


def _is_event(reason: HealthReason) -> bool:
    return reason.last_time is not None


def _measure(device: _Device, faults: Iterable[Fault], now: datetime) -> None:
    """Replace what is measured; what was measured before keeps the time at which it began."""
    device.measured = dict(_continued(device.measured, faults, now))


def _continued(
    before: Mapping[Key, HealthReason], faults: Iterable[Fault], now: datetime
) -> Iterator[tuple[Key, HealthReason]]:
    for fault in faults:
        key = (fault.key, fault.value)
        began = before[key].since if key in before else now
        yield (
            key,
            HealthReason(
                key=fault.key,
                value=fault.value,
                severity=fault.severity,
                message=fault.message,
                since=began,
            ),
        )


def _turn(device: _Device, status: str, now: datetime) -> None:
    if device.status != status or device.since is None:
        device.status, device.since = status, now


def _reported(device: _Device, now: datetime) -> ReportedDevice:
    gpu = device.gpu
    return ReportedDevice(
        uuid=gpu.uuid,
        pci_address=normal_pci(gpu.pci_address),
        index=gpu.index,
        model=gpu.model,
        status=device.status,
        since=device.since or now,
        reasons=device.reasons(),
    )


def same_content(one: DeviceHealthSpec, other: DeviceHealthSpec) -> bool:
    """Report whether two reports differ in nothing but the time of renewal."""
    return replace(one, renew_time=other.renew_time) == other
