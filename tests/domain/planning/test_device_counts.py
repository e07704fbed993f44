"""How many devices of a class a new pod could get."""

from __future__ import annotations

from sully.domain.devices.device import EffectiveDevice, Published
from sully.domain.devices.rules import sourced
from sully.domain.planning.device_counts import CountedDevice, DeviceCounter, DeviceCounts
from sully.testing.builders import class_, device, rule, select, slice_, taint, text

MODEL = 'device.attributes["gpu.example.com"].model == "big"'


def effective(model: str, effect: str = "") -> EffectiveDevice:
    published = Published(slice_("s", device("gpu-0", model=text(model))), 0)
    marks = (sourced(rule("r", select(), taint(effect))),) if effect else ()
    return EffectiveDevice(published, marks)


def test_counted_by_class() -> None:
    counter = DeviceCounter(
        {entry: class_(entry, *more) for entry, more in (("all", ()), ("big", (MODEL,)))}
    )

    result = counter.count(
        [
            CountedDevice(effective("big")),
            CountedDevice(effective("big"), used=True),
            CountedDevice(effective("big"), unavailable=True),
            CountedDevice(effective("small", "NoSchedule")),
            CountedDevice(effective("small", "NoExecute"), used=True),
            CountedDevice(effective("small", "None")),
        ]
    )

    assert result == {
        "all": DeviceCounts(devices=6, tainted=2, used=2, free=2),
        "big": DeviceCounts(devices=3, tainted=0, used=1, free=1),
    }


def test_a_class_that_cannot_decide_selects_nothing() -> None:
    counter = DeviceCounter(
        {"odd": class_("odd", 'device.attributes["x"].y == 1'), "no": class_("no", "}")}
    )

    result = counter.count([CountedDevice(effective("big"))])

    assert result == {"no": DeviceCounts(), "odd": DeviceCounts()}
