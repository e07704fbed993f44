"""Machines are made at the start, kept as they are, and removed when they are too many."""

from __future__ import annotations

import pytest

from controllers.simulatednodes.running import NODES, SLICES, leases, prepare, simulated_nodes
from controllers.world import Obj, World
from sully.client.transport import Key
from sully.controllers.simulatednodes.nodes import LEASES
from sully.views.kinds import CLASSES


@pytest.fixture
async def world() -> World:
    made = World()
    await prepare(made)
    return made


async def slices(world: World) -> list[Obj]:
    return list((await world.admin.list(SLICES)).items)


async def test_a_fleet_appears(world: World) -> None:
    async with simulated_nodes(world, 3, 2):
        nodes = (await world.admin.list(NODES)).items

    assert await world.names(NODES) == ["worker-0000", "worker-0001", "worker-0002"]
    assert {node["metadata"]["labels"]["sully.dev/simulated"] for node in nodes} == {"true"}
    ready = [c for c in nodes[0]["status"]["conditions"] if c["type"] == "Ready"]
    assert [item["status"] for item in ready] == ["True"]
    assert nodes[0]["status"]["allocatable"]["pods"] == "110"
    assert {node["status"]["addresses"][0]["address"] for node in nodes} == {
        f"10.64.0.{number}" for number in (1, 2, 3)
    }
    assert await world.names(CLASSES.read_as(dict)) == ["gpu.sully.dev"]
    assert sorted(await leases(world)) == ["worker-0000", "worker-0001", "worker-0002"]


async def test_each_machine_has_a_pool_of_devices(world: World) -> None:
    async with simulated_nodes(world, 2, 2):
        result = await slices(world)

    assert [item["spec"]["nodeName"] for item in result] == ["worker-0000", "worker-0001"]
    assert {item["spec"]["pool"]["generation"] for item in result} == {1}
    names = [device["name"] for device in result[0]["spec"]["devices"]]
    assert names == ["gpu-0", "gpu-1"]
    attributes = result[0]["spec"]["devices"][1]["attributes"]
    assert attributes["index"] == {"int": 1}
    assert attributes["driverVersion"] == {"version": "1.4.0"}
    uuids = [
        device["attributes"]["uuid"]["string"]
        for item in result
        for device in item["spec"]["devices"]
    ]
    assert len(set(uuids)) == 4


async def test_many_devices_are_several_slices_of_one_pool(world: World) -> None:
    async with simulated_nodes(world, 1, 130):
        result = await slices(world)

    assert [len(item["spec"]["devices"]) for item in result] == [64, 64, 2]
    assert {item["spec"]["pool"]["resourceSliceCount"] for item in result} == {3}


async def test_what_a_machine_owns_reports_it(world: World) -> None:
    async with simulated_nodes(world, 1, 1):
        node = await world.admin.get(NODES, Key("", "worker-0000"))
        owners = (await slices(world))[0]["metadata"]["ownerReferences"]

    assert [owner["uid"] for owner in owners] == [node["metadata"]["uid"]]


async def test_another_start_writes_nothing(world: World) -> None:
    async with simulated_nodes(world, 3, 2):
        pass
    before = world.store.revision

    async with simulated_nodes(world, 3, 2) as transport:
        assert world.store.revision == before
    assert transport.calls == ["create deviceclasses"]


async def test_a_larger_fleet_adds_and_a_smaller_one_removes(world: World) -> None:
    async with simulated_nodes(world, 2):
        pass
    async with simulated_nodes(world, 4):
        assert len(await world.names(NODES)) == 4
    async with simulated_nodes(world, 1):
        assert await world.names(NODES) == ["worker-0000"]


async def test_none_at_all_removes_those_that_are_left(world: World) -> None:
    async with simulated_nodes(world, 2):
        pass
    async with simulated_nodes(world, 0):
        assert await world.names(NODES) == []


async def test_nodes_of_others_are_left_alone(world: World) -> None:
    theirs = {"metadata": {"name": "worker-0007"}}
    labelled = {"metadata": {"name": "mine", "labels": {"sully.dev/simulated": "true"}}}
    for body in (theirs, labelled):
        await world.admin.create(NODES, body)

    async with simulated_nodes(world, 1):
        assert await world.names(NODES) == ["mine", "worker-0000", "worker-0007"]


async def test_a_name_that_is_taken_is_not_published(world: World) -> None:
    await world.admin.create(NODES, {"metadata": {"name": "worker-0000"}})

    async with simulated_nodes(world, 2):
        assert [slice_["spec"]["nodeName"] for slice_ in await slices(world)] == ["worker-0001"]


async def test_other_devices_are_a_new_generation(world: World) -> None:
    async with simulated_nodes(world, 1, 70):
        pass
    async with simulated_nodes(world, 1, 3):
        result = await slices(world)

    assert [item["spec"]["pool"]["generation"] for item in result] == [2]
    assert len(result[0]["spec"]["devices"]) == 3


async def test_a_fault_is_published_and_removed(world: World) -> None:
    taint = {"key": "gpu.sully.dev/ecc-errors", "effect": "NoSchedule"}
    async with simulated_nodes(world, 1, 2, faults={(0, 1): taint}):
        (result,) = await slices(world)
        assert "taints" not in result["spec"]["devices"][0]
        assert result["spec"]["devices"][1]["taints"][0]["key"] == taint["key"]
    async with simulated_nodes(world, 1, 2):
        (result,) = await slices(world)

    assert "taints" not in result["spec"]["devices"][1]
    assert result["spec"]["pool"]["generation"] == 2


async def test_what_people_changed_survives_a_restart(world: World) -> None:
    async with simulated_nodes(world, 1):
        pass
    taint = {"key": "example.com/hot", "effect": "NoExecute"}
    (result,) = await slices(world)
    result["spec"]["devices"][0]["taints"] = [taint]
    await world.admin.update(SLICES, result)
    cordon = {"spec": {"unschedulable": True}}
    await world.admin.patch(NODES, Key("", "worker-0000"), cordon)

    async with simulated_nodes(world, 1):
        (result,) = await slices(world)
        node = await world.admin.get(NODES, Key("", "worker-0000"))

    assert result["spec"]["devices"][0]["taints"][0]["key"] == "example.com/hot"
    assert node["spec"]["unschedulable"] is True


async def test_a_node_that_was_published_differently_is_brought_up_to_date(world: World) -> None:
    async with simulated_nodes(world, 1):
        pass
    old = {"metadata": {"annotations": {"sully.dev/simulated-digest": "of another release"}}}
    await world.admin.patch(NODES, Key("", "worker-0000"), old)
    less = {"status": {"allocatable": {"pods": "3"}}}
    await world.admin.patch(NODES, Key("", "worker-0000"), less, subresource="status")

    async with simulated_nodes(world, 1):
        node = await world.admin.get(NODES, Key("", "worker-0000"))

    assert node["status"]["allocatable"]["pods"] == "110"
    async with simulated_nodes(world, 1) as transport:
        assert transport.calls == ["create deviceclasses"]


async def test_what_is_deleted_stays_away_until_the_next_start(world: World) -> None:
    async with simulated_nodes(world, 2):
        await world.admin.delete(NODES, Key("", "worker-0001"))
        await world.settle()
        assert await world.names(NODES) == ["worker-0000"]
    async with simulated_nodes(world, 2):
        assert await world.names(NODES) == ["worker-0000", "worker-0001"]
        # The slice of the former node would be collected; it belongs to the new one now.
        node = await world.admin.get(NODES, Key("", "worker-0001"))
        owners = [slice_["metadata"]["ownerReferences"][0]["uid"] for slice_ in await slices(world)]

    assert node["metadata"]["uid"] in owners


@pytest.mark.parametrize("what", ["nodes", "leases", "resourceslices", "deviceclasses"])
async def test_a_failure_is_made_up_for(world: World, what: str) -> None:
    async with simulated_nodes(world, 2, failing=(f"create {what}",)):
        await world.pass_time(10)

    assert len(await slices(world)) == 2
    assert sorted(await leases(world)) == ["worker-0000", "worker-0001"]
    assert await world.names(CLASSES.read_as(dict)) == ["gpu.sully.dev"]


async def test_leases_are_renewed_each_in_its_own_moment(world: World) -> None:
    async with simulated_nodes(world, 2):
        made = await leases(world)
        await world.pass_time(5, step=1)
        after_half = await leases(world)
        await world.pass_time(5, step=1)
        after_all = await leases(world)

    assert made["worker-0000"]["leaseDurationSeconds"] == 40
    assert after_half["worker-0000"] != made["worker-0000"]
    assert after_half["worker-0001"] == made["worker-0001"]
    assert after_all["worker-0001"] != made["worker-0001"]
    assert after_all["worker-0000"] == after_half["worker-0000"]


async def test_a_large_fleet_renews_less_often(world: World) -> None:
    async with simulated_nodes(world, 300, 0) as transport:
        transport.calls.clear()
        await world.pass_time(30, step=1)

    assert transport.calls.count("patch leases") == 300
    assert (await leases(world))["worker-0000"]["leaseDurationSeconds"] == 120


async def test_a_lease_that_was_deleted_is_recreated(world: World) -> None:
    async with simulated_nodes(world, 1):
        await world.admin.delete(LEASES, Key("kube-node-lease", "worker-0000"))
        await world.pass_time(10)

    assert sorted(await leases(world)) == ["worker-0000"]
