"""Planned work on devices: what a write checks and sets."""

from typing import Any

import msgspec
import pytest

import manifests
from api.cluster.hub import MASTER, Hub
from sully.api import build_scheme
from sully.api.resource.annotations import CREATED_BY
from sully.api.sully.types import DeviceMaintenance
from sully.machinery.compat import Compat

Obj = dict[str, Any]

SPEC: Obj = {"selector": {"driver": "gpu.example.com"}, "start": "2026-01-03T02:00:00Z"}


def _maintenance(**spec: Any) -> Obj:
    return manifests.body("DeviceMaintenance", "firmware", {**SPEC, **spec})


WRONG: dict[str, tuple[Obj, str]] = {
    "every device by mistake": (
        _maintenance(selector={}),
        "spec.selector: Required value: a selector without criteria selects every device: set"
        " matchAll to true to mean that",
    ),
    "an end before the start": (
        _maintenance(end="2026-01-03T02:00:00Z"),
        'spec.end: Invalid value: "2026-01-03T02:00:00Z": must be later than start',
    ),
    "two ends": (
        _maintenance(end="2026-01-03T06:00:00Z", duration="4h"),
        "spec.end: Forbidden: may not be set together with duration",
    ),
    "no time to work": (
        _maintenance(duration="0s"),
        'spec.duration: Invalid value: "0s": must be greater than 0s',
    ),
    "nothing at a time": (
        _maintenance(rolling={"maxUnavailable": "0%"}),
        'spec.rolling.maxUnavailable: Invalid value: "0%": must be greater than 0',
    ),
    "a unit of nobody": (
        _maintenance(rolling={"by": "Rack"}),
        'spec.rolling.by: Unsupported value: "Rack": supported values: "Device", "Node"',
    ),
    "a rate of nobody": (
        _maintenance(drain={"rate": "fast"}),
        'spec.drain.rate: Invalid value: "fast": must be a rate, for example 2/s or 1/5m',
    ),
    "NoExecute at no time": (
        _maintenance(drain={"then": "NoExecute"}),
        "spec.drain.timeout: Required value: the action NoExecute requires a timeout",
    ),
    "replacements that nobody waits for": (
        _maintenance(drain={"maxUnavailable": 1}, rolling={"waitForReady": "0s"}),
        "spec.drain.maxUnavailable: Forbidden: may not be set if waitForReady is 0s",
    ),
    "a hook of nobody": (
        _maintenance(hook={"type": "Script"}),
        'spec.hook.type: Unsupported value: "Script"',
    ),
    "a proof of nobody": (
        _maintenance(proof={"type": "Hope"}),
        'spec.proof.type: Unsupported value: "Hope"',
    ),
    "a long story": (
        _maintenance(reason="x" * 513),
        "spec.reason: Too long: may not be more than 512 bytes",
    ),
}


@pytest.mark.parametrize(("body", "want"), WRONG.values(), ids=WRONG.keys())
async def test_refused(body: Obj, want: str) -> None:
    got = await Hub().create(body)

    assert got.code == 422
    assert got.problems.startswith(want)


async def test_what_is_left_out_is_safe() -> None:
    got = await Hub().create(_maintenance(drain={"timeout": "1h"}))
    spec = msgspec.convert(got.obj, DeviceMaintenance).spec

    assert (spec.rolling.by, spec.rolling.max_unavailable) == ("Device", 1)
    assert (spec.rolling.wait_for_ready, spec.identity_attribute) == ("10m", "uuid")
    assert (spec.drain.mode, spec.drain.rate, spec.drain.then) == ("Evict", "1/s", "Fail")
    assert spec.drain.timeout == "1h"


async def test_cancelling_is_final() -> None:
    hub = Hub()
    await hub.create(_maintenance())
    assert (await hub.patch(_maintenance(), {"spec": {"cancelled": True}})).code == 200
    got = await hub.patch(_maintenance(), {"spec": {"cancelled": False}})

    assert got.code == 422
    assert got.problems == (
        "spec.cancelled: Forbidden: a cancelled maintenance cannot be continued: create another"
    )


async def test_the_server_records_who_created_it() -> None:
    hub, forged = Hub(), {"metadata": {"annotations": {CREATED_BY: "mallory"}}}
    created = await hub.create(_maintenance())
    patched = await hub.patch(_maintenance(), forged)

    for reported in (created, patched):
        assert reported.obj["metadata"]["annotations"] == {CREATED_BY: MASTER.name}


async def test_the_status_has_an_endpoint_of_its_own() -> None:
    hub = Hub()
    await hub.create(_maintenance() | {"status": {"done": 7}})
    change = {"status": {"done": 3}, "spec": {"cancelled": True}}
    got = await hub.patch(_maintenance(), change, subresource="status")

    assert got.obj["status"] == {"done": 3, "selected": 0, "total": 0}
    assert "cancelled" not in got.obj["spec"]


def test_kubernetes_has_no_maintenances() -> None:
    scheme = build_scheme(Compat.KUBERNETES)

    assert scheme.find("sully.dev", "v1alpha1", "devicemaintenances") is None
