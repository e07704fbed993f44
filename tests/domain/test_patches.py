"""What patches make of devices."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sully.api.resource.annotations import CREATED_AT
from sully.api.resource.types import Device, DeviceCapacity, DeviceTaintSelector, ResourceSlicePatch
from sully.domain.devices.device import Published
from sully.domain.devices.patches import applies, overlay, precedence
from sully.domain.devices.selectors import DeviceSelectorError, matches
from sully.machinery.cel import CostBudget
from sully.testing.builders import (
    DRIVER,
    NULL,
    cel,
    class_,
    device,
    patch,
    select,
    set_to,
    slice_,
    taint,
    text,
)

MODEL = f"{DRIVER}/model"
PLAIN = device("gpu-0", model=text("A100"))


def published(result: Device = PLAIN) -> Published:
    return Published(slice_("slice-1", result), 0)


def model(name: str, value: str, *, created_at: str = "", **more: Any) -> ResourceSlicePatch:
    result = patch(name, attributes={MODEL: set_to(value)}, **more)
    annotations = {CREATED_AT: created_at} if created_at else {}
    return replace(result, metadata=replace(result.metadata, annotations=annotations))


ORDER = {
    "higher priority first": (model("a", "1", priority=1), model("b", "2", priority=2), "b"),
    "no priority counts as 0": (model("a", "1", priority=-1), model("b", "2"), "b"),
    "then the older one": (model("a", "1", after=5), model("b", "2"), "b"),
    "then the older one of a second": (
        model("a", "1", created_at="2026-03-01T12:00:00.000002Z"),
        model("b", "2", created_at="2026-03-01T12:00:00.000001Z"),
        "b",
    ),
    "then by name": (model("b", "2"), model("a", "1"), "a"),
    "priority before age": (model("a", "1"), model("b", "2", priority=1, after=5), "b"),
}


@pytest.mark.parametrize(("one", "other", "want"), ORDER.values(), ids=ORDER.keys())
def test_precedence(one: ResourceSlicePatch, other: ResourceSlicePatch, want: str) -> None:
    for patches in permutations((one, other)):
        got = overlay(published(), patches)

        assert min(patches, key=precedence).metadata.name == want
        assert str(got.attribute_origin(MODEL)) == f"ResourceSlicePatch/{want}"


def test_a_losing_patch_still_contributes_its_other_names() -> None:
    winner = model("winner", "H100", priority=5)
    loser = patch("loser", attributes={MODEL: set_to("x"), "acme/zone": set_to("z")})

    got = overlay(published(), (loser, winner))

    assert got.attributes == {MODEL: text("H100"), "acme/zone": text("z")}
    assert str(got.attribute_origin("acme/zone")) == "ResourceSlicePatch/loser"


@dataclass(frozen=True)
class Case:
    patches: tuple[ResourceSlicePatch, ...]
    want: dict[str, str]
    device: Device = PLAIN


FULL = device("gpu-0", **{MODEL: text("A100")})
CASES = {
    "nothing": Case((), {"model": "A100"}),
    "a bare name is the same as the qualified one": Case((model("p", "X"),), {MODEL: "X"}),
    "a qualified name is replaced": Case((model("p", "X"),), {MODEL: "X"}, FULL),
    "null removes a bare name": Case((patch(attributes={MODEL: NULL}),), {}),
    "null removes a qualified name": Case((patch(attributes={MODEL: NULL}),), {}, FULL),
    "null removes both spellings": Case(
        (patch(attributes={MODEL: NULL}),),
        {},
        device("gpu-0", model=text("a"), **{MODEL: text("b")}),
    ),
    "another domain's name is another name": Case(
        (patch(attributes={"acme/model": NULL}),), {"model": "A100"}
    ),
    "an attribute that the driver lacks": Case(
        (patch(attributes={"acme/zone": set_to("z")}),), {"model": "A100", "acme/zone": "z"}
    ),
    "a null that loses removes nothing": Case(
        (model("p", "X", priority=1), patch("q", attributes={MODEL: NULL})), {MODEL: "X"}
    ),
    "a null that wins removes": Case(
        (patch("q", priority=1, attributes={MODEL: NULL}), model("p", "X")), {}
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_attributes(case: Case) -> None:
    got = overlay(published(case.device), case.patches)

    assert got.attributes == {name: text(value) for name, value in case.want.items()}


def test_capacity_can_be_set_to_nothing() -> None:
    got = overlay(published(), (patch(capacity={f"{DRIVER}/memory": "0"}),))

    assert got.capacity == {f"{DRIVER}/memory": DeviceCapacity(value="0")}
    assert str(got.capacity_origin(f"{DRIVER}/memory")) == "ResourceSlicePatch/patch"


def test_an_attribute_and_a_capacity_of_the_same_name_are_two_things() -> None:
    one = patch("a", attributes={"acme/x": set_to("1")})
    other = patch("b", capacity={"acme/x": "1"})

    got = overlay(published(), (one, other))

    assert str(got.attribute_origin("acme/x")) == "ResourceSlicePatch/a"
    assert str(got.capacity_origin("acme/x")) == "ResourceSlicePatch/b"


def test_what_nobody_patched_comes_from_the_slice_and_is_shared() -> None:
    plain = published()

    got = overlay(plain, ())

    assert got.content is plain.content
    assert str(got.attribute_origin("model")) == "ResourceSlice/slice-1"


HOT, COLD = taint(key="hot"), taint(key="cold")
TAINTS = {
    "the driver's stay": ((HOT,), (), ["ResourceSlice/slice-1 hot="]),
    "others accumulate": (
        (HOT,),
        (patch("p", taints=(COLD,)),),
        ["ResourceSlice/slice-1 hot=", "ResourceSlicePatch/p cold="],
    ),
    "the same key and effect is replaced": (
        (HOT, COLD),
        (patch("p", taints=(taint(key="hot", value="x"),)),),
        ["ResourceSlice/slice-1 cold=", "ResourceSlicePatch/p hot=x"],
    ),
    "another effect is not": (
        (HOT,),
        (patch("p", taints=(taint("NoSchedule", key="hot"),)),),
        ["ResourceSlice/slice-1 hot=", "ResourceSlicePatch/p hot="],
    ),
    "the first patch wins": (
        (HOT,),
        (
            patch("q", taints=(taint(key="hot", value="q"), COLD)),
            patch("p", priority=1, taints=(taint(key="hot", value="p"),)),
        ),
        ["ResourceSlicePatch/p hot=p", "ResourceSlicePatch/q cold="],
    ),
}


@pytest.mark.parametrize(("driver", "patches", "want"), TAINTS.values(), ids=TAINTS.keys())
def test_taints(driver: tuple, patches: tuple, want: list[str]) -> None:
    got = overlay(published(device("gpu-0", *driver)), patches)

    assert [f"{taint.origin} {taint.taint.key}={taint.taint.value}" for taint in got.taints] == want


def test_gates_leave_out_what_they_turn_off() -> None:
    both = patch(attributes={MODEL: set_to("X")}, taints=(COLD,))
    result = published(device("gpu-0", HOT, model=text("A100")))

    without_attributes = overlay(result, (both,), attributes=False)
    without_taints = overlay(result, (both,), taints=False)

    assert without_attributes.attributes == {"model": text("A100")}
    assert [taint.taint for taint in without_attributes.taints] == [HOT, COLD]
    assert without_taints.attributes == {MODEL: text("X")}
    assert without_taints.taints == ()


@pytest.mark.parametrize("published_device", [PLAIN, FULL], ids=["bare", "qualified"])
def test_an_expression_sees_a_removed_attribute_as_missing(published_device: Device) -> None:
    there = cel(f'has(device.attributes["{DRIVER}"].model)')
    result = published(published_device)
    removed = overlay(result, (patch(attributes={MODEL: NULL}),))

    assert matches(there, result.content, CostBudget())
    assert not matches(there, removed.content, CostBudget())
    with pytest.raises(DeviceSelectorError, match="no such key: model"):
        matches(
            cel(f'device.attributes["{DRIVER}"].model == "A100"'), removed.content, CostBudget()
        )


def test_an_expression_sees_what_a_patch_adds_and_sets() -> None:
    adding = patch(attributes={"acme/zone": set_to("z")}, capacity={f"{DRIVER}/memory": "0"})
    content = overlay(published(), (adding,)).content

    assert matches(cel('device.attributes["acme"].zone == "z"'), content, CostBudget())
    amount = f'device.capacity["{DRIVER}"].memory'
    assert matches(cel(f'{amount}.compareTo(quantity("0")) == 0'), content, CostBudget())


CLASSES = {"a100": class_("a100", f'device.attributes["{DRIVER}"].model == "A100"')}
FILTERS = {
    "absent": (None, True),
    "empty": (select(), True),
    "driver": (select(driver=DRIVER), True),
    "other driver": (select(driver="other"), False),
    "pool": (select(pool="pool-1"), True),
    "other pool": (select(pool="pool-2"), False),
    "device": (select(device="gpu-0"), True),
    "other device": (select(device="gpu-1"), False),
    "all names": (select(driver=DRIVER, pool="pool-1", device="gpu-0"), True),
    "class": (select(device_class_name="a100"), True),
    "expression": (select(selectors=cel("false")), False),
    "a failing expression": (select(selectors=cel(f'device.attributes["{DRIVER}"].x')), False),
}


@pytest.mark.parametrize(("filter_", "want"), FILTERS.values(), ids=FILTERS.keys())
def test_filters(filter_: DeviceTaintSelector | None, want: bool) -> None:
    assert applies(filter_, published(), CLASSES.get).selected is want


NAMES = st.sampled_from((MODEL, "acme/zone", "acme/rack"))
VALUES = st.sampled_from((NULL, set_to("1"), set_to("2")))
PATCHES = st.lists(
    st.builds(
        patch,
        st.sampled_from("abcd"),
        priority=st.none() | st.integers(0, 1),
        after=st.integers(0, 1),
        attributes=st.dictionaries(NAMES, VALUES),
        taints=st.lists(st.sampled_from((HOT, COLD)), unique_by=lambda item: item.key).map(tuple),
    ),
    unique_by=lambda item: item.metadata.name,
    max_size=4,
).flatmap(st.permutations)


@given(PATCHES)
def test_the_order_of_patches_never_matters(patches: list[ResourceSlicePatch]) -> None:
    result = published(device("gpu-0", HOT, model=text("A100")))
    want = overlay(result, sorted(patches, key=precedence))

    got = overlay(result, patches)

    assert (got.attributes, got.taints) == (want.attributes, want.taints)
    assert got.attribute_origins == want.attribute_origins


@given(PATCHES)
def test_laying_the_same_patches_over_again_changes_nothing(
    patches: list[ResourceSlicePatch],
) -> None:
    once = overlay(published(), patches)
    again = overlay(published(Device(name="gpu-0", attributes=dict(once.attributes))), patches)

    assert again.attributes == once.attributes


def test_a_taint_without_a_time_counts_from_its_patch() -> None:
    undated, dated = taint(time=None), taint("NoSchedule", after=1)

    got = overlay(published(), (patch("p", after=30, taints=(undated, dated)),))

    assert [taint.taint for taint in got.taints] == [taint(after=30), dated]
