"""When the store lies elsewhere and does not answer: nothing is reported from the past."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
import pytest_asyncio

from manifests import TWO, secret
from serving import MERGE, Asgi, local
from sully.store.base import Commit, Op, Record, RecordPage, StoreKey
from sully.store.errors import UnavailableError, UncertainError
from sully.store.memory import MemoryStore

pytestmark = pytest.mark.asyncio(loop_scope="session")
SECRETS = "/api/v1/namespaces/default/secrets"


class FarStore(MemoryStore):
    """A store that others write to as well, and that can be out of reach."""

    lost = False
    stalled = False

    async def catch_up(self) -> None:
        if self.lost:
            raise UnavailableError("no member answers")

    async def get(self, key: StoreKey) -> Record | None:
        await self.catch_up()
        return await super().get(key)

    async def list(self, *where: Any, **how: Any) -> RecordPage:
        await self.catch_up()
        return await super().list(*where, **how)

    async def commit(self, ops: Sequence[Op]) -> Commit:
        if self.stalled:
            raise UncertainError("nobody knows")
        return await super().commit(ops)


@pytest_asyncio.fixture(loop_scope="session")
async def server() -> AsyncIterator[Asgi]:
    async with local(FarStore()) as made:
        (await made.post(SECRETS, secret("a"))).ok(201)
        yield made


async def test_a_replica_that_is_cut_off_promises_nothing(server: Asgi) -> None:
    server.api.watcher.bookmark_seconds = 0.01
    assert isinstance(server.store, FarStore)
    how: dict[str, Any] = {"allowWatchBookmarks": "true", "timeoutSeconds": "1"}
    version = (await server.get(SECRETS)).ok()["metadata"]["resourceVersion"]
    async with server.watch(SECRETS, resourceVersion=version, **how) as answer:
        before = await answer.until(lambda seen: b'"BOOKMARK"' in b"".join(seen.chunks))
        server.store.lost = True
        after = await answer.until(lambda seen: seen.ended)

    assert {event["type"] for event in before} == {"BOOKMARK"}
    # A hundred more would have been due; one may have been under way.
    assert len(after) <= len(before) + 1


CALLS: dict[str, tuple[str, str, Any, str]] = {
    "get": ("GET", f"{SECRETS}/a", None, ""),
    "get of a version to come": ("GET", f"{SECRETS}/a?resourceVersion=99999", None, ""),
    "list": ("GET", SECRETS, None, ""),
    "list of a version to come": ("GET", f"{SECRETS}?resourceVersion=99999", None, ""),
    "watch": ("GET", f"{SECRETS}?watch=1", None, ""),
    "create": ("POST", SECRETS, secret("n"), ""),
    "update": ("PUT", f"{SECRETS}/a", secret("a", TWO), ""),
    "patch": ("PATCH", f"{SECRETS}/a", {"data": {"k": TWO}}, MERGE),
    "delete": ("DELETE", f"{SECRETS}/a", None, ""),
    "delete many": ("DELETE", SECRETS, None, ""),
}


@pytest.mark.parametrize(("method", "path", "body", "media"), CALLS.values(), ids=CALLS)
async def test_out_of_reach(server: Asgi, method: str, path: str, body: Any, media: str) -> None:
    assert isinstance(server.store, FarStore)
    server.store.lost = True

    answer = await server.call(method, path, body, media or "application/json")

    assert (answer.code, answer.json["reason"]) == (503, "ServiceUnavailable"), answer.body
    assert answer.message == "the store is unavailable: no member answers"


async def test_a_write_of_unknown_outcome_is_no_failure_and_no_success(server: Asgi) -> None:
    assert isinstance(server.store, FarStore)
    server.store.stalled = True

    answer = await server.post(SECRETS, secret("n"))

    assert (answer.code, answer.json["reason"]) == (504, "Timeout")
    assert answer.message == "nobody knows"
