"""Taints of drivers that a policy suppresses: as rules, which end with their time or the policy."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import manifests
from controllers.devicetaintpolicies.policing import (
    CLASSES,
    NODES,
    POLICIES,
    RULES,
    change,
    condition,
    controller,
    device,
    policy,
    publish,
    status,
)
from controllers.world import Obj, World
from manifests import DRIVER
from sully.client.events import EVENTS
from sully.client.transport import Key
from sully.controllers.framework.controller import Controller
from sully.controllers.framework.manager import Manager
from sully.machinery.formats.timestamps import format_time
from sully.views.devices.changes import Features

FALSE: Obj = {"key": "example.com/xid", "value": "31", "effect": "NoExecute"}
TRUE: Obj = {"key": "example.com/xid", "value": "79", "effect": "NoExecute"}
SUPPRESSES = "sully.dev/suppresses"


def suppression(world: World, seconds: float = 60, **criteria: Any) -> Obj:
    until = format_time(world.clock.now() + timedelta(seconds=seconds))
    return {"key": "example.com/xid", "value": "31", "until": until, **criteria}


async def only_suppressing(world: World, *suppressions: Obj, **spec: Any) -> None:
    """Create a policy that sets no taint."""
    suppressing = {
        "mode": "Enforce",
        "selector": {"driver": DRIVER},
        "suppress": list(suppressions or (suppression(world),)),
        **spec,
    }
    body = manifests.body("DeviceTaintPolicy", "faulty", suppressing)
    await world.admin.create(POLICIES, body)


async def rules(world: World) -> dict[str, Obj]:
    """Return the rules that suppress, by their device; `*` is the one for all devices."""
    items = (await world.admin.list(RULES)).items
    return {
        rule["spec"]["deviceSelector"].get("device", "*"): rule
        for rule in items
        if SUPPRESSES in rule["metadata"].get("annotations", {})
    }


async def test_until_its_time(world: World) -> None:
    await world.namespace("default")
    await publish(world, device(0, FALSE), device(1, TRUE), device(2))
    await only_suppressing(world)
    async with world.controlled(controller):
        await world.settle()
        result = await rules(world)
        assert list(result) == ["*"]
        annotations = result["*"]["metadata"]["annotations"]
        assert annotations[SUPPRESSES] == '[{"key":"example.com/xid","value":"31"}]'
        assert annotations["sully.dev/policy-name"] == "faulty"
        assert result["*"]["spec"]["deviceSelector"] == {"driver": DRIVER}
        assert result["*"]["spec"]["taint"]["effect"] == "None"
        assert (await condition(world, "Suppressed"))[0] == "True"
        assert (await status(world))["suppressed"] == 1
        await world.pass_time(59)
        assert list(await rules(world)) == ["*"]
        await world.pass_time(2)
        assert await rules(world) == {}
        assert await condition(world, "Suppressed") == (
            "False",
            "The taints have their effect again.",
        )
        assert "suppressed" not in await status(world)
    reasons = [event["reason"] for event in (await world.admin.list(EVENTS)).items]
    assert sorted(reasons) == ["SuppressionEnded", "TaintSuppressed"]


async def test_before_the_driver_publishes_it(world: World) -> None:
    """So the taint evicts nobody in the moment before the controller sees it."""
    await publish(world, device(0))
    await only_suppressing(world)
    async with world.controlled(controller):
        await world.settle()
        assert list(await rules(world)) == ["*"]
        assert await condition(world, "Suppressed") == (
            "False",
            "No driver publishes such a taint.",
        )


@pytest.mark.parametrize(
    ("selector", "criteria"),
    [
        ({"driver": DRIVER}, {"expression": "data.xid == 31"}),
        ({"identities": ["GPU-0"]}, {}),
        ({"nodeSelector": {"matchLabels": {"zone": "a"}}}, {}),
    ],
    ids=["details", "identities", "labels of the node"],
)
async def test_what_one_rule_cannot_select(world: World, selector: Obj, criteria: Obj) -> None:
    await world.admin.create(NODES, {"metadata": {"name": "node-1", "labels": {"zone": "a"}}})
    false = FALSE | {"data": {"xid": 31}}
    await publish(world, device(0, false), device(1, TRUE | {"data": {"xid": 79}}))
    await only_suppressing(world, suppression(world, **criteria), selector=selector)
    async with world.controlled(controller):
        await world.settle()
        result = await rules(world)
        assert list(result) == ["gpu-0"]
        annotations = result["gpu-0"]["metadata"]["annotations"]
        assert annotations[SUPPRESSES] == (
            '[{"key":"example.com/xid","value":"31","effect":"NoExecute"}]'
        )
        await publish(world, device(0), device(1))
        await world.pass_time(1)
        assert await rules(world) == {}


async def test_another_selector(world: World) -> None:
    await publish(world, device(0, FALSE))
    await only_suppressing(world)
    async with world.controlled(controller):
        await world.settle()
        await change(world, selector={"driver": None, "pool": "node-1"})
        await world.pass_time(1)
        (result,) = (await rules(world)).values()
        assert result["spec"]["deviceSelector"] == {"pool": "node-1"}


async def test_classes_need_their_gate(world: World) -> None:
    class_ = {"selectors": [{"cel": {"expression": "true"}}]}
    await world.admin.create(CLASSES, {"metadata": {"name": "gpu"}, "spec": class_})
    await publish(world, device(0, FALSE))
    await only_suppressing(world, selector={"deviceClassName": "gpu"})
    async with world.controlled(_without_rule_selectors):
        await world.settle()
        assert list(await rules(world)) == ["gpu-0"]


def _without_rule_selectors(world: World, manager: Manager) -> Controller:
    return controller(world, manager, features=Features(rule_selectors=False))


async def test_a_restart_changes_nothing(world: World) -> None:
    await publish(world, device(0, FALSE))
    await only_suppressing(world)
    await world.namespace("default")
    async with world.controlled(controller):
        await world.settle()
    before = await rules(world)
    async with world.controlled(controller):
        await world.settle()
        await world.pass_time(2)
        assert await rules(world) == before
    (event,) = (await world.admin.list(EVENTS)).items
    assert (event["reason"], event.get("series")) == ("TaintSuppressed", None)


async def test_a_rule_that_a_user_changed(world: World) -> None:
    await publish(world, device(0, FALSE))
    await only_suppressing(world)
    async with world.controlled(controller):
        await world.settle()
        expected = (await rules(world))["*"]["metadata"]
        damage = {"metadata": {"annotations": {SUPPRESSES: "[]"}}}
        await world.admin.patch(RULES, Key("", expected["name"]), damage)
        await world.settle()
        metadata = (await rules(world))["*"]["metadata"]
        assert metadata["annotations"] == expected["annotations"]


async def test_a_dry_run_only_reports(world: World) -> None:
    await publish(world, device(0, FALSE))
    await only_suppressing(world, mode="DryRun")
    async with world.controlled(controller):
        await world.settle()
        assert await rules(world) == {}
        assert await condition(world, "Suppressed") == (
            "False",
            "Taints of 1 devices would be suppressed.",
        )


async def test_where_kubernetes_schedules(world: World) -> None:
    await publish(world, device(0, FALSE))
    await only_suppressing(world)
    async with world.controlled(_without_suppression):
        await world.settle()
        assert await rules(world) == {}
        got, message = await condition(world, "Suppressed")
    assert got == "False"
    assert "works only where Sully schedules and evicts" in message


def _without_suppression(world: World, manager: Manager) -> Controller:
    return controller(world, manager, features=Features(suppression=False))


async def test_details_that_cannot_be_evaluated_are_not_a_false_positive(world: World) -> None:
    await publish(world, device(0, FALSE | {"data": {"count": 1}}))
    await only_suppressing(world, suppression(world, expression="data.xid == 31"))
    async with world.controlled(controller):
        await world.settle()
        assert await rules(world) == {}
        assert "suppress example.com/xid" in (await condition(world, "SourceProblem"))[1]


async def test_a_policy_that_decides_instead_of_the_driver(world: World) -> None:
    """The source still sees the taint that the policy suppresses."""
    await publish(world, device(0, TRUE))
    entry = suppression(world, 3600, value="79")
    await policy(world, suppress=[entry], steps=[{"effect": "NoSchedule"}])
    async with world.controlled(controller):
        await world.settle()
        await world.pass_time(5)
        assert list(await rules(world)) == ["*"]
        assert len((await world.admin.list(RULES)).items) == 2
        # Without its taint it only suppresses.
        await change(world, sources=None, taint=None, steps=None)
        await world.pass_time(2)
        assert len((await world.admin.list(RULES)).items) == 1
        assert list(await rules(world)) == ["*"]
