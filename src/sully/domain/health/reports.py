"""What a report states about a device at a time.

Every reader of a DeviceHealth calls `health_of`: a report that was not renewed is not valid any
more, and what has expired does not count, whatever the object still contains.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec

from sully.api.sully.types import (
    CRITICAL,
    DEGRADED,
    HEALTHY,
    SEVERITIES,
    UNHEALTHY,
    UNKNOWN,
    WARNING,
    DeviceHealth,
    HealthReason,
    ReportedDevice,
)
from sully.machinery.formats.timestamps import format_time, later

NOT_RENEWED = "the report was not renewed since {}"
FROM_THE_FUTURE = "the report was renewed in the future, at {}: check the clock of its node"
_BY_SEVERITY = {CRITICAL: UNHEALTHY, WARNING: DEGRADED}
_ORDER = (HEALTHY, DEGRADED, UNKNOWN, UNHEALTHY)
"""What is known to be bad weighs more than what is not known."""


class Health(msgspec.Struct, frozen=True):
    """The health of a device according to one report."""

    status: str
    since: datetime
    reasons: tuple[HealthReason, ...] = ()
    """Those that count; of a stale report, those that counted last."""
    problem: str = ""
    """Why the health is unknown, where the report is the cause."""


def health_of(report: DeviceHealth, device: ReportedDevice, *, now: datetime) -> Health | None:
    """Return the health of a device; None if the report no longer contains it.

    Only a component that renews reports can report a device as healthy. One that only passes on
    events reports nothing about a device whose events have expired.
    """
    spec = report.spec
    reasons = tuple(reason for reason in device.reasons if _counts(reason, now))
    if problem := staleness(report, now):
        since = max(device.since, _valid_until(report) or device.since)
        return Health(UNKNOWN, min(since, now), reasons, problem)
    if len(reasons) == len(device.reasons):
        status, since = device.status, device.since
    else:
        status, since = _remaining(device, reasons, now)
    if status == HEALTHY and spec.lease_duration_seconds is None:
        return None
    return Health(status, since, reasons)


def staleness(report: DeviceHealth, now: datetime) -> str:
    """Return why a report does not count; empty if it does."""
    until, renewed = _valid_until(report), report.spec.renew_time
    if until is None:
        return ""
    if now >= until:
        return NOT_RENEWED.format(format_time(renewed))
    if renewed - now >= until - renewed:
        # A clock that is ahead would keep a report valid long after its reporter has stopped.
        return FROM_THE_FUTURE.format(format_time(renewed))
    return ""


def next_change(report: DeviceHealth, *, now: datetime) -> datetime | None:
    """Return when a report changes without being written: it becomes stale, or a reason expires."""
    ends = [reason.expiration_time for device in report.spec.devices for reason in device.reasons]
    times = [time for time in (*ends, _valid_until(report)) if time is not None and time > now]
    return min(times, default=None)


def status_for(reasons: Iterable[HealthReason]) -> str:
    """Return the status of a device that can be read and has these reasons."""
    worst = max((SEVERITIES.index(reason.severity) for reason in reasons), default=0)
    return _BY_SEVERITY.get(SEVERITIES[worst], HEALTHY)


def worst_status(statuses: Iterable[str]) -> str:
    """Return the worst of several; Unknown if there is none."""
    return max(statuses, key=_ORDER.index, default=UNKNOWN)


def _remaining(
    device: ReportedDevice, reasons: tuple[HealthReason, ...], now: datetime
) -> tuple[str, datetime]:
    if device.status == UNKNOWN:
        return UNKNOWN, device.since
    status = min(device.status, status_for(reasons), key=_ORDER.index)
    ended = max(_ends(device, now), default=device.since)
    return status, device.since if status == device.status else max(device.since, ended)


def _ends(device: ReportedDevice, now: datetime) -> Iterator[datetime]:
    for reason in device.reasons:
        if reason.expiration_time is not None and not _counts(reason, now):
            yield reason.expiration_time


def _counts(reason: HealthReason, now: datetime) -> bool:
    return reason.expiration_time is None or now < reason.expiration_time


def _valid_until(report: DeviceHealth) -> datetime | None:
    seconds = report.spec.lease_duration_seconds
    return None if seconds is None else later(report.spec.renew_time, seconds)
