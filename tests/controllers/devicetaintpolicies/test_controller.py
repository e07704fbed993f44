"""Policies on a server: rules come, grow and go, and survive whoever is restarted."""

from __future__ import annotations

from typing import Any

import pytest

import manifests
from controllers.devicetaintpolicies.policing import (
    CLAIMS,
    CLASSES,
    HEALTH,
    NODES,
    POLICIES,
    RULES,
    SOURCE,
    XID,
    annotate,
    change,
    clear,
    condition,
    controller,
    device,
    effects,
    phases,
    policy,
    publish,
    status,
)
from controllers.world import Obj, World
from manifests import DRIVER, claim_spec
from sully.client.events import EVENTS
from sully.client.options import DeleteOptions
from sully.client.transport import Key
from sully.machinery.formats.timestamps import format_micro_time

FIRST = "node-1/gpu-0"


@pytest.fixture
async def events(world: World) -> None:
    await world.namespace("default")


async def test_from_a_fault_to_a_taint_and_back(world: World, events: None) -> None:
    await policy(world, clearAfter="10m")
    await publish(world, device(0), device(1))
    async with world.controlled(controller):
        await world.settle()
        assert await effects(world) == {}
        await publish(world, device(0, XID), device(1))
        await world.settle()
        assert await effects(world) == {FIRST: "None"}
        await world.pass_time(119)
        assert await effects(world) == {FIRST: "None"}
        await world.pass_time(1)
        assert await effects(world) == {FIRST: "NoSchedule"}
        await world.pass_time(1680)
        assert await effects(world) == {FIRST: "NoExecute"}
        await publish(world, device(0), device(1))
        await world.pass_time(599)
        assert await effects(world) == {FIRST: "NoExecute"}
        await world.pass_time(2)
        assert await effects(world) == {}
        assert (await status(world))["selected"] == 2
    reasons = [event["reason"] for event in (await world.admin.list(EVENTS)).items]
    assert sorted(reasons) == ["TaintCleared", "TaintSet", "TaintSet", "TaintSet"]


async def test_the_rule_names_device_policy_and_reason(world: World) -> None:
    await policy(world)
    await publish(world, device(0, XID))
    async with world.controlled(controller):
        await world.settle()
        (rule,) = (await world.admin.list(RULES)).items
    stored = await world.admin.get(POLICIES, Key("", "faulty"))

    assert rule["spec"]["deviceSelector"] == {
        "driver": DRIVER,
        "pool": "node-1",
        "device": "gpu-0",
    }
    assert (rule["spec"]["taint"]["key"], rule["spec"]["taint"]["value"]) == (
        "example.com/faulty",
        "xid",
    )
    assert rule["metadata"]["labels"] == {"sully.dev/policy": "faulty"}
    (owner,) = rule["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("DeviceTaintPolicy", stored["metadata"]["uid"])
    description = rule["metadata"]["annotations"]["sully.dev/description"]
    assert description == "driver taint example.com/xid:None"


async def test_a_restart_continues(world: World) -> None:
    await policy(world, holdFor="1m", clearAfter="10m")
    await publish(world, device(0, XID))
    async with world.controlled(controller):
        await world.pass_time(50)
        assert await phases(world) == {FIRST: "Pending"}
    async with world.controlled(controller):
        await world.pass_time(11)
        assert await effects(world) == {FIRST: "None"}
    world.clock.advance(120)
    async with world.controlled(controller):
        await world.settle()
        assert await effects(world) == {FIRST: "NoSchedule"}
        await publish(world, device(0))
        await world.pass_time(300)
    async with world.controlled(controller):
        await world.pass_time(299)
        assert await effects(world) == {FIRST: "NoSchedule"}
        await world.pass_time(2)
        assert await effects(world) == {}


async def test_dry_run_writes_no_rule(world: World) -> None:
    await policy(world, mode="DryRun")
    await publish(world, device(0, XID))
    async with world.controlled(controller):
        await world.pass_time(125)
        assert await effects(world) == {}
        (result,) = (await status(world))["devices"]
        assert (result["phase"], result["effect"]) == ("Tainted", "NoSchedule")
        assert await condition(world, "Applied") == (
            "False",
            "1 devices selected, 1 would be unavailable.",
        )
        await change(world, mode="Enforce")
        await world.settle()
        assert await effects(world) == {FIRST: "NoSchedule"}


async def test_what_a_dry_run_reported_is_announced_when_it_happens(
    world: World, events: None
) -> None:
    await policy(world, mode="DryRun", steps=[{"effect": "NoSchedule"}])
    await publish(world, device(0, XID))
    async with world.controlled(controller):
        await world.settle()
        await change(world, mode="Enforce")
        await world.settle()
    reported = [
        (event["reason"], event["message"]) for event in (await world.admin.list(EVENTS)).items
    ]
    text = f"NoSchedule: driver taint {XID['key']}:None"
    assert sorted(reported) == [
        ("TaintSet", f"{DRIVER}/{FIRST}: Set {text}"),
        ("WouldTaint", f"{DRIVER}/{FIRST}: Would set {text}"),
    ]


async def test_back_to_a_dry_run_rules_are_left_alone(world: World) -> None:
    """They stay, and who deletes one gets no new one: so explanations advise it."""
    await policy(world, steps=[{"effect": "NoSchedule"}])
    await publish(world, device(0, XID))
    async with world.controlled(controller):
        await world.settle()
        (name,) = await world.names(RULES)
        await change(world, mode="DryRun")
        await world.settle()
        assert await effects(world) == {FIRST: "NoSchedule"}
        await world.admin.delete(RULES, Key("", name), DeleteOptions())
        await world.pass_time(10)
        assert await effects(world) == {}


async def test_approval(world: World) -> None:
    await policy(world, mode="RequireApproval", steps=[{"effect": "NoSchedule"}])
    await publish(world, device(0, XID), device(1, XID))
    async with world.controlled(controller):
        await world.pass_time(2)
        assert await effects(world) == {FIRST: "None", "node-1/gpu-1": "None"}
        await annotate(world, 0, approved="true")
        await world.pass_time(2)
        assert await effects(world) == {FIRST: "NoSchedule", "node-1/gpu-1": "None"}
        assert (await phases(world))["node-1/gpu-1"] == "AwaitingApproval"


async def test_proof(world: World) -> None:
    await policy(world, proof={"type": "Manual"}, steps=[{"effect": "NoSchedule"}])
    await publish(world, device(0, XID))
    async with world.controlled(controller):
        await world.settle()
        await clear(world, 0)
        await world.pass_time(1)
        await publish(world, device(0))
        await world.pass_time(60)
        assert await phases(world) == {FIRST: "AwaitingProof"}
        await clear(world, 0)
        await world.settle()
        assert await effects(world) == {}


async def test_what_waits_for_proof_is_reported_when_the_time_has_come(world: World) -> None:
    proof, steps = {"type": "Manual"}, [{"effect": "NoSchedule"}]
    await policy(world, proof=proof, steps=steps, clearAfter="1m")
    await publish(world, device(0, XID))
    async with world.controlled(controller):
        await world.pass_time(2)
        await publish(world, device(0))
        await world.pass_time(59)
        assert await phases(world) == {FIRST: "Recovering"}
        await world.pass_time(5)
        assert await phases(world) == {FIRST: "AwaitingProof"}


async def test_other_hardware(world: World, events: None) -> None:
    await policy(world, proof={"type": "Manual"}, steps=[{"effect": "NoSchedule"}])
    await publish(world, device(0, XID))
    async with world.controlled(controller):
        await world.settle()
        await publish(world, device(0, uuid="GPU-new"))
        await world.settle()
        assert await effects(world) == {}
    texts = [event["message"] for event in (await world.admin.list(EVENTS)).items]
    assert f"{DRIVER}/{FIRST}: The hardware was replaced: GPU-0 is now GPU-new" in texts


async def test_limits(world: World) -> None:
    await policy(
        world,
        steps=[{"effect": "NoSchedule"}],
        limits=[
            {"scope": "Fleet", "maxUnavailable": 3},
            {"scope": "Node", "maxUnavailable": "50%"},
        ],
    )
    for node in ("node-1", "node-2", "node-3"):
        await publish(world, *(device(number, XID) for number in range(2)), node=node)
    async with world.controlled(controller):
        await world.pass_time(2)
        assert sorted(await effects(world)) == [f"node-{number}/gpu-0" for number in (1, 2, 3)]
        held, text = await condition(world, "HeldBack")
        assert held == "True"
        assert "gpu.example.com/node-1/gpu-1: NoSchedule waits: " in text.replace(
            DRIVER, "gpu.example.com"
        )
        await publish(world, device(0), device(1, XID))
        await world.pass_time(2)
        assert sorted(await effects(world)) == [
            "node-1/gpu-1",
            "node-2/gpu-0",
            "node-3/gpu-0",
        ]


async def test_a_limit_of_a_missing_class_holds(world: World) -> None:
    """A typo, or a class that was deleted, must not leave a policy without its limit."""
    limit = {"scope": "Class", "deviceClassName": "missing", "maxUnavailable": 1}
    await policy(world, steps=[{"effect": "NoSchedule"}], limits=[limit])
    await publish(world, device(0, XID), device(1, XID), device(2))
    async with world.controlled(controller):
        await world.pass_time(2)
        assert await effects(world) == {FIRST: "NoSchedule"}
        held, text = await condition(world, "HeldBack")
        assert (held, "1 of 1 devices of class missing" in text) == ("True", True)
        problem, text = await condition(world, "SourceProblem")
        assert problem == "True"
        assert "limit of class missing: there is no class missing" in text


@pytest.mark.parametrize("scope", ["Fleet", "Class", "Pool", "Node", "Attribute"])
async def test_limits_of_devices_that_are_not_published(world: World, scope: str) -> None:
    await world.namespace("default")
    for number in range(3):
        await claim(world, number=number)
    names = {"Class": {"deviceClassName": "gpu"}, "Attribute": {"attribute": "rack"}}
    limit = {"scope": scope, "maxUnavailable": "50%", **names.get(scope, {})}
    sources = [{"name": "gone", "notPublished": True}]
    await policy(world, sources=sources, steps=[{"effect": "NoExecute"}], limits=[limit])
    async with world.controlled(controller):
        await world.pass_time(2)
        assert await effects(world) == {FIRST: "NoExecute"}
        assert (await condition(world, "HeldBack"))[0] == "True"


async def test_storm_and_resume(world: World) -> None:
    await policy(
        world, steps=[{"after": "1m", "effect": "NoSchedule"}], storm={"devices": 2, "within": "5m"}
    )
    await publish(world, device(0, XID), device(1, XID))
    async with world.controlled(controller):
        await world.pass_time(600)
        assert await effects(world) == {}
        assert (await condition(world, "Storm"))[0] == "True"
    async with world.controlled(controller):
        await world.pass_time(60)
        assert await effects(world) == {}
        resumed = {"sully.dev/resumed-at": format_micro_time(world.clock.now())}
        body = {"metadata": {"annotations": resumed}}
        await world.admin.patch(POLICIES, Key("", "faulty"), body)
        await world.pass_time(2)
        assert set((await effects(world)).values()) == {"NoSchedule"}
        assert (await condition(world, "Storm"))[0] == "False"


async def test_what_the_policy_is_not_for_any_more_is_given_back(world: World) -> None:
    await policy(world)
    await publish(world, device(0, XID), device(1, XID))
    async with world.controlled(controller):
        await world.settle()
        await change(world, selector={"device": "gpu-1"})
        await world.settle()
        assert await effects(world) == {"node-1/gpu-1": "None"}


async def test_a_device_that_vanished_keeps_its_taint(world: World) -> None:
    await policy(world)
    await publish(world, device(0, XID))
    async with world.controlled(controller):
        await world.settle()
        await publish(world, device(1))
        await world.pass_time(3600)
        assert await effects(world) == {FIRST: "None"}
        await publish(world, device(0), device(1))
        await world.settle()
        assert await effects(world) == {}


async def test_a_missing_class_removes_no_taint(world: World) -> None:
    spec = {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}
    await world.admin.create(CLASSES, {"metadata": {"name": "gpu"}, "spec": spec})
    await policy(world, selector={"deviceClassName": "gpu"})
    await publish(world, device(0, XID))
    async with world.controlled(controller):
        await world.settle()
        assert await effects(world) == {FIRST: "None"}
        await world.admin.delete(CLASSES, Key("", "gpu"), DeleteOptions())
        await publish(world, device(0))
        await world.pass_time(60)
        assert await effects(world) == {FIRST: "None"}
        assert "there is no class gpu" in (await condition(world, "SourceProblem"))[1]


async def test_rules_that_a_user_changed_or_deleted_are_restored(world: World) -> None:
    await policy(world, steps=[{"effect": "NoSchedule"}])
    await publish(world, device(0, XID))
    async with world.controlled(controller):
        await world.settle()
        (name,) = await world.names(RULES)
        body = {"spec": {"taint": {"effect": "NoExecute"}}}
        await world.admin.patch(RULES, Key("", name), body)
        await world.settle()
        assert await effects(world) == {FIRST: "NoSchedule"}
        await world.admin.delete(RULES, Key("", name), DeleteOptions())
        await world.settle()
        assert await effects(world) == {FIRST: "NoSchedule"}


async def test_rules_that_are_kept_have_no_owner(world: World) -> None:
    await policy(world, onDelete="Keep")
    await publish(world, device(0, XID))
    async with world.controlled(controller):
        await world.settle()
        (rule,) = (await world.admin.list(RULES)).items
        assert "ownerReferences" not in rule["metadata"]
        await change(world, onDelete="Delete")
        await world.settle()
        (rule,) = (await world.admin.list(RULES)).items
        assert len(rule["metadata"]["ownerReferences"]) == 1
        await world.admin.delete(POLICIES, Key("", "faulty"), DeleteOptions())
        await world.pass_time(60)
        # Garbage collection, which does not run here, deletes them.
        assert await effects(world) == {FIRST: "None"}


async def node(world: World, **parts: Any) -> None:
    body = manifests.node("node-1", labels={"rack": "a"})
    await world.admin.create(NODES, body | parts)


async def claim(world: World, *conditions: Obj, number: int = 0) -> None:
    """Create a claim with a device, with what its driver reports."""
    names = {"driver": DRIVER, "pool": "node-1", "device": f"gpu-{number}"}
    await world.create(CLAIMS, "default", f"c{number}", spec=claim_spec())
    devices = [{**names, "conditions": list(conditions)}] if conditions else []
    allocation = {"devices": {"results": [{**names, "request": "r"}]}}
    patch = {"status": {"allocation": allocation, "devices": devices}}
    await world.admin.patch(CLAIMS, Key("default", f"c{number}"), patch, subresource="status")


UNREADY = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
LINK_DOWN = {
    "type": "Linked",
    "status": "False",
    "reason": "CableLoose",
    "message": "",
    "lastTransitionTime": "2030-01-01T12:00:00Z",
}


async def unready(world: World) -> None:
    await node(world)
    body = {"status": {"conditions": [UNREADY]}}
    await world.admin.patch(NODES, Key("", "node-1"), body, subresource="status")


async def tainted_node(world: World) -> None:
    await node(world, spec={"taints": [{"key": "broken", "effect": "NoSchedule"}]})


async def condition_of_claim(world: World) -> None:
    await world.namespace("default")
    await claim(world, LINK_DOWN)


async def hot(world: World) -> None:
    await publish(world, device(0, temperature={"int": 95}), device(1, temperature={"int": 40}))


async def detailed(world: World) -> None:
    await publish(world, device(0, XID | {"data": {"xid": 79}}), device(1, XID))


async def gone(world: World) -> None:
    await world.namespace("default")
    await claim(world)
    await publish(world, device(1))


async def unhealthy(world: World) -> None:
    reason = {
        "key": "xid",
        "value": "79",
        "severity": "Critical",
        "since": "2030-01-01T12:00:00.000000Z",
    }
    reported = {
        "uuid": "GPU-0",
        "status": "Unhealthy",
        "since": "2030-01-01T12:00:00.000000Z",
        "reasons": [reason],
    }
    now = format_micro_time(world.clock.now())
    body = manifests.device_health("node-1", reported, renewTime=now, leaseDurationSeconds=40)
    await world.admin.create(HEALTH, body)


TEMPERATURE = f'device.attributes["{DRIVER}"].temperature > 90'
WHICH: dict[str, tuple[Obj, Any, str]] = {
    "driver taint with details": (
        {"driverTaint": {"key": "example.com/xid", "expression": "data.xid == 79"}},
        detailed,
        "driver taint example.com/xid:None",
    ),
    "attributes": ({"attributes": {"expression": TEMPERATURE}}, hot, TEMPERATURE),
    "node condition": (
        {"nodeCondition": {"type": "Ready", "status": "Unknown"}},
        unready,
        "node condition Ready is Unknown (NodeStatusUnknown)",
    ),
    "node taint": ({"nodeTaint": {"key": "broken"}}, tainted_node, "node taint broken:NoSchedule"),
    "claim condition": (
        {"claimCondition": {"type": "Linked", "status": "False", "reason": "CableLoose"}},
        condition_of_claim,
        "condition Linked is False (CableLoose)",
    ),
    "not published": (
        {"notPublished": True},
        gone,
        "no ResourceSlice has the device",
    ),
    "device health": (
        {"deviceHealth": {"keys": ["xid"], "values": ["79", "48"]}},
        unhealthy,
        "health is Unhealthy (xid 79)",
    ),
}


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("case", WHICH.values(), ids=WHICH.keys())
async def test_sources(world: World, case: tuple[Obj, Any, str], late: bool) -> None:
    """Every source is seen, whether it reports before or after the controller starts."""
    source, happen, message = case
    await publish(world, device(0), device(1))
    await policy(world, sources=[{"name": "a", **source}], selector={"device": "gpu-0"})
    if not late:
        await happen(world)
    async with world.controlled(controller):
        await world.settle()
        if late:
            await happen(world)
        await world.pass_time(2)
        assert await effects(world) == {FIRST: "None"}
        (result,) = (await status(world))["devices"]
        assert result["message"] == message


async def test_a_stale_report_is_not_a_recovery(world: World) -> None:
    await publish(world, device(0))
    await policy(world, sources=[{"name": "a", "deviceHealth": {}}])
    await unhealthy(world)
    async with world.controlled(controller):
        await world.settle()
        await world.pass_time(3600, step=60)
        assert await effects(world) == {FIRST: "None"}
        assert await phases(world) == {FIRST: "Unknown"}


async def test_labels_of_the_node(world: World) -> None:
    await node(world)
    await publish(world, device(0, XID))
    await publish(world, device(0, XID), node="node-2")
    await policy(world, selector={"nodeSelector": {"matchLabels": {"rack": "a"}}})
    async with world.controlled(controller):
        await world.settle()
        assert await effects(world) == {FIRST: "None"}


async def test_hardware_by_its_identity(world: World) -> None:
    await publish(world, device(0, XID), device(1, XID))
    await policy(world, selector={"identities": ["GPU-1"]})
    async with world.controlled(controller):
        await world.settle()
        assert await effects(world) == {"node-1/gpu-1": "None"}


async def test_policies_do_not_disturb_each_other(world: World) -> None:
    await publish(world, device(0, XID))
    await policy(world)
    await policy(world, "other", sources=[{**SOURCE, "name": "b"}])
    async with world.controlled(controller):
        await world.settle()
        assert len(await world.names(RULES)) == 2
        await world.admin.delete(POLICIES, Key("", "other"), DeleteOptions())
        await publish(world, device(0))
        await world.settle()
        assert len(await world.names(RULES)) == 1


async def test_an_expression_that_fails_for_some_devices(world: World) -> None:
    await publish(world, device(0), device(1, temperature={"int": 95}))
    await policy(world, sources=[{"name": "a", "attributes": {"expression": TEMPERATURE}}])
    async with world.controlled(controller):
        await world.pass_time(2)
        assert await effects(world) == {"node-1/gpu-1": "None"}
        problem = await condition(world, "SourceProblem")
        assert problem[0] == "True"
        assert "no such key: temperature" in problem[1]


async def test_partitions_of_a_faulty_device(world: World) -> None:
    """A fault of the whole card taints its partitions, and its end gives them back."""

    def card(*taints: Obj) -> list[Obj]:
        amounts = {0: "40Gi", 1: "10Gi", 2: "10Gi"}
        return [
            device(number, *(taints if number == 0 else ()))
            | {
                "consumesCounters": [
                    {"counterSet": "card", "counters": {"memory": {"value": amount}}}
                ]
            }
            for number, amount in amounts.items()
        ]

    await policy(world, partitions="ToPartitions", limits=[{"scope": "Fleet", "maxUnavailable": 3}])
    await publish(world, *card(XID), device(3))
    async with world.controlled(controller):
        await world.settle()
        assert set(await effects(world)) == {f"node-1/gpu-{number}" for number in range(3)}
        results = {one["device"][-1]: one["message"] for one in (await status(world))["devices"]}
        assert results["1"] == "device gpu-0: driver taint example.com/xid:None"
        await publish(world, *card(), device(3))
        await world.settle()
        assert await effects(world) == {}
