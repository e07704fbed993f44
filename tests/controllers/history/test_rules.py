"""Records of rules: created by whom and why, changes, evicted pods, deletion."""

from __future__ import annotations

from typing import Any

import pytest

import manifests
from controllers.history.remembering import (
    EVICTIONS,
    RECORDS,
    RULES,
    changes,
    evicted,
    historian,
    in_seconds,
    namespace,
    rule,
    set_effect,
    the_record,
    unrule,
)
from controllers.world import ACCOUNTS, PODS, World, orders, play
from sully.api.resource.annotations import EXPIRES_AT, PAUSED
from sully.api.resource.eviction_rate import BURST_ANNOTATION, RATE_ANNOTATION
from sully.client.transport import Key
from sully.server.inprocess import InProcess
from sully.server.requests import ResourceRef, User


async def test_a_rule_is_recorded(world: World) -> None:
    made = await rule(world)

    async with world.controlled(historian):
        await world.settle()
        got = await the_record(world)

    assert got["metadata"]["name"] == f"hot-{made['metadata']['uid'][:8]}"
    assert got["metadata"]["labels"] == {"sully.dev/rule": "hot"}
    assert got["spec"]["rule"] == {"name": "hot", "uid": made["metadata"]["uid"]}
    assert got["spec"]["createdBy"] == "admin"
    assert got["spec"]["description"] == "it smokes"
    assert got["spec"]["taint"] == made["spec"]["taint"]
    assert got["spec"]["deviceSelector"] == {"driver": "d.com"}
    assert got["status"]["taint"] == made["spec"]["taint"]
    assert got["status"]["observedGeneration"] == 1


async def _create(world: World) -> None:
    await rule(world)


async def _arm(world: World) -> None:
    await set_effect(world, "NoExecute")


async def _pause(world: World) -> None:
    body = {"metadata": {"annotations": {PAUSED: "night"}}}
    await world.admin.patch(RULES, Key("", "hot"), body)


@pytest.mark.parametrize("pauses", [True, False], ids=["slowly", "immediately"])
@pytest.mark.parametrize("start", range(4))
@pytest.mark.parametrize("later", orders(_arm, _pause))
async def test_the_last_state_is_known_whenever_we_start(
    world: World, later: Any, start: int, pauses: bool
) -> None:
    await play(world, (_create, *later), historian, start=start, pauses=pauses)

    status = (await the_record(world))["status"]
    assert status["taint"]["effect"] == "NoExecute"
    assert status["paused"] == "night"
    if pauses and start == 0:
        assert sorted(await changes(world)) == ["effect None -> NoExecute", "paused: night"]


async def test_what_changed_while_nobody_looked_is_noted(world: World) -> None:
    await rule(world)
    async with world.controlled(historian):
        await world.settle()
    world.clock.advance(60)
    await set_effect(world, "NoExecute")

    async with world.controlled(historian):
        await world.settle()

    assert await changes(world) == ["effect None -> NoExecute"]


async def test_a_rate_in_annotations_is_noted(world: World) -> None:
    await rule(world)
    async with world.controlled(historian):
        await world.settle()
        for annotations in (
            {RATE_ANNOTATION: "1/5m"},
            {BURST_ANNOTATION: "2"},
            {RATE_ANNOTATION: None, BURST_ANNOTATION: None},
        ):
            patch = {"metadata": {"annotations": annotations}}
            await world.admin.patch(RULES, Key("", "hot"), patch)
            await world.settle()

    assert await changes(world) == [
        "rate default -> 1/5m, burst 1",
        "rate 1/5m, burst 1 -> 1/5m, burst 2",
        "rate 1/5m, burst 2 -> default",
    ]


async def test_a_rule_that_is_deleted_is_marked_as_deleted(world: World) -> None:
    await rule(world)
    async with world.controlled(historian):
        await world.settle()
        world.clock.advance(90)
        await unrule(world)
        await world.settle()

    status = (await the_record(world))["status"]
    assert status["deletedTime"] == "2030-01-01T12:01:30.000000Z"
    assert status["deletedBy"] == "admin"
    assert status["taint"]["key"] == "example.com/hot"


async def test_a_rule_that_went_while_nobody_looked_is_marked_as_deleted(world: World) -> None:
    await rule(world)
    async with world.controlled(historian):
        await world.settle()
    await unrule(world)

    async with world.controlled(historian):
        await world.settle()

    assert "deletedTime" in (await the_record(world))["status"]


async def test_a_rule_that_is_deleted_after_its_time(world: World) -> None:
    await rule(world, annotations={EXPIRES_AT: in_seconds(world, 60)})
    async with world.controlled(historian):
        await world.settle()
        world.clock.advance(60)
        await unrule(world)
        await world.settle()

    # Its time had come, but it was a user who deleted it.
    assert (await the_record(world))["status"]["deletedBy"] == "admin"


async def test_a_rule_that_ends_by_itself(world: World) -> None:
    await rule(world, annotations={EXPIRES_AT: in_seconds(world, 60)})
    async with world.controlled(historian):
        await world.settle()
        world.clock.advance(60)
        program = world.transport("taint-expiry-controller")
        await program.delete(RULES, Key("", "hot"))
        await world.settle()

    assert (await the_record(world))["status"]["deletedBy"] == "expiry"


async def test_everybody_who_changed_a_rule_is_named(world: World) -> None:
    await rule(world)
    async with world.controlled(historian):
        await world.settle()
    # While no controller looks, and faster than one could.
    alice, bob, carol = (world.transport(name) for name in ("alice", "bob", "carol"))
    key = Key("", "hot")
    await alice.patch(RULES, key, {"metadata": {"annotations": {PAUSED: "true"}}})
    await bob.patch(RULES, key, {"metadata": {"annotations": {PAUSED: None}}})
    await bob.patch(RULES, key, {"metadata": {"labels": {"a": "b"}}})
    await carol.patch(RULES, key, {"spec": {"taint": {"effect": "NoExecute"}}})
    await alice.delete(RULES, key)

    async with world.controlled(historian):
        await world.settle()

    status = (await the_record(world))["status"]
    assert [(change["what"], change["by"]) for change in status["changes"]] == [
        ("paused", "alice"),
        ("resumed", "bob"),
        ("effect None -> NoExecute", "carol"),
    ]
    assert status["deletedBy"] == "alice"


ACCOUNT = "system:serviceaccount:kube-system:device-taint-policy-controller"
AUTHORS = {
    "the controller of the policy": (ACCOUNT, ACCOUNT, "policy ecc"),
    "another controller": (ACCOUNT, "system:serviceaccount:kube-system:other", None),
    "another user": (ACCOUNT, "alice", None),
    "a user who names a policy": ("alice", "alice", None),
}


@pytest.mark.parametrize(("creator", "user", "author"), AUTHORS.values(), ids=AUTHORS.keys())
async def test_changes_of_a_policy(
    world: World, creator: str, user: str, author: str | None
) -> None:
    annotations = {"sully.dev/policy-name": "ecc"}
    body = manifests.rule("hot", "None", key="example.com/hot", annotations=annotations)
    await world.transport(creator).create(RULES, body)
    writer = world.transport(user)
    await writer.patch(RULES, Key("", "hot"), {"spec": {"taint": {"effect": "NoExecute"}}})
    await writer.delete(RULES, Key("", "hot"))

    async with world.controlled(historian):
        await world.settle()

    status = (await the_record(world))["status"]
    assert [change["by"] for change in status["changes"]] == [author or user]
    assert status["deletedBy"] == (author or user)


async def test_who_deleted_a_rule_with_a_finalizer(world: World) -> None:
    await rule(world, finalizers=["example.com/wait"])
    async with world.controlled(historian):
        await world.settle()
        await world.transport("alice").delete(RULES, Key("", "hot"))
        await world.settle()
        assert "deletedTime" not in (await the_record(world))["status"]
        body = {"metadata": {"finalizers": None}}
        await world.transport("bob").patch(RULES, Key("", "hot"), body)
        await world.settle()

    status = (await the_record(world))["status"]
    assert status["deletedBy"] == "alice"
    assert "deletedTime" in status


async def test_a_rehearsed_deletion_is_not_noted(world: World) -> None:
    await rule(world)
    async with world.controlled(historian):
        await world.settle()
        before = await the_record(world)
        ref = ResourceRef("resource.k8s.io", RULES.version, RULES.plural, "", "hot")
        caller = InProcess(world.api, User("alice", ("system:masters",)))
        await caller.call("delete", ref, body={"dryRun": ["All"]})
        await world.settle()

    assert await the_record(world) == before


async def test_a_rule_of_the_same_name_has_a_record_of_its_own(world: World) -> None:
    await rule(world)
    async with world.controlled(historian):
        await world.settle()
        await unrule(world)
        await rule(world, effect="NoExecute")
        await world.settle()
        records = (await world.admin.list(RECORDS)).items

    deleted = {
        record["spec"]["taint"]["effect"]: "deletedTime" in record["status"] for record in records
    }
    assert deleted == {"None": True, "NoExecute": False}


async def test_a_record_that_a_user_deleted_comes_back_while_the_rule_stands(
    world: World,
) -> None:
    await rule(world)
    async with world.controlled(historian):
        await world.settle()
        before = await the_record(world)
        await world.admin.delete(RECORDS, Key("", before["metadata"]["name"]))
        await world.settle()

    assert (await the_record(world))["metadata"]["uid"] != before["metadata"]["uid"]


async def test_evicted_pods_are_counted_at_most_once_a_second(world: World) -> None:
    await namespace(world)
    await rule(world)
    async with world.controlled(historian):
        await world.settle()
        world.clock.advance(5)
        counts = []
        for index in range(4):
            await evicted(world, f"p{index}")
            await world.settle()
            counts.append((await the_record(world))["status"].get("evicted", 0))
        await world.pass_time(1, step=1)
        counts.append((await the_record(world))["status"]["evicted"])

    assert counts == [1, 1, 1, 1, 4]


async def test_a_pod_counts_for_each_of_its_rules(world: World) -> None:
    await namespace(world)
    await rule(world)
    await rule(world, "cold")
    await evicted(world, "both", "hot", "cold")
    await evicted(world, "one", "cold")

    async with world.controlled(historian):
        await world.pass_time(3, step=1)
        items = (await world.admin.list(RECORDS)).items

    counts = {item["spec"]["rule"]["name"]: item["status"]["evicted"] for item in items}
    assert counts == {"hot": 1, "cold": 2}


async def test_the_count_outlives_records_and_restarts(world: World) -> None:
    await namespace(world)
    await rule(world)
    async with world.controlled(historian):
        for index in range(3):
            await evicted(world, f"p{index}")
        await world.pass_time(2, step=1)
        await world.admin.delete(EVICTIONS, Key("a", "p0-uid"))
        await world.pass_time(2, step=1)
        assert (await the_record(world))["status"]["evicted"] == 3
    await world.admin.delete(EVICTIONS, Key("a", "p1-uid"))

    async with world.controlled(historian):
        await world.settle()
        await evicted(world, "p4")
        await world.pass_time(2, step=1)

    assert (await the_record(world))["status"]["evicted"] == 4


async def test_what_was_not_counted_before_a_restart_is_counted_after(world: World) -> None:
    await namespace(world)
    await rule(world)
    async with world.controlled(historian):
        await world.settle()
    await evicted(world, "p0")
    await evicted(world, "p1")

    async with world.controlled(historian):
        await world.pass_time(2, step=1)

    assert (await the_record(world))["status"]["evicted"] == 2


async def test_an_eviction_that_was_withdrawn_does_not_count(world: World) -> None:
    await namespace(world)
    await world.create(ACCOUNTS, "a", "default")
    spec = {"containers": [{"name": "c", "image": "example.com/x:1"}], "nodeName": "n"}
    pod = await world.create(PODS, "a", "p", spec=spec)
    uid = pod["metadata"]["uid"]
    await rule(world)
    async with world.controlled(historian):
        await evicted(world, "p", uid=uid)
        await world.pass_time(2, step=1)
        assert (await the_record(world))["status"]["evicted"] == 1
        await world.admin.delete(EVICTIONS, Key("a", uid))
        await world.pass_time(2, step=1)

    assert (await the_record(world))["status"].get("evicted", 0) == 0


async def test_pods_that_are_deleted_late_still_count_for_a_deleted_rule(world: World) -> None:
    await namespace(world)
    await rule(world)
    async with world.controlled(historian):
        await world.settle()
        await evicted(world, "p0")
        await unrule(world)
        await world.pass_time(2, step=1)

    status = (await the_record(world))["status"]
    assert status["evicted"] == 1
    assert "deletedTime" in status


async def test_nothing_is_written_when_nothing_happens(world: World) -> None:
    await namespace(world)
    await rule(world)
    await evicted(world, "p0")
    async with world.controlled(historian):
        await world.pass_time(5, step=1)
    before = world.store.revision

    async with world.controlled(historian):
        await world.pass_time(5, step=1)

    assert world.store.revision == before


async def _report_progress(world: World, message: str) -> None:
    """Report progress as Kubernetes' own controller does, which writes no records."""
    condition = {
        "type": "EvictionInProgress",
        "status": "False",
        "reason": "Completed",
        "message": message,
        "lastTransitionTime": in_seconds(world, 0),
    }
    body = {"status": {"conditions": [condition]}}
    await world.admin.patch(RULES, Key("", "hot"), body, subresource="status")


async def test_what_another_evictor_counted_outlives_it(world: World) -> None:
    await rule(world, effect="NoExecute")

    async with world.controlled(historian):
        await world.settle()
        counts = []
        for name in ("2 pods evicted since starting the controller.", ""):
            await _report_progress(world, name)
            await world.pass_time(2)
            counts.append((await the_record(world))["status"]["evicted"])
        await unrule(world)
        await world.settle()
        got = await the_record(world)

    assert counts == [2, 2]
    assert got["status"]["evicted"] == 2
    assert "deletedTime" in got["status"]


async def test_who_changed_and_deleted_a_rule_before_its_record_was_written(world: World) -> None:
    await rule(world)
    alice, bob = world.transport("alice"), world.transport("bob")
    await alice.patch(RULES, Key("", "hot"), {"spec": {"taint": {"effect": "NoSchedule"}}})
    await bob.delete(RULES, Key("", "hot"))

    async with world.controlled(historian):
        await world.settle()
        record = await the_record(world)

    (change,) = record["status"]["changes"]
    assert (change["what"], change["by"]) == ("effect None -> NoSchedule", "alice")
    assert record["spec"]["createdBy"] == "admin"
    assert record["status"]["deletedBy"] == "bob"
