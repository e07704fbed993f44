"""How fast pods are evicted: rates of taints, the default, and the cap over all."""

from __future__ import annotations

from controllers.eviction.evicting import (
    RULES,
    SLICES,
    Evicting,
    conditions,
    event_messages,
    for_seconds,
    holders,
    left,
    marked,
    pause,
    prepare,
    publish,
    rule,
    unrule,
)
from controllers.world import World
from sully.client.transport import Key
from sully.evictor.settings import EvictionSettings

RATED = marked() | {"evictionsPerSecond": 2}


async def pods_evicted(world: World, *moments: float) -> list[int]:
    """Return how many pods were evicted so many seconds from now."""
    result, passed = [], 0.0
    for moment in moments:
        await world.pass_time(moment - passed, step=0.125)
        passed = moment
        result.append(len(await left(world)))
    return result


async def test_without_a_rate_all_are_evicted_immediately(world: World) -> None:
    await prepare(world)
    await holders(world, 15)
    async with world.controlled(Evicting().make()):
        await rule(world)

        assert await pods_evicted(world, 0) == [15]


async def test_a_rule_with_a_rate_has_a_burst_and_then_its_rate(world: World) -> None:
    await prepare(world)
    await holders(world, 15)
    async with world.controlled(Evicting().make()):
        await rule(world, rate=2)

        assert await pods_evicted(world, 0, 0.375, 0.5, 0.875, 1, 2, 2.5, 10) == [
            10,
            10,
            11,
            11,
            12,
            14,
            15,
            15,
        ]
        await world.pass_time(1)
        assert (await conditions(world))["sully.dev/Evicted"]["message"] == "15 pods evicted."


async def test_a_taint_of_a_driver_has_a_rate_of_its_own(world: World) -> None:
    await prepare(world)
    await holders(world, 13)
    body = await publish(world, devices=13)
    for device in body["spec"]["devices"]:
        device["taints"] = [RATED]
    async with world.controlled(Evicting().make()):
        await world.settle()
        await world.admin.update(SLICES, body)

        assert await pods_evicted(world, 0, 0.5, 1, 1.5) == [10, 11, 12, 13]


async def test_different_pods_have_different_rates(world: World) -> None:
    await prepare(world, "a", "b")
    await holders(world, 12)
    await holders(world, 12, first=20, namespace="b", pool="pool-2")
    await rule(world, rate=1, name="slow", pool="pool-1")
    await rule(world, rate=2, name="fast", pool="pool-2")
    async with world.controlled(Evicting().make()):
        assert await pods_evicted(world, 0, 0.5, 1) == [10, 10, 11]
        assert len(await left(world, "b")) == 12


async def test_of_several_taints_the_fastest_wins(world: World) -> None:
    await prepare(world)
    await holders(world, 40)
    async with world.controlled(Evicting().make()):
        await world.settle()
        await rule(world, rate=1, name="slow", paused="true")
        await rule(world, rate=8, name="fast", paused="true")
        await world.settle()
        for name in ("slow", "fast"):
            await pause(world, None, name)

        # The buckets hold ten each, and each pod takes one token of both.
        assert await pods_evicted(world, 0, 0.125, 1) == [10, 11, 18]


async def test_the_rates_of_several_rules_do_not_add_up(world: World) -> None:
    await prepare(world)
    await holders(world, 60)
    for name in ("a", "b", "c", "d"):
        await rule(world, rate=2, name=name)
    async with world.controlled(Evicting().make()):
        assert await pods_evicted(world, 0, 0.5, 1) == [10, 11, 12]


async def test_a_burst_is_part_of_the_rate(world: World) -> None:
    await prepare(world)
    await holders(world, 5)
    await rule(world, rate=1, annotations={"sully.dev/eviction-burst": "1"})
    async with world.controlled(Evicting().make()):
        assert await pods_evicted(world, 0, 0.875, 1, 2) == [1, 1, 2, 3]


async def test_a_rate_may_be_slower_than_one_per_second(world: World) -> None:
    await prepare(world)
    await holders(world, 3)
    rate = {"sully.dev/eviction-rate": "2/m", "sully.dev/eviction-burst": "1"}
    await rule(world, rate=1, annotations=rate)
    async with world.controlled(Evicting().make()):
        assert await pods_evicted(world, 0, 29, 30) == [1, 1, 2]


async def test_beside_a_taint_without_a_rate_there_is_no_limit(world: World) -> None:
    await prepare(world)
    await holders(world, 15)
    await rule(world, rate=1, name="slow")
    await rule(world, name="free")
    async with world.controlled(Evicting().make()):
        assert await pods_evicted(world, 0) == [15]


async def test_a_taint_that_is_not_due_yet_does_not_hurry(world: World) -> None:
    await prepare(world)
    later = for_seconds(60, key="example.com/other")
    await holders(world, 12, tolerations=(later,))
    await rule(world, rate=1, name="slow")
    spec = {"deviceSelector": {}, "taint": marked(key="example.com/other")}
    await world.admin.create(RULES, {"metadata": {"name": "free"}, "spec": spec})
    async with world.controlled(Evicting().make()):
        assert await pods_evicted(world, 0, 1, 2) == [10, 11, 12]


async def test_the_default_is_for_taints_that_have_none(world: World) -> None:
    await prepare(world)
    await holders(world, 12)
    settings = EvictionSettings(default_per_second=1)
    async with world.controlled(Evicting(settings=settings).make()):
        await rule(world)

        assert await pods_evicted(world, 0, 1, 2) == [10, 11, 12]


async def test_removing_a_rule_in_mid_eviction_stops_the_rest(world: World) -> None:
    await prepare(world)
    await holders(world, 20)
    async with world.controlled(Evicting().make()):
        await rule(world, rate=1)
        assert await pods_evicted(world, 2) == [12]
        await unrule(world)

        assert await pods_evicted(world, 30) == [12]
    assert len([message for message in await event_messages(world) if "Cancelling" in message]) == 8


async def test_a_new_process_does_not_burst_again(world: World) -> None:
    await prepare(world)
    await holders(world, 20)
    async with world.controlled(Evicting().make()):
        await rule(world, rate=1)
        assert await pods_evicted(world, 2) == [12]
    async with world.controlled(Evicting().make()):
        assert await pods_evicted(world, 0, 0.875, 1, 2, 8, 20) == [12, 12, 13, 14, 20, 20]
        assert (await conditions(world))["sully.dev/Evicted"]["message"] == "20 pods evicted."


async def test_rules_that_were_made_together_share_a_rate(world: World) -> None:
    await prepare(world)
    await holders(world, 20)
    for number in range(20):
        device = f"gpu-{number}"
        await rule(world, rate=1, name=f"glob-{number}", group="glob", device=device)
    async with world.controlled(Evicting().make()):
        assert await pods_evicted(world, 2) == [12]
    async with world.controlled(Evicting().make()):
        assert await pods_evicted(world, 0, 0.875, 1, 2, 8, 20) == [12, 12, 13, 14, 20, 20]


async def test_a_faster_rate_holds_from_now_on(world: World) -> None:
    await prepare(world)
    await holders(world, 20)
    async with world.controlled(Evicting().make()):
        await rule(world, rate=1)
        assert await pods_evicted(world, 1) == [11]
        change = {"spec": {"taint": {"evictionsPerSecond": 8}}}
        await world.admin.patch(RULES, Key("", "r"), change)

        assert await pods_evicted(world, 0, 0.125, 0.5, 1.125) == [11, 12, 15, 20]


async def test_a_changed_rate_in_an_annotation_applies_immediately(world: World) -> None:
    await prepare(world)
    await holders(world, 20)
    async with world.controlled(Evicting().make()):
        await rule(
            world, annotations={"sully.dev/eviction-rate": "1/s", "sully.dev/eviction-burst": "1"}
        )
        assert await pods_evicted(world, 1) == [2]
        change = {"metadata": {"annotations": {"sully.dev/eviction-rate": "8/s"}}}
        await world.admin.patch(RULES, Key("", "r"), change)

        assert await pods_evicted(world, 0, 0.125, 0.5, 1.125) == [2, 3, 6, 11]


async def test_a_cap_holds_over_all_rules(world: World) -> None:
    await prepare(world)
    await holders(world, 12)
    settings = EvictionSettings(max_per_minute=5)
    async with world.controlled(Evicting(settings=settings).make()):
        await rule(world)

        assert await pods_evicted(world, 0, 59.875, 60, 119.875, 120) == [5, 5, 10, 10, 12]


async def test_a_cap_outlives_a_process(world: World) -> None:
    await prepare(world)
    await holders(world, 12)
    settings = EvictionSettings(max_per_minute=5)
    async with world.controlled(Evicting(settings=settings).make()):
        await rule(world)
        assert await pods_evicted(world, 30) == [5]
    async with world.controlled(Evicting(settings=settings).make()):
        assert await pods_evicted(world, 0, 29.875, 30) == [5, 5, 10]


async def test_without_the_gates_there_is_no_rate_and_no_cap(world: World) -> None:
    settings = EvictionSettings(default_per_second=1, max_per_minute=1)
    gates = {"SullyEvictionRate": False, "SullyEvictionGuards": False}
    await prepare(world)
    await holders(world, 15)
    await rule(world, rate=1)
    async with world.controlled(Evicting(settings=settings, gates=gates).make()):
        assert await pods_evicted(world, 0) == [15]


async def test_kubernetes_knows_no_rate(world: World) -> None:
    settings = EvictionSettings(default_per_second=1, max_per_minute=1)
    await prepare(world)
    await holders(world, 15)
    await rule(world, rate=1)
    async with world.controlled(Evicting(strict=True, settings=settings).make()):
        assert await pods_evicted(world, 0) == [15]
