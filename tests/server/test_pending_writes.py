"""Requests for an object that another request is writing to etcd, which numbers it later."""

from __future__ import annotations

import asyncio

import pytest

from etcds import Etcd
from manifests import secret
from serving import MERGE, local
from sully.store.etcd.store import EtcdStore

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
            answers = await asyncio.gather(
                *(server.patch(PATH, {"data": {f"k{n}": "MQ=="}}, MERGE) for n in range(WRITERS)),
                *(
                    server.patch(f"{PATH}?dryRun=All", {"data": {f"d{n}": "MQ=="}}, MERGE)
                    for n in range(WRITERS)
                ),
                server.delete(f"{PATH}?dryRun=All"),
            )

            found = (await server.get(PATH)).ok()
            versions = [answer.ok()["metadata"].get("resourceVersion", "1") for answer in answers]
            assert min(map(int, versions)) > 0
            assert {f"k{n}" for n in range(WRITERS)} < set(found["data"])
