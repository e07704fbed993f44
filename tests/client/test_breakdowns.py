"""Why no answer came, in plain words: servers that behave badly, and what is reported of them."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey

from sully.client.http.connection_errors import describe_connection_error
from sully.client.http.transport import HttpTransport
from sully.client.kubeconfig.access import Access
from sully.client.transport import Kind, UnreachableError

PODS: Kind[dict[str, Any]] = Kind("", "v1", "pods", "Pod", dict)
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
HALF = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"ff\r\n{\r\n"
)


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.close()


async def break_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(HALF)
    await writer.drain()
    writer.close()


async def speak_no_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    await writer.drain()
    writer.close()


SERVERS: dict[str, tuple[str, Talk, str]] = {
    "it hangs up": ("http", hang_up, "the server closed the connection"),
    "its answer breaks off": ("http", break_off, "the response was incomplete"),
    "it speaks no TLS": ("https", speak_no_tls, "TLS handshake failed"),
}


@pytest.mark.parametrize(("scheme", "talk", "want"), SERVERS.values(), ids=SERVERS)
async def test_a_server_that_does_not_answer(scheme: str, talk: Talk, want: str) -> None:
    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        error = await asked(f"{scheme}://127.0.0.1:{port}")

    assert error.why == want
    assert str(error) == f"{scheme}://127.0.0.1:{port}/api/v1/pods: {want}"


async def test_a_server_that_is_not_there() -> None:
    assert (await asked("http://127.0.0.1:1")).why == "connection refused"
    assert (await asked("http://nobody.invalid")).why == "host nobody.invalid not found"


async def asked(url: str) -> UnreachableError:
    """Return what a user gets to hear who asks a server."""
    async with HttpTransport(Access(server=url)) as transport:
        with pytest.raises(UnreachableError) as caught:
            await transport.list(PODS)
    return caught.value


KEY = ConnectionKey("host", 443, is_ssl=True, ssl=True, proxy=None, proxy_auth=None,
                    proxy_headers_hash=None)  # fmt: skip


def untrusted(message: str) -> Exception:
    error = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] (_ssl.c:1006)")
    error.verify_message = message
    return aiohttp.ClientConnectorCertificateError(KEY, error)


WORDS: dict[str, tuple[Exception, str]] = {
    "too late": (TimeoutError(), "timed out"),
    "a certificate of another user": (
        untrusted("self-signed certificate"),
        "its certificate is not trusted: self-signed certificate",
    ),
    "a certificate, and nobody reports why": (untrusted(""), "its certificate is not trusted"),
    "the message of the system": (ConnectionResetError(104, "x"), "connection reset by peer"),
    "an error without a number": (OSError("all of them failed"), "all of them failed"),
    "nothing but a name": (aiohttp.ClientError(), "ClientError"),
}


@pytest.mark.parametrize(("error", "want"), WORDS.values(), ids=WORDS)
def test_plainly(error: Exception, want: str) -> None:
    assert describe_connection_error(error) == want
