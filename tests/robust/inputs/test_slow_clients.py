"""Clients that are slow, idle or many cost little, and nobody else notices them."""

import contextlib
import resource
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hostile.requests import CONFIG_MAPS, config_map
from hostile.target import parse, receive
from robust.inputs.clients import Client
from robust.inputs.memory import Memory
from sully.testing.cluster import Process, process
from sully.testing.patience import PATIENCE

pytestmark = pytest.mark.slow
MANY = 150
KIBI_EACH = 256
"""What a connection may cost, TLS included."""
SOON = 15.0
"""Whoever had to wait for the others would wait for longer than any client does."""


@pytest.fixture(scope="module")
def up() -> Iterator[Process]:
    """Run a server."""
    with process("--store", "memory", "--log-level", "error") as server:
        yield server


@pytest.fixture
def client(up: Process, tmp_path: Path) -> Client:
    """Return a user who behaves."""
    return Client(up.kubeconfig, tmp_path)


@pytest.fixture(autouse=True)
def files() -> Iterator[None]:
    """Let this process have as many connections as it needs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def no_handshake(client: Client) -> socket.socket:
    place = urlsplit(client.url)
    return socket.create_connection((place.hostname, place.port), timeout=PATIENCE)


def idle(client: Client) -> socket.socket:
    return client.connect()


def half_a_head(client: Client) -> socket.socket:
    connection = client.connect()
    connection.sendall(f"GET {CONFIG_MAPS} HTTP/1.1\r\nhost: x\r\nx-slow: a".encode())
    return connection


def half_a_body(client: Client) -> socket.socket:
    connection = client.connect()
    head = f"POST {CONFIG_MAPS} HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n"
    connection.sendall(head.encode() + b'{"metadata":')
    return connection


def half_a_chunk(client: Client) -> socket.socket:
    connection = client.connect()
    head = f"POST {CONFIG_MAPS} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
    connection.sendall(head.encode() + b'fffff\r\n{"metadata":')
    return connection


WAYS: dict[str, Callable[[Client], socket.socket]] = {
    "no handshake": no_handshake,
    "nothing after the handshake": idle,
    "half a head": half_a_head,
    "half a body": half_a_body,
    "half a chunk": half_a_chunk,
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_many_who_never_finish(
    way: Callable[[Client], socket.socket], client: Client, up: Process
) -> None:
    memory = Memory(up.child.pid)
    with ExitStack() as stack:
        for _ in range(MANY):
            stack.enter_context(contextlib.closing(way(client)))

        assert any(_seconds(client) < SOON for _ in range(5))
        assert memory.needed() < 20 + MANY * KIBI_EACH / 1024


def _seconds(client: Client) -> float:
    """Return how long a request takes."""
    began = time.monotonic()
    assert client.send("GET", CONFIG_MAPS)[0] == 200
    return time.monotonic() - began


def test_many_watchers_who_do_not_read(client: Client, up: Process) -> None:
    watch = f"GET {CONFIG_MAPS}?watch=1 HTTP/1.1\r\nhost: x\r\n\r\n".encode()
    with ExitStack() as stack:
        for _ in range(40):
            watcher = stack.enter_context(contextlib.closing(client.connect()))
            watcher.sendall(watch)
        assert watcher.recv(1)
        memory = Memory(up.child.pid)

        for _ in range(60):
            made = config_map(data={"text": "x" * 200_000})
            assert client.send("POST", CONFIG_MAPS, made)[0] == 201

        # The history once, and what lies in each connection's buffers; not a copy for each.
        assert memory.needed() < 120


@pytest.mark.parametrize("lines", [1, 100_000])
def test_a_head_too_long(client: Client, up: Process, lines: int) -> None:
    memory = Memory(up.child.pid)
    long = b"x: " + b"a" * (3_000_000 // lines) + b"\r\n"
    with client.connect() as connection:
        with contextlib.suppress(OSError):
            connection.sendall(f"GET {CONFIG_MAPS} HTTP/1.1\r\nhost: x\r\n".encode())
            for _ in range(lines):
                connection.sendall(long)
            connection.sendall(b"\r\n")
        code, _ = parse(receive(connection))

    # Either it hangs up or it shows why; it never takes all of it for a request.
    assert code in (0, 400, 413, 431)
    assert memory.needed() < 60
    assert client.send("GET", "/readyz")[0] == 200


NOT_HTTP = {
    "garbage": b"\x00\xff\x01" * 1000,
    "no version": b"GET /\r\n\r\n",
    "another protocol": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a length that is none": b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
    "two lengths": (
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"
    ),
    "length and chunks": (
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n"
        b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n"
    ),
    "a chunk that is none": (
        b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"
    ),
    "a null in a header": b"GET /api HTTP/1.1\r\nhost: x\r\nx: a\x00b\r\n\r\n",
    "an upgrade": (
        b"GET /api HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
    ),
}


@pytest.mark.parametrize("sent", NOT_HTTP.values(), ids=NOT_HTTP.keys())
def test_what_is_not_http(client: Client, sent: bytes) -> None:
    with client.connect() as connection:
        connection.sendall(sent)
        connection.settimeout(PATIENCE)
        first = b""
        with contextlib.suppress(OSError):
            first = connection.recv(1 << 16)

    assert parse(first)[0] < 500
    assert client.send("GET", "/readyz")[0] == 200
