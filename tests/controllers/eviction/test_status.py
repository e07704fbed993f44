"""The status of rules, and when."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.eviction.evicting import (
    DRIVER,
    NAME,
    RULES,
    Evicting,
    allocate,
    bound_pod,
    claim,
    condition,
    fate,
    for_seconds,
    holder,
    marked,
    now,
    prepare,
    publish,
    rule,
    set_effect,
    status,
    unrule,
)
from controllers.recording_transport import broken
from controllers.world import PODS, World
from sully.client.events import EVENTS
from sully.client.options import DeleteOptions
from sully.client.transport import Key

NEEDS_ONE = "1 pod needs to be evicted in 1 namespace."
LEFT_ONE = "1 pod evicted since starting the controller."
MODES = {"prompt": (False, 1.0), "strict": (True, 10.0)}
both = pytest.mark.parametrize(("strict", "later"), MODES.values(), ids=MODES.keys())


async def test_the_first_word_comes_immediately_and_is_owned_by_the_controller(
    world: World,
) -> None:
    async with world.controlled(Evicting().make()):
        await world.settle()
        await rule(world)
        await world.settle()

        result = await world.admin.get(RULES, Key("", "r"))
    assert result["status"]["conditions"] == [
        {
            "type": "EvictionInProgress",
            "status": "False",
            "observedGeneration": 1,
            "lastTransitionTime": now(world),
            "reason": "NotStarted",
            "message": "",
        }
    ]
    managers = {entry["manager"]: entry for entry in result["metadata"]["managedFields"]}
    assert managers[NAME]["operation"] == "Apply"
    assert managers[NAME]["subresource"] == "status"


@both
async def test_one_pod_is_evicted(world: World, strict: bool, later: float) -> None:
    await prepare(world)
    await holder(world, "p")
    async with world.controlled(Evicting(strict=strict).make()):
        await world.settle()
        await rule(world)
        await world.settle()
        assert await status(world) == ("True", "PodsPendingEviction", NEEDS_ONE)
        await world.pass_time(later - 0.1, step=100)
        assert (await status(world))[0] == "True"
        await world.pass_time(0.1)

        assert await status(world) == ("False", "Completed", LEFT_ONE)
        assert (await condition(world))["lastTransitionTime"] == now(world)


NAMESPACES = {
    "two namespaces": (("a", "b"), "2 pods need to be evicted in 2 different namespaces."),
    "one namespace": (("a", "a"), "2 pods need to be evicted in 1 namespace."),
}


@pytest.mark.parametrize(("where", "want"), NAMESPACES.values(), ids=NAMESPACES.keys())
async def test_two_pods_are_evicted(world: World, where: tuple[str, str], want: str) -> None:
    await prepare(world, "a", "b")
    await holder(world, "p", namespace=where[0])
    await holder(world, "q", "gpu-1", namespace=where[1])
    async with world.controlled(Evicting().make()):
        await world.settle()
        await rule(world)
        await world.settle()
        assert (await status(world))[2] == want
        await world.pass_time(2)

        left = "2 pods evicted since starting the controller."
        assert await status(world) == ("False", "Completed", left)


@both
async def test_the_worked_timeline(world: World, strict: bool, later: float) -> None:
    await prepare(world, "a", "b")
    await holder(world, "bare")
    await holder(world, "patient", "gpu-1", namespace="b", tolerations=(for_seconds(30),))
    await holder(world, "always", "gpu-2", tolerations=(for_seconds(),))
    evicting = Evicting(strict=strict)
    async with world.controlled(evicting.make()):
        await world.settle()
        await rule(world)
        await world.settle()
        both_ = "2 pods need to be evicted in 2 different namespaces."
        assert await status(world) == ("True", "PodsPendingEviction", both_)
        await world.pass_time(later, step=100)
        assert await status(world) == ("True", "PodsPendingEviction", f"{NEEDS_ONE} {LEFT_ONE}")
        writes = len(evicting.calls("devicetaintrules"))
        await world.pass_time(29.9 - later)
        assert len(evicting.calls("devicetaintrules")) == writes
        assert await fate(world, "patient", "b") == "stays"
        await world.pass_time(0.1)
        assert await fate(world, "patient", "b") == "evicted"
        await world.pass_time(later)

        left = "2 pods evicted since starting the controller."
        assert await status(world) == ("False", "Completed", left)
        assert await fate(world, "always") == "stays"
        assert len(evicting.calls("devicetaintrules")) == 3


async def test_a_report_that_was_due_is_still_made_after_a_change(world: World) -> None:
    await prepare(world)
    await holder(world, "bare")
    await holder(world, "patient", "gpu-1", tolerations=(for_seconds(8),))
    would = "pod would be evicted in 1 namespace"
    async with world.controlled(Evicting(strict=True).make()):
        await world.settle()
        await rule(world)
        await world.pass_time(5)
        await set_effect(world, "None")
        await world.settle()
        assert f"1 {would}" in (await status(world))[2]
        await world.admin.delete(PODS, Key("a", "patient"), DeleteOptions())
        await world.pass_time(9)
        assert f"1 {would}" in (await status(world))[2]
        await world.pass_time(2)

        assert "0 pods would be evicted" in (await status(world))[2]


async def test_a_long_toleration_is_reported_once_and_then_the_end(world: World) -> None:
    evicting = Evicting(strict=True)
    await prepare(world)
    await holder(world, "p", tolerations=(for_seconds(3600),))
    async with world.controlled(evicting.make()):
        await world.settle()
        await rule(world)
        await world.pass_time(3599, step=600)
        assert await status(world) == ("True", "PodsPendingEviction", NEEDS_ONE)
        assert len(evicting.calls("devicetaintrules")) == 1
        await world.pass_time(1)
        assert await fate(world, "p") == "evicted"
        await world.pass_time(10, step=10)

        assert await status(world) == ("False", "Completed", LEFT_ONE)


async def test_a_preview_then_the_real_thing(world: World) -> None:
    await prepare(world)
    await publish(world, devices=3)
    await holder(world, "p")
    async with world.controlled(Evicting().make()):
        await world.settle()
        await rule(world, "None")
        await world.settle()
        _, reason, message = await status(world)
        assert reason == "NoEffect"
        assert message.startswith(
            "3 published devices selected. 1 allocated device selected."
            " 1 pod would be evicted in 1 namespace if the effect was NoExecute."
        )
        assert await fate(world, "p") == "stays"
        await set_effect(world, "NoExecute")
        await world.settle()
        assert await status(world) == ("True", "PodsPendingEviction", NEEDS_ONE)
        assert (await condition(world))["observedGeneration"] == 2
        assert await fate(world, "p") == "evicted"
        await set_effect(world, "None")
        await world.settle()

        assert (await status(world))[2].endswith(f"to trigger an update. {LEFT_ONE}")


@both
async def test_the_preview_of_kubernetes_is_not_updated(
    world: World, strict: bool, later: float
) -> None:
    evicting = Evicting(strict=strict)
    await prepare(world)
    async with world.controlled(evicting.make()):
        await rule(world, "None")
        await world.settle()
        before = await status(world)
        await publish(world, devices=3)
        await holder(world, "p")
        await world.pass_time(60)

        assert await status(world) == before
        # Ours is, in a condition of its own.
        assert len(evicting.calls("devicetaintrules")) == (1 if strict else 2)


async def test_counts_restart_with_a_new_rule(world: World) -> None:
    await prepare(world)
    await holder(world, "p")
    async with world.controlled(Evicting().make()):
        await rule(world)
        await world.pass_time(5)
        await unrule(world)
        await rule(world)
        await world.pass_time(5)

        assert await status(world) == ("False", "NotStarted", "")


async def test_a_pod_that_two_rules_hit_counts_for_both(world: World) -> None:
    await prepare(world)
    await claim(world, "one")
    await claim(world, "two")
    await bound_pod(world, "p", "one", "two")
    await allocate(world, "one", ("gpu-0", "gpu-1"), pods=("p",))
    await allocate(world, "two", ("gpu-2",), pods=("p",), tolerations=(for_seconds(60),))
    async with world.controlled(Evicting().make()):
        await world.settle()
        await rule(world)
        await rule(world, name="r2", device="gpu-2")
        await world.pass_time(2)

        for name in ("r", "r2"):
            assert await status(world, name) == ("False", "Completed", LEFT_ONE)


@both
async def test_a_change_of_the_rule_is_answered_immediately(
    world: World, strict: bool, later: float
) -> None:
    async with world.controlled(Evicting(strict=strict).make()):
        await rule(world, "NoSchedule")
        await world.settle()
        assert (await status(world))[1] == "OtherEffect"
        await set_effect(world, "None")
        await world.settle()

        assert (await status(world))[1] == "NoEffect"
        assert (await condition(world))["observedGeneration"] == 2


async def test_a_pod_that_is_deleted_by_itself_is_not_waited_for(world: World) -> None:
    await prepare(world)
    await holder(world, "p", tolerations=(for_seconds(600),))
    async with world.controlled(Evicting().make()):
        await rule(world)
        await world.pass_time(5)
        assert (await status(world))[0] == "True"
        await world.admin.delete(PODS, Key("a", "p"), DeleteOptions(grace_period_seconds=0))
        await world.pass_time(2)

        assert await status(world) == ("False", "NotStarted", "")


@both
async def test_a_new_controller_does_not_repeat_what_stands_there(
    world: World, strict: bool, later: float
) -> None:
    await prepare(world)
    async with world.controlled(Evicting().make()):
        await rule(world)
        await world.settle()
    world.clock.advance(60)
    evicting = Evicting(strict=strict)
    async with world.controlled(evicting.make()):
        await world.pass_time(60)

    assert evicting.calls("devicetaintrules") == []


async def test_a_failed_write_is_tried_again(world: World) -> None:
    evicting = Evicting()
    async with world.controlled(evicting.make()):
        await world.settle()
        assert evicting.transport is not None
        evicting.transport.failures["apply devicetaintrules"] = broken(2)
        await rule(world)
        await world.pass_time(1, step=0.1)

        assert await status(world) == ("False", "NotStarted", "")
    assert len(evicting.calls("devicetaintrules")) == 3


async def test_an_expression_that_fails_is_reported_on_the_rule(world: World) -> None:
    expression = f'device.attributes["{DRIVER}"].model == "x"'
    spec: dict[str, Any] = {
        "deviceSelector": {"selectors": [{"cel": {"expression": expression}}]},
        "taint": marked("None"),
    }
    await prepare(world, "default")
    await publish(world, devices=2)
    async with world.controlled(Evicting().make()):
        await world.admin.create(RULES, {"metadata": {"name": "r"}, "spec": spec})
        await world.pass_time(2)
        rule = await world.admin.get(RULES, Key("", "r"))
        problem = {condition["type"]: condition for condition in rule["status"]["conditions"]}[
            "sully.dev/SelectorProblem"
        ]
        assert problem["message"] == (
            f"2 devices not selected because of errors: {DRIVER}/pool-1/gpu-0:"
            " selector #0: runtime error: no such key: model"
        )
        (event,) = (await world.admin.list(EVENTS, "default")).items
        assert (event["type"], event["reason"]) == ("Warning", "CELRuntimeError")
        assert event["message"] == "selector #0: runtime error: no such key: model"

        change = {"spec": {"deviceSelector": {"selectors": None, "driver": DRIVER}}}
        await world.admin.patch(RULES, Key("", "r"), change)
        await world.pass_time(2)

        rule = await world.admin.get(RULES, Key("", "r"))
        types = [condition["type"] for condition in rule["status"]["conditions"]]
        assert types == ["EvictionInProgress", "sully.dev/Preview"]


async def test_two_rules_of_different_times_the_earliest_decides_and_both_are_credited(
    world: World,
) -> None:
    await prepare(world)
    await holder(world, "p")
    async with world.controlled(Evicting().make()):
        for name, minute in (("later", 2), ("sooner", 1)):
            taint = marked() | {"timeAdded": f"2030-01-01T12:0{minute}:00Z"}
            spec = {"deviceSelector": {"driver": DRIVER}, "taint": taint}
            await world.admin.create(RULES, {"metadata": {"name": name}, "spec": spec})
        await world.pass_time(59)
        assert await fate(world, "p") == "stays"
        await world.pass_time(1)
        assert await fate(world, "p") == "evicted"
        await world.pass_time(2)

        left = ("False", "Completed", LEFT_ONE)
        assert [await status(world, name) for name in ("later", "sooner")] == [left, left]


async def test_a_preview_becomes_real_after_what_is_tolerated(world: World) -> None:
    await prepare(world)
    await holder(world, "p", tolerations=(for_seconds(30),))
    async with world.controlled(Evicting().make()):
        await rule(world, "None")
        await world.pass_time(60)
        await set_effect(world, "NoExecute")
        await world.pass_time(29)
        assert await fate(world, "p") == "stays"
        assert (await status(world))[:2] == ("True", "PodsPendingEviction")
        await world.pass_time(1)
        assert await fate(world, "p") == "evicted"


async def test_a_preview_without_slices(world: World) -> None:
    await prepare(world, "a", "b")
    await holder(world, "p")
    await claim(world, "q", "b")
    await bound_pod(world, "q", "q", namespace="b")
    await allocate(world, "q", ("gpu-1", "gpu-2"), pods=("q",), namespace="b")
    async with world.controlled(Evicting().make()):
        await rule(world, "None")
        await world.settle()

        assert (await status(world))[2].startswith(
            "0 published devices selected. 3 allocated devices selected."
            " 2 pods would be evicted in 2 different namespaces if"
        )


async def test_the_end_is_reported_within_a_second_of_the_last_deletion(world: World) -> None:
    await prepare(world)
    for index in range(12):
        await holder(world, f"p-{index}", f"gpu-{index}")
    async with world.controlled(Evicting().make()):
        await rule(world, rate=1)
        await world.pass_time(2, step=0.25)
        assert [await fate(world, f"p-{index}") for index in range(12)] == ["evicted"] * 12
        assert (await status(world))[0] == "True"
        await world.pass_time(1, step=0.25)

        assert (await status(world))[:2] == ("False", "Completed")
