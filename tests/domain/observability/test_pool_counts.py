"""How the devices of a pool are counted, and which of them were repaired."""

from __future__ import annotations

from datetime import timedelta

from sully.domain.devices.device import EffectiveDevice, Published, driver_taints
from sully.domain.devices.taints import SourcedTaint
from sully.domain.observability.pool_counts import (
    Blocker,
    BlockingTaint,
    DeviceStatus,
    PoolCounts,
    count_pool,
    repaired,
)
from sully.testing.builders import device, slice_, taint
from sully.testing.clock import NOON

HEALTHY, USED = DeviceStatus("", False), DeviceStatus("", True)


def effective(name: str, *effects: str, after: float = 0) -> EffectiveDevice:
    taints = (taint(effect, key=f"k/{effect}", after=after) for effect in effects)
    published = Published(slice_("s", device(name, *taints)), 0)
    return EffectiveDevice(published, driver_taints(published))


def count(*devices: EffectiveDevice, allocated: tuple[str, ...] = ()) -> PoolCounts:
    return count_pool(
        {one.id.device: one for one in devices},
        allocated=allocated,
        classes_of=lambda one: ("gpu", "odd") if one.id.device in ("b", "d") else ("gpu",),
        blocker_of=blocker,
    )


def blocker(sourced: SourcedTaint) -> Blocker:
    return Blocker(sourced.origin.kind, sourced.origin.name)


def test_by_strongest_effect_allocation_and_class() -> None:
    counts = count(
        effective("a"),
        effective("b", "NoSchedule", "NoExecute"),
        effective("c", "NoSchedule"),
        effective("d", "None"),
        allocated=("c",),
    )

    assert counts.devices == {
        HEALTHY: 1,
        DeviceStatus("NoExecute", False): 1,
        DeviceStatus("NoSchedule", True): 1,
        DeviceStatus("None", False): 1,
    }
    assert counts.classes["gpu", HEALTHY] == 1
    assert counts.classes["odd", DeviceStatus("NoExecute", False)] == 1
    assert sum(counts.classes.values()) == 6


def test_only_taints_of_unused_devices_block_and_each_source_once() -> None:
    counts = count(
        effective("b", "NoSchedule", "None"),
        effective("a", "NoSchedule", after=5),
        effective("c", "NoExecute"),
        effective("d", "None"),
        allocated=("c",),
    )
    blocking = BlockingTaint(
        Blocker("ResourceSlice", "s"), taint("NoSchedule", key="k/NoSchedule", time=None)
    )

    assert counts.blocked == {"gpu": {blocking}, "odd": {blocking}}


def test_repaired_devices_are_those_still_published_without_any_taint() -> None:
    before = count(
        effective("a", "NoExecute", after=3),
        effective("b", "NoSchedule"),
        effective("c", "NoExecute"),
        effective("d"),
    )
    after = count(effective("a"), effective("b", "None"), effective("d"))

    assert before.tainted_since["a"] == NOON + timedelta(seconds=3)
    assert repaired(before, after, {"a", "b", "d"}) == [NOON + timedelta(seconds=3)]


def test_a_taint_without_a_time_has_no_duration() -> None:
    published = Published(slice_("s", device("a", taint(time=None))), 0)
    before = count(EffectiveDevice(published, driver_taints(published)))

    assert before.tainted_since == {"a": None}
    assert repaired(before, PoolCounts(), {"a"}) == []
