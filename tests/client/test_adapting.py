"""Client commands find devices where a server has them, and never send what it would drop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

import manifests
from client.foreign import serving
from servers import answering, made, recorded, with_kinds
from sully.client.discovery.adapting import AdaptingTransport
from sully.client.kubeconfig.access import Access
from sully.client.kubeconfig.kubeconfig import load_kubeconfig
from sully.client.options import WriteOptions
from sully.client.transport import Key
from sully.machinery.errors import BadRequest, NotFound
from sully.testing.cluster import in_process
from sully.views.kinds import CONSUMER_PODS, PATCHES, RULES, SLICES

OLD = with_kinds(
    made(36, devices=["v1"], rules="v1beta2", status=True),
    "sully.dev",
    "v1alpha1",
    "resourceslicepatches",
)
RULES_AT = "/apis/resource.k8s.io/v1beta2/devicetaintrules"
PATCHES_AT = "/apis/sully.dev/v1alpha1/resourceslicepatches"
EMPTY = {"metadata": {"resourceVersion": "1"}, "items": []}


@dataclass
class Asked:
    documents: Mapping[str, Any]
    requests: list[str] = field(default_factory=list)

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(f"{request.method} {request.path}")
        if request.method != "GET":
            return web.json_response(await request.json(), status=201)
        if "watch" in request.query:
            seen = {"metadata": {"resourceVersion": "2"}}
            return web.json_response({"type": "BOOKMARK", "object": seen})
        return await answering(self.documents)(request)


@asynccontextmanager
async def adapting(documents: Mapping[str, Any]) -> AsyncIterator[tuple[AdaptingTransport, Asked]]:
    asked = Asked(documents)
    async with serving(asked) as url:
        transport = AdaptingTransport(Access(server=url))
        async with transport:
            yield transport, asked


async def test_devices_are_read_where_they_are() -> None:
    async with adapting({**OLD, RULES_AT: EMPTY, PATCHES_AT: EMPTY}) as (transport, asked):
        pages = await asyncio.gather(transport.list(RULES), transport.list(PATCHES))
        async with aclosing(transport.watch(RULES)) as events:
            assert [event.resource_version async for event in events] == ["2"]

    assert [page.items for page in pages] == [[], []]
    assert asked.requests.count("GET /version") == 2  # is it ours, and then everything
    assert f"GET {RULES_AT}" in asked.requests


async def test_other_kinds_need_no_question() -> None:
    async with adapting(recorded()) as (transport, asked):
        with pytest.raises(NotFound):
            await transport.get(CONSUMER_PODS, Key("n", "a"))

    assert asked.requests == ["GET /api/v1/namespaces/n/pods/a"]


async def test_our_own_server_is_asked_once() -> None:
    async with in_process() as plane:
        access = load_kubeconfig([plane.kubeconfig], required=True).access()
        async with AdaptingTransport(access) as transport:
            result = await asyncio.gather(transport.list(SLICES), transport.list(PATCHES))

    assert [list(page.items) for page in result] == [[], []]


def rule(selector: dict[str, Any], **taint: Any) -> dict[str, Any]:
    return manifests.rule("r", key="k", selector=selector, taint=taint)


async def test_what_would_be_dropped_is_not_sent() -> None:
    body = rule({"deviceClassName": "c"}, evictionsPerSecond=1)
    async with adapting(recorded()) as (transport, asked):
        with pytest.raises(BadRequest) as create:
            await transport.create(RULES.read_as(dict), body)
        with pytest.raises(BadRequest) as change:
            await transport.patch(RULES.read_as(dict), Key("", "r"), {"spec": body["spec"]})
        await transport.create(RULES.read_as(dict), body, "", WriteOptions(dry_run=True))
        await transport.create(RULES.read_as(dict), rule({"driver": "d"}))

    assert str(create.value) == str(change.value)
    assert create.value.message == (
        "v1.37.0: spec.deviceSelector.deviceClassName: the server would drop it, and the rule would"
        " select far too much; spec.taint.evictionsPerSecond: the server would drop it"
    )
    writes = [request for request in asked.requests if not request.startswith("GET")]
    assert writes == ["POST /apis/resource.k8s.io/v1/devicetaintrules"] * 2


async def test_a_pause_is_for_the_command_to_judge() -> None:
    paused = {"metadata": {"annotations": {"sully.dev/paused": "lunch"}}}
    async with adapting(recorded()) as (transport, asked):
        await transport.patch(RULES.read_as(dict), Key("", "r"), paused)

    assert asked.requests[-1].startswith("PATCH")
