"""What Kubernetes' devices do not have: patches and slices of taints, joined with all the rest."""

from __future__ import annotations

import msgspec
import pytest

from sully.api.resource.annotations import ALLOCATED_ATTRIBUTES
from sully.api.resource.types import DeviceTaintSelector
from sully.domain.devices.pools import DeviceId, PoolId, Standing, standing
from sully.domain.devices.rules import record
from sully.domain.devices.selectors import Content
from sully.testing.builders import (
    DRIVER,
    GPU,
    cel,
    claim,
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

MODEL = f'device.attributes["{DRIVER}"].model'
A100 = slice_("one", device("gpu-0", model=text("A100")), device("gpu-1"))
POOL = PoolId(DRIVER, "pool-1")


def attributes(scene: Scene, name: str = "gpu-0") -> dict[str, str | None]:
    device = scene.inventory.device(DeviceId(DRIVER, "pool-1", name))
    assert device is not None
    return {key: value.string_value for key, value in device.attributes.items()}


@pytest.mark.parametrize(
    "order",
    orders(
        put("slices", A100),
        put("patches", patch("rename", attributes={f"{DRIVER}/model": set_to("H100")})),
        put(
            "patches",
            patch(
                "zone",
                filter_=select(selectors=cel(f'has({MODEL}) && {MODEL} == "A100"')),
                attributes={"acme/zone": set_to("z")},
            ),
        ),
    ),
)
def test_filters_see_devices_without_patches(order: tuple[Step, ...]) -> None:
    scene = Scene()
    for step in order:
        step(scene)
        scene.taints()

    assert attributes(scene) == {f"{DRIVER}/model": "H100", "acme/zone": "z"}
    assert attributes(scene, "gpu-1") == {f"{DRIVER}/model": "H100"}


def test_a_patch_that_is_deleted_restores_the_drivers_view() -> None:
    scene = Scene()
    scene.slices.put(A100)
    source = patch("p", attributes={f"{DRIVER}/model": set_to("H100")}, taints=(taint(key="p"),))
    scene.patches.put(source)
    assert attributes(scene) == {f"{DRIVER}/model": "H100"}
    scene.patches.remove(source)

    assert attributes(scene) == {"model": "A100"}
    assert scene.taints() == {str(GPU): [], f"{DRIVER}/pool-1/gpu-1": []}


FILTERS: dict[str, tuple[DeviceTaintSelector | None, list[str]]] = {
    "absent": (None, ["gpu-0", "gpu-1"]),
    "a device": (select(device="gpu-1"), ["gpu-1"]),
    "an expression that fails on one": (select(selectors=cel(f'{MODEL} == "A100"')), ["gpu-0"]),
    "another driver": (select(driver="x"), []),
}


@pytest.mark.parametrize(("filter_", "want"), FILTERS.values(), ids=FILTERS.keys())
def test_who_is_patched(filter_: DeviceTaintSelector | None, want: list[str]) -> None:
    scene = Scene()
    scene.slices.put(A100)
    source = patch("p", filter_=filter_, attributes={"acme/zone": set_to("z")})
    scene.patches.put(source)

    patched = [name for name in ("gpu-0", "gpu-1") if "acme/zone" in attributes(scene, name)]
    chosen = [
        id_.device for id_, choice in scene.inventory.patch_choices(source) if choice.selected
    ]

    assert patched == chosen == want


def test_patches_for_a_change() -> None:
    scene = Scene()
    scene.slices.put(A100)
    scene.patches.put(
        patch("all"),
        patch("one", filter_=select(device="gpu-1")),
        patch("no", filter_=select(pool="x")),
    )

    def near(devices: frozenset[str] | None) -> list[str]:
        result = scene.inventory.patches_for({POOL: devices})
        return sorted({item.metadata.name for item in result})

    assert near(None) == ["all", "one"]
    assert near(frozenset({"gpu-0"})) == ["all"]
    assert near(frozenset({"gone"})) == ["all"]
    assert near(frozenset()) == []


def test_what_a_taint_reports_about_itself_is_in_the_view() -> None:
    scene = Scene()
    reported = msgspec.structs.replace(taint(), description="hot", data={"celsius": 95})
    scene.slices.put(slice_("one", device("gpu-0", reported)))
    scene.rules.put(rule("r", select(), with_taint=reported))
    scene.patches.put(patch("p", taints=(msgspec.structs.replace(reported, key="p"),)))

    result = scene.inventory.device(GPU)

    assert result is not None
    assert [(taint.taint.description, taint.taint.data) for taint in result.taints] == [
        ("hot", {"celsius": 95})
    ] * 3


DEVICES = slice_("devices", device("gpu-0"), count=2)
MARKS = slice_("marks", device_taints=(("gpu-0", taint(key="slice")), ("ghost", taint())), count=2)


def test_a_slice_of_taints_counts_as_a_slice() -> None:
    scene = Scene()
    scene.slices.put(DEVICES)
    pool = scene.inventory.pool(POOL)
    assert pool is not None
    assert standing(pool.current(), pool.current()) is Standing.INCOMPLETE

    scene.slices.put(MARKS)

    assert standing(pool.current(), pool.current()) is Standing.COMPLETE


def test_a_slice_of_taints_changes_within_its_generation() -> None:
    scene = Scene()
    scene.slices.put(DEVICES, MARKS)
    assert scene.taints() == {str(GPU): ["ResourceSlice/marks slice"]}

    scene.slices.put(slice_("marks", device_taints=(("gpu-0", taint(key="new")),), count=2))
    changed = scene.taints()
    scene.slices.put(slice_("marks", count=2))

    assert changed == {str(GPU): ["ResourceSlice/marks new"]}
    assert scene.taints() == {str(GPU): []}


def test_taints_of_an_old_generation_are_history() -> None:
    scene = Scene()
    scene.slices.put(DEVICES, MARKS)
    scene.slices.put(slice_("devices", device("gpu-0"), generation=2))

    assert scene.taints() == {str(GPU): []}


ABSENT = {
    "as documented": (Features(), []),
    "as the scheduler of Kubernetes 1.37": (
        Features(absent_selects_all=True),
        [f"DeviceTaintRule/r {taint().key}"],
    ),
}


@pytest.mark.parametrize(("features", "want"), ABSENT.values(), ids=ABSENT.keys())
def test_a_rule_without_a_selector(features: Features, want: list[str]) -> None:
    for order in (("rules", "slices"), ("slices", "rules")):
        scene = Scene(features)
        for feed in order:
            put(feed, rule("r") if feed == "rules" else DEVICES)(scene)
            scene.taints()

        assert scene.taints() == {str(GPU): want}
        # What is not published is judged as documented in any case.
        assert scene.inventory.rules_for(GPU) == []
        scene.rules.remove(rule("r"))
        assert scene.taints() == {str(GPU): []}


GONE = DeviceId(DRIVER, "pool-1", "gpu-9")
PLAIN = Content(DRIVER, {}, {})


def test_a_rule_whose_class_is_missing_reports_it_for_every_device_it_names() -> None:
    scene = Scene()
    scene.slices.put(A100)
    scene.claims.put(claim("c", GONE, annotations={ALLOCATED_ATTRIBUTES: record([(GONE, PLAIN)])}))
    chosen = rule("r", select(device_class_name="c"))
    scene.rules.put(chosen)

    problems = [
        (problem.device.device, problem.choice.problem)
        for problem in scene.exposures.problems(chosen)
    ]

    assert problems == [(name, "there is no class c") for name in ("gpu-0", "gpu-1", "gpu-9")]
    scene.classes.put(class_("c", "true"))
    assert list(scene.exposures.problems(chosen)) == []
    assert marked(scene) == ["gpu-0", "gpu-1"]


def marked(scene: Scene) -> list[str]:
    return [name.rpartition("/")[2] for name, taints in scene.taints().items() if taints]
