"""Several writes of one caller in one transaction: all or none, each as if it were alone."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import Any

import pytest

from controllers.world import ACCOUNTS, CONFIG_MAPS, NAMESPACES, PODS, World
from manifests import DRIVER, claim_spec, config_map
from quotas import QUOTAS, Plane
from sully.client.direct import DirectTransport
from sully.client.events import EVENTS
from sully.client.options import DeleteOptions, PatchType, WatchOptions, WriteOptions
from sully.client.transactions import Writes
from sully.client.transport import Key
from sully.machinery.errors import AlreadyExists, ApiError, Conflict, Forbidden, NotFound
from sully.server.audit.log import AuditLog
from sully.server.inprocess import InProcess
from sully.server.requests import User
from sully.store.memory import MemoryStore
from sully.views import kinds

CLAIMS = kinds.CLAIMS.read_as(dict)
POD = Key("a", "p")
NOW = DeleteOptions(grace_period_seconds=0)
MARK = {"status": {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}}


@pytest.fixture
async def world() -> World:
    made = World()
    await made.namespace("a")
    await made.create(ACCOUNTS, "a", "default")
    container = {"name": "c", "image": "example.com/x:1"}
    await made.create(PODS, "a", "p", spec={"containers": [container], "nodeName": "n"})
    return made


def map_(name: str, **data: str) -> dict[str, Any]:
    return config_map(name, data, namespace="a")


async def test_watchers_see_the_last_state_once(world: World) -> None:
    before = await world.admin.get(PODS, POD)
    writes = Writes()
    await writes.patch(PODS, POD, MARK, PatchType.STRATEGIC, "status")
    await writes.delete(PODS, POD)
    await world.admin.commit(writes.calls)

    after = await world.admin.get(PODS, POD)
    assert [condition["type"] for condition in after["status"]["conditions"]] == [
        "DisruptionTarget"
    ]
    assert after["metadata"]["deletionGracePeriodSeconds"] == 30
    assert int(after["metadata"]["resourceVersion"]) == world.store.revision
    options = WatchOptions(resource_version=before["metadata"]["resourceVersion"])
    async with aclosing(world.admin.watch(PODS, "a", options)) as events:
        event = await anext(events)
    assert (event.type, event.object) == ("MODIFIED", after)


async def test_a_pod_without_grace_is_seen_before_it_is_deleted(world: World) -> None:
    before = await world.admin.get(PODS, POD)
    writes = Writes()
    await writes.patch(PODS, POD, MARK, PatchType.STRATEGIC, "status")
    await writes.delete(PODS, POD, NOW)
    await world.admin.commit(writes.calls)

    options = WatchOptions(resource_version=before["metadata"]["resourceVersion"])
    async with aclosing(world.admin.watch(PODS, "a", options)) as events:
        modified, deleted = await anext(events), await anext(events)
    assert [modified.type, deleted.type] == ["MODIFIED", "DELETED"]
    for event in (modified, deleted):
        assert event.object is not None
        assert event.object["metadata"]["deletionGracePeriodSeconds"] == 0
        assert event.object["status"]["conditions"][0]["type"] == "DisruptionTarget"


async def test_all_objects_have_one_revision(world: World) -> None:
    writes = Writes()
    await writes.create(CONFIG_MAPS, map_("one", k="1"))
    await writes.patch(CONFIG_MAPS, Key("a", "one"), {"data": {"l": "2"}})
    await writes.create(CONFIG_MAPS, map_("two"))
    await world.admin.commit(writes.calls)

    one = await world.admin.get(CONFIG_MAPS, Key("a", "one"))
    two = await world.admin.get(CONFIG_MAPS, Key("a", "two"))
    assert one["data"] == {"k": "1", "l": "2"}
    assert one["metadata"]["resourceVersion"] == two["metadata"]["resourceVersion"]


async def test_what_is_deleted_can_be_created_again(world: World) -> None:
    await world.admin.create(CONFIG_MAPS, map_("one", k="1"))
    writes = Writes()
    await writes.delete(CONFIG_MAPS, Key("a", "one"))
    await writes.create(CONFIG_MAPS, map_("one", k="2"))
    await world.admin.commit(writes.calls)

    assert (await world.admin.get(CONFIG_MAPS, Key("a", "one")))["data"] == {"k": "2"}


async def test_what_changes_nothing_writes_nothing(world: World) -> None:
    await world.admin.create(CONFIG_MAPS, map_("one", k="1"))
    before = world.store.revision
    writes = Writes()
    await writes.patch(CONFIG_MAPS, Key("a", "one"), {"data": {"k": "1"}})
    await world.admin.commit(writes.calls)

    assert world.store.revision == before


@pytest.mark.parametrize(
    ("last", "error"),
    [("exists", AlreadyExists), ("gone", NotFound), ("other uid", Conflict)],
)
async def test_one_that_is_rejected_takes_all_back(
    world: World, last: str, error: type[ApiError]
) -> None:
    before = world.store.revision
    writes = Writes()
    await writes.create(CONFIG_MAPS, map_("one"))
    match last:
        case "exists":
            await writes.create(CONFIG_MAPS, map_("one"))
        case "gone":
            await writes.delete(PODS, Key("a", "other"))
        case "other uid":
            await writes.delete(PODS, POD, DeleteOptions(uid="other"))
    with pytest.raises(error):
        await world.admin.commit(writes.calls)

    assert world.store.revision == before
    # The next one restarts.
    again = Writes()
    await again.create(CONFIG_MAPS, map_("one"))
    await world.admin.commit(again.calls)
    assert await world.names(CONFIG_MAPS, "a") == ["a/one"]


async def test_a_change_by_another_writer_in_between_is_a_conflict(world: World) -> None:
    with world.api.staged() as (api, staged):
        caller = DirectTransport(InProcess(api, User("x", ("system:masters",))))
        await caller.patch(PODS, POD, MARK, PatchType.STRATEGIC, "status")
        await world.admin.patch(PODS, POD, {"metadata": {"labels": {"l": "1"}}})
        with pytest.raises(Conflict, match="pods/a/p was changed"):
            await staged.commit_staged()

    assert "conditions" not in (await world.admin.get(PODS, POD))["status"]


async def test_each_is_authorized_and_audited(world: World, tmp_path: Any) -> None:
    world.api.audit = log = AuditLog(tmp_path / "audit.log")
    writes = Writes()
    await writes.create(CONFIG_MAPS, map_("one"))
    await writes.delete(PODS, POD)
    nobody = DirectTransport(InProcess(world.api, User("nobody"), agent="x"))
    with pytest.raises(Forbidden):
        await nobody.commit(writes.calls)
    await world.admin.commit(writes.calls)
    again = Writes()
    await again.create(CONFIG_MAPS, map_("two"))
    await again.create(CONFIG_MAPS, map_("one"))
    with pytest.raises(AlreadyExists):
        await world.admin.commit(again.calls)
    await world.store.close()
    log.close()

    lines = [json.loads(line) for line in (tmp_path / "audit.log").read_text().splitlines()]
    assert [
        (line["user"]["username"], line["verb"], line["responseStatus"]["code"]) for line in lines
    ] == [
        ("nobody", "create", 403),
        ("admin", "create", 201),
        ("admin", "delete", 200),
        ("admin", "create", 409),
    ]


async def test_a_store_that_fails_is_audited_for_each(world: World, tmp_path: Any) -> None:
    world.api.audit = log = AuditLog(tmp_path / "audit.log")
    await world.store.close()
    writes = Writes()
    for name in ("one", "two"):
        await writes.create(CONFIG_MAPS, map_(name))
    with pytest.raises(ApiError):
        await world.admin.commit(writes.calls)
    log.close()

    lines = [json.loads(line) for line in (tmp_path / "audit.log").read_text().splitlines()]
    assert [line["responseStatus"]["code"] for line in lines] == [503, 503]


async def test_quotas_count_what_the_transaction_has_used() -> None:
    plane = Plane(MemoryStore())
    await plane.api.quotas.start()
    await plane.prepare()
    await plane.limit(hard={"configmaps": "2"}, used={"configmaps": "0"})
    writes = Writes()
    for name in ("one", "two"):
        await writes.create(CONFIG_MAPS, map_(name))
    await plane.access.commit(writes.calls)
    assert (await plane.access.get(QUOTAS, Key("a", "q")))["status"]["used"] == {"configmaps": "2"}

    more = Writes()
    await more.delete(CONFIG_MAPS, Key("a", "one"))
    await more.create(CONFIG_MAPS, map_("three"))
    await more.create(CONFIG_MAPS, map_("four"))
    with pytest.raises(Forbidden):
        await plane.access.commit(more.calls)
    await plane.access.commit(more.calls[:2])
    assert (await plane.access.get(QUOTAS, Key("a", "q")))["status"]["used"] == {"configmaps": "2"}


async def test_two_claims_of_a_transaction_do_not_get_one_device(world: World) -> None:
    await world.api.devices.start()
    result = {"request": "r", "driver": DRIVER, "pool": "p", "device": "d"}
    status = {"allocation": {"devices": {"results": [result]}}}
    writes = Writes()
    for name in ("c", "d"):
        await world.create(CLAIMS, "a", name, spec=claim_spec())
        await writes.patch(CLAIMS, Key("a", name), {"status": status}, subresource="status")
    with pytest.raises(Conflict, match="is allocated to claim a/c"):
        await world.admin.commit(writes.calls)

    await world.admin.commit(writes.calls[:1])


async def test_a_binding_can_follow_the_creation_of_its_pod(world: World) -> None:
    container = {"name": "c", "image": "example.com/x:1"}
    metadata = {"name": "q", "namespace": "a"}
    writes = Writes()
    await writes.create(PODS, {"metadata": metadata, "spec": {"containers": [container]}})
    await writes.create(
        PODS,
        {"kind": "Binding", "metadata": metadata, "target": {"kind": "Node", "name": "n"}},
        "binding",
    )
    await writes.create(
        EVENTS, {"metadata": {"name": "e", "namespace": "a"}, "involvedObject": {"namespace": "a"}}
    )
    await world.admin.commit(writes.calls)

    assert (await world.admin.get(PODS, Key("a", "q")))["spec"]["nodeName"] == "n"


async def test_names_are_generated_once_each(world: World) -> None:
    body = {"metadata": {"generateName": "m-", "namespace": "a"}}
    writes = Writes()
    await writes.create(CONFIG_MAPS, body)
    await writes.create(CONFIG_MAPS, body)
    await writes.apply(NAMESPACES, {"metadata": {"name": "b"}}, WriteOptions(field_manager="x"))
    await world.admin.commit(writes.calls)

    assert len(await world.names(CONFIG_MAPS, "a")) == 2
