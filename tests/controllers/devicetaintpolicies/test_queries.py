"""Prometheus as a source: queried beside the reconciles, over a real socket, and never trusted."""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from controllers.devicetaintpolicies.policing import (
    POLICIES,
    change,
    condition,
    controller,
    device,
    effects,
    policy,
    publish,
)
from controllers.world import World
from sully.api.sully.types import DeviceTaintPolicyPrometheus
from sully.client.http.prometheus import query
from sully.client.transport import Key
from sully.controllers.devicetaintpolicies.queries import PrometheusQueries
from sully.controllers.framework.controller import Controller
from sully.controllers.framework.manager import Manager
from sully.domain.devicepolicies.sources import prometheus
from sully.domain.devicepolicies.sources.prometheus import QueryError
from sully.views import kinds

FIRST = "node-1/gpu-0"
STEPS = [{"effect": "NoSchedule"}]


def answer(*values: int | None) -> bytes:
    samples = ",".join(
        f'{{"metric": {{"UUID": "GPU-{number}"}}, "value": [0, "{value}"]}}'
        for number, value in enumerate(values)
        if value is not None
    )
    data = f'{{"resultType": "vector", "result": [{samples}]}}'
    return f'{{"status": "success", "data": {data}}}'.encode()


class Prometheus:
    """Answers what a test wants."""

    def __init__(self) -> None:
        self.body, self.problem, self.asked = answer(0, 0), "", 0
        self.error: Exception | None = None
        self.unreachable: set[str] = set()
        """The URLs of servers that never answer."""
        self.waiting = 0

    async def __call__(self, source: DeviceTaintPolicyPrometheus) -> bytes:
        self.asked += 1
        if source.url in self.unreachable:
            self.waiting += 1
            try:
                await asyncio.Event().wait()
            finally:
                self.waiting -= 1
        if self.error is not None:
            raise self.error
        if self.problem:
            raise QueryError(self.problem)
        return self.body

    def controller(self, world: World, manager: Manager) -> Controller:
        queries = PrometheusQueries(self, world.clock)
        manager.add_runnable(queries.run)
        return controller(world, manager, queries)


SOURCE = {"name": "dcgm", "prometheus": {"url": "http://prometheus", "query": "up"}}


async def test_from_a_sample_to_a_taint_and_back(world: World) -> None:
    there = Prometheus()
    await policy(world, sources=[SOURCE], steps=STEPS)
    await publish(world, device(0), device(1))
    async with world.controlled(there.controller):
        await world.pass_time(60)
        assert await effects(world) == {}
        assert (await condition(world, "SourceProblem"))[0] == "False"
        there.body = answer(79, 0)
        await world.pass_time(31)
        assert await effects(world) == {FIRST: "NoSchedule"}
        # A server that is unreachable, or that lost the device, changes nothing.
        there.problem = "no route"
        await world.pass_time(120)
        assert await effects(world) == {FIRST: "NoSchedule"}
        text = "source dcgm: the query failed: no route"
        assert text in (await condition(world, "SourceProblem"))[1]
        there.problem, there.body = "", answer(None, 0)
        await world.pass_time(120)
        assert await effects(world) == {FIRST: "NoSchedule"}
        assert "returns no sample" in (await condition(world, "SourceProblem"))[1]
        there.body = answer(0, 0)
        await world.pass_time(60)
        assert await effects(world) == {}


async def test_a_policy_without_queries_asks_nobody(world: World) -> None:
    there = Prometheus()
    await policy(world, sources=[SOURCE], steps=STEPS)
    await publish(world, device(0))
    async with world.controlled(there.controller):
        await world.pass_time(31)
        assert there.asked == 2
        await change(world, sources=[{"name": "gone", "notPublished": True}])
        await world.pass_time(300)
        assert there.asked == 2


async def test_a_server_that_never_answers_stops_only_its_query(world: World) -> None:
    there = Prometheus()
    other = {"name": "other", "prometheus": {"url": "http://other", "query": "up"}}
    await policy(world, sources=[SOURCE], steps=STEPS)
    await policy(world, "other-source", sources=[other], taint={"key": "example.com/other"})
    await publish(world, device(0), device(1))
    async with world.controlled(there.controller):
        await world.pass_time(31)
        there.unreachable, there.body = {"http://other"}, answer(79, 0)
        await world.pass_time(61)
        assert await effects(world) == {FIRST: "NoSchedule"}
        assert there.waiting == 1
        await world.admin.delete(POLICIES, Key("", "other-source"))
        await world.settle()
        assert there.waiting == 0
        there.body = answer(0, 0)
        await world.pass_time(61)
        assert await effects(world) == {}


@pytest.mark.parametrize(("value", "tainted"), [(79, {FIRST: "NoSchedule"}), (0, {})])
async def test_an_old_result_is_neither_faulty_nor_healthy(
    world: World, value: int, tainted: dict[str, str]
) -> None:
    there = Prometheus()
    there.body = answer(value, 0)
    await policy(world, sources=[SOURCE], steps=STEPS)
    await publish(world, device(0), device(1))
    async with world.controlled(there.controller):
        await world.pass_time(10)
        there.unreachable = {"http://prometheus"}
        await world.pass_time(55)
        assert (await condition(world, "SourceProblem"))[0] == "False"
        await world.pass_time(10)
        assert "too old" in (await condition(world, "SourceProblem"))[1]
        assert await effects(world) == tainted


async def test_a_result_that_returns_after_it_was_too_old_counts(world: World) -> None:
    there = Prometheus()
    gate = asyncio.Event()

    async def fetch(source: DeviceTaintPolicyPrometheus) -> bytes:
        there.asked += 1
        if there.asked == 2:
            await gate.wait()
        return there.body

    def make(world: World, manager: Manager) -> Controller:
        queries = PrometheusQueries(fetch, world.clock)
        manager.add_runnable(queries.run)
        return controller(world, manager, queries)

    await policy(world, sources=[SOURCE], steps=STEPS)
    await publish(world, device(0), device(1))
    async with world.controlled(make):
        await world.pass_time(80)
        assert "too old" in (await condition(world, "SourceProblem"))[1]
        gate.set()
        await world.pass_time(5)
        assert (await condition(world, "SourceProblem"))[0] == "False"


NESTED = b'{"status": "success", "x": ' + b"[" * 100_000


@pytest.mark.parametrize("error", [RuntimeError("secret"), RecursionError(), None])
async def test_nothing_that_a_server_does_affects_another_query(
    world: World, error: Exception | None
) -> None:
    there = Prometheus()
    there.error, there.body = error, NESTED
    want = (
        "the response is nested too deeply"
        if error is None
        else f"unexpected {type(error).__name__}"
    )
    queries = PrometheusQueries(there, world.clock)
    event = asyncio.Event()
    queries.notify = lambda _: event.set()
    await policy(world, sources=[SOURCE], steps=STEPS)
    stored = await world.admin.get(kinds.DEVICE_POLICIES, Key("", "faulty"))
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(queries.run())
        queries.track(Key("", "faulty"), stored)
        await event.wait()
        assert queries.results(Key("", "faulty"))["dcgm"].problem == f"the query failed: {want}"
        assert not running.done()
        running.cancel()


@asynccontextmanager
async def serving(handler: web.Handler) -> AsyncIterator[str]:  # type: ignore[name-defined]  # aiohttp.typedefs
    app = web.Application()
    app.router.add_get("/{path:.*}", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


async def test_over_a_socket() -> None:
    async def respond(request: web.Request) -> web.Response:
        assert request.path == "/base/api/v1/query"
        assert request.query["query"] == 'up{a="b"}'
        assert "Authorization" not in request.headers
        return web.Response(body=answer(1))

    async with serving(respond) as url:
        source = DeviceTaintPolicyPrometheus(url=f"{url}/base/", query='up{a="b"}')
        assert await query(source) == answer(1)


async def test_what_a_server_must_not_do() -> None:
    async def respond(request: web.Request) -> web.Response:
        if request.path.startswith("/away"):
            raise web.HTTPFound("/api/v1/query")
        if request.path.startswith("/large"):
            return web.Response(body=b" " * (prometheus.BODY_MAX + 1))
        return web.Response(status=503, text="secret")

    async with serving(respond) as url:
        for path, want in (
            ("/away", "the server answered 302"),
            ("/large", "more than"),
            ("", "the server answered 503"),
        ):
            with pytest.raises(QueryError, match=want):
                await query(DeviceTaintPolicyPrometheus(url=url + path, query="up"))
    with pytest.raises(QueryError):
        await query(DeviceTaintPolicyPrometheus(url=url, query="up"))


async def test_a_name_of_a_link_local_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(*_: object, **__: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("169.254.169.254", 80))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(QueryError, match="host metadata has a link-local"):
        await query(DeviceTaintPolicyPrometheus(url="http://metadata", query="up"))
    with pytest.raises(QueryError, match="must not be a link-local"):
        await query(DeviceTaintPolicyPrometheus(url="http://[fe80::1]", query="up"))


async def test_what_another_server_stored() -> None:
    with pytest.raises(QueryError, match="must be an http or https URL"):
        await query(DeviceTaintPolicyPrometheus(url="ftp://p", query="up"))
    bundle = base64.b64encode(b"nonsense").decode()
    with pytest.raises(QueryError, match="no valid certificates"):
        await query(DeviceTaintPolicyPrometheus(url="https://p", query="up", ca_bundle=bundle))
