"""The loads of the long run: each attacks until it has done so many things, then lets go.

A load returns the status codes it was answered with; 0 is a connection that was closed without an
answer. Counts are bounded, and everything goes to the target on this machine.
"""

from __future__ import annotations

import contextlib
import ssl
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from hostile.bombs import BOMBS
from hostile.heavy import heavy_claims, heavy_placement, heavy_search
from hostile.requests import CONFIG_MAPS
from hostile.target import Answer, Caller, Target, parse, receive

Codes = Counter[int]
MEBI = 1 << 20
CLOSED = (BrokenPipeError, ConnectionResetError, ConnectionAbortedError, ssl.SSLError, TimeoutError)


def prepare(target: Target) -> None:
    """Create what is there all the time, so that it does not count as memory of an attack."""
    mallory = target.tenant("hostile-reads")
    for number in range(10):
        made = {"metadata": {"name": f"large-{number}"}, "data": {"text": "x" * 1_000_000}}
        mallory.post("/api/v1/namespaces/hostile-reads/configmaps", made).ok()


def refused_with_large_headers(target: Target) -> Codes:
    """Send requests without credentials that carry nearly a megabyte of headers each."""
    large = {"x-large": "a" * 900_000}
    return Counter(
        target.anonymous.call("GET", CONFIG_MAPS, headers=large).code for _ in range(300)
    )


def large_user_agents(target: Target) -> Codes:
    """Try to fill the audit log."""
    agent = {"user-agent": "a" * 1_000_000}
    return Counter(
        target.anonymous.call("DELETE", CONFIG_MAPS, headers=agent).code for _ in range(360)
    )


def trailers_without_end(target: Target) -> Codes:
    """End a chunked body and continue with trailers, up to 64 MiB a connection."""
    head = target.anonymous.head("POST", CONFIG_MAPS, {"transfer-encoding": "chunked"})
    codes: Codes = Counter()
    for _ in range(8):
        with target.anonymous.connect() as connection:
            with contextlib.suppress(*CLOSED):
                connection.sendall(head + b"\r\n0\r\n")
                for number in range(1024):
                    connection.sendall(b"x-%d: " % number + b"a" * 65_000 + b"\r\n")
            codes[_answer(connection).code] += 1
    return codes


def unread_bodies(target: Target) -> Codes:
    """Announce a body to those who refuse it, send a byte of it, and keep the connection."""
    head = target.anonymous.head("POST", CONFIG_MAPS, {"content-length": "1000"})
    with _open(target.anonymous, 400) as connections:
        return Counter(_sent(connection, head + b"\r\n", b"a").code for connection in connections)


def unfinished_requests(target: Target) -> Codes:
    """Begin writes as oneself and as an impersonated service account, and never finish them."""
    mallory = target.tenant("hostile-slots")
    account = "system:serviceaccount:hostile-slots:default"
    path = "/api/v1/namespaces/hostile-slots/configmaps"
    length = {"content-length": "1000", "content-type": "application/json"}
    own = mallory.head("POST", path, length)
    acting = mallory.head("POST", path, {**length, "impersonate-user": account})
    with _open(mallory, 200) as connections:
        for number, connection in enumerate(connections):
            with contextlib.suppress(*CLOSED):
                connection.sendall((own, acting)[number % 2] + b'\r\n{"metadata":')
        return Counter(target.admin.get(CONFIG_MAPS).code for _ in range(50))


def unread_answers(target: Target) -> Codes:
    """Ask for large lists and watches, and read nothing of them."""
    mallory = target.tenant("hostile-reads")
    path = "/api/v1/namespaces/hostile-reads/configmaps"
    codes: Codes = Counter()
    for query in ("", "?watch=true&resourceVersion=0"):
        request = mallory.head("GET", path + query) + b"\r\n"
        with _open(mallory, 30, receive_buffer=4096) as connections:
            for connection in connections:
                with contextlib.suppress(*CLOSED):
                    connection.sendall(request)
            codes.update(target.admin.get(CONFIG_MAPS).code for _ in range(50))
    return codes


def hostile_bodies(target: Target) -> Codes:
    """Send the whole catalogue of hostile requests as the admin, who may do everything."""
    container = {"name": "c", "image": "i"}
    target.admin.post(CONFIG_MAPS, {"metadata": {"name": "target"}})
    target.admin.post(
        "/api/v1/namespaces/default/pods",
        {"metadata": {"name": "target"}, "spec": {"containers": [container]}},
    )
    return Counter(
        target.admin.call(bomb.method, bomb.path, bomb.body() or None, bomb.media).code
        for bomb in BOMBS.values()
    )


def what_is_not_http(target: Target) -> Codes:
    """Send bytes that are not a request."""
    codes: Codes = Counter()
    # What is only incomplete waits for its deadline; this is refused when it is read.
    for sent in (b"\x00\xff\x01" * 1000, b"GET /\r\n\r\n", b"A" * 200_000):
        for _ in range(100):
            with target.anonymous.connect() as connection:
                codes[_sent(connection, sent).code] += 1
    return codes


Load = Callable[[Target], Codes]
LOADS: dict[str, Load] = {
    "refused, large headers": refused_with_large_headers,
    "refused, large user agents": large_user_agents,
    "trailers without end": trailers_without_end,
    "answers with unread bodies": unread_bodies,
    "requests never finished": unfinished_requests,
    "answers never read": unread_answers,
    "catalogue of bodies": hostile_bodies,
    "what is not HTTP": what_is_not_http,
    "heavy device selectors": heavy_claims,
    "heavy searches for devices": heavy_search,
    "heavy placements": heavy_placement,
}


@contextmanager
def _open(caller: Caller, number: int, *, receive_buffer: int = 0) -> Iterator[list[ssl.SSLSocket]]:
    """Hold as many connections as the server allows, up to a number."""
    with ExitStack() as stack:
        connections = []
        for _ in range(number):
            try:
                connection = caller.connect(receive_buffer=receive_buffer)
            except CLOSED:
                break
            connections.append(stack.enter_context(contextlib.closing(connection)))
        yield connections


def _sent(connection: ssl.SSLSocket, *parts: bytes) -> Answer:
    with contextlib.suppress(*CLOSED):
        for part in parts:
            connection.sendall(part)
    return _answer(connection, whole=False)


def _answer(connection: ssl.SSLSocket, *, whole: bool = True) -> Answer:
    raw = b""
    with contextlib.suppress(*CLOSED):
        raw = receive(connection) if whole else connection.recv(1 << 16)
    return Answer(*parse(raw))
