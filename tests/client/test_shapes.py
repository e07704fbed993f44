"""Devices in the shape of an older version: read as ours, sent as theirs, or refused by name."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import Any

import pytest
from aiohttp import web

from client.foreign import Foreign, connected, status
from sully.api.resource.types import ResourceClaim
from sully.client.discovery.capabilities import RelocatedTransport
from sully.client.options import PatchType, WriteOptions
from sully.client.transport import Key, Kind, UnreadableError
from sully.machinery.errors import BadRequest, Conflict
from sully.views.kinds import CLAIMS, CLASSES, PATCHES, SLICES

GROUP = "resource.k8s.io"
PLURALS = ("resourceslices", "resourceclaims", "resourceclaimtemplates", "deviceclasses")
MOVES = {(GROUP, plural): (GROUP, "v1beta1") for plural in PLURALS} | {
    (GROUP, "resourceslicepatches"): ("sully.dev", "v1alpha1")
}
TEMPLATES: Kind[dict[str, Any]] = Kind(
    GROUP, "v1", "resourceclaimtemplates", "ResourceClaimTemplate", dict
)
KEY = Key("team", "a")
META = {"name": "a", "namespace": "team", "resourceVersion": "7", "uid": "u"}
FLAT = {"name": "r", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}
DEEP = {
    "name": "r",
    "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2},
}
FIRST = {"name": "f", "firstAvailable": [{"name": "s", "deviceClassName": "gpu"}]}
_NODE = {"driver": "d", "nodeName": "n", "pool": {"name": "p", "resourceSliceCount": 1}}
OLD: dict[str, Any] = {
    "resourceslices": {"spec": {**_NODE, "devices": [{"name": "x", "basic": {"allNodes": True}}]}},
    "resourceclaims": {
        "spec": {"devices": {"requests": [FLAT, {**FIRST, "deviceClassName": ""}]}},
        "status": {"allocation": {"devices": {"results": []}}},
    },
    "resourceclaimtemplates": {"spec": {"spec": {"devices": {"requests": [FLAT]}}}},
    "deviceclasses": {"spec": {"selectors": [{"cel": {"expression": "true"}}]}},
}
NEW: dict[str, Any] = {
    "resourceslices": {"spec": {**_NODE, "devices": [{"name": "x", "allNodes": True}]}},
    "resourceclaims": {
        "spec": {"devices": {"requests": [DEEP, FIRST]}},
        "status": {"allocation": {"devices": {"results": []}}},
    },
    "resourceclaimtemplates": {"spec": {"spec": {"devices": {"requests": [DEEP]}}}},
    "deviceclasses": OLD["deviceclasses"],
}
KINDS: dict[str, Kind[Any]] = {
    item.plural: item.read_as(dict) for item in (SLICES, CLAIMS, TEMPLATES, CLASSES)
}


def kind_name(plural: str) -> dict[str, str]:
    return {"kind": KINDS[plural].kind, "apiVersion": f"{GROUP}/v1beta1"}


@pytest.mark.parametrize("plural", PLURALS)
async def test_objects_come_and_go_in_their_shapes(plural: str) -> None:
    kind = KINDS[plural]
    foreign = Foreign([{**kind_name(plural), "metadata": META, **OLD[plural]}])
    async with connected(foreign) as http:
        transport = RelocatedTransport(http, MOVES)
        got = await transport.get(kind, KEY)
        await transport.create(kind, {"metadata": META, **NEW[plural]})
        await transport.update(kind, {"metadata": META, **NEW[plural]})
        own = WriteOptions(field_manager="m")
        await transport.apply(kind, {"metadata": META, **NEW[plural]}, own)

    assert {name: got[name] for name in NEW[plural]} == NEW[plural]
    assert [request.line.split("/")[3] for request in foreign.requests] == ["v1beta1"] * 4
    for request in foreign.requests[1:]:
        assert {name: request.body[name] for name in OLD[plural]} == OLD[plural]
        assert request.body["apiVersion"] == f"{GROUP}/v1beta1"


async def test_lists_and_watches() -> None:
    item = {"metadata": META, **OLD["resourceclaims"]}
    page = {"metadata": {"resourceVersion": "9", "continue": "more"}, "items": [item]}
    events = [
        {"type": "ADDED", "object": item},
        {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "10"}}},
    ]
    lines = "".join(json.dumps(event) + "\n" for event in events)
    async with connected(Foreign([page, web.Response(text=lines)])) as http:
        transport = RelocatedTransport(http, MOVES)
        listed = await transport.list(CLAIMS)
        async with aclosing(transport.watch(CLAIMS)) as watch:
            seen = [event async for event in watch]

    assert (listed.resource_version, listed.continue_token) == ("9", "more")
    for claim in (listed.items[0], seen[0].object):
        assert isinstance(claim, ResourceClaim)
        request, *_ = claim.spec.devices.requests or ()
        assert request.exactly is not None
        assert request.exactly.count == 2
    assert [(item.type, item.resource_version) for item in seen] == [
        ("ADDED", "7"),
        ("BOOKMARK", "10"),
    ]


WITHIN = {"spec": {"devices": {"requests": [DEEP]}}}
PARTS: dict[str, tuple[Any, PatchType, bool]] = {
    "the status": ({"status": {"reservedFor": []}}, PatchType.MERGE, True),
    "metadata": ({"metadata": {"finalizers": []}}, PatchType.MERGE, True),
    "constraints": ({"spec": {"devices": {"constraints": []}}}, PatchType.MERGE, True),
    "requests": (WITHIN, PatchType.MERGE, False),
    "requests by strategy": (WITHIN, PatchType.STRATEGIC, False),
    "no requests": ({"spec": {"devices": {"requests": None}}}, PatchType.MERGE, True),
    "a step elsewhere": (
        [{"op": "add", "path": "/metadata/labels/a", "value": "b"}],
        PatchType.JSON,
        True,
    ),
    "a step below": (
        [{"op": "add", "path": "/spec/devices/requests/0", "value": DEEP}],
        PatchType.JSON,
        False,
    ),
    "a step above": ([{"op": "replace", "path": "/spec", "value": {}}], PatchType.JSON, False),
    "a step beside": (
        [{"op": "remove", "path": "/spec/devices/requestsOfOthers"}],
        PatchType.JSON,
        True,
    ),
    "a copy from there": (
        [{"op": "copy", "from": "/spec/devices/requests/0", "path": "/metadata/x"}],
        PatchType.JSON,
        False,
    ),
}


@pytest.mark.parametrize(("patch", "form", "goes"), PARTS.values(), ids=PARTS.keys())
async def test_parts_of_objects(patch: Any, form: PatchType, goes: bool) -> None:
    foreign = Foreign([{"metadata": META, **OLD["resourceclaims"]}])
    async with connected(foreign) as http:
        transport = RelocatedTransport(http, MOVES)
        if goes:
            await transport.patch(KINDS["resourceclaims"], KEY, patch, form)
            assert foreign.requests[0].body == patch
            return
        with pytest.raises(BadRequest, match=r"spec\.devices\.requests has another shape"):
            await transport.patch(KINDS["resourceclaims"], KEY, patch, form)
    assert foreign.requests == []


async def test_refusals_and_nonsense() -> None:
    nonsense = {"metadata": META, "spec": {"devices": [1]}}
    foreign = Foreign([status(409, reason="Conflict", message="no"), nonsense])
    async with connected(foreign) as http:
        transport = RelocatedTransport(http, MOVES)
        with pytest.raises(Conflict):
            await transport.get(SLICES, Key("", "a"))
        with pytest.raises(UnreadableError, match="have an unknown shape"):
            await transport.get(SLICES, Key("", "a"))


async def test_amounts_of_a_patch_are_text() -> None:
    policy = {"default": 1, "validValues": [1, "2"], "validRange": {"min": 1, "step": "500m"}}
    capacity = {"d/x": {"value": 40, "requestPolicy": policy}, "d/y": {"value": "1Gi"}}
    spec = {"devices": {"capacity": capacity, "priority": 3}}
    bare = {"metadata": META, "spec": {"devices": {"priority": 3}}}
    async with connected(Foreign([{"metadata": META, "spec": spec}, bare])) as http:
        transport = RelocatedTransport(http, MOVES)
        patch = await transport.get(PATCHES, Key("", "a"))
        plain = await transport.get(PATCHES, Key("", "a"))

    devices = patch.spec.devices
    assert (devices.priority, plain.spec.devices.priority) == (3, 3)
    assert [item.value for item in devices.capacity.values()] == ["40", "1Gi"]
    asked = devices.capacity["d/x"].request_policy
    assert asked is not None
    assert (asked.default, asked.valid_values) == ("1", ("1", "2"))
    assert asked.valid_range is not None
    assert (asked.valid_range.minimum, asked.valid_range.step) == ("1", "500m")
