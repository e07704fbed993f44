"""The server holds creates to quotas, and charges them in the same transaction."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from quotas import CLAIMS, CLASSES, CONFIG_MAPS, DRY, NAMESPACES, PODS, QUOTAS, Plane, gpus
from sully.client.options import DeleteOptions
from sully.client.transport import Key
from sully.machinery.errors import AlreadyExists, Forbidden
from sully.store.memory import MemoryStore

EXCEEDED = "is forbidden: exceeded quota: q, requested: {0}=1, used: {0}=1, limited: {0}=1"
GPUS = "gpu.deviceclass.resource.k8s.io/devices"


@pytest.fixture
async def plane() -> Plane:
    made = Plane(MemoryStore())
    await made.api.quotas.start()
    await made.prepare()
    return made


async def test_a_create_is_charged_until_nothing_is_left(plane: Plane) -> None:
    await plane.limit(hard={"configmaps": "1", "pods": "5"}, used={"configmaps": "0", "pods": "0"})

    assert await plane.map("one") == ""
    assert await plane.map("two") == f'configmaps "two" {EXCEEDED.format("configmaps")}'
    assert await plane.used() == {"configmaps": "1", "pods": "0"}
    assert [item["metadata"]["name"] for item in (await plane.access.list(CONFIG_MAPS)).items] == [
        "one"
    ]


async def test_the_charge_has_the_revision_of_the_object(plane: Plane) -> None:
    await plane.limit(hard={"configmaps": "1"}, used={"configmaps": "0"})
    await plane.map("one")

    map_ = await plane.access.get(CONFIG_MAPS, Key("a", "one"))
    quota = await plane.access.get(QUOTAS, Key("a", "q"))
    assert map_["metadata"]["resourceVersion"] == quota["metadata"]["resourceVersion"]


async def test_of_many_together_as_many_win_as_there_are_places(plane: Plane) -> None:
    await plane.limit(hard={"configmaps": "3"}, used={"configmaps": "0"})

    refusals = await asyncio.gather(*(plane.map(f"m-{n}") for n in range(50)))

    assert refusals.count("") == 3
    assert await plane.used() == {"configmaps": "3"}


async def test_what_exists_is_not_charged_again(plane: Plane) -> None:
    await plane.limit(hard={"configmaps": "2"}, used={"configmaps": "0"})
    await plane.map("one")

    with pytest.raises(AlreadyExists):
        await plane.map("one")
    assert await plane.used() == {"configmaps": "1"}


async def test_what_is_deleted_is_released_with_it(plane: Plane) -> None:
    names = ("configmaps", "pods", "count/pods", "resourcequotas", GPUS)
    await plane.limit(hard=dict.fromkeys(names, "9"), used=dict.fromkeys(names, "3"))
    await plane.map("m")
    await plane.pod("p")
    await plane.pod("ended")
    await plane.attempt(CLAIMS, gpus("c", 2))
    await plane.limit("second", hard={"secrets": "1"}, used={"secrets": "0"})
    before = await plane.used()
    await plane.access.patch(
        PODS, Key("a", "ended"), {"status": {"phase": "Failed"}}, subresource="status"
    )
    ended = await plane.used()
    # Nobody deletes on a full second.
    plane.clock.advance(0.5)
    await plane.access.delete(CONFIG_MAPS, Key("a", "m"))
    for name in ("p", "ended"):
        await plane.access.delete(PODS, Key("a", name), DeleteOptions(grace_period_seconds=0))
    await plane.access.delete(CLAIMS, Key("a", "c"))
    await plane.access.delete(QUOTAS, Key("a", "second"))

    assert before == dict.fromkeys(names, "4") | {"pods": "5", "count/pods": "5", GPUS: "5"}
    assert ended == before | {"pods": "4"}
    assert await plane.used() == dict.fromkeys(names, "3")


async def test_a_finalizer_holds_the_place(plane: Plane) -> None:
    await plane.limit(hard={"configmaps": "1"}, used={"configmaps": "0"})
    metadata = {"name": "held", "finalizers": ["example.com/hold"]}
    await plane.attempt(CONFIG_MAPS, {"metadata": metadata})
    await plane.access.delete(CONFIG_MAPS, Key("a", "held"))
    going = await plane.used()
    patch = {"metadata": {"finalizers": None}}
    await plane.access.patch(CONFIG_MAPS, Key("a", "held"), patch)

    assert (going, await plane.used()) == ({"configmaps": "1"}, {"configmaps": "0"})


async def test_a_quota_that_counts_itself_can_go(plane: Plane) -> None:
    await plane.limit(hard={"resourcequotas": "1"}, used={"resourcequotas": "1"})

    await plane.access.delete(QUOTAS, Key("a", "q"))

    assert (await plane.access.list(QUOTAS, "a")).items == []


async def test_a_dry_run_is_refused_and_not_charged(plane: Plane) -> None:
    await plane.limit(hard={"configmaps": "1"}, used={"configmaps": "0"})
    body = {"metadata": {"name": "one"}}

    assert await plane.attempt(CONFIG_MAPS, body, DRY) == ""
    assert await plane.used() == {"configmaps": "0"}
    assert await plane.map("one") == ""
    assert "exceeded quota" in await plane.attempt(CONFIG_MAPS, {"metadata": {"name": "x"}}, DRY)


async def test_a_generated_name_is_reported(plane: Plane) -> None:
    await plane.limit(hard={"pods": "0"}, used={"pods": "0"})
    refused = await plane.attempt(
        PODS,
        {
            "metadata": {"generateName": "web-"},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    )

    name, _, why = refused.removeprefix('pods "').partition('" ')
    assert len(name) == len("web-abcde")
    assert (
        why == "is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0"
    )


async def test_what_is_limited_must_be_specified(plane: Plane) -> None:
    await plane.limit(hard={"limits.cpu": "1"}, used={"limits.cpu": "0"})

    assert await plane.pod("p") == (
        'pods "p" is forbidden: failed quota: q: must specify limits.cpu for: c'
    )


async def test_other_namespaces_and_kinds_are_not_limited(plane: Plane) -> None:
    await plane.limit(hard={"configmaps": "0"}, used={"configmaps": "0"})
    await plane.access.create(NAMESPACES, {"metadata": {"name": "b"}})

    assert await plane.pod("p") == ""
    assert await plane.attempt(CONFIG_MAPS, {"metadata": {"name": "m", "namespace": "b"}}) == ""


async def test_a_deleted_quota_limits_nothing(plane: Plane) -> None:
    await plane.limit(hard={"configmaps": "0"}, used={"configmaps": "0"})
    await plane.access.delete(QUOTAS, Key("a", "q"))

    assert await plane.map("one") == ""


async def test_a_new_quota_is_waited_for(plane: Plane) -> None:
    await plane.limit(hard={"configmaps": "1"})
    waiting = asyncio.ensure_future(plane.map("one"))
    await asyncio.sleep(0)
    quota = await plane.access.get(QUOTAS, Key("a", "q"))
    await plane.count(quota, {"configmaps": "1"})
    plane.clock.advance(0.05)

    assert await waiting == f'configmaps "one" {EXCEEDED.format("configmaps")}'


async def test_what_nobody_counts_is_refused_in_the_end(plane: Plane) -> None:
    await plane.limit(hard={"configmaps": "1", "pods": "1"})
    waiting = asyncio.ensure_future(plane.map("one"))
    while not waiting.done():
        await asyncio.sleep(0)
        plane.clock.advance(0.05)

    assert await waiting == (
        'configmaps "one" is forbidden: status unknown for quota: q, resources: configmaps'
    )


async def test_as_kubernetes_what_was_not_counted_is_not_limited() -> None:
    plane = Plane(MemoryStore(), strict=True)
    await plane.api.quotas.start()
    await plane.prepare()
    await plane.limit(hard={"configmaps": "0"})

    assert await plane.map("one") == ""


async def test_a_new_deadline_moves_a_pod_to_another_quota(plane: Plane) -> None:
    hard = {"pods": "1"}
    await plane.limit("brief", hard=hard, used={"pods": "1"}, scopes=["Terminating"])
    await plane.limit("lasting", hard=hard, used={"pods": "0"}, scopes=["NotTerminating"])
    assert await plane.pod("p") == ""

    patch = {"spec": {"activeDeadlineSeconds": 60}}
    with pytest.raises(Forbidden, match="exceeded quota: brief, requested: pods=1"):
        await plane.access.patch(PODS, Key("a", "p"), patch)
    await plane.access.delete(QUOTAS, Key("a", "brief"))
    await plane.limit("roomy", hard=hard, used={"pods": "0"}, scopes=["Terminating"])
    await plane.access.patch(PODS, Key("a", "p"), patch)

    assert await plane.used("roomy") == {"pods": "1"}
    assert await plane.used("lasting") == {"pods": "0"}


async def test_devices_are_charged(plane: Plane) -> None:
    await plane.limit(hard={GPUS: "4"}, used={GPUS: "0"})

    assert await plane.attempt(CLAIMS, gpus("one", 3)) == ""
    assert await plane.attempt(CLAIMS, gpus("two", 2)) == (
        'resourceclaims.resource.k8s.io "two" is forbidden: exceeded quota: q, requested:'
        f" {GPUS}=2, used: {GPUS}=3, limited: {GPUS}=4"
    )
    assert await plane.used() == {GPUS: "3"}


async def owned(plane: Plane, name: str, owner: Any) -> str:
    """Create a claim marked as that for the extended resources of a pod."""
    reference = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "p",
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    return await plane.attempt(
        CLAIMS,
        gpus(
            name,
            2,
            annotations={"resource.kubernetes.io/extended-resource-claim": "true"},
            ownerReferences=[reference],
        ),
    )


async def test_the_claim_of_a_pod_for_its_extended_resources_counts_once(plane: Plane) -> None:
    name = "requests.example.com/gpu"
    backing = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}}
    await plane.access.create(CLASSES, backing)
    await plane.limit(hard={name: "2"}, used={name: "0"})
    amounts = {"example.com/gpu": "2"}
    resources = {"requests": amounts, "limits": amounts}
    assert (
        await plane.pod("p", containers=[{"name": "c", "image": "i", "resources": resources}]) == ""
    )
    owner = await plane.access.get(PODS, Key("a", "p"))

    assert await owned(plane, "first", owner) == ""
    assert await plane.used() == {name: "2"}
    # Another one for the same pod is a way around the quota.
    second = await asyncio.gather(*(owned(plane, f"second-{n}", owner) for n in range(3)))
    assert all("exceeded quota: q" in refused for refused in second)
    stranger = {"metadata": {"uid": "another"}}
    assert "exceeded quota: q" in await owned(plane, "third", stranger)


async def test_of_two_first_claims_together_one_is_the_first(plane: Plane) -> None:
    name = "requests.example.com/gpu"
    backing = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}}
    await plane.access.create(CLASSES, backing)
    await plane.limit(hard={name: "2"}, used={name: "0"})
    amounts = {"example.com/gpu": "2"}
    resources = {"requests": amounts, "limits": amounts}
    await plane.pod("p", containers=[{"name": "c", "image": "i", "resources": resources}])
    owner = await plane.access.get(PODS, Key("a", "p"))

    refusals = await asyncio.gather(*(owned(plane, f"c-{n}", owner) for n in range(5)))

    assert refusals.count("") == 1
    assert len((await plane.access.list(CLAIMS, "a")).items) == 1


async def test_failed_creates_leave_nothing_in_the_index(plane: Plane) -> None:
    owner = {"metadata": {"uid": "1"}}
    await owned(plane, "c", owner)
    for number in range(20):
        with pytest.raises(AlreadyExists):
            await owned(plane, "c", {"metadata": {"uid": f"fake-{number}"}})
        await plane.attempt(CLAIMS, gpus(f"dry-{number}", 1), DRY)

    # What is filed is where it was, and nothing else is.
    assert list(plane.api.quotas._claims.values.values()) == ["1"]
