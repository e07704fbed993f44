"""Open watches end when the right to them does, and cost nothing while nothing changes."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import AsyncIterator

import pytest

from serving import Asgi, local
from sully.server.authentication.authenticator import Authenticator
from sully.server.authorization.attributes import Attributes
from sully.server.authorization.index import BINDINGS
from sully.server.http.http_request import HttpRequest
from sully.server.http.open_watches import POLL_SECONDS, REVIEW_SECONDS, OpenWatches
from sully.server.requests import User
from sully.server.storage.watching import timeout
from sully.store.base import Delete, Put, StoreKey
from sully.store.memory import MemoryStore
from sully.testing.clock import FakeClock
from sully.testing.patience import PATIENCE

GROUP = "rbac.authorization.k8s.io"
PATH = "/api/v1/namespaces/default/configmaps"
ASKED = Attributes("watch", "", "v1", "configmaps", namespace="default")


@pytest.fixture
async def server() -> AsyncIterator[Asgi]:
    """Serve a store in which alice may watch config maps."""
    async with local() as server:
        await server.api.authorizer.start()
        rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["watch"]}]
        role = {"metadata": {"name": "watcher"}, "rules": rules}
        binding = {
            "metadata": {"name": "alice"},
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "watcher"},
            "subjects": [{"apiGroup": GROUP, "kind": "User", "name": "alice"}],
        }
        (await server.post(f"/apis/{GROUP}/v1/clusterroles", role)).ok(201)
        (await server.post(f"/apis/{GROUP}/v1/clusterrolebindings", binding)).ok(201)
        yield server


async def test_a_watch_ends_with_the_right_to_it(server: Asgi) -> None:
    admin, server.user = server.user, User("alice")
    async with server.watch(PATH) as open_watch:
        await open_watch.until(lambda respond: respond.code == 200)
        await server.app.watches.review()
        server.user = admin
        (await server.post(PATH, {"metadata": {"name": "a"}})).ok(201)
        await open_watch.until(lambda respond: len(respond.events) == 1)

        (await server.delete(f"/apis/{GROUP}/v1/clusterrolebindings/alice")).ok()
        await server.app.watches.review()
        await open_watch.until(lambda respond: respond.ended)
        (await server.post(PATH, {"metadata": {"name": "b"}})).ok(201)

    assert [event["object"]["metadata"]["name"] for event in open_watch.events] == ["a"]


async def test_open_watches_are_counted(server: Asgi) -> None:
    assert await open_watches(server) == []
    async with server.watch(PATH) as open_watch:
        await open_watch.until(lambda respond: respond.code == 200)

        assert await open_watches(server) == ["configmaps WATCH 1.0"]
    assert await open_watches(server) == ["configmaps WATCH 0.0"]


async def open_watches(server: Asgi) -> list[str]:
    page = (await server.get("/metrics")).body.decode()
    series = re.compile(
        r'apiserver_longrunning_requests{.*,resource="(.*?)",.*verb="(.*?)".*} (.*)'
    )
    return [" ".join(match.groups()) for match in series.finditer(page)]


async def test_other_watches_go_on(server: Asgi) -> None:
    async with server.watch(PATH) as open_watch:
        await open_watch.until(lambda respond: respond.code == 200)
        (await server.delete(f"/apis/{GROUP}/v1/clusterrolebindings/alice")).ok()
        await server.app.watches.review()
        (await server.post(PATH, {"metadata": {"name": "a"}})).ok(201)
        await open_watch.until(lambda respond: len(respond.events) == 1)

        assert not open_watch.ended


# name → (what is committed, whether rights may have changed)
POD, BINDING = StoreKey("pods", "ns", "a"), StoreKey(BINDINGS[0], "", "a")
CHANGES: dict[str, tuple[list[Put | Delete], bool]] = {
    "nothing": ([], False),
    "a pod is created": ([Put(POD, b"{}")], False),
    "a pod changes": ([Put(POD, b"{}"), Put(POD, b"{ }")], False),
    "a pod is deleted": ([Put(POD, b"{}"), Delete(POD)], True),
    "a binding is created": ([Put(BINDING, b"{}")], True),
    "something else is deleted": ([Put(StoreKey("leases", "", "a"), b"{}")], False),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_what_makes_it_look(name: str) -> None:
    operations, looks = CHANGES[name]
    async with MemoryStore() as store, local(store) as server:
        watches = OpenWatches(store, server.app._access, FakeClock())
        watches.changed()
        for operation in operations:
            await store.commit([operation])

        assert watches.changed() is looks
        assert not watches.changed()


async def test_what_was_missed_makes_it_look() -> None:
    async with MemoryStore() as store, local(store) as server:
        watches = OpenWatches(store, server.app._access, FakeClock())
        watches.changed()
        for _ in range(3):
            await store.commit([Put(POD, b"{}")])
        await store.compact(store.revision)

        assert watches.changed()
        assert not watches.changed()


class Counting:
    """Counts the questions; the answer is yes."""

    def __init__(self, seconds_left: float = 1e9) -> None:
        self.attributes = 0
        self._seconds_left = seconds_left

    def allows(self, http_request: object, attributes: object) -> bool:
        self.attributes += 1
        return True

    def seconds_left(self, http_request: object) -> float:
        return self._seconds_left


def http_request() -> HttpRequest:
    """Return a request that is never answered."""
    scope = {"method": "GET", "path": PATH, "query_string": b"watch=1", "headers": []}
    return HttpRequest(scope, asyncio.Future, lambda _: asyncio.Future())


async def test_it_looks_every_second_and_checks_all_every_minute() -> None:
    clock, access = FakeClock(), Counting()
    async with MemoryStore() as store:
        watches = OpenWatches(store, access, clock)
        with watches.track(http_request(), ASKED):
            keeping = asyncio.ensure_future(watches.run())
            attributes = []
            for second in range(2 * int(REVIEW_SECONDS)):
                await clock.sleepers(1)
                if second == 10:
                    await store.commit([Put(BINDING, b"{}")])
                clock.advance(POLL_SECONDS)
                await clock.sleepers(1)
                attributes.append(access.attributes)
            keeping.cancel()

    # After the change, and a minute later, and not in between.
    assert [attributes.index(number) for number in (1, 2)] == [10, 10 + int(REVIEW_SECONDS)]


async def _no_events() -> None:
    await asyncio.Event().wait()


async def test_a_watch_ends_with_its_credentials() -> None:
    async with MemoryStore() as store:
        watches = OpenWatches(store, Counting(seconds_left=0.0), FakeClock())
        open_watch = http_request()
        sending = asyncio.ensure_future(open_watch.while_connected(_no_events()))
        with watches.track(open_watch, ASKED):
            async with asyncio.timeout(PATIENCE):
                await sending

    assert open_watch.ended


def certificate(ends: str) -> dict[str, object]:
    subject = ((("commonName", "alice"),),)
    return {"sully.tls": {"peer": {"subject": subject, "notAfter": ends}}}


# name → (what the client shows, how many seconds it is good)
CREDENTIALS = {
    "no credentials": ({}, math.inf),
    "a certificate": (certificate("Jan  1 12:00:10 2030 GMT"), 10.0),
    "one that has ended": (certificate("Jan  1 11:59:00 2030 GMT"), -60.0),
}


@pytest.mark.parametrize("name", CREDENTIALS)
def test_how_long_credentials_are_good(name: str) -> None:
    extensions, seconds = CREDENTIALS[name]
    authenticator = Authenticator(FakeClock())

    assert authenticator.seconds_left({"extensions": extensions}, {}) == seconds


# name → (what a client asks for, how long the watch lasts)
LASTS = {
    "nothing": (None, 2700.0),
    "zero": ("0", 2700.0),
    "some minutes": ("300", 300.0),
    "an hour": ("3600", 3600.0),
    "a day": ("86400", 3600.0),
    "indefinitely": (str(2**63 - 1), 3600.0),
    "less than nothing": ("-1", -1.0),
}


class Half:
    """A random source that always returns the middle."""

    def random(self) -> float:
        return 0.5


@pytest.mark.parametrize("name", LASTS)
def test_how_long_a_watch_lasts(name: str) -> None:
    attributes, seconds = LASTS[name]

    assert timeout(attributes, Half()) == seconds
