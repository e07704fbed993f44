"""What senders of signals write: the body of `POST /signals`, and that of Alertmanager's webhook.

    {"signals": [{"device": {"uuid": "GPU-…"}, "key": "fan", "severity": "Warning",
                  "time": "2026-01-01T12:00:00Z", "status": "firing"}]}

A signal that cannot be read is refused by itself, and the others count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, TypeVar

import msgspec

from sully.api.core.checks import formatted, label_key, one_of
from sully.api.sully.checks import TEXT_MAX, validate_device
from sully.api.sully.types import CRITICAL, INFO, SEVERITIES, WARNING
from sully.domain.health.signals import AHEAD, Signal
from sully.domain.health.targets import Reference
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.integers import parse_natural
from sully.machinery.formats.names import label_value_problems
from sully.machinery.formats.texts import truncated
from sully.machinery.formats.timestamps import format_time

SIGNALS_MAX = 1000
"""In one request."""
OLDEST = timedelta(hours=1)
"""A signal that was observed earlier is refused: it may be a request that was recorded."""
FIRING, RESOLVED = "firing", "resolved"
_SEVERITIES: Mapping[str, str] = {
    "critical": CRITICAL,
    "page": CRITICAL,
    "error": CRITICAL,
    "warning": WARNING,
    "info": INFO,
    "none": INFO,
}
"""By the value of the label `severity`; what is not known is a warning."""
_UUID = ("uuid", "UUID", "gpu_uuid")
_PCI = ("pci_bus_id", "pciBusID", "pci_address")
_INDEX = ("gpu", "index", "minor_number")
_NODE = ("node", "Hostname", "hostname", "kubernetes_node", "nodename")
_DEVICE = ("sully_device",)
_KEY = ("sully_key", "alertname")
"""Labels by which alerts, such as those on metrics of DCGM, identify a device."""

T = TypeVar("T")


class Observation(NamedTuple):
    """A signal, and the device that it is about."""

    device: Reference
    signal: Signal


class Unreadable(msgspec.Struct, frozen=True):
    """Something else than a signal, and why."""

    problem: str


Parsed = Observation | Unreadable


class BodyError(ValueError):
    """A body that is none."""


class _Body(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is sent is not an object of the API."""


class _Device(_Body, frozen=True, kw_only=True, forbid_unknown_fields=True):
    uuid: str = ""
    pci_address: str = ""
    index: int | None = None
    node: str = ""
    name: str = ""


class _Signal(_Body, frozen=True, kw_only=True, forbid_unknown_fields=True):
    device: _Device
    key: str
    value: str = ""
    severity: str
    message: str = ""
    status: str = FIRING
    time: datetime
    expires_at: datetime | None = None


class _Signals(_Body, frozen=True, kw_only=True, forbid_unknown_fields=True):
    signals: tuple[msgspec.Raw, ...]


class _Alert(_Body, frozen=True, kw_only=True):
    status: str
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    starts_at: datetime
    ends_at: datetime | None = None


class _Webhook(_Body, frozen=True, kw_only=True):
    alerts: tuple[msgspec.Raw, ...]


def parse_signals(body: bytes, *, now: datetime) -> list[Parsed]:
    """Read the body of `POST /signals`; raise BodyError if it is none."""
    items = _decoded(body, _Signals).signals
    return [_read(item, _Signal, lambda signal: _signal(signal, now)) for item in _few(items)]


def parse_alerts(
    body: bytes, *, now: datetime, expire_after: timedelta | None = None
) -> list[Parsed]:
    """Read what Alertmanager sends; raise BodyError if it is none."""
    expires = None if expire_after is None else now + expire_after
    items = _decoded(body, _Webhook).alerts
    return [_read(item, _Alert, lambda alert: _alert(alert, expires)) for item in _few(items)]


def _decoded(body: bytes, type_: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BodyError(str(error)) from error
    except RecursionError:
        raise BodyError("JSON is nested too deeply") from None


def _few(items: tuple[msgspec.Raw, ...]) -> tuple[msgspec.Raw, ...]:
    if len(items) > SIGNALS_MAX:
        raise BodyError(f"{len(items)} signals (at most {SIGNALS_MAX})")
    return items


def _read(item: msgspec.Raw, type_: type[T], convert: Callable[[T], Observation]) -> Parsed:
    try:
        observation = convert(_decoded(bytes(item), type_))
    except ValueError as error:
        return Unreadable(str(error))
    problems = "; ".join(map(str, _problems(observation)))
    return Unreadable(problems) if problems else observation


def _signal(read: _Signal, now: datetime) -> Observation:
    if read.status not in (FIRING, RESOLVED):
        raise ValueError(f'status: unknown value "{read.status}" (one of: {FIRING}, {RESOLVED})')
    time = _aware(read.time, "time")
    if now - time > OLDEST:
        raise ValueError(f"time: {format_time(time)} is too long ago (at most an hour)")
    if time - now > AHEAD:
        raise ValueError(f"time: {format_time(time)} is in the future")
    device = read.device
    reference = Reference(
        uuid=device.uuid,
        pci_address=device.pci_address,
        index=device.index,
        node=device.node,
        device=device.name,
    )
    signal = Signal(
        key=read.key,
        value=read.value,
        severity=read.severity,
        message=read.message,
        active=read.status == FIRING,
        since=time,
        time=time,
        expires=None if read.expires_at is None else _aware(read.expires_at, "expiresAt"),
    )
    return Observation(reference, signal)


def _alert(read: _Alert, expires: datetime | None) -> Observation:
    labels, notes = read.labels, read.annotations
    index = _first(labels, _INDEX)
    reference = Reference(
        uuid=_first(labels, _UUID),
        pci_address=_first(labels, _PCI),
        # With a UUID an index is not needed, and may be that of an earlier boot.
        index=None if _first(labels, _UUID) else parse_natural(index),
        node=_first(labels, _NODE),
        device=_first(labels, _DEVICE),
    )
    since = _aware(read.starts_at, "startsAt")
    over = read.status == RESOLVED
    message = notes.get("summary") or notes.get("description") or notes.get("message", "")
    signal = Signal(
        key=_first(labels, _KEY),
        severity=_SEVERITIES.get(labels.get("severity", "").lower(), WARNING),
        message=truncated(message, TEXT_MAX),
        active=not over,
        since=since,
        time=max(since, _aware(read.ends_at, "endsAt")) if over and read.ends_at else since,
        expires=expires,
    )
    return Observation(reference, signal)


def _first(labels: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((labels[name] for name in names if labels.get(name)), "")


def _aware(time: datetime, name: str) -> datetime:
    if time.tzinfo is None:
        raise ValueError(f"{name}: a time zone is required, for example 2026-01-01T12:00:00Z")
    return time.astimezone(UTC)


def _problems(observation: Observation) -> Iterator[FieldError]:
    """Yield what a report could not store."""
    signal, reference = observation.signal, observation.device
    yield from label_key(signal.key, Path("key"))
    yield from formatted(signal.value, label_value_problems, Path("value"))
    yield from one_of(signal.severity, SEVERITIES, Path("severity"), required=True)
    if len(signal.message.encode()) > TEXT_MAX:
        yield Path("message").too_long(TEXT_MAX)
    if reference.device:
        yield from validate_device(reference.device, Path("device"))
