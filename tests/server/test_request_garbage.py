"""A request leaves nothing behind that only the garbage collector could free.

Such a thing holds the headers and the body of the request, and the collector counts objects, not
bytes: a few hundred requests would fill the memory before it looks.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import socket
import ssl
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import uvloop

from manifests import config_map
from serving import APPLY, JSON, JSON_PATCH, MERGE, client_tls
from sully.app import RunningControlPlane
from sully.testing.cluster import in_process
from sully.testing.patience import PATIENCE

TIMES = 4
MAPS = "/api/v1/namespaces/default/configmaps"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@dataclass(frozen=True)
class Case:
    """One request, and what it is answered with."""

    code: int
    method: str = "GET"
    path: str = MAPS
    body: Any = None
    media: str = JSON
    headers: str = ""
    who: str = "admin"
    hangs_up: bool = False
    """Whether the client closes the connection after the first bytes."""


def named(name: str, **more: Any) -> dict[str, Any]:
    return config_map(name) | more


TABLE = "accept: application/json;as=Table;g=meta.k8s.io;v=v1\r\n"
OLD = {"metadata": {"name": "kept", "resourceVersion": "1"}}
NEW = {"metadata": {"generateName": "new-"}}
CASES = {
    "create": Case(201, "POST", body=NEW),
    "get": Case(200, path=f"{MAPS}/kept"),
    "list": Case(200),
    "list as a table": Case(200, headers=TABLE),
    "watch": Case(200, path=f"{MAPS}?watch=1&timeoutSeconds=1&resourceVersion=0"),
    "watch that the client ends": Case(200, path=f"{MAPS}?watch=1", hangs_up=True),
    "list that the client does not read": Case(200, hangs_up=True),
    "update": Case(200, "PUT", f"{MAPS}/kept", named("kept", data={"a": "b"})),
    "merge patch": Case(200, "PATCH", f"{MAPS}/kept", {"data": {"c": "d"}}, MERGE),
    "json patch": Case(
        200,
        "PATCH",
        f"{MAPS}/kept",
        [{"op": "add", "path": "/data", "value": {"e": "f"}}],
        JSON_PATCH,
    ),
    "apply": Case(200, "PATCH", f"{MAPS}/kept?fieldManager=x&force=true", named("kept"), APPLY),
    "delete of many": Case(200, "DELETE", f"{MAPS}?labelSelector=none%3Dhere"),
    "review": Case(
        201, "POST", REVIEWS, {"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}}
    ),
    "impersonation": Case(403, headers="impersonate-user: nobody\r\n"),
    "page": Case(200, path="/healthz", who="anonymous"),
    "document": Case(200, path="/openapi/v3"),
    "nobody": Case(401, who="anonymous"),
    "nobody with a body": Case(401, "POST", body=NEW, who="anonymous"),
    "bad token": Case(401, headers="authorization: Bearer x\r\n", who="anonymous"),
    "forbidden": Case(403, who="tenant"),
    "forbidden create": Case(403, "POST", body=NEW, who="tenant"),
    "forbidden impersonation": Case(403, headers="impersonate-user: admin\r\n", who="tenant"),
    "not found": Case(404, path=f"{MAPS}/none"),
    "no such page": Case(404, path="/nowhere"),
    "no such kind": Case(404, path="/api/v1/namespaces/default/nothings"),
    "already there": Case(409, "POST", body=named("kept")),
    "conflict": Case(409, "PUT", f"{MAPS}/kept", OLD),
    "invalid": Case(422, "POST", body=named("_")),
    "no JSON": Case(400, "POST", body=b"{"),
    "bad patch": Case(400, "PATCH", f"{MAPS}/kept", b"[", JSON_PATCH),
    "impossible patch": Case(
        422, "PATCH", f"{MAPS}/kept", [{"op": "remove", "path": "/data/none"}], JSON_PATCH
    ),
    "bad apply": Case(422, "PATCH", f"{MAPS}/kept", named("kept"), APPLY),
    "delete of none": Case(404, "DELETE", f"{MAPS}/none"),
    "bad media type": Case(415, "POST", body=b"x", media="text/plain"),
    "bad selector": Case(400, path=f"{MAPS}?labelSelector=%21%21"),
    "bad watch": Case(400, path=f"{MAPS}?watch=1&resourceVersion=x"),
    "too old a watch": Case(400, path=f"{MAPS}?continue=x"),
    "bad method": Case(405, "PUT", body=named("kept")),
    "not HTTP": Case(400, "\0\1"),
}


@pytest.fixture(scope="module")
def serving() -> Iterator[tuple[asyncio.Runner, RunningControlPlane]]:
    """Run a control plane in this process, as `sully up` runs it."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        stack = contextlib.AsyncExitStack()
        plane = runner.run(stack.enter_async_context(in_process()))
        # What is here before the requests is none of their garbage, and need not be searched.
        gc.freeze()
        yield runner, plane
        gc.unfreeze()
        runner.run(stack.aclose())


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_left_for_the_collector(
    serving: tuple[asyncio.Runner, RunningControlPlane], name: str
) -> None:
    runner, plane = serving
    case = CASES[name]
    context = client_tls(plane, *_identity(case.who))
    runner.run(_serve(plane, _admin(plane), CASES["create"], named("kept")))
    first = runner.run(_serve(plane, context, case))  # whatever is made once is made now

    gc.collect()
    gc.disable()
    try:
        codes = [runner.run(_serve(plane, context, case)) for _ in range(TIMES)]
        runner.run(_quiet())
        left = _unreachable()
    finally:
        gc.enable()

    assert [first, *codes] == [case.code] * (TIMES + 1)
    # The controllers of this process may leave something too, but not with every request.
    assert {kind: count for kind, count in left.items() if count >= TIMES} == {}


def _identity(who: str) -> tuple[str, tuple[str, ...]]:
    return {
        "admin": ("garbage-admin", ("system:masters",)),
        "tenant": ("garbage-tenant", ()),
        "anonymous": ("", ()),
    }[who]


def _admin(plane: RunningControlPlane) -> ssl.SSLContext:
    return client_tls(plane, *_identity("admin"))


async def _serve(
    plane: RunningControlPlane, context: ssl.SSLContext, case: Case, body: Any = None
) -> int:
    """Make one request from a thread, so that nothing of a client is in the event loop."""
    body = case.body if body is None else body
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    head = (
        f"{case.method} {case.path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
        f"content-type: {case.media}\r\ncontent-length: {len(data)}\r\n{case.headers}\r\n"
    )
    host, port = plane.url.removeprefix("https://").split(":")
    address, request = (host, int(port)), head.encode() + data
    return await asyncio.to_thread(_call, address, context, request, hangs_up=case.hangs_up)


def _call(
    address: tuple[str, int], context: ssl.SSLContext, request: bytes, *, hangs_up: bool
) -> int:
    with (
        socket.create_connection(address, timeout=PATIENCE) as plain,
        context.wrap_socket(plain, server_hostname=address[0]) as connection,
    ):
        connection.sendall(request)
        answer = b""
        with contextlib.suppress(ConnectionResetError, ssl.SSLError):
            while chunk := connection.recv(1 << 16):
                answer += chunk
                if hangs_up:
                    break
    return int(answer.split(b" ")[1])


async def _quiet() -> None:
    """Wait until the last connection is gone."""
    for _ in range(20):
        await asyncio.sleep(0)


def _unreachable() -> Counter[str]:
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        return Counter(type(item).__name__ for item in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
