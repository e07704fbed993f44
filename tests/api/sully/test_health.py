"""Reports on the health of devices: what a write checks and shows."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

import manifests
from api.cluster.hub import Hub
from sully.api.sully.health import HEALTH
from sully.api.sully.types import DeviceHealth

Obj = dict[str, Any]

TIME = "2030-01-01T12:00:00.000000Z"
REASON: Obj = {"key": "xid", "value": "79", "severity": "Critical", "since": TIME, "count": 1}
DEVICE: Obj = {
    "uuid": "GPU-3a5f1c9e-0000-0000-0000-000000000001",
    "pciAddress": "0000:3b:00.0",
    "index": 0,
    "status": "Unhealthy",
    "since": TIME,
    "reasons": [REASON],
}


def _report(*devices: Obj, name: str = "node-1", **spec: Any) -> Obj:
    return manifests.device_health("node-1", *devices, name=name, renewTime=TIME, **spec)


def _with(**fields: Any) -> Obj:
    return _report({**DEVICE, **fields})


AT = "spec.devices[0]"
NAME = "metadata.name: Invalid value: {}: must be NODE or NODE.REPORTER, or REPORTER without a node"
WRONG: dict[str, tuple[Obj, str]] = {
    "the name of another node": (_report(name="node-2"), NAME.format('"node-2"')),
    "the name of another reporter": (
        _report(name="node-1.other"),
        NAME.format('"node-1.other"'),
    ),
    "no node": (_report(nodeName=""), NAME.format('"node-1"')),
    "a reporter with a dot": (
        _report(reporter="a.b"),
        'spec.reporter: Invalid value: "a.b": must not contain dots',
    ),
    "no lease": (
        _report(leaseDurationSeconds=0),
        "spec.leaseDurationSeconds: Invalid value: 0: must be between 1 and 86400, inclusive",
    ),
    "too many devices": (
        _report(*[DEVICE] * 257),
        "spec.devices: Too many: 257: must have at most 256 items",
    ),
    "a device that nothing identifies": (
        _with(uuid="", pciAddress=""),
        f"{AT}: Required value: one of uuid, pciAddress and device is required",
    ),
    "an address that is none": (
        _with(pciAddress="3B:00.0"),
        f'{AT}.pciAddress: Invalid value: "3B:00.0": must be a PCI address in lower case, for'
        " example 0000:3b:00.0",
    ),
    "an index below zero": (
        _with(index=-1),
        f"{AT}.index: Invalid value: -1: must be greater than or equal to 0",
    ),
    "a device without a pool": (
        _with(device="d/x"),
        f'{AT}.device: Invalid value: "d/x": must be written driver/pool/device',
    ),
    "a status of nobody": (
        _with(status="Fine"),
        f'{AT}.status: Unsupported value: "Fine": supported values: "Degraded", "Healthy",'
        ' "Unhealthy", "Unknown"',
    ),
    "too many reasons": (
        _with(reasons=[REASON] * 33),
        f"{AT}.reasons: Too many: 33: must have at most 32 items",
    ),
    "a reason without anything": (
        _with(reasons=[{"key": "", "severity": "", "since": TIME}]),
        f"[{AT}.reasons[0].key: Required value, {AT}.reasons[0].severity: Required value]",
    ),
    "too long a message": (
        _with(reasons=[{**REASON, "message": "x" * 1025}]),
        f"{AT}.reasons[0].message: Too long: may not be more than 1024 bytes",
    ),
}


@pytest.mark.parametrize(("body", "want"), WRONG.values(), ids=WRONG.keys())
async def test_refused(body: Obj, want: str) -> None:
    got = await Hub().create(body)

    assert (got.code, got.problems) == (422, want)


NAMES = {
    "the agent of a node": _report(DEVICE),
    "another reporter": _report(DEVICE, name="node-1.signals", reporter="signals"),
    "devices of no node": _report(DEVICE, name="signals", nodeName="", reporter="signals"),
}


@pytest.mark.parametrize("body", NAMES.values(), ids=NAMES.keys())
async def test_each_reporter_has_a_report_of_its_own(body: Obj) -> None:
    got = await Hub().create(body)

    assert got.code == 201
    assert msgspec.convert(got.obj, DeviceHealth).spec.devices[0].reasons[0].value == "79"


async def test_whose_report_it_is_cannot_change() -> None:
    hub = Hub()
    await hub.create(_report(DEVICE))

    renewed = await hub.patch(_report(), {"spec": {"renewTime": "2030-01-01T12:00:10.000000Z"}})
    taken = await hub.patch(_report(), {"spec": {"reporter": "other", "nodeName": "node-2"}})

    assert renewed.code == 200
    assert renewed.obj["metadata"]["generation"] == 1
    assert taken.problems == (
        '[spec.nodeName: Invalid value: "node-2": field is immutable,'
        ' spec.reporter: Invalid value: "other": field is immutable]'
    )


def test_row() -> None:
    now = datetime(2030, 1, 1, 12, 0, 7, tzinfo=UTC)
    obj = _report(DEVICE, overallStatus="Unhealthy")

    assert [column.cell(obj, now) for column in HEALTH.columns][:5] == [
        "node-1",
        "node-1",
        "nvml",
        "Unhealthy",
        "7s",
    ]
