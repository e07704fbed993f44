"""Claims from templates: made as wanted, recorded, and each only once."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from controllers.claims.using import (
    CLAIMS,
    TEMPLATES,
    Claiming,
    allocate,
    claim,
    claims,
    controller,
    delete,
    events_of,
    pod,
    prepare,
    prepare_template,
    recorded,
    set_status,
    template,
)
from controllers.lifecycles import Late
from controllers.recording_transport import broken
from controllers.world import NAMESPACES, PODS, Obj, World
from sully.client.options import DeleteOptions, WatchOptions, WriteOptions
from sully.client.transport import Key, UnreachableError
from sully.controllers.claims.creator import names_for
from sully.domain.claims.lifecycle import EXTENDED, POD_CLAIM, ClaimToCreate


def names_of(pod: Obj, claim: str = "g") -> list[str]:
    metadata = pod["metadata"]
    expected = ClaimToCreate(namespace="a", pod=metadata["name"], uid=metadata["uid"], claim=claim)
    return list(names_for(expected))


async def test_a_claim_is_made_and_recorded(world: World) -> None:
    await prepare(world)
    await template(world, labels={"team": "red"}, annotations={"note": "n"})
    made_for = await pod(world, g="t")
    async with world.controlled(controller()):
        await world.settle()

    ((name, made),) = (await claims(world)).items()
    metadata = made["metadata"]
    assert await recorded(world) == {"g": name}
    assert metadata["generateName"] == "p-g-"
    assert metadata["labels"] == {"team": "red"}
    assert metadata["annotations"] == {"note": "n", POD_CLAIM: "g"}
    assert metadata["ownerReferences"] == [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "p",
            "uid": made_for["metadata"]["uid"],
            "controller": True,
        }
    ]
    expected = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    assert made["spec"]["devices"]["requests"] == [{"name": "r", "exactly": expected}]
    assert [entry["manager"] for entry in metadata["managedFields"]] == ["kube-controller-manager"]


async def test_who_recorded_it(world: World) -> None:
    await prepare_template(world)
    await pod(world, g="t")
    async with world.controlled(controller()):
        await world.settle()

    result = await world.admin.get(PODS, Key("a", "p"))
    (entry,) = [
        entry
        for entry in result["metadata"]["managedFields"]
        if entry["manager"] == "ResourceClaimController"
    ]
    assert (entry["operation"], entry["subresource"]) == ("Apply", "status")
    assert list(entry["fieldsV1"]["f:status"]) == ["f:resourceClaimStatuses"]


async def test_a_pod_with_several_claims_costs_one_write_each_and_one_to_record(
    world: World,
) -> None:
    claiming = Claiming()
    await prepare_template(world)
    await claim(world, "mine")
    async with world.controlled(claiming.make):
        await world.settle()
        await pod(world, named="mine", b="t", a="t")
        await world.settle()

    assert claiming.asked.calls == ["create resourceclaims"] * 2 + ["apply pods/status"]
    assert list(await recorded(world)) == ["a", "b"]
    assert len(await claims(world)) == 3


async def test_an_entry_without_a_name_reports_that_none_is_needed(world: World) -> None:
    await prepare_template(world)
    await pod(world, g="t", h="t")
    await set_status(world, resourceClaimStatuses=[{"name": "g"}])
    async with world.controlled(controller()):
        await world.settle()

    (name,) = await claims(world)
    assert await recorded(world) == {"g": "", "h": name}


async def test_a_restart_changes_nothing(world: World) -> None:
    claiming = Claiming()
    await prepare_template(world)
    await pod(world, g="t")
    async with world.controlled(claiming.make):
        await world.settle()
    before = world.store.revision
    async with world.controlled(Claiming(claiming.transport).make):
        await world.settle()

    assert world.store.revision == before
    assert claiming.asked.calls == ["create resourceclaims", "apply pods/status"]


async def test_what_was_made_but_not_recorded_is_found(world: World) -> None:
    claiming = Claiming()
    await prepare_template(world)
    async with world.controlled(claiming.make):
        claiming.asked.failures["apply pods/status"] = broken()
        await pod(world, g="t")
        await world.pass_time(1)

    (name,) = await claims(world)
    assert await recorded(world) == {"g": name}
    assert claiming.writes() == ["create resourceclaims", *["apply pods/status"] * 2]
    assert await events_of(world) == []


async def test_a_restart_between_making_and_recording(world: World) -> None:
    claiming = Claiming()
    await prepare_template(world)
    async with world.controlled(claiming.make):
        claiming.asked.failures["apply pods/status"] = broken()
        await pod(world, g="t")
        await world.settle()
    async with world.controlled(controller()):
        await world.settle()

    (name,) = await claims(world)
    assert await recorded(world) == {"g": name}


async def test_an_answer_that_got_lost(world: World) -> None:
    claiming = Claiming()
    await prepare_template(world)
    late = Late(world, "resourceclaims")
    async with world.controlled(claiming.make):
        await world.settle()
        claiming.asked.losses["create resourceclaims"] = [UnreachableError("cut off")]
        with late:
            await pod(world, g="t")
            await world.pass_time(1)

    (name,) = await claims(world)
    assert await recorded(world) == {"g": name}


async def test_a_cache_of_claims_that_lags_behind_makes_no_second_one(world: World) -> None:
    claiming = Claiming()
    await prepare_template(world)
    late = Late(world, "resourceclaims")
    async with world.controlled(claiming.make):
        await world.settle()
        with late:
            claiming.asked.failures["apply pods/status"] = broken()
            await pod(world, g="t")
            await world.pass_time(1)
            await set_status(world, phase="Running")
            await world.settle()
            assert len(await recorded(world)) == 1
        await world.settle()

    assert list(await claims(world)) == list((await recorded(world)).values())


async def test_two_controllers_together_make_one_claim(world: World) -> None:
    await prepare_template(world)
    async with AsyncExitStack() as stack:
        for _ in range(2):
            await stack.enter_async_context(world.controlled(controller()))
        await world.settle()
        await asyncio.gather(*(pod(world, f"p{index}", g="t", h="t") for index in range(5)))
        await world.pass_time(5)

    result = await claims(world)
    assert len(result) == 10
    for index in range(5):
        assert set((await recorded(world, f"p{index}")).values()) <= set(result)


async def test_a_name_that_another_user_has(world: World) -> None:
    await prepare_template(world)
    wants = await pod(world, g="t")
    first, second, *_ = names_of(wants)
    await claim(world, first)
    async with world.controlled(controller()):
        await world.settle()

    assert await recorded(world) == {"g": second}
    assert set(await claims(world)) == {first, second}


async def test_all_names_taken(world: World) -> None:
    await prepare_template(world)
    wants = await pod(world, g="t")
    for item in names_of(wants):
        await claim(world, item)
    async with world.controlled(controller()):
        await world.pass_time(1)
        assert await recorded(world) == {}
        await delete(world, CLAIMS, names_of(wants)[3])
        await world.pass_time(30)

    assert await recorded(world) == {"g": names_of(wants)[3]}


async def test_a_claim_that_vanished_is_made_again(world: World) -> None:
    await prepare_template(world)
    await pod(world, g="t")
    async with world.controlled(controller()):
        await world.settle()
        ((name, first),) = (await claims(world)).items()
        await delete(world, CLAIMS, name)
        await world.settle()

    ((again, second),) = (await claims(world)).items()
    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    assert await recorded(world) == {"g": again}


async def test_a_claim_that_lost_its_owner_is_not_used(world: World) -> None:
    await prepare_template(world)
    await pod(world, g="t")
    async with world.controlled(controller()):
        await world.settle()
        (name,) = await claims(world)
        await world.admin.patch(CLAIMS, Key("a", name), {"metadata": {"ownerReferences": None}})
        await world.settle()

    result = await claims(world)
    assert len(result) == 2
    assert (await recorded(world))["g"] in set(result) - {name}


@pytest.mark.parametrize("lagging", [False, True])
async def test_a_claim_that_another_controller_made_is_kept(world: World, lagging: bool) -> None:
    claiming = Claiming()
    await prepare_template(world)
    late = Late(world, "resourceclaims")
    async with world.controlled(claiming.make):
        await world.settle()
        claiming.asked.failures["create resourceclaims"] = broken()
        wants = await pod(world, g="t")
        await world.settle()
        with late:
            await claim(world, "p-g-other", wants, annotations={POD_CLAIM: "g"})
            if not lagging:
                await world.settle()
            status = {"resourceClaimStatuses": [{"name": "g", "resourceClaimName": "p-g-other"}]}
            who = {"namespace": "a", "name": "p"}
            manager = WriteOptions(field_manager="ResourceClaimController", force=True)
            await world.admin.apply(PODS, {"metadata": who, "status": status}, manager, "status")
            await world.pass_time(1)

    assert set(await claims(world)) == {"p-g-other"}
    assert await recorded(world) == {"g": "p-g-other"}


async def test_a_missing_template_is_reported_and_waited_for(world: World) -> None:
    claiming = Claiming()
    await prepare(world)
    async with world.controlled(claiming.make) as manager:
        await pod(world, g="t")
        await world.settle()
        text = (
            'PodResourceClaim g: resource claim template "t":'
            ' resourceclaimtemplate.resource.k8s.io "t" not found'
        )
        assert await events_of(world) == [("p", "FailedResourceClaimCreation", text)]
        # Nothing ticks: what comes wakes us.
        assert manager.delayed == 0
        await template(world)
        await world.settle()

    (name,) = await claims(world)
    assert await recorded(world) == {"g": name}


async def test_a_template_whose_event_is_slower_than_the_pods(world: World) -> None:
    await prepare(world)
    late = Late(world, "resourceclaimtemplates")
    async with world.controlled(controller()):
        await world.settle()
        with late:
            await template(world)
            await pod(world, g="t")
            await world.settle()
            assert len(await recorded(world)) == 1

    assert await events_of(world) == []


async def test_a_failure_is_reported_counted_and_tried_again(world: World) -> None:
    claiming = Claiming()
    await prepare_template(world)
    async with world.controlled(claiming.make):
        claiming.asked.failures["create resourceclaims"] = broken(text="no room")
        await pod(world, g="t")
        await world.pass_time(1)

    text = "PodResourceClaim g: create ResourceClaim : no room"
    assert await events_of(world) == [("p", "FailedResourceClaimCreation", text)]
    assert len(await recorded(world)) == 1

    def creates(status: str) -> float | None:
        return claiming.metrics.registry.get_sample_value(
            "dynamic_resource_allocation_resourceclaim_creates_total",
            {"status": status, "admin_access": "false"},
        )

    assert (creates("failure"), creates("success")) == (1, 1)


async def test_nobody_complains_while_a_namespace_is_deleted(world: World) -> None:
    claiming = Claiming()
    await prepare_template(world)
    await pod(world, g="t")
    await world.admin.delete(NAMESPACES, Key("", "a"))
    async with world.controlled(claiming.make):
        await world.settle()

    assert claiming.asked.calls == ["create resourceclaims"]
    assert claiming.asked.events == 0


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_a_finished_pod_gets_no_claims(world: World, phase: str) -> None:
    await prepare_template(world)
    await pod(world, g="t")
    await set_status(world, phase=phase)
    async with world.controlled(controller()):
        await world.settle()

    assert await claims(world) == {}


async def test_a_pod_on_its_way_out_gets_no_claims(world: World) -> None:
    await prepare_template(world)
    await pod(world, node="node-1", g="t")
    await delete(world, PODS, "p", DeleteOptions(grace_period_seconds=30))
    async with world.controlled(controller()):
        await world.settle()

    assert await claims(world) == {}


async def test_a_pod_of_the_same_name_does_not_inherit(world: World) -> None:
    claiming = Claiming()
    await prepare_template(world)

    async def replace() -> None:
        await delete(world, PODS, "p")
        await pod(world, g="t")

    async with world.controlled(claiming.make):
        await world.settle()
        claiming.asked.before["apply pods/status"] = replace
        first = await pod(world, g="t")
        await world.pass_time(5)

    new = await world.admin.get(PODS, Key("a", "p"))
    assert new["metadata"]["uid"] != first["metadata"]["uid"]
    assert set(await claims(world)) == {names_of(new)[0]}
    assert await _ever_recorded(world, since=first) == {names_of(new)[0]}


async def _ever_recorded(world: World, since: Obj) -> set[str]:
    """Return the claims that pods of this name have been reported."""
    names: set[str] = set()
    last = (await world.admin.get(PODS, Key("a", "p")))["metadata"]["resourceVersion"]
    options = WatchOptions(resource_version=since["metadata"]["resourceVersion"])
    async for event in world.admin.watch(PODS, "a", options):
        assert event.object is not None
        reported = event.object["status"].get("resourceClaimStatuses") or ()
        names |= {message["resourceClaimName"] for message in reported}
        if event.resource_version == last:
            break
    return names


async def test_the_spec_is_taken_as_it_stands(world: World) -> None:
    tolerations = [{"key": "k", "operator": "Exists", "tolerationSeconds": 9}]
    expected = {"deviceClassName": "gpu", "tolerations": tolerations}
    spec = {"devices": {"requests": [{"name": "r", "exactly": expected}]}}
    await prepare(world)
    made_from = await world.create(TEMPLATES, "a", "t", spec={"spec": spec})
    await pod(world, g="t")
    async with world.controlled(controller()):
        await world.settle()

    (made,) = (await claims(world)).values()
    assert made["spec"] == made_from["spec"]["spec"]


async def test_how_many_claims_there_are_can_be_read(world: World) -> None:
    claiming = Claiming()
    await prepare_template(world)

    def count(allocated: str, source: str) -> float | None:
        labels = {"allocated": allocated, "admin_access": "false", "source": source}
        return claiming.metrics.registry.get_sample_value(
            "dynamic_resource_allocation_resource_claims", labels
        )

    async with world.controlled(claiming.make):
        await pod(world, g="t")
        await claim(world)
        await claim(world, "x", annotations={EXTENDED: "true"})
        await world.settle()
        assert count("false", "resource_claim_template") == 1
        assert count("false", "extended_resource") == 1
        assert count("false", "") == 1
        await allocate(world)
        await delete(world, CLAIMS, "x")
        await world.settle()

    assert (count("false", ""), count("true", "")) == (0, 1)
    assert count("false", "extended_resource") == 0
