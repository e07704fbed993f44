"""Requests for an object that another request is writing: it may have no revision, and may fail."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from etcds import Etcd
from manifests import secret
from serving import MERGE, local
from sully.store.base import Commit, Op, Record, StoreKey
from sully.store.errors import UnavailableError
from sully.store.etcd.store import EtcdStore
from sully.store.memory import MemoryStore

pytestmark = pytest.mark.slow
PATH = "/api/v1/namespaces/default/secrets/a"
WRITERS = 20


async def test_no_client_sees_or_suffers_from_a_write_without_a_revision() -> None:
    with Etcd() as etcd:
        async with (
            await EtcdStore.open(etcd.address) as store,
            local(store) as server,
        ):
            (await server.post(PATH.removesuffix("/a"), secret("a"))).ok(201)
            responses = await asyncio.gather(
                *(server.patch(PATH, {"data": {f"k{n}": "MQ=="}}, MERGE) for n in range(WRITERS)),
                *(
                    server.patch(f"{PATH}?dryRun=All", {"data": {f"d{n}": "MQ=="}}, MERGE)
                    for n in range(WRITERS)
                ),
                server.delete(f"{PATH}?dryRun=All"),
            )

            body = (await server.get(PATH)).ok()
            versions = [answer.ok()["metadata"].get("resourceVersion", "1") for answer in responses]
            assert min(map(int, versions)) > 0
            assert {f"k{n}" for n in range(WRITERS)} < set(body["data"])


class PendingStore(MemoryStore):
    """A store in which one object has a state that is not durable, and will not be."""

    pending: Record | None = None
    hides = False

    def newest(self, key: StoreKey) -> Record | None:
        if self.hides:
            return None
        return self.pending or super().newest(key)

    async def commit(self, ops: Sequence[Op]) -> Commit:
        if self.pending is None and not self.hides:
            return await super().commit(ops)
        raise UnavailableError("the disk is full")


@pytest.mark.parametrize("deleted", [False, True])
async def test_no_request_is_refused_because_of_one_that_fails(deleted: bool) -> None:
    store = PendingStore()
    async with local(store) as server:
        made = (await server.post(PATH.removesuffix("/a"), secret("a"))).ok(201)
        version = made["metadata"]["resourceVersion"]
        update = {**secret("a"), "metadata": made["metadata"], "data": {"k": "MQ=="}}
        record = MemoryStore.newest(store, StoreKey("secrets", "default", "a"))
        assert record is not None
        store.hides = deleted
        store.pending = Record(
            record.key, record.value, record.create_revision, record.revision + 1
        )

        responses = [
            await server.patch(PATH, update, MERGE),
            await server.put(PATH, update),
            await server.delete(PATH, {"preconditions": {"resourceVersion": version}}),
        ]

        assert [answer.code for answer in responses] == [503] * 3
