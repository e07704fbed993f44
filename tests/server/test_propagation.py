"""What a deletion leaves to be done for dependents: the finalizers that the collector removes.

No controller runs here; tests/controllers/test_garbagecollection.py has the other half.
"""

from typing import Any

import pytest

from manifests import pod, secret
from serving import Asgi, Obj, local
from sully.testing.clock import FakeClock

pytestmark = pytest.mark.asyncio(loop_scope="session")
SECRETS = "/api/v1/namespaces/default/secrets"
PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/api/v1/namespaces/default/events"
FOREGROUND = {"propagationPolicy": "Foreground"}
ORPHAN = {"propagationPolicy": "Orphan"}
BACKGROUND = {"propagationPolicy": "Background"}

POLICIES: dict[str, tuple[list[str], Any, list[str]]] = {
    "no policy": ([], None, []),
    "in the background": ([], BACKGROUND, []),
    "in the foreground": ([], FOREGROUND, ["foregroundDeletion"]),
    "orphans": ([], ORPHAN, ["orphan"]),
    "orphans, in old words": ([], {"orphanDependents": True}, ["orphan"]),
    "no orphans, in old words": ([], {"orphanDependents": False}, []),
    "with a finalizer of others": (["x.io/f"], ORPHAN, ["x.io/f", "orphan"]),
    "as the object requests": (["orphan"], None, ["orphan"]),
    "not as the object requests": (["orphan"], BACKGROUND, []),
    "another way than the object requests": (["orphan"], FOREGROUND, ["foregroundDeletion"]),
}


@pytest.mark.parametrize(("held", "options", "want"), POLICIES.values(), ids=POLICIES.keys())
async def test_the_policy_leaves_a_finalizer(
    calm: Asgi, held: list[str], options: Any, want: list[str]
) -> None:
    (await calm.post(SECRETS, secret("a", finalizers=held))).ok(201)

    answer = (await calm.delete(f"{SECRETS}/a", options)).ok(200)
    result = await calm.get(f"{SECRETS}/a")

    if not want:
        assert (answer["kind"], result.code) == ("Status", 404)
        return
    assert result.ok() == answer
    assert answer["metadata"]["finalizers"] == want
    assert answer["metadata"]["deletionGracePeriodSeconds"] == 0
    assert "deletionTimestamp" in answer["metadata"]


async def test_without_orphans_a_deletion_that_waits_is_only_accepted(calm: Asgi) -> None:
    (await calm.post(SECRETS, secret("a", finalizers=["x.io/f"]))).ok(201)

    answer = (await calm.delete(f"{SECRETS}/a", {"orphanDependents": False})).ok(202)

    assert answer["metadata"]["finalizers"] == ["x.io/f"]


async def test_in_the_url_it_means_the_same(calm: Asgi) -> None:
    (await calm.post(SECRETS, secret("a"))).ok(201)

    answer = (await calm.delete(f"{SECRETS}/a", **FOREGROUND)).ok(200)

    assert answer["metadata"]["finalizers"] == ["foregroundDeletion"]


AGAIN: dict[str, tuple[Any, Any, list[str]]] = {
    "no other policy": (FOREGROUND, None, ["foregroundDeletion"]),
    "the same": (ORPHAN, ORPHAN, ["orphan"]),
    "otherwise": (FOREGROUND, ORPHAN, ["orphan"]),
    "without waiting": (FOREGROUND, BACKGROUND, []),
}


@pytest.mark.parametrize(("first", "second", "want"), AGAIN.values(), ids=AGAIN.keys())
async def test_a_second_deletion_may_report_otherwise(
    calm: Asgi, first: Any, second: Any, want: list[str]
) -> None:
    (await calm.post(SECRETS, secret("a"))).ok(201)
    marked = (await calm.delete(f"{SECRETS}/a", first)).ok(200)

    (await calm.delete(f"{SECRETS}/a", second)).ok(200)
    result = await calm.get(f"{SECRETS}/a")

    if not want:
        assert result.code == 404
        return
    metadata = result.ok()["metadata"]
    assert metadata["finalizers"] == want
    assert metadata["deletionTimestamp"] == marked["metadata"]["deletionTimestamp"]


async def test_a_dry_run_shows_the_finalizer(calm: Asgi) -> None:
    before = (await calm.post(SECRETS, secret("a"))).ok(201)

    shown = (await calm.delete(f"{SECRETS}/a", ORPHAN, dryRun="All")).ok(200)

    assert shown["metadata"]["finalizers"] == ["orphan"]
    assert (await calm.get(f"{SECRETS}/a")).ok() == before


async def test_many_together(calm: Asgi) -> None:
    for name in "ab":
        (await calm.post(SECRETS, secret(name))).ok(201)

    (await calm.delete(SECRETS, FOREGROUND)).ok(200)

    left = (await calm.get(SECRETS)).ok()["items"]
    assert [item["metadata"]["finalizers"] for item in left] == [["foregroundDeletion"]] * 2


async def test_events_have_no_dependents(calm: Asgi) -> None:
    about = {"kind": "Secret", "name": "a", "namespace": "default"}
    event = {"metadata": {"name": "e"}, "involvedObject": about}
    (await calm.post(EVENTS, event)).ok(201)

    (await calm.delete(f"{EVENTS}/e", FOREGROUND)).ok(200)

    assert (await calm.get(f"{EVENTS}/e")).code == 404


async def test_a_namespace_waits_for_its_dependents_too(calm: Asgi) -> None:
    (await calm.post("/api/v1/namespaces", {"metadata": {"name": "n"}})).ok(201)

    marked = (await calm.delete("/api/v1/namespaces/n", ORPHAN)).ok(200)
    again = (await calm.delete("/api/v1/namespaces/n", BACKGROUND)).ok(200)

    assert marked["metadata"]["finalizers"] == ["orphan"]
    assert marked["status"]["phase"] == "Terminating"
    assert again["metadata"]["finalizers"] == ["orphan"]  # too late to change it


async def bound(server: Asgi, **metadata: Any) -> Obj:
    body = pod("a", **metadata)
    body["spec"] |= {"nodeName": "n", "terminationGracePeriodSeconds": 30}
    result: Obj = (await server.post(PODS, body)).ok(201)
    return result


async def test_a_pod_has_time_and_a_finalizer() -> None:
    async with local(clock=FakeClock(), pods=True) as server:
        await bound(server)
        marked = (await server.delete(f"{PODS}/a", FOREGROUND)).ok(200)["metadata"]
        assert marked["finalizers"] == ["foregroundDeletion"]
        assert marked["deletionGracePeriodSeconds"] == 30
        assert marked["generation"] == 2

        # As long as its time runs, only that can be changed.
        same = (await server.delete(f"{PODS}/a", BACKGROUND)).ok(200)["metadata"]
        assert same == marked

        over = BACKGROUND | {"gracePeriodSeconds": 0}
        (await server.delete(f"{PODS}/a", over)).ok(200)
        assert (await server.get(f"{PODS}/a")).code == 404


async def test_a_shorter_time_counts_from_the_first_deletion() -> None:
    clock = FakeClock()
    async with local(clock=clock, pods=True) as server:
        await bound(server)
        (await server.delete(f"{PODS}/a")).ok(200)
        clock.advance(5)

        body = (await server.delete(f"{PODS}/a", {"gracePeriodSeconds": 10})).ok(200)

        assert body["metadata"]["deletionTimestamp"] == "2030-01-01T12:00:10Z"
        assert body["metadata"]["deletionGracePeriodSeconds"] == 10
        assert body["metadata"]["generation"] == 2
