"""Pods on simulated nodes start, run and end; pods on other nodes do not."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.simulatednodes.running import (
    CLAIMS,
    NODES,
    bound,
    conditions,
    event_messages,
    phase,
    pod,
    prepare,
    simulated_nodes,
)
from controllers.world import PODS, Obj, World, orders
from manifests import claim_spec
from sully.client.options import DeleteOptions, PatchType
from sully.client.transport import Key
from sully.domain.simulated.fleet import PodDelays

AT_ONCE = PodDelays(start=0, stop=0)


@pytest.fixture
async def world() -> World:
    made = World()
    await prepare(made)
    return made


async def test_a_pod_starts_in_its_own_time(world: World) -> None:
    async with simulated_nodes(world):
        await bound(world, "p")
        await world.settle()
        assert await phase(world, "p") == "Pending ContainerCreating"
        await world.pass_time(1)
        assert await phase(world, "p") == "Pending ContainerCreating"
        await world.pass_time(1)
        result = await pod(world, "p")

    assert result["status"]["phase"] == "Running"
    assert result["status"]["podIP"] == "10.128.0.1"
    assert result["status"]["podIPs"] == [{"ip": "10.128.0.1"}]
    assert result["status"]["hostIP"] == "10.64.0.1"
    assert result["status"]["startTime"] == "2030-01-01T12:00:00Z"
    assert set(conditions(result).values()) == {"True"}
    assert conditions(result).keys() == {
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    }
    (container,) = result["status"]["containerStatuses"]
    assert container["state"] == {"running": {"startedAt": "2030-01-01T12:00:02Z"}}
    assert (container["ready"], container["started"]) == (True, True)
    assert "reason" not in next(c for c in result["status"]["conditions"] if c["type"] == "Ready")


async def test_a_quick_start_costs_one_write(world: World) -> None:
    async with simulated_nodes(world, delays=PodDelays(start=0.5)) as transport:
        await bound(world, "p")
        transport.calls.clear()
        await world.pass_time(0.5)

    assert await phase(world, "p") == "Running"
    assert transport.calls == ["patch pods/status"]


async def test_pods_of_one_node_have_addresses_of_their_own(world: World) -> None:
    async with simulated_nodes(world, 2, delays=AT_ONCE):
        for name, node in (("p", "worker-0000"), ("q", "worker-0000"), ("r", "worker-0001")):
            await bound(world, name, node)
        await bound(world, "h", hostNetwork=True)
        await world.settle()
        pod_ips = [(await pod(world, name))["status"]["podIP"] for name in "pqrh"]

    assert pod_ips == ["10.128.0.1", "10.128.0.2", "10.128.1.1", "10.64.0.1"]


async def test_addresses_are_stored_over_a_restart(world: World) -> None:
    async with simulated_nodes(world, delays=AT_ONCE):
        await bound(world, "p")
        await world.settle()
    async with simulated_nodes(world, delays=AT_ONCE):
        await bound(world, "q")
        await world.settle()
        pod_ip = (await pod(world, "q"))["status"]["podIP"]

    assert pod_ip == "10.128.0.2"


async def test_pods_of_other_nodes_are_left_alone(world: World) -> None:
    await world.admin.create(NODES, {"metadata": {"name": "theirs"}})
    async with simulated_nodes(world, delays=AT_ONCE):
        await bound(world, "p", "theirs")
        await bound(world, "q", "worker-0099")
        await world.settle()
        await world.admin.delete(PODS, Key("a", "p"))
        await world.pass_time(60)

    assert (await phase(world, "p"), await phase(world, "q")) == (
        "Pending terminating",
        "Pending",
    )


async def test_a_pod_that_runs_is_not_written_again(world: World) -> None:
    async with simulated_nodes(world, delays=AT_ONCE):
        await bound(world, "p")
        await world.settle()
    async with simulated_nodes(world, delays=AT_ONCE) as transport:
        await world.pass_time(5)
        assert "patch pods/status" not in transport.calls


async def test_a_gate_opens_and_closes(world: World) -> None:
    async def gate(status: str) -> str:
        reported = {"conditions": [{"type": "example.com/gate", "status": status}]}
        where = Key("a", "p")
        await world.admin.patch(PODS, where, {"status": reported}, PatchType.STRATEGIC, "status")
        await world.settle()
        return conditions(await pod(world, "p"))["Ready"]

    async with simulated_nodes(world, delays=AT_ONCE):
        await bound(world, "p", readinessGates=[{"conditionType": "example.com/gate"}])
        await world.settle()
        began = (await pod(world, "p"))["status"]["containerStatuses"]
        assert conditions(await pod(world, "p"))["Ready"] == "False"
        assert [await gate("True"), await gate("False")] == ["True", "False"]

    assert (await pod(world, "p"))["status"]["containerStatuses"] == began


# -- claims ---------------------------------------------------------------------------------------


async def claim(world: World, name: str = "c") -> None:
    await world.create(CLAIMS, "a", name, spec=claim_spec("gpu.sully.dev"))


async def give(world: World, pod_name: str, name: str = "c") -> None:
    """Allocate a claim and reserve it for a pod, as the scheduler does."""
    uid = (await pod(world, pod_name))["metadata"]["uid"]
    await reserve(world, {"resource": "pods", "name": pod_name, "uid": uid}, name)


async def reserve(world: World, consumer: Obj, name: str = "c") -> None:
    result = {"request": "r", "driver": "gpu.sully.dev", "pool": "worker-0000", "device": "gpu-0"}
    status = {
        "allocation": {"devices": {"results": [result]}},
        "reservedFor": [consumer],
    }
    await world.admin.patch(CLAIMS, Key("a", name), {"status": status}, subresource="status")


async def claimed(world: World) -> None:
    await claim(world)


async def made(world: World) -> None:
    await bound(world, "p", resourceClaims=[{"name": "x", "resourceClaimName": "c"}])


@pytest.mark.parametrize("steps", orders(claimed, made))
async def test_a_pod_waits_for_its_claims(world: World, steps: tuple[Any, ...]) -> None:
    async with simulated_nodes(world, delays=AT_ONCE):
        for step in steps:
            await step(world)
            await world.settle()
        assert await phase(world, "p") == "Pending ContainerCreating"
        await give(world, "p")
        await world.settle()

    assert await phase(world, "p") == "Running"


@pytest.mark.parametrize("before", [0, 1, 2, 3], ids=lambda steps: f"{steps} before the nodes")
@pytest.mark.parametrize("steps", orders(claimed, made))
async def test_when_the_nodes_come_does_not_matter(
    world: World, steps: tuple[Any, ...], before: int
) -> None:
    async def event(world: World) -> None:
        await give(world, "p")

    whole = (*steps, event)
    for step in whole[:before]:
        await step(world)
    async with simulated_nodes(world, delays=AT_ONCE):
        for step in whole[before:]:
            await step(world)
        await world.settle()

    assert await phase(world, "p") == "Running"


async def test_a_claim_that_is_another_pods_does_not_count(world: World) -> None:
    async with simulated_nodes(world, delays=AT_ONCE):
        await claim(world)
        await made(world)
        await bound(world, "q")
        await give(world, "q")
        await world.settle()

    assert await phase(world, "p") == "Pending ContainerCreating"


async def test_a_claim_of_its_group_counts(world: World) -> None:
    async with simulated_nodes(world, delays=AT_ONCE):
        await claim(world)
        expected = [{"name": "x", "resourceClaimName": "c"}]
        await bound(world, "p", resourceClaims=expected, schedulingGroup={"podGroupName": "g"})
        await world.settle()
        group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "u"}
        await reserve(world, group)
        await world.settle()

    assert await phase(world, "p") == "Running"


async def test_a_claim_from_a_template_must_be_made_first(world: World) -> None:
    async with simulated_nodes(world, delays=AT_ONCE):
        expected = [{"name": "x", "resourceClaimTemplateName": "t"}]
        await bound(world, "p", resourceClaims=expected)
        await world.settle()
        assert await phase(world, "p") == "Pending ContainerCreating"
        status = {"resourceClaimStatuses": [{"name": "x"}]}
        await world.admin.patch(PODS, Key("a", "p"), {"status": status}, subresource="status")
        await world.settle()

    # An entry without a name reports that none is needed.
    assert await phase(world, "p") == "Running"


# -- ending ---------------------------------------------------------------------------------------


async def test_a_deleted_pod_stops_in_its_own_time(world: World) -> None:
    async with simulated_nodes(world):
        await bound(world, "p")
        await world.pass_time(2)
        await world.admin.delete(PODS, Key("a", "p"))
        await world.pass_time(2)
        assert await phase(world, "p") == "Running terminating"
        await world.pass_time(1)

    assert await phase(world, "p") == "gone"


GRACES = {"shorter than its stop time": (1, 1), "longer": (30, 3), "none": (0, 0)}


@pytest.mark.parametrize("case", GRACES)
async def test_grace_is_the_most_it_gets(world: World, case: str) -> None:
    grace, takes = GRACES[case]
    async with simulated_nodes(world):
        await bound(world, "p")
        await world.pass_time(2)
        options = DeleteOptions(grace_period_seconds=grace)
        await world.admin.delete(PODS, Key("a", "p"), options)
        if takes:
            await world.pass_time(takes - 0.5, step=0.5)
            assert await phase(world, "p") == "Running terminating"
            await world.pass_time(0.5)
        await world.settle()

    assert await phase(world, "p") == "gone"


async def test_a_pod_that_never_started_is_deleted_immediately(world: World) -> None:
    async with simulated_nodes(world):
        await bound(world, "p")
        await world.settle()
        await world.admin.delete(PODS, Key("a", "p"))
        await world.settle()

    assert await phase(world, "p") == "gone"


async def test_after_a_restart_terminating_pods_continue(world: World) -> None:
    async with simulated_nodes(world):
        await bound(world, "p")
        await world.pass_time(2)
        await world.admin.delete(PODS, Key("a", "p"))
        await world.settle()
    world.clock.advance(60)
    async with simulated_nodes(world):
        await world.settle()

    assert await phase(world, "p") == "gone"


async def test_a_finalizer_keeps_what_has_ended(world: World) -> None:
    async with simulated_nodes(world) as transport:
        await bound(world, "p", metadata={"finalizers": ["example.com/keep"]})
        await world.pass_time(2)
        await world.admin.delete(PODS, Key("a", "p"))
        await world.pass_time(10)
        assert await phase(world, "p") == "Failed terminating"
        transport.calls.clear()
        await world.pass_time(10)
        assert "delete pods" not in transport.calls
        await world.admin.patch(PODS, Key("a", "p"), {"metadata": {"finalizers": None}})

    assert await phase(world, "p") == "gone"


EXITS = {
    "ends well": ("0@5s", "Never", "Succeeded"),
    "ends badly": ("3@5s", "Never", "Failed"),
    "ends well and is not restarted": ("0@5s", "OnFailure", "Succeeded"),
    "would be restarted": ("3@5s", "OnFailure", "Running"),
    "always restarted": ("0@5s", "Always", "Running"),
    "later": ("0@1m", "Never", "Running"),
    "not understood": ("soon", "Never", "Running"),
}


@pytest.mark.parametrize("case", EXITS)
async def test_pods_that_end_by_themselves(world: World, case: str) -> None:
    exit_text, policy, want = EXITS[case]
    async with simulated_nodes(world, delays=AT_ONCE):
        annotations = {"sully.dev/simulated-exit": exit_text}
        await bound(world, "p", metadata={"annotations": annotations}, restartPolicy=policy)
        await world.pass_time(4)
        assert await phase(world, "p") == "Running"
        await world.pass_time(1)

    assert await phase(world, "p") == want


async def test_how_it_ended_is_reported(world: World) -> None:
    async with simulated_nodes(world, delays=AT_ONCE):
        annotations = {"sully.dev/simulated-exit": "3@5s"}
        await bound(world, "p", metadata={"annotations": annotations}, restartPolicy="Never")
        await world.pass_time(5)
        result = await pod(world, "p")

    (container,) = result["status"]["containerStatuses"]
    ended = container["state"].pop("terminated")
    assert container["state"] == {}
    assert (ended["exitCode"], ended["reason"]) == (3, "Error")
    assert (ended["startedAt"], ended["finishedAt"]) == (
        "2030-01-01T12:00:00Z",
        "2030-01-01T12:00:05Z",
    )
    assert conditions(result)["Ready"] == "False"


async def test_an_annotation_that_is_not_understood_is_reported(world: World) -> None:
    async with simulated_nodes(world, delays=AT_ONCE):
        annotations = {"sully.dev/simulated-exit": "soon"}
        await bound(world, "p", metadata={"annotations": annotations}, restartPolicy="Never")
        await world.settle()

    assert await event_messages(world) == [
        "InvalidSimulatedExit: sully.dev/simulated-exit: invalid value 'soon' is ignored"
        " (for example 0@5s)"
    ]


async def test_a_failed_write_is_tried_again(world: World) -> None:
    async with simulated_nodes(world, delays=AT_ONCE, failing=("patch pods/status", "delete pods")):
        await bound(world, "p")
        await world.pass_time(1)
        assert (await pod(world, "p"))["status"]["podIP"] == "10.128.0.1"
        await world.admin.delete(PODS, Key("a", "p"))
        await world.pass_time(5)

    assert await phase(world, "p") == "gone"


async def test_many_pods_cost_a_write_each_and_nothing_while_they_run(world: World) -> None:
    async with simulated_nodes(world, 20, 0, delays=PodDelays(start=0.5, stop=0.5)) as transport:
        for number in range(200):
            await bound(world, f"p{number}", f"worker-{number % 20:04}")
        await world.pass_time(1)
        assert transport.calls.count("patch pods/status") == 200
        transport.calls.clear()
        await world.pass_time(9)
        # Only the leases show that the machines are there.
        assert set(transport.calls) == {"patch leases"}
