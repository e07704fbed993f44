"""Watches: where they begin, what they report, how they end."""

import asyncio
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from manifests import ONE, TWO, secret
from serving import Http, Lines, Obj, connected, local, types_and_names
from sully.app import RunningControlPlane
from sully.store.base import Event
from sully.testing.cluster import in_process
from sully.testing.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")
SECRETS = "/api/v1/namespaces/default/secrets"
LABELS: tuple[dict[str, str], ...] = ({}, {"t": "a"}, {"t": "b"})


async def version_of(http: Any, collection: str) -> str:
    return str((await http.get(collection, limit="1")).ok()["metadata"]["resourceVersion"])


async def test_from_a_version(http: Http, namespace_path: str) -> None:
    path = f"{namespace_path}/secrets"
    (await http.post(path, secret("old"))).ok(201)
    start = await version_of(http, path)
    made = (await http.post(path, secret("a"))).ok(201)

    async with http.watch(path, resourceVersion=start) as lines:
        changed = (await http.patch(f"{path}/a", {"data": {"k": TWO}})).ok()
        (await http.delete(f"{path}/a")).ok()
        events = await lines.take(3)

    assert types_and_names(events) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    assert [event["object"] for event in events[:2]] == [made, changed]
    gone = events[2]["object"]
    # The last state, with the version of its end.
    assert int(gone["metadata"]["resourceVersion"]) > int(changed["metadata"]["resourceVersion"])
    assert gone["data"] == {"k": TWO}


@pytest.mark.parametrize("query", [{}, {"resourceVersion": "0"}], ids=["nothing", "zero"])
async def test_from_whatever_there_is(
    http: Http, namespace_path: str, query: dict[str, str]
) -> None:
    path = f"{namespace_path}/secrets"
    for name in ("b", "a"):
        (await http.post(path, secret(name))).ok(201)

    async with http.watch(path, **query) as lines:
        first = await lines.take(2)
        (await http.post(path, secret("c"))).ok(201)
        events = first + await lines.take(1)

    assert types_and_names(events) == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]
    assert [e["object"] for e in events] == [
        item | {"kind": "Secret", "apiVersion": "v1"}
        for item in (await http.get(path)).ok()["items"]
    ]


async def test_initial_events_and_where_they_end(http: Http, namespace_path: str) -> None:
    path = f"{namespace_path}/secrets"
    for name in ("a", "b"):
        (await http.post(path, secret(name))).ok(201)
    listed = await version_of(http, path)
    query = {
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
    }

    async with http.watch(path, **query) as lines:
        (await http.post(path, secret("c"))).ok(201)
        events = await lines.take(4)

    assert types_and_names(events) == [
        ("ADDED", "a"),
        ("ADDED", "b"),
        ("BOOKMARK", ""),
        ("ADDED", "c"),
    ]
    mark = events[2]["object"]
    assert (mark["kind"], mark["apiVersion"]) == ("Secret", "v1")
    assert mark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(mark["metadata"]["resourceVersion"]) >= int(listed)


async def test_no_initial_events_on_request(http: Http, namespace_path: str) -> None:
    path = f"{namespace_path}/secrets"
    (await http.post(path, secret("a"))).ok(201)
    query = {"sendInitialEvents": "false", "resourceVersionMatch": "NotOlderThan"}

    async with http.watch(path, **query) as lines:
        (await http.post(path, secret("b"))).ok(201)

        assert types_and_names(await lines.take(1)) == [("ADDED", "b")]


@pytest.mark.parametrize(
    ("before", "after"), list(product([None, *LABELS], repeat=2)), ids=lambda labels: str(labels)
)
async def test_selectors_turn_changes_into_comings_and_goings(
    before: dict[str, str] | None, after: dict[str, str] | None
) -> None:
    """From one state to another, None being no object at all, seen through a selector."""
    async with local() as server:
        if before is not None:
            (await server.post(SECRETS, secret("x", labels=before))).ok(201)
        start = await version_of(server, SECRETS)
        if before is None and after is not None:
            (await server.post(SECRETS, secret("x", labels=after))).ok(201)
        elif before is not None and after is None:
            (await server.delete(f"{SECRETS}/x")).ok()
        elif before is not None:
            body = secret("x", TWO, labels=after)
            (await server.put(f"{SECRETS}/x", body)).ok()
        (await server.post(SECRETS, secret("end", labels={"t": "a"}))).ok(201)

        query: dict[str, Any] = {"labelSelector": "t=a", "resourceVersion": start}
        async with server.watch(SECRETS, **query) as answer:
            events = await answer.until(lambda a: b'"end"' in b"".join(a.chunks))

    saw, sees = before == {"t": "a"}, after == {"t": "a"}
    want = {(False, True): ["ADDED"], (True, True): ["MODIFIED"], (True, False): ["DELETED"]}
    assert [kind for kind, name in types_and_names(events) if name == "x"] == want.get(
        (saw, sees), []
    )
    if saw and not sees:
        # What a client is shown last is the state it knew.
        assert events[0]["object"]["metadata"]["labels"] == {"t": "a"}
        assert events[0]["object"]["data"] == {"k": ONE}


async def test_a_version_that_is_gone() -> None:
    async with local() as server:
        start = await version_of(server, SECRETS)
        (await server.post(SECRETS, secret("a"))).ok(201)
        await server.store.compact(server.store.revision)

        async with server.watch(SECRETS, resourceVersion=start) as answer:
            (event,) = await answer.until(lambda a: a.ended)

        status = event["object"]
        assert (answer.code, event["type"]) == (200, "ERROR")
        assert (status["code"], status["reason"]) == (410, "Expired")
        text = f"too old resource version: {start} ({server.store.compacted})"
        assert status["message"] == text


async def test_a_slow_client_holds_nothing_and_falls_behind() -> None:
    async with local() as server:
        start = await version_of(server, SECRETS)
        async with server.watch(SECRETS, resourceVersion=start) as answer:
            await answer.until(lambda a: a.code == 200)
            (await server.post(SECRETS, secret("first"))).ok(201)
            await answer.until(lambda a: len(a.events) == 1)
            answer.open.clear()
            for number in range(50):
                (await server.post(SECRETS, secret(f"s{number}"))).ok(201)
            sent = len(answer.chunks)
            await server.store.compact(server.store.revision)
            # All that is kept for the client is one batch on its way, however much happened.
            assert len(answer.chunks) == sent
            answer.open.set()
            events = await answer.until(lambda a: a.ended)

        assert events[-1]["type"] == "ERROR"
        status = events[-1]["object"]
        assert (status["code"], status["reason"]) == (410, "Expired")
        assert len(events) <= 52


async def test_a_version_that_has_not_happened(http: Http, namespace_path: str) -> None:
    path = f"{namespace_path}/secrets"
    future = str(int(await version_of(http, path)) + 10_000)

    async with http.watch(path, resourceVersion=future, timeoutSeconds="1") as lines:
        assert await lines.rest() == []


REFUSED: dict[str, tuple[dict[str, str], int, str]] = {
    "a version that is none": ({"resourceVersion": "x"}, 400, "invalid syntax"),
    "a bad timeout": ({"timeoutSeconds": "soon"}, 400, 'parsing "soon": invalid syntax'),
    "a match without initial events": (
        {"resourceVersionMatch": "Exact", "resourceVersion": "1"},
        422,
        "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
    ),
    "initial events without a match": (
        {"sendInitialEvents": "true"},
        422,
        "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
    ),
    "initial events with another match": (
        {"sendInitialEvents": "true", "resourceVersionMatch": "Exact"},
        422,
        'resourceVersionMatch: Unsupported value: "Exact": supported values: "NotOlderThan"',
    ),
    "a token": ({"continue": "x"}, 422, "resourceVersionMatch is forbidden when continue is"),
    "a bad selector": ({"labelSelector": "a in ("}, 400, "unable to parse requirement"),
}


@pytest.mark.parametrize(("query", "code", "text"), REFUSED.values(), ids=REFUSED.keys())
async def test_refused(
    http: Http, namespace_path: str, query: dict[str, str], code: int, text: str
) -> None:
    answer = await http.get(f"{namespace_path}/secrets", watch="true", **query)

    assert answer.code == code
    assert text in answer.message


async def test_the_end_comes_in_time(http: Http, namespace_path: str) -> None:
    path = f"{namespace_path}/secrets"
    (await http.post(path, secret("a"))).ok(201)

    async with http.watch(path, timeoutSeconds="1", resourceVersion="0") as lines:
        assert types_and_names(await lines.rest()) == [("ADDED", "a")]


async def test_bookmarks_when_it_is_quiet() -> None:
    async with local() as server:
        server.api.watcher.bookmark_seconds = 0.01
        start = await version_of(server, SECRETS)
        query: dict[str, Any] = {"resourceVersion": start, "allowWatchBookmarks": "true"}

        async with server.watch(SECRETS, **query) as answer:
            # Elsewhere something happens; only a bookmark reports that nothing of it is for us.
            namespaces = "/api/v1/namespaces"
            (await server.post(namespaces, {"metadata": {"name": "elsewhere"}})).ok(201)
            newest = int(await version_of(server, SECRETS))
            assert newest > int(start)

            def up_to_date(event: Obj) -> bool:
                return int(event["object"]["metadata"]["resourceVersion"]) >= newest

            events = await answer.until(lambda seen: any(map(up_to_date, seen.events)))

    assert {event["type"] for event in events} == {"BOOKMARK"}
    assert events[-1]["object"]["metadata"].keys() == {"resourceVersion"}


async def test_no_bookmarks_for_who_does_not_want_them() -> None:
    async with local() as server:
        server.api.watcher.bookmark_seconds = 0.01
        async with server.watch(SECRETS, timeoutSeconds="1") as answer:
            assert await answer.until(lambda seen: seen.ended) == []


async def test_old_paths_of_watches(http: Http, namespace_path: str) -> None:
    (await http.post(f"{namespace_path}/secrets", secret("a"))).ok(201)
    (await http.post(f"{namespace_path}/secrets", secret("b"))).ok(201)
    old = namespace_path.replace("/api/v1/", "/api/v1/watch/")

    async with http.watch(f"{old}/secrets", resourceVersion="0") as lines:
        assert types_and_names(await lines.take(2)) == [("ADDED", "a"), ("ADDED", "b")]
    async with http.watch(f"{old}/secrets/b", resourceVersion="0") as lines:
        assert types_and_names(await lines.take(1)) == [("ADDED", "b")]


async def test_an_event_is_encoded_once_for_all() -> None:
    async with local() as server, asyncio.TaskGroup() as tasks:
        start = server.store.revision
        inside = asyncio.Event()
        done = asyncio.Event()
        bodies: list[bytes] = []

        async def follow() -> None:
            async with server.watch(SECRETS, resourceVersion=str(start)) as answer:
                await answer.until(lambda a: a.code == 200)
                inside.set()
                await answer.until(lambda a: bool(a.events))
                bodies.append(b"".join(answer.chunks))
                if len(bodies) == 5:
                    done.set()
                await done.wait()

        for _ in range(5):
            tasks.create_task(follow())
        await inside.wait()
        subscription = server.store.watch("secrets", "default", after=start)
        (await server.post(SECRETS, secret("a"))).ok(201)
        await done.wait()
        event: Event = subscription.take()[0]

        assert event.derived is not None
        encoded = [value for key, value in event.derived.items() if "line" in str(key)]
        assert len(encoded) == 1
        assert set(bodies) == {encoded[0]}


async def test_who_disconnects_is_forgotten() -> None:
    async with in_process() as plane, connected(plane) as own:
        others = len(plane.api.watcher._open)
        async with own.watch("/api/v1/secrets") as lines:
            (await own.post(SECRETS, secret("a"))).ok(201)
            await lines.take(1)
            assert len(plane.api.watcher._open) == others + 1
        await until(lambda: len(plane.api.watcher._open) == others)


async def until(done: Callable[[], bool]) -> None:
    """Let others run until something is so."""
    async with asyncio.timeout(PATIENCE):
        for _ in iter(done, True):
            await asyncio.sleep(0)


async def test_who_went_before_the_watch_began_is_forgotten() -> None:
    async with local() as server:
        async with server.watch(SECRETS):
            pass

        assert len(server.api.watcher._open) == 0


async def _stopped(plane: RunningControlPlane, lines: list[Lines]) -> list[list[Obj]]:
    plane.api.watcher.stop()
    return [await line.rest() for line in lines]


async def test_the_end_of_the_server_ends_watches() -> None:
    async with in_process() as plane, connected(plane) as http:
        future = str(plane.api.store.revision + 10_000)
        async with (
            http.watch(SECRETS) as plain,
            http.watch(SECRETS, allowWatchBookmarks="true") as marked,
            http.watch(SECRETS, resourceVersion=future) as waiting,
        ):
            async with asyncio.timeout(PATIENCE):
                assert await _stopped(plane, [plain, marked, waiting]) == [[], [], []]


async def test_a_watch_that_begins_while_the_server_ends() -> None:
    async with local() as server:
        server.api.watcher.stop()

        answer = await server.get(SECRETS, watch="true", resourceVersion="1")

        assert (answer.code, answer.body) == (200, b"")


async def test_one_namespace_or_all(http: Http, namespace_path: str) -> None:
    start = await version_of(http, f"{namespace_path}/secrets")
    (await http.post("/api/v1/namespaces/default/secrets", secret(generateName="o-"))).ok(201)
    (await http.post(f"{namespace_path}/secrets", secret("mine"))).ok(201)

    async with http.watch(f"{namespace_path}/secrets", resourceVersion=start) as lines:
        assert types_and_names(await lines.take(1)) == [("ADDED", "mine")]
    async with http.watch("/api/v1/secrets", resourceVersion=start) as lines:
        assert [kind for kind, _ in types_and_names(await lines.take(2))] == ["ADDED", "ADDED"]
