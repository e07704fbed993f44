"""Signals about devices from outside: from alerts, scripts and other monitors.

They are recorded as reports of the reporter `signals`, so policies read them as those of agents.
Every signal can be sent again: what is known is a duplicate, and what is older than what is known
is late. A signal that was cleared stays in the report for a while, without counting, so that a
repetition does not set it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from sully.api.sully.health import REASONS_MAX, REPORTED_MAX
from sully.api.sully.types import (
    HEALTHY,
    DeviceHealthSpec,
    HealthReason,
    ReportedDevice,
)
from sully.domain.health.reports import status_for, worst_status
from sully.domain.health.targets import Target

REPORTER = "signals"
RETENTION = timedelta(hours=24)
"""How long a cleared signal is known."""
AHEAD = timedelta(minutes=5)
"""How far the clock of a sender may be ahead."""


class Result(StrEnum):
    """What became of a signal."""

    RECORDED = "Recorded"
    CLEARED = "Cleared"
    DUPLICATE = "Duplicate"
    LATE = "Late"
    UNKNOWN_DEVICE = "UnknownDevice"
    INVALID = "Invalid"
    FULL = "ReportFull"


REFUSED = frozenset((Result.UNKNOWN_DEVICE, Result.INVALID, Result.FULL))


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """Something that was observed about a device, or that it is over."""

    key: str
    value: str = ""
    severity: str
    message: str = ""
    active: bool = True
    since: datetime
    """When it began."""
    time: datetime
    """When it was observed, or ended."""
    expires: datetime | None = None


def apply(
    spec: DeviceHealthSpec | None,
    signals: Sequence[tuple[Target, Signal]],
    *,
    node: str,
    now: datetime,
) -> tuple[DeviceHealthSpec | None, list[Result]]:
    """Return the report with these signals, None if it does not change, and what became of each."""
    before = spec or DeviceHealthSpec(node_name=node, reporter=REPORTER, renew_time=now)
    ledger = _Ledger.of(before, now)
    results = [ledger.take(target, signal) for target, signal in signals]
    after = ledger.spec(before)
    return (None if after.devices == before.devices else after), results


class _Ledger(msgspec.Struct):
    now: datetime
    devices: list[ReportedDevice] = msgspec.field(default_factory=list)

    @classmethod
    def of(cls, spec: DeviceHealthSpec, now: datetime) -> _Ledger:
        pruned = (_without_old(device, now) for device in spec.devices)
        return cls(now, [device for device in pruned if device.reasons])

    def take(self, target: Target, signal: Signal) -> Result:
        """Record one signal."""
        if signal.time > self.now + AHEAD:
            return Result.INVALID
        position = self._position(target)
        known = () if position is None else self.devices[position].reasons
        at = (signal.key, signal.value)
        old = next((reason for reason in known if (reason.key, reason.value) == at), None)
        result, new = _judge(old, signal)
        if new is None:
            return result
        if position is None and len(self.devices) >= REPORTED_MAX:
            return Result.FULL
        if old is None and len(known) >= REASONS_MAX:
            return Result.FULL
        reasons = (*(reason for reason in known if reason is not old), new)
        self._put(position, target, tuple(sorted(reasons, key=lambda x: (x.key, x.value))))
        return result

    def _position(self, target: Target) -> int | None:
        same = (at for at, device in enumerate(self.devices) if target.is_entry(device))
        return next(same, None)

    def _put(self, position: int | None, target: Target, reasons: tuple[HealthReason, ...]) -> None:
        old = None if position is None else self.devices[position]
        status = status_for(reason for reason in reasons if not is_over(reason, self.now))
        since = self.now if old is None or old.status != status else old.since
        device = ReportedDevice(
            uuid=target.uuid,
            pci_address=target.pci_address,
            index=target.index,
            device=target.device,
            status=status,
            since=since,
            reasons=reasons,
        )
        if position is None:
            self.devices.append(device)
        else:
            self.devices[position] = device

    def spec(self, before: DeviceHealthSpec) -> DeviceHealthSpec:
        """Return the report."""
        statuses = [device.status for device in self.devices] or [HEALTHY]
        return replace(
            before,
            renew_time=self.now,
            devices=tuple(self.devices),
            overall_status=worst_status(statuses),
        )


def _judge(old: HealthReason | None, signal: Signal) -> tuple[Result, HealthReason | None]:
    """Return what becomes of a signal, and the reason that it leaves; None: nothing changes."""
    if not signal.active:
        return _clear(old, signal)
    if old is None:
        return Result.RECORDED, _reason(signal)
    if is_cleared(old):
        # It began before the one that is known to be over has ended: the same one, again.
        if signal.since <= _last(old):
            return Result.LATE, None
        return Result.RECORDED, _reason(signal)
    if signal.time < _last(old):
        return Result.LATE, None
    if signal.time == _last(old) and _same(old, signal):
        return Result.DUPLICATE, None
    new = _reason(signal)
    return Result.RECORDED, replace(new, since=min(old.since, new.since), count=old.count + 1)


def _clear(old: HealthReason | None, signal: Signal) -> tuple[Result, HealthReason | None]:
    if old is None:
        # Also what was never seen: its beginning may arrive after its end.
        return Result.CLEARED, replace(_reason(signal), expiration_time=signal.time)
    if is_cleared(old) and signal.time <= _last(old):
        return Result.DUPLICATE, None
    if signal.time < _last(old):
        # It was observed since.
        return Result.LATE, None
    return Result.CLEARED, replace(old, last_time=signal.time, expiration_time=signal.time)


def is_cleared(reason: HealthReason) -> bool:
    """Report whether a sender reported that it is over; otherwise it may have expired."""
    return reason.expiration_time is not None and reason.expiration_time <= _last(reason)


def is_over(reason: HealthReason, now: datetime) -> bool:
    """Report whether a reason was cleared or has expired."""
    return reason.expiration_time is not None and reason.expiration_time <= now


def _reason(signal: Signal) -> HealthReason:
    return HealthReason(
        key=signal.key,
        value=signal.value,
        severity=signal.severity,
        message=signal.message,
        since=min(signal.since, signal.time),
        last_time=signal.time,
        count=1,
        expiration_time=signal.expires,
    )


def _same(old: HealthReason, signal: Signal) -> bool:
    return (old.severity, old.message, old.expiration_time) == (
        signal.severity,
        signal.message,
        signal.expires,
    )


def _last(reason: HealthReason) -> datetime:
    return reason.last_time or reason.since


def _without_old(device: ReportedDevice, now: datetime) -> ReportedDevice:
    remaining = tuple(
        reason
        for reason in device.reasons
        if reason.expiration_time is None or now - reason.expiration_time < RETENTION
    )
    return replace(device, reasons=remaining)
