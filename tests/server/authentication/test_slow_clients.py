"""Clients that send little by little: bounded in time and size, and others do not notice."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import replace

from serving import client_tls
from sully.app import Config, RunningControlPlane, running
from sully.server.net.connection import MAX_HEAD, ConnectionTimeouts
from sully.server.net.listen import SWEEP_SECONDS, ConnectionSettings
from sully.server.requests import ResourceRef
from sully.testing.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")


@asynccontextmanager
async def dialled(
    plane: RunningControlPlane,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Open a bare connection as an administrator."""
    context: ssl.SSLContext = client_tls(plane, "slow", ("system:masters",))
    host, port = plane.url.removeprefix("https://").split(":")
    async with asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
        try:
            yield reader, writer
        finally:
            # Not close(): with TLS that ends only when the server has answered.
            writer.transport.abort()


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def hasty_plane(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[RunningControlPlane]:
    """Run a control plane that waits for nobody; being idle is all it allows for long."""
    timeouts = ConnectionTimeouts(head=1.0, body=0.1, unread=0.1, discard=0.1, closing=0.1)
    config = Config(
        data_dir=tmp_path_factory.mktemp("hasty"),
        port=0,
        store="memory",
        connections=ConnectionSettings(timeouts=timeouts),
    )
    async with running(config) as plane:
        yield plane


HEAD = b"GET /version HTTP/1.1\r\nhost: x\r\n"
POST = b"POST /api/v1/namespaces HTTP/1.1\r\nhost: x\r\n"
WATCH = b"GET /api/v1/namespaces?watch=1 HTTP/1.1\r\nhost: x\r\n"
WATCH_DEFAULT = (
    b"GET /api/v1/namespaces/default/limitranges?watch=1&allowWatchBookmarks=1&sendInitialEvents=1"
    b"&resourceVersionMatch=NotOlderThan HTTP/1.1\r\nhost: x\r\n"
)
STALLED = {
    "nothing at all": b"",
    "half a head": HEAD,
    "half a second head": HEAD + b"\r\n" + HEAD,
    "half a body": POST + b"content-length: 100\r\n\r\n{",
    "half a chunk": POST + b"transfer-encoding: chunked\r\n\r\nffff\r\n{",
    "half a trailer": POST + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nx-trailer: ",
    "half a body of a watch": WATCH + b"content-length: 100\r\n\r\n",
    "half a body of a page": HEAD + b"content-length: 100\r\n\r\n",
    "half a body of a HEAD": HEAD.replace(b"GET", b"HEAD") + b"content-length: 100\r\n\r\n",
    "a body that waits for a word": POST + b"content-length: 9\r\nexpect: 100-continue\r\n\r\n",
    "an old version": HEAD.replace(b"1.1", b"1.0") + b"\r\n",
}


@pytest.mark.parametrize("name", STALLED)
async def test_what_does_not_come_ends_the_connection(
    name: str, hasty_plane: RunningControlPlane
) -> None:
    async with dialled(hasty_plane) as (reader, writer):
        writer.write(STALLED[name])
        await reader.read()


async def test_a_handshake_that_does_not_come_ends_the_connection(tmp_path: Path) -> None:
    settings = ConnectionSettings(timeouts=ConnectionTimeouts(handshake=0.1))
    config = Config(data_dir=tmp_path, port=0, store="memory", connections=settings)
    async with running(config) as plane, asyncio.timeout(PATIENCE):
        host, port = plane.url.removeprefix("https://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()


@asynccontextmanager
async def ended_by_the_test(
    folder: Path,
) -> AsyncIterator[tuple[RunningControlPlane, set[Any], AsyncExitStack]]:
    """Run a control plane that waits for no request when it stops; yield its connections, too."""
    settings = ConnectionSettings(drain=0)
    config = Config(data_dir=folder, port=0, store="memory", connections=settings)
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(running(config))
        yield plane, plane._listener._server.server_state.connections, stack


async def test_a_request_that_does_not_end_is_closed_with_the_server(tmp_path: Path) -> None:
    async with ended_by_the_test(tmp_path) as (plane, connections, stack), dialled(plane) as ours:
        ours[1].write(STALLED["half a body"])
        while not any(connection.cycle for connection in connections):  # noqa: ASYNC110 - it notifies nobody
            await asyncio.sleep(0.01)
        await stack.aclose()

        assert connections == set()


async def test_a_client_that_does_not_end_tls_is_closed_with_the_server(tmp_path: Path) -> None:
    async with ended_by_the_test(tmp_path) as (plane, connections, stack), dialled(plane) as ours:
        reader, writer = ours
        writer.write(HEAD.replace(b"/version", b"/readyz") + b"\r\n")
        await reader.readuntil(b"\r\n\r\nok")
        # It reads nothing more, so it does not learn that the server closes the connection.
        reader._transport.pause_reading()  # type: ignore[attr-defined]  # streams offer no other way
        next(
            connection
            for connection in connections
            if connection.client == ours[1].get_extra_info("sockname")
        ).expire()
        await stack.aclose()

        assert connections == set()


DRIBBLED = {
    "empty lines": (b"", b"\r\n"),
    "empty lines after a request": (HEAD + b"\r\n", b"\r\n"),
    "a head": (HEAD, b"x-a: b\r\n"),
    "a body": (POST + b"content-length: 100000\r\n\r\n", b"x"),
    "chunks": (POST + b"transfer-encoding: chunked\r\n\r\n", b"1\r\n{\r\n"),
    "trailers": (POST + b"transfer-encoding: chunked\r\n\r\n0\r\n", b"x-a: b\r\n"),
}


@pytest.mark.parametrize("name", DRIBBLED)
async def test_bytes_do_not_put_off_the_end(name: str, tmp_path: Path) -> None:
    first, more = DRIBBLED[name]
    timeouts = ConnectionTimeouts(head=0.1, body=0.1, idle=0.1, discard=0.1, closing=0.1)
    settings = ConnectionSettings(timeouts=timeouts)
    config = Config(data_dir=tmp_path, port=0, store="memory", connections=settings)
    async with running(config) as plane, dialled(plane) as (reader, writer):
        writer.write(first)
        ended = asyncio.create_task(reader.read())
        while not ended.done():
            writer.write(more)
            await asyncio.wait([ended], timeout=0.02)


async def test_a_head_without_end_ends_the_connection(shared_plane: RunningControlPlane) -> None:
    async with dialled(shared_plane) as (reader, writer):
        writer.write(HEAD + b"x: ")
        for _ in range(MAX_HEAD // 1000 + 500):
            writer.write(b"y" * 1000)
        with contextlib.suppress(ConnectionResetError):
            assert (await reader.read())[:12] in (b"", b"HTTP/1.1 431")


async def test_requests_sent_ahead_are_answered_in_order(shared_plane: RunningControlPlane) -> None:
    last = HEAD + b"connection: close\r\n\r\n"
    async with dialled(shared_plane) as (reader, writer):
        writer.write((HEAD.replace(b"version", b"readyz") + b"\r\n") * 9 + last)
        answer = await reader.read()

    assert answer.count(b"HTTP/1.1 200 OK") == 10
    assert answer.rpartition(b"HTTP/1.1")[2].rstrip().endswith(b"}")


async def test_a_watch_with_requests_behind_it_ends_with_the_connection(
    shared_plane: RunningControlPlane,
) -> None:
    watches: dict[Any, str] = shared_plane.api.watcher._open

    def ours() -> list[Any]:
        # Controllers begin watches at any time, but not of this namespace.
        return [watch for watch in watches if watch._namespace == "default"]

    async with dialled(shared_plane) as (reader, writer):
        writer.write(WATCH_DEFAULT + b"\r\n" + HEAD + b"\r\n")
        await reader.readuntil(b"BOOKMARK")
        assert len(ours()) == 1
    async with asyncio.timeout(PATIENCE):
        while ours():
            await shared_plane.api.clock.sleep(0.01)


KEPT = {
    "a body that is not wanted": b"content-length: 2\r\n\r\n{}",
    "chunks that are not wanted": b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("name", KEPT)
async def test_a_refused_request_keeps_the_connection(
    name: str, shared_plane: RunningControlPlane
) -> None:
    head = b"POST /api/v1/nothings HTTP/1.1\r\nhost: x\r\n"
    first, empty, rest = KEPT[name].partition(b"\r\n\r\n")
    async with dialled(shared_plane) as (reader, writer):
        for _ in range(2):
            # As most clients write it: the body in a packet of its own.
            writer.write(head + first + empty)
            await asyncio.sleep(0)
            writer.write(rest)
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 404 ")
            assert b"connection: close" not in answer
            length = int(answer.partition(b"content-length: ")[2].split()[0])
            await reader.readexactly(length)


async def test_a_body_that_does_not_come_is_not_waited_for(
    tmp_path: Path,
) -> None:
    settings = ConnectionSettings(timeouts=ConnectionTimeouts(whole_body=0.05))
    config = Config(data_dir=tmp_path, port=0, store="memory", connections=settings)
    async with running(config) as plane, dialled(plane) as (reader, writer):
        writer.write(
            b"POST /api/v1/namespaces HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
            b"content-length: 100\r\n\r\n{"
        )
        answer = await reader.read()

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"reason":"Timeout"' in answer
    assert b"connection: close" in answer


LARGE = 30
"""Objects of nearly a megabyte: more than the buffers of the system can hold."""


async def test_an_answer_that_nobody_reads_ends_the_connection(
    hasty_plane: RunningControlPlane,
) -> None:
    direct = hasty_plane.direct()
    maps = ResourceRef("", "v1", "configmaps", "default")
    for number in range(LARGE):
        body = {"metadata": {"name": f"unread-{number}"}, "data": {"k": "x" * 900_000}}
        await direct.call("create", maps, body=body)
    connections: set[Any] = hasty_plane._listener._server.server_state.connections
    async with dialled(hasty_plane) as (reader, writer):
        writer.write(b"GET /api/v1/namespaces/default/configmaps HTTP/1.1\r\nhost: x\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        ours = next(
            connection
            for connection in connections
            if connection.client == writer.get_extra_info("sockname")
        )
        while ours in connections:
            await hasty_plane.api.clock.sleep(0.01)
        with contextlib.suppress(ConnectionError):
            assert not (await reader.read()).endswith(b"0\r\n\r\n")
    for number in range(LARGE):
        await direct.call("delete", replace(maps, name=f"unread-{number}"))


async def test_an_idle_connection_between_requests_stays(hasty_plane: RunningControlPlane) -> None:
    async with dialled(hasty_plane) as (reader, writer):
        for _ in range(2):
            writer.write(HEAD.replace(b"/version", b"/readyz") + b"\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            await reader.readuntil(b"\r\n\r\nok")
            # Longer than a head may take, so that a deadline that was left over would show.
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.read(1), 1.0 + 1.2 * SWEEP_SECONDS)
