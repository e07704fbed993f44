"""Slices, rules and patches merged: every order of events ends in the same state."""

from __future__ import annotations

import pytest

from sully.api.resource.types import DeviceTaint, DeviceTaintSelector
from sully.domain.devices.pools import DeviceId, PoolId
from sully.testing.builders import (
    DRIVER,
    GPU,
    cel,
    class_,
    device,
    patch,
    rule,
    select,
    set_to,
    slice_,
    taint,
    text,
)
from sully.views.devices.changes import Features
from views.feeds import Scene, Step, orders, put

ONE = slice_("one", device("gpu-0"), device("gpu-1"))
TWO = slice_("two", device("gpu-0"), pool="pool-2", node="node-2")
OTHER = slice_("other", device("nic-0"), driver="nic.example.com", pool="pool-1")
HOT = taint(key="hot")


def remove(feed: str, obj: object) -> Step:
    def step(scene: Scene) -> None:
        getattr(scene, feed).put(obj)
        getattr(scene, feed).remove(obj)

    return step


def marked(scene: Scene) -> set[str]:
    return {name for name, taints in scene.taints().items() if taints}


A0, A1 = f"{DRIVER}/pool-1/gpu-0", f"{DRIVER}/pool-1/gpu-1"
B0, N0 = f"{DRIVER}/pool-2/gpu-0", "nic.example.com/pool-1/nic-0"
SELECTIONS = {
    "no selector": (None, set()),
    "everything": (select(), {A0, A1, B0, N0}),
    "driver": (select(driver=DRIVER), {A0, A1, B0}),
    "pool": (select(pool="pool-1"), {A0, A1, N0}),
    "device": (select(device="gpu-0"), {A0, B0}),
    "driver and device": (select(driver=DRIVER, device="gpu-1"), {A1}),
    "driver and pool": (select(driver=DRIVER, pool="pool-2"), {B0}),
    "all three": (select(driver=DRIVER, pool="pool-1", device="gpu-0"), {A0}),
    "nothing that is there": (select(driver="x"), set()),
}


@pytest.mark.parametrize(
    "order", orders(put("slices", ONE), put("slices", TWO, OTHER), put("rules"))
)
@pytest.mark.parametrize(("selector", "want"), SELECTIONS.values(), ids=SELECTIONS.keys())
def test_a_rule_marks_what_it_names(
    order: tuple[Step, ...], selector: DeviceTaintSelector | None, want: set[str]
) -> None:
    scene = Scene()
    for step in order:
        step(scene)
        scene.rules.put(rule("r", selector))

    assert marked(scene) == want
    counted = rule("r", selector).spec.device_selector
    if counted is not None:
        assert scene.inventory.count_named(counted) == len(want)
        assert {str(item) for item in scene.inventory.named(counted)} == want


ALL = orders(
    put("slices", slice_("one", device("gpu-0", HOT), device("gpu-1"), count=2)),
    put("slices", slice_("marks", device_taints=(("gpu-1", taint(key="slice")),), count=2)),
    put("rules", rule("b", select(driver=DRIVER)), rule("a", select(device="gpu-0"))),
    put("patches", patch("p", filter_=select(device="gpu-1"), taints=(taint(key="patch"),))),
    remove("rules", rule("gone", select())),
)


@pytest.mark.parametrize("order", ALL)
def test_every_order_of_events_ends_in_the_same_state(order: tuple[Step, ...]) -> None:
    scene = Scene()
    for step in order:
        step(scene)
        # A user reads in between, so that something is cached that must be forgotten.
        scene.taints()

    assert scene.taints() == {
        A0: [
            "ResourceSlice/one hot",
            "DeviceTaintRule/a " + taint().key,
            "DeviceTaintRule/b " + taint().key,
        ],
        A1: [
            "ResourceSlice/marks slice",
            "ResourceSlicePatch/p patch",
            "DeviceTaintRule/b " + taint().key,
        ],
    }


def test_a_rule_can_move_from_one_pool_to_another() -> None:
    scene = Scene()
    scene.slices.put(ONE, TWO)
    scene.rules.put(rule("r", select(pool="pool-1")))
    assert marked(scene) == {A0, A1}
    heard = scene.changes()

    scene.rules.put(rule("r", select(pool="pool-2")))

    assert marked(scene) == {B0}
    assert set(heard[0].pools) == {PoolId(DRIVER, "pool-1"), PoolId(DRIVER, "pool-2")}


def test_a_rule_that_is_deleted_leaves_devices_clean() -> None:
    scene = Scene()
    scene.slices.put(ONE)
    gone = rule("r", select())
    scene.rules.put(gone)
    assert marked(scene) == {A0, A1}
    scene.rules.remove(gone)

    assert marked(scene) == set()


def test_a_slice_that_grows_and_shrinks_under_a_rule() -> None:
    scene = Scene()
    scene.rules.put(rule("r", select(device="gpu-1")))
    for names in (("gpu-0",), ("gpu-0", "gpu-1", "gpu-2"), ("gpu-1",), ()):
        scene.slices.put(slice_("one", *map(device, names)))

        assert marked(scene) == ({A1} if "gpu-1" in names else set())


SILENT = {
    "the status of a rule": ("rules", rule("r", select())),
    "the version of a slice": ("slices", ONE),
    "the version of a patch": ("patches", patch("p")),
}


@pytest.mark.parametrize(("feed", "obj"), SILENT.values(), ids=SILENT.keys())
def test_what_changes_nothing_is_not_reported(feed: str, obj: object) -> None:
    scene = Scene()
    put(feed, obj)(scene)
    heard = scene.changes()
    put(feed, obj)(scene)

    assert heard == []


def test_a_slice_event_names_the_devices_it_touches() -> None:
    scene = Scene()
    scene.slices.put(ONE, TWO)
    heard = scene.changes()
    scene.slices.put(slice_("one", device("gpu-0"), device("gpu-1", HOT)))
    scene.slices.remove(TWO)

    assert [dict(event.pools) for event in heard] == [
        {PoolId(DRIVER, "pool-1"): frozenset({"gpu-1"})},
        {PoolId(DRIVER, "pool-2"): frozenset({"gpu-0"})},
    ]
    assert scene.inventory.pool(PoolId(DRIVER, "pool-2")) is None


def test_a_rule_event_names_its_pools_and_itself() -> None:
    scene = Scene()
    scene.slices.put(ONE, TWO, OTHER)
    heard = scene.changes()
    scene.rules.put(rule("r", select(driver=DRIVER)), rule("s", select(device="gpu-1")))

    assert [dict(event.pools) for event in heard] == [
        {PoolId(DRIVER, "pool-1"): None, PoolId(DRIVER, "pool-2"): None},
        {PoolId(DRIVER, "pool-1"): frozenset({"gpu-1"})},
    ]
    assert [event.rules[0].new and event.rules[0].new.metadata.name for event in heard] == [
        "r",
        "s",
    ]


def test_who_comes_late_hears_of_all_there_is() -> None:
    scene = Scene()
    scene.slices.put(ONE)
    scene.rules.put(rule("r", select()))
    heard: list[object] = []
    stop = scene.inventory.on_change(heard.append)
    stop()
    scene.slices.put(TWO)

    assert len(heard) == 1


MODEL = f'device.attributes["{DRIVER}"].model'
MODELS = slice_("one", device("gpu-0", model=text("A100")), device("gpu-1"))


def test_an_expression_that_fails_on_a_device_skips_it() -> None:
    scene = Scene()
    scene.slices.put(MODELS)
    chosen = rule("r", select(selectors=cel(f'{MODEL} == "A100"')))
    scene.rules.put(chosen)

    assert marked(scene) == {A0}
    problems = [
        (str(problem.device), problem.choice.problem)
        for problem in scene.exposures.problems(chosen)
    ]
    assert problems == [(A1, "selector #0: runtime error: no such key: model")]


@pytest.mark.parametrize(
    "order",
    orders(
        put("slices", MODELS),
        put("rules", rule("r", select(selectors=cel(f'{MODEL} == "H100"')))),
        put("patches", patch("p", attributes={f"{DRIVER}/model": set_to("H100")})),
    ),
)
def test_rules_see_devices_after_patches(order: tuple[Step, ...]) -> None:
    scene = Scene()
    for step in order:
        step(scene)
        scene.taints()

    assert marked(scene) == {A0, A1}
    scene.patches.remove(patch("p"))
    assert marked(scene) == set()


@pytest.mark.parametrize(
    "order",
    orders(
        put("slices", MODELS),
        put("rules", rule("r", select(device_class_name="c"))),
        put("patches", patch("p", filter_=select(device_class_name="c"), taints=(HOT,))),
        put("classes", class_("c", f'has({MODEL}) && {MODEL} == "A100"')),
    ),
)
def test_classes_can_be_criteria(order: tuple[Step, ...]) -> None:
    scene = Scene()
    for step in order:
        step(scene)
        scene.taints()

    assert scene.taints()[A0] == ["ResourceSlicePatch/p hot", f"DeviceTaintRule/r {taint().key}"]
    assert scene.taints()[A1] == []
    scene.classes.put(class_("c", f"!has({MODEL})"))
    assert marked(scene) == {A1}
    scene.classes.remove(class_("c"))
    assert marked(scene) == set()


OFF = {
    "taints": (Features(taints=False, rules=False), []),
    "rules": (Features(rules=False), ["ResourceSlice/one hot", "ResourceSlicePatch/p patch"]),
    "taint slices": (
        Features(taint_slices=False),
        ["ResourceSlice/one hot", "ResourceSlicePatch/p patch", f"DeviceTaintRule/r {taint().key}"],
    ),
}


@pytest.mark.parametrize(("features", "want"), OFF.values(), ids=OFF.keys())
def test_gates(features: Features, want: list[str]) -> None:
    scene = Scene(features)
    scene.slices.put(slice_("one", device("gpu-0", HOT)))
    if not features.taint_slices:
        scene.slices.put(slice_("marks", device_taints=(("gpu-0", HOT),)))
    scene.rules.put(rule("r", select()))
    scene.patches.put(patch("p", taints=(taint(key="patch"),)))

    assert scene.taints()[A0] == want


def test_a_rule_whose_criteria_are_switched_off_selects_nothing() -> None:
    scene = Scene(Features(rule_selectors=False))
    scene.slices.put(MODELS)
    scene.rules.put(rule("r", select(selectors=cel("true"))))

    assert marked(scene) == set()
    assert scene.inventory.rules_for(GPU) == []


def test_nodes_find_their_pools() -> None:
    scene = Scene()
    everywhere = slice_("all", device("x"), pool="shared", node=None)
    scene.slices.put(ONE, TWO, everywhere)

    assert scene.inventory.pools_for("node-1") == [
        PoolId(DRIVER, "pool-1"),
        PoolId(DRIVER, "shared"),
    ]
    scene.slices.remove(ONE)
    assert scene.inventory.pools_for("node-1") == [PoolId(DRIVER, "shared")]


def test_a_device_that_is_not_published_can_still_be_under_rules() -> None:
    scene = Scene()
    scene.rules.put(rule("r", select(driver=DRIVER)), rule("x", select(driver="x")))

    assert scene.inventory.device(GPU) is None
    assert [item.metadata.name for item in scene.inventory.rules_for(GPU)] == ["r"]


def test_a_device_is_merged_once_until_its_slice_changes() -> None:
    scene = Scene()
    beside = slice_("beside", device("gpu-9"), count=2)
    scene.slices.put(slice_("one", device("gpu-0"), count=2), beside)
    other = DeviceId(DRIVER, "pool-1", "gpu-9")
    before, there = scene.inventory.device(GPU), scene.inventory.device(other)
    assert scene.inventory.device(GPU) is before
    scene.slices.put(slice_("one", device("gpu-0", HOT), count=2))

    assert scene.inventory.device(GPU) is not before
    assert scene.inventory.device(other) is there


@pytest.mark.parametrize("marks", [(), (HOT,)], ids=["nothing changed", "the other one changed"])
def test_a_device_does_not_hold_on_to_an_old_state_of_its_slice(
    marks: tuple[DeviceTaint, ...],
) -> None:
    scene = Scene()
    scene.slices.put(ONE)
    scene.inventory.device(GPU)
    scene.slices.put(slice_("one", device("gpu-0"), device("gpu-1", *marks)))

    result = scene.inventory.device(GPU)

    assert result is not None
    assert result.published.slice is next(iter(scene.slices.informer.values()))


def test_verdicts_on_a_patched_device_last_while_its_attributes_do() -> None:
    scene = Scene()
    scene.slices.put(MODELS)
    scene.patches.put(patch("p", attributes={f"{DRIVER}/model": set_to("H100")}))
    before = scene.inventory.device(GPU)
    scene.rules.put(rule("r", select()))
    marked_ = scene.inventory.device(GPU)
    scene.patches.put(patch("p", attributes={f"{DRIVER}/model": set_to("B200")}))
    changed = scene.inventory.device(GPU)

    assert before is not None
    assert marked_ is not None
    assert changed is not None
    assert marked_ is not before
    assert marked_.content is before.content
    assert changed.content is not before.content
