"""What senders of signals write, and what is refused of it."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sully.domain.health.signal_bodies import BodyError, Unreadable, parse_alerts, parse_signals
from sully.domain.health.signals import Signal
from sully.domain.health.targets import Reference

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
TIME = "2030-01-01T11:59:00Z"
Obj = dict[str, Any]


def signal(**fields: Any) -> Obj:
    source: Obj = {
        "device": {"uuid": "GPU-1"},
        "key": "fan",
        "severity": "Warning",
        "time": TIME,
        **fields,
    }
    return {name: value for name, value in source.items() if value is not None}


def parsed(*items: Any) -> Any:
    return parse_signals(json.dumps({"signals": items}).encode(), now=NOON)


def test_a_signal() -> None:
    device = {"pciAddress": "3b:00.0", "node": "n1", "index": 3, "name": "d/p/x"}
    (got,) = parsed(signal(device=device, value="2", message="m", expiresAt="2030-01-01T13:00:00Z"))

    at = NOON - timedelta(minutes=1)
    assert got == (
        Reference(pci_address="3b:00.0", node="n1", index=3, device="d/p/x"),
        Signal(
            key="fan",
            value="2",
            severity="Warning",
            message="m",
            since=at,
            time=at,
            expires=NOON + timedelta(hours=1),
        ),
    )


WRONG = {
    "no time": (signal(time=None), "missing required field `time`"),
    "no time zone": (signal(time="2030-01-01T11:59:00"), "time: a time zone is required"),
    "long ago": (signal(time="2030-01-01T10:00:00Z"), "is too long ago"),
    "in the future": (signal(time="2030-01-01T12:30:00Z"), "is in the future"),
    "another status": (signal(status="on"), 'status: unknown value "on"'),
    "another severity": (signal(severity="Bad"), 'severity: Unsupported value: "Bad"'),
    "no key": (signal(key=""), "key: Invalid value"),
    "a value that is none": (signal(value="-"), "value: Invalid value"),
    "a device that is none": (signal(device={"name": "d/x"}), "must be written driver/pool/device"),
    "a field of nobody": (signal(colour="red"), "unknown field `colour`"),
    "a number for a text": (signal(key=3), "Expected `str`, got `int`"),
    "too long a message": (signal(message="x" * 1025), "message: Too long"),
    "no object": (3, "Expected `object`, got `int`"),
}


@pytest.mark.parametrize(("item", "want"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_refused_by_itself(item: Any, want: str) -> None:
    wrong, right = parsed(item, signal())

    assert want in wrong.problem
    assert isinstance(right, tuple)


BODIES = {
    "nothing": b"",
    "no JSON": b"{",
    "nested too deeply": b'{"signals": ' + b"[" * 100_000,
    "another object": b'{"alerts": []}',
    "too many": json.dumps({"signals": [signal()] * 1001}).encode(),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_body_that_is_none(body: bytes) -> None:
    with pytest.raises(BodyError):
        parse_signals(body, now=NOON)


def test_bytes_that_are_not_text() -> None:
    (got,) = parse_signals(b'{"signals": [{"key": "\xff"}]}', now=NOON)

    assert isinstance(got, Unreadable)


# -- Alertmanager ---------------------------------------------------------------------------------

LABELS = {"alertname": "GpuHot", "severity": "critical", "UUID": "GPU-1", "Hostname": "n1"}
ZERO = "0001-01-01T00:00:00Z"


def alerts(*items: Obj, expire_after: timedelta | None = None) -> Any:
    # As Alertmanager's webhook, version 4, with more than we read.
    body = {"version": "4", "groupKey": "g", "status": "firing", "alerts": items}
    return parse_alerts(json.dumps(body).encode(), now=NOON, expire_after=expire_after)


def alert(status: str = "firing", ended: str = ZERO, **labels: str) -> Obj:
    return {
        "status": status,
        "labels": {**LABELS, **labels},
        "annotations": {"summary": "hot", "description": "very hot"},
        "startsAt": "2030-01-01T08:00:00.5Z",
        "endsAt": ended,
        "generatorURL": "",
        "fingerprint": "f",
    }


def test_an_alert() -> None:
    ((reference, got),) = alerts(alert())

    assert reference == Reference(uuid="GPU-1", node="n1")
    assert (got.key, got.severity, got.message, got.active) == ("GpuHot", "Critical", "hot", True)
    # Alertmanager does not send when an alert was last seen.
    assert got.since == got.time == datetime(2030, 1, 1, 8, 0, 0, 500000, UTC)
    assert got.expires is None


def test_an_alert_that_is_over() -> None:
    ((_, got),) = alerts(alert("resolved", "2030-01-01T11:00:00Z"))

    assert (got.active, got.time) == (False, NOON - timedelta(hours=1))


REFERENCES = {
    "by address": (
        {"UUID": "", "pci_bus_id": "00000000:3B:00.0"},
        Reference(pci_address="00000000:3B:00.0", node="n1"),
    ),
    "by index": ({"UUID": "", "gpu": "3"}, Reference(index=3, node="n1")),
    "the UUID counts more than an index": (
        {"gpu": "3"},
        Reference(uuid="GPU-1", node="n1"),
    ),
    "by name": (
        {"UUID": "", "sully_device": "d/p/x"},
        Reference(device="d/p/x", node="n1"),
    ),
    "the node of another label": (
        {"Hostname": "", "node": "n2"},
        Reference(uuid="GPU-1", node="n2"),
    ),
}


@pytest.mark.parametrize(("labels", "want"), REFERENCES.values(), ids=REFERENCES.keys())
def test_labels_identify_the_device(labels: dict[str, str], want: Reference) -> None:
    ((reference, _),) = alerts(alert(**labels))

    assert reference == want


@pytest.mark.parametrize(
    ("label", "want"),
    [("page", "Critical"), ("Info", "Info"), ("sev-2", "Warning"), ("", "Warning")],
)
def test_severities(label: str, want: str) -> None:
    ((_, got),) = alerts(alert(severity=label))

    assert got.severity == want


def test_a_key_of_our_own_and_an_expiry() -> None:
    ((_, got),) = alerts(alert(sully_key="xid"), expire_after=timedelta(minutes=10))

    assert (got.key, got.expires) == ("xid", NOON + timedelta(minutes=10))
