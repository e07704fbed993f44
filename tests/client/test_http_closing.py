"""A transport that is closed leaves no connection open, whatever the server does."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, aclosing
from pathlib import Path

import pytest

from client.foreign import KEY, A, Authority
from client.scripted import THINGS
from sully.client.http.transport import HttpTransport
from sully.client.kubeconfig.access import Access
from sully.testing.patience import PATIENCE

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT = json.dumps({"type": "ADDED", "object": A}).encode() + b"\n"
Serving = asyncio.Task[socket.socket]
Use = Callable[[HttpTransport, Serving], Awaitable[None]]


class StuckServer:
    """Answers one request and then reads nothing more, not even that the client ends TLS."""

    def __init__(self, tls: ssl.SSLContext, stack: ExitStack) -> None:
        self._tls = tls
        self._stack = stack
        self._listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self._listening.settimeout(PATIENCE)
        self.url = f"https://127.0.0.1:{self._listening.getsockname()[1]}"

    def serve(self, answer: bytes) -> socket.socket:
        """Answer the first request; return its connection, below TLS."""
        accepted, _ = self._listening.accept()
        accepted.settimeout(PATIENCE)
        secure = self._tls.wrap_socket(accepted, server_side=True)
        request = b""
        while not request.endswith(b"\r\n\r\n"):
            request += secure.recv(1 << 16)
        secure.sendall(answer)
        return self._stack.enter_context(socket.socket(fileno=secure.detach()))


def is_closed(connection: socket.socket) -> bool:
    """Report whether the other side has closed a connection."""
    connection.setblocking(False)
    try:
        while connection.recv(1 << 16):
            pass
    except BlockingIOError:
        return False
    except ConnectionResetError:
        pass
    return True


async def begin_a_watch(http: HttpTransport, _: Serving) -> None:
    async with aclosing(http.watch(THINGS)) as events:
        assert (await anext(events)).type == "ADDED"


async def give_up(http: HttpTransport, serving: Serving) -> None:
    asked = asyncio.create_task(http.get(THINGS, KEY))
    await asyncio.wait([asked, serving], return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    await asyncio.wait([asked])


CASES: dict[str, tuple[bytes, Use]] = {
    "a watch that was not read to its end": (
        HEAD + f"{len(EVENT):x}\r\n".encode() + EVENT + b"\r\n",
        begin_a_watch,
    ),
    "a request that was cancelled": (b"", give_up),
}


@pytest.mark.parametrize(("answer", "use"), CASES.values(), ids=CASES)
async def test_what_ended_early_is_closed(answer: bytes, use: Use, tmp_path: Path) -> None:
    authority = Authority()
    with ExitStack() as stack:
        server = StuckServer(authority.server_context(tmp_path), stack)
        serving = asyncio.create_task(asyncio.to_thread(server.serve, answer))
        access = Access(server=server.url, ca=authority.pem)
        async with HttpTransport(access, request_seconds=PATIENCE) as http:
            await use(http, serving)
            connection = await serving

        assert is_closed(connection)
