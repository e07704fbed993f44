"""Devices merged by the pool are what each of them is when everything is asked from the start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from property_examples import examples
from sully.api.resource.types import (
    DeviceClass,
    DeviceTaintRule,
    DeviceTaintSelector,
    ResourceSlice,
    ResourceSlicePatch,
)
from sully.domain.devices.device import EffectiveDevice, Published, slice_origin
from sully.domain.devices.patches import applies, overlay
from sully.domain.devices.pools import DeviceId, PoolId, current, pool_of
from sully.domain.devices.rules import choose, sourced, stacked, with_taints
from sully.domain.devices.taints import SourcedTaint
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
from views.feeds import Scene

POOL, SECOND = PoolId(DRIVER, "pool-1"), PoolId(DRIVER, "pool-2")
MODEL = f'device.attributes["{DRIVER}"].model'
ONE = slice_("one", device("gpu-0"), device("gpu-1"), device("gpu-2"))
TWO = slice_("two", device("gpu-0"), device("gpu-1"), pool="pool-2")


def taints(scene: Scene, pool: PoolId = POOL) -> dict[str, tuple[SourcedTaint, ...]]:
    return {name: entry.taints for name, entry in scene.inventory.devices(pool).items()}


def test_devices_under_the_same_rules_share_their_taints() -> None:
    for rules in ("a", "ab"):
        scene = Scene()
        scene.slices.put(ONE, TWO)
        scene.rules.put(*(rule(name, select(driver=DRIVER)) for name in rules))

        results = [*taints(scene).values(), *taints(scene, SECOND).values()]

        assert len(results) == 5
        assert len(results[0]) == len(rules)
        assert all(item is results[0] for item in results)


def test_devices_that_look_alike_share_what_expressions_choose_for_them() -> None:
    scene = Scene()
    same, other = {"model": text("A100")}, {"model": text("H100")}
    scene.slices.put(
        slice_("one", device("gpu-0", **same), device("gpu-1", **other)),
        slice_("two", device("gpu-0", **same), pool="pool-2"),
    )
    scene.rules.put(rule("r", select(selectors=cel(f'{MODEL} == "A100"'))), rule("s", select()))

    here, there = taints(scene), taints(scene, SECOND)

    assert [item.origin.name for item in here["gpu-0"]] == ["r", "s"]
    assert [item.origin.name for item in here["gpu-1"]] == ["s"]
    assert here["gpu-0"] is there["gpu-0"]


def test_only_the_device_that_is_named_is_merged_for_itself() -> None:
    scene = Scene()
    scene.slices.put(ONE)
    scene.rules.put(rule("all", select()), rule("one", select(device="gpu-1")))

    result = taints(scene)

    assert [item.origin.name for item in result["gpu-1"]] == ["all", "one"]
    assert result["gpu-0"] is result["gpu-2"]
    assert [item.origin.name for item in result["gpu-0"]] == ["all"]


def test_a_device_is_the_same_whether_it_or_its_pool_is_asked_for() -> None:
    scene = Scene()
    scene.slices.put(ONE)
    first = scene.inventory.device(GPU)

    everyone = scene.inventory.devices(POOL)

    assert everyone["gpu-0"] is first
    assert scene.inventory.device(GPU._replace(device="gpu-2")) is everyone["gpu-2"]
    assert scene.inventory.devices(POOL) is everyone


def test_a_pool_that_is_not_there_has_no_devices() -> None:
    scene = Scene()
    scene.slices.put(ONE)
    scene.slices.remove(ONE)

    assert scene.inventory.devices(POOL) == {}
    assert scene.inventory.device(GPU) is None


def test_a_slice_that_is_written_again_leaves_patches_where_they_are() -> None:
    scene = Scene()
    scene.patches.put(patch("p", taints=(taint(key="patched"),)))
    scene.slices.put(ONE)
    scene.inventory.device(GPU)

    scene.slices.put(ONE)

    assert [[item.taint.key for item in result] for result in taints(scene).values()] == [
        ["patched"]
    ] * 3


CHANGES = {
    "another taint": (rule("r", select(), taint(key="a")), rule("r", select(), taint(key="b"))),
    "another expression": (
        rule("r", select(selectors=cel("true")), taint(key="a")),
        rule("r", select(selectors=cel("false")), taint(key="a")),
    ),
}


@pytest.mark.parametrize(("before", "after"), CHANGES.values(), ids=CHANGES.keys())
def test_a_rule_that_changes_beside_another_one(
    before: DeviceTaintRule, after: DeviceTaintRule
) -> None:
    scene = Scene()
    scene.slices.put(ONE, TWO)
    scene.rules.put(before, rule("s", select()))
    first = taints(scene)
    # The second is as it was, but now both were seen in the same order as before.
    scene.rules.put(after, rule("s", select()))

    assert {item.taint.key for item in first["gpu-0"]} == {"a", taint().key}
    want = {"b", taint().key} if after.spec.taint.key == "b" else {taint().key}
    for pool in (POOL, SECOND):
        assert [{item.taint.key for item in result} for result in taints(scene, pool).values()] == [
            want
        ] * len(taints(scene, pool))


DEVICES = st.builds(
    lambda name, marks, model: device(
        name,
        *(taint(key=key) for key in marks),
        **({"model": text(model)} if model else {}),
    ),
    st.sampled_from("xyz"),
    st.lists(st.sampled_from(("hot", "old")), max_size=1),
    st.sampled_from(("", "A", "B")),
)
SLICES = st.builds(
    lambda name, pool, generation, devices, marks: slice_(
        name, *devices, pool=pool, generation=generation, device_taints=tuple(marks)
    ),
    st.sampled_from("ab"),
    st.sampled_from(("p", "q")),
    st.sampled_from((1, 1, 1, 2)),
    st.lists(DEVICES, max_size=3, unique_by=lambda item: item.name),
    st.lists(st.tuples(st.sampled_from("xyz"), st.just(taint(key="mark"))), max_size=1),
)
EXPRESSIONS = (f'{MODEL} == "A"', f'has({MODEL}) && {MODEL} == "B"', f"!has({MODEL})")
SELECTORS = st.builds(
    select,
    driver=st.sampled_from((None, DRIVER, "other")),
    pool=st.sampled_from((None, None, "p", "q")),
    device=st.sampled_from((None, None, "x", "y")),
    device_class_name=st.sampled_from((None, None, None, "c")),
    selectors=st.sampled_from(((), (), *(cel(expression) for expression in EXPRESSIONS))),
)
RULES = st.builds(
    lambda name, selector, key: rule(name, selector, taint(key=key)),
    st.sampled_from(("r", "s", "t")),
    st.none() | SELECTORS,
    st.sampled_from(("k", "l")),
)
PATCHES = st.builds(
    lambda name, filter_, model, marks: patch(
        name,
        filter_=filter_,
        attributes={f"{DRIVER}/model": set_to(model)} if model else {},
        taints=tuple(taint(key=key) for key in marks),
    ),
    st.sampled_from(("m", "n")),
    st.none() | SELECTORS,
    st.sampled_from(("", "A", "B")),
    st.lists(st.sampled_from(("hot", "patched")), max_size=1),
)
CLASSES = st.builds(class_, st.just("c"), st.sampled_from(EXPRESSIONS))
READS = st.sampled_from(((), *((pool, name) for pool in "pq" for name in ("", "x", "z"))))
EVENTS = st.lists(
    st.tuples(st.booleans(), SLICES | RULES | PATCHES | CLASSES, READS), min_size=1, max_size=25
)
FEEDS: dict[type, str] = {
    ResourceSlice: "slices",
    DeviceTaintRule: "rules",
    ResourceSlicePatch: "patches",
    DeviceClass: "classes",
}


class Naive:
    """What was put and not removed, merged without caches."""

    def __init__(self) -> None:
        self.known: dict[tuple[type, str], Any] = {}

    def of(self, kind: type) -> list[Any]:
        return [entry for (its, _), entry in self.known.items() if its is kind]

    def devices(self) -> Iterator[tuple[DeviceId, EffectiveDevice]]:
        for pool in {pool_of(item) for item in self.of(ResourceSlice)}:
            slices = current(item for item in self.of(ResourceSlice) if pool_of(item) == pool)
            seen: set[str] = set()
            for part in slices:
                for index, result in enumerate(part.spec.devices):
                    if result.name not in seen:
                        seen.add(result.name)
                        published = Published(part, index)
                        yield published.id, self.merge(published, marks(slices, result.name))

    def merge(self, published: Published, marked: list[SourcedTaint]) -> EffectiveDevice:
        patches = [
            item
            for item in self.of(ResourceSlicePatch)
            if applies(item.spec.devices.filter, published, self.class_).selected
        ]
        plain = overlay(published, patches, marked)
        rules = [
            item
            for item in self.of(DeviceTaintRule)
            if choose(item.spec.device_selector, published.id, plain.content, self.class_).selected
        ]
        return with_taints(plain, stacked(map(sourced, rules)))

    def class_(self, name: str) -> DeviceClass | None:
        return self.known.get((DeviceClass, name))


def marks(slices: tuple[ResourceSlice, ...], name: str) -> list[SourcedTaint]:
    return [
        SourcedTaint(entry.taint, slice_origin(slice_, index))
        for slice_ in slices
        for index, entry in enumerate(slice_.spec.taints)
        if entry.device == name
    ]


def shown(result: EffectiveDevice) -> object:
    return (
        result.published.slice.metadata.name,
        result.taints,
        dict(result.attributes),
        dict(result.attribute_origins),
    )


def do(scene: Scene, naive: Naive, obj: Any, *, goes: bool) -> None:
    key = (type(obj), obj.metadata.name)
    feed = getattr(scene, FEEDS[type(obj)])
    if goes:
        feed.remove(obj)
        naive.known.pop(key, None)
    else:
        feed.put(obj)
        naive.known[key] = obj


def read(scene: Scene, what: tuple[str, ...]) -> None:
    """Ask, so that something is cached that may have to be forgotten."""
    match what:
        case (pool, ""):
            scene.inventory.devices(PoolId(DRIVER, pool))
        case (pool, name):
            scene.inventory.device(DeviceId(DRIVER, pool, name))


@settings(max_examples=examples(200))
@given(EVENTS, st.booleans())
def test_after_any_events_devices_are_what_everything_reports_about_them(
    events: list[tuple[bool, Any, tuple[str, ...]]], by_name: bool
) -> None:
    scene, naive = Scene(), Naive()
    for goes, obj, asked in events:
        do(scene, naive, obj, goes=goes)
        read(scene, asked)

    want = dict(naive.devices())
    if by_name:
        results = {id_: scene.inventory.device(id_) for id_ in want}
    else:
        results = {
            DeviceId(*pool, name): entry
            for pool in scene.inventory.pools()
            for name, entry in scene.inventory.devices(pool).items()
        }

    assert {id_: entry and shown(entry) for id_, entry in results.items()} == {
        id_: shown(entry) for id_, entry in want.items()
    }


def test_every_filter_of_the_property_can_select_something() -> None:
    """Hold the table above to what it is for: cases that all miss would prove nothing."""
    content = Published(slice_("one", device("x", model=text("A"))), 0)
    selectors: list[DeviceTaintSelector] = [
        select(selectors=cel(expression)) for expression in EXPRESSIONS
    ]

    assert [applies(selector, content, lambda _: None).selected for selector in selectors] == [
        True,
        False,
        False,
    ]
