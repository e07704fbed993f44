"""A user without credentials, who wants memory, descriptors or the place of another user."""

from __future__ import annotations

import contextlib
import resource
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from hostile.target import Caller, Target, eventually, parse, receive
from sully.testing.cluster import process
from sully.testing.patience import PATIENCE

pytestmark = pytest.mark.slow
PODS = "/api/v1/namespaces/default/pods"
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
CHUNKED = {"transfer-encoding": "chunked", "content-type": "application/json"}
MIB = 1 << 20


def flood(connection: ssl.SSLSocket, data: bytes, times: int) -> None:
    """Send the same again and again, until it is refused."""
    with contextlib.suppress(OSError):
        for _ in range(times):
            connection.sendall(data)


def ended(connection: ssl.SSLSocket) -> bool:
    """Wait until the server closes a connection."""
    with contextlib.suppress(ConnectionResetError, ssl.SSLError):
        while connection.recv(1 << 16):
            pass
    return True


@pytest.fixture
def files() -> Iterator[None]:
    """Let this process have as many connections as the attacker needs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


WITHOUT_END = {
    "trailer lines": (b"0\r\n", b"x-trailer: " + b"y" * 100 + b"\r\n"),
    "one trailer line": (b"0\r\nx-trailer: ", b"y" * 100),
    "a chunk extension": (b"5;name=", b"y" * 100),
    "chunks of one byte": (b"", b"1\r\n{\r\n"),
}


@pytest.mark.parametrize("name", WITHOUT_END)
@pytest.mark.parametrize("who", ["anonymous", "admin"])
def test_sends_chunked_framing_without_end(target: Target, name: str, who: str) -> None:
    caller: Caller = getattr(target, who)
    first, more = WITHOUT_END[name]
    lot = more * (MIB // len(more))
    target.forget_peak()
    before = target.memory()
    with caller.connect() as connection:
        connection.sendall(caller.head("POST", PODS, CHUNKED) + b"\r\n" + first)
        flood(connection, lot, 64)

        assert ended(connection)
    assert target.peak_memory() - before < 30


def test_shows_credentials_in_a_trailer(target: Target, namespace: str) -> None:
    target.account(namespace, "robot")
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    token = target.admin.post(f"{accounts}/robot/token", {"spec": {}}).ok()["status"]["token"]
    body = b"2\r\n{}\r\n0\r\nauthorization: Bearer " + token.encode() + b"\r\n\r\n"

    assert target.bearer(token).post(REVIEWS, {}).code == 201
    assert target.anonymous.call("POST", REVIEWS, headers=CHUNKED).code in (0, 401)
    with target.anonymous.connect() as connection:
        head = target.anonymous.head("POST", REVIEWS, {**CHUNKED, "connection": "close"})
        connection.sendall(head + b"\r\n" + body)
        assert parse(receive(connection))[0] == 401


def test_impersonates_in_a_trailer(target: Target) -> None:
    review = b'{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}'
    body = b"%x\r\n%s\r\n0\r\nimpersonate-user: somebody\r\n\r\n" % (len(review), review)
    with target.admin.connect() as connection:
        head = target.admin.head("POST", REVIEWS, {**CHUNKED, "connection": "close"})
        connection.sendall(head + b"\r\n" + body)
        code, answer = parse(receive(connection))

    assert code == 201
    assert b'"somebody"' not in answer


def test_fills_the_memory_with_refused_requests(target: Target) -> None:
    large = {f"x-{number}": "y" * 10_000 for number in range(10)}
    for _ in range(20):
        assert target.anonymous.call("GET", PODS, headers=large).code == 401
    before = target.memory()
    for _ in range(400):
        assert target.anonymous.call("GET", PODS, headers=large).code == 401

    eventually(lambda: target.memory() - before < 20)


@pytest.mark.usefixtures("files")
def test_fills_the_memory_with_half_heads(target: Target) -> None:
    before, half = target.memory(), target.anonymous.head("GET", PODS) + b"x: " + b"y" * 100_000
    with ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(target.anonymous.connect()).sendall(half)
        assert target.admin.get(PODS).code == 200
        assert target.memory() - before < 150

    eventually(lambda: target.memory() - before < 20)


def test_keeps_connections_by_bodies_that_nobody_reads(target: Target) -> None:
    length = {"content-length": "1000"}
    before = target.descriptors() + 5
    with ExitStack() as stack:
        held = [stack.enter_context(target.anonymous.connect()) for _ in range(30)]
        for connection in held:
            connection.sendall(target.anonymous.head("POST", PODS, length) + b"\r\n{")
            assert parse(connection.recv(1 << 16))[0] == 401
            with contextlib.suppress(OSError):
                connection.sendall(b"x")

        assert all(ended(connection) for connection in held)
    eventually(lambda: target.descriptors() <= before)


def test_pipelines_without_end(target: Target) -> None:
    request = target.anonymous.head("GET", "/healthz") + b"\r\n"
    lot = request * (200_000 // len(request))
    target.forget_peak()
    before = target.memory()
    with ExitStack() as stack:
        for _ in range(20):
            flood(stack.enter_context(target.anonymous.connect()), lot, 1)
        assert target.admin.get("/healthz").code == 200

    assert target.peak_memory() - before < 40


def test_sends_a_head_of_very_many_lines(target: Target) -> None:
    lines = b"a:b\r\n" * 20_000
    with target.anonymous.connect() as connection:
        connection.sendall(target.anonymous.head("GET", "/healthz"))
        flood(connection, lines + b"\r\n", 1)
        assert parse(receive(connection))[0] in (0, 431)


AMBIGUOUS = {
    "two tokens": ("authorization: Bearer x\r\nauthorization: Bearer {token}\r\n", 401),
    "two tokens, the good one first": (
        "authorization: Bearer {token}\r\nauthorization: Bearer x\r\n",
        401,
    ),
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_sends_two_authorization_headers(target: Target, namespace: str, name: str) -> None:
    lines, code = AMBIGUOUS[name]
    target.account(namespace, "robot")
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    token = target.admin.post(f"{accounts}/robot/token", {"spec": {}}).ok()["status"]["token"]
    with target.anonymous.connect() as connection:
        head = target.anonymous.head("GET", "/api", {"connection": "close"})
        connection.sendall(head + lines.format(token=token).encode() + b"\r\n")
        assert parse(receive(connection))[0] == code


# -- a server with few descriptors ----------------------------------------------------------------


def dial(target: Target) -> socket.socket:
    """Connect and never send anything."""
    host, port = target.url.removeprefix("https://").split(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE)


@pytest.mark.usefixtures("files")
def test_takes_every_descriptor(tmp_path: Path) -> None:
    with process("--store", "memory", "--log-level", "warning") as up, ExitStack() as stack:
        target = Target(up, tmp_path)
        watch = stack.enter_context(target.admin.connect())
        watch.sendall(target.admin.head("GET", "/api/v1/namespaces?watch=1") + b"\r\n")
        assert parse(watch.recv(1 << 16))[0] == 200
        few = target.descriptors() + 50
        resource.prlimit(up.child.pid, resource.RLIMIT_NOFILE, (few, few))
        for number in range(400):
            taken = target.anonymous.connect() if number % 2 else dial(target)
            stack.enter_context(contextlib.closing(taken))

        for _ in range(5):
            assert target.admin.get(PODS).code == 200
        target.admin.post("/api/v1/namespaces", {"metadata": {"name": "still-served"}}).ok()
        received = b""
        while b"still-served" not in received:
            received += (more := watch.recv(1 << 16))
            assert more, "a watch of an admin was closed"
        reported = _output(target)
    assert len([line for line in reported if "descriptors" in line]) in range(1, 4), reported


@pytest.mark.usefixtures("files")
def test_takes_every_connection(tmp_path: Path) -> None:
    flags = ("--max-connections", "60", "--log-level", "warning")
    with process("--store", "memory", *flags) as up, ExitStack() as stack:
        target = Target(up, tmp_path)
        idle = target.descriptors()
        for number in range(300):
            taken = target.anonymous.connect() if number % 2 else dial(target)
            stack.enter_context(contextlib.closing(taken))

        assert target.admin.get(PODS).code == 200
        assert target.node("one").get("/api/v1/nodes/one").code == 404
        assert target.descriptors() <= idle + 60 + 5


def test_fills_the_log_with_malformed_requests(tmp_path: Path) -> None:
    garbage = {
        "not HTTP": b"\x00\xff\x01" * 10,
        "an upgrade": upgrade(),
        "no path": b"CONNECT x:1 HTTP/1.1\r\nhost: x\r\n\r\n",
    }
    with process("--store", "memory", "--log-level", "warning") as up:
        target = Target(up, tmp_path)
        for _ in range(30):
            for sent in garbage.values():
                with target.anonymous.connect() as connection:
                    connection.sendall(sent)
                    receive(connection)
        reported = _output(target)
    assert len(reported) < 6, reported


def upgrade() -> bytes:
    """Return a request for another protocol."""
    return (
        b"GET /api HTTP/1.1\r\nhost: x\r\nconnection: upgrade, close\r\nupgrade: websocket\r\n\r\n"
    )


def _output(target: Target) -> list[str]:
    """Stop a server; return what it logged."""
    target.up.stop()
    return [line for line in target.up.output() if not line.startswith("stopping")]


SUITES = {
    "TLS 1.2 with AES-GCM": (ssl.TLSVersion.TLSv1_2, "ECDHE+AESGCM", True),
    "TLS 1.2 with ChaCha20": (ssl.TLSVersion.TLSv1_2, "ECDHE+CHACHA20", True),
    "TLS 1.2 with CBC": (ssl.TLSVersion.TLSv1_2, "ECDHE+AES:!AESGCM:!AESCCM", False),
    "TLS 1.2 without forward secrecy": (ssl.TLSVersion.TLSv1_2, "kRSA", False),
    "TLS 1.1": (ssl.TLSVersion.TLSv1_1, "ALL:@SECLEVEL=0", False),
    "TLS 1.3": (ssl.TLSVersion.TLSv1_3, "", True),
}


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1")
@pytest.mark.parametrize("name", SUITES)
def test_asks_for_a_weak_cipher_suite(target: Target, name: str) -> None:
    version, ciphers, spoken = SUITES[name]
    context = target.trusting()
    context.minimum_version = context.maximum_version = version
    if ciphers:
        context.set_ciphers(ciphers)
    try:
        code = Caller(target.url, context).get("/healthz").code
    except (ssl.SSLError, ConnectionResetError):
        code = 0

    assert (code == 200) is spoken


FLOOD = 300
LONG = 16 << 10


def test_pushes_others_out_of_the_audit_log(target: Target, namespace: str) -> None:
    """Fill the audit log with refusals that are as long as the server takes them."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    target.admin.post(path, {"metadata": {"name": "trace"}}).ok()
    target.audited(lambda event: _name(event) == "trace")
    log, own = (target.up.data_dir / name for name in ("audit.log", "audit-unauthenticated.log"))
    before = log.stat().st_size

    headers = {"user-agent": "x" * LONG, "authorization": "Bearer wrong", "content-length": "0"}
    request = target.anonymous.head("POST", path, headers) + b"\r\n"
    with target.anonymous.connect() as connection:
        for _ in range(FLOOD):
            connection.sendall(request)
            assert parse(connection.recv(1 << 16))[0] == 401
    target.admin.post(path, {"metadata": {"name": "after"}}).ok()
    target.audited(lambda event: _name(event) == "after")

    # Of those who are known, controllers included, there are a few lines; of the flood none.
    assert log.stat().st_size - before < FLOOD * LONG / 10
    assert all(event["user"] for event in target.audit_events())
    # Other tests fill this log, too, and it is written after the other one.
    agent = "x" * 1024 + "...TRUNCATED"
    assert target.audited(lambda event: event.get("userAgent") == agent, own.name)
    # A burst of them, and some for each second that the test took.
    assert own.stat().st_size < FLOOD * LONG / 3


def test_breaks_the_audit_log(target: Target, namespace: str) -> None:
    """Send what cannot be written down, so that nothing after it is."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    broken = b'{metadata: {name: "\\uD800"}}'
    target.admin.call("POST", path, broken, "application/yaml")
    odd = {"user-agent": "line\tbreak \xff\x85"}
    target.anonymous.call("POST", path, {}, headers=odd)
    target.admin.post(path, {"metadata": {"name": "later"}}).ok()

    target.audited(lambda event: _name(event) == "later")


def _name(event: dict[str, Any]) -> str:
    return event.get("objectRef", {}).get("name", "")
