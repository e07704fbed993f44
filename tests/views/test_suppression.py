"""Taints of drivers without effect: who sees which, whatever comes first."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from sully.api.resource.annotations import EXPIRES_AT, POLICY_NAME, SUPPRESSES
from sully.api.resource.types import DeviceTaintRule, DeviceTaintSelector
from sully.domain.devices.pools import PoolId
from sully.domain.devices.suppression import (
    SuppressedTaint,
    encode,
    published_taint,
    suppression_of,
    suppression_text,
)
from sully.domain.devices.taints import SourcedTaint
from sully.machinery.formats.timestamps import format_time
from sully.testing.builders import (
    DRIVER,
    GPU,
    KEY,
    cel,
    class_,
    device,
    patch,
    rule,
    select,
    slice_,
    taint,
)
from sully.testing.clock import NOON
from sully.views.devices.changes import Features, InventoryChange
from views.feeds import Scene

XID = taint("NoExecute", value="31")
NAMED = SuppressedTaint(KEY, "31", "NoExecute")
EXACT = select(driver=DRIVER, pool="pool-1", device="gpu-0")
UNTIL = NOON + timedelta(hours=1)
SLICE = slice_("one", device("gpu-0", XID, taint("NoSchedule", key="example.com/other")))


def suppressing(
    *taints: SuppressedTaint,
    selector: DeviceTaintSelector = EXACT,
    text: str = "",
    policy: str = "false-positives",
    until: str = format_time(UNTIL),
) -> DeviceTaintRule:
    annotations = {
        SUPPRESSES: text or encode(taints or (NAMED,)),
        POLICY_NAME: policy,
        EXPIRES_AT: until,
    }
    carried = taint("None", key="sully.dev/suppressed")
    return rule("suppress", selector, carried, annotations=annotations)


def seen(scene: Scene) -> list[tuple[str, str]]:
    device = scene.inventory.device(GPU)
    assert device is not None
    return [(one.taint.key, one.taint.effect) for one in device.taints]


def first(scene: Scene) -> SourcedTaint:
    device = scene.inventory.device(GPU)
    assert device is not None
    return device.taints[0]


OTHER = ("example.com/other", "NoSchedule")


def test_it_has_no_effect_and_stays_visible() -> None:
    scene = Scene()
    scene.slices.put(SLICE)
    scene.rules.put(suppressing())

    assert seen(scene) == [(KEY, "None"), OTHER]
    suppression = first(scene).suppression
    assert suppression is not None
    assert suppression.until == UNTIL
    assert suppression_text(suppression) == "NoExecute suppressed by policy false-positives"
    assert published_taint(first(scene)) == XID


def test_it_ends_with_the_rule_and_with_what_the_rule_names() -> None:
    scene = Scene()
    scene.slices.put(SLICE)
    scene.rules.put(suppressing())
    assert first(scene).taint.effect == "None"
    scene.rules.put(suppressing(SuppressedTaint(KEY, "79", "NoExecute")))
    assert first(scene).taint.effect == "NoExecute"
    scene.rules.put(suppressing())
    assert first(scene).taint.effect == "None"
    scene.rules.remove(suppressing())
    assert first(scene).taint.effect == "NoExecute"


NOTHING: dict[str, Any] = {
    "no annotation": rule("plain", EXACT),
    "damaged": suppressing(text="{"),
    "nested too deeply": suppressing(text="[" * 100_000),
    "an empty list": suppressing(text="[]"),
    "it has no end": suppressing(until=""),
    "its end is not a time": suppressing(until="later"),
}


@pytest.mark.parametrize("result", NOTHING.values(), ids=NOTHING.keys())
def test_what_suppresses_nothing(result: DeviceTaintRule) -> None:
    assert suppression_of(result) is None
    scene = Scene()
    scene.slices.put(SLICE)
    scene.rules.put(result)

    assert first(scene).taint == XID


def test_only_taints_of_drivers() -> None:
    scene = Scene()
    scene.slices.put(slice_("one", device("gpu-0")))
    scene.patches.put(patch("broken", taints=(XID,)))
    scene.rules.put(suppressing())

    assert seen(scene) == [(KEY, "NoExecute")]


WIDE = {
    "a pool": select(driver=DRIVER, pool="pool-1"),
    "a class": select(device_class_name="gpu"),
    "an expression": select(selectors=cel('device.driver == "gpu.example.com"')),
}


@pytest.mark.parametrize("selector", WIDE.values(), ids=WIDE.keys())
def test_a_rule_for_many_devices(selector: DeviceTaintSelector) -> None:
    scene = Scene()
    scene.classes.put(class_("gpu", "true"))
    scene.slices.put(SLICE, slice_("two", device("gpu-9"), pool="pool-2"))
    scene.rules.put(suppressing(SuppressedTaint(KEY), selector=selector))

    assert seen(scene) == [(KEY, "None"), OTHER]
    # It adds no taint of its own.
    (healthy,) = scene.inventory.devices(PoolId(DRIVER, "pool-2")).values()
    assert healthy.taints == ()


def test_another_value_and_another_effect() -> None:
    scene = Scene()
    scene.slices.put(SLICE)
    for pattern in (SuppressedTaint(KEY, ""), SuppressedTaint(KEY, None, "NoSchedule")):
        scene.rules.put(suppressing(pattern))
        assert first(scene).taint == XID


def test_where_kubernetes_acts() -> None:
    scene = Scene(Features(suppression=False))
    scene.slices.put(SLICE)
    scene.rules.put(suppressing())

    assert seen(scene) == [(KEY, "NoExecute"), OTHER, ("sully.dev/suppressed", "None")]


def test_without_a_policy_the_rule_is_named() -> None:
    result = suppressing(policy="")
    named = suppression_of(result)

    assert named is not None
    assert suppression_text(named.by) == " suppressed by rule suppress"


def test_listeners_see_a_change_of_devices() -> None:
    """A rule that is added makes no device available, except for this one."""
    scene = Scene()
    scene.slices.put(SLICE)
    results: list[InventoryChange] = []
    scene.inventory.on_change(results.append)
    scene.rules.put(suppressing())

    assert any(change.pools and not change.rules for change in results[1:])
