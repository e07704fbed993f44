"""Traces of evictions arrive at a collector."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from controllers.world import ACCOUNTS, PODS, Obj, World, running
from manifests import DRIVER, claim_spec, gpus, pod_spec, rule, slice_
from sully.client.options import DeleteOptions
from sully.client.transport import Key, Kind
from sully.controllers.framework.manager import Manager
from sully.controllers.notifications.tracing import OPEN_MAX, EvictionTraces
from sully.views import kinds
from sully.views.devices.inventory import Inventory
from sully.views.snapshot.kinds import PODS as TYPED_PODS

CLAIMS: Kind[Obj] = kinds.CLAIMS.read_as(dict)
RULES: Kind[Obj] = kinds.RULES.read_as(dict)
SLICES: Kind[Obj] = kinds.SLICES.read_as(dict)
MARKED = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByDeviceTaintManager"}


class Collector:
    """An OpenTelemetry collector that keeps the spans that it gets."""

    def __init__(self) -> None:
        self.spans: asyncio.Queue[Any] = asyncio.Queue()
        self.codes: list[int] = []
        self.asked = asyncio.Event()

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.asked.set()
        if self.codes:
            return web.Response(status=self.codes.pop())
        for span in body["resourceSpans"][0]["scopeSpans"][0]["spans"]:
            self.spans.put_nowait(span)
        return web.json_response({})

    async def names(self, count: int) -> list[str]:
        return [(await self.spans.get())["name"] for _ in range(count)]


@asynccontextmanager
async def traced(world: World, open_max: int = OPEN_MAX) -> AsyncIterator[Collector]:
    collector, app = Collector(), web.Application()
    app.router.add_post("/v1/traces", collector.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    manager = Manager(world.transport("informers"), clock=world.clock)
    traces = EvictionTraces(
        f"http://127.0.0.1:{runner.addresses[0][1]}/",
        pods=manager.informer(TYPED_PODS),
        claims=manager.informer(kinds.CLAIMS),
        inventory=Inventory(
            slices=manager.informer(kinds.SLICES),
            classes=manager.informer(kinds.CLASSES),
            rules=manager.informer(kinds.RULES),
        ),
        clock=world.clock,
        open_max=open_max,
    )
    manager.add_runnable(traces.run)
    try:
        async with running(manager):
            await world.settle()
            yield collector
    finally:
        await runner.cleanup()


@pytest.fixture
async def world() -> World:
    world = World()
    await world.namespace("a")
    await world.create(ACCOUNTS, "a", "default")
    return world


async def evict(world: World, name: str, **metadata: Any) -> None:
    await world.create(PODS, "a", name, spec=pod_spec("x", nodeName="n1"), metadata=metadata)
    patch = {"status": {"conditions": [MARKED]}}
    await world.admin.patch(PODS, Key("a", name), patch, subresource="status")
    await world.settle()


async def delete(world: World, name: str) -> None:
    await world.admin.delete(PODS, Key("a", name), DeleteOptions(grace_period_seconds=0))
    await world.settle()


async def test_from_the_taint_to_the_replacement(world: World) -> None:
    await world.admin.create(SLICES, slice_("s", "n1", *gpus(1)))
    await world.create(CLAIMS, "a", "x", spec=claim_spec("gpu"))
    result = {"request": "r", "driver": DRIVER, "pool": "n1", "device": "gpu-0"}
    patch = {"status": {"allocation": {"devices": {"results": [result]}}}}
    await world.admin.patch(CLAIMS, Key("a", "x"), patch, subresource="status")
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u"}
    owners = [owner | {"controller": True}]
    async with traced(world) as collector:
        await world.admin.create(RULES, rule("bad", "NoExecute"))
        await world.settle()
        world.clock.advance(5)
        await evict(world, "p", ownerReferences=owners)
        await delete(world, "p")
        spec = pod_spec("x", nodeName="n1")
        await world.create(PODS, "a", "q", spec=spec, metadata={"ownerReferences": owners})
        root = await collector.spans.get()
        names = await collector.names(3)
    attributes = {one["key"]: one["value"]["stringValue"] for one in root["attributes"]}
    assert (root["name"], names) == ("eviction", ["taint", "terminate", "replace"])
    assert attributes["sully.source"] == "DeviceTaintRule/bad"
    assert attributes["sully.taint"] == "example.com/bad:NoExecute"


async def test_a_pod_without_a_controller_ends_its_trace_and_failures_lose_only_one(
    world: World,
) -> None:
    async with traced(world) as collector:
        collector.codes = [503]
        await evict(world, "p")
        await delete(world, "p")
        await collector.asked.wait()
        await evict(world, "q")
        await delete(world, "q")
        names = await collector.names(2)
    assert names == ["eviction", "terminate"]
    assert collector.spans.empty()


async def test_what_is_never_replaced_is_exported_at_last(world: World) -> None:
    async with traced(world, open_max=1) as collector:
        await evict(world, "p")
        await evict(world, "q")
        assert await collector.names(1) == ["eviction"]
        await delete(world, "p")
