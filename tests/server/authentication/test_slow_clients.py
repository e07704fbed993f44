"""Clients that send little by little: bounded in time and size, and others do not notice."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import pytest

from serving import LONG, client_tls
from sully.app import ControlPlane
from sully.server import listen
from sully.server.http import exchange as exchange_module
from sully.server.requests import Ref

pytestmark = pytest.mark.asyncio(loop_scope="session")


@asynccontextmanager
async def dialled(
    plane: ControlPlane,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Open a bare connection as an administrator."""
    context: ssl.SSLContext = client_tls(plane, "slow", ("system:masters",))
    host, port = plane.url.removeprefix("https://").split(":")
    async with asyncio.timeout(LONG):
        reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
        try:
            yield reader, writer
        finally:
            writer.close()


HEAD = b"GET /version HTTP/1.1\r\nhost: x\r\n"
STALLED = {
    "nothing at all": b"",
    "half a head": HEAD,
    "half a second head": HEAD + b"\r\n" + HEAD,
}


@pytest.mark.parametrize("name", STALLED)
async def test_a_head_that_does_not_come_ends_the_connection(
    name: str, monkeypatch: pytest.MonkeyPatch, shared_plane: ControlPlane
) -> None:
    monkeypatch.setattr(listen, "HEAD_SECONDS", 0.05)
    async with dialled(shared_plane) as (reader, writer):
        writer.write(STALLED[name])
        await reader.read()


async def test_a_head_without_end_ends_the_connection(
    monkeypatch: pytest.MonkeyPatch, shared_plane: ControlPlane
) -> None:
    monkeypatch.setattr(listen, "MAX_HEAD", 10_000)
    async with dialled(shared_plane) as (reader, writer):
        writer.write(HEAD + b"x: ")
        for _ in range(20):
            writer.write(b"y" * 1000)
        assert await reader.read() == b""


async def test_a_body_that_does_not_come_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, shared_plane: ControlPlane
) -> None:
    monkeypatch.setattr(exchange_module, "BODY_SECONDS", 0.05)
    async with dialled(shared_plane) as (reader, writer):
        writer.write(
            b"POST /api/v1/namespaces HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
            b"content-length: 100\r\n\r\n{"
        )
        answer = await reader.read()

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"reason":"Timeout"' in answer
    assert b"connection: close" in answer


async def test_an_answer_that_nobody_reads_ends_the_connection(
    monkeypatch: pytest.MonkeyPatch, shared_plane: ControlPlane
) -> None:
    monkeypatch.setattr(listen, "UNREAD_SECONDS", 0.05)
    direct = shared_plane.direct()
    maps = Ref("", "v1", "configmaps", "default")
    for number in range(10):
        body = {"metadata": {"name": f"unread-{number}"}, "data": {"k": "x" * 900_000}}
        await direct.call("create", maps, body=body)
    connections = shared_plane._listener._server.server_state.connections
    async with dialled(shared_plane) as (reader, writer):
        writer.write(b"GET /api/v1/namespaces/default/configmaps HTTP/1.1\r\nhost: x\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        ours = next(
            each for each in connections if each.client == writer.get_extra_info("sockname")
        )
        while ours in connections:
            await shared_plane.api.clock.sleep(0.01)
        with suppress(ConnectionError):
            assert not (await reader.read()).endswith(b"0\r\n\r\n")
    for number in range(10):
        await direct.call("delete", replace(maps, name=f"unread-{number}"))


async def test_an_idle_connection_between_requests_stays(
    monkeypatch: pytest.MonkeyPatch, shared_plane: ControlPlane
) -> None:
    monkeypatch.setattr(listen, "HEAD_SECONDS", 0.05)
    async with dialled(shared_plane) as (reader, writer):
        for _ in range(2):
            writer.write(HEAD.replace(b"/version", b"/readyz") + b"\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            await reader.readuntil(b"\r\n\r\nok")
            # Longer than a head may take, so that a timer that was left over would show.
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.read(1), 0.1)
