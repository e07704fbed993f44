"""The HTTP transport against servers that do what ours does not."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from aiohttp import web

from client.foreign import KEY, A, Foreign, connected, serving, status
from client.scripted import THINGS, thing
from sully import __version__
from sully.client.http.transport import HttpTransport, url_path
from sully.client.kubeconfig.access import Access
from sully.client.options import (
    DeleteOptions,
    ListOptions,
    PatchType,
    WriteOptions,
)
from sully.client.transport import (
    Key,
    Kind,
    Page,
    ResourceRef,
    UnreachableError,
    UnreadableError,
)
from sully.machinery.errors import (
    ApiError,
    Conflict,
    NotFound,
    ServiceUnavailable,
    TooManyRequests,
)

NODES = Kind("", "v1", "nodes", "Node", dict, namespaced=False)


async def call(foreign: Foreign, use: Any, **access: Any) -> Any:
    async with connected(foreign, **access) as http:
        return await use(http)


ONE: dict[str, Any] = {"dry_run": True, "field_manager": "me"}
DELETION = DeleteOptions(uid="u", grace_period_seconds=0, propagation_policy="Foreground")

REQUESTS = {
    "get": (lambda t: t.get(THINGS, KEY), "GET {things}/a", None, None),
    "get with version": (
        lambda t: t.get(THINGS, KEY, resource_version="0"),
        "GET {things}/a?resourceVersion=0",
        None,
        None,
    ),
    "get status": (lambda t: t.get(THINGS, KEY, "status"), "GET {things}/a/status", None, None),
    "cluster-scoped": (
        lambda t: t.get(NODES, Key("ignored", "system:n/1")),
        "GET /api/v1/nodes/system:n%2F1",
        None,
        None,
    ),
    "create": (
        lambda t: t.create(THINGS, thing("a", 7, "red"), options=WriteOptions(**ONE)),
        "POST {things}?dryRun=All&fieldManager=me",
        "application/json",
        {
            "apiVersion": "example.dev/v1",
            "kind": "Thing",
            "metadata": A["metadata"] | {"uid": "uid-a"},
            "color": "red",
        },
    ),
    "create in a subresource": (
        lambda t: t.create(THINGS.read_as(dict), A | {"kind": "Eviction"}, "eviction"),
        "POST {things}/a/eviction",
        "application/json",
        {"apiVersion": "example.dev/v1", "kind": "Eviction", **A},
    ),
    "update": (
        lambda t: t.update(THINGS, A, "status"),
        "PUT {things}/a/status",
        "application/json",
        {"apiVersion": "example.dev/v1", "kind": "Thing", **A},
    ),
    "merge patch": (
        lambda t: t.patch(THINGS, KEY, {"color": None}),
        "PATCH {things}/a",
        "application/merge-patch+json",
        {"color": None},
    ),
    "JSON patch": (
        lambda t: t.patch(THINGS, KEY, [{"op": "remove", "path": "/x"}], PatchType.JSON),
        "PATCH {things}/a",
        "application/json-patch+json",
        [{"op": "remove", "path": "/x"}],
    ),
    "strategic patch of a subresource": (
        lambda t: t.patch(THINGS, KEY, {}, PatchType.STRATEGIC, "status"),
        "PATCH {things}/a/status",
        "application/strategic-merge-patch+json",
        {},
    ),
    "apply": (
        lambda t: t.apply(THINGS, A, WriteOptions(field_manager="me", force=True)),
        "PATCH {things}/a?fieldManager=me&force=true",
        "application/apply-patch+yaml",
        {"apiVersion": "example.dev/v1", "kind": "Thing", **A},
    ),
    "delete": (lambda t: t.delete(THINGS, KEY), "DELETE {things}/a", None, None),
    "delete with options": (
        lambda t: t.delete(THINGS, KEY, DELETION),
        "DELETE {things}/a",
        "application/json",
        {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "gracePeriodSeconds": 0,
            "propagationPolicy": "Foreground",
            "preconditions": {"uid": "u"},
        },
    ),
    "delete many": (
        lambda t: t.delete_collection(
            THINGS, "default", ListOptions(label_selector="a in (b,c)"), DeleteOptions(dry_run=True)
        ),
        "DELETE {things}?labelSelector=a+in+%28b%2Cc%29&dryRun=All",
        "application/json",
        {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]},
    ),
}


@pytest.mark.parametrize(("use", "line", "media", "body"), REQUESTS.values(), ids=REQUESTS.keys())
async def test_request(use: Any, line: str, media: str | None, body: Any) -> None:
    foreign = Foreign([A])
    await call(foreign, use)

    (request,) = foreign.requests
    assert request.line == line.format(things="/apis/example.dev/v1/namespaces/default/things")
    assert request.body == body
    assert request.headers.get("content-type") == ([media] if media else None)
    assert request.headers["user-agent"] == [f"sully/{__version__}"]
    assert request.headers["accept"] == ["application/json"]


async def test_list() -> None:
    metadata = {"resourceVersion": "9", "continue": "more", "remainingItemCount": 3}
    foreign = Foreign([{"kind": "ThingList", "metadata": metadata, "items": [A]}])
    options = ListOptions(field_selector="a=b", limit=1, continue_token="x")

    async def use(http: HttpTransport) -> list[Page[Any]]:
        untyped = THINGS.read_as(dict[str, Any])
        return [await http.list(THINGS, "default", options), await http.list(untyped)]

    typed, plain = await call(foreign, use)

    assert typed == Page([thing("a", 7, uid="u")], "9", "more", 3)
    assert plain.items == [{"kind": "Thing", "apiVersion": "example.dev/v1", **A}]
    assert [request.line.partition("?")[2] for request in foreign.requests] == [
        "fieldSelector=a%3Db&limit=1&continue=x",
        "",
    ]
    assert foreign.requests[1].line == "GET /apis/example.dev/v1/things"


async def test_empty_list() -> None:
    foreign = Foreign([{"metadata": {"resourceVersion": "9"}, "items": None}])

    assert await call(foreign, lambda http: http.list(THINGS)) == Page([], "9")


@dataclass(frozen=True)
class Refusal:
    answer: web.Response
    error: type[ApiError]
    message: str
    code: int
    reason: str


REFUSALS = {
    "Status": Refusal(
        status(404, reason="NotFound", message='things "a" not found', details={"name": "a"}),
        NotFound,
        'things "a" not found',
        404,
        "NotFound",
    ),
    "error page of a proxy": Refusal(
        web.Response(status=503, text="<html>no backend</html>"),
        ServiceUnavailable,
        "the server answered 503 Service Unavailable: <html>no backend</html>",
        503,
        "ServiceUnavailable",
    ),
    "empty page of a proxy": Refusal(
        web.Response(status=404), NotFound, "the server answered 404 Not Found", 404, "NotFound"
    ),
    "JSON that is not a Status": Refusal(
        web.json_response({"error": "x"}, status=404),
        NotFound,
        'the server answered 404 Not Found: {"error": "x"}',
        404,
        "NotFound",
    ),
    "group that is not served": Refusal(
        web.Response(status=404, text="404 page not found\n"),
        NotFound,
        "the server could not find the requested resource",
        404,
        "NotFound",
    ),
    "reason of its own": Refusal(
        status(409, reason="AlreadyTaken", message="no"), Conflict, "no", 409, "AlreadyTaken"
    ),
    "code of its own": Refusal(status(418, message="tea"), ApiError, "tea", 418, ""),
}


@pytest.mark.parametrize("case", REFUSALS.values(), ids=REFUSALS.keys())
async def test_refusal(case: Refusal) -> None:
    with pytest.raises(case.error) as caught:
        await call(Foreign([case.answer]), lambda http: http.get(THINGS, KEY))

    error = caught.value
    assert (error.message, error.code, error.reason) == (case.message, case.code, case.reason)


async def test_retry_after_is_kept() -> None:
    busy = web.Response(status=429, headers={"Retry-After": "7"}, text="slow down")
    with pytest.raises(TooManyRequests) as caught:
        await call(Foreign([busy]), lambda http: http.get(THINGS, KEY))

    assert caught.value.headers == {"Retry-After": "7"}


UNREADABLE = {
    "no JSON": (web.Response(text="hello"), "things"),
    "missing field": ({"metadata": {}, "color": 7}, "color"),
}


@pytest.mark.parametrize(("answer", "message"), UNREADABLE.values(), ids=UNREADABLE.keys())
async def test_unreadable(answer: Any, message: str) -> None:
    with pytest.raises(UnreadableError, match=message):
        await call(Foreign([answer]), lambda http: http.get(THINGS, KEY))


async def test_status_is_not_taken_for_an_object() -> None:
    foreign = Foreign([{"kind": "Status", "metadata": {}, "status": "Success"}])
    with pytest.raises(UnreadableError, match="read_as"):
        await call(foreign, lambda http: http.create(THINGS, A, "eviction"))


async def test_connections_are_reused() -> None:
    peers = set()

    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        peers.add(request.transport.get_extra_info("peername"))
        return web.json_response(A)

    async with connected(answer) as http:
        for _ in range(5):
            await http.get(THINGS, KEY)

    assert len(peers) == 1


async def test_nobody_listens() -> None:
    async with serving(Foreign([A])) as server:
        pass
    async with HttpTransport(Access(server=server)) as http:
        with pytest.raises(UnreachableError, match=server):
            await http.get(THINGS, KEY)


async def test_no_answer_in_time() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    async with connected(answer, seconds=0.05) as http:
        with pytest.raises(UnreachableError, match="timed out"):
            await http.get(THINGS, KEY)


async def test_closed_transport() -> None:
    http = HttpTransport(Access(server="http://127.0.0.1:1"))
    await http.close()
    await http.close()
    with pytest.raises(UnreachableError, match="closed"):
        await http.get(THINGS, KEY)


PATHS = {
    "core collection": (ResourceRef("", "v1", "pods"), "/api/v1/pods"),
    "namespace": (ResourceRef("", "v1", "pods", "default"), "/api/v1/namespaces/default/pods"),
    "object": (ResourceRef("apps", "v1", "x", "n", "a"), "/apis/apps/v1/namespaces/n/x/a"),
    "part": (ResourceRef("", "v1", "nodes", "", "a", "status"), "/api/v1/nodes/a/status"),
    "odd name": (ResourceRef("", "v1", "nodes", "", "a?b#c%"), "/api/v1/nodes/a%3Fb%23c%25"),
}


@pytest.mark.parametrize(("ref", "path"), PATHS.values(), ids=PATHS.keys())
def test_url_path(ref: ResourceRef, path: str) -> None:
    assert url_path(ref) == path
